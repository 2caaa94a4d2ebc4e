"""Similarities of a whole analysis set: the papers' items, and tidy tables with intervals."""

import numpy as np
import pandas as pd

from biastransfer.cosines import direction, same_columns, unit_lengths
from biastransfer.similarity.cosine import inter_class, inter_from_sums, intra_class, intra_from_sum
from biastransfer.stats import jackknife_t

COLUMNS = [
    *("run", "backbone", "stage", "target", "seed", "set"),
    *("kind", "item", "value", "low", "high", "n", "reason"),
]


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
    return pd.DataFrame(rows, columns=COLUMNS)


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
            intra_from_sum(sums[item] @ sums[item], *n)
            if len(n) == 1
            else inter_from_sums(*map(sums.get, names), *n)
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


def _interval(value, checked, sums):
    """Jackknife-t over pictures, from the projections of the unit rows on the class sums alone."""
    if len(checked) == 1:
        (z, length), total = checked[0], sums[0]
        n = len(z)
        square = total @ total - 2 * (z @ total) / length + 1
        return jackknife_t(value, intra_from_sum(square, n - 1)) if n > 2 else (float("nan"),) * 2
    deleted = []
    for (z, length), own, other, n in zip(checked, sums, sums[::-1], [len(c[0]) for c in checked[::-1]]):
        if len(z) < 2:
            return float("nan"), float("nan")
        deleted.append((own @ other - (z @ other) / length) / ((len(z) - 1) * n))
    return jackknife_t(value, *deleted)
