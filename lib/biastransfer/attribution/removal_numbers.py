"""The numbers of chapter 07, from its tables alone: a page that shows committed results has no more."""

import numpy as np
import pandas as pd

from biastransfer.attribution.person_removal import REDRAWN
from biastransfer.attribution.removal_effects import ALL
from biastransfer.attribution.removal_verdicts import carriers, in_words, leaving, share_summary

PLAIN = "mean"
STAGES = {"before": "pretrained", "after": "finetuned"}


def chapter_numbers(pixels: pd.DataFrame, removal: pd.DataFrame, pictures: pd.DataFrame, fill: str) -> dict:
    """Return name → number or words, for both stages and the first finetuning.

    Parameters
    ----------
    pixels, removal, pictures : DataFrame
        The chapter's tables: shares of maps, effects of removals, and what was measured of each picture.
    fill : str
        The in-painter whose removals are told in the first place.

    Returns
    -------
    dict
        ``person_before``, ``elsewhere_after``, …: share that leaves with a part, in words, with its interval;
        ``plain_…`` and ``redrawn_…``: the same with the person under mean grey, and where the scene was drawn
        again without the person; ``person_others``: what leaves with the person after each other finetuning;
        ``d_…``, ``d_without_…``: effect sizes; ``map_…``: share of the map on the person, beside ``area``;
        counts.
    """
    seed = int(removal.loc[removal["stage"] == STAGES["after"], "seed"].min())
    found: dict[str, float | int | str] = {"n_pictures": pictures["picture"].nunique()}
    found |= {
        f"n_{one}": int((pictures.drop_duplicates("picture")["attribute"] == one).sum())
        for one in ("man", "woman")
    }
    one_seed = removal[(removal["seed"] == seed) | (removal["stage"] == STAGES["before"])].assign(seed=0)
    for when, stage in STAGES.items():
        for part in ("person", "elsewhere", "object"):
            found[f"{part}_{when}"] = in_words(leaving(one_seed, fill, removed=part)[stage])
        plain = leaving(one_seed, PLAIN).get(stage)
        found[f"plain_{when}"] = in_words(plain) if plain else "not tried"
        exact = leaving(one_seed, REDRAWN).get(stage)
        found[f"redrawn_{when}"] = in_words(exact) if exact else "not known for photographs"
        whole = leaving(one_seed, fill, removed="nothing")[stage]
        found[f"difference_{when}"] = f"{whole['value']:.4f} ({whole['low']:.4f} to {whole['high']:.4f})"
        chosen = one_seed[
            (one_seed["object"] == ALL) & (one_seed["kind"] == "d") & (one_seed["fill"] == fill)
        ]
        d = chosen[chosen["stage"] == stage].set_index("removed")["value"]
        found[f"d_{when}"], found[f"d_without_{when}"] = d["nothing"], d["person"]
        found[f"map_{when}"] = _on_person(pixels, stage)
    after = removal[removal["stage"] == STAGES["after"]]
    others = [
        f"seed {other}, {in_words(leaving(after, fill, seed=other)[STAGES['after']])}"
        for other in sorted(set(after["seed"]) - {seed})
    ]
    found["person_others"] = "; ".join(others) or "none was tried"
    area = share_summary(pixels[pixels["region"] == "person"])["area"]
    found["area"] = float(area.mean()) if len(area) else float("nan")
    verdicts = carriers(one_seed[one_seed["fill"] == fill])
    counts = verdicts["verdict"].value_counts()
    listed = ", ".join(f"{name} {count} of {len(verdicts)}" for name, count in counts.items())
    return found | {"verdicts": listed, "n_verdicts": len(verdicts), "fill": fill}


def _on_person(pixels: pd.DataFrame, stage: str) -> str:
    """Return the smallest and largest mean share on the person over the maps that are no controls."""
    chosen = (pixels["stage"] == stage) & (pixels["region"] == "person") & (pixels["score"] == "association")
    summary = share_summary(pixels[chosen])
    summary = summary[(summary["measure"] == "share") & (summary["fill"] != "") & summary["value"].notna()]
    if not len(summary):
        return "no share"
    return f"{100 * summary['value'].min():.0f} to {100 * summary['value'].max():.0f} %"


def left_after(removal: pd.DataFrame, kind: str = "difference") -> pd.DataFrame:
    """Return what each removal takes of the association over all objects, a row a network, fill and removal.

    Parameters
    ----------
    removal : DataFrame
    kind : {"difference", "d"}

    Returns
    -------
    DataFrame
        stage, seed, fill, removed, value, share, and "left, 95 %" and "share, 95 %" as text. The whole
        picture stands once a network, without a fill.
    """
    chosen = removal[(removal["object"] == ALL) & (removal["kind"] == kind) & removal["value"].notna()].copy()
    for name in ("left", "share"):
        bounds = zip(chosen[f"{name}_low"], chosen[f"{name}_high"])
        spec = ".4f" if (name, kind) == ("left", "difference") else ".2f"
        chosen[f"{name}, 95 %"] = [
            f"{a:{spec}} to {b:{spec}}" if np.isfinite(a) else np.nan for a, b in bounds
        ]
    whole = chosen["removed"] == "nothing"
    chosen.loc[whole, "fill"] = "–"
    repeated = whole & chosen.duplicated(["stage", "seed", "removed"])
    columns = ["stage", "seed", "fill", "removed", "value", "left, 95 %", "share", "share, 95 %"]
    return chosen.loc[~repeated, columns]
