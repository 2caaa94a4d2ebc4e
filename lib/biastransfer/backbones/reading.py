"""A network run up to one of its layers, and that layer's output made one vector a picture."""

import math

import torch
from torch import nn

from biastransfer.backbones.backbone import Backbone

_INPUT = "input:"


def layer_path(backbone: Backbone | nn.Module, layer: str | None = None) -> str:
    """Return the submodule that ``layer``, a name of ``backbone.layers`` or a submodule's own, stands for.

    Parameters
    ----------
    backbone : Backbone or torch.nn.Module
    layer : str, optional
        Default ``"embedding"``.

    Returns
    -------
    str
        Its path; ``input:`` before it means what goes into it instead of what comes out.

    Raises
    ------
    ValueError
        If there is no such layer; the message lists those that there are.
    """
    module, known = (
        (backbone, {}) if isinstance(backbone, nn.Module) else (backbone.module, backbone.layer_modules)
    )
    path = known.get(layer or "embedding", layer or "embedding")
    submodules = dict(module.named_modules())
    if not path or path.removeprefix(_INPUT) not in submodules:
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
        Mean over space of a map; of tokens (N, L, D) the class token or the mean over the patch tokens, as
        ``backbone.tokens`` says. Gradients flow. What lies behind the layer is not computed.

    Raises
    ------
    ValueError
        If there is no such layer, or the network does not pass through it.
    """
    module = backbone.module if isinstance(backbone, Backbone) else backbone
    path = layer_path(backbone, layer)

    def stop(_module, inputs, output=None):
        raise _ReachedError(inputs[0] if output is None else output)

    target = module.get_submodule(path.removeprefix(_INPUT))
    before = path.startswith(_INPUT)
    handle = target.register_forward_pre_hook(stop) if before else target.register_forward_hook(stop)
    try:
        module(x)
    except _ReachedError as reached:
        output = reached.args[0]
    else:
        raise ValueError(f"the network does not pass through layer {path}; choose another")
    finally:
        handle.remove()
    return pool(backbone, output)


def pool(backbone: Backbone | nn.Module, output) -> torch.Tensor:
    """Return one vector a picture from a layer's output.

    Parameters
    ----------
    backbone : Backbone or torch.nn.Module
        A bare module's tokens are all averaged, and its maps are (N, D, h, w).
    output : (N, D), (N, L, D), (N, D, h, w) or (N, h, w, D) tensor
        Of several outputs the first is taken.

    Returns
    -------
    (N, D) tensor
    """
    if isinstance(output, tuple | list):
        output = output[0]
    known = backbone if isinstance(backbone, Backbone) else None
    if output.ndim == 4:
        _, second, third, fourth = output.shape
        # the map of a square picture is square, so its two equal sides tell the channels' place
        last = second == third if third != fourth else second == third and known and known.maps == "NHWC"
        return output.mean((1, 2) if last else (2, 3))
    if output.ndim == 3:
        prefix = _prefix(output.shape[1], known.prefix_tokens) if known else 0
        by_class = prefix and known.tokens == "class"
        return output[:, 0] if by_class else output[:, prefix:].mean(1)
    return output


def _prefix(count: int, stated: int) -> int:
    """Return how many of ``count`` tokens are no patches: some networks add those behind their first blocks.

    The patches of a square picture are a square number; the ``stated`` others come on top of it.
    """
    square, rest = math.isqrt(count) ** 2 == count, max(count - stated, 0)
    return 0 if square and math.isqrt(rest) ** 2 != rest else stated
