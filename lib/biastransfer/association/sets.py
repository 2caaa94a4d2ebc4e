"""The four sets of an association test, measured once however many tests share them."""

from dataclasses import dataclass

import numpy as np

from biastransfer.cosines import cosines, direction, same_columns, unit_lengths


@dataclass(frozen=True)
class Targets:
    """Checked target sets: rows and their lengths of X, then of Y.

    Attributes
    ----------
    x, y : tuple of (n, D) and (n,) arrays
        As :func:`biastransfer.cosines.unit_lengths` gives them.
    name : str
        What errors call X.
    """

    x: tuple
    y: tuple
    name: str

    @property
    def n(self):
        """Size of X."""
        return len(self.x[0])


@dataclass(frozen=True)
class Attribute:
    """One attribute set as seen from the targets: all that a test against any other set needs of it.

    Attributes
    ----------
    centre : numpy.ndarray, shape (D,)
        Mean of the unit rows.
    cosines : numpy.ndarray, shape (n_x + n_y, n)
        With every picture of X, then Y, in single precision: intervals need no more.
    towards_y : float
        Sum over the set of (mean cosine to Y − mean cosine to X): half of Eq. 6.
    """

    centre: np.ndarray
    cosines: np.ndarray
    towards_y: float


def targets(X, Y, names=("X", "Y")):
    """Check the target sets.

    Parameters
    ----------
    X, Y : array_like, shapes (n_x, D) and (n_y, D)
        Embeddings.
    names : (str, str)
        What errors call them.

    Returns
    -------
    Targets

    Raises
    ------
    ValueError
        If a set is empty, a row is of zero length or not finite, or the numbers of columns differ.
    """
    x, y = (unit_lengths(z, name) for z, name in zip((X, Y), names))
    same_columns(dict(zip(names, (x[0], y[0]))))
    return Targets(x, y, names[0])


def checked_attribute(targets, A, name="A"):
    """Check the attribute set `A`, called `name` in errors, against `targets`; return rows and lengths."""
    z, length = unit_lengths(A, name)
    same_columns({targets.name: targets.x[0], name: z})
    return z, length


def centre(z, length):
    """Mean of the unit rows of `z`, shape (D,), whose lengths are `length`."""
    return direction(z, length) / len(z)


def attribute(targets, A, name="A"):
    """Measure one attribute set from the targets, once for all tests that it is part of.

    Parameters
    ----------
    targets : Targets
        From :func:`targets`.
    A : array_like, shape (n, D)
        Embeddings.
    name : str
        What errors call the set.

    Returns
    -------
    Attribute

    Raises
    ------
    ValueError
        As :func:`targets`.
    """
    z, length = checked_attribute(targets, A, name)
    people, lengths = (
        np.concatenate(parts).astype(np.float32, copy=False) for parts in zip(targets.x, targets.y)
    )
    measured = cosines(people, lengths, z.astype(np.float32), length.astype(np.float32))
    towards_y = float(((z @ (centre(*targets.y) - centre(*targets.x))) / length).sum())
    return Attribute(centre(z, length), measured, towards_y)


def associations(targets, a, b):
    """Association s(w) of every picture of X, then Y: mean cosine to one set minus that to another.

    Parameters
    ----------
    targets : Targets
        From :func:`targets`.
    a, b : numpy.ndarray, shape (D,)
        Centres of the attribute sets.

    Returns
    -------
    numpy.ndarray, shape (n_x + n_y,)

    Notes
    -----
    The centres are subtracted before any product is taken: where all cosines are nearly alike, the difference
    of two mean cosines would lose the digits that ties are told by.
    """
    return np.concatenate([(z @ (a - b)) / length for z, length in (targets.x, targets.y)])
