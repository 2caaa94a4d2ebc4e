"""How each measure follows the dose: slope, rank order, isotonic fit, each with what it is over."""

import numpy as np
import pandas as pd
from scipy import optimize, stats

from biastransfer.stats import spearman, spearman_permutation_p
from biastransfer.stats.resampling import bootstrap_interval

EVEN = ("transfer_inter", "transfer_intra")  # of size, not direction: read against the size of the dose


def as_read(measure: str, doses) -> np.ndarray:
    """Return ``doses`` as a ``measure`` can follow them: with sign, or by their size for transfer scores."""
    doses = np.asarray(doses, float)
    return np.abs(doses) if measure in EVEN else doses


def slope(doses, seeds, values):
    """Slope of a measure over doses, each seed with an intercept of its own, and its 95 % interval.

    Parameters
    ----------
    doses, seeds : array_like, shape (n,)
        One network each.
    values : array_like, shape (..., n)
        The measure; several rows are fitted at once.

    Returns
    -------
    slope, low, high, p : float or (...) array
        Change of the measure per unit of dose; Student's t over networks with n − seeds − 1 degrees of
        freedom, the pictures held fixed; NaN interval with none left, and all NaN without two doses.

    Examples
    --------
    >>> [round(float(x), 3) for x in slope([-1, 0, 1, -1, 0, 1], [0, 0, 0, 1, 1, 1], [1, 2, 3, 5, 6, 7.3])]
    [1.075, 0.897, 1.253, 0.0]
    """
    x, values = np.asarray(doses, float), np.asarray(values, float)
    centred, y = x.copy(), values.copy()
    groups = np.unique(seeds)
    for group in groups:
        rows = np.asarray(seeds) == group
        centred[rows] -= x[rows].mean()
        y[..., rows] -= y[..., rows].mean(-1, keepdims=True)
    square, freedom = centred @ centred, len(x) - len(groups) - 1
    nan = np.full(values.shape[:-1], np.nan)[()]
    if square == 0:
        return nan, nan, nan, nan
    b = y @ centred / square
    if freedom < 1:
        return b, nan, nan, nan
    rest = ((y - b[..., None] * centred) ** 2).sum(-1) / freedom
    error = np.sqrt(rest / square)
    half = stats.t.ppf(0.975, freedom) * error
    with np.errstate(invalid="ignore", divide="ignore"):
        p = 2 * stats.t.sf(np.abs(b) / error, freedom)
    return b, b - half, b + half, p


def isotonic_share(doses, values) -> float:
    """Return the share of the values' variance that the best monotone curve over doses explains, in [0, 1].

    Parameters
    ----------
    doses, values : array_like, shape (n,)
        Rising or falling, whichever fits better; NaN where the values are constant.
    """
    doses, values = np.asarray(doses, float), np.asarray(values, float)
    _, member, counts = np.unique(doses, return_inverse=True, return_counts=True)
    means = np.bincount(member, values) / counts
    total = ((values - values.mean()) ** 2).sum()
    if total == 0:
        return float("nan")
    fits = [optimize.isotonic_regression(means, weights=counts, increasing=up).x for up in (True, False)]
    return float(1 - min(((values - fit[member]) ** 2).sum() for fit in fits) / total)


def response(values: pd.DataFrame, resampled: dict[str, np.ndarray]) -> pd.DataFrame:
    """Summarise how measures follow the dose.

    Parameters
    ----------
    values : DataFrame
        Columns measure, dose, seed, null, value; one row a measure and network (dosed ones and nulls).
    resampled : dict of str to (networks, draws) array
        Each measure in resamples of all the pictures, networks in the order of ``values``.

    Returns
    -------
    DataFrame
        A row a measure: slope per unit of dose with low, high, p over networks and picture_low,
        picture_high over pictures; spearman with p_spearman; isotonic and linear, shares of variance
        explained; at_zero and null_sd, mean and standard deviation of the networks without a planted bias;
        steps, the slope in these deviations; n, n_null, networks behind.
    """
    rows = []
    for measure, part in values.groupby("measure", sort=False):
        dosed = (~part["shuffled"]).to_numpy()
        doses = as_read(measure, part.loc[dosed, "dose"])
        seeds, y = part.loc[dosed, "seed"].to_numpy(), part.loc[dosed, "value"].to_numpy()
        b, low, high, p = slope(doses, seeds, y)
        drawn = slope(doses, seeds, resampled[measure][dosed].T)[0]
        over = bootstrap_interval(float(b), drawn) if np.isfinite(drawn).any() else (np.nan, np.nan)
        nulls = part.loc[part["null"], "value"]
        spread = float(nulls.std(ddof=1)) if len(nulls) > 1 else float("nan")
        fitted = np.corrcoef(doses, y)[0, 1] ** 2 if np.ptp(y) > 0 else float("nan")
        order = spearman_permutation_p(doses, y)[0] if np.ptp(y) > 0 else float("nan")
        rows.append(
            {
                "measure": measure, "slope": float(b), "low": float(low), "high": float(high),
                "p": float(p), "picture_low": over[0], "picture_high": over[1],
                "spearman": float(spearman(doses, y)), "p_spearman": order,
                "isotonic": isotonic_share(doses, y), "linear": float(fitted),
                "at_zero": float(nulls.mean()), "null_sd": spread,
                "steps": float(b) / spread if spread > 0 else float("nan"),
                "n": int(dosed.sum()), "n_null": len(nulls),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)
