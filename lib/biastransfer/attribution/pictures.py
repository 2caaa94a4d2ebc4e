"""Pictures to explain, with what is known of them: boxes, masks, class; and as a network sees them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from biastransfer.attribution.boxes import as_boxes, as_mask, mask_through, through
from biastransfer.images import read_rgb


@dataclass(frozen=True, eq=False)
class AttributionPicture:
    """One picture and what is annotated of it.

    Attributes
    ----------
    name : str
        Tells it from every other picture of its source.
    source : path or (H, W, 3) uint8 array
    label : str
        Its class, as the source names it; "" where unknown.
    boxes : (k, 4) float array
        x1, y1, x2, y2 in pixels, upper ends exclusive; k = 0 where there are none.
    box_labels : tuple of str
        Class of each box; empty where all are of `label`.
    masks : mapping of str to (H, W) bool array
        Exact masks by class.
    size : (H, W) or None
        The size that boxes and masks refer to; checked when the picture is read.
    origin : str
        Where it comes from: ``"imagenet"``, ``"places365"``, ``"coco"``, ``"scenes"``, ``"folder"``.
    """

    name: str
    source: Path | np.ndarray
    label: str = ""
    boxes: np.ndarray = field(default_factory=lambda: np.zeros((0, 4)))
    box_labels: tuple[str, ...] = ()
    masks: Mapping[str, np.ndarray] = field(default_factory=dict)
    size: tuple[int, int] | None = None
    origin: str = "folder"

    def __post_init__(self):  # noqa: D105
        boxes = as_boxes(self.boxes, self.size)
        if self.box_labels and len(self.box_labels) != len(boxes):
            raise ValueError(
                f"{self.name}: every box needs one label; got {len(boxes)} boxes and {len(self.box_labels)} "
                "labels."
            )
        object.__setattr__(self, "boxes", boxes)

    def rgb(self) -> np.ndarray:
        """Return the pixels, (H, W, 3) uint8.

        Raises
        ------
        ImageReadError
            A file that cannot be read.
        ValueError
            A picture of another size than its boxes and masks are for.
        """
        pixels = self.source if isinstance(self.source, np.ndarray) else read_rgb(self.source)
        if self.size is not None and pixels.shape[:2] != tuple(self.size):
            raise ValueError(
                f"{self.name}: boxes and masks must be of the picture's own size; the annotation says "
                f"(H, W) = {tuple(self.size)}, the file has {pixels.shape[:2]}. Scale them, or take it out."
            )
        return pixels


@dataclass(frozen=True, eq=False)
class PictureSet:
    """Pictures of one source, in a fixed order, and what was left out: columns picture and reason."""

    pictures: tuple[AttributionPicture, ...]
    skipped: pd.DataFrame

    def __len__(self) -> int:
        """Return the number of pictures."""
        return len(self.pictures)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A picture as a network sees it, before normalisation.

    Attributes
    ----------
    name, label, origin : str
        Of the picture.
    image : (3, S, S) float32 tensor
        RGB in [0, 1].
    boxes : (k, 4) float array
        In pixels of ``image``.
    box_labels : tuple of str
    masks : mapping of str to (S, S) bool array
        Those of which a pixel is left.
    dropped, cut : int
        Boxes that the crop removed, and cut.
    gone : tuple of str
        Masks that the crop removed.
    """

    name: str
    label: str
    origin: str
    image: torch.Tensor
    boxes: np.ndarray
    box_labels: tuple[str, ...]
    masks: Mapping[str, np.ndarray]
    dropped: int
    cut: int
    gone: tuple[str, ...]

    @property
    def single(self) -> bool:
        """Whether exactly one object is annotated; localisation is reported apart for those."""
        return len(self.boxes) == 1

    def boxes_of(self, label: str) -> np.ndarray:
        """Return the (k, 4) boxes of one class; all of them where they have no labels of their own."""
        if not self.box_labels:
            return self.boxes if label == self.label else np.zeros((0, 4))
        return self.boxes[[one == label for one in self.box_labels]]


def prepare(picture: AttributionPicture, transform) -> Prepared:
    """Crop and resize a picture with its boxes and masks as a backbone's transform does.

    Parameters
    ----------
    picture : AttributionPicture
    transform : backbones.Transform or boxes.Warp
        `Warp` is the paper's own: the whole picture to 256 × 256, the central 224.

    Returns
    -------
    Prepared

    Raises
    ------
    ImageReadError, ValueError
        As for `AttributionPicture.rgb`; boxes outside the picture, masks of another size.
    """
    rgb = picture.rgb()
    height, width = rgb.shape[:2]
    moved = through(transform, picture.boxes, (height, width))
    masks = {
        name: mask_through(transform, as_mask(mask, (height, width))) for name, mask in picture.masks.items()
    }
    pixels = torch.from_numpy(transform.resized(rgb)).permute(2, 0, 1).to(torch.float32).div_(255)
    return Prepared(
        name=picture.name,
        label=picture.label,
        origin=picture.origin,
        image=pixels.contiguous(),
        boxes=moved.boxes,
        box_labels=tuple(picture.box_labels[k] for k in moved.kept) if picture.box_labels else (),
        masks={name: mask for name, mask in masks.items() if mask.any()},
        dropped=moved.dropped,
        cut=moved.cut,
        gone=tuple(name for name, mask in masks.items() if not mask.any()),
    )


def choose(pictures: Sequence[AttributionPicture] | PictureSet, n: int = 1000, *, seed: int = 0):
    """Return ``n`` pictures drawn without replacement, ordered by name.

    Parameters
    ----------
    pictures : sequence of AttributionPicture, or PictureSet
        In any order: the draw depends on their names only.
    n : int
        The card takes 1,000 of ImageNet and of Places365.
    seed : int

    Returns
    -------
    tuple of AttributionPicture

    Raises
    ------
    ValueError
        More than there are, or two pictures of one name.
    """
    found = pictures.pictures if isinstance(pictures, PictureSet) else tuple(pictures)
    ordered = sorted(found, key=lambda one: one.name)
    if len({one.name for one in ordered}) != len(ordered):
        raise ValueError("pictures must have different names to be drawn; at least two share one.")
    if not 1 <= n <= len(ordered):
        raise ValueError(f"n must lie in 1..{len(ordered)}, the pictures there are; got {n}.")
    drawn = np.random.default_rng(seed).choice(len(ordered), size=n, replace=False)
    return tuple(ordered[k] for k in sorted(drawn))


def collect(entries: Iterable, read: Callable, name: Callable) -> PictureSet:
    """Read every entry; one whose annotation cannot be used is listed with the reason, and the rest go on.

    Parameters
    ----------
    entries : iterable
    read : callable entry → AttributionPicture
        Raises ValueError for an entry to be skipped.
    name : callable entry → str
        What a skipped entry is listed as.

    Returns
    -------
    PictureSet
    """
    pictures, skipped = [], []
    for entry in entries:
        try:
            pictures.append(read(entry))
        except ValueError as problem:
            skipped.append((name(entry), str(problem)))
    return PictureSet(tuple(pictures), pd.DataFrame(skipped, columns=["picture", "reason"]))


def require_folder(root: Path | str) -> Path:
    """Return ``root`` as a path to a folder that is there.

    Raises
    ------
    FileNotFoundError
        If it is not.
    """
    if not Path(root).is_dir():
        raise FileNotFoundError(f"{root} must be a folder of pictures; it is not there. Check the path.")
    return Path(root)
