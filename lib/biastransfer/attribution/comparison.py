"""Heat maps compared over pictures: means, paired differences and ranks, each with its uncertainty.

Everything resamples whole pictures, drawn once for all methods, and takes the rows of `evaluation.evaluate`.
"""

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from biastransfer.stats import holm, sign_flip_p
from biastransfer.stats.resampling import bootstrap_interval

MAPS = ("method", "fill", "setting")  # what makes one map differ from another of the same picture
METRIC = ("metric", "metric_fill")
RESAMPLES = 2000
_SEPARATOR = "\t"


def summarise(
    rows: pd.DataFrame, by: Sequence[str] = (*MAPS, *METRIC), *, resamples: int = RESAMPLES, seed: int = 0
) -> pd.DataFrame:
    """Return the mean of each metric over pictures, with a 95 % interval.

    Parameters
    ----------
    rows : DataFrame
        As `evaluation.evaluate` returns them.
    by : sequence of str
        Columns whose combinations are summarised apart; with ``objects`` pictures of one object and of
        several are.
    resamples, seed : int
        Bootstrap resamples of pictures, and their seed.

    Returns
    -------
    DataFrame
        ``by``, direction, value, low, high (NaN for one picture), n (pictures with a value), undefined
        (pictures without), at_floor (share of values at the saliency metric's floor; NaN for others).
    """
    found = []
    for keys, part in rows.groupby(list(by), sort=False, dropna=False):
        per_picture = part.groupby("picture")["value"].mean()  # ordered by name: the rows' order is no matter
        values = per_picture.dropna().to_numpy()
        mean = float(values.mean()) if len(values) else float("nan")
        low, high = _interval(values[:, None], lambda table: table[:, 0], resamples, seed)
        floor = part.loc[part["value"].notna(), "at_floor"].dropna().astype(float)
        counts = (len(values), len(per_picture) - len(values), floor.mean() if len(floor) else np.nan)
        found.append((*keys, part["direction"].iloc[0], mean, low, high, *counts))
    columns = [*by, "direction", "value", "low", "high", "n", "undefined", "at_floor"]
    return pd.DataFrame(found, columns=columns)


