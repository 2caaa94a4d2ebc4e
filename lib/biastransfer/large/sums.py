"""Similarities and the bias transfer score from sums of unit rows, taken in one pass."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from biastransfer.large.blocks import ROWS, unit_blocks
from biastransfer.similarity.cosine import inter_from_sums, intra_from_sum
from biastransfer.stats import spearman
from biastransfer.stats.resampling import bootstrap_interval
from biastransfer.transfer import TransferScore, bias_transfer_score

DECIMALS = 12  # similarities that agree so far are one value, as in `transfer`


@dataclass(frozen=True)
class ClassSums:
    """What similarities need of a class.

    Attributes
    ----------
    n : int
        Pictures.
    total : (D,) array
        Sum of the unit rows.
    resampled : (draws, D) array
        The same with every row weighted by each draw.
    weights, squares : (draws,) arrays
        Sums of the weights and of their squares in each draw.
    """

    n: int
    total: np.ndarray
    resampled: np.ndarray
    weights: np.ndarray
    squares: np.ndarray


def class_sums(z, name: str = "class", *, resamples: int = 0, seed: int = 0, rows: int = ROWS) -> ClassSums:
    """Sum the unit rows of one class in one pass.

    Parameters
    ----------
    z : array_like or memmap, shape (n, D)
        Embeddings.
    name : str
        Of the class: errors say it, and draws depend on it, so that both stages share them.
    resamples, seed : int
        Bootstrap draws: each picture weighs Poisson(1) in each, independently of how rows are read.
    rows : int
        Of a block.

    Returns
    -------
    ClassSums

    Raises
    ------
    ValueError
        As for `cosines.unit_lengths`.
    """
    rng = np.random.default_rng([seed, *name.encode()])
    total, resampled = np.zeros(z.shape[1]), np.zeros((resamples, z.shape[1]))
    weights, squares = np.zeros(resamples), np.zeros(resamples)
    for block in unit_blocks(z, name, rows):
        total += block.sum(axis=0)
        if resamples:
            w = rng.poisson(1.0, (len(block), resamples)).astype(np.float64)
            resampled += w.T @ block
            weights += w.sum(axis=0)
            squares += (w * w).sum(axis=0)
    return ClassSums(len(z), total, resampled, weights, squares)


def similarities(sums: Mapping[str, ClassSums], items: Iterable[str]) -> dict[str, float]:
    """Return the exact similarity of every item, as `similarity.similarities` does.

    Parameters
    ----------
    sums : mapping of str to ClassSums
        By class, from `class_sums`.
    items : iterable of str
        Classes (``"car"``) and pairs (``"car+man|car"``).
    """
    found = {}
    for item in items:
        one, other = (sums[name] for name in (item.split("|") * 2)[:2])
        if "|" in item:
            found[item] = float(inter_from_sums(one.total, other.total, one.n, other.n))
        else:
            found[item] = float(intra_from_sum(np.sum(one.total**2), one.n))
    return found


def bias_transfer(before, after, items, *, resamples: int = 0, seed: int = 0) -> TransferScore:
    """Bias transfer score of two stages whose vectors lie in files (Eq. 5).

    Parameters
    ----------
    before, after : mapping of str to array_like or memmap, shape (n, D)
        Embeddings of each class, the same pictures in the same rows.
    items : iterable of str
        As for `similarities`.
    resamples : int
        Bootstrap resamples of the pictures, shared by both stages; each costs as much as a pass over them.
    seed : int
        Of the draws.

    Returns
    -------
    TransferScore
        Of `transfer.bias_transfer_score`, with `low` and `high` where there are resamples; without `ceiling`,
        for which halves would have to be compared.

    Raises
    ------
    ValueError
        A class with another number of pictures after than before, or that cannot be used.
    """
    items = list(dict.fromkeys(items))
    names = list(dict.fromkeys(name for item in items for name in item.split("|")))
    for name in names:
        if len(before[name]) != len(after[name]):
            raise ValueError(
                f"class {name!r} must hold the same pictures in the same rows in both stages; got "
                f"{len(before[name])} before and {len(after[name])} after finetuning."
            )
    stages = [
        {name: class_sums(stage[name], name, resamples=resamples, seed=seed) for name in names}
        for stage in (before, after)
    ]
    x, y = ({k: round(v, DECIMALS) for k, v in similarities(sums, items).items()} for sums in stages)
    score = bias_transfer_score(x, y, seed=seed)
    if score.reason or not resamples:
        return score
    drawn = [np.stack([_resampled(sums, item) for item in items], axis=1) for sums in stages]
    smallest = min(len(before[name]) for name in names)
    low, high = bootstrap_interval(score.r, spearman(*np.round(drawn, DECIMALS)), pictures=smallest)
    return TransferScore(**{**vars(score), "low": low, "high": high, "pictures": smallest})


def _resampled(sums: Mapping[str, ClassSums], item: str) -> np.ndarray:
    """Return the similarity of an item in every draw."""
    one, other = (sums[name] for name in (item.split("|") * 2)[:2])
    product = np.einsum("ij,ij->i", one.resampled, other.resampled)
    if "|" in item:
        return product / (one.weights * other.weights)
    return (product - one.squares) / (one.weights**2 - one.squares)
