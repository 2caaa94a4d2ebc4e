"""Does a heat map lie on the object? The box around its highest part against annotated boxes."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from biastransfer.attribution.boxes import as_boxes, iou_with_union
from biastransfer.attribution.heatmaps import as_heatmap, unusable
from biastransfer.attribution.pointing import Pointing, Share, mass_inside, pointing_game
from biastransfer.attribution.saliency import Saliency, saliency, saliency_metric, tight_box

__all__ = [
    "ALPHAS",
    "Localisation",
    "Pointing",
    "Saliency",
    "Share",
    "localisation_curve",
    "localise",
    "mass_inside",
    "pointing_game",
    "saliency",
    "saliency_metric",
]

ALPHAS = tuple(k / 100 for k in range(10, 55, 5))  # .10, .15, … .50
HIT = 0.5  # a hit needs an IoU above it
RULES = ("union", "best")


@dataclass(frozen=True)
class Localisation:
    """Where a heat map puts the object, against where it is.

    Attributes
    ----------
    box : (x1, y1, x2, y2) or None
        Tight box around all surviving pixels, upper ends exclusive; None where nothing survives.
    iou : float
        In [0, 1]; 0 where nothing survives, NaN for a map with values that are not finite.
    hit : bool
        IoU above .5, by a map that is not constant.
    n_boxes : int
        Annotated boxes: 1 is a picture of a single object.
    reason : str
        Why the map can only miss; else "".
    """

    box: tuple[int, int, int, int] | None
    iou: float
    hit: bool
    n_boxes: int
    reason: str

    @property
    def value(self) -> float:
        """The metric, localisation error; 1 for a miss, 0 for a hit."""
        return float(not self.hit)


def localise(heatmap, boxes, *, alpha: float = 0.3, rule: str = "union") -> Localisation:
    """Compare the box around a heat map's highest part with annotated boxes.

    Parameters
    ----------
    heatmap : (H, W) array or tensor
        Larger supports the class; negative values count as 0.
    boxes : (k, 4) array_like, k ≥ 1
        x1, y1, x2, y2 in pixels of the map, upper ends exclusive (a single pixel has area 1).
    alpha : float
        In (0, 1]: pixels of at least ``alpha`` times the maximum survive.
    rule : {"union", "best"}
        Against all boxes together as one region, or against the box that fits best.

    Returns
    -------
    Localisation
        Localisation error, the mean of ``value`` over pictures: lower is better. An all-zero, negative,
        constant or not finite map is a miss with a reason.

    Raises
    ------
    ValueError
        No box, boxes outside the picture, an unknown rule, alpha outside (0, 1], a map that is not (H, W).

    Notes
    -----
    The box holds *all* surviving pixels, not their largest connected part. The area of the union counts
    each place once; it is exact for corners between pixels.

    Examples
    --------
    >>> import numpy as np
    >>> heat = np.zeros((4, 4)); heat[1, 1:3] = 1
    >>> localise(heat, [[1, 1, 3, 2]]).iou, localise(heat, [[1, 1, 3, 3]]).hit
    (1.0, False)
    """
    found = as_heatmap(heatmap)
    truth = as_boxes(boxes, found.shape)
    if not len(truth):
        raise ValueError(
            "localisation needs at least one annotated box; got none. Places365 and folders of own pictures "
            "have no boxes: leave localisation out, or give masks and use mass_inside."
        )
    if rule not in RULES:
        raise ValueError(f"rule must be one of {', '.join(RULES)}; got {rule!r}.")
    box, problem = tight_box(found, alpha)
    if box is None:
        return Localisation(None, float("nan") if unusable(found) else 0.0, False, len(truth), problem)
    against = [truth] if rule == "union" else truth[:, None]
    iou = max(iou_with_union(box, region) for region in against)
    return Localisation(box, iou, iou > HIT and not problem, len(truth), problem)


def localisation_curve(
    heatmap,
    boxes,
    *,
    alphas: Sequence[float] = ALPHAS,
    cutoffs: Sequence[float] = (HIT,),
    rule: str = "union",
) -> pd.DataFrame:
    """Localise at several thresholds and count hits at several IoU cut-offs.

    Parameters
    ----------
    heatmap, boxes, rule
        As for `localise`.
    alphas : sequence of float
        Thresholds; default .10, .15, … .50.
    cutoffs : sequence of float
        A hit needs an IoU above it; (.1, .2, … .9) gives the per-IoU curve.

    Returns
    -------
    DataFrame
        One row an alpha and cut-off: alpha, cutoff, iou, hit, error (1 − hit), n_boxes, reason.

    Raises
    ------
    ValueError
        As for `localise`.
    """
    rows = []
    for alpha in alphas:
        one = localise(heatmap, boxes, alpha=alpha, rule=rule)
        for cutoff in cutoffs:
            hit = one.iou > cutoff and not one.reason
            rows.append((alpha, cutoff, one.iou, hit, float(not hit), one.n_boxes, one.reason))
    return pd.DataFrame(rows, columns=["alpha", "cutoff", "iou", "hit", "error", "n_boxes", "reason"])
