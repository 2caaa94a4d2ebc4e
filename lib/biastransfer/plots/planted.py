"""Charts of the planted-bias experiment: tidy frames in, Figures out; nothing is computed here."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .style import FAINT, INK, NULL, STAGES, WIDTH

TITLES = {
    "association": "iEAT effect size d",
    "difference": "inter-class difference",
    "leakage": "probe leakage, AUC",
    "transfer_inter": "BTS, inter-class",
    "transfer_intra": "BTS, intra-class",
}
NOTHING = {
    "association": 0.0,
    "difference": 0.0,
    "leakage": 0.5,
    "transfer_inter": 1.0,
    "transfer_intra": 1.0,
}
DOSED = STAGES["finetuned"]["color"]
RULES = {"pictures": ("o", "white", "--"), "networks": ("D", None, "-")}


def dose_response(frame: pd.DataFrame) -> Figure:
    """Draw every measure over the planted dose: a panel a measure, a point a network.

    Parameters
    ----------
    frame : DataFrame
        Columns measure, dose, realised, seed, shuffled, value, low, high.

    Returns
    -------
    Figure
        Bars are ``low`` to ``high``; lines join the means over seeds; grey squares are shuffled networks.
    """
    figure, axes = plt.subplots(3, 2, figsize=(WIDTH, 6.6), sharex=True)
    for ax, (measure, title) in zip(axes.flat, TITLES.items()):
        part = frame[frame["measure"] == measure]
        dosed, mixed = part[~part["shuffled"]], part[part["shuffled"]]
        ax.axhline(NOTHING[measure], color=INK, linewidth=0.8, linestyle=":", zorder=0)
        means = dosed.groupby("dose")["value"].mean()
        ax.plot(means.index, means, color=DOSED, linewidth=1, zorder=1)
        for number, (_, one) in enumerate(dosed.groupby("seed")):
            _points(ax, one, one["dose"] + 0.05 * (number - 0.5 * (dosed["seed"].nunique() - 1)), DOSED, "D")
        _points(ax, mixed, mixed["realised"], NULL, "s")
        ax.set_title(title)
        ax.tick_params(labelbottom=True)
    for ax in (axes[1, 1], axes[2, 0]):
        ax.set_xlabel("dose: skew of the training pictures")
    axes[2, 1].set_axis_off()
    handles = [
        Line2D([], [], color=DOSED, marker="D", label="a network; line: mean"),
        Line2D(
            [], [], color=NULL, marker="s", linestyle="", label="people shuffled, at the\ndose that was left"
        ),
        Line2D([], [], color=INK, linestyle=":", linewidth=0.8, label="nothing there;\nBTS: order unchanged"),
    ]
    axes[2, 1].legend(handles=handles, loc="center left")
    plt.close(figure)
    return figure


def _points(ax: Axes, part: pd.DataFrame, x: pd.Series, colour: str, marker: str) -> None:
    ax.vlines(x, part["low"], part["high"], color=colour, linewidth=0.9, alpha=0.5)
    ax.plot(x, part["value"], marker, color=colour, markersize=4.5)


def alarm_rates(rates: pd.DataFrame) -> Figure:
    """Draw false alarms and power over the number of pictures: a row a measure, a column each.

    Parameters
    ----------
    rates : DataFrame
        Columns pictures, measure, rule, size, rate, low, high; the largest size is drawn as power.
    """
    measures = [name for name in TITLES if (rates["measure"] == name).any()]
    ends = {
        "nothing planted: false alarms": 0.0,
        f"dose ±{rates['size'].max():g}: power": rates["size"].max(),
    }
    counts = sorted(rates["pictures"].unique())
    size = (WIDTH, 1.25 * len(measures) + 1.0)
    figure, axes = plt.subplots(len(measures), 2, figsize=size, sharex=True, sharey=True, squeeze=False)
    for place, (row, measure) in enumerate(zip(axes, measures)):
        for ax, (title, level) in zip(row, ends.items()):
            part = rates[(rates["measure"] == measure) & (rates["size"] == level)]
            ax.axhline(0.05 if level == 0 else 0.8, color=INK, linewidth=0.8, linestyle=":", zorder=0)
            for shift, (rule, (marker, face, line)) in zip((-0.06, 0.06), RULES.items()):
                one = part[part["rule"] == rule].sort_values("pictures")
                x, colour = one["pictures"].map(counts.index) + shift, NULL if level == 0 else DOSED
                ax.vlines(x, one["low"], one["high"], color=colour, linewidth=0.9, alpha=0.5)
                ax.plot(x, one["rate"], line, color=colour, marker=marker, markersize=5,
                        markerfacecolor=face or colour, linewidth=1)  # fmt: skip
            ax.set_title(f"{title}\n{TITLES[measure]}" if place == 0 else f"\n{TITLES[measure]}")
    axes[0, 0].set(ylim=(-0.06, 1.06), yticks=[0, 0.5, 1], xticks=range(len(counts)), xticklabels=counts)
    figure.supxlabel("pictures a class", fontsize=10)
    figure.supylabel("share of networks and draws with an alarm", fontsize=10)
    words = {"pictures": "by its own pictures", "networks": "against unplanted networks"}
    handles = [
        Line2D(
            [], [], color=INK, marker=marker, linestyle=line, markerfacecolor=face or INK, label=words[rule]
        )
        for rule, (marker, face, line) in RULES.items()
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=2)
    plt.close(figure)
    return figure


def constructions(frame: pd.DataFrame, order: Mapping[str, str], least: float) -> Figure:
    """Draw what a second finetuning did to the association, and what the transfer score says of it.

    Parameters
    ----------
    frame : DataFrame
        Columns construction, seed, d_before, d_after, transfer_inter, and its _low and _high.
    order : mapping of str to str
        Construction → its row's label, from top to bottom.
    least : float
        The least score that is significant.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 0.52 * len(order) + 1.5), sharey=True)
    for place, name in enumerate(order):
        part = frame[frame["construction"] == name].sort_values("seed")
        for lane, row in enumerate(part.itertuples()):
            y = place + 0.22 * (lane - (len(part) - 1) / 2)
            left.plot([row.d_before, row.d_after], [y, y], color=FAINT, linewidth=1.5, zorder=1)
            left.plot(row.d_before, y, markersize=5.5, **STAGES["pretrained"])
            left.plot(row.d_after, y, markersize=5.5, **STAGES["finetuned"])
            right.plot([row.transfer_inter_low, row.transfer_inter_high], [y, y], color=DOSED, linewidth=1.3)
            right.plot(row.transfer_inter, y, "D", color=DOSED, markersize=5.5)
    left.axvline(0, color=INK, linewidth=0.8, linestyle=":", zorder=0)
    right.axvline(least, color=INK, linewidth=0.8, linestyle=":", zorder=0)
    right.annotate("significant →", (least, -0.62), xytext=(3, 0), textcoords="offset points", fontsize=9)
    left.set(xlabel="iEAT effect size d", ylim=(len(order) - 0.5, -0.75))
    right.set(xlabel="BTS, inter-class", xlim=(min(-0.05, frame["transfer_inter_low"].min() - 0.05), 1.05))
    left.set_yticks(range(len(order)), list(order.values()))
    for ax in (left, right):
        ax.tick_params(axis="y", length=0)
    handles = [
        Line2D([], [], linestyle="", label="after the first finetuning", **STAGES["pretrained"]),
        Line2D([], [], linestyle="", label="after the second", **STAGES["finetuned"]),
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=2)
    plt.close(figure)
    return figure
