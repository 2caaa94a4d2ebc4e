"""Heat maps ranked over pictures, and rankings compared: does it matter what pixels are removed with?"""

import itertools

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from scipy.stats import t as student

from biastransfer.attribution.comparison import (
    MAPS,
    METRIC,
    RESAMPLES,
    SEPARATOR,
    picture_table,
    resampled_means,
)


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
        table, direction = picture_table(part), part["direction"].iloc[0]
        ranked = table.dropna(axis=1, how="all")
        complete = ranked.dropna()
        values, sign = complete.to_numpy(), 1 if direction == "↓" else -1
        n = len(complete) if complete.size else 0
        counts = (n, len(table) - n)
        names = [tuple(one.split(SEPARATOR)) for one in table]
        if not complete.size:
            found += [(metric, fill, *one, direction, *[np.nan] * 5, *counts) for one in names]
            continue
        rank = rankdata(sign * values.mean(0))
        drawn = rankdata(sign * resampled_means(values, resamples, seed), axis=1)
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
        resamples: what these few pictures give where nothing has changed), same_best, reversed (pairs of
        maps of which one is better under the first fill and the other under the second, each time with a
        95 % interval of the paired difference, Student's t, that excludes 0), pairs, maps, n.
    """
    part = rows[rows["metric"] == metric]
    tables = {fill: picture_table(one) for fill, one in part.groupby("metric_fill", sort=False)}
    sign = 1 if (part["direction"] == "↓").all() else -1
    found = []
    for first, second in itertools.combinations(tables, 2):
        one, other = (tables[fill].dropna(axis=1, how="all") for fill in (first, second))
        shared = [name for name in one if name in other]
        both = pd.concat([one[shared], other[shared]], axis=1).dropna().to_numpy()
        values = both[:, : len(shared)], both[:, len(shared) :]
        found.append((first, second, *_agreement(*values, sign, resamples, seed), len(shared), len(both)))
    columns = [
        "first",
        "second",
        "tau",
        "low",
        "high",
        "itself",
        "same_best",
        "reversed",
        "pairs",
        "maps",
        "n",
    ]
    return pd.DataFrame(found, columns=columns)


def _agreement(a: np.ndarray, b: np.ndarray, sign: int, resamples: int, seed: int) -> tuple:
    """Return tau, low, high, itself, same_best, reversed and pairs of two tables (n, k) of the same maps."""
    pairs = a.shape[1] * (a.shape[1] - 1) // 2
    if not len(a) or not pairs:
        return (*[np.nan] * 4, False, 0, pairs)
    tau = float(_tau(a.mean(0)[None], b.mean(0)[None])[0])
    same = bool(np.argmin(sign * a.mean(0)) == np.argmin(sign * b.mean(0)))
    if len(a) < 2:
        return tau, np.nan, np.nan, np.nan, same, 0, pairs
    drawn = resampled_means(np.hstack([a, b]), resamples, seed)
    one, other = drawn[:, : a.shape[1]], drawn[:, a.shape[1] :]
    low, high = np.quantile(_tau(one, other), [0.025, 0.975])
    itself = float(_tau(one, resampled_means(a, resamples, seed + 1)).mean())
    reversed_pairs = int((_order(a) * _order(b) < 0).sum())
    return tau, float(low), float(high), itself, same, reversed_pairs, pairs


def _order(values: np.ndarray) -> np.ndarray:
    """Return −1 or 1 for each pair of columns of (n, k), the smaller; 0 where a 95 % interval holds 0."""
    left, right = np.triu_indices(values.shape[1], 1)
    d = values[:, left] - values[:, right]
    half = student.ppf(0.975, len(d) - 1) * d.std(0, ddof=1) / np.sqrt(len(d))
    return (d.mean(0) > half).astype(int) - (d.mean(0) < -half)


def _tau(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return Kendall's tau-b of each row of (r, k) with that row of the other; NaN where one is constant."""
    left, right = np.triu_indices(first.shape[1], 1)
    a, b = np.sign(first[:, left] - first[:, right]), np.sign(second[:, left] - second[:, right])
    with np.errstate(invalid="ignore"):
        return (a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1))
