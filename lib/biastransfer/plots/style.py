"""The one style of every figure: colours with one meaning throughout the book, sizes, words on axes."""

import matplotlib.pyplot as plt
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

WIDTH = 6.2  # inches; at 150 dots an inch a figure fills the text column, and still reads at 390 px
STAGES = {
    "pretrained": {"color": "#0072B2", "marker": "o"},
    "finetuned": {"color": "#D55E00", "marker": "D"},
    "untrained": {"color": "#6B6B6B", "marker": "s"},
}
ATTRIBUTES = {"man": "#00664E", "woman": "#8F3A84"}
NULL = "#6B6B6B"  # the untrained network and everything that stands for "nothing was learned"
FAINT = "#C9C9C9"
INK = "#262626"


def set_style() -> None:
    """Set the one style of every figure: opaque white ground, readable when the page is dark."""
    sns.set_theme(
        style="ticks",
        rc={
            "figure.dpi": 150, "figure.facecolor": "white", "savefig.facecolor": "white",
            "font.size": 10, "axes.titlesize": 10.5, "axes.labelsize": 10, "legend.fontsize": 9.5,
            "xtick.labelsize": 9.5, "ytick.labelsize": 9.5, "axes.titlelocation": "left",
            "text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK,
            "axes.edgecolor": NULL, "axes.linewidth": 0.8,
            "axes.spines.top": False, "axes.spines.right": False, 
            "legend.frameon": False, "figure.constrained_layout.use": True,
        },
    )  # fmt: skip


def panels(count: int, *, lines: int) -> tuple[Figure, list[Axes]]:
    """Return a figure with ``count`` panels, two beside each other, of so many ``lines`` and shared axes."""
    columns = min(2, count)
    rows = -(-count // columns)
    size = (WIDTH, (0.37 * max(2, lines) + 0.55) * rows + 1.0)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, sharex=True, sharey=True)
    for ax in axes.flat[count:]:
        ax.set_axis_off()
    return figure, list(axes.flat[:count])


def attribute_of(label: str) -> str:
    """Return the attribute class that a class or item names ("car+woman|car" → "woman"), or "".

    Examples
    --------
    >>> attribute_of("car+woman|car"), attribute_of("man"), attribute_of("car|random")
    ('woman', 'man', '')
    """
    words = label.replace("|", "+").split("+")
    return next((word for word in words if word in ATTRIBUTES), "")


def readable(label: str) -> str:
    """Return a class or item as axis text, on two lines where it is long.

    Examples
    --------
    >>> readable("car+man|car")
    'car + man vs car'
    """
    joint = " vs " if len(label) <= 24 else "\nvs "
    return label.replace("+", " + ").replace("|", joint)
