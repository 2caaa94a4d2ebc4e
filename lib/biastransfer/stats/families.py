"""Families of tests: p-values adjusted for how many there are."""

import numpy as np


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
        Single-step adjusted p-values, ``(1 + hits) / (1 + n_permutations)``; NaN where `observed` is.
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
