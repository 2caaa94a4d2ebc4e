"""Statistics that know nothing of networks: families of tests, rank correlation, intervals by deleting pictures."""

import numpy as np
from scipy import stats as scipy_stats


def holm(p):
    """Adjust p-values by Holm's step-down method (controls the family-wise error, whatever the dependence).

    Parameters
    ----------
    p : array_like
        p-values in [0, 1]; NaN marks a test that could not be made.

    Returns
    -------
    numpy.ndarray
        Adjusted p-values in the order and shape of `p`; NaN stays NaN and is not counted as a test.

    Raises
    ------
    ValueError
        If a p-value lies outside [0, 1].

    Examples
    --------
    >>> holm([.01, .04, .03]).tolist()
    [0.03, 0.06, 0.06]
    """
    return _adjust(p, lambda ordered: np.maximum.accumulate(np.arange(len(ordered), 0, -1) * ordered))


def benjamini_hochberg(p):
    """Adjust p-values by Benjamini–Hochberg (controls the false discovery rate of independent tests).

    Parameters
    ----------
    p : array_like
        p-values in [0, 1]; NaN marks a test that could not be made.

    Returns
    -------
    numpy.ndarray
        Adjusted p-values in the order and shape of `p`; NaN stays NaN and is not counted as a test.

    Raises
    ------
    ValueError
        If a p-value lies outside [0, 1].

    Examples
    --------
    >>> benjamini_hochberg([.01, .04, .03]).tolist()
    [0.03, 0.04, 0.04]
    """
    return _adjust(p, _step_up)


def benjamini_yekutieli(p):
    """Adjust p-values by Benjamini–Yekutieli (controls the false discovery rate whatever the dependence).

    Parameters
    ----------
    p : array_like
        p-values in [0, 1]; NaN marks a test that could not be made.

    Returns
    -------
    numpy.ndarray
        Adjusted p-values in the order and shape of `p`; NaN stays NaN and is not counted as a test.

    Raises
    ------
    ValueError
        If a p-value lies outside [0, 1].
    """
    return _adjust(p, lambda ordered: _step_up(ordered) * np.sum(1 / np.arange(1, len(ordered) + 1)))


def _adjust(p, rule):
    p = np.asarray(p, dtype=float)
    flat, adjusted = p.ravel(), np.full(p.size, np.nan)
    wrong = np.flatnonzero((flat < 0) | (flat > 1))
    if wrong.size:
        raise ValueError(
            f"p-values must lie in [0, 1]; got {flat[wrong[0]]} at position {wrong[0]}. "
            "Use NaN for a test that could not be made."
        )
    tests = np.flatnonzero(~np.isnan(flat))
    order = tests[np.argsort(flat[tests], kind="stable")]
    adjusted[order] = np.minimum(rule(flat[order]), 1)
    return adjusted.reshape(p.shape)


def _step_up(ordered):
    count = len(ordered)
    scaled = ordered * (count / np.arange(1, count + 1))
    return np.minimum.accumulate(scaled[::-1])[::-1]


def max_t(observed, permuted):
    """Adjust a family of statistics by the permutation distribution of its largest member (Westfall–Young).

    Parameters
    ----------
    observed : array_like, shape (m,)
        Statistics; only their size counts. NaN marks a test that could not be made.
    permuted : array_like, shape (n_permutations, m)
        The same statistics under shared random permutations, without the observed one.

    Returns
    -------
    numpy.ndarray, shape (m,)
        Single-step adjusted p-values, ``(1 + hits) / (1 + n_permutations)``; never 0, NaN where `observed` is.
    """
    observed, permuted = np.abs(np.asarray(observed, float)), np.abs(np.asarray(permuted, float))
    valid = ~np.isnan(observed)
    adjusted = np.full(observed.shape, np.nan)
    if valid.any():
        largest = np.sort(permuted[:, valid].max(axis=1))
        slack = 1e-12 * observed[valid]
        hits = len(largest) - np.searchsorted(largest, observed[valid] - slack, side="left")
        adjusted[valid] = (1 + hits) / (1 + len(largest))
    return adjusted


def spearman(x, y):
    """Spearman's rank correlation along the last axis, ties by average rank.

    Parameters
    ----------
    x, y : array_like, shape (..., n)
        Paired values.

    Returns
    -------
    float or numpy.ndarray, shape (...)
        Correlation in [-1, 1]; NaN where a row is constant, holds a NaN, or has fewer than two values.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    if x.shape[-1] < 2:
        return np.full(x.shape[:-1], np.nan)[()]
    a, b = (scipy_stats.rankdata(v, axis=-1) - (v.shape[-1] + 1) / 2 for v in (x, y))
    scale = np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.clip((a * b).sum(-1) / scale, -1, 1)
    bad = (scale == 0) | ~np.isfinite(x).all(-1) | ~np.isfinite(y).all(-1)
    return np.where(bad, np.nan, r)[()]


def spearman_t_p(r, n):
    """Two-sided p of a Spearman correlation by Student's t with n − 2 degrees of freedom, as papers print it."""
    if not np.isfinite(r) or n < 3:
        return float("nan")
    with np.errstate(divide="ignore"):
        t = r * np.sqrt((n - 2) / np.float64((1 + r) * (1 - r)))
    return float(2 * scipy_stats.t.sf(abs(t), n - 2))


def jackknife_t(estimate, *deleted, level=0.95):
    """Interval by deleting one picture at a time, Student's t with Welch's degrees of freedom.

    Parameters
    ----------
    estimate : float
        The statistic on all pictures.
    *deleted : array_like, shape (n_g,)
        For every independent set of pictures, the statistic without each of its pictures in turn.
    level : float
        Coverage aimed at.

    Returns
    -------
    low, high : float
        Bounds; NaN when a set has fewer than two pictures or a value is undefined.
    """
    deleted = [np.asarray(d, float) for d in deleted]
    if any(len(d) < 2 or not np.isfinite(d).all() for d in deleted):
        return float("nan"), float("nan")
    parts = np.array([(len(d) - 1) / len(d) * ((d - d.mean()) ** 2).sum() for d in deleted])
    variance = parts.sum()
    if variance == 0:
        return float(estimate), float(estimate)
    freedom = variance**2 / sum(v**2 / (len(d) - 1) for v, d in zip(parts, deleted))
    half = scipy_stats.t.ppf((1 + level) / 2, freedom) * np.sqrt(variance)
    return float(estimate - half), float(estimate + half)
