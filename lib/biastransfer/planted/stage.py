"""A network cut before its last stage: what lies before runs once a picture, what follows is trained."""

import copy
import dataclasses
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from biastransfer.backbones import Backbone, Transform, replace_head
from biastransfer.backbones.batches import to_batch
from biastransfer.finetune.schedules import make_optimizer, rate_at
from biastransfer.finetune.settings import Recipe
from biastransfer.finetune.training import epoch_batches, masked_loss
from biastransfer.images import read_rgb


@dataclasses.dataclass(frozen=True)
class Stage:
    """The last stage of a network (its output pooled is the embedding) and the head on it."""

    body: nn.Module
    head: nn.Module

    def copy(self) -> "Stage":
        """Return a stage with weights of its own."""
        return copy.deepcopy(self)


def _efficientnet(net) -> tuple[nn.Sequential, nn.Sequential, nn.Sequential]:
    trunk = nn.Sequential(net.conv_stem, net.bn1, *net.blocks[:-1])
    body = nn.Sequential(net.blocks[-1], net.conv_head, net.bn2)
    return trunk, body, nn.Sequential(net.global_pool, net.classifier)


def _squeezenet(net) -> tuple[nn.Sequential, nn.Sequential, nn.Sequential]:
    last = len(net.features) - 2  # fire8 and fire9
    return net.features[:last], net.features[last:], nn.Sequential(net.classifier, nn.Flatten(1))


PARTS = {"efficientnet_lite": _efficientnet, "squeezenet": _squeezenet}
RATES = {"efficientnet_lite": 0.4, "squeezenet": 0.02}  # peak learning rates of the last stage alone


def cut(backbone: Backbone) -> tuple[nn.Sequential, Stage]:
    """Cut a network before its last stage.

    Parameters
    ----------
    backbone : Backbone
        Its modules are shared, not copied.

    Returns
    -------
    trunk : torch.nn.Sequential
        Pictures → input of the last stage.
    stage : Stage
        For EfficientNet-Lite the last block, the 1 × 1 convolution behind it and the head; for SqueezeNet
        fire8, fire9 and the head.

    Raises
    ------
    ValueError
        A network whose last stage is not known.
    """
    trunk, body, head = PARTS[_family(backbone.name)](backbone.module)
    return trunk, Stage(body, head)


def _family(name: str) -> str:
    for start in PARTS:
        if name.startswith(start):
            return start
    raise ValueError(
        f"the last stage of {name!r} is not known; known are networks called "
        f"{', '.join(f'{start}…' for start in PARTS)}. Choose one of these."
    )


def usual_rate(name: str) -> float:
    """Return the peak learning rate of the last stage of the network called ``name``, from `RATES`."""
    return RATES[_family(name)]


def new_stage(backbone: Backbone, classes: Sequence[str], *, seed: int = 0, full: bool = False) -> Stage:
    """Return the pretrained last stage of a network with a new head.

    Parameters
    ----------
    backbone : Backbone
        Left as it is.
    classes : sequence of str
        Of the head.
    seed : int
        Of the head's initial weights.
    full : bool
        The whole network as one stage, which takes pictures.
    """
    trunk, stage = cut(replace_head(backbone, classes, seed=seed))
    return Stage(nn.Sequential(trunk, stage.body), stage.head) if full else stage


@dataclasses.dataclass(frozen=True)
class Pixels:
    """Decoded pictures that a ``transform`` makes a network's input of, for an array of row numbers."""

    kept: np.ndarray
    transform: Transform

    def __len__(self) -> int:
        """Return the number of pictures."""
        return len(self.kept)

    def of(self, rows) -> "Pixels":
        """Return some of the pictures."""
        return Pixels(self.kept[rows], self.transform)

    def __getitem__(self, rows) -> torch.Tensor:
        """Return the input (n, 3, size, size) of some rows."""
        return to_batch(self.kept[rows], self.transform)


def read_pixels(backbone: Backbone, files: Sequence[str], size: int) -> Pixels:
    """Decode picture ``files`` at ``size`` pixels a side, as a ``backbone`` prepares them."""
    transform = backbone.transform.with_size(size)
    return Pixels(np.stack([transform.resized(read_rgb(file)) for file in files]), transform)


def stage_inputs(backbone: Backbone, pixels: Pixels) -> torch.Tensor:
    """Run pictures through all that lies before the last stage, in eval mode.

    Parameters
    ----------
    backbone : Backbone
        Its batch norms use their running statistics, as they do wherever the trunk is frozen.
    pixels : Pixels

    Returns
    -------
    (N, C, h, w) float32 tensor on the CPU, channels last
    """
    trunk, _ = cut(backbone)
    trunk = trunk.eval().to(memory_format=torch.channels_last)
    with torch.no_grad():
        parts = [trunk(pixels[rows]) for rows in _chunks(len(pixels), 8)]
    return torch.cat(parts).contiguous(memory_format=torch.channels_last)


def train(stage: Stage, inputs, labels: np.ndarray, recipe: Recipe, *, rate: float, seed: int) -> list[float]:
    """Train a last stage, or a whole network, and its head, in place.

    Parameters
    ----------
    stage : Stage
        Batch norms inside it normalise by the batch and update their running statistics; those before it are
        frozen with the trunk.
    inputs : (N, C, h, w) tensor or Pixels
        What the stage takes: stored inputs, or, for a whole network, pictures.
    labels : (N, K) float32 array
    recipe : Recipe
        Its epochs, batch size, schedule and optimiser; nothing is augmented.
    rate : float
        Peak learning rate.
    seed : int
        Order of the pictures and dropout.

    Returns
    -------
    list of float
        Loss of every step.

    Raises
    ------
    ValueError
        The loss is not finite.
    """
    net = nn.Sequential(stage.body, stage.head).to(memory_format=torch.channels_last).train()
    optimizer, truth = make_optimizer(net, recipe, rate), torch.from_numpy(labels)
    rng, losses = np.random.default_rng([seed, 3]), []
    steps = recipe.epochs * -(-len(labels) // recipe.batch_size)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for _ in range(recipe.epochs):
            for rows in epoch_batches(len(labels), recipe.batch_size, rng):
                for group in optimizer.param_groups:
                    group["lr"] = rate_at(recipe, rate, len(losses), steps)
                optimizer.zero_grad(set_to_none=True)
                loss = masked_loss(net(inputs[rows]), truth[rows])
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
    net.eval()
    if not np.isfinite(losses).all():
        raise ValueError(f"the loss must stay finite; it became {losses[-1]}. Lower the learning rate.")
    return losses


def vectors(stage: Stage, inputs) -> np.ndarray:
    """Return the embeddings (N, D) of ``inputs`` by a ``stage`` in eval mode, pooled over space."""
    stage.body.eval()
    with torch.inference_mode():
        found = [stage.body(inputs[rows]).mean((2, 3)) for rows in _chunks(len(inputs), 16)]
    return torch.cat(found).numpy()


def _chunks(n: int, size: int) -> list[np.ndarray]:
    return np.split(np.arange(n), range(size, n, size))
