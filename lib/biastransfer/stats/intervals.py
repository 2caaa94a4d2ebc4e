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
    deleted = [np.asarray(d, float) for d in deleted]
    if any(len(d) < 2 or not np.isfinite(d).all() for d in deleted):
        return float("nan"), float("nan")
    parts = np.array([(len(d) - 1) / len(d) * ((d - d.mean()) ** 2).sum() for d in deleted])
    variance = parts.sum()
    if variance == 0:
        return float(estimate), float(estimate)
    freedom = variance**2 / sum(v**2 / (len(d) - 1) for v, d in zip(parts, deleted))
    half = stats.t.ppf((1 + level) / 2, freedom) * np.sqrt(variance)
    return float(estimate - half), float(estimate + half)


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
    d = effect_of_scores(scores, n)
    of_x, of_y = _without_each_picture(scores, n)
    fixed = jackknife_t(d, of_x, of_y)
    if min(to_a.shape[1], to_b.shape[1]) < 2:
        return float("nan"), float("nan"), *fixed
    of_a = effect_of_scores(scores + _change(to_a), n)
    of_b = effect_of_scores(scores - _change(to_b), n)
    return *jackknife_t(d, of_x, of_y, of_a, of_b), *fixed


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
