"""What a registry entry is, and the small pieces that all kinds of entries are made of."""

import dataclasses
import functools
from collections.abc import Callable, Mapping

import torch
from torch import nn

from biastransfer.backbones.transforms import Transform
from biastransfer.backbones.weights import Weights

IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


@dataclasses.dataclass(frozen=True)
class Architecture:
    """How one backbone is made.

    ``build(seed)`` gives the network with initial weights. Its pretrained ones are the state dict that
    ``packaged(module)`` reads from a pip package, or the file that ``weights`` names; with neither it has
    none. ``convert`` renames tensors of files in a foreign layout. ``look(module)`` gives the fields that
    only a built network can tell. The others mean what they mean in `Backbone`; ``label_set`` names the
    classes of the logits, ``learned_from`` says what the weights saw.
    """

    build: Callable[[int], nn.Module]
    transform: Transform
    source: str
    dim: int = 0
    layer_modules: Mapping[str, str] = dataclasses.field(default_factory=dict)
    head: str = ""
    packaged: Callable[[nn.Module], dict] | None = None
    weights: Weights | None = None
    look: Callable[[nn.Module], dict] | None = None
    convert: Callable[[nn.Module, dict], dict] | None = None
    tokens: str = "mean"
    prefix_tokens: int = 0
    maps: str = "NCHW"
    label_set: str = ""
    learned_from: str = ""

    @property
    def pretrained(self) -> bool:
        """Whether there are weights that were learned."""
        return self.packaged is not None or self.weights is not None

    def seen_in(self, module: nn.Module) -> "Architecture":
        """Return the entry with the fields that ``module``, built from it, shows."""
        return dataclasses.replace(self, **self.look(module)) if self.look else self


def seeded(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    """Make a network whose initial weights depend on ``seed`` only; the global generator is left alone.

    ``make`` builds it.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return make()


@functools.cache
def class_names(label_set: str) -> tuple[str, ...]:
    """Return the class names of a ``label_set`` (``imagenet-1k``, ``imagenet-21k-goog``, …), by logit."""
    if not label_set:
        return ()
    from timm.data import ImageNetInfo

    return tuple(ImageNetInfo(label_set).label_descriptions())
