"""Charts of how far heat maps can be believed: tidy frame in, Figure out; nothing is computed here."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .heat_maps import FILLED, titled
from .style import FAINT, INK, NULL, WIDTH

# one look a fill throughout the chapter; methods that remove nothing, and any other fill, are grey
FILLS = {
    "mean": {"color": "#56B4E9", "marker": "s"},
    "blur": {"color": "#E69F00", "marker": "^"},
    "scenes-inpainter": {"color": "#332288", "marker": "o"},
    "telea": {"color": "#332288", "marker": "o"},
    "lama": {"color": "#332288", "marker": "o"},
}
_MEASURES = {"ssim": "SSIM", "hog": "HOG", "spearman": "Spearman"}
_THINGS = {"gender": "perceived gender"}
_OTHER = {"color": NULL, "marker": "D"}
_METHODS = {
    "sliding_patch": ("#0072B2", "-"), "lime": ("#D55E00", "-"), "meaningful_perturbation": ("#00664E", "-"),
    "rise": ("#CC79A7", "-"), "gradcam": ("#E69F00", "--"), "random_map": (NULL, ":"),
}  # fmt: skip


def remaining_signal(frame: pd.DataFrame) -> Figure:
    """Draw what a probe still finds after each fill: a panel for each thing removed.

    Parameters
    ----------
    frame : DataFrame
        Columns what, fill, pictures, auc, low, high, as `attribution.removal_probe` returns them.
    """
    whats, fills = list(frame["what"].unique()), [one for one in frame["fill"].unique() if one != "nothing"]
    figure, axes = plt.subplots(
        1, len(whats), figsize=(WIDTH, 0.42 * (len(fills) + 2) + 0.95), squeeze=False, sharey=True
    )
    labels = ["nothing removed", *(FILLED.get(fill, fill) for fill in fills), "never there"]
    for ax, what in zip(axes[0], whats, strict=True):
        part = frame[frame["what"] == what].set_index(["fill", "pictures"])
        _point(ax, part.loc[("nothing", "present")], 0, INK, "o", "auc")
        _point(ax, part.loc[("nothing", "absent")], len(fills) + 1, INK, "o", "auc")
        for at, fill in enumerate(fills, 1):
            look = FILLS.get(fill, _OTHER)
            _point(ax, part.loc[(fill, "removed")], at - 0.12, look["color"], look["marker"], "auc")
            _point(ax, part.loc[(fill, "mask only")], at + 0.18, NULL, "x", "auc")
        ax.axvline(0.5, color=INK, linewidth=0.8, linestyle=":", zorder=0)
        ax.set(xlabel="AUC of a probe", xlim=(min(0.28, frame["low"].min() - 0.04), 1.04))
        ax.set_title(_THINGS.get(what, what))
        _rows(ax, range(len(labels)), labels)
    handles = [
        Line2D([], [], color=INK, marker="o", linestyle="", label="thing removed by the fill"),
        Line2D([], [], color=NULL, marker="x", linestyle="", label="same hole where it never was"),
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=2, handlelength=1)
    plt.close(figure)
    return figure


def faithfulness_curves(frame: pd.DataFrame) -> Figure:
    """Draw mean curves of deletion and insertion with intervals, a panel a metric and fill, two in a row.

    Parameters
    ----------
    frame : DataFrame
        Columns method, metric, metric_fill, fraction, mean, low, high: one map a method.
    """
    panels = list(frame[["metric", "metric_fill"]].drop_duplicates().itertuples(index=False, name=None))
    rows = -(-len(panels) // 2)
    figure, axes = plt.subplots(rows, 2, figsize=(WIDTH, 2.3 * rows + 0.6), sharey=True, squeeze=False)
    for ax in axes.flat[len(panels) :]:
        ax.set_axis_off()
    for ax, (metric, fill) in zip(axes.flat, panels):
        part = frame[(frame["metric"] == metric) & (frame["metric_fill"] == fill)]
        for method, (colour, line) in _METHODS.items():
            one = part[part["method"] == method]
            ax.fill_between(one["fraction"], one["low"], one["high"], color=colour, alpha=0.08, linewidth=0)
            ax.plot(one["fraction"], one["mean"], line, color=colour, linewidth=1.6)
        ax.set(title=f"{metric}, {FILLED.get(fill, fill)}", xlim=(0, 1))
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])
        ax.set_xlabel("share of pixels inserted" if metric == "insertion" else "share of pixels removed")
    axes[0, 0].set_ylim(0, None)  # shared, so below the highest band of all panels
    for ax in axes[:, 0]:
        ax.set_ylabel("score of the class")
    looks = {name: _METHODS[name] for name in _METHODS if name in set(frame["method"])}
    handles = [
        Line2D([], [], color=colour, linestyle=line, label=titled(name))
        for name, (colour, line) in looks.items()
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=3, handlelength=1.8, columnspacing=1.2)
    plt.close(figure)
    return figure


def map_scores(frame: pd.DataFrame, chance: Sequence[str] = ("random_map", "gaussian_map")) -> Figure:
    """Draw the mean of a metric for every map with intervals, a panel a metric and fill, rows shared.

    Parameters
    ----------
    frame : DataFrame
        Columns method, fill, metric_fill, label, value, low, high; rows in drawing order.
    chance : sequence of str
        Methods whose mean is drawn through the whole panel, dotted: the controls.
    """
    panels = list(frame[["label", "metric_fill"]].drop_duplicates().itertuples(index=False, name=None))
    maps = list(frame[["method", "fill"]].drop_duplicates().itertuples(index=False, name=None))
    size = (WIDTH, 0.235 * len(maps) + 1.1)
    figure, axes = plt.subplots(1, len(panels), figsize=size, squeeze=False, sharey=True)
    for ax, (label, fill) in zip(axes[0], panels, strict=True):
        part = frame[(frame["label"] == label) & (frame["metric_fill"] == fill)].set_index(["method", "fill"])
        for at, one in enumerate(maps):
            if one in part.index:
                look = FILLS.get(one[1], _OTHER)
                _point(ax, part.loc[one], at, look["color"], look["marker"])
        for method in chance:
            found = part[part.index.get_level_values("method") == method]["value"]
            if len(found):
                ax.axvline(found.iloc[0], color=NULL, linewidth=0.9, linestyle=":", zorder=0)
        words = label.replace(" inside", "\ninside") if "inside" in label else label.replace(" ", "\n", 1)
        ax.set_title(words if fill == "none" else f"{label}\n{FILLED.get(fill, fill)}", fontsize=9.5)
        _rows(ax, range(len(maps)), [titled(*one) for one in maps])
        ax.locator_params(axis="x", nbins=3)
    plt.close(figure)
    return figure


def map_ranks(frame: pd.DataFrame) -> Figure:
    """Draw the rank of every map under each fill of a metric, with the ranks that other pictures would give.

    Parameters
    ----------
    frame : DataFrame
        Columns method, fill, metric_fill, rank, rank_low, rank_high of one metric; rows in drawing order.
    """
    frame = frame.assign(low=frame["rank_low"], high=frame["rank_high"])
    maps = list(frame[["method", "fill"]].drop_duplicates().itertuples(index=False, name=None))
    lanes = list(frame["metric_fill"].unique())
    figure, ax = plt.subplots(figsize=(WIDTH, 0.34 * len(maps) + 1.1))
    for lane, fill in enumerate(lanes):
        part = frame[frame["metric_fill"] == fill].set_index(["method", "fill"])
        look = FILLS.get(fill, _OTHER)
        for at, one in enumerate(maps):
            shift = 0.2 * (lane - (len(lanes) - 1) / 2)
            _point(ax, part.loc[one], at + shift, look["color"], look["marker"], "rank")
    _rows(ax, range(len(maps)), [titled(*one) for one in maps])
    ax.set(xlabel="rank by deletion AUC, 1 is best", xlim=(0.3, len(maps) + 0.7))
    ax.locator_params(axis="x", integer=True)
    handles = _fill_handles(lanes, "removed with ")
    figure.legend(handles=handles, loc="outside upper left", ncols=2, handlelength=1)
    plt.close(figure)
    return figure


def stability(frame: pd.DataFrame) -> Figure:
    """Draw how alike maps stay over the values of one setting: a panel a measure, a row a sweep.

    Parameters
    ----------
    frame : DataFrame
        Columns setting (the sweep), fill, metric, value, low, high.
    """
    looks = {fill: FILLS.get(fill, _OTHER) for fill in frame["fill"].unique()}
    return _lanes(frame.assign(row=frame["setting"], lane=frame["fill"]), looks, "{}")


def sanity(frame: pd.DataFrame) -> Figure:
    """Draw how alike maps are before and after weights are randomised: a panel a measure, a row a method.

    Parameters
    ----------
    frame : DataFrame
        Columns method, setting (what is random), metric, value, low, high.
    """
    looks = dict(
        zip(frame["setting"].unique(), ({"color": "#0072B2", "marker": "o"}, {"color": INK, "marker": "D"}))
    )
    rows = [titled(method) for method in frame["method"]]
    return _lanes(frame.assign(row=rows, lane=frame["setting"]), looks, "random: {}")


def _lanes(frame: pd.DataFrame, looks: Mapping[str, Mapping], label: str) -> Figure:
    """Draw values by ``row``, a lane below the other by ``lane``, a panel a measure."""
    names, kinds, measures = (list(frame[key].unique()) for key in ("row", "lane", "metric"))
    size = (WIDTH, (0.15 * len(kinds) + 0.14) * len(names) + 1.1)
    left = min(-0.35, frame[["value", "low"]].min().min() - 0.05)
    figure, axes = plt.subplots(1, len(measures), figsize=size, squeeze=False, sharey=True, sharex=True)
    for ax, measure in zip(axes[0], measures, strict=True):
        for lane, kind in enumerate(kinds):
            part = frame[(frame["metric"] == measure) & (frame["lane"] == kind)]
            for one in part.itertuples():
                at = names.index(one.row) + 0.24 * (lane - (len(kinds) - 1) / 2)
                _point(ax, one._asdict(), at, **looks[kind])
        ax.axvline(0, color=INK, linewidth=0.8, linestyle=":", zorder=0)
        ax.set(title=_MEASURES.get(measure, measure), xlim=(left, 1.08), xticks=[0, 0.5, 1])
        _rows(ax, range(len(names)), names)
    names = {kind: label.format(FILLED.get(kind, kind)) for kind in kinds}
    handles = [Line2D([], [], linestyle="", label=names[kind], **looks[kind]) for kind in kinds]
    figure.legend(handles=handles, loc="outside upper left", ncols=3, handlelength=1)
    plt.close(figure)
    return figure


def _fill_handles(fills: Sequence[str], prefix: str) -> list[Line2D]:
    looks = {fill: FILLS.get(fill, _OTHER) for fill in fills}
    words = {fill: f"{prefix}{FILLED.get(fill, fill)}" for fill in fills}
    return [Line2D([], [], linestyle="", label=words[fill], **look) for fill, look in looks.items()]


def _point(ax: Axes, row, at: float, color: str, marker: str, value: str = "value") -> None:
    """Draw a value with its interval."""
    if pd.notna(row["low"]) and pd.notna(row["high"]):
        ax.plot(
            [row["low"], row["high"]],
            [at, at],
            color=color,
            linewidth=1.4,
            alpha=0.75,
            solid_capstyle="butt",
        )
    ax.plot(row[value], at, marker, color=color, markersize=5, markeredgewidth=1.4 if marker == "x" else 0.5)


def _rows(ax: Axes, places, labels: Sequence[str]) -> None:
    """Name the rows from top to bottom."""
    ax.set_yticks(list(places), labels)
    ax.set_ylim(len(labels) - 0.45, -0.55)
    ax.grid(axis="y", color=FAINT, linewidth=0.5)
    ax.tick_params(axis="y", length=0)
    ax.set_axisbelow(True)
