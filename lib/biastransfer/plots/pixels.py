"""Who drives an association: maps before and after, their shares by region, and what a removal leaves."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .heat_maps import titled
from .style import ATTRIBUTES, FAINT, INK, NULL, STAGES, WIDTH

_TOWARDS = LinearSegmentedColormap.from_list("towards", [ATTRIBUTES["woman"], "#F4F4F4", ATTRIBUTES["man"]])
_LANES = {"pretrained": -0.17, "finetuned": 0.17}
_WORDS = {"nothing": "whole picture", "person": "person removed", "elsewhere": "as much elsewhere",
          "object": "object removed", "both": "both removed"}  # fmt: skip


def association_gallery(shown: Sequence) -> Figure:
    """Draw pictures and their association maps before and after finetuning on one colour scale.

    Parameters
    ----------
    shown : sequence
        With label, attribute, pixels (S, S, 3) in [0, 1], person (S, S) bool, and maps: (method, stage) →
        (S, S) array in [-1, 1], above 0 where the pixels bring the picture closer to men.

    Returns
    -------
    Figure
        A row a picture. A map is laid over a pale grey copy of its picture with the same strength everywhere;
        the person is outlined.
    """
    columns = list(shown[0].maps)
    step = WIDTH / (1 + len(columns))
    size = (WIDTH, step * len(shown) + 1.05)
    figure, axes = plt.subplots(len(shown), 1 + len(columns), figsize=size, squeeze=False)
    figure.set_layout_engine("constrained", w_pad=0.01, h_pad=0.01, wspace=0, hspace=0)
    for row, one in zip(axes, shown, strict=True):
        row[0].imshow(one.pixels)
        for ax, key in zip(row[1:], columns, strict=True):
            ax.imshow(_laid_over(one.pixels, one.maps[key]))
            ax.contour(one.person, levels=[0.5], colors=[INK], linewidths=0.6)
        for ax in row:
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        words = one.label.replace(" + ", "\n+ ")
        row[0].set_ylabel(words, fontsize=8, color=ATTRIBUTES[one.attribute], labelpad=2)
    axes[0, 0].set_title("picture", fontsize=8.5, loc="center")
    for ax, (method, stage) in zip(axes[0, 1:], columns, strict=True):
        words = titled(method).replace("integrated gradients", "integr. grad.")
        ax.set_title(f"{words}\n{'before' if stage == 'pretrained' else 'after'}", fontsize=8.5, loc="center")
    scale = plt.cm.ScalarMappable(plt.Normalize(-1, 1), _TOWARDS)
    bar = figure.colorbar(
        scale, ax=axes, orientation="horizontal", fraction=0.02, aspect=45, pad=0.01, shrink=0.7
    )
    bar.set_ticks([-1, 0, 1], labels=["towards women", "neither", "towards men"])
    bar.ax.tick_params(length=0, labelsize=9)
    bar.outline.set_visible(False)
    plt.close(figure)
    return figure


def _laid_over(pixels: np.ndarray, heat: np.ndarray) -> np.ndarray:
    """Return a map's colours, darkened by a pale grey copy of the picture: the same everywhere."""
    grey = 0.6 + 0.4 * pixels.mean(2, keepdims=True)
    return grey * _TOWARDS((heat + 1) / 2)[..., :3]


