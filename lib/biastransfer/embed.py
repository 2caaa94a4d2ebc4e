"""Embeddings: pictures and a backbone in, one vector a picture out, each computed once."""

import dataclasses
import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from biastransfer import embedding_cache, paths
from biastransfer.backbones import Backbone, layer_path, load_backbone
from biastransfer.extraction import extract
from biastransfer.images import ImageReadError, picture_bytes

_FLUSH = 1024  # pictures a cache file: what a killed run loses at most


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


class Condition(NamedTuple):
    """One network of a run; ``stage`` is pretrained or finetuned, before it target is "" and seed 0."""

    backbone: str
    stage: str
    target: str
    seed: int


class Embedded(dict):
    """A set's vectors: condition → class → (n, D) array, the same pictures in the same rows everywhere.

    ``.failed`` has a row (backbone, stage, target, seed, file, reason) for each picture that a condition
    could not embed and that was therefore dropped in all; ``.notes`` holds the cache's notes.
    """

    failed: pd.DataFrame
    notes: tuple[str, ...]


def embed(
    backbone: Backbone,
    items,
    layer: str | None = None,
    *,
    batch_size: int = 4,
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
    batch_size : int
        Pictures a forward pass. It changes no vector beyond 1e-5; large batches are slower on a CPU.
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
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1; got {batch_size}")
    ids, files = _ids_and_files(items)
    digests, reasons = _digests(files)
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
    key = embedding_cache.key(backbone, path) if cache and digests else ""
    known, notes = embedding_cache.load(key, digests.values()) if key else ({}, [])
    missing = {digest: file for file, digest in digests.items() if digest not in known}
    fresh, failed = {}, {}
    for digest, result in extract(backbone, layer, missing, batch_size, device):
        if isinstance(result, str):
            failed[digest] = result
            continue
        known[digest] = fresh[digest] = result
        if key and len(fresh) == _FLUSH:
            notes += embedding_cache.store(key, fresh)
            fresh = {}
    if key:
        notes += embedding_cache.store(key, fresh)
    return known, failed, len(missing) - len(failed), list(dict.fromkeys(notes))


def _ids_and_files(items) -> tuple[list[str], list[str]]:
    """Return ids and files of an analysis set or of a list of paths."""
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


def conditions(
    run: str, backbones: Sequence[str], finetuned: Sequence[str], target: str, seeds: Sequence[int]
) -> list[Condition]:
    """Return the conditions of a run: ``backbones`` pretrained, then ``finetuned`` on a target for each seed.

    Parameters
    ----------
    run : str
        Name of the run; the conditions of all runs look alike.
    backbones, finetuned : sequence of str
        Names of `list_backbones`.
    target : str
        Name of the finetuning target.
    seeds : sequence of int
        Seeds of the finetunings.

    Returns
    -------
    list of Condition

    Examples
    --------
    >>> conditions("smoke", ["random"], ["squeezenet1_1"], "scenes", [0])[1]
    Condition(backbone='squeezenet1_1', stage='finetuned', target='scenes', seed=0)
    """
    before = [Condition(name, "pretrained", "", 0) for name in dict.fromkeys(backbones)]
    return before + [Condition(name, "finetuned", target, seed) for name in finetuned for seed in seeds]


def embed_classes(
    analysis_set, conditions: Sequence[Condition], *, run: str, layer: str | None = None
) -> Embedded:
    """Embed a set under each condition and give its vectors by class: what all measures eat.

    Parameters
    ----------
    analysis_set : AnalysisSet
    conditions : sequence of Condition
        From `conditions`.
    run : str
        Whose checkpoints the finetuned conditions use.
    layer : str, optional
        As for `forward_layer`.

    Returns
    -------
    Embedded
        Condition → class, in the set's order → (n, D) float32 array.

    Raises
    ------
    FileNotFoundError
        If a checkpoint is missing; the message says which parameters of notebook 02 make it.
    ValueError
        If no picture of a class could be embedded.
    """
    found = {condition: embed(_network(condition, run), analysis_set, layer) for condition in conditions}
    failed = [result.failed.assign(**condition._asdict()) for condition, result in found.items()]
    embedded = Embedded()
    embedded.failed = pd.concat(failed, ignore_index=True)[[*Condition._fields, "file", "reason"]]
    embedded.notes = tuple(note for result in found.values() for note in result.notes)
    names = analysis_set.items["class"].to_numpy()
    whole = ~analysis_set.items["file"].isin(embedded.failed["file"]).to_numpy()
    for name in analysis_set.classes:
        if not whole[names == name].any():
            raise ValueError(
                f"class {name!r} must have at least one picture that can be embedded; "
                f"all {(names == name).sum()} failed, the first because: {embedded.failed['reason'].iloc[0]}"
            )
    for condition, result in found.items():
        kept = {name: (names == name)[result.rows] & whole[result.rows] for name in analysis_set.classes}
        embedded[condition] = {name: result.vectors[rows] for name, rows in kept.items()}
    return embedded


def _network(condition: Condition, run: str) -> Backbone:
    """Load the network of a condition."""
    if condition.stage == "pretrained":
        return load_backbone(condition.backbone, seed=condition.seed)
    path = paths.checkpoint(run, condition.backbone, condition.target, condition.seed)
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no checkpoint {path}; make it with notebook 02 and the parameters run={run!r}, "
            f"backbone={condition.backbone!r}, target={condition.target!r}, seed={condition.seed}"
        )
    return load_backbone(path)
