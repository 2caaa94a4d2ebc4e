"""Charts of the papers' printed tables: tidy frame in, Figure out; nothing is computed here."""

from math import erfc, sqrt

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from .style import FAINT, INK, NULL, STAGES, WIDTH

POINT = STAGES["pretrained"]["color"]
OTHER = STAGES["finetuned"]["color"]


def printed_scores(frame: pd.DataFrame) -> Figure:
    """Draw printed bias transfer scores with their intervals: a panel a target and kind, a row a model.

    Parameters
    ----------
    frame : DataFrame
        Columns model, target, kind, n_items, r, low, high, p_exact; filled where ``p_exact`` is below .05.
    """
    models = list(frame["model"].unique())
    figure, axes = plt.subplots(2, 2, figsize=(WIDTH, 4.4), sharex=True, sharey=True)
    for ax, ((target, kind), part) in zip(axes.flat, frame.groupby(["target", "kind"], sort=False)):
        for y, row in enumerate(part.itertuples()):
            ax.plot([row.low, row.high], [y, y], color=POINT, linewidth=1.6)
            face = POINT if row.p_exact < 0.05 else "white"
            ax.plot(row.r, y, "o", color=POINT, markerfacecolor=face, markersize=6)
        ax.axvline(0, color=INK, linewidth=0.8, linestyle=":")
        ax.set(title=f"{target}, {kind}, n = {part['n_items'].iloc[0]}", xlim=(-0.75, 1.05))
        ax.set_yticks(range(len(models)), models)
        ax.set_ylim(len(models) - 0.5, -0.5)
    for ax in axes[-1]:
        ax.set_xlabel("bias transfer score r")
    plt.close(figure)
    return figure


def printed_associations(frame: pd.DataFrame) -> Figure:
    """Draw the 72 printed effect sizes as a grid, marked by which correction each p survives.

    Parameters
    ----------
    frame : DataFrame
        Columns model, stage, concept_a, concept_b, d, p, holm, benjamini_yekutieli: one-sided p-values.
    """
    frame = frame.assign(
        row=frame["model"] + ", " + frame["stage"], pair=frame["concept_a"] + "\n" + frame["concept_b"]
    )
    d = frame.pivot(index="row", columns="pair", values="d")
    order = [f"{model}, {stage}" for model in frame["model"].unique() for stage in frame["stage"].unique()]
    pairs = list(frame["pair"].unique())
    d = d.loc[order, pairs]
    figure, ax = plt.subplots(figsize=(WIDTH, 5.0))
    image = ax.imshow(d, cmap="PuOr_r", vmin=-1.05, vmax=1.05, aspect="auto")
    for row in frame.itertuples():
        mark = (
            "◆" if row.holm < 0.05 else "◇" if row.benjamini_yekutieli < 0.05 else "·" if row.p < 0.05 else ""
        )
        mark = "−" if row.p > 0.95 else mark
        colour = "white" if abs(row.d) > 0.7 else INK
        text = f"{round(row.d, 2) + 0.0:.2f}".replace("-", "−") + (f" {mark}" if mark else "")
        at, style = (pairs.index(row.pair), order.index(row.row)), {"color": colour, "fontsize": 8.5}
        ax.text(*at, text, ha="center", va="center", **style)
    ax.set_xticks(range(len(pairs)), pairs, fontsize=8.5)
    ax.set_yticks(range(len(order)), order)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    for y in range(2, len(order), 2):
        ax.axhline(y - 0.5, color="white", linewidth=2.5)
    label = "effect size d as printed\n← woman closer to upper   |   man closer to upper →"
    figure.colorbar(image, ax=ax, label=label, shrink=0.8, aspect=60, location="top")
    figure.supxlabel(
        "◆ p < .05 after Holm   ◇ after Benjamini–Yekutieli   · uncorrected   − the other way (1 − p < .05)",
        fontsize=9,
    )
    plt.close(figure)
    return figure


def printed_p_against_z(frame: pd.DataFrame) -> Figure:
    """Draw printed p-values over the permutation z that the printed d implies, with the normal tail.

    Parameters
    ----------
    frame : DataFrame
        Columns model, stage, concept_a, concept_b, z, p, fits.
    """
    figure, ax = plt.subplots(figsize=(WIDTH, 3.6))
    z = np.linspace(-4.2, 9.3, 300)
    from_z = pd.DataFrame({"z": z}).assign(p=[_tail(value) for value in z])
    ax.plot(from_z["z"], from_z["p"], color=NULL, linewidth=1.2)
    ax.annotate("normal tail of z", (4.9, _tail(4.9)), (5.1, 6e-7), color=NULL, fontsize=9)
    for fits, face in ((True, POINT), (False, OTHER)):
        part = frame[frame["fits"] == fits]
        ax.plot(
            part["z"], part["p"], "o" if fits else "D", color=face, markersize=5, alpha=0.85, linestyle=""
        )
    for height, row in zip((8e-4, 1.6e-5), frame[~frame["fits"]].itertuples(), strict=False):
        text = f"{row.model}, {row.concept_a}/{row.concept_b}, {row.stage}"
        ax.annotate(text, (row.z, row.p), (2.2, height), ha="right", va="center", fontsize=8.5, color=OTHER,
                    arrowprops={"arrowstyle": "-", "color": OTHER, "linewidth": 0.8})  # fmt: skip
    ax.axhline(1e-4, color=FAINT, linewidth=1, zorder=0)
    ax.text(9.2, 1.25e-4, "least p of 10,000 draws", ha="right", fontsize=8.5, color=NULL)
    ax.set(yscale="log", ylim=(2e-7, 2), xlabel="z = d·√75", ylabel="printed p, one-sided")
    plt.close(figure)
    return figure


def _tail(z):
    return 0.5 * erfc(z / sqrt(2))


def items_for_power(frame: pd.DataFrame) -> Figure:
    """Draw how many items a comparison of two scores needs, over the difference to be seen.

    Parameters
    ----------
    frame : DataFrame
        Columns difference, items, r.
    """
    figure, ax = plt.subplots(figsize=(WIDTH, 3.2))
    for (r, part), colour in zip(frame.groupby("r"), (POINT, OTHER, NULL), strict=False):
        ax.plot(part["difference"], part["items"], color=colour)
        last = part.iloc[-1]
        end, style = (last["difference"], last["items"]), {"va": "center", "fontsize": 9, "color": colour}
        ax.annotate(f"from r = {r:g}", end, (4, 0), textcoords="offset points", **style)
    for items in (7, 8, 9, 12):
        ax.axhline(items, color=FAINT, linewidth=1, zorder=0)
    ax.text(
        frame["difference"].min(), 12.5, "the paper's 7 to 12 items", fontsize=8.5, color=NULL, va="bottom"
    )
    ax.set(yscale="log", xlabel="difference of two scores", ylabel="items in each score")
    ax.set_xlim(right=frame["difference"].max() * 1.22)
    ax.yaxis.set_major_formatter("{x:,.0f}")
    plt.close(figure)
    return figure
