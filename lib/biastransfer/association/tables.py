"""Association tests of a whole analysis set as tidy tables, corrected for their number."""

from itertools import combinations

import pandas as pd

from biastransfer.association.effect import association_test
from biastransfer.cosines import unit_lengths
from biastransfer.stats import benjamini_hochberg, benjamini_yekutieli, holm

COLUMNS = [
    *("run", "backbone", "stage", "target", "seed", "set", "X", "Y", "A"),
    *("B", "effect_size", "low", "high", "p", "direction", "p_holm", "p_by", "p_bh"),
    *("p_greater", "method", "error", "low_fixed", "high_fixed", "n_x", "n_y", "n_a", "n_b"),
    *("n_tests", "sum_eq6", "reason"),
]


def pairs(classes, attributes=("man", "woman"), reference="random"):
    """Object pairs (A, B) of a schema: every two objects that were also photographed with people.

    Parameters
    ----------
    classes : iterable of str
        Class names.
    attributes : sequence of str
        What may follow the plus sign.
    reference : str
        The control class, never an object.

    Returns
    -------
    list of (str, str)
        Ordered so that signs read as in Table 9: sports or surfboard first, fashion last.

    Examples
    --------
    >>> pairs(["man", "woman", "car", "car+man", "sports", "sports+man", "random"])
    [('sports', 'car')]
    """
    classes = list(classes)
    objects = [c for c in classes if any(f"{c}+{a}" in classes for a in attributes) and c != reference]
    rank = {"sports": -2, "surfboard": -2, "refrigerator": 1, "mammal": 1, "fashion": 2}
    return list(combinations(sorted(objects, key=lambda c: rank.get(c, 0)), 2))


def tabulate(
    embedded, set_name, run, *, X="man", Y="woman", pairs=None, alternative="two-sided", method="auto", seed=0
):
    """Association tests of every condition and object pair as a tidy table, corrected over the table.

    Parameters
    ----------
    embedded : mapping
        Condition (with .backbone, .stage, .target and .seed) → mapping of class → (n, D) array.
    set_name, run : str
        Name of the analysis set and of the run.
    X, Y : str
        Target classes.
    pairs : sequence of (str, str), optional
        Attribute classes (A, B); by default all object pairs of the set, ordered as in Table 9.
    alternative, method, seed
        As in :func:`association_test`.

    Returns
    -------
    pandas.DataFrame
        Columns run, backbone, stage, target, seed, set, X, Y, A, B, effect_size, low, high, p, direction,
        p_holm, p_by, p_bh, p_greater, method, error, low_fixed, high_fixed, n_x, n_y, n_a, n_b, n_tests,
        sum_eq6, reason. Adjusted p-values are of `p` over all rows, NaN left out.

    Raises
    ------
    ValueError
        If a class is missing or cannot be used.
    """
    rows = []
    for condition, vectors in embedded.items():
        keys = {"run": run, **{k: getattr(condition, k) for k in ("backbone", "stage", "target", "seed")}}
        for a, b in pairs if pairs is not None else _pairs(vectors):
            names = {"X": X, "Y": Y, "A": a, "B": b}
            sets = [_named(vectors, name) for name in names.values()]
            result = association_test(*sets, alternative=alternative, method=method, seed=seed)
            counts = {f"n_{k.lower()}": len(z) for k, z in zip(names, sets)}
            rows.append({**keys, "set": set_name, **names, **counts, **vars(result)})
    table = pd.DataFrame(rows).reindex(columns=COLUMNS)
    for column, adjust in {"p_holm": holm, "p_by": benjamini_yekutieli, "p_bh": benjamini_hochberg}.items():
        table[column] = adjust(table["p"])
    return table.assign(n_tests=int(table["p"].notna().sum()))


_pairs = pairs  # `tabulate` has an argument of that name


def _named(vectors, name):
    if name not in vectors:
        raise ValueError(f"the association test needs class {name!r}; the set has {', '.join(vectors)}.")
    unit_lengths(vectors[name], f"class {name!r}")
    return vectors[name]
