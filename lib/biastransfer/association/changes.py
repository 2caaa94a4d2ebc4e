"""What finetuning did to associations: the change of d on the same pictures, and what became of each."""

import numpy as np
import pandas as pd

from biastransfer.association.effect import EQUAL
from biastransfer.association.sets import associations, attribute, targets
from biastransfer.stats import effect_of_scores, effects_without, holm, jackknife_p, jackknife_t

CONDITION = ["backbone", "stage", "target", "seed"]
KEYS = ["run", "backbone", "target", "seed", "set", "X", "Y", "A", "B"]
VALUES = ["before", "after", "change", "low", "high", "p", "p_holm", "before_p_holm", "after_p_holm"]
KEPT, GONE, NEW = "survives", "removed", "added"
TURNED, OPEN, NONE, MOVED = "reversed", "undecided", "none shown", "changed, neither stands"
UNKNOWN = "not measured"


def change_of_effect(before, after):
    """Change of the effect size d from one network to another on the same pictures.

    Parameters
    ----------
    before, after : tuple of four array_like, shapes (n_x, D), (n_y, D), (n_a, D), (n_b, D)
        Embeddings of X, Y, A and B by the one network and by the other, the same pictures in the same rows.
        D may differ between the two.

    Returns
    -------
    change, low, high, p : float
        d after − d before; a 95 % interval over the pictures of all four sets; the two-sided p of no change.
        NaN where d is undefined in one of them, the interval and p also where a set has one picture.

    Raises
    ------
    ValueError
        If a set is empty, has another number of pictures in the two, or cannot be used.

    Notes
    -----
    Each picture is left out of both networks at once, so what the two share cancels; Student's t with
    Welch's degrees of freedom, as for d itself. That one d is significant and the other is not says nothing
    of their difference (Gelman and Stern 2006, doi:10.1198/000313006X152649); this does. The networks are
    held fixed: the interval does not cover other finetunings.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sets = [rng.normal(size=(8, 4)) for _ in range(4)]
    >>> change_of_effect(sets, sets)
    (0.0, 0.0, 0.0, 1.0)
    """
    for name, one, other in zip("XYAB", before, after):
        if len(one) != len(other):
            raise ValueError(
                f"set {name} must hold the same pictures in the same rows in both; got {len(one)} before and "
                f"{len(other)} after. Drop in both what failed in one."
            )
    (d_before, without_before), (d_after, without_after) = (_effect(*sets) for sets in (before, after))
    change = d_after - d_before
    if np.isnan(change):
        return change, *(float("nan"),) * 3
    without = [after - before for before, after in zip(without_before, without_after)]
    return change, *jackknife_t(change, *without), jackknife_p(change, *without)


def changes(embedded, tests, *, level=0.05):
    """Tell of every association what finetuning did to it.

    Parameters
    ----------
    embedded : mapping
        Condition (with .backbone, .stage, .target and .seed) → mapping of class → (n, D) array, the same
        pictures in the same rows throughout.
    tests : DataFrame
        From :func:`tabulate` of these conditions: the effect sizes and their adjusted p.
    level : float
        Below which an adjusted p stands.

    Returns
    -------
    pandas.DataFrame
        One row for each finetuned network and pair. Columns run, backbone, target, seed, set, X, Y, A, B,
        before, after (d), change, low, high (95 % over pictures), p (of no change), p_holm (p after Holm's
        correction over these rows), before_p_holm, after_p_holm (from `tests`), verdict and n_tests. Empty
        where no network has both stages.

        ``verdict`` goes by what stands after correction. Both d, with one sign: *survives*, and *weaker* or
        *stronger* where the change stands too. With two signs: *reversed*. Only d after, and the change:
        *added*. Only d before, and the change: *removed*. One of the two d, but not the change: *undecided*.
        Neither d: *none shown*, or *changed, neither stands*. A d that is undefined: *not measured*.

    Raises
    ------
    ValueError
        As :func:`change_of_effect`.
    """
    starts = {c.backbone: c for c in embedded if c.stage == "pretrained"}
    made = {}
    for test in tests.to_dict("records"):
        made.setdefault(tuple(test[key] for key in CONDITION), {})[test["A"], test["B"]] = test
    rows = []
    for end in (c for c in embedded if c.stage == "finetuned" and c.backbone in starts):
        start = starts[end.backbone]
        earlier, later = (made[tuple(getattr(c, key) for key in CONDITION)] for c in (start, end))
        for pair, test in later.items():
            sets = [test[key] for key in ("X", "Y", "A", "B")]
            before, after = ([embedded[c][name] for name in sets] for c in (start, end))
            values = {"before": earlier[pair]["effect_size"], "after": test["effect_size"]}
            values |= dict(zip(("change", "low", "high", "p"), change_of_effect(before, after)))
            values |= {"before_p_holm": earlier[pair]["p_holm"], "after_p_holm": test["p_holm"]}
            rows.append({key: test[key] for key in KEYS} | values)
    table = pd.DataFrame(rows, columns=[*KEYS, *VALUES])
    table["p_holm"] = holm(table["p"])
    table["verdict"] = [_verdict(row, level) for row in table.to_dict("records")]
    return table.assign(n_tests=int(table["p"].notna().sum()))


def change_numbers(table, *, level=0.05):
    """Count the verdicts of :func:`changes`, for a chapter's sentences.

    Parameters
    ----------
    table : DataFrame
        From :func:`changes`.
    level : float
        Of the tests.

    Returns
    -------
    dict
        n_associations (rows), n_survives (with those that are weaker or stronger), n_added, n_removed,
        n_reversed, n_undecided, n_none (neither d stands), n_moved (p_holm below `level`), and
        largest_change, in words: the largest in size of those that stand, or of all where none does.
    """
    counts = {
        f"n_{name}": int(table["verdict"].astype(str).str.startswith(name).sum())
        for name in (KEPT, NEW, GONE, TURNED, OPEN)
    }
    counts["n_none"] = int(table["verdict"].isin([NONE, MOVED]).sum())
    moved = table[table["p_holm"] < level]
    shown = moved if len(moved) else table
    said = "none: no network was measured before and after"
    if shown["change"].notna().any():
        row = shown.loc[shown["change"].abs().idxmax()]
        said = (
            f"from {row['before']:.2f} to {row['after']:.2f} ({row['A']} against {row['B']}, "
            f"{row['backbone']}, seed {row['seed']})"
        )
    return {"n_associations": len(table), **counts, "n_moved": len(moved), "largest_change": said}


def _verdict(row, level):
    if np.isnan(row["change"]):
        return UNKNOWN
    stood, stands, moved = (row[key] < level for key in ("before_p_holm", "after_p_holm", "p_holm"))
    if stood and stands:
        if row["before"] * row["after"] < 0:
            return TURNED
        size = "stronger" if abs(row["after"]) > abs(row["before"]) else "weaker"
        return f"{KEPT}, {size}" if moved else KEPT
    if stood or stands:
        return (NEW if stands else GONE) if moved else OPEN
    return MOVED if moved else NONE


def _effect(X, Y, A, B):
    """Effect size d, and d without each picture of each set."""
    people = targets(X, Y)
    a, b = attribute(people, A, "A"), attribute(people, B, "B")
    scores = associations(people, a.centre, b.centre)
    if np.ptp(scores) <= EQUAL:
        return float("nan"), ()
    cosines = (a.cosines.astype(float), b.cosines.astype(float))
    return float(effect_of_scores(scores, people.n)), effects_without(scores, people.n, *cosines)
