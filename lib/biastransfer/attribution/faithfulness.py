"""Do the pixels that a heat map marks carry the score? Deletion, insertion and ROAD."""

import numpy as np

from biastransfer.attribution.curves import (
    Curve,
    area,
    in_unit_range,
    name_of,
    ranked_scores,
    reason_of,
    tied_share,
)
from biastransfer.attribution.heatmaps import ScoreFunction, as_heatmap, as_image, removal_order
from biastransfer.attribution.removal import PIXELS, Fill, Space
from biastransfer.attribution.road import RoadCurves, road

__all__ = ["Curve", "RoadCurves", "deletion", "insertion", "road"]

STEP = 1792  # 224 · 8 pixels: 28 steps, 29 points of a picture of 224 × 224


def deletion(
    score: ScoreFunction,
    image,
    heatmap,
    *,
    step: int = STEP,
    fill: str | Fill = "zero",
    fill_settings: dict | None = None,
    batch_size: int = 8,
    space: Space = PIXELS,
    seed: int = 0,
    target: int | None = None,
) -> Curve:
    """Remove pixels, highest attribution first, and follow the score: deletion AUC, lower is better.

    Parameters
    ----------
    score : callable
        (N, 3, H, W) tensor → (N,), or (N, K) with one column a class.
    image : (3, H, W) tensor
        RGB in [0, 1], or as ``space`` says.
    heatmap : (H, W) array or tensor
        Larger supports the score.
    step : int
        Pixels a step; the last step removes what is left.
    fill : str or callable
        A name of `removal.FILLS`, or (images, masks) → images; see `curves.follow`. "zero" is the tensor
        value 0: black in pixels, mean grey where ``image`` is normalised.
    fill_settings : dict, optional
        Of a named fill, as for `removal.make_fill`.
    batch_size : int
        Pictures a call of ``score``; changes no value beyond the network's own rounding.
    space : Space
        What the values of ``image`` mean; only fills that work on pixels need it.
    seed : int
        Of a fill that draws random numbers.
    target : int, optional
        Column of a score (N, K); default the best class of the clean picture.

    Returns
    -------
    Curve
        All channels of a pixel go together. A map with NaN or infinity gives NaN and the reason; a constant
        map goes row by row, with a reason that says so. Scores outside [0, 1] are followed as they are, and
        ``probability`` is False.

    Raises
    ------
    ValueError
        Another shape of image, map or score, an unknown fill, a step or batch size below 1, a fill that
        returns another size or NaN.

    Notes
    -----
    RISE (Petsiuk et al. 2018) divides the trapezoid by the number of points less one, which is the same where
    the last step is whole. Its "zero" is mean grey, for its pictures are normalised. The card's
    recipe gives 28 points and keeps the last 3.6 % of the pixels; here both ends are there.

    Examples
    --------
    >>> import torch
    >>> score = lambda x: x.mean((1, 2, 3))
    >>> curve = deletion(score, torch.ones(3, 2, 2), np.array([[4, 3], [2, 1]]), step=1)
    >>> curve.scores.tolist(), curve.auc
    ([1.0, 0.75, 0.5, 0.25, 0.0], 0.5)
    """
    settings = {"fill": fill, "fill_settings": fill_settings, "batch_size": batch_size, "space": space}
    settings["seed"] = seed
    return _curve(score, image, heatmap, step, target, keep=False, **settings)


def insertion(
    score: ScoreFunction,
    image,
    heatmap,
    *,
    step: int = STEP,
    fill: str | Fill = "blur",
    fill_settings: dict | None = None,
    batch_size: int = 8,
    space: Space = PIXELS,
    seed: int = 0,
    target: int | None = None,
) -> Curve:
    """Start from nothing, put pixels back, highest attribution first: insertion AUC, higher is better.

    Parameters
    ----------
    score, image, heatmap, step, fill_settings, batch_size, space, seed, target
        As for `deletion`; the target is the best class of the whole picture.
    fill : str or callable
        What stands for pixels that are not there yet; default the picture's blur (kernel 11, σ 5: RISE).

    Returns
    -------
    Curve
        ``fractions`` are shares of pixels inserted.

    Raises
    ------
    ValueError
        As for `deletion`.
    """
    settings = {"fill": fill, "fill_settings": fill_settings, "batch_size": batch_size, "space": space}
    settings["seed"] = seed
    return _curve(score, image, heatmap, step, target, keep=True, **settings)


def _curve(score, image, heatmap, step, target, *, keep, **settings) -> Curve:
    picture = as_image(image)
    found = as_heatmap(heatmap, picture.shape[1:])
    if isinstance(step, bool) or step != int(step) or step < 1:
        raise ValueError(f"step must be a whole number of pixels, at least 1; got {step}.")
    counts = np.append(np.arange(0, found.size, int(step)), found.size)
    order = removal_order(found)
    scores, chosen = ranked_scores(score, picture, found, order, counts, target, keep=keep, **settings)
    fractions = counts / found.size
    return Curve(
        fractions, scores, area(fractions, scores), name_of(settings["fill"]), chosen, in_unit_range(scores),
        tied_share(found, order), reason_of(found, scores),
    )  # fmt: skip
