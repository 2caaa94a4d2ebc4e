"""A table of candidates that a person goes through by eye, and the set that is left after it."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl

from .choosing import Choice, choose
from .decisions import Decisions, decisions
from .manifest import CANDIDATE_COLUMNS

_YES, _NO = ("yes", "true", "1", "1.0"), ("no", "false", "0", "0.0")  # spreadsheets rewrite truth values
REJECTED = "rejected by a person"


def choose_and_review(
    pictures: Decisions,
    schema: str,
    root: Path,
    classes: Sequence[str],
    review: Path | str | None,
    **rule,
) -> tuple[Choice, pd.DataFrame, list[str]]:
    """Choose pictures, make the table of candidates, and keep what a person accepted, if one was asked.

    Parameters
    ----------
    pictures, schema, classes, **rule
        As `choosing.choose` takes them.
    root, review
        As `candidates` and `reviewed` take them; without ``review`` the choice is as proposed.

    Returns
    -------
    choice : Choice
    shown : DataFrame
        The candidates.
    notes : list of str
    """
    choice = choose(pictures, schema, classes=classes, **rule)
    shown = candidates(choice, root, classes)
    if review is None:
        return choice, shown, []
    return reviewed(choice, review), shown, [f"A person went through {len(shown)} candidates."]


def candidates(choice: Choice, root: Path, order: Sequence[str]) -> pd.DataFrame:
    """Return the pictures that a person should look at: those chosen, and of each class the next ones.

    Parameters
    ----------
    choice : Choice
        From `choosing.choose`; object_share, person_share (of the picture, 0…1) and captions are taken
        over where it has them.
    root : Path
        Files are given relative to it.
    order : sequence of str
        The classes, in the order of the rows.

    Returns
    -------
    DataFrame
        One row a candidate: class, id, file, proposed ("accept", or "reject" for the next ones), reason,
        object_share, person_share, captions, accept ("yes" or "no", as proposed): the column to edit.
    """
    parts = [
        choice.chosen.assign(proposed="accept", reason="", accept="yes"),
        choice.spare.assign(proposed="reject", reason="over the cap", accept="no"),
    ]
    table = pd.concat(parts, ignore_index=True)
    place = {one: number for number, one in enumerate(order)}
    table = table.assign(place=table["class"].map(place)).sort_values(
        ["place", "proposed", "id"], kind="stable"
    )
    for name, missing in (("object_share", np.nan), ("person_share", np.nan), ("captions", "")):
        table[name] = table.get(name, missing)
    table["file"] = [os.path.relpath(file, root) for file in table["file"]]
    for name in ("object_share", "person_share"):
        table[name] = table[name].round(4)
    return table[CANDIDATE_COLUMNS].reset_index(drop=True)


def reviewed(choice: Choice, path: Path | str) -> Choice:
    """Keep what a person accepted.

    Parameters
    ----------
    choice : Choice
        Made with the options that the candidates were made with.
    path : path-like
        The candidates as CSV with class, id and accept; other columns are for the person only.

    Returns
    -------
    Choice
        Its chosen pictures are those with "yes", caps or not. Of the others it says who left them out.

    Raises
    ------
    FileNotFoundError
        No such file.
    ValueError
        A column missing, an ``accept`` that is neither yes nor no, a row twice or of no candidate, or a
        chosen picture without a row.
    """
    verdicts = _verdicts(Path(path))
    rows = {key: one for part in (choice.chosen, choice.spare) for key, one in zip(_keys(part), part["id"])}
    chosen = list(_keys(choice.chosen))
    _check(Path(path), [key for key in verdicts if key not in rows], "is no candidate")
    _check(Path(path), [key for key in chosen if key not in verdicts], "is a candidate without a row")
    table = pd.concat([choice.chosen, choice.spare], ignore_index=True)
    accepted = [verdicts.get(key, False) for key in _keys(table)]
    refused = table[[key in chosen and not yes for key, yes in zip(_keys(table), accepted)]]
    gone = decisions(refused["id"], "excluded", REJECTED).assign(**{"class": refused["class"].to_numpy()})
    taken = {rows[key] for key, yes in verdicts.items() if yes and key not in chosen}
    return Choice(table[accepted], [gone, *(_without(made, taken) for made in choice.made)], choice.spare)


def _keys(part: pd.DataFrame) -> list[tuple[str, str]]:
    return list(zip(part["class"], part["id"]))


def _verdicts(path: Path) -> dict[tuple[str, str], bool]:
    """Return (class, id) → accepted."""
    if not path.is_file():
        raise FileNotFoundError(
            f"the reviewed candidates must exist; {path} does not. Write the set's candidates there."
        )
    needed = ("class", "id", "accept")
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, usecols=lambda name: name in needed)
    except ValueError as problem:  # pandas' own errors and UnicodeDecodeError are of this kind
        raise ValueError(
            f"{path} must be a whole CSV file in UTF-8; {problem}. Save it as that again."
        ) from problem
    if lacking := [name for name in needed if name not in table]:
        raise ValueError(f"{path} must have the columns class, id, accept; it lacks {', '.join(lacking)}.")
    found: dict[tuple[str, str], bool] = {}
    for line, (name, one, accept) in enumerate(zip(table["class"], table["id"], table["accept"]), 2):
        said = accept.strip().lower()
        if said not in (*_YES, *_NO):
            raise ValueError(f"accept must be yes or no; line {line} of {path} has {accept!r}. Decide on it.")
        if (name, one) in found:
            raise ValueError(
                f"a candidate may have one row; line {line} of {path} is {name} {one} again. Delete one."
            )
        found[name, one] = said in _YES
    return found


def _check(path: Path, keys: Sequence[tuple[str, str]], what: str) -> None:
    if keys:
        name, one = keys[0]
        raise ValueError(
            f"{path} must have a row for each candidate and no other; {name} {one} {what} ({len(keys)} so). "
            "Load the set with the options that the candidates were made with, or review them anew."
        )


def _without(made: Decisions, ids: set[str]) -> Decisions:
    """Return decisions without those about some pictures."""
    if not ids or not isinstance(made, pl.DataFrame):
        return made
    numbers = made["id"].dtype == pl.UInt64
    listed = pl.Series([int(one, 16) if numbers else one for one in ids], dtype=made["id"].dtype)
    return made.filter(~pl.col("id").is_in(listed.implode()))
