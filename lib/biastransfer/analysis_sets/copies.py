"""Which files are copies of a set's pictures: by id, by bytes, by likeness."""

import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from .. import paths
from ..images import ImageReadError, read_rgb
from .likeness import near_pairs, sketch

_ID = re.compile(r"(?:COCO_(?:train|val|test)\d{4}_)?(\d{12}|[0-9a-f]{16})")
_BLOCK = 512  # files compared at a time: their thumbnails take 3 kB each


def shared_id(name: str) -> str:
    """Return the COCO or Open Images id in a file name or a set's id, "" where there is none.

    Parameters
    ----------
    name : str
        COCO's ids have 12 digits, Open Images' 16 hexadecimal ones; other names say nothing outside
        their own folder.

    Examples
    --------
    >>> shared_id("train2017/000000000139.jpg"), shared_id("COCO_val2014_000000000139.jpg")
    ('000000000139', '000000000139')
    >>> shared_id("cf0b02ccf0961130"), shared_id("car/1.png")
    ('cf0b02ccf0961130', '')
    """
    found = _ID.fullmatch(Path(name.strip()).stem.strip())
    return found[1] if found else ""


def same_id(items: pd.DataFrame, files: Sequence[str]) -> list[tuple[int, int]]:
    """Return (row of ``items``, index in ``files``) of pictures with one id of COCO or Open Images."""
    table = defaultdict(list)
    for row, one in enumerate(items["id"]):
        if key := shared_id(one):
            table[key].append(row)
    return [(row, at) for at, file in enumerate(files) for row in table.get(shared_id(str(file)), [])]


def same_bytes(items: pd.DataFrame, files: Sequence[str]) -> list[tuple[int, int]]:
    """Return (row of ``items``, index in ``files``) of the same bytes.

    Parameters
    ----------
    items : DataFrame
        An analysis set's rows: file and sha256.
    files : sequence of path
        Only files as long as one of the set's pictures are read whole.

    Raises
    ------
    FileNotFoundError
        One of ``files`` does not exist.
    """
    table = defaultdict(list)
    for row, one in enumerate(items["sha256"]):
        table[one].append(row)
    sizes = {os.path.getsize(file) for file in items["file"].drop_duplicates()}
    close = [at for at, file in enumerate(files) if os.path.getsize(file) in sizes]
    return [(row, at) for at in close for row in table.get(paths.sha256(files[at]), [])]


def alike(items: pd.DataFrame, files: Sequence[str]) -> tuple[list[tuple[int, int]], list[int]]:
    """Return near-duplicates of a set's pictures among files, however many those are.

    Parameters
    ----------
    items : DataFrame
        An analysis set's rows.
    files : sequence of path
        Every one is decoded; memory holds the sketches of 512 of them.

    Returns
    -------
    pairs : list of (int, int)
        Row of ``items``, index in ``files``; see `likeness.near_pairs`.
    damaged : list of int
        The files that do not decode.
    """
    usable = [(row, one) for row, one in enumerate(sketches(items["file"].tolist())) if one is not None]
    pairs: list[tuple[int, int]] = []
    damaged: list[int] = []
    for start, block in _blocks(files):
        drawn = [(start + at, one) for at, one in enumerate(block) if one is not None]
        damaged += [start + at for at, one in enumerate(block) if one is None]
        found = near_pairs([one for _, one in usable], [one for _, one in drawn])
        pairs += [(usable[one][0], drawn[other][0]) for one, other in found]
    return pairs, damaged


def sketches(files: Sequence[str]) -> list[tuple | None]:
    """Return the sketch of each file (`likeness.sketch`), None where it does not decode."""
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        return list(pool.map(_sketch, files))


def _sketch(file: str) -> tuple | None:
    try:
        return sketch(read_rgb(file))
    except ImageReadError:
        return None


def _blocks(files: Sequence[str]) -> Iterator[tuple[int, list[tuple | None]]]:
    """Yield (index of the first, sketches) of 512 files at a time."""
    starts = range(0, len(files), _BLOCK)
    for start in tqdm(starts, "comparing pictures", disable=not sys.stderr.isatty()):
        yield start, sketches(files[start : start + _BLOCK])
