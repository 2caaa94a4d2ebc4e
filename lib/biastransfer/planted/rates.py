"""False alarms and power: how often a rule speaks up, over networks and draws of pictures."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from biastransfer.planted.response import as_read, slope

LEVEL = 0.05
# rule → what it holds a network against
RULES = {
    "pictures": "its own pictures: the test or interval of one network",
    "networks": "networks finetuned alike without a planted bias, on the same pictures",
}


def outside(values: np.ndarray, nulls: np.ndarray) -> np.ndarray:
    """Say which networks lie outside the 95 % prediction interval of those without a planted bias.

    Parameters
    ----------
    values : (networks, draws) array
        A measure.
    nulls : (networks,) bool array
        Those without one. Each is held against the others, never against itself.

    Returns
    -------
    (networks, draws) bool array
        Two-sided, Student's t with the factor √(1 + 1/k); all False with fewer than two others.
    """
    values, nulls = np.asarray(values, float), np.asarray(nulls, bool)
    found = np.zeros(values.shape, bool)
    for row in range(len(values)):
        others = values[nulls & (np.arange(len(values)) != row)]
        k = len(others)
        if k >= 2:
            reach = stats.t.ppf(1 - LEVEL / 2, k - 1) * np.sqrt(1 + 1 / k) * others.std(0, ddof=1)
            found[row] = np.abs(values[row] - others.mean(0)) > reach
    return found


def rate(alarms: np.ndarray) -> tuple[float, float, float]:
    """Return how often an alarm is given, and its 95 % interval over networks.

    Parameters
    ----------
    alarms : (networks, draws) bool array
        The unit is one network measured on one draw of pictures.

    Returns
    -------
    share, low, high : float
        Student's t over the networks' shares, cut at 0 and 1; where these are all the same, or for one
        network, (NaN, NaN). Draws of one pool are no new networks: they do not narrow the interval.

    Examples
    --------
    >>> [round(x, 3) for x in rate(np.array([[1, 1], [0, 1], [1, 0], [0, 0]], bool))]
    [0.5, 0.0, 1.0]
    """
    shares = np.asarray(alarms, float).mean(1)
    if len(shares) < 2 or np.ptp(shares) == 0:
        return float(shares.mean()) if len(shares) else float("nan"), float("nan"), float("nan")
    half = stats.t.ppf(0.975, len(shares) - 1) * shares.std(ddof=1) / np.sqrt(len(shares))
    mean = float(shares.mean())
    return mean, max(mean - half, 0.0), min(mean + half, 1.0)


def alarm_rates(networks: pd.DataFrame, values: Mapping, alarms: Mapping, pictures: int) -> pd.DataFrame:
    """Tabulate how often each rule gives an alarm, by the size of the dose.

    Parameters
    ----------
    networks : DataFrame
        Columns dose, shuffled, null; one row a network.
    values, alarms : mapping of str to (networks, draws) array
        Measure → values, and the alarms of the rule "pictures".
    pictures : int
        A class, in each draw.

    Returns
    -------
    DataFrame
        Columns pictures, measure, rule, size (of the dose; 0 holds the shuffled networks too), rate, low,
        high, networks, draws. At size 0 the rate is that of false alarms, at others the power.
    """
    size = networks["dose"].abs().where(~networks["null"], 0.0).to_numpy()
    rows = []
    for measure, found in values.items():
        given = {"pictures": alarms[measure], "networks": outside(found, networks["null"].to_numpy())}
        for rule, one in given.items():
            for level in np.unique(size):
                share, low, high = rate(one[size == level])
                rows.append(
                    {
                        "pictures": pictures, "measure": measure, "rule": rule, "size": float(level),
                        "rate": share, "low": low, "high": high,
                        "networks": int((size == level).sum()), "draws": found.shape[1],
                    }
                )  # fmt: skip
    return pd.DataFrame(rows)


def trend_rates(
    networks: pd.DataFrame, values: Mapping, pictures: int, grids: Mapping[str, Sequence[float]], *, seed=0
) -> pd.DataFrame:
    """Tabulate how often a trend over doses is found, by the number of doses and seeds.

    Parameters
    ----------
    networks : DataFrame
        Columns dose, seed, shuffled.
    values : mapping of str to (networks, draws) array
    pictures : int
        A class, in each draw.
    grids : mapping of str to sequence of float
        Doses to use, by a name.
    seed : int
        Of the exchanged doses.

    Returns
    -------
    DataFrame
        Columns pictures, measure, grid, doses, seeds, power (share of draws in which the slope's p < .05) and
        false_alarm (the same with the doses exchanged at random within each seed, once a draw).
    """
    rng, rows = np.random.default_rng(seed), []
    dosed, seeds = ~networks["shuffled"].to_numpy(), networks["seed"].to_numpy()
    kinds = sorted(set(seeds[dosed].tolist()))
    for grid, doses in grids.items():
        for count in dict.fromkeys((1, len(kinds))):
            chosen = dosed & networks["dose"].isin(doses).to_numpy() & np.isin(seeds, kinds[:count])
            who = seeds[chosen]
            if chosen.sum() - count - 1 < 1:
                continue
            for measure, found in values.items():
                x, y = as_read(measure, networks.loc[chosen, "dose"]), found[chosen].T
                mixed = np.empty_like(y)
                for one in np.unique(who):
                    mixed[:, who == one] = rng.permuted(y[:, who == one], axis=1)
                rows.append(
                    {
                        "pictures": pictures, "measure": measure, "grid": grid, "doses": len(set(doses)),
                        "seeds": count, "power": _found(x, who, y), "false_alarm": _found(x, who, mixed),
                    }
                )  # fmt: skip
    return pd.DataFrame(rows)


def _found(doses, seeds, values) -> float:
    p = slope(doses, seeds, values)[3]
    return float(np.mean(np.nan_to_num(p, nan=1.0) < LEVEL))
