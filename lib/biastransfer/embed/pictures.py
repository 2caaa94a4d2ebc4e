"""Embeddings: pictures and a backbone in, one vector a picture out, each computed once."""

import dataclasses
import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from biastransfer import distributed
from biastransfer.backbones import Backbone, layer_path
from biastransfer.embed import cache as stored
from biastransfer.embed.extraction import extract
from biastransfer.images import ImageReadError, picture_bytes


@dataclasses.dataclass(frozen=True)
class Embeddings:
    """What `embed` gives.

    Attributes
    ----------
    vectors : (N, D) float32 array
        One row a picture, in the order of the items, failed ones left out; not normalised.
    ids : list of str
        One id a row: the set's ids, or the paths as they were given.
    failed : DataFrame
        Columns file, reason: distinct pictures without a row.
    rows : (N,) int array
        For each row its position among the items that were asked for.
    computed : int
        Distinct pictures that went through the network; the others came from the cache.
    notes : tuple of str
        What happened to the cache: a damaged file, a folder that cannot be written.
    """

    vectors: np.ndarray
    ids: list[str]
    failed: pd.DataFrame
    rows: np.ndarray
    computed: int = 0
    notes: tuple[str, ...] = ()


def embed(
    backbone: Backbone,
    items,
    layer: str | None = None,
    *,
    batch_size: int | None = None,
    cache: bool = True,
    device: str | None = None,
) -> Embeddings:
    """Embed pictures with a backbone and its own transform.

    Parameters
    ----------
    backbone : Backbone
        Used in eval mode through a copy: its mode, device and weights stay as they are.
    items : AnalysisSet or list of paths
        A picture that occurs twice, even under two names or in two classes, is computed once.
    layer : str, optional
        As for `forward_layer`; default the pooled penultimate layer.
    batch_size : int, optional
        Pictures a forward pass; default 4 on a CPU, where large batches are slower, and 128 on a GPU. It
        changes no vector beyond 1e-5.
    cache : bool
        Whether vectors are looked up and kept under `paths.embedding_cache`.
    device : str, optional
        Default ``"cuda"`` where there is one, else ``"cpu"``.

    Returns
    -------
    Embeddings
        A picture that cannot be read, or whose vector is not finite, is in ``.failed`` and has no row.

    Raises
    ------
    ValueError
        If there is no such layer, or ``batch_size`` < 1.
    TypeError
        If ``items`` is neither a set nor a list.

    Notes
    -----
    Under torchrun every rank must ask for the same items: each computes its share, all get all vectors, with
    the bits that a single process gives, and the first rank keeps them.
    """
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"batch_size must be at least 1; got {batch_size}")
    distributed.start(device)
    ids, files = ids_and_files(items)
    digests, reasons = distributed.from_first(lambda: _digests(files))
    known, failed, computed, notes = _vectors(backbone, layer, digests, batch_size, cache, device)
    reasons |= {file: failed[digest] for file, digest in digests.items() if digest in failed}
    rows = [row for row, file in enumerate(files) if file not in reasons]
    vectors = [known[digests[files[row]]] for row in rows]
    return Embeddings(
        vectors=np.stack(vectors) if rows else np.empty((0, backbone.dim), np.float32),
        ids=[ids[row] for row in rows],
        failed=pd.DataFrame(sorted(reasons.items()), columns=["file", "reason"], dtype=object),
        rows=np.array(rows, dtype=int),
        computed=computed,
        notes=tuple(notes),
    )


def _vectors(backbone, layer, digests: dict[str, str], batch_size: int, cache: bool, device):
    """Return digest → vector, digest → reason, the number computed and notes: look up, compute, keep."""
    path = layer_path(backbone, layer)
    key = stored.key(backbone, path) if cache and digests else ""
    # what the first rank finds is told to all, so that all agree on what is missing
    known, notes = distributed.from_first(lambda: stored.load(key, digests.values()) if key else ({}, []))
    missing = {digest: file for file, digest in digests.items() if digest not in known}
    failed: dict[str, str] = {}
    for found in extract(backbone, layer, missing, batch_size, device):
        fresh = {digest: result for digest, result in found.items() if not isinstance(result, str)}
        failed |= {digest: found[digest] for digest in found if digest not in fresh}
        known |= fresh
        if key and distributed.is_first():
            notes += stored.store(key, fresh)
    return known, failed, len(missing) - len(failed), list(dict.fromkeys(notes))


def ids_and_files(items) -> tuple[list[str], list[str]]:
    """Return ids and files of ``items``: an analysis set or a list of paths."""
    frame = getattr(items, "items", None)
    if isinstance(frame, pd.DataFrame):
        return frame["id"].tolist(), frame["file"].tolist()
    if isinstance(items, str | bytes | dict) or not isinstance(items, Iterable):
        raise TypeError(f"embed needs an analysis set or a list of paths; got {type(items).__name__}")
    files = [str(path) for path in items]
    return list(files), files


def _digests(files: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return file → SHA-256 of its bytes, and file → reason for those that cannot be read."""
    digests, reasons = {}, {}
    for file in dict.fromkeys(files):
        try:
            digests[file] = hashlib.sha256(picture_bytes(file)).hexdigest()
        except ImageReadError as error:
            reasons[file] = str(error)
    return digests, reasons
