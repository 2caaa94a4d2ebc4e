"""ROAD: pixels imputed so that the hole does not show, most relevant and least relevant first."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from biastransfer.attribution.curves import area, in_unit_range, name_of, ranked_scores, reason_of, tied_share
from biastransfer.attribution.heatmaps import ScoreFunction, as_heatmap, as_image, removal_order
from biastransfer.attribution.removal import PIXELS, Fill, Space

FRACTIONS = tuple(k / 10 for k in range(10))  # at 1 nothing would be left to impute from


@dataclass(frozen=True, eq=False)
class RoadCurves:
    """Scores after imputing the most and the least relevant pixels.

    Attributes
    ----------
    fractions : (n,) float array
        True share of pixels imputed.
    most, least : (n,) float arrays
        Score without the pixels of highest, and of lowest, attribution.
    gap : float
        Mean over fractions of least − most (trapezoid): how much more the marked pixels matter. Higher is
        better; 0 for an order that says nothing.
    auc_most, auc_least : float
        Mean score over fractions: lower, and higher, is better.
    fill, target, probability, tied, reason
        As for `Curve`.
    """

    fractions: np.ndarray
    most: np.ndarray
    least: np.ndarray
    gap: float
    auc_most: float
    auc_least: float
    fill: str
    target: int | None
    probability: bool
    tied: float
    reason: str

    @property
    def value(self) -> float:
        """The metric, `gap`."""
        return self.gap


def road(
    score: ScoreFunction,
    image,
    heatmap,
    *,
    fractions: Sequence[float] = FRACTIONS,
    fill: str | Fill = "road",
    fill_settings: dict | None = None,
    batch_size: int = 8,
    space: Space = PIXELS,
    seed: int = 0,
    target: int | None = None,
) -> RoadCurves:
    """Remove and debias: impute the most and the least relevant pixels and compare, gap higher is better.

    Parameters
    ----------
    score, image, heatmap, fill_settings, batch_size, space, seed, target
        As for `deletion`.
    fractions : sequence of float
        Increasing shares of pixels to impute, the first 0, the last at most 1; rounded to whole pixels.
    fill : str or callable
        Default ROAD's noisy linear imputation.

    Returns
    -------
    RoadCurves

    Raises
    ------
    ValueError
        Fractions that do not start at 0 and increase within [0, 1]; otherwise as for `deletion`.

    Notes
    -----
    Rong et al. 2022: where removed pixels are zeroed, the shape of the hole itself tells the class; a linear
    imputation from the neighbours with noise hides the hole. They rank by accuracy over pictures; this is the
    score of one picture.
    """
    picture = as_image(image)
    found = as_heatmap(heatmap, picture.shape[1:])
    shares = np.asarray(fractions, float)
    if (
        shares.ndim != 1
        or len(shares) < 2
        or shares[0] != 0
        or (np.diff(shares) <= 0).any()
        or shares[-1] > 1
    ):
        raise ValueError(f"fractions must start at 0 and increase within [0, 1]; got {list(fractions)}.")
    counts = np.rint(shares * found.size).astype(np.int64)
    settings = {"fill": fill, "fill_settings": fill_settings, "batch_size": batch_size, "space": space}
    settings["seed"] = seed
    order = removal_order(found)
    most, chosen = ranked_scores(score, picture, found, order, counts, target, **settings)
    # the least relevant come from the order's other end; the clean picture is scored once
    least, _ = ranked_scores(score, picture, found, order[::-1].copy(), counts[1:], chosen, **settings)
    least = np.append(most[:1], least)
    shares, both = counts / found.size, np.append(most, least)
    return RoadCurves(
        shares, most, least, area(shares, least - most), area(shares, most), area(shares, least),
        name_of(fill), chosen, in_unit_range(both), tied_share(found, order), reason_of(found, both),
    )  # fmt: skip
