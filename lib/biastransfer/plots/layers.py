"""Chart of scores along a network: tidy frame in, Figure out; nothing is computed here."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .style import INK, NULL, STAGES, WIDTH


def transfer_by_layer(frame: pd.DataFrame) -> Figure:
    """Draw bias transfer scores from layer to layer: a panel a kind, a line for each finetuning.

    Parameters
    ----------
    frame : DataFrame
        Columns backbone, seed, layer (in drawing order), kind, r, low, high, ceiling, cross_half.

    Returns
    -------
    Figure
        Bars are ``low`` to ``high``; grey, the score between halves of the pictures and its ceiling.
    """
    kinds, layers = list(frame["kind"].unique()), list(frame["layer"].unique())
    at = {layer: float(place) for place, layer in enumerate(layers)}
    figure, axes = plt.subplots(1, len(kinds), figsize=(WIDTH, 2.7), squeeze=False, sharey=True)
    for ax, kind in zip(axes[0], kinds, strict=True):
        for _, part in frame[frame["kind"] == kind].groupby(["backbone", "seed"], sort=False):
            x = part["layer"].map(at)
            ax.vlines(
                x, part["low"], part["high"], color=STAGES["finetuned"]["color"], linewidth=1.3, alpha=0.75
            )
            ax.plot(x, part["r"], "-", markersize=6, linewidth=1, **STAGES["finetuned"])
            ax.plot(x + 0.14, part["cross_half"], "d", color=NULL, markerfacecolor="white", markersize=5.5)
            ax.hlines(part["ceiling"], x + 0.05, x + 0.23, color=NULL, linewidth=2.5)
        ax.axhline(0, color=INK, linewidth=0.8, linestyle=":", zorder=0)
        ax.set(title=f"{kind}-class", ylim=(-1.08, 1.08), xlim=(-0.4, len(layers) - 0.5))
        ax.set_xticks(range(len(layers)), layers)
    axes[0][0].set_yticks([-1, -0.5, 0, 0.5, 1], ["−1", "−.5", "0", ".5", "1"])
    axes[0][0].set_ylabel("bias transfer score r")
    handles = [
        Line2D([], [], label="all pictures", **STAGES["finetuned"]),
        Line2D([], [], color=NULL, marker="d", markerfacecolor="white", linestyle="", label="between halves"),
        Line2D([], [], color=NULL, linewidth=2.5, label="ceiling of that"),
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=3, handlelength=1.6)
    plt.close(figure)
    return figure
