"""What leaves with a removed part: associations of sets of pictures before and after, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from biastransfer.attribution.attribute_sets import AttributeSets
from biastransfer.attribution.person_pictures import ATTRIBUTES, PersonPicture
from biastransfer.attribution.person_removal import REMOVED
from biastransfer.stats.resampling import bootstrap_interval, multinomial_weights

ALL = "all"
KINDS = ("difference", "lean", "d")
FEWEST = 3  # pictures of either gender; with fewer nothing is said about an object
COLUMNS = (
    *("object", "kind", "removed", "n_man", "n_woman", "value", "low", "high"),
    *("left", "left_low", "left_high", "share", "share_low", "share_high"),
    *("beyond_control", "beyond_low", "beyond_high"),
)


@dataclass(frozen=True, eq=False)
class Associations:
    """Associations s of every version of every picture, on the data and in each resample.

    Attributes
    ----------
    s : (5, N) array
        Mean cosine with men minus that with women, by what was `REMOVED`; NaN where there is no such version.
    resampled : (5, R, N) array
        The same with the attribute sets resampled.
    weights : (R, N) array
        How often each picture occurs in each resample; drawn within object and attribute, twins together.
    objects, attributes : (N,) arrays of str
    """

    s: np.ndarray
    resampled: np.ndarray
    weights: np.ndarray
    objects: np.ndarray
    attributes: np.ndarray


def associations(
    cosines: np.ndarray,
    pictures: Sequence[PersonPicture],
    sets: AttributeSets,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> Associations:
    """Return the associations of pictures and their resamples, from what `removal_cosines` found.

    Parameters
    ----------
    cosines : (5, N, n) array
        Of one network and fill.
    pictures : sequence of PersonPicture
    sets : AttributeSets
        Those of the n columns; what a picture must not be compared with is left out for it.
    resamples, seed : int
        Bootstrap draws of pictures: of every object and attribute, and of both sets.

    Returns
    -------
    Associations
        The draws depend on seed and pictures only: they are the same for every network and fill.
    """
    counted = sets.counted([one.name for one in pictures]).astype(float)
    rng = np.random.default_rng((seed, len(pictures)))
    halves = (slice(None, sets.men), slice(sets.men, None))
    whole = np.ones((1, len(sets.units)))
    drawn = np.concatenate(
        [multinomial_weights(rng, half, resamples) for half in (sets.men, len(sets.units) - sets.men)], axis=1
    )
    found = [_mean(cosines, counted, whole, half) for half in halves]
    again = [_mean(cosines, counted, drawn, half) for half in halves]
    objects = np.array([one.object for one in pictures], dtype=object)
    attributes = np.array([one.attribute for one in pictures], dtype=object)
    weights = np.ones((resamples, len(pictures)))
    units = [one.pair or one.name for one in pictures]
    strata = [(one.object, "" if one.pair else one.attribute) for one in pictures]
    for stratum in sorted(set(strata)):
        members = sorted({unit for unit, own in zip(units, strata) if own == stratum})
        drawn_units = dict(zip(members, multinomial_weights(rng, len(members), resamples).T))
        for k, (unit, own) in enumerate(zip(units, strata)):
            if own == stratum:
                weights[:, k] = drawn_units[unit]
    return Associations((found[0] - found[1])[:, 0], again[0] - again[1], weights, objects, attributes)


def _mean(cosines, counted, weights, half) -> np.ndarray:
    """Return (5, R, N): weighted mean cosines with one set, its own picture not counted."""
    total = np.einsum("pkn,rn->prk", cosines[..., half] * counted[:, half], weights[:, half])
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / (weights[:, half] @ counted[:, half].T)


def effects(found: Associations, *, pooled: str = "objects", kinds: Sequence[str] = KINDS) -> pd.DataFrame:
    """Return every object's association before and after each removal, and what share of it leaves.

    Parameters
    ----------
    found : Associations
    pooled : {"objects", "pictures"}
        What "all" stands for: the mean over objects, or all pictures in one, whatever their object.
    kinds : sequence of str
        "difference": mean s with a man minus with a woman. "lean": mean of the two, minus that of the other
        objects. "d": the effect size of the difference.

    Returns
    -------
    DataFrame
        `COLUMNS`. ``value`` is what is there once ``removed`` is gone; ``left`` what that took away, in the
        same unit; ``share`` the part of the association, 1 all of it, above 1 more than all, NaN where the
        association's interval, on these pictures, holds 0; ``beyond_control`` is ``left`` minus what the
        control took. All three compare the same pictures: those of which the part could be removed.
        Intervals are 95 %, over pictures and attribute sets together.

    Raises
    ------
    ValueError
        If the pictures are of one gender only, or ``pooled`` is unknown.
    """
    if pooled not in ("objects", "pictures"):
        raise ValueError(f"pooled must be objects or pictures; got {pooled!r}.")
    missing = [one for one in ATTRIBUTES if one not in set(found.attributes)]
    if missing:
        raise ValueError(
            f"an association needs pictures with men and with women; there is none with a {missing[0]}. "
            "Choose a set that has both."
        )
    named = [name for name in dict.fromkeys(found.objects) if name]
    usable = [name for name in named if min(_counts(found, {name})) >= FEWEST]
    rows = []
    for name in [ALL, *usable]:
        for kind in kinds:
            if kind == "lean" and (name == ALL or len(usable) < 2):
                continue
            rows += _rows(found, name, kind, usable, pooled)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _counts(found: Associations, names) -> list[int]:
    ours = np.isin(found.objects, list(names))
    return [int((ours & (found.attributes == one)).sum()) for one in ATTRIBUTES]


def _rows(found: Associations, name: str, kind: str, usable: Sequence[str], pooled: str) -> list[tuple]:
    """Return a row for each removal of one object's association of one kind."""
    groups = (
        [list(usable)] if name == ALL and (kind == "d" or pooled == "pictures") else [[one] for one in usable]
    )
    if name == ALL and pooled == "pictures":
        groups = [list(dict.fromkeys(found.objects))]
    if name != ALL and kind != "lean":
        groups = [[name]]

    def value(part: int, rows: np.ndarray) -> np.ndarray:  # the estimate, then the resamples
        scores = np.vstack([found.s[None, part], found.resampled[part]])
        weights = np.vstack([np.ones(len(rows)), found.weights]) * rows
        if kind == "lean":
            return _lean(scores, weights, found, name, usable)
        measure = _effect_size if kind == "d" else _difference
        return np.mean([measure(scores, weights, found, group) for group in groups], axis=0)

    nothing, control = REMOVED.index("nothing"), REMOVED.index("elsewhere")
    concerned = np.isin(found.objects, [one for group in groups for one in group])
    n = min(filter(None, _counts(found, [one for group in groups for one in group])))
    rows = []
    for part, removed in enumerate(REMOVED):
        same = np.isfinite(found.s[part])
        counts = [int((same & concerned & (found.attributes == one)).sum()) for one in ATTRIBUTES]
        before, after = value(nothing, same), value(part, same)
        left, both = before - after, same & np.isfinite(found.s[control])
        taken = value(nothing, both) - value(part, both) - (value(nothing, both) - value(control, both))
        with np.errstate(invalid="ignore", divide="ignore"):
            shown = not _holds_zero(_interval(before, n))
            share = left / before if shown else np.full_like(left, np.nan)
        columns = (after, left, share, taken)
        if part == nothing:
            columns = (after, *[np.full_like(after, np.nan)] * 3)
        numbers = [number for one in columns for number in (one[0], *_interval(one, n))]
        rows.append((name, kind, removed, *counts, *numbers))
    return rows


