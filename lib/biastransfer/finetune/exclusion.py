"""Pictures that a model is measured on are kept out of the pictures that it is trained on."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from biastransfer.analysis_sets import AnalysisSet
from biastransfer.analysis_sets.copies import alike, same_bytes, same_id
from biastransfer.finetune.targets import Target, make_target

COLUMNS = ["split", "picture", "rule", "decision", "set", "class", "id"]
RULES = {"id": "excluded", "bytes": "excluded", "likeness": "kept"}
_SPLITS = ("train", "val", "test")
_NEEDED = ["id", "file", "class", "sha256", "set"]


def exclude(
    target: Target,
    analysis_sets: Iterable[AnalysisSet],
    *,
    splits: Sequence[str] = ("train", "val"),
    near: bool = True,
) -> tuple[Target, pd.DataFrame]:
    """Take the pictures of analysis sets out of a target's splits.

    Parameters
    ----------
    target : Target
    analysis_sets : iterable of AnalysisSet
        What the finetuned model will be measured on.
    splits : sequence of {"train", "val", "test"}
        Where to look. By default the splits that shape the weights: those trained on, and those that
        choose the epoch.
    near : bool
        Also decode every picture and report near-duplicates; they stay in the target.

    Returns
    -------
    Target
        Without the pictures that share an id of COCO or Open Images, or all their bytes, with a picture of
        a set. Its notes say how many were taken out.
    DataFrame
        One row a (split, picture, rule, picture of a set): split, picture (bare file name), rule ("id",
        "bytes", "likeness" or "unreadable"), decision ("excluded" or "kept"), set, class, id.

    Raises
    ------
    ValueError
        An unknown split, or a split that would be left without a picture or a positive label.

    Notes
    -----
    A likeness is a suspicion, not an identity: two frames of one scene look alike too. It is for a person
    to judge, so it is listed and nothing is taken out.
    """
    unknown = [name for name in splits if name not in _SPLITS]
    if unknown:
        raise ValueError(
            f"splits must be among {', '.join(_SPLITS)}; got {', '.join(map(repr, unknown))}. Correct them."
        )
    measured = pd.concat(
        [one.items.assign(set=one.name) for one in analysis_sets] or [pd.DataFrame(columns=_NEEDED)]
    )
    parts, rows, notes = [], [], list(target.notes)
    for split in target.splits:
        gone: set[int] = set()
        if split.name in splits:
            found, gone = _found(split.name, split.files, measured, near)
            rows += found
            notes.append(_note(split.name, found, gone, near))
        kept = [at for at in range(len(split)) if at not in gone]
        parts.append(([split.files[at] for at in kept], split.labels[kept]))
    return make_target(target.classes, *parts, notes=notes), pd.DataFrame(rows, columns=COLUMNS)


def _found(
    split: str, files: Sequence[str], measured: pd.DataFrame, near: bool
) -> tuple[list[tuple], set[int]]:
    """Return the report's rows of one split, and the indices of the pictures to take out."""
    found = {"id": same_id(measured, files), "bytes": same_bytes(measured, files)}
    gone = {at for pairs in found.values() for _, at in pairs}
    rows: list[tuple] = []
    if near:
        rest = [at for at in range(len(files)) if at not in gone]
        pairs, damaged = alike(measured, [files[at] for at in rest])
        found["likeness"] = [(row, rest[at]) for row, at in pairs]
        rows += [_row(split, files[rest[at]], "unreadable", "kept") for at in damaged]
    for rule, pairs in found.items():
        theirs = measured.iloc[[row for row, _ in pairs]]
        rows += [
            _row(split, files[at], rule, RULES[rule], *named)
            for (_, at), *named in zip(pairs, theirs["set"], theirs["class"], theirs["id"])
        ]
    return rows, gone


def _row(split, file, rule, decision, name="", of_class="", key="") -> tuple:
    return (split, Path(file).name, rule, decision, name, of_class, key)


def _note(split: str, rows: Sequence[tuple], gone: set[int], near: bool) -> str:
    """Say in a sentence what was taken out of a split and what looks alike."""
    close = len({row[1] for row in rows if row[2] == "likeness"})
    said = f"{len(gone)} pictures of analysis sets, by id or bytes, are left out of {split}"
    return f"{said}; {close} more look like one and stay" if near else f"{said}; likeness was not looked for"
