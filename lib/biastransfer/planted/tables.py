"""The experiment's tidy tables: values, responses, rates, trends, constructions."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from biastransfer.association import association_test, change_of_effect
from biastransfer.picture_resampling import both_stages
from biastransfer.planted.doses import SIGNS
from biastransfer.planted.experiment import FIRST, Experiment
from biastransfer.planted.measures import MEASURES, draw, measure, whole
from biastransfer.planted.rates import alarm_rates, trend_rates
from biastransfer.planted.response import response
from biastransfer.similarity import items
from biastransfer.stats.resampling import bootstrap_interval
from biastransfer.transfer import bias_transfer_score

TABLES = ("planted", "planted_response", "planted_rates", "planted_trend", "planted_constructions")
_SCORES = [f"{score}{end}" for score in ("transfer_inter", "transfer_intra") for end in ("", "_low", "_high")]
_CHANGE = ["change", "change_low", "change_high", "change_p"]
_CHANGES = ["d_before", "d_after", "difference_before", "difference_after", *_SCORES]


def tables(
    found: Experiment, run: str, *, counts: Sequence[int], draws: int = 200, seed: int = 0
) -> dict[str, pd.DataFrame]:
    """Measure every network, and tabulate what the measures make of known doses.

    Parameters
    ----------
    found : Experiment
    run : str
        First column of every table.
    counts : sequence of int
        Pictures a class for false alarms and power, drawn with replacement from the analysis set.
    draws : int
        Draws of pictures a count, the same for all networks; also for intervals over pictures.
    seed : int
        Of the draws.

    Returns
    -------
    dict of str to DataFrame
        Keys `TABLES`.

    Raises
    ------
    ValueError
        A count below 2 or draws below 2.
    """
    if draws < 2:
        raise ValueError(f"draws must be at least 2; got {draws}.")
    vectors = found.embeddings
    networks = pd.DataFrame([vars(one) | {"null": one.null} for one in found.networks])
    networks.insert(0, "labels", found.notes["labels"])
    networks.insert(0, "backbone", found.notes["backbone"])
    networks.insert(0, "run", run)
    resampled = _drawn(found, draw(found.sizes, min(found.sizes.values()), draws, seed=seed))
    frame = _values(found, vectors, networks, resampled)
    first = np.array([one.direct for one in found.networks])
    direct = networks[first]
    chosen = {name: one.value[first] for name, one in resampled.items()}
    made = {
        "planted_response": response(
            frame[(frame["construction"] == FIRST) & (frame["how"] == "stage")], chosen
        )
    }
    grids = _grids(sorted(direct.loc[~direct["shuffled"], "dose"].unique()))
    rates, trends = [], []
    for count in counts:
        drawn = _drawn(found, draw(found.sizes, count, draws, seed=seed + 1), first)
        values = {name: one.value for name, one in drawn.items()}
        rates.append(alarm_rates(direct, values, {k: one.alarm for k, one in drawn.items()}, count))
        trends.append(trend_rates(direct, values, count, grids, seed=seed))
    made["planted_rates"] = pd.concat(rates, ignore_index=True)
    made["planted_trend"] = pd.concat(trends, ignore_index=True)
    made["planted_constructions"] = constructions(frame).merge(_changes(found), on=["construction", "seed"])
    for name, table in made.items():
        if "run" not in table:
            for place, key in enumerate(("run", "backbone", "labels")):
                table.insert(place, key, networks[key].iloc[0])
        made[name] = table
    return {"planted": frame, **made}


def constructions(frame: pd.DataFrame) -> pd.DataFrame:
    """Tabulate two-stage finetunings: what became of the bias, and what the transfer scores say of it.

    Parameters
    ----------
    frame : DataFrame
        The table ``planted``.

    Returns
    -------
    DataFrame
        A row a construction and seed: d_before and d_after, difference_before and difference_after,
        transfer_inter and transfer_intra with their intervals over pictures, and read_as, what the paper's
        reading makes of the inter-class score: "retained" where it is significant, else "adopted".
    """
    keys = ["run", "backbone", "labels", "construction", "seed"]
    second = frame[frame["construction"] != FIRST]
    wide = second.set_index([*keys, "start", "dose", "measure"])[["value", "low", "high", "alarm"]].unstack()
    rows = []
    for index, row in wide.iterrows():
        seed, start = index[4:6]
        told = dict(zip([*keys, "start", "dose"], index))
        known = (frame["how"] == "stage") & (frame["construction"] == FIRST) & ~frame["shuffled"]
        known &= frame["seed"] == seed
        first = frame[known & (frame["dose"] == float(start))].set_index("measure")["value"]
        for short, measured in (("d", "association"), ("difference", "difference")):
            told |= {f"{short}_before": first[measured], f"{short}_after": row["value", measured]}
        for score in ("transfer_inter", "transfer_intra"):
            told |= {score: row["value", score]}
            told |= {f"{score}_{end}": row[end, score] for end in ("low", "high")}
        told["read_as"] = "adopted" if row["alarm", "transfer_inter"] else "retained"
        rows.append(told)
    return pd.DataFrame(rows, columns=[*keys, "start", "dose", *_CHANGES, "read_as"])


def _changes(found: Experiment) -> pd.DataFrame:
    """Test the change of d by each second finetuning, a row a construction and seed."""
    first = {one.plain: z for one, z in zip(found.networks, found.embeddings) if one.plain}
    rows = []
    for one, z in zip(found.networks, found.embeddings):
        if one.construction != FIRST:
            stages = (first[float(one.start), one.seed], z)
            tested = change_of_effect(*map(_four_sets, stages))
            rows.append((one.construction, one.seed, *tested))
    return pd.DataFrame(rows, columns=["construction", "seed", *_CHANGE])


def _drawn(found: Experiment, weights, rows=None):
    """Measure the networks in every draw: measure → values and alarms (networks, draws)."""
    chosen = range(len(found.seen)) if rows is None else np.flatnonzero(rows)
    each = [measure(found.before[k], found.seen[k], weights) for k in chosen]
    kind = type(next(iter(each[0].values())))
    return {
        name: kind(
            *(np.stack([getattr(one[name], key) for one in each]) for key in kind.__dataclass_fields__)
        )
        for name in MEASURES
    }


def _values(found: Experiment, vectors, networks: pd.DataFrame, resampled) -> pd.DataFrame:
    parts, n = [], min(found.sizes.values())
    for place, row in networks.iterrows():
        seen = measure(found.before[place], found.seen[place], whole(vectors[place]))
        for name, one in seen.items():
            value, low, high, p = (float(x[0]) for x in (one.value, one.low, one.high, one.p))
            if name == "association":
                exact = _tested(vectors[place])
                value, p, low, high = exact.effect_size, exact.p, exact.low, exact.high
            if name.startswith("transfer"):
                low, high = bootstrap_interval(value, resampled[name].value[place], pictures=n)
                p = _score_p(found, place, name)
            parts.append(
                {**row, "measure": name, "value": value, "low": low, "high": high, "p": p, "n": n,
                 "alarm": bool(one.alarm[0]) if name != "association" else p < 0.05}
            )  # fmt: skip
    return pd.DataFrame(parts)


def _tested(vectors):
    return association_test(*_four_sets(vectors), alternative="two-sided")


def _four_sets(vectors):
    """Men, women, and the objects of either planted group."""
    a, b = (np.concatenate([z for name, z in vectors.items() if SIGNS.get(name) == sign]) for sign in (1, -1))
    return vectors["man"], vectors["woman"], a, b


def _score_p(found: Experiment, place: int, name: str) -> float:
    intra, inter = items(found.sizes)
    chosen = inter if name == "transfer_inter" else intra
    one = {kind: np.ones((1, n)) for kind, n in found.sizes.items()}
    grams = [{item: seen.grams[item] for item in chosen} for seen in (found.before[place], found.seen[place])]
    x, y = (dict(zip(chosen, side[0])) for side in both_stages(grams, one))
    return bias_transfer_score(x, y).p_exact


def _grids(doses: list[float]) -> dict[str, list[float]]:
    """Return grids of doses within those that there are: the ends and 0, five, and all."""
    top = max(doses)
    ends = [dose for dose in doses if dose in (-top, 0, top)]
    middle = [dose for dose in doses if abs(dose) in (0, top) or abs(abs(dose) - top / 2) < 0.2 * top]
    grids = {"ends": ends, "five": middle if 3 < len(middle) < len(doses) else [], "all": doses}
    return {name: grid for name, grid in grids.items() if len(grid) >= 3}
