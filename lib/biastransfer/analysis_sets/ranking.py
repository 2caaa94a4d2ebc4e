"""The order in which pictures are drawn: a keyed hash of their ids."""

import hashlib
import re
from collections.abc import Sequence

import numpy as np
import polars as pl

_HEX = re.compile(r"[0-9a-f]{16}")  # an Open Images id
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def rank(seed: int, one: str) -> int:
    """Return where a picture stands in the order of a draw: a hash of its id keyed by ``seed``.

    Parameters
    ----------
    seed : int
    one : str
        The picture's id.

    Notes
    -----
    The first n pictures in this order are a draw of n, and part of every larger draw of the same seed.
    """
    return int(ranks(seed, pl.Series([one]))[0])


def draw(seed: int, ids: Sequence[str], n: int) -> list[str]:
    """Return the first ``n`` of ``ids`` in the order of the draw by ``seed`` (`rank`), sorted by id."""
    order = np.argsort(ranks(seed, pl.Series("id", list(ids), dtype=pl.String)), kind="stable")
    return sorted(ids[place] for place in order[:n])


def ranks(seed: int, ids: pl.Series) -> np.ndarray:
    """Return the `rank` by ``seed`` of each of ``ids``: text, or numbers for 16 hexadecimal digits each.

    Returns
    -------
    ndarray of uint64
        Below 2⁵⁶. Open Images' ids are mixed as the numbers that they are (the finaliser of SplitMix64), a
        million in a tenth of a second; others by BLAKE2b.
    """
    if ids.dtype == pl.UInt64:
        return _mixed(seed, ids.to_numpy())
    texts = ids.to_list()
    official = [len(one) == 16 and _HEX.fullmatch(one) is not None for one in texts]
    numbers = [int(one, 16) if yes else 0 for one, yes in zip(texts, official)]
    key = f"{seed}:".encode()
    hashed = [
        0 if yes else int.from_bytes(hashlib.blake2b(key + one.encode(), digest_size=7).digest())
        for one, yes in zip(texts, official)
    ]
    words = _mixed(seed, np.array(numbers, dtype=np.uint64))
    return np.where(official, words, np.array(hashed, dtype=np.uint64))


def _mixed(seed: int, numbers: np.ndarray) -> np.ndarray:
    """Return SplitMix64's finaliser of the numbers, offset by that of the seed, shifted to 56 bits."""
    start = _final(np.array([seed % 2**64], dtype=np.uint64) + _GOLDEN)
    return _final(numbers.astype(np.uint64) ^ start) >> np.uint64(8)


def _final(words: np.ndarray) -> np.ndarray:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
