"""Charts of the measures before and after finetuning: tidy frame in, Figure out; nothing is computed here."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from . import baselines
from .style import ATTRIBUTES, FAINT, INK, NULL, STAGES, WIDTH, attribute_of, panels, readable


def similarities(frame: pd.DataFrame, kinds: Sequence[str] = ("intra", "inter")) -> Figure:
    """Draw similarities before and after finetuning: a row of panels a backbone, a point a seed.

    Parameters
    ----------
    frame : DataFrame
        Columns backbone, stage, seed, kind, item, value, low, high; items in drawing order; where it has
        untrained_low, untrained_median, untrained_high and thumbnail, the nulls behind each row.
    kinds : sequence of str
        Which of "intra" and "inter" become columns.

    Returns
    -------
    Figure
        Horizontal axes are cosine similarities; bars are ``low`` to ``high``. Nulls are grey; a row of stage
        "untrained" is the median of several networks, from the smallest to the largest.
    """
    backbones = list(frame["backbone"].unique())
    slots = [slots_of(frame.loc[frame["kind"] == kind, "item"].unique()) for kind in kinds]
    tallest = max(max(slot.values(), default=0) for slot in slots)
    lane = 0.4 if frame["item"].map(readable).str.contains("\n").any() else 0.3  # inches a row
    size = (WIDTH, (lane * tallest + 1.0) * len(backbones) + 0.6)
    figure, axes = plt.subplots(len(backbones), len(kinds), figsize=size, squeeze=False, sharex="row")
    for row, backbone in zip(axes, backbones, strict=True):
        for ax, kind, slot in zip(row, kinds, slots, strict=True):
            part = frame[(frame["backbone"] == backbone) & (frame["kind"] == kind)]
            baselines.bands(ax, part, slot)
            draw_change(ax, part, slot, labels=[readable(item) for item in slot])
            colour_labels(ax, slot)
            ax.set_title(f"{baselines.titled(backbone) if ax is row[0] else ''}\n{kind}-class")
    for ax in axes[-1]:
        ax.set_xlabel("mean cosine similarity")
    draw_legend(figure, frame)
    plt.close(figure)
    return figure


def associations(frame: pd.DataFrame, *, level: float = 0.05, p: str = "p_holm") -> Figure:
    """Draw association effect sizes before and after finetuning: a panel a backbone, a row an attribute pair.

    Parameters
    ----------
    frame : DataFrame
        Columns backbone, stage, seed, X, Y, A, B, effect_size, low, high and the column named by ``p``; where
        it has untrained_low, untrained_median, untrained_high and thumbnail, the nulls behind each row.
    level, p : float, str
        A marker is filled where the column ``p`` is below ``level``.
    """
    frame = frame.assign(item=frame["A"] + "|" + frame["B"], value=frame["effect_size"])
    backbones = list(frame["backbone"].unique())
    slot = slots_of(frame["item"].unique(), grouped=False)
    figure, axes = panels(len(backbones), lines=len(slot))
    for ax, backbone in zip(axes, backbones):
        part = frame[frame["backbone"] == backbone]
        baselines.bands(ax, part, slot)
        draw_change(ax, part, slot, labels=[readable(item) for item in slot], filled=part[p] < level)
        ax.set_title(baselines.titled(backbone))
        ax.axvline(0, color=INK, linewidth=0.8, zorder=0)
        ax.tick_params(labelbottom=True)
    first = frame.iloc[0]
    direction = f"← {first['Y']} closer to the first of the pair   |   {first['X']} closer to the first →"
    figure.supxlabel(f"effect size d\n{direction}", fontsize=10)
    draw_legend(figure, frame, extra=f"filled: {p.replace('p_', '').capitalize()} p < {level:g}")
    plt.close(figure)
    return figure


def transfer_scores(frame: pd.DataFrame) -> Figure:
    """Draw bias transfer scores with intervals: a row of panels a set, a column a kind, a point a seed.

    Parameters
    ----------
    frame : DataFrame
        Columns set, backbone, seed (a number or "mean", of seed means), kind, r, low, high; where it has
        cross_half and ceiling, the last row's score between halves of the pictures and its upper bound; where
        it has untrained_low to untrained_high, the scores of untrained networks against the finetuned.

    Returns
    -------
    Figure
        1: the order of the similarities is unchanged; 0 (dotted): unrelated.
    """
    sets, kinds, backbones = (list(frame[column].unique()) for column in ("set", "kind", "backbone"))
    size = (WIDTH, (0.28 * (len(frame) / len(sets) / len(kinds) + len(backbones)) + 0.9) * len(sets) + 0.5)
    figure, axes = plt.subplots(len(sets), len(kinds), figsize=size, squeeze=False, sharex=True, sharey=True)
    for row, name in zip(axes, sets, strict=True):
        for ax, kind in zip(row, kinds, strict=True):
            for y, backbone in enumerate(backbones):
                chosen = (frame["set"] == name) & (frame["kind"] == kind) & (frame["backbone"] == backbone)
                _scores(ax, frame[chosen], y)
            ax.axvline(0, color=INK, linewidth=0.8, linestyle=":", zorder=0)
            ax.set(title=f"{name if ax is row[0] else ''}\n{kind}-class", xlim=(-1.08, 1.08))
            ax.set_xticks([-1, -0.5, 0, 0.5, 1], ["−1", "−.5", "0", ".5", "1"])
            ax.set_yticks(range(len(backbones)), backbones)
            ax.set_ylim(len(backbones) - 0.4, -0.6)
    for ax in axes[-1]:
        ax.set_xlabel("bias transfer score r")
    handles = [Line2D([], [], color=STAGES["finetuned"]["color"], marker="D", label="one seed")]
    if (frame["seed"].astype(str) == "mean").any():
        handles.append(Line2D([], [], color=INK, marker="s", label="mean over seeds"))
    if "cross_half" in frame:
        hollow = {"marker": "d", "markerfacecolor": "white", "linestyle": ""}
        bar = {"marker": "|", "markeredgewidth": 2.5, "markersize": 9, "linestyle": ""}
        handles.append(Line2D([], [], color=NULL, label="between halves of the pictures", **hollow))
        handles.append(Line2D([], [], color=NULL, label="ceiling of that", **bar))
    handles += baselines.handles(frame)
    figure.legend(handles=handles, loc="outside upper left", ncols=2, handlelength=1.6)
    plt.close(figure)
    return figure


def _scores(ax: Axes, part: pd.DataFrame, y: float) -> None:
    """Draw one backbone's scores below each other: the seeds, their mean, the one between halves."""
    halves = "cross_half" in part
    lanes = [y + 0.2 * (step - (len(part) + halves - 1) / 2) for step in range(len(part) + halves)]
    for at, row in zip(lanes, part.itertuples()):
        mean = str(row.seed) == "mean"
        baselines.band(ax, row._asdict(), at, reach=0.07)
        colour = INK if mean else STAGES["finetuned"]["color"]
        _interval(ax, row.low, row.high, at, colour)
        ax.plot(row.r, at, "s" if mean else "D", color=colour, markersize=6)
    if halves and len(part):
        last, at = part.iloc[-1], lanes[-1]
        ax.plot([last["ceiling"]] * 2, [at - 0.08, at + 0.08], color=NULL, linewidth=2.5)
        ax.plot(last["cross_half"], at, "d", color=NULL, markerfacecolor="white", markersize=5.5)


