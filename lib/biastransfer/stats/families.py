"""Families of tests: p-values adjusted for how many there are."""

import numpy as np

from biastransfer.stats.intervals import effect_of_scores

TIE = 1e-9  # statistics that agree to this share are one value: nearly equal cosines lose digits in d


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


def max_t(observed, permuted, *, alternative="two-sided"):
    """Adjust a family of statistics by the permutation distribution of its largest member (Westfall–Young).

    Parameters
    ----------
    observed : array_like, shape (m,)
        Statistics on one scale. NaN marks a test that could not be made.
    permuted : array_like, shape (n_permutations, m)
        The same statistics under shared random permutations, without the observed one.
    alternative : {"two-sided", "greater", "less"}
        Whether their size counts, or how far they lie above or below 0.

    Returns
    -------
    numpy.ndarray, shape (m,)
        Single-step adjusted p-values, ``(1 + hits) / (1 + n_permutations)``; NaN where `observed` is.

    Raises
    ------
    ValueError
        If the alternative is unknown.

    Examples
    --------
    >>> max_t([2.0, 0.4], [[1.0, -3.0], [0.5, 0.5], [2.0, 0.0]]).tolist()
    [0.75, 1.0]
    """
    observed, permuted = np.asarray(observed, float), np.asarray(permuted, float)
    valid = ~np.isnan(observed)
    if not valid.any():
        return np.full(observed.shape, np.nan)
    orient = _oriented(alternative)
    return _among_largest(orient(observed), orient(permuted[:, valid]).max(axis=1))


def shared_max_t(scores, n, *, alternative="two-sided", draws=10_000, seed=0):
    """p-values of effect sizes over a family whose tests share their pictures, by max-T.

    Parameters
    ----------
    scores : numpy.ndarray, shape (m, N)
        A row a test: the scores of the same pictures in the same order, the first `n` those of the first set.
        A row with NaN is a test that could not be made.
    n : int
        Size of the first set.
    alternative : {"two-sided", "greater", "less"}
        As in :func:`max_t`.
    draws, seed : int
        Random permutations of the pictures, each the same for all tests, and their seed.

    Returns
    -------
    numpy.ndarray, shape (m,)
        As in :func:`max_t`, of the difference of means over the standard deviation (d): permutations leave
        that deviation as it is, so d is on one scale in all tests.

    Raises
    ------
    ValueError
        If the alternative is unknown.

    Notes
    -----
    A draw is one row of a matrix of zeros and ones, and d of all tests one product with it; only the largest
    value of each draw is kept, and draws are made in blocks of at most 2²⁰ numbers.
    """
    scores = np.asarray(scores, float)
    observed = effect_of_scores(scores, n)
    made = scores[np.isfinite(observed)]
    if not len(made):
        return np.full(len(scores), np.nan)
    size, orient, rng = scores.shape[1], _oriented(alternative), np.random.default_rng(seed)
    unit = (made - made.mean(1, keepdims=True)) / made.std(1, ddof=1, keepdims=True)
    of_sums, largest = (1 / n + 1 / (size - n)) * unit.T, []
    block = max(1, 2**20 // max(size, len(made)))
    for start in range(0, draws, block):
        drawn = rng.random((min(block, draws - start), size)).argpartition(n - 1, axis=1)[:, :n]
        chosen = np.zeros((len(drawn), size))
        np.put_along_axis(chosen, drawn, 1.0, axis=1)
        largest.append(orient(chosen @ of_sums).max(axis=1))
    return _among_largest(orient(observed), np.concatenate(largest))


def _oriented(alternative):
    """Return what makes a statistic large where it speaks for the alternative."""
    known = {"two-sided": np.abs, "greater": np.positive, "less": np.negative}
    if alternative not in known:
        raise ValueError(f"unknown alternative {alternative!r}; known: {', '.join(known)}.")
    return known[alternative]


def _among_largest(observed, largest):
    """Share of draws, the observed one among them, whose largest statistic reaches each observed one."""
    largest = np.sort(largest)
    hits = len(largest) - np.searchsorted(largest, observed - TIE * np.abs(observed), side="left")
    return np.where(np.isnan(observed), np.nan, (1 + hits) / (1 + len(largest)))
