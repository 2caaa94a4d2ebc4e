"""Minimal detectable effects: what a test of this size could have found."""

from functools import lru_cache
from math import comb, sqrt

import numpy as np
from scipy import optimize, stats

from biastransfer.stats.ranks import EXACT_ITEMS, spearman_null


@lru_cache(maxsize=256)
def detectable_effect(n_x: int, n_y: int, *, level: float = 0.05, power: float = 0.8) -> float:
    """Size of the association effect d that a two-sided test finds with a given probability.

    Parameters
    ----------
    n_x, n_y : int
        Pictures of the target sets X and Y.
    level : float
        Of the test, not corrected for the number of tests.
    power : float
        Probability of p ≤ `level`.

    Returns
    -------
    float
        Size of d; NaN where no split of so few pictures reaches `level`.

    Notes
    -----
    Over all splits of N = n_x + n_y scores the difference of means has mean 0 and standard deviation
    S·√(N / (n_x·n_y)), S² with ddof 1, so the permutation z is exactly d·√(n_x·n_y / N): d·√75 at 150 + 150.
    z orders the splits as Student's t does, t = z·√((N − 2) / (N − 1 − z²)), and the permutation test has the
    power of the t test up to terms of order 1/N for scores that are near normal. If the means lie θ
    within-set standard deviations apart, t is noncentral with λ = θ·√(n_x·n_y / N) (about 1.96 + 0.84 at
    80 %), and the pooled deviation in d contains the shift: d = θ / √(1 + θ²·n_x·n_y / N²).

    Examples
    --------
    >>> round(detectable_effect(150, 150), 3), round(detectable_effect(10, 10), 2)
    (0.32, 1.1)
    """
    size = n_x + n_y
    if min(n_x, n_y) < 1 or size < 3 or 2 / comb(size, n_x) > level:
        return float("nan")
    critical = stats.t.ppf(1 - level / 2, size - 2)

    def lack(shift):  # the other side is found with a probability below 1e-5
        return stats.nct.sf(critical, size - 2, shift) - power

    shift = optimize.brentq(lack, 0, 2 * critical + 2)
    theta = shift * sqrt(size / (n_x * n_y))
    return float(theta / sqrt(1 + theta**2 * n_x * n_y / size**2))


@lru_cache(maxsize=64)
def significant_correlation(n: int, *, level: float = 0.05) -> float:
    """Smallest rank correlation of n items that is significant, two-sided: below it a score says nothing.

    Parameters
    ----------
    n : int
        Items of a bias transfer score.
    level : float
        Of the test.

    Returns
    -------
    float
        Smallest r > 0 whose p ≤ `level`; NaN where none is. By the exact permutation null up to 14 items
        without ties, beyond by Student's t.

    Examples
    --------
    >>> [round(significant_correlation(n), 3) for n in (3, 7, 9, 12)]
    [nan, 0.786, 0.7, 0.587]
    """
    if n < 3:
        return float("nan")
    if n > EXACT_ITEMS:
        t = stats.t.ppf(1 - level / 2, n - 2)
        return float(t / np.sqrt(n - 2 + t**2))
    r, share = spearman_null(n)
    p = np.array([share[np.abs(r) >= value - 1e-12].sum() for value in r])
    found = r[(r > 0) & (p <= level)]
    return float(found.min()) if len(found) else float("nan")