def finetuning_curves(history: pd.DataFrame, chance: Mapping[str, float] | None = None) -> Figure:
    """Draw what each epoch brought: a panel a measure, a line a seed and split, chance dotted.

    Parameters
    ----------
    history : DataFrame
        Columns seed, epoch and any of train_loss, val_loss, val_map, val_micro_f1.
    chance : mapping of str to float
        The value that needs no learning, by column name.
    """
    panels = {"loss ↓": ["train_loss", "val_loss"], "mAP ↑": ["val_map"], "micro-F1 ↑": ["val_micro_f1"]}
    panels = {title: [c for c in columns if c in history] for title, columns in panels.items()}
    figure, axes = plt.subplots(1, len(panels), figsize=(WIDTH, 2.5), sharex=True)
    for ax, (title, columns) in zip(axes, panels.items(), strict=True):
        for column in columns:
            _curve(ax, history, column, label=len(columns) > 1)
        if chance and title != "loss ↓" and (at := chance.get(columns[0])) is not None:
            ax.axhline(at, color=NULL, linewidth=1, linestyle=":")
            ax.annotate(  # below a high line, where there is room: curves end above it
                "chance", (history["epoch"].max(), at), xytext=(0, -9 if at > 0.15 else 8), color=NULL,
                textcoords="offset points", ha="right", va="center", fontsize=9,
            )  # fmt: skip
        ax.set(title=title, xlabel="epoch")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_ylim(0, None if title == "loss ↓" else 1.02)
    plt.close(figure)
    return figure


