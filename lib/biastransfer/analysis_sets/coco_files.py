"""Official COCO files: instances and captions JSON as flat tables, read with typed fields only."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd


class _Picture(msgspec.Struct, gc=False):
    id: int
    file_name: str
    height: int
    width: int
    license: int | None = None


class _Box(msgspec.Struct, gc=False):
    image_id: int
    category_id: int
    bbox: tuple[float, float, float, float]
    iscrowd: int = 0


class _Category(msgspec.Struct, gc=False):
    id: int
    name: str


class _Licence(msgspec.Struct, gc=False):
    id: int
    name: str = ""
    url: str = ""


class _Instances(msgspec.Struct):
    images: list[_Picture]
    annotations: list[_Box]
    categories: list[_Category]
    licenses: list[_Licence] = []


class _Caption(msgspec.Struct, gc=False):
    image_id: int
    caption: str


class _Captions(msgspec.Struct):
    annotations: list[_Caption]


def read_instances(files: Sequence[Path]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read instances files of one or several splits.

    Parameters
    ----------
    files : sequence of Path
        ``instances_*.json``.

    Returns
    -------
    pictures : DataFrame
        id (int), file_name, width, height, licence.
    boxes : DataFrame
        picture (int, row of ``pictures``), category (name), share (of the picture's area, 0…1), crowd (bool).

    Raises
    ------
    ValueError
        A file that is not COCO JSON, or a box of a picture or category that the file does not list.
    """
    pictures, boxes = [], []
    start = 0
    for file in files:
        data = _decode(file, _Instances, "COCO instances JSON (images, annotations, categories)")
        licences = {one.id: one.name or one.url for one in data.licenses}
        frame = pd.DataFrame(
            {
                "id": [one.id for one in data.images],
                "file_name": [one.file_name for one in data.images],
                "width": [one.width for one in data.images],
                "height": [one.height for one in data.images],
                "licence": [_licence(one.license, licences) for one in data.images],
            }
        )
        pictures.append(frame)
        boxes.append(_boxes(data, frame, file).assign(picture=lambda table, at=start: table["picture"] + at))
        start += len(frame)
    return pd.concat(pictures, ignore_index=True), pd.concat(boxes, ignore_index=True)


def read_captions(files: Sequence[Path]) -> dict[int, list[str]]:
    """Return {picture id: captions}; of a picture in several ``captions_*.json`` files, the first file's.

    Raises
    ------
    ValueError
        A file that is not COCO captions JSON.
    """
    table: dict[int, list[str]] = {}
    for file in files:
        own: dict[int, list[str]] = {}
        for one in _decode(file, _Captions, "COCO captions JSON (image_id, caption)").annotations:
            own.setdefault(one.image_id, []).append(one.caption)
        table = own | table  # not joined: one picture's captions twice would count twice
    return table


def _boxes(data: _Instances, pictures: pd.DataFrame, file: Path) -> pd.DataFrame:
    """Return the boxes of one file with each picture's row and each box's share of its picture."""
    row = {one: place for place, one in enumerate(pictures["id"])}
    names = {one.id: one.name for one in data.categories}
    at = np.array([row.get(one.image_id, -1) for one in data.annotations], dtype=int)
    category = pd.Series([names.get(one.category_id) for one in data.annotations], dtype=object)
    if (at < 0).any() or category.isna().any():
        raise ValueError(
            f"{file}: every box must name a picture and a category of the same file; "
            f"{int((at < 0).sum())} boxes name no listed picture, {int(category.isna().sum())} no category."
        )
    sides = np.array([one.bbox for one in data.annotations], dtype=float).reshape(-1, 4)[:, 2:]
    whole = (pictures["width"] * pictures["height"]).to_numpy(dtype=float)[at]
    share = sides.prod(axis=1) / np.maximum(whole, 1.0)
    crowd = np.array([bool(one.iscrowd) for one in data.annotations], dtype=bool)
    return pd.DataFrame({"picture": at, "category": category, "share": share, "crowd": crowd})


def _licence(number: int | None, licences: dict[int, str]) -> str:
    if number is None:
        return ""
    return licences.get(number) or f"COCO licence {number}"


def _decode(file: Path, kind: type, expected: str):
    try:
        return msgspec.json.decode(Path(file).read_bytes(), type=kind)
    except msgspec.DecodeError as problem:  # ValidationError is one of them
        raise ValueError(
            f"{file} must be {expected}; {problem}. Check the file, or fetch it again."
        ) from problem
