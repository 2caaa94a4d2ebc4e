"""One epoch of training and one of scoring: plain loops over batches, the same on CPU and GPU."""

import contextlib
import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from biastransfer.backbones import Transform
from biastransfer.finetune.pictures import Pictures, augment, to_batch
from biastransfer.finetune.recipes import Recipe

_CHECK_EVERY = 25  # batches between looks at the loss, each of which makes a GPU wait


class DivergedError(ArithmeticError):
    """A loss that is not finite; the message names epoch, batch and pictures."""


def choose_device(device: str | None = None) -> tuple[torch.device, str]:
    """Return the device and why it is taken: the first CUDA device, else the CPU, unless ``device`` says."""
    if device is not None:
        return torch.device(device), "asked for"
    if torch.cuda.is_available():
        return torch.device("cuda"), f"the first CUDA device, {torch.cuda.get_device_name()}"
    return torch.device("cpu"), "no CUDA device was found"


def make_optimizer(module: nn.Module, recipe: Recipe, rate: float) -> torch.optim.Optimizer:
    """Return the recipe's optimiser over all weights of ``module`` at the learning rate ``rate``.

    Notes
    -----
    Everything is trained, batch-norm scales and shifts included, and decayed alike. LARS scales every layer's
    step although weight decay is 0 (timm's default would then be plain SGD).
    """
    settings = {"lr": rate, "momentum": recipe.momentum, "weight_decay": recipe.weight_decay}
    if recipe.optimizer == "lars":
        from timm.optim import Lars

        return Lars(module.parameters(), always_adapt=True, **settings)
    return torch.optim.SGD(module.parameters(), fused=True, **settings)


def make_plateau(optimizer: torch.optim.Optimizer, recipe: Recipe):
    """Return the scheduler of a ``plateau`` recipe for ``optimizer`` (a tenth per plateau), else None."""
    if recipe.schedule != "plateau":
        return None
    return torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", 0.1, recipe.patience)


def rate_at(recipe: Recipe, peak: float, step: int, steps: int) -> float:
    """Return the learning rate of a step under ``constant`` or ``cosine``.

    Parameters
    ----------
    recipe : Recipe
    peak : float
    step, steps : int
        From 0; number of steps of the whole training.

    Examples
    --------
    >>> half = Recipe("x", epochs=1, lr=1.0, schedule="cosine")
    >>> rate_at(half, 1.0, 0, 10), round(rate_at(half, 1.0, 5, 10), 3)
    (1.0, 0.5)
    """
    if recipe.schedule != "cosine":
        return peak
    rising = round(recipe.warmup * steps)
    if step < rising:
        return peak * (step + 1) / (rising + 1)
    return peak * (1 + math.cos(math.pi * (step - rising) / max(steps - rising, 1))) / 2


def masked_loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the mean binary cross-entropy over the known labels.

    Parameters
    ----------
    logits, labels : tensor, shape (N, K)
        Labels are 1, 0 or NaN = unknown, which gives neither loss nor gradient.

    Returns
    -------
    tensor, shape ()
        In nats; 0 when no label is known.

    Examples
    --------
    >>> logits = torch.zeros(1, 2, requires_grad=True)
    >>> masked_loss(logits, torch.tensor([[1.0, float("nan")]])).backward()
    >>> logits.grad.tolist()
    [[-0.5, 0.0]]
    """
    known = ~labels.isnan()
    truth = torch.where(known, labels, 0.0)
    losses = functional.binary_cross_entropy_with_logits(
        logits.float(), truth, known.float(), reduction="sum"
    )
    return losses / known.sum().clamp(min=1)


def epoch_batches(n: int, batch_size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return the rows of every batch of an epoch: all ``n`` in random order, in near-equal batches.

    Parameters
    ----------
    n, batch_size : int
        No batch is larger than ``batch_size``; none is dropped, and none is left so small that batch norm
        would see one picture (unless n or batch_size is 1).
    rng : Generator

    Examples
    --------
    >>> [len(rows) for rows in epoch_batches(33, 16, np.random.default_rng(0))]
    [11, 11, 11]
    """
    return np.array_split(rng.permutation(n), math.ceil(n / batch_size))


