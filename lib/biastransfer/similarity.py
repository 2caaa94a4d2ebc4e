"""Intra- and inter-class similarity: how close the pictures of one class, or of two, lie in an embedding."""

import numpy as np
import pandas as pd

from biastransfer.cosines import direction, same_columns, unit_lengths
from biastransfer.stats import jackknife_t

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
    With unit rows ẑ the mean over all ordered pairs is (‖Σẑ‖² − n) / (n(n − 1)); both samplers have it as their
    expectation. Algorithm 1 splits at random and draws one picture from each half: any two different
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
        return float(_intra(np.sum(direction(z, length) ** 2), n))
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
        return float(np.clip(direction(z1, length1) @ direction(z2, length2) / (n1 * n2), -1, 1))
    rng, unit1, unit2 = np.random.default_rng(seed), z1 / length1[:, None], z2 / length2[:, None]
    if method == "algorithm":
        i, j = rng.integers(n1, size=iterations), rng.integers(n2, size=iterations)
        return float(np.einsum("ij,ij->i", unit1[i], unit2[j]).mean())

    def subset(unit):
        n = len(unit)
        return unit[rng.choice(n, n if n <= 5 else rng.integers(5, n), replace=False)].mean(0)

    return float(np.mean([subset(unit1) @ subset(unit2) for _ in range(iterations)]))


def items(classes, attributes=("man", "woman"), reference="random"):
    """Items of the two bias transfer scores: the papers' classes and pairs for both schemas.

    Parameters
    ----------
    classes : iterable of str
        Class names in schema order, such as ``"car"`` and ``"car+man"``.
    attributes : sequence of str
        What may follow the plus sign.
    reference : str
        The control class.

    Returns
    -------
    intra : list of str
        Classes without a plus sign (7 for COCO, 8 for Open Images).
    inter : list of str
        For every object seen with an attribute: ``"object+attribute|object"`` for each attribute, then
        ``"object|reference"`` (9 for COCO, 12 for Open Images).

    Examples
    --------
    >>> items(["man", "random", "car", "car+man", "car+woman"])
    (['man', 'random', 'car'], ['car+man|car', 'car+woman|car', 'car|random'])
    """
    classes = list(dict.fromkeys(classes))
    intra, inter = [c for c in classes if "+" not in c], []
    for name in intra:
        found = [f"{name}+{a}|{name}" for a in attributes if f"{name}+{a}" in classes]
        inter += found + ([f"{name}|{reference}"] if found and reference in classes else [])
    return intra, inter


def similarities(vectors, items, *, method="exact", iterations=50, seed=0):
    """Similarity of every item: intra-class for ``"a"``, inter-class for ``"a|b"``.

    Parameters
    ----------
    vectors : mapping of str to array_like, shape (n, D)
        Embeddings of each class.
    items : iterable of str
        Class names, and pairs joined by ``|``.
    method, iterations, seed
        As in :func:`intra_class`.

    Returns
    -------
    dict of str to float
        In the order of `items`; NaN for the intra-class similarity of a single picture.

    Raises
    ------
    ValueError
        If an item names a class that `vectors` lacks, or a class cannot be used; the class is named.
    """
    if method == "exact":
        return {row["item"]: row["value"] for row in _rows(vectors, items, intervals=False)}
    _checked(vectors, items)
    options = {"method": method, "iterations": iterations, "seed": seed}
    pairs = {item: [vectors[name] for name in item.split("|")] for item in items}
    return {k: (inter_class if len(v) == 2 else intra_class)(*v, **options) for k, v in pairs.items()}


def tabulate(embedded, set_name, run, *, attributes=("man", "woman"), reference="random"):
    """Similarities of every condition as a tidy table with 95 % intervals over pictures.

    Parameters
    ----------
    embedded : mapping
        Condition (with .backbone, .stage, .target and .seed) → mapping of class → (n, D) array.
    set_name, run : str
        Name of the analysis set and of the run.
    attributes, reference
        As in :func:`items`.

    Returns
    -------
    pandas.DataFrame
        Columns run, backbone, stage, target, seed, set, kind (intra | inter), item, value, low, high, n
        (pictures behind the value, those of both classes for a pair), reason (why a value or its interval is
        missing, else empty).
    """
    rows = []
    for condition, vectors in embedded.items():
        keys = {"run": run, **{k: getattr(condition, k) for k in ("backbone", "stage", "target", "seed")}}
        intra, inter = items(vectors, attributes, reference)
        rows += [{**keys, "set": set_name, **row} for row in _rows(vectors, intra + inter)]
    columns = ["run", "backbone", "stage", "target", "seed", "set", "kind", "item", "value", "low", "high", "n", "reason"]
    return pd.DataFrame(rows, columns=columns)


def _checked(vectors, items):
    names = list(dict.fromkeys(name for item in items for name in item.split("|")))
    for name in names:
        if name not in vectors:
            raise ValueError(
                f"items may only name classes that have embeddings; {name!r} is not among {list(vectors)}."
            )
    checked = {name: unit_lengths(vectors[name], f"class {name!r}") for name in names}
    if checked:
        same_columns({f"class {name!r}": z for name, (z, _) in checked.items()})
    return checked


def _rows(vectors, items, intervals=True):
    items = list(items)
    checked = _checked(vectors, items)
    sums = {name: direction(*pair) for name, pair in checked.items()}
    for item in items:
        names = item.split("|")
        n = [len(checked[name][0]) for name in names]
        value = (
            _intra(sums[item] @ sums[item], n[0]) if len(n) == 1 else _inter(*(sums[k] for k in names), *n)
        )
        low = high = float("nan")
        if intervals:
            low, high = _interval(value, [checked[k] for k in names], [sums[k] for k in names])
        reason = (
            "" if min(n) > 3 - len(n) else f"an interval needs {4 - len(n)} pictures a class; got {min(n)}"
        )
        if np.isnan(value):
            reason = "one picture has no other to be compared with"
        yield {
            "kind": "inter" if len(n) == 2 else "intra",
            "item": item,
            "value": float(value),
            "low": low,
            "high": high,
            "n": sum(n),
            "reason": reason,
        }


def _intra(square, n):
    """Similarity from ‖Σẑ‖² (one value, or one for every deleted picture)."""
    return (
        np.clip((square - n) / (n * (n - 1)), -1, 1)
        if n > 1
        else np.full_like(square, np.nan, dtype=float)[()]
    )


def _inter(sum1, sum2, n1, n2):
    return np.clip(sum1 @ sum2 / (n1 * n2), -1, 1)


def _interval(value, checked, sums):
    """Jackknife-t over pictures, from the projections of the unit rows on the class sums alone."""
    if len(checked) == 1:
        (z, length), total = checked[0], sums[0]
        n = len(z)
        square = total @ total - 2 * (z @ total) / length + 1
        return jackknife_t(value, _intra(square, n - 1)) if n > 2 else (float("nan"),) * 2
    deleted = []
    for (z, length), own, other, n in zip(checked, sums, sums[::-1], [len(c[0]) for c in checked[::-1]]):
        if len(z) < 2:
            return float("nan"), float("nan")
        deleted.append((own @ other - (z @ other) / length) / ((len(z) - 1) * n))
    return jackknife_t(value, *deleted)


def _check_options(method, iterations):
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; known: {', '.join(METHODS)}.")
    if int(iterations) != iterations or iterations < 1:
        raise ValueError(f"iterations must be a whole number of at least 1; got {iterations!r}.")
