"""The logits of a split and what they are worth, each picture scored once, by whichever rank."""

import numpy as np
import torch
from torch import nn

from biastransfer import distributed
from biastransfer.backbones import Transform
from biastransfer.backbones.batches import to_batch
from biastransfer.finetune.devices import autocast
from biastransfer.finetune.evaluation import (
    binary_cross_entropy,
    chance_map,
    chance_micro_f1,
    mean_average_precision,
    micro_f1,
    sigmoid,
)
from biastransfer.finetune.pictures import Pictures
from biastransfer.finetune.settings import Recipe
from biastransfer.finetune.targets import Split
from biastransfer.finetune.training import DivergedError
from biastransfer.prefetch import ahead


def predict(module: nn.Module, pictures: Pictures, device: torch.device, recipe: Recipe) -> np.ndarray:
    """Return the logits of all pictures in order, without augmentation.

    Parameters
    ----------
    module : torch.nn.Module
        Used in eval mode; its mode is restored.
    pictures : Pictures
    device : torch.device
    recipe : Recipe
        Its precision.

    Returns
    -------
    ndarray of float32, shape (N, K)
        The same on every rank.

    Notes
    -----
    Ranks take the batches of a single process in turn, so each picture is scored once, in the batch that it
    would be in without ranks, and none is repeated to make the ranks' shares equal.
    """
    training = module.training
    module.eval()
    size = _scoring_batch(pictures.transform, device)
    starts = range(0, len(pictures.files), size)
    mine = starts[distributed.rank() :: distributed.size()]

    def batches():
        for start in mine:
            rows = np.arange(start, min(start + size, len(pictures.files)))
            yield to_batch(pictures.take(rows), pictures.transform, device)

    try:
        with torch.inference_mode(), ahead(batches()) as ready:
            logits = []
            for batch in ready:
                with autocast(device, recipe.precision):
                    logits.append(module(batch).float().cpu().numpy())
    finally:
        module.train(training)
    shares = distributed.gathered(logits)
    return np.concatenate([shares[k % len(shares)][k // len(shares)] for k in range(len(starts))])


def _scoring_batch(transform: Transform, device: torch.device) -> int:
    """Return a batch size; on the CPU its largest activation stays below 32 MiB (larger: half the speed)."""
    return 256 if device.type == "cuda" else max(1, 16 * 128**2 // transform.size**2)


def scores(split: Split, logits: np.ndarray, classes, epoch: int) -> list[tuple[str, str, float]]:
    """Return what a split's logits are worth.

    Parameters
    ----------
    split : Split
    logits : ndarray, shape (N, K)
    classes : sequence of str, length K
    epoch : int
        After which the logits were taken; for the message.

    Returns
    -------
    list of (metric, class, value)
        loss, mAP, micro-F1 and the chance of both with class ``""``, then ``AP`` of every class.

    Raises
    ------
    DivergedError
        A logit is not finite.
    """
    if not np.isfinite(logits).all():
        raise DivergedError(
            f"scores must stay finite; after epoch {epoch} those of the {split.name} split are not. "
            "Lower the learning rate."
        )
    macro, per_class = mean_average_precision(split.labels, logits)
    values = {
        "loss": binary_cross_entropy(split.labels, logits),
        "mAP": macro,
        "micro-F1": micro_f1(split.labels, sigmoid(logits)),
        "chance mAP": chance_map(split.labels),
        "chance micro-F1": chance_micro_f1(split.labels),
    }
    return [
        *((metric, "", float(value)) for metric, value in values.items()),
        *(("AP", name, float(value)) for name, value in zip(classes, per_class)),
    ]
