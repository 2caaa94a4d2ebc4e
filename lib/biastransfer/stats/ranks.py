"""Rank correlation with ties and its permutation null: all pairings of two lists, counted, never listed."""

from functools import lru_cache
from itertools import permutations
from math import factorial, prod

import numpy as np
from scipy import stats

EXACT_ITEMS = 14  # pairings of up to 14 items are counted, of more they are sampled


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
    a, b = _centred_ranks(x), _centred_ranks(y)
    scale = np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.clip((a * b).sum(-1) / scale, -1, 1)
    bad = (scale == 0) | ~np.isfinite(x).all(-1) | ~np.isfinite(y).all(-1)
    return np.where(bad, np.nan, r)[()]


def _centred_ranks(v):
    """Average ranks along the last axis minus their mean; short rows are ranked by comparing all pairs."""
    if v.ndim == 1 or v.shape[-1] > 32:
        return stats.rankdata(v, axis=-1) - (v.shape[-1] + 1) / 2
    return (np.sign(v[..., :, None] - v[..., None, :])).sum(-1) / 2


def spearman_t_p(r, n):
    """Two-sided p of a Spearman correlation `r` over `n` items by Student's t, n − 2 degrees of freedom."""
    if not np.isfinite(r) or n < 3:
        return float("nan")
    with np.errstate(divide="ignore"):
        t = r * np.sqrt((n - 2) / np.float64((1 + r) * (1 - r)))
    return float(2 * stats.t.sf(abs(t), n - 2))


def spearman_permutation_p(x, y, *, n_samples=100_000, seed=0):
    """Two-sided permutation p of Spearman's correlation, exact up to 14 items, with midranks for ties.

    Parameters
    ----------
    x, y : array_like, shape (n,)
        Paired values, finite.
    n_samples : int
        Random permutations, used beyond 14 items.
    seed : int
        Seed of those permutations.

    Returns
    -------
    p : float
        Share of the n! pairings with ``|r|`` at least as large as observed (ties count), or
        ``(1 + hits) / (1 + n_samples)`` when sampled; never 0.
    method : str
        ``"exact"`` or ``"sampled"``.

    Notes
    -----
    Twice a midrank is an integer, so the n! sums of rank products are counted: a table over the subsets of
    partners holds how often each sum occurs. Two-sided means by size of r, which equals twice the smaller
    side when there are no ties.

    Examples
    --------
    >>> spearman_permutation_p([1, 2, 3, 4], [1, 2, 3, 4])
    (0.08333333333333333, 'exact')
    """
    a, b = (np.rint(2 * stats.rankdata(v)).astype(np.int64) for v in (x, y))
    n, unit = len(a), int(np.gcd.reduce(a) * np.gcd.reduce(b))
    a, b = a // np.gcd.reduce(a), b // np.gcd.reduce(b)  # without ties the doubling is undone: smaller tables
    centre = n * (n + 1) ** 2  # Σ of doubled rank products where r = 0
    observed = abs(unit * int(a @ b) - centre)
    if n <= EXACT_ITEMS:
        sums, counts = _pairing_sums(tuple(sorted(a.tolist())), tuple(sorted(b.tolist())))
        return float(counts[np.abs(unit * sums - centre) >= observed].sum() / factorial(n)), "exact"
    rng, hits, left = np.random.default_rng(seed), 0, n_samples
    while left:
        block = min(left, 10_000)
        drawn = rng.permuted(np.broadcast_to(b, (block, n)), axis=1) @ a
        hits += int((np.abs(unit * drawn - centre) >= observed).sum())
        left -= block
    return (1 + hits) / (1 + n_samples), "sampled"


@lru_cache(maxsize=64)
def _pairing_sums(a, b):
    """Every value of Σ a[i]·b[π(i)] and the number of permutations π that give it."""
    top = sum(x * y for x, y in zip(a, b)) + 1
    layer = {0: np.ones(1, np.int64)}
    for x in a:
        following = {}
        for used, counts in layer.items():
            for j, y in enumerate(b):
                if not used >> j & 1:
                    target = following.setdefault(used | 1 << j, np.zeros(top, np.int64))
                    target[x * y : x * y + len(counts)] += counts
        layer = {used: np.trim_zeros(counts, "b") for used, counts in following.items()}
    (counts,) = layer.values()
    sums = np.flatnonzero(counts)
    return sums, counts[sums]


def within_group_permutation_p(x, y, groups, *, n_samples=20_000, seed=0):
    """Two-sided permutation p of Spearman's correlation when `y` is only shuffled within groups of items.

    Parameters
    ----------
    x, y : array_like, shape (n,)
        Paired values, finite.
    groups : sequence of hashable, length n
        Group of each item; three groups of three objects have 3!³ = 216 pairings.
    n_samples, seed : int
        Random pairings beyond 50,000, and their seed.

    Returns
    -------
    float
        Share of pairings with ``|r|`` at least as large (ties count), the observed one included; NaN where r
        is undefined.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    observed = spearman(x, y)
    members = [np.flatnonzero([g == group for g in groups]) for group in dict.fromkeys(groups)]
    count = prod(factorial(len(m)) for m in members)
    if np.isnan(observed):
        return float("nan")
    if count <= 50_000:
        drawn = np.arange(len(y))[None]
        for m in members:
            orders = np.array(list(permutations(m)))
            drawn = np.repeat(drawn, len(orders), axis=0)
            drawn[:, m] = np.tile(orders, (len(drawn) // len(orders), 1))
    else:
        rng = np.random.default_rng(seed)
        drawn = np.tile(np.arange(len(y)), (n_samples + 1, 1))  # the first row stays as observed
        for m in members:
            drawn[1:, m] = rng.permuted(drawn[1:, m], axis=1)
    r = spearman(np.broadcast_to(x, drawn.shape), y[drawn])
    return float(np.mean(np.abs(r) >= abs(observed) - 1e-12))


def spearman_null(n):
    """Every value that Spearman's correlation of n untied items can take, with its share of the n! pairings.

    Parameters
    ----------
    n : int
        Number of items, 2 to 14.

    Returns
    -------
    r, share : numpy.ndarray, shape (k,)
        Attainable correlations, ascending, and their probabilities when every pairing is equally likely.

    Raises
    ------
    ValueError
        Fewer than 2 or more than 14 items.

    Examples
    --------
    >>> r, share = spearman_null(3)
    >>> r.round(2).tolist(), share.round(3).tolist()
    ([-1.0, -0.5, 0.5, 1.0], [0.167, 0.333, 0.333, 0.167])
    """
    if not 2 <= n <= EXACT_ITEMS:
        raise ValueError(f"n must lie in 2..{EXACT_ITEMS}; got {n}. Beyond that the null is sampled.")
    ranks = tuple(range(1, n + 1))
    sums, counts = _pairing_sums(ranks, ranks)
    return (12 * sums - 3 * n * (n + 1) ** 2) / (n * (n * n - 1)), counts / factorial(n)
