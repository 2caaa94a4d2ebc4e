"""A score followed while pixels go or come back."""

from dataclasses import dataclass

import numpy as np
import torch

from biastransfer.attribution.heatmaps import ScoreFunction, choose_target, defect, score_pictures, unusable
from biastransfer.attribution.perturbation import check_count, remover
from biastransfer.attribution.removal import PIXELS, Fill, Space
from biastransfer.backbones.allocation import keep_freed_memory

_ROUNDING = 1e-6  # softmax in float32 may give 1.0000001


@dataclass(frozen=True, eq=False)
class Curve:
    """A score while pixels are removed, or put back, in the order of a heat map.

    Attributes
    ----------
    fractions : (n,) float array
        True share of pixels removed (deletion) or inserted (insertion), from 0 to 1, both ends present.
    scores : (n,) float array
        Score at each; NaN where the map is not finite.
    auc : float
        Trapezoid over ``fractions``: a constant 1 gives 1. In the score's own units.
    fill : str
        What stood for removed pixels.
    target : int or None
        Class of a score (N, K): given, or the best of the clean picture.
    probability : bool
        Whether every score lay in [0, 1]; False for logits, whose AUC has no common scale.
    tied : float
        Share of pixels whose value another pixel has too; among those the order is row by row.
    reason : str
        Why ``auc`` is NaN, or that the map is constant and the order that of the rows; else "".
    """

    fractions: np.ndarray
    scores: np.ndarray
    auc: float
    fill: str
    target: int | None
    probability: bool
    tied: float
    reason: str

    @property
    def value(self) -> float:
        """The metric, `auc`."""
        return self.auc


def follow(
    score: ScoreFunction,
    image: torch.Tensor,
    order: np.ndarray,
    counts: np.ndarray,
    *,
    keep: bool = False,
    fill: str | Fill = "zero",
    fill_settings: dict | None = None,
    batch_size: int = 8,
    space: Space = PIXELS,
    seed: int = 0,
) -> np.ndarray:
    """Score one picture with its first pixels in an order removed, or with only those kept.

    Parameters
    ----------
    score : callable
        (N, 3, H, W) tensor → (N,) or (N, K).
    image : (3, H, W) tensor
    order : (H·W,) int array
        Flat pixel indices.
    counts : (n,) int array
        How many of them, for each point.
    keep : bool
        False removes those pixels, True removes all others.
    fill, fill_settings, batch_size, space, seed
        As for `faithfulness.deletion`.

    Returns
    -------
    (n,) or (n, K) float64 array

    Notes
    -----
    A colour, blur or noise is made once for the picture. In-painters and callables see the growing hole, so
    they are asked for every point. Each batch is new memory: a score that works in place harms nothing.
    """
    check_count("batch_size", batch_size)
    keep_freed_memory()
    rank = torch.empty(order.size, dtype=torch.int32)
    rank[torch.from_numpy(order)] = torch.arange(order.size, dtype=torch.int32)
    rank = rank.reshape(image.shape[1:]).to(image.device)
    values = []
    with torch.inference_mode():
        remove = remover(image, fill, space=space, seed=seed, settings=fill_settings)
        for part in torch.from_numpy(counts).to(rank).split(batch_size):
            first = rank < part[:, None, None, None]
            values.append(score_pictures(score, remove(~first if keep else first)))
    return np.concatenate(values)


def ranked_scores(
    score, image, heatmap, order, counts, target, *, keep=False, **settings
) -> tuple[np.ndarray, int | None]:
    """Return the scores that `follow` gives for one class, and that class; NaN for a map that ranks nothing.

    Parameters
    ----------
    score, image, order, counts, keep, **settings
        As for `follow`.
    heatmap : (H, W) float array
        The map behind ``order``.
    target : int or None
        As for `heatmaps.choose_target`; the clean picture is the first point, or the last where ``keep``.

    Returns
    -------
    (n,) float64 array, int or None
    """
    if unusable(heatmap):
        return np.full(len(counts), np.nan), target
    values = follow(score, image, order, counts, keep=keep, **settings)
    return choose_target(values, -1 if keep else 0, target)


def area(fractions: np.ndarray, scores: np.ndarray) -> float:
    """Return the trapezoid of (n,) ``scores`` over ``fractions``, divided by their range: a mean score.

    Examples
    --------
    >>> area(np.array([0, 0.4, 0.8, 1.0]), np.ones(4))
    1.0
    """
    return float(np.trapezoid(scores, fractions) / (fractions[-1] - fractions[0]))


def tied_share(heatmap: np.ndarray, order: np.ndarray) -> float:
    """Return the share of a map's pixels whose value another pixel has too; ``order`` sorts ``heatmap``."""
    if unusable(heatmap):
        return float("nan")
    same = np.diff(heatmap.ravel()[order]) == 0
    return float((np.append(same, False) | np.append(False, same)).mean())


def reason_of(heatmap: np.ndarray, scores: np.ndarray) -> str:
    """Say why the ``scores`` along a ``heatmap`` are no numbers, or that the map is constant; else ""."""
    if unusable(heatmap):
        return defect(heatmap)
    if bad := int((~np.isfinite(scores)).sum()):
        return f"the score is not finite at {bad} of {len(scores)} points"
    return f"{constant}: pixels go row by row" if (constant := defect(heatmap)) else ""


def in_unit_range(scores: np.ndarray) -> bool:
    """Tell whether all ``scores`` can be probabilities: in [0, 1] up to float32's rounding."""
    return bool(((scores >= -_ROUNDING) & (scores <= 1 + _ROUNDING)).all())


def name_of(fill: str | Fill) -> str:
    """Return what a ``fill`` is called: its name, or the callable's."""
    return fill if isinstance(fill, str) else getattr(fill, "__name__", type(fill).__name__)
