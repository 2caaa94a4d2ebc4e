"""Grad-CAM for convolutional networks and vision transformers: the layer and the token grid are found."""

import dataclasses
import difflib

import numpy as np
import torch
from torch import nn
from torch.nn.functional import interpolate

from biastransfer.attribution.gradients import finite_map, scores_of
from biastransfer.attribution.heatmaps import as_image
from biastransfer.attribution.networks import eval_mode, pixel_module
from biastransfer.backbones import Backbone


@dataclasses.dataclass(frozen=True)
class Layout:
    """How a layer's output (1, …) lies over the picture.

    Attributes
    ----------
    kind : str
        ``"channels first"`` (1, C, h, w), ``"channels last"`` (1, h, w, C) or ``"tokens"`` (1, T, C).
    grid : (int, int)
        h and w.
    """

    kind: str
    grid: tuple[int, int]

    def as_map(self, output: torch.Tensor) -> torch.Tensor:
        """Return an output as (C, h, w)."""
        if self.kind == "channels first":
            return output[0]
        if self.kind == "channels last":
            return output[0].permute(2, 0, 1)
        height, width = self.grid
        return output[0, -height * width :].T.reshape(-1, height, width)


def gradcam(
    module,
    image: torch.Tensor,
    target: int | None = None,
    *,
    layer: str | None = None,
    grid: tuple[int, int] | None = None,
    relu: bool = True,
    batch_size: int = 4,
) -> np.ndarray:
    """Return a layer's channels, weighted by the mean gradient of the score in each (Grad-CAM).

    Parameters
    ----------
    module : Backbone, torch.nn.Module or Score
        As for `gradients.gradient`; a plain callable has no layers.
    image : (3, H, W) tensor
    target : int or None
        The class; None for a `Score`.
    layer : str, optional
        A name of ``backbone.layers`` or of a submodule. Default: the last layer whose output is laid out
        like the picture and still reaches the score. In a transformer that pools its class token this is
        the normalisation before the last attention: later patch tokens count for nothing.
    grid : (rows, columns), optional
        Of the patches of a transformer where it cannot be found.
    relu : bool
        Whether negative values become 0, as in the source.
    batch_size : int
        Without effect, one picture; here so that all gradient methods are called alike.

    Returns
    -------
    (H, W) float32 array
        Resized bilinearly from the layer's grid. Its scale is arbitrary.

    Raises
    ------
    ValueError
        If there is no such layer, none is laid out like the picture, the tokens do not fit the grid, there
        is no such class, or the map is not finite.

    Notes
    -----
    The grid of a transformer is read from the forward pass: the convolution whose kernel is its stride cuts
    the picture into patches (rows, columns); else from an attribute ``grid_size``. What a layer has beyond
    rows × columns tokens, class and register tokens, stands first and is dropped.

    Source: Selvaraju et al. 2017.
    """
    model = pixel_module(module) if isinstance(module, Backbone) else module
    network = model if isinstance(model, nn.Module) else getattr(model, "module", None)
    if not isinstance(network, nn.Module):
        raise ValueError("gradcam needs a Backbone, a module or a Score, whose layers it can read.")
    name = None if layer is None else _name_of(network, layer)
    image = as_image(image)
    size = tuple(image.shape[1:])
    with eval_mode(network), torch.inference_mode(False), torch.enable_grad():
        picture = image[None].clone().requires_grad_()
        value, outputs = _record(network, scores_of(model, target), picture, name)
        layouts = _layouts(network, outputs, size, grid, name)
        gradients = torch.autograd.grad(value, [outputs[key] for key in layouts], allow_unused=True)
    found = torch.zeros(next(reversed(layouts.values())).grid).to(image)
    for (key, layout), gradient in reversed(list(zip(layouts.items(), gradients))):
        slopes = None if gradient is None else layout.as_map(gradient)
        if slopes is not None and slopes.any():
            found = torch.einsum("chw,c->hw", layout.as_map(outputs[key].detach()), slopes.mean((1, 2)))
            break
    found = found.relu() if relu else found
    return finite_map(interpolate(found[None, None], size, mode="bilinear", align_corners=False)[0, 0])


def _record(network: nn.Module, score, picture: torch.Tensor, name: str | None):
    """Return the score (a number) and the outputs by layer, in the order of the forward pass.

    With ``name`` of that layer and of those that cut the picture into patches alone.
    """
    outputs: dict[str, torch.Tensor] = {}

    def hook_of(key: str):
        def hook(_part, _inputs, output):
            if isinstance(output, torch.Tensor) and output.ndim in (3, 4) and output.requires_grad:
                outputs.pop(key, None)  # called again: its last output counts, at its last place
                outputs[key] = output
                # what follows may write into its input; the layer asked for stays as it came out
                return output.clone() if key == name else None
            return None

        return hook

    handles = []
    try:
        for key, part in network.named_modules():
            handles.append(part.register_forward_hook(hook_of(key)))
        value = score(picture)[0]
    finally:
        for handle in handles:
            handle.remove()
    return value, outputs


