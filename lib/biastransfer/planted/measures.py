"""The book's measures of one network, for all draws of pictures at once: values, intervals, alarms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from biastransfer.nulls.detectable import significant_correlation
from biastransfer.picture_resampling import both_stages, grams_of
from biastransfer.planted.doses import SIGNS
from biastransfer.similarity import items
from biastransfer.stats import spearman

LEVEL = 0.05
PENALTY = 0.1  # of the ridge probe, as in attribution's
# name → (as a page prints it, what it is where there is nothing)
MEASURES = {
    "association": ("iEAT d", 0.0),
    "difference": ("inter-class difference", 0.0),
    "leakage": ("probe leakage, AUC", 0.5),
    "transfer_inter": ("BTS, inter-class", 1.0),
    "transfer_intra": ("BTS, intra-class", 1.0),
}


@dataclass(frozen=True)
class Seen:
    """Cosines and probe kernels of one network's analysis set: all that resampled pictures need.

    Attributes
    ----------
    grams : dict of str to (n1, n2) array
        Cosines within a class and between the two of a pair.
    kernel : (2n, 2n) array
        Inner products of the standardised vectors of man, then woman.
    towards : dict of str to (n, 2n) array
        Those of each object's pictures with them.
    """

    grams: dict[str, np.ndarray]
    kernel: np.ndarray
    towards: dict[str, np.ndarray]


@dataclass(frozen=True)
class Measured:
    """A measure in every draw: value, 95 % interval and p where it has them (else NaN), alarm (bool)."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p: np.ndarray
    alarm: np.ndarray


def objects_of(classes) -> list[str]:
    """Return the planted objects among analysis ``classes``; a ValueError unless both groups have one."""
    found = [name for name in classes if name in SIGNS]
    if {SIGNS[name] for name in found} != {1, -1}:
        raise ValueError(
            f"the analysis set needs an object of each planted group; got {', '.join(found) or 'none'}."
        )
    return found


def look(vectors: Mapping[str, np.ndarray]) -> Seen:
    """Prepare one network's embeddings.

    Parameters
    ----------
    vectors : mapping of str to (n, D) array
        Class → embeddings: man, woman, random, objects, and the objects ``+man`` and ``+woman``.

    Returns
    -------
    Seen

    Raises
    ------
    ValueError
        A class without pictures, or no object of one of the groups.
    """
    if empty := [name for name, z in vectors.items() if not len(z)]:
        raise ValueError(f"every class needs pictures; {', '.join(empty)} has none. Draw some.")
    objects, (intra, inter) = objects_of(vectors), items(vectors)
    people = [f"{name}|{who}" for name in objects for who in ("man", "woman")]
    pooled = np.concatenate([vectors[name] for name in ("man", "woman", *objects)]).astype(float)
    spread = pooled.std(0)
    scale = np.where(spread > 1e-12 * (1 + np.abs(pooled).max(0)), spread, np.inf)
    scaled = {name: (vectors[name] - pooled.mean(0)) / scale for name in ("man", "woman", *objects)}
    both = np.concatenate([scaled["man"], scaled["woman"]])
    towards = {name: scaled[name] @ both.T for name in objects}
    return Seen(grams_of(vectors, [*intra, *inter, *people]), both @ both.T, towards)


