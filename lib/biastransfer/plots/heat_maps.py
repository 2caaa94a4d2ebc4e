"""Pictures with their heat maps, and pictures without their object: nothing is computed here."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from .style import INK, WIDTH

SHORT = {"meaningful_perturbation": "MP", "sliding_patch": "sliding patch", "lime": "LIME", "rise": "RISE",
          "gradcam": "Grad-CAM", "smoothgrad": "SmoothGrad", "integrated_gradients": "integrated gradients",
          "gaussian_map": "centred Gaussian", "random_map": "random map"}  # fmt: skip
FILLED = {"mean": "grey", "scenes-inpainter": "in-painter"}  # "mean" alone reads as an average
WORDS = {"method": SHORT} | dict.fromkeys(("fill", "metric_fill", "metric's fill"), FILLED)  # for tables
_SIGNED = LinearSegmentedColormap.from_list("signed", ["#2166AC", "#B0B0B0", "#B2182B"])
_COLUMNS = 5  # maps beside each other that still read on a phone


def titled(method: str, fill: str = "none") -> str:
    """Return what figures call a ``method``, and its ``fill`` where it removes.

    Examples
    --------
    >>> titled("lime", "blur"), titled("gradcam")
    ('LIME, blur', 'Grad-CAM')
    """
    name = SHORT.get(method, method.replace("_", " "))
    return name if fill in ("none", "black") else f"{name}, {FILLED.get(fill, fill)}"


def heat_maps(shown: Sequence) -> Figure:
    """Draw pictures and their heat maps: red supports the class, blue speaks against it.

    Parameters
    ----------
    shown : sequence
        With name, label, clean (the class's score), pixels (S, S, 3) in [0, 1], outline ((S, S) bool or None)
        and maps: (method, fill) → (S, S) array in [-1, 1], 0 neutral.

    Returns
    -------
    Figure
        All maps of a figure share the colour scale. Where a map is 0 the picture shows in grey, and the
        colour grows with the map's size.
    """
    lines = [-(-(1 + len(one.maps)) // _COLUMNS) for one in shown]
    step = WIDTH / _COLUMNS
    figure, axes = plt.subplots(
        sum(lines), _COLUMNS, figsize=(WIDTH, (step + 0.28) * sum(lines) + 0.6), squeeze=False
    )
    for ax in axes.flat:
        ax.set_axis_off()
    for number, one in enumerate(shown):
        cells = axes[sum(lines[:number]) : sum(lines[: number + 1])].ravel()
        cells[0].imshow(one.pixels)
        cells[0].set_title(f"{one.label}, {one.clean:.2f}", fontsize=8.5, fontweight="bold", loc="center")
        for ax, ((method, fill), heat) in zip(cells[1:], one.maps.items()):
            ax.imshow(_overlay(one.pixels, heat))
            if one.outline is not None:
                ax.contour(one.outline, levels=[0.5], colors=[INK], linewidths=0.7)
            ax.set_title(titled(method, fill).replace(", ", "\n"), fontsize=8, loc="center", linespacing=0.95)
    scale = plt.cm.ScalarMappable(plt.Normalize(-1, 1), _SIGNED)
    bar = figure.colorbar(
        scale, ax=axes, orientation="horizontal", fraction=0.02, aspect=40, pad=0.01, shrink=0.6
    )
    bar.set_ticks([-1, 0, 1], labels=["against the class", "0", "for the class"])
    bar.ax.tick_params(length=0, labelsize=8.5)
    bar.outline.set_visible(False)
    plt.close(figure)
    return figure


def _overlay(pixels: np.ndarray, heat: np.ndarray) -> np.ndarray:
    """Return a grey picture that turns to the map's colour as far as the map's size."""
    grey = 0.45 + 0.5 * np.repeat(pixels.mean(2, keepdims=True), 3, 2)
    size = np.clip(np.abs(heat), 0, 1)[..., None]
    return (1 - size) * grey + size * _SIGNED((heat + 1) / 2)[..., :3]


def removals(removed: Sequence) -> Figure:
    """Draw pictures without their object, a column a fill, with what is left of the class's score.

    Parameters
    ----------
    removed : sequence
        With name, fill, pixels (S, S, 3) in [0, 1] and score; the fills of a picture in one order.
    """
    names, fills = (list(dict.fromkeys(getattr(one, key) for one in removed)) for key in ("name", "fill"))
    step = WIDTH / len(fills)
    size = (WIDTH, (step + 0.2) * len(names) + 0.25)
    figure, axes = plt.subplots(len(names), len(fills), figsize=size, squeeze=False)
    for one in removed:
        ax = axes[names.index(one.name), fills.index(one.fill)]
        ax.imshow(one.pixels)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.spines[:].set_visible(False)
        ax.set_xlabel(f"{one.score:.2f}", fontsize=9.5, labelpad=2)
        if one.name == names[0]:
            title = "as it is" if one.fill == "nothing" else FILLED.get(one.fill, one.fill)
            ax.set_title(title, fontsize=9.5, loc="center")
    plt.close(figure)
    return figure