def _layouts(network: nn.Module, outputs, size, grid, name: str | None) -> dict[str, Layout]:
    """Return the layout of each output that lies over the picture, in order; an error if there is none."""
    patches = (tuple(grid), None) if grid is not None else _patches(network, outputs, size)
    found = {}
    for key in outputs if name is None else [name]:
        if key not in outputs:
            raise ValueError(
                f"layer {key!r} must give one tensor of 3 or 4 dimensions that the score's gradient reaches; "
                "it does not, or the picture does not pass through it. Choose another layer."
            )
        if layout := _layout(tuple(outputs[key].shape), size, patches, strict=name is None):
            found[key] = layout
    if found and not (name is None and patches is None and _tokens_follow(outputs, next(reversed(found)))):
        _check_prefix(network, outputs, found, patches)
        return found
    shapes = ", ".join(f"{key} {tuple(outputs[key].shape)}" for key in list(outputs)[-3:]) or "none"
    raise ValueError(
        f"gradcam needs {'a layer' if name is None else f'layer {name!r}'} laid out like the picture; last "
        f"outputs: {shapes if name is None else tuple(outputs[name].shape)}. Choose a layer=, or for a "
        "transformer give its grid=(rows, columns) of patches."
    )


def _tokens_follow(outputs, key: str) -> bool:
    """Tell whether after that layer come tokens (1, T, C), whose place in the picture is not known."""
    later = list(outputs)[list(outputs).index(key) + 1 :]
    return any(outputs[name].ndim == 3 and outputs[name].shape[1] > 1 for name in later)


def _patches(network: nn.Module, outputs, size) -> tuple[tuple[int, int], int | None] | None:
    """Return the grid of a transformer's patches and the length of a token; None for other networks."""
    found = None
    for key, part in network.named_modules():
        if key in outputs and isinstance(part, nn.Conv2d) and part.kernel_size == part.stride != (1, 1):
            found = tuple(outputs[key].shape[2:]), part.out_channels
            break
    if found is None:
        sizes = [getattr(part, "grid_size", None) for part in network.modules()]
        grids = [tuple(size) for size in sizes if isinstance(size, tuple | list) and len(size) == 2]
        found = (grids[0], None) if grids else None
    for output in reversed(outputs.values() if found else ()):
        if _is_tokens(tuple(output.shape), found):
            return found
        if _layout(tuple(output.shape), size, None, strict=True):
            break  # such a convolution may begin a network that ends in maps, too
    return None


def _is_tokens(shape, patches) -> bool:
    (rows, columns), width = patches
    few_others = len(shape) == 3 and rows * columns <= shape[1] < 2 * rows * columns
    return few_others and shape[0] == 1 and width in (None, shape[2])


def _layout(shape, size, patches, *, strict: bool) -> Layout | None:
    """Return how an output of that shape lies over a picture of ``size``; None where it does not.

    In a transformer of ``patches`` only the patches' own grid counts: its heads make shapes that look like
    maps. ``strict`` False takes (1, C, h, w) of any proportions, for a layer that was named.
    """
    if patches and _is_tokens(shape, patches):
        return Layout("tokens", patches[0])
    if len(shape) != 4 or shape[0] != 1:
        return None
    for kind, grid in (("channels first", shape[2:]), ("channels last", shape[1:3])):
        # (1, 2, 1, 1) is two channels of one cell, not two cells
        single = kind == "channels last" and min(grid) == 1
        if not single and (grid == patches[0] if patches else _fits(grid, size)):
            return Layout(kind, grid)
    return None if strict else Layout("channels first", shape[2:])


def _fits(grid, size) -> bool:
    """Tell whether a grid has a picture's proportions, to one cell, and more than one cell."""
    pixels = (size[0] * size[1] / (grid[0] * grid[1])) ** 0.5
    near = all(abs(cells - length / pixels) <= 1 and cells <= length for cells, length in zip(grid, size))
    return near and grid[0] * grid[1] > 1


def _check_prefix(network: nn.Module, outputs, found, patches) -> None:
    """Compare the tokens dropped with what the network says of itself, where it says anything."""
    stated = {int(part.num_prefix_tokens) for part in network.modules() if hasattr(part, "num_prefix_tokens")}
    if not patches or len(stated) != 1:
        return
    rows, columns = patches[0]
    for key, layout in found.items():
        extra = outputs[key].shape[1] - rows * columns
        if layout.kind == "tokens" and extra not in {*stated, 0}:
            raise ValueError(
                f"the tokens must be {rows} × {columns} patches and {min(stated)} others; layer {key!r} has "
                f"{extra} others. Give the grid=(rows, columns) of the patches."
            )


def _name_of(network: nn.Module, layer: str) -> str:
    """Return the submodule that ``layer`` names: one of a backbone's layers, or its own name."""
    names = dict(network.named_modules())
    known = getattr(network, "layer_modules", {})
    for candidate in (f"network.{known.get(layer, layer)}", layer):
        if candidate and candidate in names:
            return candidate
    close = difflib.get_close_matches(layer, [*known, *names], n=3)
    hint = f" Did you mean {', '.join(map(repr, close))}?" if close else ""
    raise ValueError(
        f"unknown layer {layer!r}; the network has {', '.join(known or list(names)[-5:])}.{hint}"
    )
