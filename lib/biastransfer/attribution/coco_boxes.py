"""Pictures with boxes and masks from COCO instances files."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from skimage.draw import polygon2mask

from biastransfer.analysis_sets.coco_json import Box, Category, SizedPicture, decode
from biastransfer.analysis_sets.scene_records import rle_mask
from biastransfer.attribution.pictures import AttributionPicture, PictureSet, collect, require_folder


class _Annotation(Box, gc=True):
    segmentation: Any = None


class _Instances(msgspec.Struct):
    images: list[SizedPicture]
    annotations: list[_Annotation]
    categories: list[Category]


def coco_pictures(
    images: Path | str, annotations: Path | str, *, category: str | None = None, masks: bool = False
) -> PictureSet:
    """Read pictures with boxes, and masks, from a COCO instances file.

    Parameters
    ----------
    images : path
        Folder of the picture files.
    annotations : path
        Instances JSON.
    category : str, optional
        Only pictures and boxes of this category. Default: all; ``label`` is then the category of the largest
        box.
    masks : bool
        Whether to read segmentations: polygons or uncompressed run lengths, one mask a category.

    Returns
    -------
    PictureSet
        ``skipped`` lists pictures whose file is not there, without a box left, or with boxes outside them,
        and the pictures kept of which crowd boxes are left out.

    Raises
    ------
    FileNotFoundError, ValueError
        A folder that is not there, a file that is not COCO JSON, an unknown category.
    """
    folder = require_folder(images)
    data = decode(annotations, _Instances)
    names = {one.id: one.name for one in data.categories}
    if category is not None and category not in names.values():
        raise ValueError(f"unknown category {category!r}; known: {', '.join(sorted(names.values()))}")
    of_picture: dict[int, list[_Annotation]] = {one.id: [] for one in data.images}
    for one in data.annotations:
        if category in (None, names.get(one.category_id)):
            of_picture.setdefault(one.image_id, []).append(one)

    def read(image: SizedPicture) -> AttributionPicture:
        return _coco_picture(folder / image.file_name, image, of_picture[image.id], names, masks)

    wanted = [one for one in data.images if category is None or of_picture[one.id]]
    wanted.sort(key=lambda one: one.file_name)
    found = collect(wanted, read, lambda one: one.file_name)
    crowds = [
        (one.file_name, f"{n} crowd {'box' if n == 1 else 'boxes'} left out")
        for one in wanted if (n := sum(box.iscrowd for box in of_picture[one.id]))
    ]  # fmt: skip
    listed = pd.DataFrame(crowds, columns=found.skipped.columns)
    listed = listed[~listed["picture"].isin(found.skipped["picture"])]
    return PictureSet(found.pictures, pd.concat([listed, found.skipped], ignore_index=True))


def _coco_picture(file: Path, image: SizedPicture, found, names, with_masks: bool) -> AttributionPicture:
    whole = [one for one in found if not one.iscrowd]
    if not file.is_file():
        raise ValueError("listed, but not in the folder")
    if not whole:
        raise ValueError(f"no box but {len(found)} of crowds" if found else "no box")
    corners = np.array([one.bbox for one in whole])
    sides = corners[:, 2:].copy()
    corners[:, 2:] += corners[:, :2]
    labels = tuple(names.get(one.category_id, str(one.category_id)) for one in whole)
    masks: dict[str, np.ndarray] = {}
    for label, one in zip(labels, whole) if with_masks else ():
        mask = _segmented(one.segmentation, (image.height, image.width))
        masks[label] = masks[label] | mask if label in masks else mask
    largest = labels[int(np.argmax(sides.prod(1)))]
    size = (image.height, image.width)
    return AttributionPicture(file.stem, file, largest, corners, labels, masks, size, "coco")


def _segmented(segmentation, size: tuple[int, int]) -> np.ndarray:
    """Return the mask of COCO polygons or uncompressed run lengths."""
    if isinstance(segmentation, dict) and isinstance(segmentation.get("counts"), list):
        return rle_mask(segmentation["counts"], *size)
    if not isinstance(segmentation, list) or not segmentation:
        raise ValueError("its segmentation must be polygons or uncompressed run lengths")
    mask = np.zeros(size, bool)
    for line in segmentation:
        points = (
            np.array(line, float).reshape(-1, 2)[:, ::-1] - 0.5
        )  # (row, column), pixel centres at integers
        mask |= polygon2mask(size, points)
    return mask