@contextlib.contextmanager
def _own_randomness(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's generators (dropout) for a block and give the caller's state back."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def train_epoch(
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    pictures: Pictures,
    labels: np.ndarray,
    recipe: Recipe,
    *,
    epoch: int,
    seed: int,
    device: torch.device,
    set_rate: Callable[[int], None] | None = None,
) -> float:
    """Train over all pictures once.

    Parameters
    ----------
    module : torch.nn.Module
        Put into train mode: batch norm normalises by the batch and updates its running statistics.
    optimizer : torch.optim.Optimizer
    pictures, labels : Pictures, ndarray of shape (N, K)
    recipe : Recipe
    epoch, seed : int
        Decide order, augmentation and dropout, together and alone: an epoch repeated is the same epoch.
    device : torch.device
    set_rate : callable, optional
        Called with the batch's number in the epoch before each step.

    Returns
    -------
    float
        Mean loss over the pictures, each in the state of the weights that met it.

    Raises
    ------
    DivergedError
        The loss is not finite.
    """
    rng = np.random.default_rng([seed, epoch])
    dropout_seed = int(rng.integers(2**62))
    batches = epoch_batches(len(labels), recipe.batch_size, rng)
    losses: list[torch.Tensor] = []
    module.train()
    with _own_randomness(dropout_seed, device):
        for number, rows in enumerate(batches):
            if set_rate:
                set_rate(number)
            pixels = augment(pictures.take(rows), rng, flip=recipe.flip, shift=recipe.shift)
            batch = to_batch(pixels, pictures.transform, device)
            losses.append(_step(module, optimizer, batch, torch.from_numpy(labels[rows]).to(device), recipe))
            if (number + 1) % _CHECK_EVERY == 0 or number + 1 == len(batches):
                _check_finite(losses, batches, pictures, epoch)
    weights = torch.tensor([len(rows) for rows in batches], dtype=torch.float64)
    return float((torch.stack(losses).cpu().double() * weights).sum() / weights.sum())


def _step(module, optimizer, batch, labels, recipe: Recipe) -> torch.Tensor:
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast(batch.device.type, torch.bfloat16, enabled=recipe.precision == "bf16"):
        logits = module(batch)
    loss = masked_loss(logits, labels)
    loss.backward()
    optimizer.step()
    return loss.detach()


def _check_finite(losses, batches, pictures: Pictures, epoch: int) -> None:
    finite = torch.isfinite(torch.stack(losses)).cpu()
    if finite.all():
        return
    number = int((~finite).nonzero()[0])
    names = ", ".join(pictures.files[row] for row in batches[number])
    raise DivergedError(
        f"the loss must stay finite; it became {float(losses[number])} in epoch {epoch}, batch {number + 1} "
        f"of {len(batches)}, pictures: {names}. Lower the learning rate or look at these pictures."
    )


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
    """
    training = module.training
    module.eval()
    size = _scoring_batch(pictures.transform, device)
    logits = []
    try:
        with (
            torch.inference_mode(),
            torch.autocast(device.type, torch.bfloat16, enabled=recipe.precision == "bf16"),
        ):
            for start in range(0, len(pictures.files), size):
                rows = np.arange(start, min(start + size, len(pictures.files)))
                batch = to_batch(pictures.take(rows), pictures.transform, device)
                logits.append(module(batch).float().cpu().numpy())
    finally:
        module.train(training)
    return np.concatenate(logits)


def _scoring_batch(transform: Transform, device: torch.device) -> int:
    """Return a batch size; on the CPU its largest activation stays below 32 MiB (larger: half the speed)."""
    return 256 if device.type == "cuda" else max(1, 16 * 128**2 // transform.size**2)
