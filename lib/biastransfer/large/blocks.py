"""Vectors in files, opened without reading them and read in blocks."""

import mmap
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from biastransfer.cosines import unit_lengths

ROWS = 16_384  # of a block: 32 MiB at 256 dimensions in double precision


def vectors(file: Path | str) -> np.ndarray:
    """Open the vectors of a class or set without reading them.

    Parameters
    ----------
    file : path
        A ``.npy`` that `numpy.save` wrote: (n, D) floats.

    Returns
    -------
    numpy.memmap, shape (n, D)
        Read-only. Slices of it, such as the rows of one class, are not read either.

    Raises
    ------
    FileNotFoundError, ValueError
        No such file, or one that is no plain two-dimensional array of numbers.
    """
    file = Path(file)
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}; give the .npy that numpy.save wrote.")
    try:
        found = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{file} must be a whole .npy of numbers ({error}). Save it again.") from error
    if not isinstance(found, np.memmap) or found.ndim != 2 or found.dtype.kind not in "fiu":
        raise ValueError(f"{file} must be an array of numbers (pictures, dimensions), saved by numpy.save.")
    return found


def unit_blocks(z, name: str, rows: int = ROWS) -> Iterator[np.ndarray]:
    """Yield the unit rows of ``z``, ``rows`` at a time, in double precision; an error calls it ``name``."""
    if not len(z):
        raise ValueError(f"{name} must hold at least one picture; got none. Check its folder or filter.")
    for start in range(0, len(z), rows):
        part = np.asarray(z[start : start + rows], dtype=np.float64)
        part, length = unit_lengths(part, name, _Numbers(start))
        yield part / length[:, None]
        if isinstance(mapped := getattr(z, "_mmap", None), mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            mapped.madvise(mmap.MADV_DONTNEED)  # what was read leaves this process's memory, not the cache


class _Numbers:
    """Names of rows for errors: their numbers in the whole, not in the block."""

    def __init__(self, start: int):
        self.start = start

    def __getitem__(self, i) -> str:
        return f"row {self.start + int(i)}"
