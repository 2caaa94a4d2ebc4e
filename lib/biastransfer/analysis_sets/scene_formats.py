"""Scenes written in the official formats: COCO instances and captions JSON, Open Images CSV files."""

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from .. import paths
from .glyphs import MIDS
from .scene_records import Record, Thing, captions, coco_id, picture_id

MARKER = "scenes.json"

# Official COCO category ids (1–90 with gaps) and supercategories of what scenes can hold.
_COCO = """
1 person person; 2 bicycle vehicle; 3 car vehicle; 4 motorcycle vehicle; 5 airplane vehicle; 7 train vehicle;
9 boat vehicle; 13 stop sign outdoor; 16 bird animal; 17 cat animal; 18 dog animal; 19 horse animal;
20 sheep animal; 21 cow animal; 22 elephant animal; 25 giraffe animal; 28 umbrella accessory;
31 handbag accessory; 34 frisbee sports; 35 skis sports; 37 sports ball sports; 41 skateboard sports;
42 surfboard sports; 46 wine glass kitchen; 47 cup kitchen; 52 banana food; 53 apple food; 54 sandwich food;
56 broccoli food; 57 carrot food; 58 hot dog food; 59 pizza food; 60 donut food; 61 cake food;
62 chair furniture; 63 couch furniture; 64 potted plant furniture; 65 bed furniture; 70 toilet furniture;
72 tv electronic; 73 laptop electronic; 77 cell phone electronic; 82 refrigerator appliance; 84 book indoor;
85 clock indoor; 86 vase indoor; 87 scissors indoor; 88 teddy bear indoor
"""
COCO_CATEGORIES = {
    " ".join(words[1:-1]): {"supercategory": words[-1], "id": int(words[0]), "name": " ".join(words[1:-1])}
    for words in (entry.split() for entry in _COCO.split(";"))
}
VERIFIED = (
    "Man", "Woman", "Person", "Stop sign", "Car", "Sports equipment", "Fashion accessory", "Mammal",
)  # fmt: skip
_INFO = {"description": "Generated scenes", "url": "", "version": "1.0", "year": 2025,
         "contributor": "biastransfer", "date_created": ""}  # fmt: skip
LICENCE = {
    "url": "https://creativecommons.org/licenses/by/4.0/",
    "id": 1,
    "name": "Attribution License (CC BY 4.0); art: Twemoji, Twitter, Inc and other contributors, changed",
}
_PARENTS = {"sports": "Sports equipment", "fashion": "Fashion accessory", "mammal": "Mammal"}
_BOX_COLUMNS = ["ImageID", "Source", "LabelName", "Confidence", "XMin", "XMax", "YMin", "YMax"]
_BOX_COLUMNS += ["IsOccluded", "IsTruncated", "IsGroupOf", "IsDepiction", "IsInside"]


def write_coco(folder: Path, records: Sequence[Record], categories: Sequence[str], split: str = "") -> None:
    """Write ``annotations/instances[_split].json`` and ``captions[_split].json`` below ``folder``.

    Parameters
    ----------
    folder : Path
    records : sequence of Record
        The split's scenes; pictures are ``images/<twelve digits>.jpg``.
    categories : sequence of str
        COCO category names that the file lists; things of other categories are not annotated.
    split : str
        Part of the file names, such as "train"; "" for none.

    Raises
    ------
    ValueError
        Two records of one id.

    Notes
    -----
    Boxes are x, y, width, height in pixels around the visible pixels. Masks are uncompressed run lengths
    with ``iscrowd`` 0: they are exact, where polygons could not hold holes.
    """
    ids = [coco_id(one.key) for one in records]
    if len(set(ids)) != len(ids):
        raise ValueError("picture ids must differ; two scenes came to one id. Choose another seed.")
    images = [_image(number, one.size) for number, one in zip(ids, records)]
    things = [
        (picture, thing, one.size)
        for picture, one in zip(ids, records) for thing in one.things if thing.coco in categories
    ]  # fmt: skip
    annotations = [_annotation(number, *row) for number, row in enumerate(things, 1)]
    said = [(number, line) for number, one in zip(ids, records) for line in captions(one)]
    lines = [
        {"image_id": picture, "id": number, "caption": line} for number, (picture, line) in enumerate(said, 1)
    ]
    head = {"info": _INFO, "licenses": [LICENCE], "images": images}
    listed = sorted((COCO_CATEGORIES[name] for name in categories), key=lambda one: one["id"])
    ending = f"_{split}.json" if split else ".json"
    _write_json(
        folder / "annotations" / f"instances{ending}",
        head | {"annotations": annotations, "categories": listed},
    )
    _write_json(folder / "annotations" / f"captions{ending}", head | {"annotations": lines})


