"""Intra- and inter-class similarity: how close the pictures of one class, or of two, lie in an embedding."""

import numpy as np

from biastransfer.cosines import direction, same_columns, unit_lengths

METHODS = ("exact", "algorithm", "released")


def intra_class(z, *, method="exact", iterations=50, seed=0):
    """Mean cosine similarity of two different pictures of one class (Eq. 3).

    Parameters
    ----------
    z : array_like, shape (n, D)
        Embeddings, one row a picture; any finite non-zero length.
    method : {"exact", "algorithm", "released"}
        The closed form, Algorithm 1 as printed, or what the authors' released code does.
    iterations, seed : int
        Draws of the two samplers and their seed; the closed form needs neither.

    Returns
    -------
    float
        Similarity in [-1, 1], higher is more alike; NaN for a single picture.

    Raises
    ------
    ValueError
        If there is no picture, a row is of zero length or not finite, or an option is unknown.

    Notes
    -----
    With unit rows ẑ the mean over all ordered pairs is (‖Σẑ‖² − n) / (n(n − 1)); both samplers have it as
    their expectation. Algorithm 1 splits at random and draws one picture from each half: any two different
    pictures, equally often. The released code averages all cosines across the two halves.

    Source: Ranjit et al. 2023, Eq. 3 and Algorithm 1.

    Examples
    --------
    >>> intra_class([[1, 0], [0, 1], [2, 0]])
    0.3333333333333333
    """
    z, length = unit_lengths(z, "z")
    _check_options(method, iterations)
    n = len(z)
    if n < 2:
        return float("nan")
    if method == "exact":
        return float(intra_from_sum(np.sum(direction(z, length) ** 2), n))
    rng, unit = np.random.default_rng(seed), z / length[:, None]
    if method == "algorithm":
        i = rng.integers(n, size=iterations)
        j = (i + rng.integers(1, n, size=iterations)) % n
        return float(np.einsum("ij,ij->i", unit[i], unit[j]).mean())
    drawn = [rng.permutation(n) for _ in range(iterations)]
    return float(np.mean([unit[o[: n // 2]].mean(0) @ unit[o[n // 2 :]].mean(0) for o in drawn]))


def inter_class(z1, z2, *, method="exact", iterations=50, seed=0):
    """Mean cosine similarity of a picture of one class and a picture of another (Eq. 4).

    Parameters
    ----------
    z1, z2 : array_like, shapes (n1, D) and (n2, D)
        Embeddings, one row a picture.
    method : {"exact", "algorithm", "released"}
        The closed form, Algorithm 2 as printed, or what the authors' released code does.
    iterations, seed : int
        Draws of the two samplers and their seed.

    Returns
    -------
    float
        Similarity in [-1, 1], higher is more alike.

    Raises
    ------
    ValueError
        If a class has no picture, a row is of zero length or not finite, the numbers of columns differ, or
        an option is unknown.

    Notes
    -----
    The mean over all pairs is the product of the two mean unit vectors. The released code takes, each time,
    a random subset of 5 to n − 1 pictures of each class and fails on five or fewer; here such a class is
    taken whole.

    Source: Ranjit et al. 2023, Eq. 4 and Algorithm 2.

    Examples
    --------
    >>> inter_class([[1, 0], [0, 1]], [[3, 0]])
    0.5
    """
    (z1, length1), (z2, length2) = unit_lengths(z1, "z1"), unit_lengths(z2, "z2")
    same_columns({"z1": z1, "z2": z2})
    _check_options(method, iterations)
    n1, n2 = len(z1), len(z2)
    if method == "exact":
        return float(inter_from_sums(direction(z1, length1), direction(z2, length2), n1, n2))
    rng, unit1, unit2 = np.random.default_rng(seed), z1 / length1[:, None], z2 / length2[:, None]
    if method == "algorithm":
        i, j = rng.integers(n1, size=iterations), rng.integers(n2, size=iterations)
        return float(np.einsum("ij,ij->i", unit1[i], unit2[j]).mean())

    def subset(unit):
        n = len(unit)
        return unit[rng.choice(n, n if n <= 5 else rng.integers(5, n), replace=False)].mean(0)

    return float(np.mean([subset(unit1) @ subset(unit2) for _ in range(iterations)]))


def intra_from_sum(square, n):
    """Similarity from `square` = ‖Σẑ‖² over `n` pictures (one value, or one for every deleted picture)."""
    return (
        np.clip((square - n) / (n * (n - 1)), -1, 1)
        if n > 1
        else np.full_like(square, np.nan, dtype=float)[()]
    )


def inter_from_sums(sum1, sum2, n1, n2):
    """Similarity of two classes from `sum1` and `sum2`, the sums of their `n1` and `n2` unit rows."""
    return np.clip(sum1 @ sum2 / (n1 * n2), -1, 1)


def _check_options(method, iterations):
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; known: {', '.join(METHODS)}.")
    if int(iterations) != iterations or iterations < 1:
        raise ValueError(f"iterations must be a whole number of at least 1; got {iterations!r}.")
