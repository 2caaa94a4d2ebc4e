"""Near-duplicates: a gradient hash and a colour thumbnail of each picture, compared all with all."""

from collections.abc import Sequence

import numpy as np
from PIL import Image

MAX_BITS = 6  # of 64
MAX_COLOUR = 12.0  # root mean square difference of thumbnails, of 255
_BLOCK = 512  # rows compared at a time: 512 × n distances of 8 bytes


def sketch(rgb: np.ndarray) -> tuple[np.uint64, np.ndarray]:
    """Return a picture's gradient hash and colour thumbnail.

    Parameters
    ----------
    rgb : ndarray of uint8, shape (H, W, 3)

    Returns
    -------
    hash : uint64
        One bit a horizontal neighbour pair of the 9 × 8 grey thumbnail: brighter to the right.
    thumbnail : ndarray of float32, shape (768,)
        The 16 × 16 colour thumbnail.

    Examples
    --------
    >>> ramp = np.repeat(np.arange(90, dtype=np.uint8)[None, :, None], 80, axis=0).repeat(3, axis=2)
    >>> hex(int(sketch(ramp)[0])), hex(int(sketch(ramp[:, ::-1])[0]))
    ('0xffffffffffffffff', '0x0')
    """
    picture = Image.fromarray(rgb)
    grey = np.asarray(
        picture.convert("L").resize((9, 8), Image.Resampling.BOX, reducing_gap=2.0), dtype=np.int16
    )
    bits = np.packbits(grey[:, 1:] > grey[:, :-1])
    small = np.asarray(picture.resize((16, 16), Image.Resampling.BOX, reducing_gap=2.0), dtype=np.float32)
    return bits.view(np.uint64)[0], small.ravel()


def near_pairs(
    sketches: Sequence[tuple],
    others: Sequence[tuple] | None = None,
    *,
    max_bits: int = MAX_BITS,
    max_colour: float = MAX_COLOUR,
) -> list[tuple[int, int]]:
    """Return the pairs (i, j) of pictures that look alike, i < j; or, with ``others``, (i, index in others).

    Parameters
    ----------
    sketches, others : sequence of (hash, thumbnail)
        From `sketch`.
    max_bits : int
        Most differing bits of the hashes.
    max_colour : float
        Largest root mean square difference of the thumbnails, 0…255.
    """
    if not len(sketches) or (others is not None and not len(others)):
        return []
    hashes, colours = _stacked(sketches)
    more, tints = (hashes, colours) if others is None else _stacked(others)
    pairs = []
    for start in range(0, len(hashes), _BLOCK):
        differing = np.bitwise_count(hashes[start : start + _BLOCK, None] ^ more[None, :])
        rows, columns = np.nonzero(differing <= max_bits)
        rows += start
        if others is None:
            rows, columns = rows[rows < columns], columns[rows < columns]
        distance = np.sqrt(((colours[rows] - tints[columns]) ** 2).mean(axis=1))
        alike = distance <= max_colour
        pairs += zip(rows[alike].tolist(), columns[alike].tolist())
    return pairs


def _stacked(sketches: Sequence[tuple]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([one[0] for one in sketches], dtype=np.uint64), np.stack([one[1] for one in sketches])
