"""Where a heat map's peak and its mass lie: on the object or beside it."""

from dataclasses import dataclass

import numpy as np

from biastransfer.attribution.boxes import as_boxes, as_mask, box_mask
from biastransfer.attribution.heatmaps import as_heatmap, defect, unusable


@dataclass(frozen=True)
class Pointing:
    """Whether a heat map's highest pixel, ``point`` = (x, y), lies on the object (``hit``), or why not."""

    point: tuple[int, int] | None
    hit: bool
    reason: str

    @property
    def value(self) -> float:
        """The metric, 1 for a hit and 0 for a miss."""
        return float(self.hit)


@dataclass(frozen=True)
class Share:
    """Share of a heat map's positive mass on the object.

    ``value`` in [0, 1], higher is better, NaN with a ``reason`` where there is no mass; ``area`` is the
    object's share of the picture: what a map that says nothing has.
    """

    value: float
    area: float
    reason: str


def pointing_game(heatmap, region, *, tolerance: float = 0.0) -> Pointing:
    """Tell whether the highest pixel of a heat map lies on the object.

    Parameters
    ----------
    heatmap : (H, W) array or tensor
    region : (k, 4) boxes or (H, W) bool mask
        The object, or all objects of the class.
    tolerance : float
        Pixels by which the point may miss; Zhang et al. 2018 take 15.

    Returns
    -------
    Pointing
        Of several highest pixels the first, row by row; a constant or not finite map is a miss with a reason.

    Raises
    ------
    ValueError
        An empty region, boxes outside the picture, a mask of another size, a negative tolerance.
    """
    found = as_heatmap(heatmap)
    mask = region_mask(region, found.shape)
    if not 0 <= tolerance < np.inf:
        raise ValueError(f"tolerance must be a number of pixels, at least 0; got {tolerance}.")
    if problem := defect(found):
        return Pointing(None, False, problem)
    y, x = np.unravel_index(int(np.argmax(found)), found.shape)
    rows, columns = np.nonzero(mask)
    nearest = np.hypot(rows - y, columns - x).min()
    return Pointing((int(x), int(y)), bool(nearest <= tolerance), "")


def mass_inside(heatmap, region) -> Share:
    """Return the share of a heat map's positive mass that lies on the object; higher is better.

    Parameters
    ----------
    heatmap : (H, W) array or tensor
        Negative values count as 0.
    region : (k, 4) boxes or (H, W) bool mask

    Returns
    -------
    Share

    Raises
    ------
    ValueError
        As for `pointing_game`.

    Examples
    --------
    >>> mass_inside(np.array([[3.0, 1.0], [-5.0, 0.0]]), [[0, 0, 1, 2]])
    Share(value=0.75, area=0.5, reason='')
    """
    found = as_heatmap(heatmap)
    mask = region_mask(region, found.shape)
    if unusable(found):
        return Share(float("nan"), float(mask.mean()), defect(found))
    mass = np.maximum(found, 0)
    total = float(mass.sum(dtype=np.float64))
    if total == 0:
        return Share(float("nan"), float(mask.mean()), "no value of the map is above 0")
    return Share(float(mass[mask].sum(dtype=np.float64)) / total, float(mask.mean()), "")


def region_mask(region, size: tuple[int, int]) -> np.ndarray:
    """Return the mask (H, W), ``size``, of a ``region`` given as such or as boxes (k, 4); never empty.

    A bool array of shape (H, W) is a mask, anything else is boxes.
    """
    given = np.asarray(region)
    mask = as_mask(given, size) if given.dtype == bool else box_mask(as_boxes(given, size), size)
    if not mask.any():
        raise ValueError(
            "the region must hold at least one pixel; got none. Leave the picture out and count it."
        )
    return mask
