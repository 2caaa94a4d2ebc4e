"""The attribution chapter's answers: what its figures and tables show, and the numbers in its text."""

from collections.abc import Mapping

import pandas as pd

from biastransfer.attribution.comparison import MAPS, against, between_fills, paired_differences, summarise
from biastransfer.attribution.comparison_ranks import rank_agreement, ranks
from biastransfer.attribution.evaluation_checks import controls
from biastransfer.attribution.evaluation_study import PLAIN
from biastransfer.attribution.metrics import METRICS

LOCALISATION = ("localisation", "pointing_game", "mass_inside_boxes")
_ORDERED = ("deletion", PLAIN)  # the metric and fill by whose means the maps are listed


def ranking(rows: pd.DataFrame, *metrics: str) -> pd.DataFrame:
    """Return means, intervals and ranks of all maps under some metrics and all their fills.

    Parameters
    ----------
    rows : DataFrame
        As `evaluation.evaluate` returns them.
    *metrics : str

    Returns
    -------
    DataFrame
        method, fill, setting, metric, metric_fill, label (the metric and its direction), value, low, high (of
        the mean), rank, rank_low, rank_high, best, n, undefined, at_floor; maps in the order of their means
        under deletion with mean grey.
    """
    keys = [*MAPS, "metric", "metric_fill"]
    part = rows[rows["metric"].isin(metrics)]
    placed = ranks(part).rename(columns={"low": "rank_low", "high": "rank_high"})
    joined = summarise(part).merge(placed[[*keys, "rank", "rank_low", "rank_high", "best"]], on=keys)
    first = summarise(rows[(rows["metric"] == _ORDERED[0]) & (rows["metric_fill"] == _ORDERED[1])])
    first = first.sort_values("value", kind="stable")
    order = {one: at for at, one in enumerate(first[list(MAPS)].itertuples(index=False, name=None))}
    places = [
        (list(metrics).index(metric), order.get(tuple(one), len(order)))
        for metric, *one in joined[["metric", *MAPS]].itertuples(index=False, name=None)
    ]
    labels = [METRICS[name].label for name in joined["metric"]]
    joined = joined.assign(label=labels, place=places).sort_values("place", kind="stable")
    columns = [*keys, "label", "value", "low", "high", "rank", "rank_low", "rank_high", "best"]
    return joined[[*columns, "n", "undefined", "at_floor"]].reset_index(drop=True)


def main_curves(curves: pd.DataFrame) -> pd.DataFrame:
    """Return of `evaluation_study.mean_curves`' ``curves`` those of maps without blur or in-painter."""
    return curves[curves["fill"].isin([PLAIN, "none"])]


def by_objects(rows: pd.DataFrame) -> pd.DataFrame:
    """Return how well maps lie on their object, pictures of one object and of several apart.

    Parameters
    ----------
    rows : DataFrame
        As `evaluation.evaluate` returns them; pictures without a box are left out.

    Returns
    -------
    DataFrame
        method, fill, objects ("one object" or "several", with the number of pictures), label, value, low,
        high, n; pictures of one object first.
    """
    part = rows[
        rows["metric"].isin(["localisation", "localisation_best", *LOCALISATION]) & (rows["objects"] > 0)
    ]
    part = part.assign(objects=part["objects"].gt(1).map({False: "one object", True: "several"}))
    counts = part.groupby("objects")["picture"].nunique()
    part = part.assign(objects=[f"{one}, n = {counts[one]}" for one in part["objects"]])
    found = summarise(part, ["method", "fill", "objects", "metric"])
    found = found.sort_values("objects", kind="stable")
    return found.assign(label=[METRICS[name].label for name in found["metric"]])


def painter_effect(rows: pd.DataFrame, painter: str, plain: str = PLAIN) -> pd.DataFrame:
    """Return how much better each method's maps are that were made with an in-painter, on the same pictures.

    Parameters
    ----------
    rows : DataFrame
        As `evaluation.evaluate` returns them.
    painter, plain : str
        The in-painter, and the fill that it is held against.

    Returns
    -------
    DataFrame
        As `comparison.paired_differences`: ``painter`` minus ``plain``.
    """
    return paired_differences(rows, [pair for pair in between_fills(rows, painter) if pair[1][1] == plain])


def effect_table(rows: pd.DataFrame, painter: str) -> pd.DataFrame:
    """Return `painter_effect` of ``rows`` and ``painter`` as the chapter's table shows it."""
    found = painter_effect(rows, painter)
    labels = [METRICS[metric].label for metric in found["metric"]]
    spans = [f"{low:.3f} to {high:.3f}" for low, high in zip(found["low"], found["high"])]
    shown = found.assign(metric=labels, interval=spans)
    shown = shown[["method", "metric", "metric_fill", "difference", "interval", "p", "p_holm", "n"]]
    names = {"metric_fill": "metric's fill", "interval": "95 % interval", "p_holm": "p, Holm"}
    return shown.rename(columns=names)


