"""Transfer scores of resampled and halved pictures, computed on cosines: no vector is touched twice."""

import numpy as np

from biastransfer.cosines import cosines, unit_lengths
from biastransfer.stats import spearman
from biastransfer.stats.resampling import half_weights, weighted_inter, weighted_intra

DECIMALS = 12  # similarities that agree so far are one value: what is left is rounding


def same_pictures(stages, items):
    """Return the number of pictures of every class of `items`, which all `stages` must share.

    Parameters
    ----------
    stages : list of mapping of str to (n, D) array
        Embeddings before, then after finetuning (one for every seed).
    items : list of str
        Classes and pairs.

    Returns
    -------
    dict of str to int

    Raises
    ------
    ValueError
        If a class has another number of pictures in a later stage; the class is named.
    """
    sizes = {name: len(stages[0][name]) for item in items for name in item.split("|")}
    for stage in stages[1:]:
        for name, n in sizes.items():
            if len(stage[name]) != n:
                raise ValueError(
                    f"class {name!r} must hold the same pictures in the same rows in both stages; got {n} "
                    f"before and {len(stage[name])} after finetuning. Drop in both what failed in one."
                )
    return sizes


def grams_of(vectors, items):
    """Cosines behind every one of `items`: within a class, or between the two of a pair, of `vectors`."""
    checked = {k: unit_lengths(vectors[k], f"class {k!r}") for item in items for k in item.split("|")}
    return {item: cosines(*checked[item.split("|")[0]], *checked[item.split("|")[-1]]) for item in items}


def _weighted(grams, weights):
    """Similarities of all items in every draw, shape (draws, items)."""
    columns = []
    for item, gram in grams.items():
        names = item.split("|")
        values = (
            weighted_intra(weights[item], gram)
            if len(names) == 1
            else weighted_inter(*map(weights.get, names), gram)
        )
        columns.append(values)
    return np.round(np.stack(columns, axis=1), DECIMALS)


def both_stages(grams, weights, other=None):
    """Similarities of all items in every draw, before and after.

    Parameters
    ----------
    grams : list of dict of str to numpy.ndarray
        From :func:`grams_of`, before, then after finetuning (one for every seed, to be averaged).
    weights : dict of str to numpy.ndarray, shape (draws, n)
        Weights of the pictures of each class.
    other : dict, optional
        Weights after finetuning; by default the same.

    Returns
    -------
    before, after : numpy.ndarray, shape (draws, items)
    """
    after = [_weighted(gram, other or weights) for gram in grams[1:]]
    return _weighted(grams[0], weights), np.mean(after, axis=0)


def half_scores(grams, sizes, rng, splits=500):
    """Scores between random halves of the pictures: within each stage, across, and the ceiling they set.

    Parameters
    ----------
    grams : list of dict of str to numpy.ndarray
        As in :func:`both_stages`.
    sizes : dict of str to int
        Pictures of each class.
    rng : numpy.random.Generator
        Source of the splits.
    splits : int
        Random splits to average over.

    Returns
    -------
    dict of str to float
        ``reliability_before``, ``reliability_after``, ``cross_half``, and ``ceiling`` =
        √(reliability before · reliability after), NaN where either is not above 0 or a half is too small.
    """
    halves = {name: half_weights(rng, n, splits) for name, n in sizes.items()}
    first, second = ({name: pair[i] for name, pair in halves.items()} for i in (0, 1))
    before1, after1 = both_stages(grams, first)
    before2, after2 = both_stages(grams, second)
    before, after = float(np.mean(spearman(before1, before2))), float(np.mean(spearman(after1, after2)))
    cross = float(np.mean([spearman(before1, after2), spearman(before2, after1)]))
    ceiling = float(np.sqrt(before * after)) if min(before, after) > 0 else float("nan")
    return {"ceiling": ceiling, "cross_half": cross, "reliability_before": before, "reliability_after": after}
