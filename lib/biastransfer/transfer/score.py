"""Bias transfer score of item values: rank correlation of similarities before and after finetuning."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from biastransfer.stats import spearman, spearman_permutation_p, spearman_t_p


class ItemError(KeyError, ValueError):
    """The two stages do not hold the same items."""

    def __str__(self):
        """Return the sentence itself, not its repr as KeyError would."""
        return str(self.args[0])


@dataclass(frozen=True)
class TransferScore:
    """A bias transfer score and how far it can be trusted.

    Attributes
    ----------
    r : float
        Spearman's correlation over items, in [-1, 1]; 1 when finetuning kept the order. NaN with a reason.
    p : float
        Two-sided p by Student's t with n − 2 degrees of freedom, as the papers print it.
    p_exact : float
        Two-sided permutation p, never 0.
    low, high : float
        95 % interval from resampling pictures; NaN where only item values are known.
    ceiling : float
        Score that a finetuning without effect would reach at half the pictures.
    n : int
        Number of items.
    method : str
        Of `p_exact`: ``"exact"`` or ``"sampled"``; empty when there is none.
    reason : str
        Why r is NaN; empty when it is not.
    cross_half : float
        Score of before on one half of the pictures against after on the other: what `ceiling` bounds.
    reliability_before, reliability_after : float
        Score of one stage against itself on the other half.
    p_within : float
        Permutation p with object labels shuffled within +man, +woman and the reference only.
    r_objects : float
        Score without the items of the reference class.
    pictures : int
        Pictures in the smallest class; 0 where only item values are known. With fewer than 2, or 4 for an
        intra-class similarity, there are no halves to compare: `ceiling` and `cross_half` are NaN.
    """

    r: float
    p: float
    p_exact: float
    low: float
    high: float
    ceiling: float
    n: int
    method: str
    reason: str
    cross_half: float = float("nan")
    reliability_before: float = float("nan")
    reliability_after: float = float("nan")
    p_within: float = float("nan")
    r_objects: float = float("nan")
    pictures: int = 0


def bias_transfer_score(before, after, *, seed=0):
    """Bias transfer score of two sets of similarities, paired by item name (Eq. 5).

    Parameters
    ----------
    before, after : mapping or pandas.Series
        Similarity of every item (``"car"``, ``"car+man|car"``) before and after finetuning, in any order.
    seed : int
        Seed of the permutations drawn beyond 14 items.

    Returns
    -------
    TransferScore
        With `low`, `high` and `ceiling` NaN: item values alone cannot give them. All NaN, with a reason,
        for fewer than 3 items, a value that is not finite, or a constant stage.

    Raises
    ------
    ItemError
        If an item is in one stage only, or twice in one; a KeyError and a ValueError.
    TypeError
        If a stage is neither a mapping nor a Series.

    Notes
    -----
    Ties get average ranks. Source: Ranjit et al. 2023, Eq. 5.

    Examples
    --------
    >>> score = bias_transfer_score({"car": .5, "man": .7, "sky": .2}, {"man": .9, "sky": .1, "car": .3})
    >>> score.r, round(score.p_exact, 3), score.method
    (1.0, 0.333, 'exact')
    """
    before, after = _stage(before, "before"), _stage(after, "after")
    for one, other, where in ((before, after, "after"), (after, before, "before")):
        missing = [str(item) for item in one if item not in other]
        if missing:
            raise ItemError(
                f"both stages must hold the same items; {', '.join(map(repr, missing))} is missing "
                f"{where} finetuning. Compute both from the same analysis set."
            )
    x, y = (np.array([float(stage[item]) for item in before]) for stage in (before, after))
    n, nan = len(x), float("nan")
    if reason := _undefined(list(before), x, y):
        return TransferScore(nan, nan, nan, nan, nan, nan, n, "", reason)
    r = float(spearman(x, y))
    p_exact, method = spearman_permutation_p(x, y, seed=seed)
    return TransferScore(r, spearman_t_p(r, n), p_exact, nan, nan, nan, n, method, "")


def _stage(values, name):
    if isinstance(values, pd.Series):
        if not values.index.is_unique:
            twice = values.index[values.index.duplicated()][0]
            raise ItemError(
                f"every item must stand once; {twice!r} stands twice in {name!r}. Average or drop one."
            )
        return dict(values.items())
    if isinstance(values, Mapping):
        return dict(values)
    raise TypeError(
        f"{name} must be a mapping or Series from item to similarity; got {type(values).__name__}."
    )


def _undefined(names, x, y):
    """Reason why a rank correlation of x and y is not defined, or an empty string."""
    if len(x) < 3:
        return f"a rank correlation needs at least 3 items; got {len(x)}"
    lost = [str(k) for k, a, b in zip(names, x, y) if not (np.isfinite(a) and np.isfinite(b))]
    if lost:
        return f"no finite similarity for {', '.join(lost)}"
    for values, stage in ((x, "before"), (y, "after")):
        if np.ptp(values) == 0:
            return f"all similarities {stage} finetuning are equal, so they have no order"
    return ""


def leave_one_out(before, after):
    """Transfer score without each item in turn: which items carry it.

    Parameters
    ----------
    before, after : mapping or pandas.Series
        As in :func:`bias_transfer_score`.

    Returns
    -------
    pandas.DataFrame
        Columns item, r_without, contribution (score on all items minus score without this one).
    """
    before, after = _stage(before, "before"), _stage(after, "after")
    full, r = bias_transfer_score(before, after).r, []
    for left_out in before:
        kept = [{item: v for item, v in stage.items() if item != left_out} for stage in (before, after)]
        r.append(bias_transfer_score(*kept).r)
    return pd.DataFrame({"item": list(before), "r_without": r, "contribution": [full - k for k in r]})
