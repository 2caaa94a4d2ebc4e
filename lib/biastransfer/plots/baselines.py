"""What stands for "nothing was learned" in a chart: the untrained networks' band, the fixed thumbnail."""

from collections.abc import Iterable, Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from .style import FAINT, NULL

TITLES = {"random": "untrained (random weights)", "thumbnail": "thumbnail (colour and layout)"}
BAND = {"color": FAINT, "linewidth": 9, "solid_capstyle": "butt", "alpha": 0.65, "zorder": 0.6}


def titled(backbone: str) -> str:
    """Return a backbone's name, saying of a null that it is one."""
    return TITLES.get(backbone, backbone)


def lanes(part: pd.DataFrame) -> dict[tuple[str, int], float]:
    """Return (stage, seed) of the rows of ``part`` → how far below its item's place each is drawn."""
    seeds = sorted(part.loc[part["stage"] == "finetuned", "seed"].unique())
    above = -0.17 if seeds else 0.0
    rest = {(stage, seed): above for stage, seed in zip(part["stage"], part["seed"])}
    return rest | {("finetuned", seed): 0.12 + 0.17 * k for k, seed in enumerate(seeds)}


def band(ax: Axes, row: Mapping, at: float, reach: float = 0.16, **look) -> None:
    """Draw on ``ax``, about ``at``, a ``row``'s untrained networks, ``reach`` high, and the thumbnail.

    ``look`` goes before that of `BAND`.
    """
    low, middle, high = (row.get(f"untrained_{name}") for name in ("low", "median", "high"))
    if pd.notna(low) and pd.notna(high):
        ax.plot([low, high], [at, at], **BAND | look)
        ax.plot([middle, middle], [at - reach, at + reach], color=NULL, linewidth=1.2, zorder=0.7)
    if pd.notna(row.get("thumbnail")):
        ax.plot(row["thumbnail"], at, "x", color=NULL, markersize=5, zorder=0.8)


def bands(ax: Axes, part: pd.DataFrame, slots: Mapping[str, float]) -> None:
    """Draw on ``ax`` the nulls of one panel: for each of ``slots`` those of its rows of ``part``.

    Networks of one architecture share a band; where before and after have untrained networks of their own,
    or one of them has none, each band lies about the marker that it belongs to.
    """
    lane = lanes(part)
    for item, rows in part.groupby("item", sort=False):
        stages = rows.drop_duplicates("stage")
        ranges = stages.reindex(columns=["untrained_low", "untrained_high"])
        if len(ranges.drop_duplicates()) < 2:  # NaN is equal to NaN here
            band(ax, stages.iloc[0].to_dict(), slots[item])
            continue
        for number, row in enumerate(stages.to_dict("records")):
            own = row if number == 0 else row | {"thumbnail": None}  # the thumbnail is one for both
            band(ax, own, slots[item] + lane[row["stage"], row["seed"]], reach=0.1, linewidth=5.5)


def handles(frame: pd.DataFrame) -> Iterable[Line2D]:
    """Return the legend's entries for the nulls that ``frame`` has columns for."""
    if "untrained_low" in frame and frame["untrained_low"].notna().any():
        label = "untrained networks: range and median"
        yield Line2D([], [], color=FAINT, linewidth=8, alpha=0.65, label=label)
    if "thumbnail" in frame and frame["thumbnail"].notna().any():
        yield Line2D([], [], color=NULL, marker="x", linestyle="", label="colour and layout alone")
