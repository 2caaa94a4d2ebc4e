"""Sanity check: a heat map that stays the same when the weights are randomised explains nothing of them."""

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd
import torch
from torch import nn

from biastransfer.attribution.heatmaps import as_heatmap
from biastransfer.attribution.robustness import similarity

MODES = ("cascading", "independent")


def layers_with_weights(module: nn.Module) -> list[str]:
    """Return the names of submodules of ``module`` that hold weights of their own, the output's first.

    Examples
    --------
    >>> layers_with_weights(nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU(), nn.BatchNorm2d(4)))
    ['2', '0']
    """
    own = [name for name, part in module.named_modules() if list(part.parameters(recurse=False))]
    return own[::-1]


@contextlib.contextmanager
def randomised(module: nn.Module, layers: Sequence[str], *, seed: int = 0) -> Iterator[nn.Module]:
    """Give the same module with the weights of some layers randomised; they are back when the block ends.

    Parameters
    ----------
    module : torch.nn.Module
        Changed in place while the block runs, so that whatever holds it explains the randomised network.
    layers : sequence of str
        Submodules of which every parameter, also further down, is drawn anew: normal, with the mean and
        deviation of the tensor it replaces, so that activations stay in range. Running statistics stay.
    seed : int
        A layer's draw depends on the seed and the layer's name only.

    Yields
    ------
    torch.nn.Module
        ``module`` itself. Bit-exact as before afterwards, also after an exception.

    Raises
    ------
    ValueError
        No such layer, or one without weights.
    """
    known = dict(module.named_modules())
    parameters: dict[int, tuple[str, nn.Parameter]] = {}
    for layer in layers:
        if layer not in known or not list(known[layer].parameters()):
            raise ValueError(
                f"every layer must be a submodule with weights; got {layer!r}. Known: "
                f"{', '.join(layers_with_weights(module))}."
            )
        for name, one in known[layer].named_parameters(prefix=layer):
            parameters.setdefault(id(one), (name, one))
    before = [(one, one.detach().clone()) for _, one in parameters.values()]
    try:
        for name, one in parameters.values():
            _redraw(one, f"{seed} {name}")
        yield module
    finally:
        with torch.no_grad():
            for one, values in before:
                one.copy_(values)


def weights_matter(
    explain: Callable[[], object],
    module: nn.Module,
    *,
    mode: str = "cascading",
    layers: Sequence[str] | None = None,
    data_range: float = 2.0,
    seed: int = 0,
    **keys,
) -> pd.DataFrame:
    """Randomise a network's weights layer by layer and compare its heat maps with the original's.

    Parameters
    ----------
    explain : callable () → (H, W) map
        Explains one picture with the network as it is now, with its target and seed fixed.
    module : torch.nn.Module
        The network that ``explain`` uses; restored exactly.
    mode : {"cascading", "independent"}
        From the output down, each layer on top of those before; or one layer at a time.
    layers : sequence of str, optional
        Submodules in that order; default every one with weights of its own.
    data_range : float
        As for `robustness.similarity`.
    seed : int
        Of the new weights.
    **keys
        Columns that tell this check from others: picture, method, …

    Returns
    -------
    DataFrame
        One row a layer: keys, mode, depth (1 is nearest the output), layer, ssim, hog, spearman, reason. A
        method that explains the weights comes near 0; one that draws the picture's edges stays near 1.

    Raises
    ------
    ValueError
        An unknown mode or layer, or an ``explain`` that gives two maps for one network: a seed not fixed.

    Notes
    -----
    Adebayo et al. 2018. There weights are initialised anew; here they keep each tensor's mean and deviation.
    """
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}; got {mode!r}.")
    layers = layers_with_weights(module) if layers is None else list(layers)
    original = as_heatmap(explain())
    _require_steady(original, as_heatmap(explain(), original.shape))
    rows = []
    for depth, layer in enumerate(layers, 1):
        chosen = layers[:depth] if mode == "cascading" else [layer]
        with randomised(module, chosen, seed=seed):
            found = as_heatmap(explain(), original.shape)
        one = similarity(original, found, data_range=data_range)
        rows.append((mode, depth, layer, one.ssim, one.hog, one.spearman, one.reason))
    columns = ["mode", "depth", "layer", "ssim", "hog", "spearman", "reason"]
    table = pd.DataFrame(rows, columns=columns)
    return pd.concat([pd.DataFrame(keys, index=table.index), table], axis=1) if keys else table


def _require_steady(first: np.ndarray, again: np.ndarray) -> None:
    """Raise where a method gives two maps for one network: then any change would look like the weights'."""
    if not np.allclose(first, again, rtol=0, atol=1e-3 * np.nanmax(np.abs(first)), equal_nan=True):
        raise ValueError(
            "explain must give the same map for the same network; two calls differ. Fix its seed and target."
        )


def _redraw(parameter: nn.Parameter, key: str) -> None:
    """Fill a parameter with normal numbers of its own mean and deviation, drawn from ``key`` alone."""
    digest = hashlib.blake2b(key.encode(), digest_size=7).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest, "big"))
    with torch.no_grad():
        values = parameter.detach().double().cpu()
        deviation = float(values.std(correction=0))
        drawn = torch.randn(values.shape, generator=generator, dtype=torch.float64)
        parameter.copy_(drawn * deviation + values.mean())
