"""Chart of how time and memory grow with the number of pictures; nothing is computed here."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from .style import INK, NULL, WIDTH

LOOKS = [("o", INK), ("s", "white"), ("^", NULL), ("D", "#B0B0B0")]


def growth(table: pd.DataFrame) -> Figure:
    """Draw processor time and peak memory over pictures, both axes in powers of ten.

    Parameters
    ----------
    table : DataFrame
        Columns pictures, measure, seconds, memory_mib, vectors_mib.

    Returns
    -------
    Figure
        Seconds on the left, MiB on the right; the grey lines are proportional growth, and the vectors' size.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 4.0))
    sizes = table.drop_duplicates("pictures").sort_values("pictures")
    for number, (measure, part) in enumerate(table.groupby("measure", sort=False)):
        marker, face = LOOKS[number % len(LOOKS)]
        style = {"marker": marker, "markerfacecolor": face, "color": INK, "linewidth": 0.8, "markersize": 5}
        left.plot(part["pictures"], part["seconds"], label=measure, **style)
        right.plot(part["pictures"], part["memory_mib"], label=measure, **style)
    most = table[table["pictures"] == sizes["pictures"].iloc[-1]]["seconds"].max()
    shares = sizes["pictures"] / sizes["pictures"].iloc[-1]
    left.plot(sizes["pictures"], most * shares, color=NULL, linewidth=1, zorder=0, label="proportional")
    right.plot(
        sizes["pictures"],
        sizes["vectors_mib"],
        color=NULL,
        linewidth=1,
        zorder=0,
        label="size of the vectors",
    )
    for ax, title, unit in (
        (left, "processor time", "seconds"),
        (right, "peak memory", "MiB"),
    ):
        ax.set(xscale="log", yscale="log", title=title, xlabel="pictures", ylabel=unit)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), fontsize=9)
    plt.close(figure)
    return figure
