"""Embeddings as directions: checked rows, their lengths, and sums of unit rows without copying the array."""

import numpy as np

_TINY, _HUGE = 1e-200, 1e200  # squared lengths outside are recomputed on rescaled rows


def unit_lengths(z, name, pictures=None):
    """Check the embeddings of one class and return them as float64 with the length of every row.

    Parameters
    ----------
    z : array_like, shape (n, D)
        Embeddings.
    name : str
        What an error calls them.
    pictures : sequence of str, optional
        Names of the rows for errors; else their numbers, counted from 0.

    Returns
    -------
    z : numpy.ndarray, shape (n, D)
        Rows, rescaled where squaring would overflow or vanish.
    length : numpy.ndarray, shape (n,)
        Euclidean lengths, finite and above 0.

    Raises
    ------
    ValueError
        If `z` is not two-dimensional, empty, not of real numbers, or has a row of zero length or not finite.
    """
    z = np.asarray(z)
    if z.ndim != 2 and z.size:
        raise ValueError(f"{name} must be a 2-D array (pictures, dimensions); got shape {z.shape}.")
    if z.ndim != 2 or len(z) == 0 or z.shape[1] == 0:
        raise ValueError(
            f"{name} must hold at least one picture; got shape {z.shape}. Check its folder or filter."
        )
    if z.dtype.kind in "cSU":
        raise ValueError(
            f"{name} must hold real numbers; got an array of {z.dtype}. Embed the pictures first."
        )
    z = z.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        square = np.einsum("ij,ij->i", z, z)
    if not ((square > _TINY) & (square < _HUGE)).all():
        largest = np.abs(z).max(axis=1)
        _refuse(name, pictures, ~np.isfinite(largest), "a NaN or infinite embedding")
        _refuse(name, pictures, largest == 0, "an embedding of zero length")
        z = z / largest[:, None]
        square = np.einsum("ij,ij->i", z, z)
    return z, np.sqrt(square)


def same_columns(named):
    """Raise a ValueError unless all arrays of a mapping name → (n, D) array have the same D."""
    first, *others = named.items()
    for other in others:
        if other[1].shape[1] != first[1].shape[1]:
            raise ValueError(
                f"{first[0]} and {other[0]} must have the same number of columns; got {first[1].shape} and "
                f"{other[1].shape}. Embed both with one backbone."
            )


def direction(z, length):
    """Sum of the unit rows of `z`, shape (D,), without writing the unit rows out."""
    return (1 / length) @ z


def cosines(z1, length1, z2, length2):
    """Matrix (n1, n2) of cosines of rows `z1` and `z2` whose lengths are `length1` and `length2`."""
    product = z1 @ z2.T
    product /= length1[:, None]
    product /= length2
    return np.clip(product, -1, 1, out=product)


def _refuse(name, pictures, bad, what):
    rows = np.flatnonzero(bad)
    if rows.size:
        named = [str(pictures[i]) if pictures is not None else f"row {i}" for i in rows[:5]]
        more = f" and {rows.size - 5} more" if rows.size > 5 else ""
        raise ValueError(
            f"{name}: every picture needs a finite embedding that is not zero; {', '.join(named)}{more} "
            f"{'has' if rows.size == 1 else 'have'} {what}. Drop it or embed it again."
        )
