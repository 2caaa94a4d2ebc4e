"""Permutation null of a two-sample sum: how many ways of choosing as many pictures give a sum as large."""

from math import comb

import numpy as np

EXACT_PICTURES = 40
TIE = 1e-12  # sums closer than this share of Σ|score| are one tie: some thousand times the rounding error


def tie_width(scores):
    """Distance below which two sums of `scores` count as equal."""
    return TIE * float(np.abs(scores).sum())


def countable(scores, n):
    """Say whether the two tables of subset sums stay as small as they are for 20 + 20 pictures."""
    half, most = (len(scores) + 1) // 2, min(n, len(scores) - n)
    return sum(comb(half, size) for size in range(min(most, half) + 1)) <= 2 ** (EXACT_PICTURES // 2)


def exact(scores, n):
    """Exact one-sided permutation p-values of the sum of the first `n` scores.

    Parameters
    ----------
    scores : numpy.ndarray, shape (N,)
        One score a picture, the first `n` those of the first set.
    n : int
        Size of the first set.

    Returns
    -------
    greater, less : float
        Share of the C(N, n) partitions whose sum is at least (at most) the observed one; ties count, so
        neither is ever 0.

    Notes
    -----
    Meet in the middle: the subset sums of either half, sorted within each size, are matched by bisection.
    Two tables of 2^(N/2) sums replace the list of C(N, n) partitions.
    """
    if 2 * n > len(
        scores
    ):  # the smaller set needs the smaller tables, and its sum falls where the other's rises
        return exact(scores[::-1], len(scores) - n)[::-1]
    observed, width = scores[:n].sum(), tie_width(scores)
    half = len(scores) // 2
    left, right = _subset_sums(scores[:half], n), _subset_sums(scores[half:], n)
    above = below = 0
    for size, sums in enumerate(left):
        if not 0 <= n - size < len(right):
            continue
        other = right[n - size]
        small, large = (sums, other) if len(sums) < len(other) else (other, sums)
        above += len(small) * len(large) - int(np.searchsorted(large, observed - width - small).sum())
        below += int(np.searchsorted(large, observed + width - small, side="right").sum())
    total = comb(len(scores), n)
    return above / total, below / total


def _subset_sums(scores, most):
    """Sorted sums of all subsets of `scores`, by size, for sizes up to `most`."""
    sums = [np.zeros(1)]
    for count, score in enumerate(scores, start=1):
        grown = [sums[0]]
        for size in range(1, min(count, most) + 1):
            kept = [sums[size]] if size < len(sums) else []
            grown.append(np.concatenate([*kept, sums[size - 1] + score]))
        sums = grown
    return [np.sort(s) for s in sums]


def sampled(scores, n, *, n_samples=100_000, seed=0):
    """One-sided permutation p-values from random partitions and the observed one.

    Parameters
    ----------
    scores, n
        As in :func:`exact`.
    n_samples, seed : int
        Random partitions and their seed.

    Returns
    -------
    greater, less : float
        ``(1 + hits) / (1 + n_samples)``.
    """
    observed, width, rng = scores[:n].sum(), tie_width(scores), np.random.default_rng(seed)
    above = below = done = 0
    block = max(1, 4_000_000 // len(scores))
    while done < n_samples:
        count = min(block, n_samples - done)
        chosen = np.argpartition(rng.random((count, len(scores))), n - 1, axis=1)[:, :n]
        sums = scores[chosen].sum(axis=1)
        above += int((sums >= observed - width).sum())
        below += int((sums <= observed + width).sum())
        done += count
    return (1 + above) / (1 + n_samples), (1 + below) / (1 + n_samples)
