"""Official COCO files: instances and captions JSON as flat tables, read with typed fields only."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np
import pandas as pd

from .coco_json import Box, Category, SizedPicture, decode

_PIECE = 2**20  # bytes of an instances file read at a time
_START = re.compile(rb'"annotations"\s*:\s*\[\s*(?=\{)')
_BEFORE = re.compile(rb"\}\s*,\s*\Z")  # what stands before another object of one list
_END = re.compile(rb"\}\s*\]")  # the end of a list of objects
_NUMBERS = np.dtype([("image", "i8"), ("category", "i8"), ("area", "f8"), ("crowd", "?")])


class _Picture(SizedPicture, gc=False):
    license: int | None = None
    flickr_url: str = ""
    coco_url: str = ""


class _Licence(msgspec.Struct, gc=False):
    id: int
    name: str = ""
    url: str = ""


class _Head(msgspec.Struct):
    images: list[_Picture]
    categories: list[Category]
    licenses: list[_Licence] = []


class _Instances(_Head, kw_only=True):
    annotations: list[Box]


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
        id (int), file_name, width, height, licence, address (on Flickr, else COCO's; may be empty).
    boxes : DataFrame
        picture (int, row of ``pictures``), category (name, categorical), share (of the picture's area, 0…1),
        crowd (bool).

    Raises
    ------
    ValueError
        A file that is not COCO JSON, or a box of a picture or category that the file does not list.
    """
    pictures, boxes = [], []
    start = 0
    for file in files:
        data, found = _read(file)
        named = {one.id: one.name or one.url for one in data.licenses}
        licences = {one: _licence(one, named) for one in {picture.license for picture in data.images}}
        frame = pd.DataFrame(
            {
                "id": [one.id for one in data.images],
                "file_name": [one.file_name for one in data.images],
                "width": [one.width for one in data.images],
                "height": [one.height for one in data.images],
                "licence": [licences[one.license] for one in data.images],
                "address": [one.flickr_url or one.coco_url for one in data.images],
            }
        )
        pictures.append(frame)
        table = _boxes(data, found, frame, file)
        boxes.append(table.assign(picture=table["picture"] + start))
        start += len(frame)
    both = pd.concat(boxes, ignore_index=True)
    return pd.concat(pictures, ignore_index=True), both.assign(category=both["category"].astype("category"))


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
        for one in decode(file, _Captions, "COCO captions JSON (image_id, caption)").annotations:
            own.setdefault(one.image_id, []).append(one.caption)
        table = own | table  # not joined: one picture's captions twice would count twice
    return table


def _boxes(data: _Head, found: np.ndarray, pictures: pd.DataFrame, file: Path) -> pd.DataFrame:
    """Return the boxes of one file with each picture's row and each box's share of its picture."""
    at, missing = _places(pictures["id"].to_numpy(dtype=np.int64), found["image"])
    number = np.array([one.id for one in data.categories], dtype=np.int64)
    category, unnamed = _places(number, found["category"])
    if missing.any() or unnamed.any():
        raise ValueError(
            f"{file}: every box must name a picture and a category of the same file; "
            f"{int(missing.sum())} boxes name no listed picture, {int(unnamed.sum())} no category."
        )
    whole = (pictures["width"] * pictures["height"]).to_numpy(dtype=float)[at]
    names = pd.Categorical.from_codes(category, [one.name for one in data.categories])
    share = found["area"] / np.maximum(whole, 1.0)
    return pd.DataFrame({"picture": at, "category": names, "share": share, "crowd": found["crowd"]})


def _places(known: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where each wanted number stands among the known ones, and whether it does not."""
    if not len(known):
        return np.zeros(len(wanted), dtype=int), np.ones(len(wanted), dtype=bool)
    order = np.argsort(known, kind="stable")
    place = np.minimum(np.searchsorted(known[order], wanted), len(known) - 1)
    return order[place], known[order][place] != wanted


def _read(file: Path) -> tuple[_Head, np.ndarray]:
    """Return a file's lists and the four numbers of each box that count here."""
    if file.stat().st_size > _PIECE and (found := _in_pieces(file)):
        return found
    data = decode(file, _Instances)
    return data, _numbers(data.annotations)


def _numbers(boxes: Sequence[Box]) -> np.ndarray:
    table = np.empty(len(boxes), dtype=_NUMBERS)
    table["image"] = [one.image_id for one in boxes]
    table["category"] = [one.category_id for one in boxes]
    table["area"] = [one.bbox[2] * one.bbox[3] for one in boxes]
    table["crowd"] = [one.iscrowd != 0 for one in boxes]
    return table


def _in_pieces(file: Path) -> tuple[_Head, np.ndarray] | None:
    """Read a large file piece by piece, or return None where it is not laid out as expected.

    Outlines are most of such a file. Whole, its text and objects would take more than twice its size.
    """
    with open(file, "rb") as text:
        head, sought = bytearray(), 0
        while (opened := _START.search(head, sought)) is None:
            piece = text.read(_PIECE)
            if not piece:
                return None
            sought = max(0, len(head) - 99)  # what was searched is not searched again
            head += piece
        try:
            found, tail = _objects(head[opened.end() :], text)
            return msgspec.json.decode(head[: opened.end()] + tail, type=_Head), np.concatenate(found)
        except msgspec.DecodeError:  # the whole file is tried next, and its error says where it is wrong
            return None


def _objects(rest: bytes, text: BinaryIO) -> tuple[list[np.ndarray], bytes]:
    """Return the numbers of the boxes of a list that has just begun, and what follows it in the file."""
    decoder = msgspec.json.Decoder(list[Box])
    found: list[np.ndarray] = []
    while True:
        piece = text.read(_PIECE)
        part = bytearray(b"[")
        part += rest
        part += piece
        cut = _last_object(part)
        if cut and piece:
            kept = part[cut]
            part[cut] = ord("]")  # in place: copies of such pieces take as long as reading them
            try:
                found.append(_numbers(decoder.decode(memoryview(part)[: cut + 1])))
                rest = bytes(part[cut + 1 :]).lstrip(b", \t\r\n")
                continue
            except msgspec.DecodeError:  # the list ended before
                part[cut] = kept
        end = _END.search(part)
        if end is not None:
            found.append(_numbers(decoder.decode(memoryview(part)[: end.end()])))
            return found, bytes(part[end.end() - 1 :]) + text.read()
        if not piece:
            raise msgspec.DecodeError("a list without an end")
        rest = bytes(part[1:])


def _last_object(part: bytearray) -> int:
    """Return the place after the last object that another one follows in the same list, 0 without one."""
    at = part.rfind(b"{")
    while at > 0:
        if before := _BEFORE.search(part, max(0, at - 99), at):
            return before.start() + 1
        at = part.rfind(b"{", 0, at)
    return 0


def _licence(number: int | None, licences: dict[int, str]) -> str:
    if number is None:
        return ""
    return licences.get(number) or f"COCO licence {number}"
