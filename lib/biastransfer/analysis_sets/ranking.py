"""The order in which pictures are drawn: a keyed hash of their ids."""

import hashlib
from collections.abc import Sequence

import numpy as np
import polars as pl

_HEX = r"\A[0-9a-f]{16}\z"  # an Open Images id
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
    official = ids.str.contains(_HEX)
    found = np.empty(len(ids), dtype=np.uint64)
    numbers = [int(one, 16) for one in ids.filter(official)]
    found[official.to_numpy()] = _mixed(seed, np.array(numbers, dtype=np.uint64))
    found[~official.to_numpy()] = _hashed(seed, ids.filter(~official).to_list())
    return found


def _hashed(seed: int, texts: Sequence[str]) -> np.ndarray:
    """Return the 7 bytes of BLAKE2b of each text behind ``seed:``, as numbers."""
    key, hashed = f"{seed}:", hashlib.blake2b
    digests = b"".join([hashed((key + one).encode(), digest_size=7).digest() for one in texts])
    words = np.zeros((len(texts), 8), dtype=np.uint8)
    words[:, 1:] = np.frombuffer(digests, dtype=np.uint8).reshape(-1, 7)
    return words.view(">u8")[:, 0]


def _mixed(seed: int, numbers: np.ndarray) -> np.ndarray:
    """Return SplitMix64's finaliser of the numbers, offset by that of the seed, shifted to 56 bits."""
    start = _final(np.array([seed % 2**64], dtype=np.uint64) + _GOLDEN)
    return _final(numbers.astype(np.uint64) ^ start) >> np.uint64(8)


def _final(words: np.ndarray) -> np.ndarray:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
