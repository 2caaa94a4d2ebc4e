"""Embeddings of more pictures than one job or one disk takes: by shards, merged to the file of a single run.

A shard is two files: ``<name>.npy``, (n, D) float32 in the order of its pictures, and ``<name>.csv``, a row a
picture: id, row (empty where there is none) and reason. `large.vectors` opens a ``.npy`` without reading it.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from biastransfer import paths
from biastransfer.backbones import Backbone
from biastransfer.embed.pictures import embed, ids_and_files

COLUMNS = ["id", "row", "reason"]
_COPIED = 65_536  # rows at a time


def embed_shard(
    backbone: Backbone,
    items,
    shard: int,
    shards: int,
    folder: Path | str,
    layer: str | None = None,
    **options,
) -> Path:
    """Embed one of several equal parts of the pictures: one job of many, on any machine.

    Parameters
    ----------
    backbone, items, layer, **options
        As for `embed`; all jobs name the same items.
    shard, shards : int
        Which part, counted from 0, of how many.
    folder : path
        Where its two files go.

    Returns
    -------
    Path
        The shard's ``.npy``.

    Raises
    ------
    ValueError
        A shard that is not one of them, or as for `embed`.
    """
    if not 0 <= shard < shards:
        raise ValueError(f"a shard must be one of 0 to {shards - 1}; got {shard}.")
    ids, files = ids_and_files(items)
    own = slice(shard * len(files) // shards, (shard + 1) * len(files) // shards)
    found = embed(backbone, files[own], layer, **options)
    reasons = dict(zip(found.failed["file"], found.failed["reason"]))
    rows = [(name, reasons.get(file, "")) for name, file in zip(ids[own], files[own])]
    return write(Path(folder) / f"{shard:05d}-of-{shards:05d}", found.vectors, rows)


def shard_files(folder: Path | str, shards: int) -> list[Path]:
    """Return the files of all parts of `embed_shard` in order; one that is missing is named.

    Parameters
    ----------
    folder : path
    shards : int
        How many there must be.

    Raises
    ------
    FileNotFoundError
        Some are not there; the message names their numbers.
    """
    files = [Path(folder) / f"{k:05d}-of-{shards:05d}.npy" for k in range(shards)]
    if missing := [k for k, file in enumerate(files) if not is_whole(file)]:
        raise FileNotFoundError(
            f"{folder} must hold {shards} shards; {len(missing)} are missing, first number {missing[0]}. "
            "Run their jobs again."
        )
    return files


def merge(shards: Sequence[Path | str], out: Path | str) -> Path:
    """Join shards to one ``.npy`` with its ``.csv``, a few rows in memory at a time.

    Parameters
    ----------
    shards : sequence of path
        The ``.npy`` of each, in order.
    out : path
        The ``.npy`` to write, whole or not at all; its bytes do not depend on how many shards there were.

    Returns
    -------
    Path

    Raises
    ------
    ValueError
        No shard, or shards of different dimensions.
    """
    parts = [np.load(file, mmap_mode="r", allow_pickle=False) for file in shards]
    widths = {part.shape[1] for part in parts if len(part)} or {part.shape[1] for part in parts}
    if len(widths) != 1:
        raise ValueError(
            f"shards must be at least one, all of the same dimensions; got {len(parts)} of {sorted(widths)}. "
            "Embed all with one backbone and layer."
        )
    tables = [pd.read_csv(Path(file).with_suffix(".csv"), keep_default_na=False) for file in shards]
    out, total = Path(out), sum(map(len, parts))
    with paths.replacing(out) as partial:
        joined = np.lib.format.open_memmap(partial, "w+", np.float32, (total, widths.pop()))
        at = 0
        for part in parts:
            for start in range(0, len(part), _COPIED):
                piece = part[start : start + _COPIED]
                joined[at : at + len(piece)] = piece
                at += len(piece)
        joined.flush()
    _write_rows(
        out.with_suffix(".csv"), pd.concat(tables)[["id", "reason"]].itertuples(index=False, name=None)
    )
    return out


def write(place: Path, vectors: np.ndarray, rows: Sequence[tuple[str, str]]) -> Path:
    """Write the two files of a shard at ``place`` and return the first.

    Parameters
    ----------
    place : Path
        Their name without a suffix.
    vectors : (n, D) array
    rows : sequence of (id, reason)
        A reason is "" where there is a vector. This table is written last: it says that both are there.
    """
    with paths.replacing(place.with_name(place.name + ".npy")) as partial, open(partial, "wb") as file:
        np.save(file, vectors)
    _write_rows(place.with_name(place.name + ".csv"), rows)
    return place.with_name(place.name + ".npy")


def _write_rows(file: Path, rows) -> None:
    table = pd.DataFrame(list(rows), columns=["id", "reason"])
    there = table["reason"] == ""
    table["row"] = (there.cumsum() - 1).where(there, -1).astype("Int64").mask(~there)
    paths.write_csv(table[COLUMNS], file)


def is_whole(file: Path) -> bool:
    """Tell whether both files of the shard ``file`` are there."""
    return file.is_file() and file.with_suffix(".csv").is_file()
