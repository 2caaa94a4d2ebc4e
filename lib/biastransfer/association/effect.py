"""Image embedding association test (iEAT): do two sets of pictures differ in what they lie closer to?"""

from dataclasses import dataclass
from math import comb

import numpy as np

from biastransfer.association.sets import associations, attribute, centre, checked_attribute, targets
from biastransfer.stats import effect_intervals, effect_of_scores, permutation_p

ALTERNATIVES = ("greater", "less", "two-sided")
METHODS = ("auto", "exact", "fourier", "sampled")
EQUAL = 1e-13  # associations that spread less than this, as cosines, are rounding of one value
_NO_SPREAD = "all associations are equal, so there is no spread to measure the difference in"


@dataclass(frozen=True)
class Association:
    """Result of one association test.

    Attributes
    ----------
    effect_size : float
        d, in standard deviations of the associations; above 0 when X lies closer to A than Y does.
    p : float
        p-value of the alternative asked for; never 0.
    direction : str
        ``"greater"`` when d > 0, ``"less"`` when d < 0, ``"none"`` when 0 or undefined.
    method : str
        How p was found: ``"exact"``, ``"fourier"`` or ``"sampled"``.
    error : float
        Bound on the numerical error of p (fourier), its Monte Carlo standard error (sampled), 0 when exact.
    n_partitions : int
        Partitions behind p: all of them, or those drawn.
    low, high : float
        95 % interval of d when the pictures of X, Y, A and B are all resampled.
    reason : str
        Why something is NaN; empty when nothing is.
    p_greater, p_less : float
        The two one-sided p-values.
    low_fixed, high_fixed : float
        95 % interval of d with A and B held fixed.
    sum_eq6 : float
        The paper's unscaled sum (Eq. 6) with A, B as concepts and X, Y as attributes.
    """

    effect_size: float
    p: float
    direction: str
    method: str
    error: float
    n_partitions: int
    low: float
    high: float
    reason: str
    p_greater: float
    p_less: float
    low_fixed: float
    high_fixed: float
    sum_eq6: float


def effect_size(X, Y, A, B):
    """Effect size d of the image embedding association test.

    Parameters
    ----------
    X, Y : array_like, shapes (n_x, D) and (n_y, D)
        Target sets, one embedding a picture.
    A, B : array_like, shapes (n_a, D) and (n_b, D)
        Attribute sets.

    Returns
    -------
    float
        (mean of s over X − mean of s over Y) / standard deviation of s over X ∪ Y, with s(w) = mean cosine
        to A − mean cosine to B. Above 0 when X lies closer to A than Y does; NaN when all associations are
        equal.

    Raises
    ------
    ValueError
        If a set is empty, a row is of zero length or not finite, or the numbers of columns differ.

    Notes
    -----
    The standard deviation has ddof = 1, as in the reference implementation of Steed and Caliskan (2021).
    Sets may differ in size.

    Examples
    --------
    >>> round(effect_size([[1, 0]], [[0, 1]], [[1, 0]], [[0, 1]]), 3)
    1.414
    """
    people = targets(X, Y)
    centres = [centre(*checked_attribute(people, z, name)) for name, z in (("A", A), ("B", B))]
    return _d(associations(people, *centres), people.n)


def association_test(X, Y, A, B, *, alternative="greater", method="auto", n_samples=100_000, seed=0):
    """Test by permutation whether X lies closer to A, and Y to B, than chance would have it.

    Parameters
    ----------
    X, Y, A, B : array_like, shapes (n, D)
        As in :func:`effect_size`.
    alternative : {"greater", "less", "two-sided"}
        Which side counts; two-sided is min(1, 2 · min of the two sides).
    method : {"auto", "exact", "fourier", "sampled"}
        ``auto`` counts exactly where it can (up to 40 pictures in X ∪ Y, and beyond where one set is small),
        else inverts the characteristic function, and samples where that cannot be accurate.
    n_samples, seed : int
        Random partitions of ``sampled``, and their seed.

    Returns
    -------
    Association
        Effect size, p, direction, interval and how they were found.

    Raises
    ------
    ValueError
        As :func:`effect_size`; for an unknown option; for ``exact`` where the partitions cannot be counted.

    Notes
    -----
    The statistic is Σ s(x) over X; partitions of X ∪ Y with a sum at least as large count (ties within
    1e-12 of Σ|s| too). The null says that the pictures of X and Y are exchangeable, not that the network
    has learned nothing.
    """
    people = targets(X, Y)
    a, b = attribute(people, A, "A"), attribute(people, B, "B")
    scores = associations(people, a.centre, b.centre)
    return compare(
        scores, people.n, a, b, alternative=alternative, method=method, n_samples=n_samples, seed=seed
    )


def compare(scores, n, a, b, *, alternative, method="auto", n_samples=100_000, seed=0):
    """Test associations with two attribute sets that are already measured.

    Parameters
    ----------
    scores : numpy.ndarray, shape (N,)
        Associations of the pictures of X, then Y.
    n : int
        Size of X.
    a, b : Attribute
        The sets behind `scores`.
    alternative, method, n_samples, seed
        As in :func:`association_test`.

    Returns
    -------
    Association
    """
    _check_options(alternative, method, n_samples)
    d, total = _d(scores, n), comb(len(scores), n)
    sum_eq6 = a.towards_y - b.towards_y
    if np.isnan(d):
        nan = float("nan")
        return Association(
            nan, nan, "none", method, nan, total, nan, nan, _NO_SPREAD, nan, nan, nan, nan, sum_eq6
        )
    greater, less, used, error = permutation_p(scores, n, method=method, n_samples=n_samples, seed=seed)
    p = {"greater": greater, "less": less, "two-sided": min(1.0, 2 * min(greater, less))}[alternative]
    low, high, low_fixed, high_fixed = effect_intervals(
        scores, n, a.cosines.astype(float), b.cosines.astype(float)
    )
    return Association(
        effect_size=d,
        p=float(p),
        direction="greater" if d > 0 else "less" if d < 0 else "none",
        method=used,
        error=float(error),
        n_partitions=n_samples if used == "sampled" else total,
        low=low,
        high=high,
        reason="an interval needs at least 2 pictures in every set" if np.isnan(low) else "",
        p_greater=float(greater),
        p_less=float(less),
        low_fixed=low_fixed,
        high_fixed=high_fixed,
        sum_eq6=sum_eq6,
    )


def _d(scores, n):
    return float("nan") if np.ptp(scores) <= EQUAL else float(effect_of_scores(scores, n))


def _check_options(alternative, method, n_samples):
    for name, value, known in (("alternative", alternative, ALTERNATIVES), ("method", method, METHODS)):
        if value not in known:
            raise ValueError(f"unknown {name} {value!r}; known: {', '.join(known)}.")
    if int(n_samples) != n_samples or n_samples < 1:
        raise ValueError(f"n_samples must be a whole number of at least 1; got {n_samples!r}.")
