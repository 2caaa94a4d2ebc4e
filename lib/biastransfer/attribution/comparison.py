"""Heat maps compared over pictures: means, paired differences and ranks, each with its uncertainty.

Everything resamples whole pictures, drawn once for all methods, and takes the rows of `evaluation.evaluate`.
"""

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from biastransfer.stats import holm, sign_flip_p
from biastransfer.stats.resampling import bootstrap_interval

MAPS = ("method", "fill", "setting")  # what makes one map differ from another of the same picture
METRIC = ("metric", "metric_fill")
RESAMPLES = 2000
SEPARATOR = "\t"


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
        table, direction = picture_table(part), part["direction"].iloc[0]
        for first, second in pairs:
            one, other = SEPARATOR.join(first), SEPARATOR.join(second)
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
    maps = maps_in(rows)
    return [(one, other) for one in maps for other in maps if other[0] == method and one[0] != method]


def between_fills(rows: pd.DataFrame, fill: str) -> list[tuple[tuple, tuple]]:
    """Return the pairs of every method and setting in ``rows`` with one ``fill`` and with each other fill."""
    maps = maps_in(rows)
    return [
        (one, other)
        for one, other in itertools.product(maps, maps)
        if one[1] == fill and other[1] != fill and (one[0], one[2]) == (other[0], other[2])
    ]


def maps_in(rows: pd.DataFrame) -> list[tuple]:
    """Return the (method, fill, setting) that occur in ``rows``, in their order."""
    return list(rows[list(MAPS)].drop_duplicates().itertuples(index=False, name=None))


def picture_table(part: pd.DataFrame) -> pd.DataFrame:
    """Return the values of one metric, ``part``: pictures by name × maps in order, each named as one text."""
    named = part[list(MAPS)].agg(SEPARATOR.join, axis=1)
    wide = part.assign(map=named).pivot(index="picture", columns="map", values="value")
    return wide[list(dict.fromkeys(named))].sort_index()


def resampled_means(values: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Return (``resamples``, k) means of the columns of (n, k) ``values``, rows drawn anew with ``seed``."""
    n = len(values)
    return np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples) @ values / n


def _interval(values: np.ndarray, statistic, resamples: int, seed: int) -> tuple[float, float]:
    """Return the 95 % interval of a statistic of means over the rows of (n, k) ``values``."""
    if len(values) < 2:
        return float("nan"), float("nan")
    drawn = statistic(resampled_means(values, resamples, seed))
    return bootstrap_interval(float(statistic(values.mean(0)[None])[0]), drawn, pictures=len(values))
