"""Pictures that a model is measured on are kept out of the pictures that it is trained on."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from biastransfer.analysis_sets import AnalysisSet
from biastransfer.analysis_sets.copies import alike, same_bytes, same_id
from biastransfer.finetune.targets import Target, check_max_train, draw_order, make_target

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
    max_train: int | None = None,
    seed: int = 0,
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
    max_train : int, optional
        Keep so many training pictures, the first in the order of ``seed``'s draw (`targets.draw_order`) that
        are not taken out; the others are not looked at.
    seed : int
        Of that draw.

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
        An unknown split, a ``max_train`` below 1, or a split left without a picture or a positive label.

    Notes
    -----
    A likeness is a suspicion, not an identity: two frames of one scene look alike too. It is for a person
    to judge, so it is listed and nothing is taken out.
    """
    check_max_train(max_train)
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
        copies = _copies(split.files, measured) if split.name in splits else {}
        gone = {at for pairs in copies.values() for _, at in pairs}
        kept = [at for at in range(len(split)) if at not in gone]
        most = max_train if split.name == "train" else None
        if fewer := most is not None and most < len(kept):
            kept, gone = _drawn(split.files, gone, most, seed)
        if split.name in splits:
            found = _found(split.name, split.files, kept, gone, copies, measured, near)
            rows += found
            notes.append(_note(split.name, found, gone, near))
        if fewer:
            notes.append(f"{split.name}: the first {most} of the others in the draw by seed {seed} are used")
        parts.append(([split.files[at] for at in kept], split.labels[kept]))
    return make_target(target.classes, *parts, notes=notes), pd.DataFrame(rows, columns=COLUMNS)


def _copies(files: Sequence[str], measured: pd.DataFrame) -> dict[str, list[tuple[int, int]]]:
    """Return by rule which row of the sets each of a split's copies is, as (row, place)."""
    return {"id": same_id(measured, files), "bytes": same_bytes(measured, files)}


def _drawn(files: Sequence[str], gone: set[int], most: int, seed: int) -> tuple[list[int], set[int]]:
    """Return the places of the ``most`` pictures drawn, and of those that the draw came upon and left out."""
    order = draw_order(seed, files)
    kept = [at for at in order if at not in gone][:most]
    return sorted(kept), gone & set(order[: order.index(kept[-1])])


def _found(
    split: str,
    files: Sequence[str],
    kept: list[int],
    gone: set[int],
    copies,
    measured: pd.DataFrame,
    near: bool,
) -> list[tuple]:
    """Return the report's rows of one split: copies among those taken out, likenesses among those kept."""
    found = {rule: [(row, at) for row, at in pairs if at in gone] for rule, pairs in copies.items()}
    rows: list[tuple] = []
    if near:
        pairs, damaged = alike(measured, [files[at] for at in kept])
        found["likeness"] = [(row, kept[at]) for row, at in pairs]
        rows += [_row(split, files[kept[at]], "unreadable", "kept") for at in damaged]
    for rule, pairs in found.items():
        theirs = measured.iloc[[row for row, _ in pairs]]
        rows += [
            _row(split, files[at], rule, RULES[rule], *named)
            for (_, at), *named in zip(pairs, theirs["set"], theirs["class"], theirs["id"])
        ]
    return rows


def _row(split, file, rule, decision, name="", of_class="", key="") -> tuple:
    return (split, Path(file).name, rule, decision, name, of_class, key)


def _note(split: str, rows: Sequence[tuple], gone: set[int], near: bool) -> str:
    """Say in a sentence what was taken out of a split and what looks alike."""
    close = len({row[1] for row in rows if row[2] == "likeness"})
    said = f"{len(gone)} pictures of analysis sets, by id or bytes, are left out of {split}"
    return f"{said}; {close} more look like one and stay" if near else f"{said}; likeness was not looked for"