def whole(vectors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the weights of one draw that has every picture of ``vectors`` once."""
    return {name: np.ones((1, len(z))) for name, z in vectors.items()}


def draw(sizes: Mapping[str, int], n: int, draws: int, *, seed: int = 0) -> dict[str, np.ndarray]:
    """Draw ``n`` pictures of every class with replacement, ``draws`` times.

    Parameters
    ----------
    sizes : mapping of str to int
        Pictures of each class, taken for all that there are: of more than a few times n.
    n : int
        At least 2.
    draws, seed : int

    Returns
    -------
    dict of str to (draws, size) array
        How often each picture occurs. Classes are drawn independently, twins too.
    """
    if n < 2:
        raise ValueError(f"a draw needs at least 2 pictures a class; got {n}.")
    rng = np.random.default_rng([seed, n])
    return {k: rng.multinomial(n, np.full(m, 1 / m), size=draws).astype(float) for k, m in sizes.items()}


def measure(before: Seen, after: Seen, weights: Mapping[str, np.ndarray]) -> dict[str, Measured]:
    """Take every measure of a finetuned network in every draw.

    Parameters
    ----------
    before, after : Seen
        The network before and after finetuning, the same pictures in the same rows.
    weights : mapping of str to (draws, n) array
        From `whole` or `draw`.

    Returns
    -------
    dict of str to Measured
        Keys of `MEASURES`. Alarms: iEAT p < .05 (two-sided); an interval that excludes 0, or .5 for leakage;
        a score that is not significant, below the least rank correlation with p ≤ .05, which the paper reads
        as bias adopted from the target.
    """
    found = {
        "association": _association(after, weights),
        "difference": _difference(after, weights),
        "leakage": _leakage(after, weights),
    }
    intra, inter = items(weights)
    for name, chosen in (("transfer_inter", inter), ("transfer_intra", intra)):
        grams = [{item: seen.grams[item] for item in chosen} for seen in (before, after)]
        r = np.atleast_1d(spearman(*both_stages(grams, weights)))
        nan = np.full_like(r, np.nan)
        found[name] = Measured(r, nan, nan, nan, r < significant_correlation(len(chosen)))
    return found


def _association(seen: Seen, weights) -> Measured:
    """Effect size d; its p by Student's t, which orders the splits as the permutation test does."""
    centre = {}
    for sign in (1, -1):
        group = [name for name in seen.towards if SIGNS[name] == sign]
        sums = [
            weights[name] @ np.concatenate([seen.grams[f"{name}|{who}"] for who in ("man", "woman")], axis=1)
            for name in group
        ]
        centre[sign] = sum(sums) / sum(weights[name].sum(1) for name in group)[:, None]
    scores = centre[1] - centre[-1]
    of_man = weights["man"].shape[1]
    (mx, vx, nx), (my, vy, ny) = (
        _moments(scores[:, part], weights[who])
        for who, part in (("man", slice(of_man)), ("woman", slice(of_man, None)))
    )
    n = nx + ny
    mean = (nx * mx + ny * my) / n
    spread = np.sqrt((nx * (vx + (mx - mean) ** 2) + ny * (vy + (my - mean) ** 2)) / (n - 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        d = (mx - my) / spread
        z = d * np.sqrt(nx * ny / n)
        p = 2 * stats.t.sf(np.abs(z) * np.sqrt((n - 2) / np.maximum(n - 1 - z**2, 1e-300)), n - 2)
    nan = np.full_like(d, np.nan)
    return Measured(d, nan, nan, p, p < LEVEL)


def _difference(seen: Seen, weights) -> Measured:
    """Mean over objects of sign · (similarity with a man − with a woman), by the planted group's sign."""
    value, variance, freedom = 0.0, 0.0, 0.0
    for name in seen.towards:
        share = SIGNS[name] / len(seen.towards)
        w, n = weights[name], weights[name].sum(1)
        to_object = {}
        for who in ("man", "woman"):
            gram, people = seen.grams[f"{name}+{who}|{name}"].T, weights[f"{name}+{who}"]
            mean, spread, m = _moments(w @ gram / n[:, None], people)
            to_object[who] = people @ gram.T / people.sum(1)[:, None]
            part = share**2 * spread / (m - 1)
            value, variance = value + share * (mean if who == "man" else -mean), variance + part
            freedom = freedom + part**2 / (m - 1)
        part = share**2 * _moments(to_object["man"] - to_object["woman"], w)[1] / (n - 1)
        variance, freedom = variance + part, freedom + part**2 / (n - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        half = stats.t.ppf(1 - LEVEL / 2, variance**2 / freedom) * np.sqrt(variance)
    return _with_interval(value, half, 0.0)


def _leakage(seen: Seen, weights) -> Measured:
    """Area under the curve of a probe for man against woman that tells the groups' objects apart.

    The interval is over the objects' pictures with the probe held fixed (DeLong's variance).
    """
    people = np.concatenate([weights["man"], weights["woman"]], axis=1)
    truth = np.concatenate([np.ones(weights["man"].shape[1]), -np.ones(weights["woman"].shape[1])])
    coefficients = np.stack([_ridge(seen.kernel, one, truth) for one in people])
    scores, drawn = ({}, {})
    for sign in (1, -1):
        group = [name for name in seen.towards if SIGNS[name] == sign]
        scores[sign] = np.concatenate([coefficients @ seen.towards[name].T for name in group], axis=1)
        drawn[sign] = np.concatenate([weights[name] for name in group], axis=1)
    value, variance = np.empty(len(people)), np.empty(len(people))
    for k, (a, b, wa, wb) in enumerate(zip(scores[1], scores[-1], drawn[1], drawn[-1])):
        right = 0.5 * (1 + np.sign(a[:, None] - b))
        of_a, of_b = right @ wb / wb.sum(), wa @ right / wa.sum()
        (value[k], spread_a, n), (_, spread_b, m) = _moments(of_a, wa), _moments(of_b, wb)
        variance[k] = spread_a / (n - 1) + spread_b / (m - 1)
    half = stats.t.ppf(1 - LEVEL / 2, np.minimum(n, m) - 1) * np.sqrt(variance)
    return _with_interval(value, half, 0.5)


def _ridge(kernel: np.ndarray, weight: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return the dual coefficients of ridge regression on −1 and 1 with weighted rows."""
    root, n = np.sqrt(weight), weight.sum()
    strength = PENALTY * max(float(weight @ np.diag(kernel)) / n, 1e-12)
    system = root[:, None] * kernel * root + strength * np.eye(len(weight))
    return root * np.linalg.solve(system, root * (truth - weight @ truth / n))


def _moments(values: np.ndarray, weight: np.ndarray):
    """Return weighted mean, variance (by n, not n − 1) and n along the last axis."""
    n = weight.sum(-1)
    mean = (values * weight).sum(-1) / n
    return mean, ((values - mean[..., None]) ** 2 * weight).sum(-1) / n, n


def _with_interval(value, half, nothing: float) -> Measured:
    value, half = np.atleast_1d(value), np.atleast_1d(half)
    return Measured(value, value - half, value + half, np.full_like(value, np.nan),
                    np.abs(value - nothing) > half)  # fmt: skip


def names(measures: Sequence[str]) -> list[str]:
    """Return the ``measures`` as a page prints them."""
    return [MEASURES[name][0] for name in measures]
