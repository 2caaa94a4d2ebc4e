"""Bias transfer score with its interval and ceiling, from the pictures behind the item values."""

from dataclasses import replace

import numpy as np

from biastransfer.picture_resampling import DECIMALS, both_stages, grams_of, half_scores, same_pictures
from biastransfer.similarity import similarities
from biastransfer.stats import spearman, within_group_permutation_p
from biastransfer.stats.resampling import bootstrap_interval, multinomial_weights
from biastransfer.transfer.score import bias_transfer_score

REFERENCE = "random"
BLOCK = 1000  # resamples held in memory at a time


def bias_transfer(before, after, items, *, resamples=10_000, seed=0):
    """Bias transfer score of two embeddings of the same pictures, with interval and ceiling.

    Parameters
    ----------
    before, after : mapping of str to array_like, shape (n, D)
        Embeddings of each class before and after finetuning, the same pictures in the same rows; D may differ
        between the stages.
    items : iterable of str
        Classes (``"car"``) and pairs (``"car+man|car"``), see :func:`biastransfer.similarity.items`.
    resamples : int
        Bootstrap resamples of the pictures; 0 for none.
    seed : int
        Seed of all draws.

    Returns
    -------
    TransferScore
        r and its p-values as in :func:`bias_transfer_score`; `low` and `high` from resampling the pictures of
        every class, one draw shared by both stages and all items; `ceiling` from halves of the pictures.

    Raises
    ------
    ValueError
        If a class is missing, cannot be used, or has another number of pictures after than before; or
        ``resamples`` is not a whole number of at least 0.

    Notes
    -----
    A resample repeats pictures, so intra-class similarity leaves out pairs of a picture with its copy:
    Σ_{i≠j} wᵢwⱼcᵢⱼ / (n² − Σw²). All draws work on cosines; no vector is touched twice. The ceiling is
    √(reliability before · reliability after), each the mean score between two halves of the pictures in one
    stage: what `cross_half`, before on one half against after on the other, would reach if finetuning
    changed nothing. Similarities within 1e-12 are ties.
    """
    return transfer_of_seeds(before, [after], list(items), resamples, seed)


def transfer_of_seeds(before, afters, items, resamples, seed):
    """Score against the mean similarity of several finetuned networks (seeds), pictures shared by all.

    Parameters
    ----------
    before : mapping of str to array_like
        Embeddings of each class before finetuning.
    afters : list of such mappings
        Embeddings after finetuning, one for every seed.
    items, resamples, seed
        As in :func:`bias_transfer`.

    Returns
    -------
    TransferScore

    Raises
    ------
    ValueError
        As for :func:`bias_transfer`.
    """
    if int(resamples) != resamples or resamples < 0:
        raise ValueError(f"resamples must be a whole number of at least 0; got {resamples!r}.")
    items = list(dict.fromkeys(items))  # an item counts once, however often it is named
    stages = [before, *afters]
    x, y = item_values(before, afters, items)
    sizes = same_pictures(stages, items)
    score = bias_transfer_score(x, y, seed=seed)
    objects = [item for item in items if REFERENCE not in item.split("|")]
    more = {
        "r_objects": bias_transfer_score(*({k: v[k] for k in objects} for v in (x, y)), seed=seed).r,
        "p_within": _within_p(x, y, seed),
        "pictures": min(sizes.values(), default=0),
    }
    if score.reason or not resamples:
        return replace(score, **more)
    grams, rng, r = [grams_of(stage, items) for stage in stages], np.random.default_rng(seed), []
    for start in range(0, resamples, BLOCK):
        draws = min(BLOCK, resamples - start)
        weights = {name: multinomial_weights(rng, n, draws) for name, n in sizes.items()}
        r.append(spearman(*both_stages(grams, weights)))
    low, high = bootstrap_interval(score.r, np.concatenate(r), pictures=min(sizes.values()))
    return replace(score, low=low, high=high, **half_scores(grams, sizes, rng), **more)


def item_values(before, afters, items):
    """Similarity of every item before, and its mean over several finetuned networks.

    Parameters
    ----------
    before, afters, items
        As in :func:`transfer_of_seeds`.

    Returns
    -------
    before, after : dict of str to float
        Rounded to 12 decimals, so that what differs by rounding alone is a tie.
    """
    values = [np.array(list(similarities(stage, items).values())) for stage in (before, *afters)]
    x, y = (dict(zip(items, np.round(v, DECIMALS))) for v in (values[0], np.mean(values[1:], axis=0)))
    return x, y


def _within_p(x, y, seed):
    """Permutation of object labels within +man, +woman and the reference; NaN unless all items are pairs."""
    if not all("|" in item for item in x):
        return float("nan")
    groups = [
        item.split("|")[1] if item.endswith(f"|{REFERENCE}") else item.split("|")[0].partition("+")[2]
        for item in x
    ]
    return within_group_permutation_p(list(x.values()), list(y.values()), groups, seed=seed)
