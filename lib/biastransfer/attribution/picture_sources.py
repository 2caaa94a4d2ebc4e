"""Pictures in their official layouts: ImageNet and Places365 validation; scenes, a folder of one's own."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd

from biastransfer.analysis_sets.picture_files import below
from biastransfer.analysis_sets.scenes import draw_scene
from biastransfer.attribution.coco_boxes import coco_pictures
from biastransfer.attribution.pictures import AttributionPicture, PictureSet, collect, require_folder
from biastransfer.images import check_header

__all__ = [
    "coco_pictures",
    "folder_pictures",
    "imagenet_validation",
    "places365_validation",
    "scene_pictures",
]

_STREAM = 6  # of scenes drawn here; analysis sets and targets draw from streams 1 and 2


def imagenet_validation(images: Path | str, annotations: Path | str) -> PictureSet:
    """Read ImageNet's validation pictures with their CLS-LOC boxes.

    Parameters
    ----------
    images : path
        ``ILSVRC2012_val_….JPEG``, flat or in class folders.
    annotations : path
        ``Annotations/CLS-LOC/val``: one XML file a picture, of the same stem.

    Returns
    -------
    PictureSet
        ``label`` and ``box_labels`` are class names as the ImageNet backbones' ``classes`` have them.
        Pictures without an XML file, without boxes, or with boxes that lie outside are in ``skipped``.

    Raises
    ------
    FileNotFoundError
        A folder that is not there.

    Notes
    -----
    The XML's corners are pixels, counted from 0 and both inside the box; here the upper ends are exclusive.
    Corners that then stick out by a pixel are cut off.
    """
    names = _synsets()
    xml = {file.stem: file for file in sorted(require_folder(annotations).rglob("*.xml"))}

    def read(file: Path) -> AttributionPicture:
        if file.stem not in xml:
            raise ValueError("no XML file with its boxes")
        size, boxes, found = _voc(xml[file.stem])
        if not boxes:
            raise ValueError("its XML file lists no object")
        labels = tuple(names.get(one, one) for one in found)
        return AttributionPicture(file.stem, file, labels[0], np.array(boxes), labels, {}, size, "imagenet")

    return collect(below(require_folder(images)), read, lambda file: file.name)


def places365_validation(images: Path | str, listing: Path | str, categories: Path | str) -> PictureSet:
    """Read Places365's validation pictures; they have no boxes, so localisation cannot be measured on them.

    Parameters
    ----------
    images : path
        ``val_256`` or ``val_large``.
    listing : path
        ``places365_val.txt``: file name and class number a line.
    categories : path
        ``categories_places365.txt``: ``/a/airfield 0`` a line.

    Returns
    -------
    PictureSet
        ``label`` is the category without its letter: ``airfield``. Listed pictures that are not there are in
        ``skipped``.

    Raises
    ------
    FileNotFoundError, ValueError
        A file that is not there, or a line that is not as above.
    """
    names = {number: name.split("/", 2)[-1] for name, number in _pairs(categories)}
    folder = require_folder(images)

    def read(line: tuple[str, int]) -> AttributionPicture:
        name, number = line
        if number not in names:
            raise ValueError(f"class {number} is not in the list of categories")
        if not (folder / name).is_file():
            raise ValueError("listed, but not in the folder")
        return AttributionPicture(Path(name).stem, folder / name, names[number], origin="places365")

    return collect(_pairs(listing), read, lambda line: line[0])


def scene_pictures(contents: Sequence[Sequence[str]], *, seed: int = 0, size: int = 256) -> PictureSet:
    """Draw scenes with exact masks: what is where is known to the pixel.

    Parameters
    ----------
    contents : sequence of sequences of str
        What each scene holds, as for `analysis_sets.scenes.draw_scene`: ("man", "car"), …; its last entry is
        the picture's ``label``.
    seed : int
        Scene k depends on its content, k and the seed only.
    size : int
        Side in pixels.

    Returns
    -------
    PictureSet
        ``masks`` and ``box_labels`` by content name: "man", "car"; visible pixels only.

    Raises
    ------
    ValueError
        A name without a glyph.
    """
    pictures = []
    for k, content in enumerate(contents):
        scene = draw_scene(tuple(content), (seed, _STREAM, k), size)
        seen = [(actor.name, mask, box) for actor, mask, box in zip(scene.actors, scene.masks, scene.boxes)
                if mask.any()]  # fmt: skip
        masks: dict[str, np.ndarray] = {}
        for name, mask, _ in seen:
            masks[name] = masks[name] | mask if name in masks else mask
        boxes, labels = np.array([box for *_, box in seen]), tuple(name for name, *_ in seen)
        name = f"scene-{k:04d}-{'+'.join(content)}"
        pictures.append(
            AttributionPicture(name, scene.image, content[-1], boxes, labels, masks, (size, size), "scenes")
        )
    return PictureSet(tuple(pictures), pd.DataFrame(columns=["picture", "reason"]))


def folder_pictures(root: Path | str, *, labels: Mapping[str, str] | None = None) -> PictureSet:
    """Return the pictures below a folder of one's own: no boxes, so metrics that need them say so.

    Parameters
    ----------
    root : path
    labels : mapping of str to str, optional
        Class by file name or by path below ``root``; default unknown.

    Returns
    -------
    PictureSet
        Named by their path below ``root``; files whose header cannot be read are in ``skipped``.

    Raises
    ------
    FileNotFoundError
        No such folder, or no picture in it.
    """
    root, labels = require_folder(root), labels or {}
    files = below(root)
    if not files:
        raise FileNotFoundError(f"{root} must hold pictures; found none. Check the folder.")

    def read(file: Path) -> AttributionPicture:
        name = file.relative_to(root).as_posix()
        check_header(file)  # an ImageReadError is a ValueError: the file is skipped with its reason
        return AttributionPicture(name, file, labels.get(name, labels.get(file.name, "")))

    return collect(files, read, lambda file: file.relative_to(root).as_posix())


def _voc(file: Path) -> tuple[tuple[int, int], list[list[float]], list[str]]:
    """Return the picture's size (H, W), its boxes with exclusive upper ends, and their classes."""
    try:
        root = ElementTree.parse(file).getroot()
        size = int(root.findtext("size/height")), int(root.findtext("size/width"))
        corners = ("xmin", "ymin", "xmax", "ymax")
        boxes = [[float(one.findtext(f"bndbox/{edge}")) for edge in corners] for one in root.iter("object")]
        labels = [str(one.findtext("name")) for one in root.iter("object")]
    except (ElementTree.ParseError, TypeError, ValueError) as problem:
        raise ValueError(f"its XML file must hold a size and boxes; {problem}") from problem
    return size, [[x1, y1, x2 + 1, y2 + 1] for x1, y1, x2, y2 in boxes], labels


def _synsets() -> dict[str, str]:
    """Return {WordNet id: class name as the ImageNet backbones have it}."""
    from timm.data import ImageNetInfo  # takes a second

    info = ImageNetInfo()
    return {name: info.index_to_description(k) for k, name in enumerate(info.label_names())}


def _pairs(file: Path | str) -> list[tuple[str, int]]:
    """Return the (name, number) of each line of a listing."""
    rows = []
    for k, line in enumerate(Path(file).read_text(encoding="utf-8").splitlines(), 1):
        words = line.rsplit(maxsplit=1)
        if not words:
            continue
        if len(words) != 2 or not words[1].isdigit():
            raise ValueError(f"{file}: every line must be a name and a number; line {k} is {line!r}.")
        rows.append((words[0], int(words[1])))
    return rows
