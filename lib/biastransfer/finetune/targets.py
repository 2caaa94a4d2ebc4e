"""A finetuning target: picture files and a label matrix per split."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl

from biastransfer.analysis_sets.ranking import ranks


@dataclass(frozen=True)
class Split:
    """One part of a target: ``files`` (paths) and ``labels`` (N, K) float32, 1, 0 or NaN = unknown."""

    name: str
    files: tuple[str, ...]
    labels: np.ndarray = field(repr=False)

    def __len__(self) -> int:
        """Return the number of pictures."""
        return len(self.files)


@dataclass(frozen=True)
class Target:
    """A multi-label target: classes in column order, three splits; ``notes`` state the readings."""

    classes: tuple[str, ...]
    train: Split
    val: Split
    test: Split
    notes: tuple[str, ...] = ()

    @property
    def splits(self) -> tuple[Split, Split, Split]:
        """Return train, val and test."""
        return self.train, self.val, self.test

    def limit(self, train: int | None, val: int | None, test: int | None) -> "Target":
        """Return the target with at most so many pictures a split, the first ones of each."""
        parts = [(split.files[:n], split.labels[:n]) for split, n in zip(self.splits, (train, val, test))]
        return make_target(self.classes, *parts, notes=self.notes)

    def gaps(self) -> tuple[str, ...]:
        """Return one sentence for every split that has classes without a positive."""
        sentences = []
        for split in self.splits:
            missing = [name for name, column in zip(self.classes, split.labels.T) if not (column == 1).any()]
            if missing:
                count = f"{len(missing)} of {len(self.classes)} classes"
                sentences.append(f"{count} have no positive in {split.name}: {', '.join(missing)}")
        return tuple(sentences)

    def counts(self) -> pd.DataFrame:
        """Return pictures with a class present, absent and unknown: one row per split and class.

        A class with ``positives`` 0 cannot be learnt (train) or has no average precision (val, test).
        """
        rows = [
            (
                split.name,
                name,
                int((column == 1).sum()),
                int((column == 0).sum()),
                int(np.isnan(column).sum()),
            )
            for split in self.splits
            for name, column in zip(self.classes, split.labels.T)
        ]
        return pd.DataFrame(rows, columns=["split", "class", "positives", "negatives", "unknown"])


def make_target(classes, train, val, test, *, notes=()) -> Target:
    """Build a target from (files, labels) pairs and check it.

    Parameters
    ----------
    classes : sequence of str, length K
        Class names in column order.
    train, val, test : tuple of (sequence of path, array_like of shape (N, K))
        Labels are 1 present, 0 absent, NaN unknown.
    notes : sequence of str
        Readings taken, kept as they are.

    Returns
    -------
    Target
        Classes without a positive are allowed: `Target.gaps` names and counts them.

    Raises
    ------
    ValueError
        An empty split, a label matrix that does not fit files and classes, values other than 0, 1 and NaN, a
        class named twice, a file in two splits, no class with a positive in a split.
    """
    classes = tuple(map(str, classes))
    if len(set(classes)) != len(classes) or not classes:
        raise ValueError(
            f"class names must be unique and at least one; got {list(classes)}. Rename or merge."
        )
    splits = [_split(*named, classes) for named in (("train", train), ("val", val), ("test", test))]
    for a, b in ((0, 1), (0, 2), (1, 2)):
        if shared := sorted(set(splits[a].files) & set(splits[b].files)):
            raise ValueError(
                f"a picture may stand in one split only; {len(shared)} stand in {splits[a].name} and "
                f"{splits[b].name}, first {shared[0]!r}. Remove them from one."
            )
    return Target(classes, *splits, notes=tuple(notes))


def _split(name: str, part, classes: tuple[str, ...]) -> Split:
    files, labels = part
    files, labels = tuple(map(str, files)), np.asarray(labels, dtype=np.float32)
    if not files:
        raise ValueError(f"the {name} split must have pictures; got none. Check the annotations.")
    if labels.shape != (len(files), len(classes)):
        raise ValueError(
            f"the {name} labels must be ({len(files)} pictures, {len(classes)} classes); got {labels.shape}. "
            "Give every picture one row and every class one column."
        )
    if not np.isin(labels[~np.isnan(labels)], (0.0, 1.0)).all():
        raise ValueError(f"the {name} labels must be 0, 1 or NaN (unknown); got other values. Binarise them.")
    if not (labels == 1).any():
        raise ValueError(f"the {name} split must have a positive label; got none. Check the categories.")
    return Split(name, files, labels)


def check_max_train(most: int | None) -> None:
    """Refuse a number ``most`` of training pictures to draw that is not None or at least 1."""
    if most is not None and (isinstance(most, bool) or most < 1):
        raise ValueError(f"max_train must be None or at least 1; got {most!r}. Give a whole number.")


def draw_order(seed: int, files: Sequence[str]) -> list[int]:
    """Return the places of picture ``files`` in the order of the draw by ``seed``: that of `ranking.ranks`.

    A picture's place among the others depends on its bare name alone.
    """
    stems = pl.Series([Path(file).stem for file in files], dtype=pl.String)
    return np.argsort(ranks(seed, stems), kind="stable").tolist()


def fingerprint(target: Target) -> str:
    """Return 16 hex digits that change with any file name, label, split or class of the target."""
    digest = hashlib.sha256("\0".join(target.classes).encode())
    for split in target.splits:
        digest.update("\0".join((split.name, *(Path(file).name for file in split.files))).encode())
        digest.update(np.ascontiguousarray(split.labels).tobytes())
    return digest.hexdigest()[:16]
