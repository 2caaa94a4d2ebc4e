"""Does a heat map stay the same when a setting that should not matter changes?"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from skimage.feature import hog
from skimage.metrics import structural_similarity

from biastransfer.attribution.heatmaps import as_heatmap, defect

WINDOW = 5  # pixels a side of SSIM's window
CELL = 16  # pixels a side of a HOG cell
_LEAST = 3 * CELL  # HOG normalises blocks of 3 × 3 cells


@dataclass(frozen=True)
class Sweep:
    """One setting of one method varied: its name in METHODS, the argument, the values.

    ``data_range`` is SSIM's: 2 for maps in [-1, 1], 1 for maps in [0, 1].
    """

    method: str
    parameter: str
    values: tuple
    data_range: float = 2.0


# The authors' sweeps (their code); "around 50" superpixels and the mask sizes are readings of ours.
SWEEPS: dict[str, Sweep] = {
    "SP patch, wide": Sweep("sliding_patch", "patch", (5, 29, 53)),
    "SP patch, narrow": Sweep("sliding_patch", "patch", (52, 53, 54)),
    "LIME seed": Sweep("lime", "seed", (0, 1, 2, 3, 4)),
    "LIME superpixels": Sweep("lime", "n_segments", (40, 45, 50, 55, 60)),
    "MP blur": Sweep("meaningful_perturbation", "blur_radius", (5, 10, 30), 1.0),
    "MP mask size": Sweep("meaningful_perturbation", "mask_size", (14, 28, 56), 1.0),
    "MP seed": Sweep("meaningful_perturbation", "seed", (0, 1, 2, 3, 4), 1.0),
}


@dataclass(frozen=True)
class MapSimilarity:
    """How alike two heat maps of one picture are; higher is steadier.

    Attributes
    ----------
    ssim : float
        Structural similarity, window 5, at most 1; NaN for maps smaller than the window.
    hog : float
        Pearson correlation of histograms of oriented gradients, 16 × 16 cells; NaN under 48 pixels a side.
    spearman : float
        Rank correlation over pixels, ties by average rank.
    reason : str
        Why a number is NaN; else "".
    """

    ssim: float
    hog: float
    spearman: float
    reason: str


@dataclass(frozen=True, eq=False)
class _Described:
    """A map made ready once for any number of comparisons."""

    values: np.ndarray
    ranks: np.ndarray
    gradients: np.ndarray
    problem: str


def similarity(first, second, *, data_range: float = 2.0, scale: bool = True) -> MapSimilarity:
    """Compare two heat maps of one picture.

    Parameters
    ----------
    first, second : (H, W) arrays or tensors
        Of one size.
    data_range : float
        SSIM's range of values: 2 for signed maps, 1 for maps in [0, 1] (MP).
    scale : bool
        Divide each map by its largest absolute value first, so that it lies in [-1, 1] and
        ``data_range`` means something: SSIM of maps near 0 is near 1 whatever they show.

    Returns
    -------
    MapSimilarity
        NaN with a reason where a map is constant or not finite.

    Raises
    ------
    ValueError
        Maps of different sizes or not (H, W), a range that is not positive.

    Notes
    -----
    The three measures are those of the sanity checks (Adebayo et al. 2018) and of Agarwal and Nguyen 2020.

    Examples
    --------
    >>> ramp = np.arange(4096.0).reshape(64, 64)
    >>> one = similarity(ramp, 3 * ramp)
    >>> round(one.ssim, 9), round(one.hog, 9), one.spearman
    (1.0, 1.0, 1.0)
    """
    a = _describe(first, scale)
    b = _describe(as_heatmap(second, a.values.shape), scale)
    return _compare(a, b, data_range)


def compare_all(maps: Mapping, *, data_range: float = 2.0, scale: bool = True, **keys) -> pd.DataFrame:
    """Compare every two heat maps of a sweep.

    Parameters
    ----------
    maps : mapping from a setting's value to an (H, W) map
        Of one picture, at least two.
    data_range, scale
        As for `similarity`.
    **keys
        Columns that tell this sweep from others: picture, method, fill, sweep, …

    Returns
    -------
    DataFrame
        One row a pair: keys, first, second (the setting's values), ssim, hog, spearman, reason.

    Raises
    ------
    ValueError
        Fewer than two maps; otherwise as for `similarity`.
    """
    if len(maps) < 2:
        raise ValueError(f"a sweep needs at least two maps to compare; got {len(maps)}.")
    names = list(maps)
    size = as_heatmap(maps[names[0]]).shape
    ready = [_describe(as_heatmap(maps[name], size), scale) for name in names]
    rows = []
    for j in range(len(names)):
        for k in range(j + 1, len(names)):
            one = _compare(ready[j], ready[k], data_range)
            rows.append((names[j], names[k], one.ssim, one.hog, one.spearman, one.reason))
    table = pd.DataFrame(rows, columns=["first", "second", "ssim", "hog", "spearman", "reason"])
    return pd.concat([pd.DataFrame(keys, index=table.index), table], axis=1) if keys else table


def _describe(heatmap, scale: bool) -> _Described:
    found = as_heatmap(heatmap).astype(np.float64)
    problem, none = defect(found), np.empty(0)
    if problem:
        return _Described(found, none, none, problem)
    values = found / np.abs(found).max() if scale else found
    small = min(values.shape) < _LEAST
    gradients = none if small else hog(values, pixels_per_cell=(CELL, CELL))
    return _Described(values, rankdata(values), gradients, "")


def _compare(a: _Described, b: _Described, data_range: float) -> MapSimilarity:
    if not data_range > 0:
        raise ValueError(f"data_range must be positive; got {data_range}.")
    nan = float("nan")
    if problem := a.problem or b.problem:
        return MapSimilarity(nan, nan, nan, problem)
    ssim, reasons = nan, []
    if min(a.values.shape) < WINDOW:
        reasons.append(f"SSIM needs {WINDOW} pixels a side")
    else:
        ssim = float(structural_similarity(a.values, b.values, win_size=WINDOW, data_range=data_range))
    if not len(a.gradients):
        reasons.append(f"HOG needs {_LEAST} pixels a side")
    gradients = _pearson(a.gradients, b.gradients)
    if len(a.gradients) and np.isnan(gradients):
        reasons.append("HOG is constant")
    return MapSimilarity(ssim, gradients, _pearson(a.ranks, b.ranks), "; ".join(reasons))


def _pearson(x: np.ndarray, y: np.ndarray) -> float:
    """Return Pearson's correlation; NaN for fewer than two values or a constant."""
    if len(x) < 2:
        return float("nan")
    x, y = x - x.mean(), y - y.mean()
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(np.clip(x @ y / scale, -1, 1)) if scale > 0 else float("nan")