def _interval(values: np.ndarray, n: int) -> tuple[float, float]:
    if not np.isfinite(values[0]):
        return float("nan"), float("nan")
    return bootstrap_interval(values[0], values[1:], pictures=n)


def _holds_zero(interval: tuple[float, float]) -> bool:
    return not (interval[0] > 0 or interval[1] < 0)


def _cell(scores, weights, found: Associations, names, attribute: str) -> np.ndarray:
    """Return weighted mean associations (R,) of the pictures of some objects with one gender."""
    rows = np.isin(found.objects, list(names)) & (found.attributes == attribute)
    w, s = weights[:, rows], np.nan_to_num(scores[:, rows])
    with np.errstate(invalid="ignore", divide="ignore"):
        return (w * s).sum(1) / w.sum(1)


def _difference(scores, weights, found, names) -> np.ndarray:
    man, woman = (_cell(scores, weights, found, names, one) for one in ATTRIBUTES)
    return man - woman


def _lean(scores, weights, found, name, usable) -> np.ndarray:
    level = {
        one: np.mean([_cell(scores, weights, found, [one], gender) for gender in ATTRIBUTES], axis=0)
        for one in usable
    }
    return level[name] - np.mean([level[one] for one in usable if one != name], axis=0)


def _effect_size(scores, weights, found, names) -> np.ndarray:
    """Return d (R,): the difference over the standard deviation of all these associations, ddof 1."""
    rows = np.isin(found.objects, list(names))
    w, s = weights[:, rows], np.nan_to_num(scores[:, rows])
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (w * s).sum(1, keepdims=True) / w.sum(1, keepdims=True)
        deviation = np.sqrt((w * (s - mean) ** 2).sum(1) / (w.sum(1) - 1))
        return _difference(scores, weights, found, names) / deviation
