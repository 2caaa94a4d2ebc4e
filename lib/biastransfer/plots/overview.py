"""Chart of the similarities of many networks beside each other: tidy frame in, Figure out."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from . import baselines
from .charts import colour_labels, draw_change, draw_legend, slots_of
from .style import WIDTH, readable

COLUMNS = 3  # panels beside each other that still read on a phone
GAP = 0.8  # rows between the two kinds


def similarity_overview(frame: pd.DataFrame) -> Figure:
    """Draw similarities of several networks, a narrow panel each, all with the same rows.

    Parameters
    ----------
    frame : DataFrame
        As for `similarities`.

    Returns
    -------
    Figure
        Intra-class above, inter-class below, named once a row of panels; horizontal axes are cosine
        similarities, each with a range of its own.
    """
    backbones = list(frame["backbone"].unique())
    slots: dict[str, float] = {}
    for kind in frame["kind"].unique():
        start = max(slots.values(), default=-1 - GAP) + 1 + GAP
        own = slots_of(frame.loc[frame["kind"] == kind, "item"].unique())
        slots |= {item: at + start for item, at in own.items()}
    columns = min(COLUMNS, len(backbones))
    rows = -(-len(backbones) // columns)
    size = (WIDTH, (0.2 * max(slots.values()) + 0.9) * rows + 0.6)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, sharey=True)
    for ax in axes.flat[len(backbones) :]:
        ax.set_axis_off()
    for ax, backbone in zip(axes.flat, backbones):
        part = frame[frame["backbone"] == backbone]
        draw_change(ax, part, slots, labels=[readable(item).replace("\n", " ") for item in slots])
        title = baselines.titled(backbone).replace(" (", "\n(").replace(" and ", "\nand ")
        ax.set_title(title, fontsize=9.5)
        ax.tick_params(axis="x", labelsize=8.5)
        low, high = ax.get_xlim()
        ax.set_xlim(max(low, -1.03), min(high, 1.03))  # intervals of few pictures run past it, no cosine does
        if ax in axes[:, 0]:
            colour_labels(ax, slots)
    figure.supxlabel("mean cosine similarity", fontsize=10)
    draw_legend(figure, frame)
    plt.close(figure)
    return figure
