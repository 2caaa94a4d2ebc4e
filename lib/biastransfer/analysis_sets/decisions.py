"""What was decided about the pictures that were looked at, counted: a set's report."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pandas as pd
import polars as pl

REPORT_COLUMNS = ["class", "decision", "reason", "n", "ids"]
_KEYS = REPORT_COLUMNS[:3]
_LISTED_IDS = 50  # a report names this many ids a decision; curating all of COCO excludes 100,000
Decisions: TypeAlias = pd.DataFrame | pl.DataFrame  # few as the one, a million as the other


def decisions(ids: Sequence[str], decision: str, reason: str, name: str = "") -> pd.DataFrame:
    """Return decisions, one row a picture: id, class, decision, reason.

    Parameters
    ----------
    ids : sequence of str
        The pictures.
    decision, reason : str
        The same for all.
    name : str
        The class that they would be in, "" where there is none.
    """
    return pd.DataFrame(
        {"id": list(ids), "class": name, "decision": decision, "reason": reason}, dtype=object
    )


def tabulate_decisions(made: Sequence[Decisions], classes: Sequence[str]) -> pd.DataFrame:
    """Count decisions.

    Parameters
    ----------
    made : sequence of DataFrame
        id, class, decision, reason. Ids may be numbers (`written_id`).
    classes : sequence of str
        Whose order the rows take; classes that are not among them come last.

    Returns
    -------
    DataFrame
        One row a (class, decision, reason): those, n (pictures), ids (50 at most, joined by ";").
    """
    found: dict[tuple, tuple[int, list[str]]] = {}
    for frame in made:
        for *key, n, ids in _counted(frame).iter_rows():
            number, listed = found.get(tuple(key), (0, []))
            found[tuple(key)] = (number + n, [*listed, *map(written_id, ids)])
    order = {one: place for place, one in enumerate(classes)}
    rows = [
        (*key, n, _joined(ids, n))
        for key, (n, ids) in sorted(found.items(), key=lambda one: (order.get(one[0][0], len(order)), one[0]))
    ]
    return pd.DataFrame(rows, columns=REPORT_COLUMNS)


def written_id(one: str | int) -> str:
    """Return a picture's id as it is written: a number stands for 16 hexadecimal digits.

    Examples
    --------
    >>> written_id(255), written_id("car/1.png")
    ('00000000000000ff', 'car/1.png')
    """
    return one if isinstance(one, str) else f"{one:016x}"


def as_polars(frame: Decisions) -> pl.DataFrame:
    """Return a ``frame`` of text, numbers and truth values as a Polars one."""
    if isinstance(frame, pl.DataFrame):
        return frame
    return pl.DataFrame([_column(name, frame[name]) for name in frame.columns])


def _column(name: str, values: pd.Series) -> pl.Series:
    if pd.api.types.is_numeric_dtype(values.dtype):
        return pl.Series(name, np.ascontiguousarray(values.to_numpy()))
    return pl.Series(name, values.to_numpy(dtype=object, na_value=None).tolist(), dtype=pl.String)


def _counted(frame: Decisions) -> pl.DataFrame:
    """Return class, decision, reason, n and the first ids of each."""
    table = as_polars(frame[["id", *_KEYS]])
    counted = table.group_by(_KEYS).agg(pl.len().alias("n"), pl.col("id").bottom_k(_LISTED_IDS))
    return counted.with_columns(pl.col(_KEYS).cast(pl.String))


def _joined(ids: Sequence[str], n: int) -> str:
    shown = [
        one.encode("unicode_escape").decode() if "\n" in one else one for one in sorted(ids)[:_LISTED_IDS]
    ]
    return ";".join([*shown, *([f"… and {n - _LISTED_IDS} more"] if n > _LISTED_IDS else [])])