def localisation(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the `ranking` of ``rows`` by whether maps lie on their object."""
    return ranking(rows, *LOCALISATION)


def costs(rows: pd.DataFrame) -> pd.DataFrame:
    """Return what a map costs: median over pictures of its seconds and of the pictures through the network.

    Parameters
    ----------
    rows : DataFrame
        As `evaluation.evaluate` returns them.

    Returns
    -------
    DataFrame
        method, fill, setting, pictures through the network, seconds, n.
    """
    once = rows.drop_duplicates(["picture", *MAPS])
    found = once.groupby(list(MAPS), sort=False)[["map_forwards", "map_seconds"]].median()
    found = found.assign(n=once.groupby(list(MAPS), sort=False).size()).reset_index()
    found["setting"] = found["setting"].replace(r"(\.\d\d)\d+", r"\1", regex=True)  # a radius of 7.142857
    return found.rename(columns={"map_forwards": "pictures through the network", "map_seconds": "seconds"})


def chapter_numbers(
    tables: Mapping[str, pd.DataFrame], painter: str, words: Mapping[str, Mapping[str, str]]
) -> dict[str, float | int | str]:
    """Return the numbers and words in the chapter's text.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        As `evaluation_study.attribution_study` returns them, by their names without "attribution".
    painter : str
        The in-painter.
    words : mapping
        What the text calls methods and fills: "method" and "fill", each name → word.
    """
    rows = tables[""]
    deletion = rows[rows["metric"] == "deletion"]
    found: dict[str, float | int | str] = {
        "n_pictures": rows["picture"].nunique(),
        "n_maps": len(rows[list(MAPS)].drop_duplicates()),
        "n_rows": len(rows),
        "n_undefined": int(rows["value"].isna().sum()),
        "clean": float(rows.drop_duplicates("picture")["clean"].median()),
        "painter": painter,
    }
    for name, fill in (("plain", PLAIN), ("painter", painter)):
        one = ranking(rows, "deletion")
        one = one[one["metric_fill"] == fill].sort_values("rank", kind="stable")
        best = one.iloc[0]
        found[f"best_{name}"] = _title(best, words)
        columns = {"auc": "value", "low": "low", "high": "high", "share": "best"}
        found |= {f"best_{name}_{key}": best[column] for key, column in columns.items()}
        known = one.set_index("method")["value"]
        informed = one[~one["method"].isin(controls(one["method"]))]["value"]
        for control in dict.fromkeys(controls(one["method"])):
            found[f"{name}_{control}"] = known[control]
            found[f"{name}_behind_{control}"] = int((informed > known[control]).sum())
        found["n_informed"] = len(informed)
    agreement = rank_agreement(rows).set_index(["first", "second"]).loc[(PLAIN, painter)]
    found |= {name: agreement[name] for name in ("tau", "itself", "reversed", "pairs")}
    found |= {"tau_low": agreement["low"], "tau_high": agreement["high"]}
    found["verdict"] = _verdict(agreement)
    effect = painter_effect(deletion, painter)
    found |= {"n_effects": len(effect), "n_effects_holm": int((effect["p_holm"] < 0.05).sum())}
    found["n_effects_better"] = int(((effect["p_holm"] < 0.05) & effect["better"]).sum())
    beaten = paired_differences(deletion, against(deletion))
    beaten = beaten[~beaten["method"].isin(controls(beaten["method"]))]
    found["n_control"] = len(beaten)
    found["n_beat_control"] = int(((beaten["p_holm"] < 0.05) & beaten["better"]).sum())
    return found | _steadiness(tables["_robustness"], painter) | _signal(tables["_signal"], painter)


def _verdict(agreement: pd.Series) -> str:
    """Return the headline: does the ranking change with the fill beyond what these pictures leave open?"""
    best = "the best map stays the same" if agreement["same_best"] else "another map comes out best"
    if agreement["reversed"]:
        pairs = f"{agreement['reversed']:.0f} of {agreement['pairs']:.0f} pairs of maps"
        return f"it does: {best}, and {pairs} change places"
    return f"not beyond what these pictures leave open ({best})"


def _steadiness(rows: pd.DataFrame, painter: str) -> dict:
    """Return the mean rank correlation over sweeps with each fill, and how many sweeps differ."""
    part = rows[rows["metric"] == "spearman"]
    means = summarise(part, ["fill", "metric"]).set_index("fill")["value"]
    effect = painter_effect(part, painter)
    return {
        "steady_plain": means.get(PLAIN, float("nan")), "steady_painter": means.get(painter, float("nan")),
        "n_sweeps": len(effect), "n_sweeps_better": int(effect["better"].sum()),
    }  # fmt: skip


def _signal(table: pd.DataFrame, painter: str) -> dict:
    """Return the probe's AUC for object and gender: before, and after removal with each kind of fill."""
    found = {}
    for what, part in table.groupby("what"):
        auc = part.set_index(["fill", "pictures"])["auc"]
        found[f"{what}_present"] = auc[("nothing", "present")]
        found[f"{what}_absent"] = auc[("nothing", "absent")]
        for name, fill in (("plain", PLAIN), ("blur", "blur"), ("painter", painter)):
            if (fill, "removed") in auc:
                found[f"{what}_{name}"] = auc[(fill, "removed")]
                found[f"{what}_{name}_hole"] = auc[(fill, "mask only")]
    return found


def _title(one: pd.Series, words: Mapping[str, Mapping[str, str]]) -> str:
    method, fill = (words[key].get(one[key], one[key]) for key in ("method", "fill"))
    return method if fill == "none" else f"{method} with {fill}"
