"""Which COCO pictures a set or a target needs, from the official JSON files alone."""

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec
import polars as pl

from biastransfer.analysis_sets import coco, schema_classes
from biastransfer.analysis_sets.archive import unpack
from biastransfer.analysis_sets.choosing import assign, choose
from biastransfer.analysis_sets.coco_files import read_captions, read_instances
from biastransfer.analysis_sets.coco_json import Picture, decode
from biastransfer.analysis_sets.released import LISTS, released_name

from .needed import Needed, address, of_choice
from .sources import Pictures

_COCO = re.compile(r"/((?:train|val)\d{4})/(\d{12})\.jpg$")


class _Picture(Picture, gc=False):
    flickr_url: str = ""


class _Images(msgspec.Struct):
    images: list[_Picture]


def curated(folder: Path, place: Pictures, *, spare: bool = False, **options) -> Needed:
    """Return the pictures that `analysis_sets.coco.load` chooses from all of COCO.

    Parameters
    ----------
    folder : Path
        With the official ``instances_*.json`` and ``captions_*.json`` anywhere below.
    place : Pictures
        Where COCO's pictures are.
    spare : bool
        Also those that would come next, for a set that is reviewed by eye.
    **options
        As for ``coco.load``: classes, cap, seed, random, n_random, min_captions, min_area, confounder_area,
        crowd.

    Raises
    ------
    FileNotFoundError
        No annotation file.
    ValueError
        A file that is not COCO JSON, or an option out of range.
    """
    rule, options = of_choice(options)
    reading = _reading(**options)
    files = _below(folder, "instances*.json")
    said = read_captions(_below(folder, "captions*.json"))
    split_of: dict[str, str] = {}
    facts = []
    for file in files:
        pictures, boxes = read_instances([file])
        pictures["captions"] = [tuple(said.get(one, ())) for one in pictures["id"]]
        pictures["id"] = [f"{one:012d}" for one in pictures["id"]]
        split_of = dict.fromkeys(pictures["id"], _split(file)) | split_of  # the first file's entry is taken
        found = assign(coco.describe(pictures, boxes, **reading))
        facts.append(pl.DataFrame({name: found[name].tolist() for name in ("id", "class", "reason")}))
    table = pl.concat(facts).unique("id", keep="first", maintain_order=True)
    chosen, _, spares = choose(table, "coco", **rule)
    ids = [*chosen["id"], *(spares["id"] if spare else [])]
    return Needed({f"{split_of[one]}/{one}.jpg": (address(place, split_of[one], one),) for one in ids})


def released(lists: Path, folder: Path, place: Pictures) -> Needed:
    """Return the pictures of the paper's released COCO sets.

    Parameters
    ----------
    lists : Path
        A checkout of the authors' repository, its ``analysis_sets`` folder, or a tar of that.
    folder : Path
        COCO's: its instances files, if they are there, tell which picture a Flickr address stands for.
    place : Pictures
        Where COCO's pictures are.

    Returns
    -------
    Needed
        A picture that is listed by another address than COCO's is looked up in the instances files and kept
        under its COCO name and, for loaders without these files, under the name in that address. One that
        they do not name has no address.

    Raises
    ------
    FileNotFoundError
        No lists.
    """
    base = unpack(lists) if lists.is_file() else lists
    base = next((one for one in (base, base / "analysis_sets") if (one / LISTS["coco"]).is_dir()), None)
    if base is None:
        raise FileNotFoundError(
            f"the released COCO lists must be {LISTS['coco']}/<class>.txt; neither {lists} nor an "
            "analysis_sets folder in it has that. Give a checkout of the authors' repository, or a tar of "
            "its analysis_sets."
        )
    texts = [base / LISTS["coco"] / f"{released_name(one)}.txt" for one in schema_classes("coco")]
    entries = dict.fromkeys(
        entry for file in texts if file.is_file() for entry in file.read_text(encoding="utf-8").split()
    )
    pictures: dict[str, tuple[str, ...]] = {}
    notes = []
    for entry in entries:
        if found := _COCO.search(entry):
            pictures[f"{found[1]}/{found[2]}.jpg"] = (address(place, found[1], found[2]),)
        else:
            official, note = _resolved(entry, folder)
            urls = tuple(address(place, split, Path(name).stem) for split, name in official)
            pictures[f"other/{entry.rpartition('/')[2]}"] = urls
            pictures |= {f"{split}/{name}": urls for split, name in official}
            notes.append(note)
    return Needed(pictures, tuple(notes))


def whole_splits(folder: Path, place: Pictures, splits: Iterable[str]) -> Needed:
    """Return every picture of some splits: a COCO target needs all of them.

    Parameters
    ----------
    folder : Path
        With ``instances_<split>.json`` anywhere below.
    place : Pictures
    splits : iterable of str

    Raises
    ------
    FileNotFoundError
        No instances file of a split.
    """
    names = [
        (split, one.file_name)
        for split in splits
        for one in decode(_below(folder, f"instances_{split}.json")[0], _Images).images
    ]
    return Needed({f"{split}/{name}": (address(place, split, Path(name).stem),) for split, name in names})


def _reading(
    min_captions: int = 1,
    min_area: float = 0.02,
    confounder_area: float | None = None,
    crowd: str = "exclude",
) -> dict:
    """Return what `coco.describe` takes, with the defaults of `coco.load`."""
    if crowd not in coco.CROWDS:
        raise ValueError(f"crowd must be one of {', '.join(coco.CROWDS)}; got {crowd!r}.")
    confounding = min_area if confounder_area is None else confounder_area
    areas = {"min_area": min_area, "confounder_area": confounding}
    return {"min_captions": min_captions, "crowd": crowd, **areas}


def _split(file: Path) -> str:
    return file.stem.removeprefix("instances_")


def _below(folder: Path, pattern: str) -> list[Path]:
    """Return the annotation files of a pattern."""
    found = sorted(folder.rglob(pattern))
    if not found:
        raise FileNotFoundError(f"{pattern} must be below {folder}; there is none. Fetch it first.")
    return found


def _resolved(entry: str, folder: Path) -> tuple[list[tuple[str, str]], str]:
    """Return split and name of the COCO picture that another address stands for, if known, and a note."""
    name = entry.rpartition("/")[2]  # Flickr's hosts have changed, its names have not
    files = sorted(folder.rglob("instances*.json"))
    for file in files:
        for one in decode(file, _Images).images:
            if one.flickr_url.rpartition("/")[2] == name:
                return [(_split(file), one.file_name)], f"{entry} is COCO's {_split(file)}/{one.file_name}"
    why = "no instances file there names it" if files else "no instances file is there: fetch coco first"
    # Not fetched from where the list says: Flickr sends another picture in the place of one that is gone.
    return [], f"{entry} is not resolved to a COCO picture ({why})"
