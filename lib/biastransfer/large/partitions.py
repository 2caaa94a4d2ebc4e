"""The image embedding association test from one number a picture, taken in two passes."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from biastransfer.cosines import same_columns
from biastransfer.large.blocks import ROWS, unit_blocks
from biastransfer.large.sums import class_sums
from biastransfer.stats import effect_of_scores, permutation_p

COUNTED = 4_096  # pictures in X and Y up to which the permutation null is inverted; beyond, it is normal


@dataclass(frozen=True)
class LargeAssociation:
    """An association test on files: d, p and how it was found (exact, fourier, normal), sizes of X and Y."""

    effect_size: float
    p: float
    method: str
    n_x: int
    n_y: int


def association_test(X, Y, A, B, *, rows: int = ROWS) -> LargeAssociation:
    """Test whether X lies closer to A, and Y to B, than chance would have it, in two passes over files.

    Parameters
    ----------
    X, Y, A, B : array_like or memmap, shapes (n, D)
        Target and attribute sets.
    rows : int
        Of a block.

    Returns
    -------
    LargeAssociation
        Effect size and one-sided p as `association.association_test` has them.

    Raises
    ------
    ValueError
        As for `association.effect_size`.

    Notes
    -----
    Up to 4,096 pictures in X and Y the permutation null is counted or inverted. Beyond, the sum over X of a
    random partition is taken as normal with the mean and the variance that it has exactly, which at equal
    sizes errs by the order of 1/N; a p far below 1e-6 gives an order of magnitude.
    """
    same_columns({"X": X, "Y": Y, "A": A, "B": B})
    a, b = (class_sums(z, name, rows=rows) for name, z in (("A", A), ("B", B)))
    towards = a.total / a.n - b.total / b.n
    parts = [block @ towards for name, z in (("X", X), ("Y", Y)) for block in unit_blocks(z, name, rows)]
    scores, n_x, n_y = np.concatenate(parts), len(X), len(Y)
    if np.ptp(scores) <= 1e-13:
        return LargeAssociation(float("nan"), float("nan"), "none", n_x, n_y)
    d = float(effect_of_scores(scores, n_x))
    if len(scores) <= COUNTED:
        greater, _, used, _ = permutation_p(scores, n_x)
        return LargeAssociation(d, float(greater), used, n_x, n_y)
    centred = scores - scores.mean()
    spread = np.sqrt(n_x * n_y / len(scores)) * centred.std(ddof=1)
    return LargeAssociation(d, float(norm.sf(centred[:n_x].sum() / spread)), "normal", n_x, n_y)
