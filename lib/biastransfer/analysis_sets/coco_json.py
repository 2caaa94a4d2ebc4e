"""COCO's JSON as typed records, of which each reader decodes the fields that it needs."""

from pathlib import Path
from typing import TypeVar

import msgspec

INSTANCES = "COCO instances JSON (images, annotations, categories)"
_Kind = TypeVar("_Kind")


class Category(msgspec.Struct, gc=False):
    """A category: ``id`` (1 to 90 with gaps in COCO's own) and ``name``."""

    id: int
    name: str


class Picture(msgspec.Struct, gc=False):
    """A listed picture: its ``id`` and its file's name, which may hold folders."""

    id: int
    file_name: str


class SizedPicture(Picture, gc=False):
    """A listed picture with its ``height`` and ``width`` in pixels."""

    height: int
    width: int


class Annotation(msgspec.Struct, gc=False):
    """What is said of one thing in a picture: whose picture, which category."""

    image_id: int
    category_id: int


class Box(Annotation, gc=False):
    """A box in pixels: x and y of its upper left corner, width, height; ``iscrowd`` 1 is many things."""

    bbox: tuple[float, float, float, float]
    iscrowd: int = 0


def decode(file: Path | str, kind: type[_Kind], expected: str = INSTANCES) -> _Kind:
    """Read a JSON file as a record.

    Parameters
    ----------
    file : path
    kind : type
        A `msgspec.Struct`; fields that it lacks are skipped.
    expected : str
        What the file must be, for the message.

    Raises
    ------
    ValueError
        A file that is not such JSON.
    """
    try:
        return msgspec.json.decode(Path(file).read_bytes(), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise ValueError(
            f"{file} must be {expected}; {problem}. Check the file, or fetch it again."
        ) from problem
