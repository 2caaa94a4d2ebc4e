"""The saliency metric: how small a crop around a heat map's highest part still shows the class."""

from dataclasses import dataclass

import numpy as np
from torch.nn.functional import interpolate

from biastransfer.attribution.heatmaps import (
    ScoreFunction,
    as_heatmap,
    as_image,
    choose_target,
    defect,
    score_pictures,
    unusable,
)

_ROUNDING = 1e-6  # softmax in float32 may give 1.0000001


@dataclass(frozen=True)
class Saliency:
    """The saliency metric of one picture and what went into it.

    Attributes
    ----------
    value : float
        log max(area, floor) − log max(p, p_floor), in nats; lower is better; NaN where there is no crop.
    box : (x1, y1, x2, y2) or None
        The crop, upper ends exclusive.
    area : float
        Its share of the picture, before the floor.
    p : float
        Probability of the class on the crop, before the floor.
    at_area_floor, at_p_floor : bool
        Whether the floors decided; give their share over pictures beside any mean.
    target : int or None
        Class of a score (N, K).
    reason : str
        Why ``value`` is NaN, or that the map is constant and the crop the whole picture; else "".
    """

    value: float
    box: tuple[int, int, int, int] | None
    area: float
    p: float
    at_area_floor: bool
    at_p_floor: bool
    target: int | None
    reason: str


def saliency(
    score: ScoreFunction,
    image,
    heatmap,
    *,
    alpha: float = 0.3,
    floor: float = 0.05,
    p_floor: float = 1e-6,
    target: int | None = None,
) -> Saliency:
    """Crop the picture to a heat map's highest part, enlarge it, and see whether the class is still there.

    Parameters
    ----------
    score : callable
        (N, 3, H, W) tensor → (N,) or (N, K) *probabilities*.
    image : (3, H, W) tensor
    heatmap : (H, W) array or tensor
        Larger supports the class; negative values count as 0.
    alpha : float
        In (0, 1]: the crop is the tight box around pixels of at least ``alpha`` times the maximum.
    floor : float
        Least share of the picture that the crop counts as.
    p_floor : float
        Least probability it counts as: the metric has none of its own, so log p would be unbounded.
    target : int, optional
        Column of a score (N, K); default the best class of the clean picture.

    Returns
    -------
    Saliency

    Raises
    ------
    ValueError
        A score outside [0, 1], a parameter outside (0, 1], another shape of image, map or score.

    Notes
    -----
    Dabkowski and Gal 2017 (there the smallest of several crops; here the crop of one threshold). The crop is
    enlarged to the picture's own size (224 in the paper), bilinear, whatever its proportions.
    """
    picture = as_image(image)
    found = as_heatmap(heatmap, picture.shape[1:])
    for name, number in (("floor", floor), ("p_floor", p_floor)):
        if not 0 < number <= 1:
            raise ValueError(f"{name} must lie in (0, 1]; got {number}.")
    box, problem = tight_box(found, alpha)
    nan = float("nan")
    if box is None:
        return Saliency(nan, None, nan, nan, False, False, target, problem)
    x1, y1, x2, y2 = box
    crop = interpolate(
        picture[None, :, y1:y2, x1:x2], size=picture.shape[1:], mode="bilinear", align_corners=False
    )
    values = score_pictures(score, crop)
    if values.ndim == 2 and target is None:
        target = choose_target(score_pictures(score, picture[None].clone()), 0, None)[1]
    values, target = choose_target(values, 0, target)
    p, share = float(values[0]), (y2 - y1) * (x2 - x1) / found.size
    if not -_ROUNDING <= p <= 1 + _ROUNDING:
        raise ValueError(
            f"the saliency metric needs a probability in [0, 1]; the score gave {p:.6g}. Pass a score that "
            'ends in softmax or sigmoid, such as class_score(…, output="probability").'
        )
    value = float(np.log(max(share, floor)) - np.log(max(min(p, 1.0), p_floor)))
    return Saliency(value, box, share, p, share <= floor, p <= p_floor, target, problem)


def saliency_metric(
    score: ScoreFunction,
    image,
    heatmap,
    *,
    alpha: float = 0.3,
    floor: float = 0.05,
    p_floor: float = 1e-6,
    target: int | None = None,
) -> float:
    """Return the saliency metric in nats, lower is better: `saliency` without what went into it.

    Parameters
    ----------
    score, image, heatmap, alpha, floor, p_floor, target
        As for `saliency`.

    Returns
    -------
    float
        NaN where the map marks nothing.

    Raises
    ------
    ValueError
        As for `saliency`.

    Examples
    --------
    >>> import torch
    >>> heat = np.zeros((10, 10)); heat[2:7, 2:7] = 1  # a quarter of the picture
    >>> always = lambda x: torch.full((len(x),), 0.5)
    >>> saliency_metric(always, torch.zeros(3, 10, 10), heat), float(np.log(0.25 / 0.5))
    (-0.6931471805599453, -0.6931471805599453)
    """
    settings = {"alpha": alpha, "floor": floor, "p_floor": p_floor, "target": target}
    return saliency(score, image, heatmap, **settings).value


def tight_box(heatmap: np.ndarray, alpha: float) -> tuple[tuple[int, int, int, int] | None, str]:
    """Return the tight box around a map's highest part, and what is wrong with the map.

    Parameters
    ----------
    heatmap : (H, W) float array
    alpha : float
        In (0, 1]: pixels of at least ``alpha`` times the maximum survive.

    Returns
    -------
    box : (x1, y1, x2, y2) or None
        Upper ends exclusive; None where nothing survives or values are not finite.
    problem : str
        "" for a map that marks something; a constant map has a box, the whole picture, *and* a problem.

    Raises
    ------
    ValueError
        alpha outside (0, 1].

    Examples
    --------
    >>> tight_box(np.array([[0, 0, 0], [0, 9.0, 3.0]]), 0.3)
    ((1, 1, 3, 2), '')
    """
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha must lie in (0, 1]; got {alpha}.")
    if unusable(heatmap):
        return None, defect(heatmap)
    top = heatmap.max()
    if top <= 0:
        return None, "no value of the map is above 0"
    alive = heatmap >= alpha * top
    rows, columns = np.flatnonzero(alive.any(1)), np.flatnonzero(alive.any(0))
    box = (int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1)
    return box, defect(heatmap)
