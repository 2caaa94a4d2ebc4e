"""Which Open Images pictures a set or a target needs, from the official CSV files alone."""

import re
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from biastransfer.analysis_sets import openimages
from biastransfer.analysis_sets.choosing import choose
from biastransfer.analysis_sets.openimages_files import find
from biastransfer.analysis_sets.ranking import draw

from .needed import Needed, address, of_choice
from .sources import Pictures

_SPLIT = re.compile(r"(?:^|[^a-z])(train|validation|test)(?:[^a-z]|$)")


def curated(folder: Path, place: Pictures, *, spare: bool = False, **options) -> Needed:
    """Return the pictures that `analysis_sets.openimages.load` chooses from all of Open Images.

    Parameters
    ----------
    folder : Path
        With the official CSV files anywhere below.
    place : Pictures
        Where the pictures are.
    spare : bool
        Also those that would come next, for a set that is reviewed by eye.
    **options
        As for ``openimages.load``: classes, cap, seed, random, n_random, min_area, allow, verified_absence,
        gender.

    Raises
    ------
    FileNotFoundError
        No box file.
    ValueError
        An option out of range.
    """
    rule, reading = of_choice(options)
    chosen, _, spares = choose(openimages.describe(find(folder), **reading), "openimages", **rule)
    ids = dict.fromkeys([*chosen["id"], *(spares["id"] if spare else [])])
    return Needed(_with_splits(ids, folder, place))


def splits_of_target(
    folder: Path, place: Pictures, splits: Iterable[str], *, most: int | None = None, seed: int = 0
) -> Needed:
    """Return the pictures of some splits of a finetuning target.

    Parameters
    ----------
    folder : Path
        With the CSV files anywhere below, splits told apart by their names.
    place : Pictures
    splits : iterable of str
        train, validation, test.
    most : int, optional
        So many training pictures: those that a target's ``max_train`` draws with this ``seed`` where none is
        excluded; else ask for as many more as the sets to exclude have pictures.
    seed : int

    Raises
    ------
    FileNotFoundError
        No annotation file of a split.
    """
    files = find(folder, boxes=False)
    needed: dict[str, tuple[str, ...]] = {}
    for split in splits:
        ids = _listed([file for file in (*files.boxes, *files.labels) if _split_of(file) == split])
        if not ids:
            raise FileNotFoundError(
                f"annotation files of {split} must be below {folder}; there are none. Fetch them first."
            )
        if split == "train" and most is not None:
            ids = draw(seed, ids, most)
        needed |= {f"{split}/{one}.jpg": (address(place, split, one),) for one in ids}
    return Needed(needed)


def _with_splits(ids: Iterable[str], folder: Path, place: Pictures) -> dict[str, tuple[str, ...]]:
    """Return each picture's path and addresses; all splits are asked where no file tells which is right."""
    files, wanted = find(folder), list(ids)
    known: dict[str, str] = {}
    for file in (*files.pictures, *files.boxes):
        left, split = [one for one in wanted if one not in known], _split_of(file)
        if left and split:
            known |= dict.fromkeys(_listed([file], left), split)
    return {
        f"{known.get(one, 'pictures')}/{one}.jpg": tuple(
            address(place, split, one) for split in ([known[one]] if one in known else place.splits)
        )
        for one in wanted
    }


def _split_of(file: Path) -> str:
    found = _SPLIT.search(file.name.lower())
    return found[1] if found else ""


def _listed(files: Iterable[Path], among: list[str] | None = None) -> list[str]:
    """Return the ids that CSV files list, once each and sorted; only those ``among`` some."""
    ids: set[str] = set()
    for file in files:
        column = pl.scan_csv(file, schema_overrides={"ImageID": pl.String}).select("ImageID")
        column = column if among is None else column.filter(pl.col("ImageID").is_in(among))
        ids |= set(column.unique().collect(engine="streaming")["ImageID"].to_list())
    return sorted(ids)
