"""The ledger as a mosaic: tidy frame in, Figure out; nothing is computed here."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .style import FAINT, INK, NULL, WIDTH

ACROSS = 36  # squares in a line: six networks by six pairs are one line of Table 9
DIFFERS = "#B3123B"
TITLES = {
    "printed": "printed numbers against runs",
    "re-analysis": "printed numbers against the printed tables",
    "claims": "conclusions against runs",
}
MARKS = {
    "agrees": {"marker": "s", "color": INK, "markeredgecolor": INK},
    "differs": {"marker": "X", "color": DIFFERS, "markeredgecolor": DIFFERS},
    "not comparable": {"marker": "s", "color": FAINT, "markeredgecolor": FAINT},
    "not run": {"marker": "s", "color": "white", "markeredgecolor": NULL},
}


def verdicts(frame: pd.DataFrame) -> Figure:
    """Draw a mark for each number, in lines by table and in the order of the verdicts, with a legend.

    Parameters
    ----------
    frame : DataFrame
        Columns part, table, verdict; a panel a part. Verdicts: agrees, differs, not comparable, not run.
    """
    parts = {
        part: list(rows.groupby("table", sort=False)) for part, rows in frame.groupby("part", sort=False)
    }
    lines = [sum(-(-len(rows) // ACROSS) + 0.4 for _, rows in tables) for tables in parts.values()]
    size = (WIDTH, 0.17 * sum(lines) + 0.42 * len(parts) + 0.45)
    figure, axes = plt.subplots(len(parts), 1, figsize=size, squeeze=False, height_ratios=lines, sharex=True)
    for ax, (part, tables) in zip(axes[:, 0], parts.items()):
        _panel(ax, tables)
        ax.set_title(TITLES.get(part, part))
    names = [name for name in MARKS if (frame["verdict"] == name).any()]
    handles = [Line2D([], [], linestyle="", markersize=6, label=name, **MARKS[name]) for name in names]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(names), handletextpad=0.2)
    plt.close(figure)
    return figure


def _panel(ax, tables):
    top, ticks = 0.0, {}
    for table, rows in tables:
        ticks[f"{table} ({len(rows)})"] = top
        ordered = sorted(rows["verdict"], key=list(MARKS).index)
        for verdict in dict.fromkeys(ordered):
            places = [place for place, own in enumerate(ordered) if own == verdict]
            x, y = [place % ACROSS for place in places], [top + place // ACROSS for place in places]
            ax.plot(x, y, linestyle="", markersize=5.6, markeredgewidth=0.8, **MARKS[verdict])
        top += -(-len(rows) // ACROSS) + 0.4
    ax.set_yticks(list(ticks.values()), list(ticks))
    ax.set(ylim=(top - 0.7, -0.7), xlim=(-1, ACROSS), xticks=[])
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
