"""What stands for "nothing was learned" in a chart: the untrained networks' band, the fixed thumbnail."""

from collections.abc import Iterable, Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from .style import FAINT, NULL

TITLES = {"random": "random (untrained)", "thumbnail": "thumbnail (colour and layout)"}
BAND = {"color": FAINT, "linewidth": 9, "solid_capstyle": "butt", "alpha": 0.65, "zorder": 0.6}


def titled(backbone: str) -> str:
    """Return a backbone's name, saying of a null that it is one."""
    return TITLES.get(backbone, backbone)


def band(ax: Axes, row: Mapping, at: float, reach: float = 0.16) -> None:
    """Draw on ``ax``, about ``at``, a ``row``'s untrained networks, ``reach`` high, and the thumbnail."""
    low, middle, high = (row.get(f"untrained_{name}") for name in ("low", "median", "high"))
    if pd.notna(low) and pd.notna(high):
        ax.plot([low, high], [at, at], **BAND)
        ax.plot([middle, middle], [at - reach, at + reach], color=NULL, linewidth=1.2, zorder=0.7)
    if pd.notna(row.get("thumbnail")):
        ax.plot(row["thumbnail"], at, "x", color=NULL, markersize=5, zorder=0.8)


def bands(ax: Axes, part: pd.DataFrame, slots: Mapping[str, float]) -> None:
    """Draw on ``ax`` the nulls of one panel: those of the first row of ``part`` for each of ``slots``."""
    for row in part.drop_duplicates("item").to_dict("records"):
        band(ax, row, slots[row["item"]])


def handles(frame: pd.DataFrame) -> Iterable[Line2D]:
    """Return the legend's entries for the nulls that ``frame`` has columns for."""
    if "untrained_low" in frame and frame["untrained_low"].notna().any():
        label = "untrained networks: range and median"
        yield Line2D([], [], color=FAINT, linewidth=8, alpha=0.65, label=label)
    if "thumbnail" in frame and frame["thumbnail"].notna().any():
        yield Line2D([], [], color=NULL, marker="x", linestyle="", label="colour and layout alone")
