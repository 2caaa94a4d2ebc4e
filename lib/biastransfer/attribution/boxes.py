"""Boxes and masks: checked, measured exactly, and carried through a backbone's crop and resize."""

from dataclasses import dataclass

import numpy as np
from PIL import Image

_BEYOND = 1.0  # pixels that a box may stick out of its picture: annotation files round
_ROUNDING = 1e-6  # pixels


@dataclass(frozen=True, eq=False)
class CarriedBoxes:
    """Boxes as the network's input shows them.

    Attributes
    ----------
    boxes : (k, 4) float array
        x1, y1, x2, y2 in pixels of the input, cut at its edges.
    kept : (k,) int array
        Which of the given boxes they are.
    dropped : int
        Boxes that lie wholly outside what the network sees.
    cut : int
        Boxes of which a part does.
    """

    boxes: np.ndarray
    kept: np.ndarray
    dropped: int
    cut: int


@dataclass(frozen=True)
class Warp:
    """The paper's crop: the whole picture squeezed to ``resize`` × ``resize``, then the central ``size``.

    Stands in for a backbone's own `Transform` where a picture is prepared: `crop_box`, `resized` and ``size``
    are the same. A Transform keeps proportions and takes the central square; this keeps the
    picture's sides and changes its proportions.
    """

    size: int = 224
    resize: int = 256

    def __post_init__(self):  # noqa: D105
        if not 0 < self.size <= self.resize:
            raise ValueError(f"a warp needs 0 < size ≤ resize; got {self.size} and {self.resize}.")

    def crop_box(self, height: int, width: int) -> tuple[float, float, float, float]:
        """Return the part of a picture that is kept: x1, y1, x2, y2 in its pixels."""
        margin = (self.resize - self.size) // 2 / self.resize
        kept = self.size / self.resize
        left, top = margin * width, margin * height
        return left, top, left + kept * width, top + kept * height

    def resized(self, rgb: np.ndarray) -> np.ndarray:
        """Return (size, size, 3) uint8 of an (H, W, 3) uint8 picture ``rgb``, bilinear with anti-aliasing."""
        squeezed = Image.fromarray(rgb).resize((self.resize, self.resize), Image.Resampling.BILINEAR)
        start = (self.resize - self.size) // 2
        return np.asarray(squeezed)[start : start + self.size, start : start + self.size].copy()


def as_boxes(boxes, size: tuple[int, int] | None = None) -> np.ndarray:
    """Return boxes as (k, 4) floats: x1, y1, x2, y2 in pixels, the upper ends exclusive.

    Parameters
    ----------
    boxes : (k, 4) or (4,) array_like
        A box of the single pixel (x, y) is x, y, x + 1, y + 1.
    size : (H, W), optional
        The picture's size. What sticks out by at most one pixel is cut off, for annotation files round.

    Returns
    -------
    (k, 4) float64 array
        k may be 0.

    Raises
    ------
    ValueError
        Another shape, values that are not finite, a box without area, or a box outside the picture.
    """
    found = np.asarray(boxes, dtype=float)
    if not found.size:
        return np.zeros((0, 4))
    found = found.reshape(1, 4) if found.shape == (4,) else found
    if found.ndim != 2 or found.shape[1] != 4:
        raise ValueError(f"boxes must be (k, 4): x1, y1, x2, y2; got shape {found.shape}.")
    if not np.isfinite(found).all():
        raise ValueError("boxes must be finite; got NaN or infinity.")
    _require(found, (found[:, 2:] > found[:, :2]).all(1), "have x1 < x2 and y1 < y2 (not width and height)")
    if size is None:
        return found
    limits = np.array([size[1], size[0]] * 2, dtype=float)
    inside = ((found >= -_BEYOND) & (found <= limits + _BEYOND)).all(1)
    inside &= (found[:, :2] < limits[:2]).all(1) & (found[:, 2:] > 0).all(1)
    _require(found, inside, f"lie in the picture, {size[1]} wide and {size[0]} high")
    return np.clip(found, 0, limits)


def _require(boxes: np.ndarray, fine: np.ndarray, must: str) -> None:
    if not fine.all():
        k = int(np.flatnonzero(~fine)[0])
        raise ValueError(
            f"every box must {must}; box {k} is {boxes[k].tolist()}. Boxes must be x1, y1, x2, y2 in pixels "
            "of the same picture as the map: carry them through its crop first (boxes.through)."
        )


