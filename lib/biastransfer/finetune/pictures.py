"""The pictures of a split as 8-bit pixels: decoded once and kept where they fit, augmented by a seed."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from biastransfer import distributed
from biastransfer.backbones import Transform
from biastransfer.images import read_rgb

KEEP_BYTES = 2 * 2**30  # of decoded pixels per split; 43,000 pictures at 128 px


@dataclass(frozen=True)
class Pictures:
    """Picture files behind one transform; ``kept`` holds their pixels, or None where they would not fit."""

    files: tuple[str, ...]
    transform: Transform
    kept: np.ndarray | None = None

    def take(self, rows) -> np.ndarray:
        """Return the pixels (n, size, size, 3) uint8 of some rows."""
        return (
            self.kept[rows]
            if self.kept is not None
            else _decode([self.files[i] for i in rows], self.transform)
        )


def open_pictures(files, transform: Transform, *, keep_bytes: int = KEEP_BYTES) -> Pictures:
    """Decode a split's pictures and keep the pixels, or leave them on disk when they are too many.

    Parameters
    ----------
    files : sequence of path
    transform : Transform
        Crop, size and interpolation; its normalisation comes later, in `backbones.batches.to_batch`.
    keep_bytes : int
        Keep the pixels in memory up to this size.

    Returns
    -------
    Pictures

    Raises
    ------
    ImageReadError
        A picture that cannot be read, named: training on fewer pictures than the labels say would go unseen.
    """
    files = tuple(map(str, files))
    fits = len(files) * transform.size**2 * 3 <= keep_bytes
    return Pictures(files, transform, _decode(files, transform) if fits else None)


def _decode(files, transform: Transform) -> np.ndarray:
    with ThreadPoolExecutor(max_workers=max(2, distributed.cores())) as pool:
        return np.stack(list(pool.map(lambda file: transform.resized(read_rgb(file)), files)))


@dataclass(frozen=True)
class Moves:
    """How each of n pictures is augmented: ``mirrored`` (n,) bool, ``offsets`` (n, 2) in 0..2 ``shift``."""

    mirrored: np.ndarray
    offsets: np.ndarray
    shift: int

    def of(self, rows) -> "Moves":
        """Return the moves of some of the pictures."""
        return Moves(self.mirrored[rows], self.offsets[rows], self.shift)


def draw_moves(n: int, rng: np.random.Generator, *, flip: float, shift: int) -> Moves:
    """Draw by ``rng`` how ``n`` pictures are mirrored (probability ``flip``) and moved (to ``shift``)."""
    mirrored = rng.random(n) < flip
    return Moves(mirrored, rng.integers(0, 2 * shift + 1, size=(n, 2)), shift)


def moved(pixels: np.ndarray, moves: Moves) -> np.ndarray:
    """Return a mirrored and moved copy of each of the ``pixels`` (n, H, W, 3); ``moves`` holds n."""
    height, width = pixels.shape[1:3]
    border = (moves.shift,) * 2
    padded = np.pad(pixels, ((0, 0), border, border, (0, 0)), mode="reflect")
    out = np.empty_like(pixels)
    for i, (down, right) in enumerate(moves.offsets):
        window = padded[i, down : down + height, right : right + width]
        out[i] = window[:, ::-1] if moves.mirrored[i] else window
    return out


def augment(pixels: np.ndarray, rng: np.random.Generator, *, flip: float, shift: int) -> np.ndarray:
    """Mirror and move each picture at random.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (N, H, W, 3)
    rng : Generator
        Consumed by the same amount whatever the pictures are.
    flip : float
        Probability of a mirror image, 0..1.
    shift : int
        Largest move in pixels, each way and in both directions; the edges are reflected.

    Returns
    -------
    ndarray of uint8, shape (N, H, W, 3)
        A copy.

    Examples
    --------
    >>> picture = np.arange(12, dtype=np.uint8).reshape(1, 2, 2, 3)
    >>> augment(picture, np.random.default_rng(0), flip=1.0, shift=0)[0, 0, 0].tolist()
    [3, 4, 5]
    """
    return moved(pixels, draw_moves(len(pixels), rng, flip=flip, shift=shift))
