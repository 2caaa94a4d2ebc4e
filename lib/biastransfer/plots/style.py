"""The one style of every figure: colours with one meaning throughout the book, sizes, words on axes."""

import seaborn as sns

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
