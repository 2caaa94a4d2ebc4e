"""What an analysis set looks like: pictures of every class on one sheet, and how many there are."""

from collections.abc import Mapping, Sequence
from itertools import groupby

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from .style import ATTRIBUTES, FAINT, INK, WIDTH, attribute_of, readable

THUMBNAILS = 9  # across a sheet, shared by the classes of one row
GAP = 0.14  # inches between two classes
TITLE = 0.3  # inches above a class
STEP = (WIDTH - 2 * GAP) / THUMBNAILS


def contact_sheet(pictures: Mapping[str, Sequence], counts: Mapping[str, int], *, lines: int = 2) -> Figure:
    """Draw the first pictures of every class, an object and its combinations side by side.

    Parameters
    ----------
    pictures : mapping of str to sequence of (H, W, 3) uint8 arrays
        By class, in drawing order; each picture is cut to its middle square. Only what fits is drawn.
    counts : mapping of str to int
        How many pictures each class has in all.
    lines : int
        Lines of thumbnails a class; a class alone in its row takes one.

    Returns
    -------
    Figure
        One title a class, in the colour of the perceived gender that it names.
    """
    rows = sheet_rows(list(pictures))
    depths = [(lines if len(row) > 1 else 1) * STEP + TITLE for row in rows]
    height = sum(depths)
    figure = plt.figure(figsize=(WIDTH, height), layout="none")
    for number, row in enumerate(rows):
        across = THUMBNAILS // len(row)
        top = height - sum(depths[:number])
        for place, name in enumerate(row):
            left = place * (across * STEP + GAP)
            figure.text(
                left / WIDTH, (top - TITLE + 0.07) / height, f"{readable(name)} (n = {counts[name]})",
                color=ATTRIBUTES.get(attribute_of(name), INK), fontsize=9.5,
            )  # fmt: skip
            for index, pixels in enumerate(pictures[name][: across * (lines if len(row) > 1 else 1)]):
                line, column = divmod(index, across)
                x, y = left + column * STEP, top - TITLE - (line + 1) * STEP
                ax = figure.add_axes((x / WIDTH, y / height, 0.96 * STEP / WIDTH, 0.96 * STEP / height))
                ax.imshow(_middle_square(pixels))
                ax.set_axis_off()
    plt.close(figure)
    return figure


def sheet_rows(classes: Sequence[str]) -> list[list[str]]:
    """Return the rows of a sheet: an object with its combinations, lone classes together, three a row.

    Parameters
    ----------
    classes : sequence of str
        Class names, "car+man" for a combination.

    Examples
    --------
    >>> sheet_rows(["man", "woman", "random", "stop sign", "car", "car+man", "car+woman"])
    [['man', 'woman', 'random'], ['stop sign'], ['car', 'car+man', 'car+woman']]
    """
    groups = [list(group) for _, group in groupby(classes, lambda name: name.split("+")[0])]
    rows: list[list[str]] = []
    lone = False
    for group in groups:
        if lone and len(group) == 1 and len(rows[-1]) < 3:
            rows[-1] += group
        else:
            rows += [group[start : start + 3] for start in range(0, len(group), 3)]
        lone = len(group) == 1
    return rows


def set_sizes(sizes: pd.DataFrame) -> Figure:
    """Draw how many pictures each class holds, and how many were left out, with the numbers beside the bars.

    Parameters
    ----------
    sizes : DataFrame
        Columns class, kept, left_out; a row a class in drawing order.
    """
    figure, ax = plt.subplots(figsize=(WIDTH, 0.27 * len(sizes) + 0.8))
    names, places = list(sizes["class"]), range(len(sizes))
    colours = [ATTRIBUTES.get(attribute_of(name), FAINT) for name in names]
    ax.barh(places, sizes["kept"], color=colours, height=0.62)
    hatched = {"color": "white", "edgecolor": INK, "hatch": "////", "linewidth": 0.8}
    for place, row in zip(places, sizes.itertuples(), strict=True):
        if row.left_out:
            ax.barh(place, row.left_out, left=row.kept, height=0.62, **hatched)
        out = f" ({row.left_out} left out)" if row.left_out else ""
        ax.annotate(
            f"{row.kept}{out}", (row.kept + row.left_out, place), xytext=(4, 0), textcoords="offset points",
            va="center", fontsize=9.5,
        )  # fmt: skip
    ax.set_yticks(places, [readable(name) for name in names])
    for text, name in zip(ax.get_yticklabels(), names, strict=True):
        text.set_color(ATTRIBUTES.get(attribute_of(name), INK))
    ax.set_ylim(len(sizes) - 0.4, -0.6)
    ax.set_xlim(0, 1.3 * (sizes["kept"] + sizes["left_out"]).max())
    ax.set_xlabel("pictures")
    ax.tick_params(axis="y", length=0)
    plt.close(figure)
    return figure


def _middle_square(pixels):
    """Cut the middle square out of a picture, thinned to what a thumbnail can show."""
    height, width = pixels.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    thin = max(1, side // 320)
    return pixels[top : top + side : thin, left : left + side : thin]
