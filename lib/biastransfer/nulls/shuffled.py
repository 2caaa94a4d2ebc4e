"""Label-shuffled sets: the same pictures with the perceived genders dealt out again."""

import numpy as np

from biastransfer.cosines import cosines, unit_lengths
from biastransfer.stats import effect_of_scores


def shuffled_effects(X, Y, A, B, *, shuffles: int = 1000, seed: int = 0) -> np.ndarray:
    """Effect sizes of sets whose pictures of X and Y were shuffled and dealt out again.

    Parameters
    ----------
    X, Y, A, B : array_like, shapes (n, D)
        As in `association_test`.
    shuffles, seed : int
        Shuffled sets and their seed.

    Returns
    -------
    numpy.ndarray, shape (shuffles,)
        d of each; NaN where all associations are equal.

    Notes
    -----
    This is the permutation null itself, seen as effect sizes: its standard deviation is √(N / (n_x·n_y)), and
    the share of values at least as large as d is the one-sided p up to sampling. Associations with A and B
    do not depend on the labels, so no vector is touched again.
    """
    x, y, a, b = (unit_lengths(z, name) for z, name in zip((X, Y, A, B), "XYAB"))
    people = [np.concatenate(both) for both in zip(x, y)]
    scores = cosines(*people, *a).mean(1) - cosines(*people, *b).mean(1)
    rng = np.random.default_rng(seed)
    return effect_of_scores(rng.permuted(np.tile(scores, (shuffles, 1)), axis=1), len(x[0]))
