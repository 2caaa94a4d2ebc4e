"""Embeddings of pictures in tar files, read as a stream: for sets beyond one disk, in WebDataset's form."""

import hashlib
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from biastransfer import paths
from biastransfer.analysis_sets.picture_files import is_picture
from biastransfer.backbones import Backbone, layer_path
from biastransfer.backbones.batches import to_batch
from biastransfer.embed import cache as stored
from biastransfer.embed.extraction import prepared
from biastransfer.embed.shards import is_whole, write
from biastransfer.images import ImageReadError, decode_rgb

_LARGEST = 64 * 2**20  # bytes of a picture


def embed_tars(
    backbone: Backbone,
    tars: Sequence[Path | str],
    folder: Path | str,
    layer: str | None = None,
    *,
    batch_size: int | None = None,
    device: str | None = None,
) -> list[Path]:
    """Embed the pictures of tar files, such as WebDataset's shards, each read once as a stream.

    Parameters
    ----------
    backbone, layer, batch_size, device
        As for `embed`, which gives the same bits for the same pictures.
    tars : sequence of path
        Members that are no pictures by their names, such as captions, are passed over.
    folder : path
        Where each tar's two files go, named after it, its content and the network: those that are there are
        not computed again.

    Returns
    -------
    list of Path
        A ``.npy`` for each tar.

    Raises
    ------
    ValueError
        No whole tar, or two of one name.
    """
    run, where, size = prepared(backbone, layer, batch_size, device)
    key, made = stored.key(backbone, layer_path(backbone, layer)), []
    for tar in map(Path, tars):
        mark = hashlib.sha256(f"{key} {paths.sha256(tar)}".encode()).hexdigest()[:16]
        file = Path(folder) / f"{tar.stem}-{mark}.npy"
        if file in made:
            raise ValueError(f"every tar must be given once; {tar} comes twice.")
        if not is_whole(file):
            vectors, rows = _embedded(tar, run, backbone.transform, size, where)
            shape = (-1, backbone.dim) if not vectors else (-1, len(vectors[0]))
            write(file.with_suffix(""), np.array(vectors, np.float32).reshape(shape), rows)
        made.append(file)
    return made


def tar_pictures(tar: Path | str) -> Iterator[tuple[str, bytes | str]]:
    """Yield (name, bytes) of the pictures of a tar in its order, or (name, reason) of one that is too large.

    Parameters
    ----------
    tar : path
        Read as a stream; links and devices are passed over.

    Raises
    ------
    ValueError
        No whole tar.
    """
    try:
        with tarfile.open(tar, "r|*") as archive:
            for member in archive:
                if not member.isfile() or not is_picture(Path(member.name).name):
                    continue
                if member.size > _LARGEST:
                    yield (
                        member.name,
                        f"a picture must have at most {_LARGEST >> 20} MiB; it has {member.size:,} bytes",
                    )
                    continue
                yield member.name, archive.extractfile(member).read()
    except (tarfile.TarError, EOFError, OSError) as problem:
        raise ValueError(f"{tar} must be a whole tar file; {problem}. Fetch it again.") from problem


def _embedded(tar: Path, run, transform, size: int, where) -> tuple[list[np.ndarray], list[tuple[str, str]]]:
    """Return the vectors of a tar's pictures and (id, reason) of each."""
    vectors: list[np.ndarray] = []
    rows: list[list[str]] = []
    waiting: list[tuple[int, np.ndarray]] = []

    def pass_on() -> None:
        pixels = [picture for _, picture in waiting]
        batch = np.stack(pixels + pixels[-1:] * (size - len(pixels)))  # always full: see `extraction`
        for (place, _), vector in zip(waiting, run(to_batch(batch, transform, where))):
            if np.isfinite(vector).all():
                vectors.append(vector)
            else:
                rows[place][1] = "its embedding is not finite"
        waiting.clear()

    for name, data in tar_pictures(tar):
        rows.append([name, data if isinstance(data, str) else ""])
        if isinstance(data, bytes):
            try:
                waiting.append((len(rows) - 1, transform.resized(decode_rgb(data, name))))
            except ImageReadError as error:
                rows[-1][1] = str(error)
        if len(waiting) == size:
            pass_on()
    if waiting:
        pass_on()
    return vectors, [(name, reason) for name, reason in rows]
