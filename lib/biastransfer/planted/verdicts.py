"""What the experiment says of each measure, in words that follow from its numbers."""

from collections.abc import Mapping

import pandas as pd

from biastransfer.planted.experiment import CONSTRUCTIONS, FIRST, FULL
from biastransfer.planted.measures import MEASURES
from biastransfer.planted.response import EVEN

FOUND, QUIET = 0.8, 0.1  # power that counts as finding, false-alarm rate that counts as silence
_SECOND = {"construction": "construction", "seed": "seed", "d_before": "d before", "d_after": "d after"}
_SECOND |= {"change": "change", "interval": "95 % interval", "change_p": "p of no change"}
_SECOND |= {"transfer_inter": "BTS, inter-class", "read_as": "read as"}
NOT_FOUND = "not for finding such a bias at these sizes"


def verdicts(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Say for each measure how it did, and what it may be used for.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        From `tables.tables`.

    Returns
    -------
    DataFrame
        A row a measure: slope with low and high, steps (the slope in standard deviations between networks
        without a planted bias), and for each rule and for the fewest and the most pictures (``few``,
        ``many``) ``false_…`` and ``power_…`` at the largest dose; trend, the power of a trend over all doses
        and seeds at ``many``; use. A rule counts as reliable with a power of at least .8 and a false-alarm
        rate of at most .1 (`FOUND`, `QUIET`).
    """
    rates = tables["planted_rates"]
    counts, top = sorted(rates["pictures"].unique()), rates["size"].max()
    few = max((count for count in counts[:-1] if count <= 12), default=counts[0])
    at = rates.set_index(["measure", "rule", "pictures", "size"])["rate"]
    trend = tables["planted_trend"].query("pictures == @counts[-1]").groupby("measure").last()
    rows = []
    for row in tables["planted_response"].itertuples():
        told = {"measure": row.measure, "slope": row.slope, "low": row.low, "high": row.high}
        told |= {"steps": row.steps, "p_spearman": row.p_spearman}
        for rule in ("pictures", "networks"):
            for name, count in (("few", few), ("many", counts[-1])):
                told[f"false_{rule}_{name}"] = at[row.measure, rule, count, 0.0]
                told[f"power_{rule}_{name}"] = at[row.measure, rule, count, top]
        told["trend"] = float(trend.loc[row.measure, "power"]) if row.measure in trend.index else float("nan")
        rows.append(told | {"use": _use(row.measure, told)})
    return pd.DataFrame(rows).assign(few=few, many=counts[-1], top=top)


def shown(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return the page's tables, measures and columns called as a page prints them.

    Parameters
    ----------
    tables : mapping of str to DataFrame

    Returns
    -------
    dict of str to DataFrame
        ``response``, ``verdicts``, ``trend``, the power of a slope by doses, seeds and pictures a class with
        its mean rate of false alarms, ``constructions``, what second finetunings did, and ``full``, the
        networks that were finetuned whole beside those of the same dose and seed whose last stage was.
    """
    heads = {"p_spearman": "its p", "at_zero": "unplanted", "null_sd": "sd", "steps": "slope / sd"}
    heads |= {"spearman": "rank corr.", "isotonic": "monotone", "n": "networks"}
    heads |= {"picture_low": "pictures, low", "picture_high": "pictures, high", "trend": "trend, power"}
    response = tables["planted_response"].drop(columns=["run", "backbone", "labels", "p", "linear", "n_null"])
    verdict, frame = verdicts(tables), tables["planted"]
    columns, ends = ["measure", "use", "steps"], ["few", "many"]
    ends = ends[verdict["few"].equals(verdict["many"]) :]  # once where there is one count
    for rule, words in (("pictures", "own pictures"), ("networks", "other networks")):
        for end in ends:
            for kind, told in (("false", "false alarms"), ("power", "power")):
                heads[f"{kind}_{rule}_{end}"] = f"{words}, {verdict[end].iloc[0]}: {told}"
            columns += [f"false_{rule}_{end}", f"power_{rule}_{end}"]
    keys = ["measure", "dose", "seed", "how"]
    whole = frame[(frame["construction"] == FIRST) & ~frame["shuffled"]].set_index(keys)["value"].unstack()
    full = whole.dropna() if FULL in whole else pd.DataFrame(columns=["stage", FULL])
    made = {"response": response, "verdicts": verdict[[*columns, "trend"]], "full": full.reset_index()}
    made["trend"] = _trend(tables["planted_trend"])
    made["constructions"] = _second(tables["planted_constructions"])
    for name, one in made.items():
        if "measure" in one:
            one = one.assign(measure=[MEASURES[measure][0] for measure in one["measure"]])
        made[name] = one.rename(columns=heads)
    return made


def _second(made: pd.DataFrame) -> pd.DataFrame:
    """Return the second finetunings in the order of the figure, bounds in one column."""
    made = made.sort_values("construction", key=lambda one: one.map(list(CONSTRUCTIONS).index), kind="stable")
    spans = [f"{low:.3f} to {high:.3f}" for low, high in zip(made["change_low"], made["change_high"])]
    return made.assign(interval=spans)[list(_SECOND)].rename(columns=_SECOND)


def _trend(trend: pd.DataFrame) -> pd.DataFrame:
    keys = ["measure", "doses", "seeds"]
    power = trend.pivot_table("power", keys, "pictures", sort=False)
    power.columns = [f"power, {count} pictures" for count in power.columns]
    wide = power.assign(**{"false alarms": trend.groupby(keys, sort=False)["false_alarm"].mean()})
    return wide.reset_index()


def _use(measure: str, told: Mapping) -> str:
    def reliable(rule: str, count: str) -> bool:
        return told[f"power_{rule}_{count}"] >= FOUND and told[f"false_{rule}_{count}"] <= QUIET

    uses = []
    for rule, words in (("pictures", "one network alone"), ("networks", "networks trained alike")):
        if reliable(rule, "few"):
            uses.append(f"{words}, few pictures")
        elif reliable(rule, "many"):
            uses.append(f"{words}, many pictures")
    if told["trend"] >= FOUND and told["low"] * told["high"] > 0:
        uses.append("a trend over doses")
    if measure in EVEN:
        return "; ".join([*uses, "how much of an order is kept, not which bias"])
    return "; ".join(uses) or NOT_FOUND


def numbers(tables: Mapping[str, pd.DataFrame]) -> dict[str, float | int | str]:
    """Return what the page glues.

    Parameters
    ----------
    tables : mapping of str to DataFrame

    Returns
    -------
    dict
        ``<measure>_slope``, ``_low``, ``_high``, ``_steps``, ``_false_…``; ``transfer_<construction>`` and
        ``d_<construction>_before``, ``_after``, means over seeds; counts of networks and of readings;
        changed_found, the second finetunings that changed the bias and whose interval of the change of d lies
        on that side of 0, and unchanged_found, those that did not and whose interval leaves out 0.
    """
    told: dict[str, float | int | str] = {}
    frame, made = tables["planted"], tables["planted_constructions"]
    verdict = verdicts(tables)
    for row in verdict.to_dict("records"):
        name = row.pop("measure")
        told |= {f"{name}_{key}": value for key, value in row.items() if key not in ("few", "many", "top")}
    told |= {key: verdict[key].iloc[0] for key in ("few", "many", "top")}
    printed = verdict["measure"].map(lambda name: MEASURES[name][0])
    follows = verdict["low"] * verdict["high"] > 0
    told["following"] = ", ".join(printed[follows]) or "none"
    for rule in ("pictures", "networks"):
        sure = verdict[f"power_{rule}_many"].ge(FOUND) & verdict[f"false_{rule}_many"].le(QUIET)
        told[f"reliable_{rule}"] = ", ".join(printed[sure]) or "none"
    direct = frame[(frame["construction"] == FIRST) & (frame["how"] == "stage")]
    one = direct[direct["measure"] == "association"]
    dosed = one[~one["shuffled"]]
    told |= {
        "doses": dosed["dose"].nunique(), "seeds": dosed["seed"].nunique(),
        "networks": len(one), "nulls": int(one["null"].sum()), "measures": len(verdict),
        "largest_error": float((dosed["realised"] - dosed["dose"]).abs().max()),
        "shuffled_realised": float(one.loc[one["shuffled"], "realised"].abs().max()),
        "pictures": int(one["n"].iloc[0]), "backbone": one["backbone"].iloc[0],
    }  # fmt: skip
    scores = direct[direct["measure"] == "transfer_inter"]
    told["transfer_zero"] = float(scores.loc[scores["null"], "value"].mean())
    told["transfer_top"] = float(
        scores.loc[scores["dose"].abs().eq(told["top"]) & ~scores["shuffled"], "value"].mean()
    )
    for name, part in made.groupby("construction"):
        told |= {f"transfer_{name}": part["transfer_inter"].mean()}
        told |= {f"d_{name}_{end}": part[f"d_{end}"].mean() for end in ("before", "after")}
        told[f"adopted_{name}"] = int((part["read_as"] == "adopted").sum())
    moved = made["construction"].map({"added": 1, "flipped": -1, "removed": -1})  # d, by construction
    changed, sure = made[moved.notna()], made["change_low"] * made["change_high"] > 0
    told |= {"changed_found": int((sure & (made["change"] * moved > 0)).sum())}
    told |= {"unchanged": int(moved.isna().sum()), "unchanged_found": int((sure & moved.isna()).sum())}
    told |= {"changed": len(changed), "changed_retained": int((changed["read_as"] == "retained").sum())}
    told["null_adopted"] = int((scores["alarm"] & scores["null"]).sum())
    return told
