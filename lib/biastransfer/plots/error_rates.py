"""Chart of simulated error rates: tidy frames in, Figure out; nothing is computed here."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .style import INK, NULL, WIDTH

LOOKS = [("o", INK, "-"), ("s", NULL, "-"), ("^", "white", "--"), ("D", "#B0B0B0", "--"), ("v", INK, ":")]


def error_rates(coverage: pd.DataFrame, type_one: pd.DataFrame, level: float = 0.05) -> Figure:
    """Draw how often intervals hold the true value, and how often tests find what is not there.

    Parameters
    ----------
    coverage : DataFrame
        Columns measure, n, value, low, high: shares of trials with their Monte Carlo intervals.
    type_one : DataFrame
        The same, of rejections at one level.
    level : float
        What tests promise at most; intervals promise one minus it.

    Returns
    -------
    Figure
        Coverage on the left, rejections on the right, both over n; the grey line is what is promised.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 4.0))
    _rates(left, coverage, 1 - level)
    left.set(title=f"{1 - level:.0%} intervals: coverage".replace("%", " %"), xlabel="pictures a set")
    left.set_ylim(1 - 3 * level, 1)
    _rates(right, type_one, level)
    right.set(
        title=f"no effect: share of p ≤ {level:g}", xlabel="pictures a set, or items", ylim=(0, 2 * level)
    )
    for ax in (left, right):
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), handlelength=2.4, fontsize=9)
    plt.close(figure)
    return figure


def _rates(ax: Axes, frame: pd.DataFrame, promised: float) -> None:
    """Draw one panel: a line a measure over n, its Monte Carlo intervals, and what is promised."""
    ax.axhline(promised, color=NULL, linewidth=1, zorder=0)
    sizes = sorted(frame["n"].unique())
    measures = frame["measure"].unique()
    for number, (measure, (marker, face, line)) in enumerate(zip(measures, LOOKS)):
        part = frame[frame["measure"] == measure].sort_values("n")
        at = part["n"].map(sizes.index) + 0.12 * (number - (len(measures) - 1) / 2)
        ax.vlines(at, part["low"], part["high"], color=INK, linewidth=0.8)
        style = {"marker": marker, "markerfacecolor": face, "linestyle": line}
        ax.plot(at, part["value"], color=INK, linewidth=0.8, markersize=5, label=measure, **style)
    ax.set_xticks(range(len(sizes)), sizes)