def write_openimages(folder: Path, records: Sequence[Record]) -> None:
    """Write class descriptions, box CSV and image-label CSV with the official names and columns.

    Pictures are ``images/<sixteen hex digits>.jpg``. Sports equipment, fashion accessories and mammals are
    boxed as such; image labels name the finer class too. Every picture says of each of the set's classes
    whether it is there (Confidence 1) or verified absent (0). ``IsDepiction`` is 0: a scene
    stands for a photograph.
    """
    boxes, labels = [], []
    for one in records:
        name = picture_id(one.key)
        boxes += [_box_row(name, thing, one.size) for thing in one.things]
        present = {label for thing in one.things for label in _labels(thing)}
        rows = [(label, 1) for label in sorted(present)] + [
            (label, 0) for label in VERIFIED if label not in present
        ]
        labels += [(name, "verification", MIDS[label], confidence) for label, confidence in rows]
    described = pd.DataFrame(sorted((mid, name) for name, mid in MIDS.items()))
    described.to_csv(
        folder / "class-descriptions-boxable.csv", index=False, header=False, lineterminator="\n"
    )
    paths.write_csv(pd.DataFrame(boxes, columns=_BOX_COLUMNS), folder / "train-annotations-bbox.csv")
    table = pd.DataFrame(labels, columns=["ImageID", "Source", "LabelName", "Confidence"])
    paths.write_csv(table, folder / "train-annotations-human-imagelabels-boxable.csv")


@contextlib.contextmanager
def whole_folder(folder: Path, settings: Mapping) -> Iterator[Path | None]:
    """Give a new folder beside ``folder`` that takes its place when the block ends without an error.

    Gives None where ``folder`` is already complete with the same settings: there is nothing to do.

    Raises
    ------
    FileExistsError
        ``folder`` holds scenes of other settings, or something else.
    """
    if _complete(folder, settings):
        yield None
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.with_name(f".{folder.name}.partial-{secrets.token_hex(4)}")
    try:
        partial.mkdir()
        yield partial
        _write_json(partial / MARKER, dict(settings))
        try:
            os.replace(partial, folder)
        except OSError:
            if not _complete(folder, settings):  # else somebody else was as fast
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _complete(folder: Path, settings: Mapping) -> bool:
    """Return whether a folder holds finished scenes of these settings; raise where it holds others."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    if not (folder / MARKER).is_file():
        raise FileExistsError(
            f"scenes need a folder of their own; {folder} holds something else. Choose another."
        )
    found = json.loads((folder / MARKER).read_text(encoding="utf-8"))
    other = [
        f"{key} {found.get(key)!r}, not {value!r}"
        for key, value in settings.items()
        if found.get(key) != value
    ]
    if other:
        raise FileExistsError(
            f"{folder} holds scenes made with {'; '.join(other)}. Delete it or choose another folder."
        )
    return True


def _image(number: int, size: int) -> dict:
    name = f"{number:012d}.jpg"
    return {"license": 1, "file_name": name, "coco_url": "", "height": size, "width": size,
            "date_captured": "", "flickr_url": "", "id": number}  # fmt: skip


def _annotation(number: int, picture: int, thing: Thing, size: int) -> dict:
    x1, y1, x2, y2 = thing.box
    mask = {"size": [size, size], "counts": thing.rle}
    return {
        "segmentation": mask, "area": thing.area, "iscrowd": 0, "image_id": picture,
        "bbox": [x1, y1, x2 - x1, y2 - y1], "category_id": COCO_CATEGORIES[thing.coco]["id"], "id": number,
    }  # fmt: skip


def _box_row(name: str, thing: Thing, size: int) -> tuple:
    x1, y1, x2, y2 = (edge / size for edge in thing.box)
    label = _PARENTS.get(thing.kind, thing.label)
    flags = (int(thing.occluded), int(thing.truncated), 0, 0, 0)
    return (name, "xclick", MIDS[label], 1, x1, x2, y1, y2, *flags)


def _labels(thing: Thing) -> set[str]:
    more = {"Person"} if thing.coco == "person" else set()
    return {thing.label, _PARENTS.get(thing.kind, thing.label)} | more


def _write_json(path: Path, content: dict) -> None:
    with paths.replacing(path) as partial:
        partial.write_text(json.dumps(content, separators=(",", ":")), encoding="utf-8")
