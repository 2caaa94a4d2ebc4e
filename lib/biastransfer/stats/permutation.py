"""Two-sample permutation test: the null counted exactly, inverted numerically, or sampled."""

import numpy as np

from biastransfer.stats.partitions import EXACT_PICTURES, countable, exact, sampled
from biastransfer.stats.saddlepoint import fourier

SMALL_ERROR = 1e-2  # share of p beyond which ``auto`` does not take the inversion


def permutation_p(scores, n, *, method="auto", n_samples=100_000, seed=0):
    """One-sided p-values of the sum of the first `n` scores among all choices of `n` of them.

    Parameters
    ----------
    scores : numpy.ndarray, shape (N,)
        One score a picture, the first `n` those of the first set.
    n : int
        Size of the first set.
    method : {"auto", "exact", "fourier", "sampled"}
        ``auto`` counts up to 40 pictures (more where one set is small), else inverts the characteristic
        function, and samples where that is not accurate and sampling could do better.
    n_samples, seed : int
        Random partitions and their seed.

    Returns
    -------
    greater, less : float
        p-values; ties count, so neither is ever 0.
    used : str
        ``"exact"``, ``"fourier"`` or ``"sampled"``.
    error : float
        0 when exact, a bound for the inversion, the larger Monte Carlo standard error when sampled.

    Raises
    ------
    ValueError
        If ``exact`` is asked for where the partitions cannot be counted.

    Notes
    -----
    Where `auto` keeps an inversion whose error is not small beside p, because p is below what sampling can
    resolve, the error is added to p.

    Examples
    --------
    >>> import numpy as np
    >>> permutation_p(np.array([3.0, 2.0, 1.0, 0.0]), 2)
    (0.16666666666666666, 1.0, 'exact', 0.0)
    """
    few = countable(scores, n)
    if method == "exact" and not few:
        raise ValueError(
            f"method 'exact' needs at most {EXACT_PICTURES} pictures in X and Y together, or one small set; "
            f"got {n} and {len(scores) - n}. Use 'auto' or 'fourier'."
        )
    if method == "exact" or (method == "auto" and few):
        return *exact(scores, n), "exact", 0.0
    if method != "sampled":
        greater, less, error = fourier(scores, n)
        smaller = min(greater, less)
        if method == "fourier" or error <= SMALL_ERROR * smaller:
            return greater, less, "fourier", error
        if smaller + error < 1 / (1 + n_samples):
            return min(1.0, greater + error), min(1.0, less + error), "fourier", error
    greater, less = sampled(scores, n, n_samples=n_samples, seed=seed)
    spread = max(p * (1 - p) for p in (greater, less))
    return greater, less, "sampled", float(np.sqrt(spread / n_samples))
