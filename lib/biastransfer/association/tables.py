"""Association tests of a whole analysis set as tidy tables, corrected for their number."""

from itertools import combinations

import numpy as np
import pandas as pd

from biastransfer.association.effect import compare
from biastransfer.association.sets import associations, attribute, targets
from biastransfer.stats import benjamini_hochberg, benjamini_yekutieli, holm, shared_max_t

COLUMNS = [
    *("run", "backbone", "stage", "target", "seed", "set", "X", "Y", "A"),
    *("B", "effect_size", "low", "high", "p", "direction", "p_holm", "p_by", "p_bh", "p_maxt"),
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
        As in :func:`association_test`; seed also of the permutations behind p_maxt.

    Returns
    -------
    pandas.DataFrame
        Columns run, backbone, stage, target, seed, set, X, Y, A, B, effect_size, low, high, p, direction,
        p_holm, p_by, p_bh, p_maxt, p_greater, method, error, low_fixed, high_fixed, n_x, n_y, n_a, n_b,
        n_tests, sum_eq6, reason. Adjusted p-values are over all rows, NaN left out.

    Raises
    ------
    ValueError
        If a class is missing or cannot be used.

    Notes
    -----
    p_holm, p_by and p_bh adjust `p`. p_maxt holds d against the largest d of the whole table under 10,000
    permutations of the pictures of X and Y, the same for every condition and pair, and so takes account of
    how the tests depend on each other; it cannot fall below 1/10,001. It needs the same pictures in the same
    rows in every condition and is NaN where their numbers differ. The cosines with an object's pictures are
    taken once a condition, not once a pair.
    """
    rows, scores = [], []
    for condition, vectors in embedded.items():
        keys = {"run": run, **{k: getattr(condition, k) for k in ("backbone", "stage", "target", "seed")}}
        listed = list(pairs) if pairs is not None else _pairs(vectors)
        people = targets(*(_named(vectors, name) for name in (X, Y)), (f"class {X!r}", f"class {Y!r}"))
        objects = {
            name: attribute(people, _named(vectors, name), f"class {name!r}")
            for name in dict.fromkeys(name for pair in listed for name in pair)
        }
        for a, b in listed:
            names = {"X": X, "Y": Y, "A": a, "B": b}
            scores.append(associations(people, objects[a].centre, objects[b].centre))
            pair = (objects[a], objects[b])
            result = compare(scores[-1], people.n, *pair, alternative=alternative, method=method, seed=seed)
            counts = {f"n_{k.lower()}": len(vectors[name]) for k, name in names.items()}
            rows.append({**keys, "set": set_name, **names, **counts, **vars(result)})
    table = pd.DataFrame(rows).reindex(columns=COLUMNS)
    for column, adjust in {"p_holm": holm, "p_by": benjamini_yekutieli, "p_bh": benjamini_hochberg}.items():
        table[column] = adjust(table["p"])
    table["p_maxt"] = _max_t(table, scores, alternative, seed)
    return table.assign(n_tests=int(table["p"].notna().sum()))


_pairs = pairs  # `tabulate` has an argument of that name


def _max_t(table, scores, alternative, seed):
    """p of each d among the largest of the table; NaN unless all tests are about as many pictures."""
    if len(table.drop_duplicates(["n_x", "n_y"])) != 1:
        return np.nan
    made = table["effect_size"].notna().to_numpy()
    scores = np.where(made[:, None], np.stack(scores), np.nan)
    return shared_max_t(scores, int(table["n_x"].iloc[0]), alternative=alternative, seed=seed)


def _named(vectors, name):
    if name not in vectors:
        raise ValueError(f"the association test needs class {name!r}; the set has {', '.join(vectors)}.")
    return vectors[name]