def union_area(boxes: np.ndarray) -> float:
    """Return the area that (k, 4) boxes cover together, each place counted once, in square pixels.

    Examples
    --------
    >>> union_area(np.array([[0, 0, 2, 2], [1, 1, 3, 3.5]]))
    8.0
    """
    if not len(boxes):
        return 0.0
    xs, ys = np.unique(boxes[:, 0::2]), np.unique(boxes[:, 1::2])
    across = (boxes[:, :1] <= xs[:-1]) & (xs[1:] <= boxes[:, 2:3])
    down = (boxes[:, 1:2] <= ys[:-1]) & (ys[1:] <= boxes[:, 3:])
    covered = np.einsum("ky,kx->yx", down.astype(int), across.astype(int)) > 0
    return float(np.diff(ys) @ covered @ np.diff(xs))


def iou_with_union(box, boxes) -> float:
    """Return the intersection over union of one box with all the ``boxes`` together, as one region.

    Parameters
    ----------
    box : (4,) array_like
    boxes : (k, 4) array_like, k ≥ 1

    Returns
    -------
    float
        In [0, 1]. Equal to counting pixels where all corners are whole, and exact where not.

    Examples
    --------
    >>> iou_with_union([0, 0, 4, 1], [[0, 0, 1, 1], [3, 0, 4, 1]])
    0.5
    """
    box, boxes = np.asarray(box, float), np.asarray(boxes, float)
    cut = np.concatenate([np.maximum(boxes[:, :2], box[:2]), np.minimum(boxes[:, 2:], box[2:])], axis=1)
    shared = union_area(cut[(cut[:, 2:] > cut[:, :2]).all(1)])
    return shared / (union_area(box[None]) + union_area(boxes) - shared)


def box_mask(boxes: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return the (H, W) bool mask, ``size`` = (H, W), of pixels whose centre lies in one of (k, 4) ``boxes``.

    Examples
    --------
    >>> box_mask(np.array([[1, 0, 2, 1]]), (2, 3)).astype(int).tolist()
    [[0, 1, 0], [0, 0, 0]]
    """
    y, x = (np.arange(n) + 0.5 for n in size)
    across = (boxes[:, :1] <= x) & (x < boxes[:, 2:3])
    down = (boxes[:, 1:2] <= y) & (y < boxes[:, 3:])
    return np.any(down[:, :, None] & across[:, None, :], axis=0)


def through(transform, boxes, size: tuple[int, int]) -> CarriedBoxes:
    """Carry boxes of a picture through a crop and resize.

    Parameters
    ----------
    transform : backbones.Transform or Warp
        Has ``size`` and ``crop_box``.
    boxes : (k, 4) array_like
        In pixels of the picture.
    size : (H, W)
        The picture's size.

    Returns
    -------
    CarriedBoxes

    Raises
    ------
    ValueError
        As for `as_boxes`.
    """
    found = as_boxes(boxes, size)
    left, top, right, bottom = transform.crop_box(*size)
    scale = np.array([transform.size / (right - left), transform.size / (bottom - top)] * 2)
    moved = (found - [left, top, left, top]) * scale
    cut = np.clip(moved, 0, transform.size)
    kept = (cut[:, 2:] - cut[:, :2] > _ROUNDING).all(1)
    partly = kept & (np.abs(cut - moved) > _ROUNDING).any(1)
    return CarriedBoxes(cut[kept], np.flatnonzero(kept), int((~kept).sum()), int(partly.sum()))


def mask_through(transform, mask: np.ndarray) -> np.ndarray:
    """Carry a mask through a crop and resize: each pixel of the input takes the nearest pixel's value.

    Parameters
    ----------
    transform : backbones.Transform or Warp
    mask : (H, W) bool array

    Returns
    -------
    (size, size) bool array
        May be empty: then what it marks was cropped away.

    Raises
    ------
    ValueError
        A mask that is not (H, W) bool.
    """
    mask = as_mask(mask)
    left, top, right, bottom = transform.crop_box(*mask.shape)
    steps = (np.arange(transform.size) + 0.5) / transform.size
    columns = np.clip((left + steps * (right - left)).astype(int), 0, mask.shape[1] - 1)
    rows = np.clip((top + steps * (bottom - top)).astype(int), 0, mask.shape[0] - 1)
    return mask[np.ix_(rows, columns)]


def as_mask(mask, size: tuple[int, int] | None = None) -> np.ndarray:
    """Return a mask as (H, W) bool, of ``size`` (H, W) where given.

    Parameters
    ----------
    mask : (H, W) array_like
        Bool, or 0 and 1.
    size : (H, W), optional

    Raises
    ------
    ValueError
        Another shape, or other values.
    """
    found = np.asarray(mask)
    if found.ndim != 2 or (size is not None and found.shape != tuple(size)):
        wanted = "(H, W)" if size is None else f"(H, W) = {tuple(size)}"
        raise ValueError(f"mask must be {wanted}; got shape {found.shape}.")
    if found.dtype != bool and not np.isin(found, (0, 1)).all():
        raise ValueError("mask must be bool or hold 0 and 1 only. Threshold soft masks first.")
    return found.astype(bool)
