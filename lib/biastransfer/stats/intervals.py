"""Intervals by deleting pictures, one at a time."""

import numpy as np
from scipy import stats


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
    spread, freedom = _spread(deleted)
    half = stats.t.ppf((1 + level) / 2, freedom) * spread if spread else spread
    return float(estimate - half), float(estimate + half)


def jackknife_p(estimate, *deleted):
    """Two-sided p of the statistic being 0, from the same standard error as `jackknife_t`.

    Parameters
    ----------
    estimate, *deleted
        As for :func:`jackknife_t`.

    Returns
    -------
    float
        p; NaN where the interval is, and 1 where neither the statistic nor its spread differs from 0.
    """
    spread, freedom = _spread(deleted)
    if spread == 0:
        return float(estimate == 0)
    return float(2 * stats.t.sf(abs(estimate) / spread, freedom))


def _spread(deleted):
    """Standard error and Welch's degrees of freedom; NaN where a set has one picture or a value is none."""
    deleted = [np.asarray(d, float) for d in deleted]
    if any(len(d) < 2 or not np.isfinite(d).all() for d in deleted):
        return float("nan"), float("nan")
    parts = np.array([(len(d) - 1) / len(d) * ((d - d.mean()) ** 2).sum() for d in deleted])
    variance = parts.sum()
    if variance == 0:
        return 0.0, float("inf")
    freedom = variance**2 / sum(v**2 / (len(d) - 1) for v, d in zip(parts, deleted))
    return float(np.sqrt(variance)), float(freedom)


def effect_intervals(scores, n, to_a, to_b):
    """95 % intervals of d: all four sets resampled, and A and B held fixed.

    Parameters
    ----------
    scores : numpy.ndarray, shape (N,)
        Associations s of the pictures of X, then Y.
    n : int
        Size of X.
    to_a, to_b : numpy.ndarray, shapes (N, n_a) and (N, n_b)
        Cosines of those pictures with the pictures of A and B.

    Returns
    -------
    low, high, low_fixed, high_fixed : float
        Jackknife-t bounds; NaN where a set has one picture.
    """
    d, (of_x, of_y, of_a, of_b) = effect_of_scores(scores, n), effects_without(scores, n, to_a, to_b)
    return *jackknife_t(d, of_x, of_y, of_a, of_b), *jackknife_t(d, of_x, of_y)


def effects_without(scores, n, to_a, to_b):
    """Effect size d without each picture in turn, for each of the four sets.

    Parameters
    ----------
    scores, n, to_a, to_b
        As for :func:`effect_intervals`.

    Returns
    -------
    tuple of four numpy.ndarray, shapes (n_x,), (n_y,), (n_a,), (n_b,)
        NaN in a set of one picture.
    """
    of_x, of_y = _without_each_picture(scores, n)
    of_a, of_b = (
        effect_of_scores(scores + sign * _change(to), n) if to.shape[1] > 1 else np.array([np.nan])
        for sign, to in ((1, to_a), (-1, to_b))
    )
    return of_x, of_y, of_a, of_b


def effect_of_scores(scores, n):
    """Effect size d of `scores` along the last axis, the first `n` those of X; ddof 1."""
    difference = scores[..., :n].mean(-1) - scores[..., n:].mean(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return difference / scores.std(-1, ddof=1)


def _change(to):
    """Change of the mean cosine when each attribute picture is left out, shape (n_attribute, N)."""
    return (to.mean(1) - to.T) / (to.shape[1] - 1)


def _without_each_picture(scores, n):
    size = len(scores)
    if min(n, size - n) < 2:
        return np.full(n, np.nan), np.full(size - n, np.nan)
    s = scores - scores.mean()  # small numbers: sums of squares lose no digits
    squares = (s @ s - s * s) - s * s / (size - 1)  # the other scores sum to −s
    spread = np.sqrt(np.maximum(squares, 0) / (size - 2))
    total = s[:n].sum()
    mean_x = np.where(np.arange(size) < n, (total - s) / (n - 1), total / n)
    mean_y = np.where(np.arange(size) < n, -total / (size - n), (-total - s) / (size - n - 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        d = (mean_x - mean_y) / spread
    return d[:n], d[n:]
