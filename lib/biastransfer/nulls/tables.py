"""The tables of chapters 3 to 5 with their nulls beside every value."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from biastransfer import association, transfer
from biastransfer.nulls.added import added_intervals
from biastransfer.nulls.detectable import detectable_effect, significant_correlation
from biastransfer.nulls.place import NULLS, UNTRAINED, place
from biastransfer.nulls.shuffled import shuffled_effects
from biastransfer.stats import holm

KEYS = ["backbone", "stage", "target", "seed"]
COLUMNS_SAID = {name: name for name in ("r", "low", "high")}
ITEMS_SAID = {"item": "item", "r_without": "without", "lowest": "lowest", "highest": "highest"}
SAID = [*COLUMNS_SAID.values(), *ITEMS_SAID.values()]
TRANSFER_TABLES = ("transfer", "transfer_references", "transfer_items")
ADJUSTED = ["p_holm", "p_by", "p_bh", "p_maxt"]


def association_table(
    embedded: Mapping, set_name: str, run: str, *, resamples: int = 1000, seed: int = 0, **options
) -> pd.DataFrame:
    """Association tests of every condition, with their place among the nulls and what could be detected.

    Parameters
    ----------
    embedded : mapping
        Condition → class → (n, D) array, the same pictures in the same rows in every condition.
    set_name, run : str
        Name of the analysis set and of the run.
    resamples, seed : int
        Draws of the pictures for the interval of what is added, shuffles of the labels, and their seed.
    **options
        As for `association.tabulate`: X, Y, alternative, method.

    Returns
    -------
    DataFrame
        The columns of `association.tabulate` and of `place`, with added_low, added_high (95 %, pictures
        resampled jointly), shuffled_low, shuffled_high (95 % of d with labels shuffled) and detectable (the
        size found with a probability of 80 % at level .05). Trained networks come first; they alone are the
        family that p-values are adjusted for, the nulls have no adjusted p.

    Raises
    ------
    ValueError
        If the set has no two objects to compare.
    """
    parts = [{c: v for c, v in embedded.items() if (c.backbone in NULLS) == null} for null in (False, True)]
    tables = [association.tabulate(part, set_name, run, seed=seed, **options) for part in parts if part]
    if not any(map(len, tables)):
        classes = ", ".join(dict.fromkeys(name for one in embedded.values() for name in one))
        raise ValueError(
            "an association test needs two objects that also stand with people (car and car+man, sports and "
            f"sports+woman, …); {set_name} has {classes or 'no class'}. Add the classes that lack."
        )
    if len(tables) == 2:
        tables[1] = tables[1].assign(**dict.fromkeys(ADJUSTED, np.nan), n_tests=tables[0]["n_tests"].iloc[0])
    table = place(pd.concat(tables, ignore_index=True), ["A", "B"], "effect_size")
    targets = {"X": options.get("X", "man"), "Y": options.get("Y", "woman")}
    pairs = list(dict.fromkeys(zip(table["A"], table["B"])))
    added = added_intervals(embedded, pairs, **targets, resamples=resamples, seed=seed)
    by_keys = {tuple(condition): condition for condition in embedded}
    rows = []
    for row in table.to_dict("records"):
        condition = by_keys[tuple(row[key] for key in KEYS)]
        sets = [embedded[condition][name] for name in (*targets.values(), row["A"], row["B"])]
        low, high = added.get((condition, row["A"], row["B"]), (np.nan, np.nan))
        shuffled = np.full(2, np.nan)
        if np.isfinite(row["effect_size"]) and condition.backbone != UNTRAINED and resamples:
            shuffled = np.quantile(shuffled_effects(*sets, shuffles=resamples, seed=seed), [0.025, 0.975])
        columns = {"added_low": low, "added_high": high}
        columns |= {"shuffled_low": shuffled[0], "shuffled_high": shuffled[1]}
        rows.append({**columns, "detectable": detectable_effect(row["n_x"], row["n_y"])})
    return table.join(pd.DataFrame(rows, index=table.index))


def association_numbers(frame: pd.DataFrame, level: float = 0.05) -> dict[str, float | int | str]:
    """Count what `association_table` shows, for a chapter's sentences.

    Parameters
    ----------
    frame : DataFrame
        From `association_table`.
    level : float
        Of the tests.

    Returns
    -------
    dict
        Of the trained networks: n_tests, n_significant_holm, n_outside (d larger in size than all untrained
        networks have on the same pair), max_d and max_pair (the largest effect and whose it is); n_untrained,
        and random_max_abs_d and thumbnail_max_abs_d, the largest size of d of an untrained network and of
        colour and layout alone, NaN where there is none.

    Raises
    ------
    ValueError
        If no trained network has an effect size.
    """
    trained = frame[~frame["backbone"].isin(NULLS)]
    if trained["effect_size"].isna().all():
        raise ValueError(
            "the table must hold an effect size of a trained network; it holds "
            f"{', '.join(frame['backbone'].unique()) or 'none'}. Name one more in `backbones`."
        )
    top = trained.loc[trained["effect_size"].abs().idxmax()]
    k = int(frame["n_untrained"].max())
    largest = frame["effect_size"].abs().groupby(frame["backbone"]).max()
    return {
        "n_tests": int(trained["p"].notna().sum()),
        "n_significant_holm": int((trained["p_holm"] < level).sum()),
        "n_outside": int((trained["p_untrained"] < 1.5 / (k + 1)).sum()),
        "max_d": float(top["effect_size"]),
        "max_pair": f"{top['A']} against {top['B']}, {top['backbone']}, {top['stage']}",
        "n_untrained": k,
        **{f"{null}_max_abs_d": float(largest.get(null, float("nan"))) for null in NULLS},
    }


def similarity_differences(frame: pd.DataFrame, X: str = "man", Y: str = "woman") -> pd.DataFrame:
    """Difference of each object's similarity to itself with a man and with a woman, among the untrained.

    Parameters
    ----------
    frame : DataFrame
        From `similarity.tabulate`.
    X, Y : str
        The attributes.

    Returns
    -------
    DataFrame
        Columns backbone, stage, target, seed, object, the two attributes, difference (first − second),
        relative and those of `place` for it, and p_holm (p_untrained after Holm's correction over all
        differences of trained networks); no row where the set has no object with both.

    Notes
    -----
    Cosines of an untrained network lie in a narrow range, so differences of two networks are compared in
    units of each network's own spread: relative is the difference over the standard deviation of its
    inter-class items.
    """
    inter = frame[frame["kind"] == "inter"].assign(target=frame["target"].fillna(""))
    parts = inter["item"].str.extract(r"^(?P<object>[^|]+)[+](?P<person>[^|+]+)[|]")
    tidy = inter.join(parts).dropna(subset="object")
    wide = tidy.pivot_table("value", [*KEYS, "object"], "person", sort=False).reset_index()
    wide = wide.rename_axis(columns=None)
    if not {X, Y} <= set(wide):
        wide = wide.iloc[:0].reindex(columns=[*KEYS, "object", X, Y])
    wide = wide.join(inter.groupby(KEYS)["value"].std().rename("spread"), on=KEYS)
    wide["difference"] = wide[X] - wide[Y]
    wide["relative"] = wide["difference"] / wide["spread"]
    placed = place(wide.drop(columns="spread"), ["object"], "relative")
    return placed.assign(p_holm=holm(placed["p_untrained"].mask(placed["backbone"].isin(NULLS))))


def transfer_tables(
    embedded: Mapping, set_name: str, run: str, *, resamples: int = 10_000, seed: int = 0
) -> dict[str, pd.DataFrame]:
    """Bias transfer scores beside what they are to be held against.

    Parameters
    ----------
    embedded, set_name, run, resamples, seed
        As for `transfer.tabulate`.

    Returns
    -------
    dict of str to DataFrame
        ``transfer``: the columns of `transfer.tabulate`, with n_untrained, untrained_low, untrained_median,
        untrained_high (scores of untrained networks against the same finetuned one), r_significant (the
        smallest score of as many items with an exact p ≤ .05) and p_holm (p_exact after Holm's correction
        over all scores of the set, single seeds and their mean). ``transfer_references``: from
        `transfer.reference_scores`. ``transfer_items``: from `transfer.item_contributions`.

    Raises
    ------
    ValueError
        If no network of `embedded` is finetuned.
    """
    if all(condition.stage != "finetuned" for condition in embedded):
        raise ValueError(
            f"a transfer score needs the same pictures before and after finetuning; {set_name} has none "
            "after. Name a finetuned network, or add vectors_after to the .npz."
        )
    scores = transfer.tabulate(embedded, set_name, run, resamples=resamples, seed=seed)
    references = transfer.reference_scores(embedded, set_name, run)
    keys = ["backbone", "target", "seed", "kind"]
    null = references[references["reference"] == UNTRAINED].groupby(keys, sort=False)["r"]
    bounds = null.agg(["count", "min", "median", "max"]).set_axis(
        ["n_untrained", *(f"untrained_{name}" for name in ("low", "median", "high"))], axis=1
    )
    scores = scores.join(bounds, on=keys)
    scores["n_untrained"] = scores["n_untrained"].fillna(0).astype(int)
    scores = scores.assign(
        r_significant=scores["n"].map(significant_correlation), p_holm=holm(scores["p_exact"])
    )
    contributions = transfer.item_contributions(embedded, set_name, run)
    return dict(zip(TRANSFER_TABLES, (scores, references, contributions)))


def transfer_numbers(
    frame: pd.DataFrame, items: pd.DataFrame, references: pd.DataFrame
) -> dict[str, float | int | str]:
    """Take from `transfer_tables` what a chapter's sentences say of its first network on its first set.

    Parameters
    ----------
    frame, items, references : DataFrame
        The tables ``transfer``, ``transfer_items`` and ``transfer_references`` of `transfer_tables`.

    Returns
    -------
    dict
        main and main_set (names); bts_intra_r, bts_intra_low, bts_intra_high, bts_intra_item (the item that
        raises it most), bts_intra_without (the score without that one), bts_intra_lowest, bts_intra_highest
        (the scores without one item) and the same for inter: of the mean over seeds where there is one.
        bts_other: the first other pretrained network and its median scores in the place of the one before
        finetuning, in words. bts_scores, and bts_within: how many scores the table has, of single seeds and
        all sets, and how many of them do not exceed every untrained network's.
    """
    main, main_set = frame["backbone"].iloc[0], frame["set"].iloc[0]
    said: dict[str, float | int | str] = {"main": main, "main_set": main_set}
    for kind in ("intra", "inter"):  # what a score that is undefined leaves
        said |= dict.fromkeys((f"bts_{kind}_{name}" for name in SAID), np.nan) | {f"bts_{kind}_item": "none"}
    for table, columns in ((frame, COLUMNS_SAID), (transfer.decisive_items(items), ITEMS_SAID)):
        chosen = table[(table["backbone"] == main) & (table["set"] == main_set)]
        averaged = chosen[chosen["seed"].astype(str) == "mean"]
        for row in (averaged if len(averaged) else chosen).to_dict("records"):
            said |= {f"bts_{row['kind']}_{name}": row[column] for column, name in columns.items()}
    ranges = transfer.reference_ranges(references[~references["reference"].isin(NULLS)])
    others = ranges[(ranges["backbone"] == main) & (ranges["set"] == main_set)]
    said["bts_other"] = "no other pretrained network was run"
    for name, rows in list(others.set_index("kind").groupby("reference", sort=False)["median"])[:1]:
        said["bts_other"] = (
            f"{name} scores {rows['intra']:.2f} within classes and {rows['inter']:.2f} between them"
        )
    single = frame[(frame["seed"].astype(str) != "mean") & frame["r"].notna()]
    within = int((single["r"] <= single["untrained_high"]).sum())
    return said | {"bts_scores": len(single), "bts_within": within}
