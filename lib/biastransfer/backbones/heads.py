"""A backbone's head exchanged for a new one, or taken away."""

import copy
import dataclasses

import torch
from torch import nn

from biastransfer.backbones.backbone import Backbone


def replace_head(backbone: Backbone, classes, *, seed: int = 0) -> Backbone:
    """Return a copy of a backbone whose head gives one logit a class; the rest keeps its weights.

    Parameters
    ----------
    backbone : Backbone
        Left as it is.
    classes : sequence of str
        Names of the new logits.
    seed : int
        Seed of the new head's weights: normal with standard deviation .01, biases 0.

    Returns
    -------
    Backbone
        ``module(x)`` has shape (N, len(classes)).

    Raises
    ------
    ValueError
        No class, or a name twice.

    Notes
    -----
    SqueezeNet's own head ends in a ReLU, which would forbid negative logits and so probabilities under one
    half; the new head leaves it out. CLIP's new head stands on the projected image embedding, the space that
    its similarities were trained in.
    """
    classes = tuple(classes)
    if not classes or len(set(classes)) != len(classes):
        raise ValueError(f"a head needs at least one class and no name twice; got {list(classes)}")
    module = copy.deepcopy(backbone.module)
    generator = torch.Generator().manual_seed(seed)
    for path in _head_paths(module, backbone.head):
        old = module.get_submodule(path)
        if isinstance(old, nn.Sequential):
            layer = nn.Conv2d(backbone.dim, len(classes), kernel_size=1)
            new = nn.Sequential(nn.Dropout(0.5), layer, nn.Identity(), nn.AdaptiveAvgPool2d(1))
        elif isinstance(old, nn.Conv2d):
            new = layer = nn.Conv2d(backbone.dim, len(classes), kernel_size=1)
        else:
            new = layer = nn.Linear(backbone.dim, len(classes))
        nn.init.normal_(layer.weight, std=0.01, generator=generator)
        nn.init.zeros_(layer.bias)
        _put(module, path, new)
    return dataclasses.replace(backbone, module=module.eval(), classes=classes, own_head=False)


def without_head(backbone: Backbone) -> Backbone:
    """Return a ``backbone`` whose network ends with its embedding: its file held no head that fits.

    The network itself is changed, not a copy: a head with initial weights must not be used by accident.
    """
    for path in _head_paths(backbone.module, backbone.head):
        _put(backbone.module, path, nn.Identity())
    return dataclasses.replace(backbone, classes=(), own_head=False)


def _head_paths(module: nn.Module, head: str) -> list[str]:
    """Return where the classifier stands; a distilled network of timm has two, one with token labels too."""
    both = module.get_classifier() if callable(getattr(module, "get_classifier", None)) else None
    if isinstance(both, tuple | list):
        return [path for path, part in module.named_modules() if any(part is one for one in both)]
    return [head, "aux_head"] if isinstance(getattr(module, "aux_head", None), nn.Linear) else [head]


def _put(module: nn.Module, path: str, new: nn.Module) -> None:
    parent, _, leaf = path.rpartition(".")
    setattr(module.get_submodule(parent), leaf, new)
