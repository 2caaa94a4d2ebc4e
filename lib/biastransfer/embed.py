"""Embeddings: pictures and a backbone in, one vector a picture out, each computed once."""

import dataclasses
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from biastransfer import paths
from biastransfer.backbones import Backbone, forward_layer, load_backbone
from biastransfer.images import read_rgb


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
        Columns file, reason: pictures without a row.
    rows : (N,) int array
        For each row its position among the items that were asked for.
    """

    vectors: np.ndarray
    ids: list[str]
    failed: pd.DataFrame
    rows: np.ndarray


class Condition(NamedTuple):
    """One network of a run: which backbone, before or after finetuning, on what, with which seed."""

    backbone: str
    stage: str
    target: str
    seed: int


def conditions(
    run: str, backbones: Sequence[str], finetuned: Sequence[str], target: str, seeds: Sequence[int]
) -> list[Condition]:
    """Return the conditions of a run: each backbone pretrained, then each finetuned one for each seed.

    Examples
    --------
    >>> conditions("smoke", ["random"], ["squeezenet1_1"], "scenes", [0])[1]
    Condition(backbone='squeezenet1_1', stage='finetuned', target='scenes', seed=0)
    """
    before = [Condition(name, "pretrained", "", 0) for name in backbones]
    return before + [Condition(name, "finetuned", target, seed) for name in finetuned for seed in seeds]


def embed(
    backbone: Backbone, items, layer: str | None = None, *, batch_size: int = 4, cache: bool = True
) -> Embeddings:
    """Embed pictures."""
    ids, files = _ids_and_files(items)
    vectors, kept, failed = [], [], []
    mode = backbone.module.training
    backbone.module.eval()
    try:
        with torch.inference_mode():
            for start in tqdm(range(0, len(files), batch_size), disable=not sys.stderr.isatty()):
                batch = []
                for row in range(start, min(start + batch_size, len(files))):
                    try:
                        batch.append(backbone.transform(read_rgb(files[row])))
                        kept.append(row)
                    except ValueError as error:
                        failed.append((files[row], str(error)))
                if batch:
                    vectors.append(forward_layer(backbone, torch.stack(batch), layer).numpy())
    finally:
        backbone.module.train(mode)
    return Embeddings(
        np.concatenate(vectors) if vectors else np.empty((0, backbone.dim), np.float32),
        [ids[row] for row in kept],
        pd.DataFrame(failed, columns=["file", "reason"]),
        np.array(kept, dtype=int),
    )


def _ids_and_files(items) -> tuple[list[str], list[str]]:
    """Return ids and files of an analysis set or of a list of paths."""
    if hasattr(items, "items") and isinstance(items.items, pd.DataFrame):
        return items.items["id"].tolist(), items.items["file"].tolist()
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise TypeError(f"embed needs an analysis set or a list of paths; got {type(items).__name__}")
    files = [str(path) for path in items]
    return files, files


class Embedded(dict):
    """The vectors of a set: condition → class → (n, D) array, the same pictures in the same rows.

    ``.failed`` has a row (backbone, stage, target, seed, file, reason) for each picture that one condition could
    not embed, and that was therefore dropped in all.
    """

    failed: pd.DataFrame


def embed_classes(
    analysis_set, conditions: Sequence[Condition], *, run: str, layer: str | None = None
) -> Embedded:
    """Embed a set under each condition."""
    found = {condition: embed(_load(condition, run), analysis_set, layer) for condition in conditions}
    failed = [result.failed.assign(**condition._asdict()) for condition, result in found.items()]
    lost = {file for result in found.values() for file in result.failed["file"]}
    items = analysis_set.items.reset_index(drop=True)
    keep = ~items["file"].isin(lost).to_numpy()
    embedded = Embedded()
    embedded.failed = pd.concat(failed, ignore_index=True) if failed else pd.DataFrame()
    for condition, result in found.items():
        classes = items["class"].to_numpy()[result.rows]
        rows = keep[result.rows]
        embedded[condition] = {
            name: result.vectors[(classes == name) & rows] for name in analysis_set.classes
        }
    return embedded


def _load(condition: Condition, run: str) -> Backbone:
    """Load the network of a condition."""
    if condition.stage == "pretrained":
        return load_backbone(condition.backbone, seed=condition.seed)
    path = paths.checkpoint(run, condition.backbone, condition.target, condition.seed)
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no checkpoint {path}; run notebook 02 with run={run!r}, backbone={condition.backbone!r}, "
            f"target={condition.target!r}, seed={condition.seed}"
        )
    return load_backbone(path)
