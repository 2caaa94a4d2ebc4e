"""What finetuning did to associations: tidy frame in, Figure out; nothing is computed here."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .charts import slots_of
from .style import FAINT, INK, NULL, STAGES, panels, readable

_AFTER = STAGES["finetuned"]["color"]
MARKS = {
    "survives": {"marker": "D", "color": _AFTER, "markersize": 5},
    "added": {"marker": "^", "color": _AFTER, "markersize": 7},
    "removed": {"marker": "v", "color": STAGES["pretrained"]["color"], "markersize": 7},
    "reversed": {"marker": "X", "color": INK, "markersize": 7},
    "undecided": {"marker": "o", "color": INK, "markersize": 5},
    "changed, neither stands": {"marker": "s", "color": NULL, "markersize": 4},
    "none shown": {"marker": "o", "color": NULL, "markersize": 3.5},
}


def association_changes(frame: pd.DataFrame, *, level: float = 0.05) -> Figure:
    """Draw the change of each effect size, with intervals: a panel a network, a row a pair, a marker a seed.

    Parameters
    ----------
    frame : DataFrame
        Columns backbone, seed, X, Y, A, B, change, low, high, p_holm and verdict; a change in some row.
    level : float
        A marker is filled where p_holm is below it.
    """
    frame = frame.dropna(subset="change")
    frame = frame.assign(item=frame["A"] + "|" + frame["B"], kind=frame["verdict"].map(_kind))
    backbones, seeds = list(frame["backbone"].unique()), sorted(frame["seed"].unique())
    slot = slots_of(frame["item"].unique(), grouped=False)
    lane = {seed: 0.22 * (k - (len(seeds) - 1) / 2) for k, seed in enumerate(seeds)}
    figure, axes = panels(len(backbones), lines=len(slot))
    for ax, backbone in zip(axes, backbones):
        _panel(ax, frame[frame["backbone"] == backbone], slot, lane, level)
        ax.set_title(backbone)
    first = frame.iloc[0]
    direction = f"← the first of the pair nearer to {first['Y']}   |   nearer to {first['X']} →"
    figure.supxlabel(f"change of d, after − before finetuning\n{direction}", fontsize=10)
    shown = [name for name in MARKS if (frame["kind"] == name).any()]
    hollow = {"linestyle": "", "markerfacecolor": "white"}
    handles = [Line2D([], [], label=name, **hollow, **MARKS[name]) for name in shown]
    handles.append(Line2D([], [], linestyle="", label=f"filled: the change has Holm p < {level:g}"))
    figure.legend(handles=handles, loc="outside upper left", ncols=3, columnspacing=1.2, handletextpad=0.3)
    plt.close(figure)
    return figure


def _kind(verdict: str) -> str:
    """Return the verdict without how much of it is left: what has a marker of its own."""
    return verdict if verdict in MARKS else verdict.split(",")[0]


def _panel(ax: Axes, part: pd.DataFrame, slot: dict, lane: dict, level: float) -> None:
    """Draw the rows of one network, each at its pair's place and in its seed's lane."""
    for row in part.itertuples():
        at, look = slot[row.item] + lane[row.seed], MARKS[row.kind]
        face = look["color"] if row.p_holm < level else "white"
        ax.plot([row.low, row.high], [at, at], color=look["color"], linewidth=1.3, alpha=0.75)
        ax.plot(row.change, at, markerfacecolor=face, linestyle="", **look)
    ax.axvline(0, color=INK, linewidth=0.8, zorder=0)
    ax.set_yticks(list(slot.values()), [readable(item) for item in slot])
    ax.set_ylim(max(slot.values()) + 0.7, -0.6)
    ax.grid(axis="y", color=FAINT, linewidth=0.5)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(labelbottom=True)
    ax.set_axisbelow(True)