def _curve(ax: Axes, history: pd.DataFrame, column: str, label: bool) -> None:
    """Draw one measure over epochs, a line a seed; name it where a panel holds two."""
    training = column.startswith("train")
    colour, style, marker = (NULL, "--", "o") if training else (STAGES["finetuned"]["color"], "-", "D")
    for number, (_, run) in enumerate(history.groupby("seed")):
        name = ("training" if training else "validation") if label and not number else None
        ax.plot(run["epoch"], run[column], style, color=colour, marker=marker, markersize=4, label=name)
    if label:
        ax.legend(loc="upper right", handlelength=1.6, borderpad=0)  # losses fall: that corner is free


def slots_of(items: Sequence[str], grouped: bool = True) -> dict[str, float]:
    """Give each item its place from top to bottom, with a gap where the object changes."""
    slots, at, previous = {}, 0.0, None
    for item in items:
        group = item.split("|")[0].split("+")[0]
        if grouped and "|" in item and previous is not None:
            at += 0.45 * (group != previous)
        slots[item], previous = at, group
        at += 1.0
    return slots


def draw_change(ax: Axes, part: pd.DataFrame, slots: dict[str, float], labels, filled=None) -> None:
    """Draw on ``ax`` the rows of ``part``, each at its place in ``slots``: pretrained above, seeds below.

    ``labels`` name the places; a marker is hollow where ``filled``, by the rows' index, is False.
    """
    lane = baselines.lanes(part)
    for index, row in part.iterrows():
        look = STAGES[row["stage"]]
        colour = NULL if row["backbone"] in baselines.TITLES else look["color"]
        at = slots[row["item"]] + lane[row["stage"], row["seed"]]
        face = colour if filled is None or filled[index] else "white"
        _interval(ax, row["low"], row["high"], at, colour)
        ax.plot(row["value"], at, look["marker"], color=colour, markerfacecolor=face, markersize=5)
    ax.set_yticks(list(slots.values()), labels)
    ax.set_ylim(max(slots.values(), default=0) + 0.7, -0.6)
    ax.grid(axis="y", color=FAINT, linewidth=0.5)
    ax.tick_params(axis="y", length=0)
    ax.set_axisbelow(True)


def _interval(ax: Axes, low: float, high: float, at: float, colour: str) -> None:
    """Draw an interval where there is one."""
    if pd.notna(low) and pd.notna(high):
        ax.plot([low, high], [at, at], color=colour, linewidth=1.3, alpha=0.75, solid_capstyle="butt")


def colour_labels(ax: Axes, items) -> None:
    """Colour the labels that name a perceived gender as everywhere in the book."""
    for text, item in zip(ax.get_yticklabels(), items, strict=True):
        text.set_color(ATTRIBUTES.get(attribute_of(item), INK))


def draw_legend(figure: Figure, frame: pd.DataFrame, extra: str = "") -> None:
    """Name the markers that ``frame`` needs above a ``figure``, and ``extra`` beside them."""
    names = {"pretrained": "pretrained", "finetuned": "finetuned, a marker a seed"}
    handles = [
        Line2D([], [], linestyle="-", label=names[stage], **STAGES[stage])
        for stage in names
        if ((frame["stage"] == stage) & ~frame["backbone"].isin(baselines.TITLES)).any()
    ]
    if (frame["stage"] == "untrained").any():
        several = {"color": NULL, "marker": STAGES["untrained"]["marker"]}
        handles.append(Line2D([], [], label="untrained: median, range", **several))
    elif (frame["backbone"] == "random").any():
        handles.append(Line2D([], [], color=NULL, marker="o", label="untrained"))
    handles += baselines.handles(frame)
    if extra:
        handles.append(Line2D([], [], linestyle="", label=extra))
    columns = 2 if len(handles) > 3 else len(handles)
    figure.legend(
        handles=handles, loc="outside upper left", ncols=columns, columnspacing=1.2, handlelength=1.6
    )