def paired_differences(
    rows: pd.DataFrame,
    pairs: Iterable[tuple[tuple, tuple]],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> pd.DataFrame:
    """Return how much better one map does than another on the same pictures.

    Parameters
    ----------
    rows : DataFrame
        As `evaluation.evaluate` returns them.
    pairs : iterable of ((method, fill, setting), (method, fill, setting))
        What is compared with what: see `against` and `between_fills`.
    resamples, seed : int
        As for `summarise`.

    Returns
    -------
    DataFrame
        One row a metric, metric_fill and pair: method, fill, setting, than_method, than_fill, than_setting,
        direction, difference (mean over pictures of the first minus the second, in the metric's unit), better
        (whether it points the metric's way), low, high, p (two-sided, signs of the pictures' differences
        exchanged), p_holm (within the metric, over all its fills and pairs), n, undefined.
    """
    found, pairs = [], list(pairs)
    for (metric, fill), part in rows.groupby(list(METRIC), sort=False):
        table, direction = _table(part), part["direction"].iloc[0]
        for first, second in pairs:
            one, other = _SEPARATOR.join(first), _SEPARATOR.join(second)
            if one not in table or other not in table:
                continue
            both = (table[one] - table[other]).to_numpy()
            known = both[np.isfinite(both)]
            mean = float(known.mean()) if len(known) else float("nan")
            low, high = _interval(known[:, None], lambda values: values[:, 0], resamples, seed)
            p = sign_flip_p(known, seed=seed)
            better = (mean < 0) if direction == "↓" else (mean > 0)
            counts = (len(known), len(both) - len(known))
            found.append((metric, fill, *first, *second, direction, mean, better, low, high, p, *counts))
    columns = [*METRIC, *MAPS, *(f"than_{name}" for name in MAPS), "direction", "difference", "better"]
    frame = pd.DataFrame(found, columns=[*columns, "low", "high", "p", "n", "undefined"])
    corrected = frame.groupby("metric")["p"].transform(lambda p: holm(p.to_numpy())) if len(frame) else []
    frame.insert(frame.columns.get_loc("p") + 1, "p_holm", corrected)
    return frame


def against(rows: pd.DataFrame, method: str = "random_map") -> list[tuple[tuple, tuple]]:
    """Return the pairs of every map with each map of one ``method``, such as a control, in ``rows``."""
    maps = _maps(rows)
    return [(one, other) for one in maps for other in maps if other[0] == method and one[0] != method]


def between_fills(rows: pd.DataFrame, fill: str) -> list[tuple[tuple, tuple]]:
    """Return the pairs of every method and setting in ``rows`` with one ``fill`` and with each other fill."""
    maps = _maps(rows)
    return [
        (one, other)
        for one, other in itertools.product(maps, maps)
        if one[1] == fill and other[1] != fill and (one[0], one[2]) == (other[0], other[2])
    ]


def ranks(rows: pd.DataFrame, *, resamples: int = RESAMPLES, seed: int = 0) -> pd.DataFrame:
    """Rank maps by their mean over pictures, best first, with the ranks that other pictures would have given.

    Parameters
    ----------
    rows : DataFrame
        As `evaluation.evaluate` returns them.
    resamples, seed : int
        As for `summarise`.

    Returns
    -------
    DataFrame
        One row a metric, metric_fill and map: method, fill, setting, direction, value, rank (1 is best, ties
        share the mean rank), low, high (95 % of the ranks in resamples), best (share of resamples in which it
        is first, ties shared), n, undefined. Only pictures on which every map has a value count; a map
        without any value has no rank, and is in none of the others' way.
    """
    found = []
    for (metric, fill), part in rows.groupby(list(METRIC), sort=False):
        table, direction = _table(part), part["direction"].iloc[0]
        ranked = table.dropna(axis=1, how="all")
        complete = ranked.dropna()
        values, sign = complete.to_numpy(), 1 if direction == "↓" else -1
        counts = (len(complete), len(table) - len(complete))
        names = [tuple(one.split(_SEPARATOR)) for one in table]
        if not len(complete):
            found += [(metric, fill, *one, direction, *[np.nan] * 5, *counts) for one in names]
            continue
        rank = rankdata(sign * values.mean(0))
        drawn = rankdata(sign * _resampled(values, resamples, seed), axis=1)
        low, high = (
            np.quantile(drawn, [0.025, 0.975], axis=0) if len(values) > 1 else [[np.nan] * len(rank)] * 2
        )
        first = drawn == drawn.min(1, keepdims=True)
        best = (first / first.sum(1, keepdims=True)).mean(0) if len(values) > 1 else [np.nan] * len(rank)
        known = dict(zip(ranked, zip(values.mean(0), rank, low, high, best)))
        placed = [known.get(one, [np.nan] * 5) for one in table]
        found += [(metric, fill, *one, direction, *at, *counts) for one, at in zip(names, placed)]
    columns = [*METRIC, *MAPS, "direction", "value", "rank", "low", "high", "best", "n", "undefined"]
    return pd.DataFrame(found, columns=columns)


def rank_agreement(
    rows: pd.DataFrame, metric: str = "deletion", *, resamples: int = RESAMPLES, seed: int = 0
) -> pd.DataFrame:
    """Compare the ranking of the maps under one fill of a metric with that under another.

    Parameters
    ----------
    rows : DataFrame
        As `evaluation.evaluate` returns them.
    metric : str
        A metric that removes pixels.
    resamples, seed : int
        As for `summarise`.

    Returns
    -------
    DataFrame
        One row a pair of fills: first, second, tau (Kendall's, of the means; 1: the same order), low, high
        (95 %, pictures resampled), itself (mean tau between the first fill's rankings in two independent
        resamples: what these few pictures give where nothing has changed), same_best, maps, n.
    """
    part = rows[rows["metric"] == metric]
    tables = {fill: _table(one) for fill, one in part.groupby("metric_fill", sort=False)}
    found = []
    for first, second in itertools.combinations(tables, 2):
        both = pd.concat({0: tables[first], 1: tables[second]}, axis=1).dropna(axis=1, how="all")
        shared = [one for one in both[0] if one in both[1]]
        complete = pd.concat({0: both[0][shared], 1: both[1][shared]}, axis=1).dropna()
        a, b = complete[0].to_numpy(), complete[1].to_numpy()
        if not len(a):
            found.append((first, second, *[np.nan] * 4, False, len(shared), 0))
            continue
        drawn, again = _resampled(np.hstack([a, b]), resamples, seed), _resampled(a, resamples, seed + 1)
        taus = _tau(drawn[:, : len(shared)], drawn[:, len(shared) :])
        tau = float(_tau(a.mean(0)[None], b.mean(0)[None])[0])
        sign = 1 if part["direction"].iloc[0] == "↓" else -1
        same = bool(np.argmin(sign * a.mean(0)) == np.argmin(sign * b.mean(0)))
        spread = np.quantile(taus, [0.025, 0.975]) if len(a) > 1 else (np.nan, np.nan)
        itself = float(_tau(drawn[:, : len(shared)], again).mean())
        found.append((first, second, tau, *map(float, spread), itself, same, len(shared), len(a)))
    columns = ["first", "second", "tau", "low", "high", "itself", "same_best", "maps", "n"]
    return pd.DataFrame(found, columns=columns)


def _maps(rows: pd.DataFrame) -> list[tuple]:
    return list(rows[list(MAPS)].drop_duplicates().itertuples(index=False, name=None))


def _table(part: pd.DataFrame) -> pd.DataFrame:
    """Return values as pictures, ordered by name, × maps in the rows' order, each named as one text."""
    named = part[list(MAPS)].agg(_SEPARATOR.join, axis=1)
    wide = part.assign(map=named).pivot(index="picture", columns="map", values="value")
    return wide[list(dict.fromkeys(named))].sort_index()


def _resampled(values: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Return (resamples, k) means of the columns of (n, k) under bootstrap weights of the rows."""
    n = len(values)
    return np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples) @ values / n


def _interval(values: np.ndarray, statistic, resamples: int, seed: int) -> tuple[float, float]:
    """Return the 95 % interval of a statistic of means over the rows of (n, k) ``values``."""
    if len(values) < 2:
        return float("nan"), float("nan")
    drawn = statistic(_resampled(values, resamples, seed))
    return bootstrap_interval(float(statistic(values.mean(0)[None])[0]), drawn, pictures=len(values))


def _tau(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return Kendall's tau-b of each row of (r, k) with that row of the other; NaN where one is constant."""
    left, right = np.triu_indices(first.shape[1], 1)
    a, b = np.sign(first[:, left] - first[:, right]), np.sign(second[:, left] - second[:, right])
    with np.errstate(invalid="ignore"):
        return (a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1))