def region_shares(frame: pd.DataFrame) -> Figure:
    """Draw the share of maps on person, object and rest, a panel a region, a row a map.

    Parameters
    ----------
    frame : DataFrame
        Columns stage, method, fill, region, value, low, high, area, as `share_summary` returns them, of one
        score and measure.

    Returns
    -------
    Figure
        The grey line is the region's share of the area: what a map has that knows nothing.
    """
    maps = list(frame[["method", "fill"]].drop_duplicates().itertuples(index=False, name=None))
    regions = list(frame["region"].unique())
    size = (WIDTH, 0.42 * len(maps) + 1.25)
    figure, axes = plt.subplots(1, len(regions), figsize=size, squeeze=False, sharey=True)
    for ax, region in zip(axes[0], regions, strict=True):
        part = frame[frame["region"] == region]
        ax.axvline(part["area"].mean(), color=NULL, linewidth=1.2, linestyle="--", zorder=0)
        for row in part.itertuples():
            at = maps.index((row.method, row.fill)) + _LANES[row.stage]
            control = row.method in ("random_map", "gaussian_map")
            _point(ax, row, at, row.stage, NULL if control else STAGES[row.stage]["color"])
        ax.set(title=region, xlim=(0, 1), xticks=[0, 0.5, 1])
        ax.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
        _rows(ax, [titled(method, fill or "none").replace(", ", ",\n") for method, fill in maps])
    figure.supxlabel("share of the map", fontsize=10)
    handles = [*_stages(frame), Line2D([], [], color=NULL, linestyle="--", label="share of the area")]
    figure.legend(handles=handles, loc="outside upper left", ncols=3, handlelength=1.4, columnspacing=1)
    plt.close(figure)
    return figure


def removal_effects(frame: pd.DataFrame, *, columns: int = 2) -> Figure:
    """Draw the association that is left after each removal: a panel an object, before and after finetuning.

    Parameters
    ----------
    frame : DataFrame
        Columns object, stage, fill, removed, value, low, high of one kind and seed; rows in drawing order.
        Markers of the fill "redrawn" are hollow.
    columns : int
        Panels beside each other.
    """
    objects, rows = list(frame["object"].unique()), [one for one in _WORDS if one in set(frame["removed"])]
    columns = min(columns, len(objects))
    lines = -(-len(objects) // columns)
    size = (WIDTH, (0.36 * len(rows) + 0.5) * lines + 1.0)
    figure, axes = plt.subplots(lines, columns, figsize=size, squeeze=False, sharex=True, sharey=True)
    for ax in axes.flat[len(objects) :]:
        ax.set_axis_off()
    for ax, name in zip(axes.flat, objects):
        for row in frame[(frame["object"] == name) & frame["value"].notna()].itertuples():
            redrawn = row.fill == "redrawn"
            if redrawn and row.removed == "nothing":
                continue
            at = rows.index(row.removed) + _LANES[row.stage] + (0.11 if redrawn else -0.03)
            _point(ax, row, at, row.stage, STAGES[row.stage]["color"], hollow=redrawn)
        ax.axvline(0, color=INK, linewidth=0.8, zorder=0)
        ax.set_title("all objects" if name == "all" else name)
        ax.tick_params(labelbottom=True)
        _rows(ax, [_WORDS[one] for one in rows])
    figure.supxlabel("association: with a man minus with a woman", fontsize=10)
    handles = _stages(frame)
    if "redrawn" in set(frame["fill"]):
        look = {"marker": "o", "color": NULL, "markersize": 5}
        handles.append(Line2D([], [], linestyle="", label="in-painted", **look))
        handles.append(Line2D([], [], linestyle="", markerfacecolor="white", label="redrawn", **look))
    figure.legend(handles=handles, loc="outside upper left", ncols=4, handlelength=1.2, columnspacing=1)
    plt.close(figure)
    return figure


def _point(ax, row, at: float, stage: str, colour: str, *, hollow: bool = False) -> None:
    if pd.notna(row.low) and pd.notna(row.high):
        ax.plot([row.low, row.high], [at, at], color=colour, linewidth=1.3, alpha=0.75, solid_capstyle="butt")
    face = "white" if hollow else colour
    ax.plot(row.value, at, STAGES[stage]["marker"], color=colour, markerfacecolor=face, markersize=5)


def _rows(ax, labels: Sequence[str]) -> None:
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.grid(axis="y", color=FAINT, linewidth=0.5)
    ax.tick_params(axis="y", length=0)
    ax.set_axisbelow(True)


def _stages(frame: pd.DataFrame) -> list[Line2D]:
    there = [stage for stage in _LANES if stage in set(frame["stage"])]
    words: Mapping[str, str] = {"pretrained": "before finetuning", "finetuned": "after"}
    return [Line2D([], [], linestyle="-", label=words[stage], **STAGES[stage]) for stage in there]
