"""A control for a removal: as much of the picture elsewhere, where neither the person nor the object is."""

from dataclasses import dataclass

import numpy as np
from scipy.signal import fftconvolve

from biastransfer.attribution.boxes import as_mask


@dataclass(frozen=True)
class Elsewhere:
    """Where a control lies, (H, W) bool; ``kind``: "moved", "mirrored", "blob" or, if empty, "no room"."""

    mask: np.ndarray
    kind: str


def elsewhere(shape, forbidden, *, seed=0) -> Elsewhere:
    """Place an area as large as ``shape`` where nothing ``forbidden`` is.

    Parameters
    ----------
    shape : (H, W) bool array
        What is to have a counterpart, such as a person's silhouette; not empty.
    forbidden : (H, W) bool array
        What the counterpart must not touch: person and object. ``shape`` itself always is.
    seed : int or sequence of int
        Of the place, drawn evenly among all that fit.

    Returns
    -------
    Elsewhere
        The same shape moved; where that fits nowhere, mirrored and moved; else the pixels nearest to one
        drawn at random, a blob of the same area; and where less is free than that, nothing.

    Raises
    ------
    ValueError
        Masks of two sizes, or an empty shape.

    Examples
    --------
    >>> found = elsewhere(np.array([[True, False, False]]), np.array([[False, True, False]]))
    >>> found.kind, found.mask.tolist()
    ('moved', [[False, False, True]])
    """
    shape = as_mask(shape)
    taken = as_mask(forbidden, shape.shape) | shape
    if not shape.any():
        raise ValueError("the shape must hold at least one pixel; got none. Leave the picture out.")
    rng = np.random.default_rng(seed)
    for kind, form in (("moved", shape), ("mirrored", shape[:, ::-1])):
        if (found := _moved(form, taken, rng)) is not None:
            return Elsewhere(found, kind)
    blob = _blob(int(shape.sum()), ~taken, rng)
    return Elsewhere(np.zeros_like(shape), "no room") if blob is None else Elsewhere(blob, "blob")


def _moved(form: np.ndarray, taken: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """Return the form at a random one of the places where it meets nothing that is taken."""
    rows, columns = np.flatnonzero(form.any(1)), np.flatnonzero(form.any(0))
    tight = form[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    met = fftconvolve(taken.astype(float), tight[::-1, ::-1].astype(float), mode="valid")
    places = np.argwhere(met < 0.5)  # counts of pixels, but for rounding
    if not len(places):
        return None
    y, x = places[rng.integers(len(places))]
    found = np.zeros_like(form)
    found[y : y + tight.shape[0], x : x + tight.shape[1]] = tight
    return found


def _blob(area: int, free: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """Return the ``area`` free pixels nearest to a random one of them."""
    places = np.argwhere(free)
    if len(places) < area:
        return None
    away = ((places - places[rng.integers(len(places))]) ** 2).sum(1)
    chosen = places[np.argsort(away, kind="stable")[:area]]
    found = np.zeros_like(free)
    found[tuple(chosen.T)] = True
    return found
