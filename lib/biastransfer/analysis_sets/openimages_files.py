"""Open Images' CSV files of any version, told apart by their columns and read lazily."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

_SIDES = ["XMin", "XMax", "YMin", "YMax"]
_CHUNK = 2_000_000  # bytes that Polars reads ahead at a time; its own choice takes 100 MiB more
_LABEL = ["ImageID", "Source", "LabelName", "Confidence"]
FLAGS = {"group_of": "IsGroupOf", "depiction": "IsDepiction", "inside": "IsInside"}


@dataclass
class Files:
    """The annotation files of one Open Images folder."""

    boxes: list[Path] = field(default_factory=list)
    labels: list[Path] = field(default_factory=list)
    descriptions: list[Path] = field(default_factory=list)
    pictures: list[Path] = field(default_factory=list)  # picture information with licences
    people: list[Path] = field(default_factory=list)  # MIAP's boxes of people
    hierarchy: Path | None = None


def find(root: Path, *, boxes: bool = True) -> Files:
    """Sort the CSV files below ``root`` by their columns: names differ between v4 and v7.

    Parameters
    ----------
    root : Path
    boxes : bool
        Whether there must be a box file.

    Raises
    ------
    FileNotFoundError
        No box file.
    """
    files = Files()
    for file in sorted(root.rglob("*.csv")):
        with open(file, encoding="utf-8", errors="replace") as text:
            columns = [name.strip().strip('"') for name in text.readline().lstrip("\ufeff").split(",")]
        if {"ImageID", "GenderPresentation", "AgePresentation"} <= set(columns):
            files.people.append(file)
        elif {"ImageID", "LabelName", "XMin", "IsGroupOf"} <= set(columns):
            files.boxes.append(file)
        elif set(_LABEL) <= set(columns) and "XMin" not in columns:
            files.labels.append(file)
        elif {"ImageID", "License"} <= set(columns):
            files.pictures.append(file)
        elif columns[:2] == ["LabelName", "DisplayName"] or columns[0].startswith("/m/"):
            files.descriptions.append(file)
    files.hierarchy = next(iter(sorted(root.rglob("*hierarchy*.json"))), None)
    if boxes and not files.boxes:
        raise FileNotFoundError(
            f"Open Images boxes must be below {root}; no CSV there has the columns ImageID, "
            "LabelName, XMin, IsGroupOf."
        )
    return files


def scan_boxes(files: Sequence[Path], *, area: bool = True) -> pl.LazyFrame:
    """Return the box files as one lazy table with the columns that curation needs, flags as booleans.

    Parameters
    ----------
    files : sequence of Path
    area : bool
        Whether the boxes' areas are wanted; without them ``share`` is 1, and four columns are not read.
    """
    return _boxes(files, {name: name for name in FLAGS.values()}, [], area)


def scan_people(files: Sequence[Path]) -> pl.LazyFrame:
    """Return MIAP's boxes as `scan_boxes` does, with GenderPresentation and AgePresentation as they are.

    Parameters
    ----------
    files : sequence of Path
        ``open_images_extended_miap_boxes_*.csv``; their flags are called IsDepictionOf and IsInsideOf.
    """
    names = {"IsGroupOf": "IsGroupOf", "IsDepiction": "IsDepictionOf", "IsInside": "IsInsideOf"}
    return _boxes(files, names, ["GenderPresentation", "AgePresentation"], True)


def _boxes(files: Sequence[Path], names: dict[str, str], more: Sequence[str], area: bool) -> pl.LazyFrame:
    types: dict = dict.fromkeys(_SIDES, pl.Float32) | dict.fromkeys(names.values(), pl.Int8)
    columns = ["ImageID", "LabelName", *(_SIDES if area else []), *names.values(), *more]
    share = (pl.col("XMax") - pl.col("XMin")) * (pl.col("YMax") - pl.col("YMin")) if area else pl.lit(1.0)
    flags = [(pl.col(names[column]) == 1).alias(name) for name, column in FLAGS.items()]  # -1: not annotated
    table = _scan(files, columns, types)
    return table.select("ImageID", "LabelName", share.alias("share"), *flags, *more)


def scan_labels(files: Sequence[Path]) -> pl.LazyFrame:
    """Return the human-verified image labels: ImageID, LabelName, present (True 1, False 0).

    Machine-generated labels (a confidence between, or Source ``machine``) are neither.
    """
    if not files:
        return pl.LazyFrame(schema={"ImageID": pl.String, "LabelName": pl.String, "present": pl.Boolean})
    table = _scan(files, _LABEL, {"Confidence": pl.Float32})
    human = pl.col("Confidence").is_in([0.0, 1.0]) & (pl.col("Source") != "machine")
    return table.filter(human).select("ImageID", "LabelName", (pl.col("Confidence") == 1).alias("present"))


def licences(files: Sequence[Path], ids: Sequence[str]) -> dict[str, str]:
    """Return {id: licence} of the given pictures."""
    if not files:
        return {}
    table = _scan(files, ["ImageID", "License"], {}).filter(pl.col("ImageID").is_in(list(ids)))
    return dict(table.collect().rows())


def descriptions(files: Sequence[Path]) -> dict[str, str]:
    """Return {MID: name} from class description files, with or without a header line."""
    names: dict[str, str] = {}
    for file in files:
        for line in file.read_text(encoding="utf-8-sig").splitlines():
            mid, comma, name = line.partition(",")
            if comma and mid.startswith("/"):
                names[mid] = name.strip().strip('"')
    return names


def _scan(files: Sequence[Path], columns: Sequence[str], types: dict) -> pl.LazyFrame:
    """Return some columns of CSV files that share them, whatever other columns each has."""
    os.environ.setdefault("POLARS_CSV_CHUNK_SIZE", str(_CHUNK))
    schema = {name: types.get(name, pl.String) for name in columns}
    return pl.concat([pl.scan_csv(file, schema_overrides=schema).select(columns) for file in files])


@contextlib.contextmanager
def whole_files(root: Path) -> Iterator[None]:
    """Turn what Polars says of a damaged file into a sentence about the CSV files below ``root``.

    Raises
    ------
    ValueError
        A file is no CSV, has rows of other lengths, or a word where a number must be.
    """
    try:
        yield
    except pl.exceptions.PolarsError as problem:
        what = str(problem).strip().splitlines()[0]
        raise ValueError(
            f"the annotations below {root} must be whole CSV files in UTF-8; {what}. Fetch them again."
        ) from problem
