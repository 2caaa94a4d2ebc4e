"""From a name, or a checkpoint of ours, to a network that can be fed and read at any layer."""

import copy
import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

from biastransfer import checkpoints
from biastransfer.backbones.architectures import REGISTRY, architecture, imagenet_classes
from biastransfer.backbones.transforms import Transform


@dataclasses.dataclass(frozen=True)
class Backbone:
    """A network in eval mode with all that is needed to feed and read it.

    Attributes
    ----------
    name : str
        Its name in the registry; after finetuning still the name of the architecture.
    module : torch.nn.Module
        ``module(x)`` gives logits (N, number of classes) for x (N, 3, H, W) as `transform` makes it.
    transform : Transform
        Its own preprocessing.
    dim : int
        Length of its ``"embedding"``.
    layers : tuple of str
        Names that `forward_layer` knows, by depth; the last is ``"embedding"``.
    source : str
        Where the weights came from.
    classes : tuple of str
        Names of the logits, in order; empty when unknown.
    layer_modules : mapping of str to str
        For each layer the submodule whose output it is.
    head : str
        The submodule that turns the embedding into logits.
    own_head : bool
        Whether that head is the pretrained one; False after `replace_head`.
    """

    name: str
    module: nn.Module
    transform: Transform
    dim: int
    layers: tuple[str, ...]
    source: str
    classes: tuple[str, ...] = ()
    layer_modules: Mapping[str, str] = dataclasses.field(default_factory=dict)
    head: str = ""
    own_head: bool = True


def list_backbones() -> list[str]:
    """Return the names that `load_backbone` knows.

    Examples
    --------
    >>> list_backbones()[-1]
    'random'
    """
    return list(REGISTRY)


def load_backbone(name: str | os.PathLike, *, seed: int = 0) -> Backbone:
    """Load a backbone by name, or rebuild one that `checkpoints.save` wrote.

    Parameters
    ----------
    name : str or path
        A name of `list_backbones`, or the path of a ``.safetensors`` file.
    seed : int
        Seed of the initial weights of ``"random"``; the others do not depend on it.

    Returns
    -------
    Backbone
        On the CPU, in eval mode.

    Raises
    ------
    ValueError
        If the name is unknown (the message lists the names), or the file is not such a checkpoint.
    FileNotFoundError
        If the checkpoint, or the pip package with the weights, is not there.
    """
    if isinstance(name, os.PathLike) or str(name).endswith(".safetensors"):
        return _rebuild(Path(name))
    entry = architecture(name)
    module = entry.build(seed)
    if entry.weights is not None:
        module.load_state_dict(entry.weights(module), strict=True)
    classes = imagenet_classes() if entry.weights is not None else ()
    source = entry.source if entry.weights is not None else f"{entry.source} (seed {seed})"
    return _backbone(name, entry, module, source, classes)


def _backbone(name, entry, module, source, classes, transform=None) -> Backbone:
    return Backbone(
        name=name,
        module=module.eval(),
        transform=transform or entry.transform,
        dim=entry.dim,
        layers=tuple(entry.layer_modules),
        source=source,
        classes=tuple(classes),
        layer_modules=entry.layer_modules,
        head=entry.head,
    )


def _rebuild(path: Path) -> Backbone:
    """Rebuild the backbone that `checkpoints.save` wrote: architecture, head, transform, weights."""
    meta, state = checkpoints.read(path)
    entry = architecture(meta["architecture"])
    transform = Transform.from_dict(meta["transform"])
    backbone = _backbone(
        meta["architecture"], entry, entry.build(0), meta["source"], meta["classes"], transform
    )
    if not meta["own_head"]:
        backbone = replace_head(backbone, meta["classes"])
    backbone.module.load_state_dict(state, strict=True)
    return backbone


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

    Notes
    -----
    SqueezeNet's own head ends in a ReLU, which would forbid negative logits and so probabilities under one
    half; the new head leaves it out.
    """
    classes = tuple(classes)
    if not classes or len(set(classes)) != len(classes):
        raise ValueError(f"a head needs at least one class and no name twice; got {list(classes)}")
    module = copy.deepcopy(backbone.module)
    if backbone.head != "classifier" or isinstance(module.classifier, nn.Linear):
        layer = nn.Linear(backbone.dim, len(classes))
        setattr(module, backbone.head, layer)
    else:
        layer = nn.Conv2d(backbone.dim, len(classes), kernel_size=1)
        module.classifier = nn.Sequential(nn.Dropout(0.5), layer, nn.Identity(), nn.AdaptiveAvgPool2d(1))
    generator = torch.Generator().manual_seed(seed)
    nn.init.normal_(layer.weight, std=0.01, generator=generator)
    nn.init.zeros_(layer.bias)
    return dataclasses.replace(backbone, module=module.eval(), classes=classes, own_head=False)


def layer_path(backbone: Backbone | nn.Module, layer: str | None = None) -> str:
    """Return the submodule that ``layer``, a name of ``backbone.layers`` or a submodule's own, stands for."""
    module, known = (
        (backbone, {}) if isinstance(backbone, nn.Module) else (backbone.module, backbone.layer_modules)
    )
    path = known.get(layer or "embedding", layer or "embedding")
    submodules = dict(module.named_modules())
    if not path or path not in submodules:
        raise ValueError(f"unknown layer {layer or 'embedding'!r}; known: {', '.join(known or submodules)}")
    return path


class _ReachedError(Exception):
    """Carries a layer's output out of a forward pass that need not go on."""


def forward_layer(backbone: Backbone | nn.Module, x: torch.Tensor, layer: str | None = None) -> torch.Tensor:
    """Run a network up to a layer and pool that layer's output.

    Parameters
    ----------
    backbone : Backbone or torch.nn.Module
        Its mode is neither set nor changed.
    x : (N, 3, H, W) tensor
        Normalised input.
    layer : str, optional
        A name of ``backbone.layers`` or of any submodule; default ``"embedding"``.

    Returns
    -------
    (N, D) tensor
        Mean over space of a map (N, D, h, w); gradients flow. The head is not computed.

    Raises
    ------
    ValueError
        If there is no such layer, or the network does not pass through it.
    """
    module = backbone.module if isinstance(backbone, Backbone) else backbone
    path = layer_path(backbone, layer)

    def stop(_module, _inputs, output):
        raise _ReachedError(output)

    handle = module.get_submodule(path).register_forward_hook(stop)
    try:
        module(x)
    except _ReachedError as reached:
        output = reached.args[0]
    else:
        raise ValueError(f"the network does not pass through layer {path}; choose another")
    finally:
        handle.remove()
    return output.mean((2, 3)) if output.ndim == 4 else output
