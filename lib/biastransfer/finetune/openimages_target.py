"""Reading a finetuning target from Open Images' CSV files: the boxable classes, unknown labels masked."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from biastransfer.analysis_sets.openimages_files import (
    Files,
    descriptions,
    find,
    scan_boxes,
    scan_labels,
    whole_files,
)
from biastransfer.analysis_sets.picture_files import by_stem
from biastransfer.analysis_sets.ranking import draw

READINGS = ("verified", "released")
_SPLITS = {"train": "train", "validation": "val", "val": "val", "test": "test"}
_SPLIT = re.compile(r"(?:^|[^a-z])(train|validation|val|test)(?:[^a-z]|$)")


def is_open_images(root: Path) -> bool:
    """Tell whether a folder holds Open Images' box or image-label CSV files."""
    files = find(root, boxes=False)
    return bool(files.boxes or files.labels)


def read(
    root: Path, *, max_train: int | None = None, seed: int = 0, reading: str = "verified"
) -> tuple[tuple[str, ...], dict[str, tuple], list[str]]:
    """Read the splits of an Open Images folder.

    Parameters
    ----------
    root : Path
        Box CSV, image-label CSV (either may lack) of train, validation and test, told apart by these words
        in their names; class descriptions; the pictures, called by their ids, anywhere below.
    max_train : int, optional
        Draw so many training pictures; the label matrix is made for them only. It has 2.4 kB a picture.
    seed : int
        Of that draw, in which a smaller number is part of a larger one.
    reading : {"verified", "released"}
        ``verified``: a box or Confidence 1 is present, Confidence 0 is absent, anything else is unknown
        (NaN). ``released``: as the paper's code had it, any listed label is present, whatever its
        Confidence, and all others are absent.

    Returns
    -------
    classes : tuple of str
        In the order of the class descriptions: 601 in v4 to v7.
    parts : dict
        train, val and, where there are files of it, test → (files, labels (N, K) float32).
    notes : list of str
        Pictures without a file, pictures of which nothing is known, contradictions: counted.

    Raises
    ------
    FileNotFoundError
        No class descriptions, or a split without annotation files.
    ValueError
        An unknown reading, or files of which no name tells the split.
    """
    if reading not in READINGS:
        raise ValueError(f"reading must be one of {', '.join(READINGS)}; got {reading!r}. Name one.")
    files = find(root, boxes=False)
    mids, names = _classes(files, root)
    parts: dict[str, tuple] = {}
    notes: list[str] = []
    stored = by_stem(root)
    for split, ours in _by_split(files).items():
        most = max_train if split == "train" else None
        with whole_files(root):
            parts[split], said = _part(_labels(ours, mids), stored, len(mids), most, seed, reading)
        notes += [f"{split}: {one}" for one in said]
    for split in ("train", "val"):
        if split not in parts:
            raise FileNotFoundError(
                f"Open Images files of train and validation must be below {root}; found those of "
                f"{', '.join(parts) or 'no split'}. Fetch the others."
            )
    return names, parts, notes


def _classes(files: Files, root: Path) -> tuple[list[str], tuple[str, ...]]:
    """Return MIDs and names of the boxable classes, in the file's order."""
    boxable = [file for file in files.descriptions if "boxable" in file.name] or files.descriptions
    table = descriptions(boxable[:1])
    if not table:
        raise FileNotFoundError(
            f"Open Images class descriptions (MID, name) must be below {root}; no CSV there is that. "
            "Fetch class-descriptions-boxable.csv."
        )
    return list(table), tuple(table.values())


def _by_split(files: Files) -> dict[str, Files]:
    """Sort box and label files by the split that their names tell, in the order train, val, test."""
    table: dict[str, Files] = {split: Files() for split in ("train", "val", "test")}
    for kind in ("boxes", "labels"):
        for file in getattr(files, kind):
            found = _SPLIT.search(file.name.lower())
            if found is None:
                raise ValueError(
                    f"the name of an annotation file must say train, validation or test; got {file.name!r}. "
                    "Rename it."
                )
            getattr(table[_SPLITS[found[1]]], kind).append(file)
    return {split: one for split, one in table.items() if one.boxes or one.labels}


def _labels(files: Files, mids: Sequence[str]) -> pl.LazyFrame:
    """Return what is said about pictures and classes, a row a saying: ImageID, column, present."""
    columns = pl.LazyFrame({"LabelName": mids}).with_row_index("column")
    said = [scan_labels(files.labels)]
    if files.boxes:
        boxes = scan_boxes(files.boxes, area=False)
        said.append(boxes.select("ImageID", "LabelName", present=pl.lit(True)))
    return pl.concat(said).join(columns, on="LabelName").select("ImageID", "column", "present")


def _part(
    said: pl.LazyFrame, stored: dict[str, str], width: int, most: int | None, seed: int, reading: str
) -> tuple[tuple[list[str], np.ndarray], list[str]]:
    """Return (files, labels) of one split's pictures that have a file, by id, and what to note."""
    listed = said.select("ImageID").unique().collect(engine="streaming")["ImageID"].sort().to_list()
    ids = [one for one in listed if one in stored]
    notes = []
    if gone := len(listed) - len(ids):
        notes.append(f"{gone} of {len(listed)} listed pictures have no file and are left out")
    if most is not None and most < len(ids):
        ids = draw(seed, ids, most)
        notes.append(f"{most} pictures drawn by seed {seed}")
    labels, both = _matrix(said, ids, width, reading)
    if both:
        meaning = "unknown" if reading == "verified" else "present"
        notes.append(f"{both} labels are said to be present and absent: read as {meaning}")
    known = ~np.isnan(labels).all(axis=1)
    if not known.all():
        notes.append(f"{int((~known).sum())} pictures of which nothing is known are left out")
        labels = labels[known]
    return ([stored[one] for one, keep in zip(ids, known) if keep], labels), notes


def _matrix(said: pl.LazyFrame, ids: Sequence[str], width: int, reading: str) -> tuple[np.ndarray, int]:
    """Return the labels of some pictures, and how many of them contradict one another."""
    rows = pl.LazyFrame({"ImageID": ids}, schema={"ImageID": pl.String}).with_row_index("row")
    present = pl.col("present")
    found = said.join(rows, on="ImageID").group_by("row", "column")
    table = found.agg(yes=present.any(), no=(~present).any()).collect(engine="streaming")
    row, column, yes, no = (table[name].to_numpy() for name in ("row", "column", "yes", "no"))
    labels = np.full((len(ids), width), np.nan if reading == "verified" else 0.0, dtype=np.float32)
    value = np.where(yes, np.where(no, np.nan, 1.0), 0.0) if reading == "verified" else 1.0
    labels[row, column] = value
    return labels, int((yes & no).sum())
