"""ROAD's linear imputation: a missing pixel is the weighted mean of its eight neighbours, all at once."""

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

# Rong et al. 2022: direct neighbours weigh twice what diagonal ones do
_NEIGHBOURS = [
    (dy, dx, 1 / 6 if 0 in (dy, dx) else 1 / 12)
    for dy in (-1, 0, 1)
    for dx in (-1, 0, 1)
    if (dy, dx) != (0, 0)
]


def impute_linearly(values: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Fill missing pixels so that each is the weighted mean of its neighbours.

    Parameters
    ----------
    values : (C, H, W) float array
    missing : (H, W) bool array
        At least one pixel is not missing.

    Returns
    -------
    (C, H, W) float64 array
        ``values`` where nothing is missing. Values that are constant, or linear in the coordinates with the
        hole off the picture's edge, come back exactly, but for rounding.

    Raises
    ------
    ValueError
        Every pixel is missing, or shapes that do not fit.

    Notes
    -----
    Rong et al. 2022, "A consistent and efficient evaluation strategy for attribution methods", section 4:
    weights 1/6 for the four direct and 1/12 for the four diagonal neighbours. At the picture's edge the
    neighbours that are there share the weight. One sparse symmetric system for all channels.

    Examples
    --------
    >>> line = np.array([[[0.0, 9.0, 2.0]]])
    >>> impute_linearly(line, np.array([[False, True, False]])).tolist()
    [[[0.0, 1.0, 2.0]]]
    """
    if values.ndim != 3 or missing.shape != values.shape[1:]:
        raise ValueError(
            f"values must be (C, H, W) and missing (H, W); got {values.shape} and {missing.shape}."
        )
    if missing.all():
        raise ValueError("at least one pixel must be there to impute from; got a mask that covers all.")
    filled = values.astype(np.float64)
    if not missing.any():
        return filled
    system, known = _equations(values.astype(np.float64), missing)
    factors = splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0, options={"SymmetricMode": True})
    filled[:, missing] = factors.solve(known.T).T
    return filled


def _equations(values: np.ndarray, missing: np.ndarray) -> tuple[sparse.csc_array, np.ndarray]:
    """Return the matrix over missing pixels, and per channel what each one's known neighbours sum to."""
    h, w = missing.shape
    rows, columns = np.nonzero(missing)
    number = np.full((h + 2, w + 2), -1)  # a frame of one pixel that is not there
    number[1:-1, 1:-1][missing] = np.arange(len(rows))
    there = np.zeros((h + 2, w + 2), bool)
    there[1:-1, 1:-1] = True
    padded = np.pad(values, ((0, 0), (1, 1), (1, 1)))
    diagonal, known, entries = np.zeros(len(rows)), np.zeros((len(values), len(rows))), []
    for dy, dx, weight in _NEIGHBOURS:
        y, x = rows + 1 + dy, columns + 1 + dx
        neighbour = number[y, x]
        diagonal += weight * there[y, x]
        known += weight * padded[:, y, x] * (there[y, x] & (neighbour < 0))
        inside = np.flatnonzero(neighbour >= 0)
        entries.append((inside, neighbour[inside], np.full(len(inside), -weight)))
    entries.append((np.arange(len(rows)), np.arange(len(rows)), diagonal))
    i, j, data = (np.concatenate(part) for part in zip(*entries))
    return sparse.csc_array((data, (i, j)), shape=(len(rows), len(rows))), known
