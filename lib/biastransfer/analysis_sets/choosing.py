"""From what is known about each picture to classes: one rule for every annotated data set."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl

from .decisions import Decisions, as_polars, written_id
from .manifest import schema_classes
from .ranking import ranks

NO_CLASS = "none of the set's objects and no person"
RANDOM_RULES = ("unused", "background")
_NONE = np.zeros(0, dtype=np.int64)
_TABLE_RANDOM = {"coco": 20, "openimages": 150}  # pictures of `random` in the paper's Tables 5 and 6


def assign(pictures: pd.DataFrame) -> pd.DataFrame:
    """Give each picture the one class it depicts, or the reason why it depicts none.

    Parameters
    ----------
    pictures : DataFrame
        id; object (the set's one object in the picture, "" or "several"); person ("man", "woman", "both",
        "unknown", or "" where nobody is); problem ("" or a reason to leave the picture out).

    Returns
    -------
    DataFrame
        ``pictures`` with class ("" where there is none) and reason.
    """
    thing, person, problem = (
        pictures[one].to_numpy(dtype=object) for one in ("object", "person", "problem")
    )  # pandas' own text columns compare in ten times the time
    rules = [
        (problem != "", problem),
        (thing == "several", "several of the set's objects"),
        (person == "both", "people of both perceived genders"),
        (person == "unknown", "a person whose gender is not stated"),
        ((thing == "stop sign") & (person != ""), "a person beside the stop sign"),
        ((thing == "") & (person == ""), NO_CLASS),
    ]
    reason = np.select([rule for rule, _ in rules], [text for _, text in rules], default="")
    name = np.full(len(pictures), "", dtype=object)
    clear = reason == ""
    name[clear] = ["+".join(filter(None, both)) for both in zip(thing[clear], person[clear])]
    return pictures.assign(**{"class": name, "reason": reason})


class Choice(NamedTuple):
    """What `choose` chose.

    Attributes
    ----------
    chosen : DataFrame
        Rows of the pictures with their class.
    made : list of DataFrame
        The decisions about every other picture.
    spare : DataFrame
        The pictures of each class that would come next, as many as were chosen by the cap.
    """

    chosen: pd.DataFrame
    made: list[Decisions]
    spare: pd.DataFrame


def choose(
    pictures: Decisions,
    schema: str,
    *,
    classes: Sequence[str] | None = None,
    cap: int | None = None,
    seed: int = 0,
    random: str = "unused",
    n_random: int | None = None,
) -> Choice:
    """Choose at most ``cap`` pictures a class, and the pictures of ``random``.

    Parameters
    ----------
    pictures : DataFrame
        id (text, or the number that 16 hexadecimal digits are), class and reason from `assign`; pandas or
        Polars.
    schema : {"coco", "openimages"}
        Whose classes.
    classes : sequence of str, optional
        Only these classes.
    cap : int, optional
        Most pictures a class.
    seed : int
        Of the draw. The order is a keyed hash of each id, so a picture more or less changes no other choice.
    random : {"unused", "background"}
        ``unused``: drawn from all pictures in no other class, as the paper's control was drawn from the
        whole data set; ``background``: only pictures with none of the set's objects and no person.
    n_random : int, optional
        Pictures of ``random``; otherwise ``cap``, else all (background) or the paper's number (unused).

    Returns
    -------
    Choice

    Raises
    ------
    ValueError
        An unknown class or rule, or a cap below 1.
    """
    wanted = check_choice(schema, classes, cap, random, n_random)
    table = as_polars(pictures[["id", "class", "reason"]])
    place = ranks(seed, table["id"])
    rows = _by_class(table)
    named = [_first(rows.pop(one, _NONE), place) for one in wanted if one != "random"]
    rest = np.sort(np.concatenate([*rows.values(), _NONE]))
    pool = rest if random == "unused" else rest[(table["reason"][rest] == NO_CLASS).to_numpy()]
    most = n_random or cap or (len(pool) if random == "background" else _TABLE_RANDOM[schema])
    drawn = _first(pool, place, 2 * most) if "random" in wanted else _NONE
    left = [one[len(one) if cap is None else cap :] for one in named]
    kept, over, spare = (
        np.concatenate([_NONE, *part])
        for part in ([one[:cap] for one in named], left, [one[:cap] for one in left])
    )
    unused = np.setdiff1d(rest, drawn[:most], assume_unique=True)
    made = [_over(table[over], cap), *_unused(table[unused])]
    return Choice(_rows(pictures, kept, drawn[:most]), made, _rows(pictures, spare, drawn[most:]))


def _by_class(table: pl.DataFrame) -> dict[str, np.ndarray]:
    """Return the rows of each class; "" are those of none."""
    numbered = table.select("class").with_row_index("row").group_by("class").agg("row")
    return {str(name): found.to_numpy() for name, found in zip(numbered["class"], numbered["row"])}


def _first(rows: np.ndarray, place: np.ndarray, n: int | None = None) -> np.ndarray:
    """Return the first ``n`` of some rows, or all, in the order of the draw."""
    if n is not None and n < len(rows):
        rows = rows[np.argpartition(place[rows], n)[:n]]
    return rows[np.argsort(place[rows], kind="stable")]


def _rows(pictures: Decisions, named: np.ndarray, control: np.ndarray) -> pd.DataFrame:
    """Return rows as a pandas frame in their order, those of the control in class ``random``."""
    order = np.argsort(np.concatenate([named, control]), kind="stable")
    parts = (
        pictures.iloc[one] if isinstance(pictures, pd.DataFrame) else pictures[one]
        for one in (named, control)
    )
    few, drawn = map(as_polars, parts)
    both = [few.cast({"class": pl.String}), drawn.with_columns(pl.lit("random").alias("class"))]
    found = pl.concat(both)[order]
    columns = {name: found[name].to_list() for name in found.columns}
    return pd.DataFrame(columns | {"id": [written_id(one) for one in columns["id"]]})


def _over(pictures: pl.DataFrame, cap: int | None) -> pl.DataFrame:
    return pictures.select(
        "id", "class", decision=pl.lit("excluded"), reason=pl.lit(f"over the cap of {cap}")
    )


def _unused(pictures: pl.DataFrame) -> list[pl.DataFrame]:
    """Return decisions about pictures in no class, and about those in a class that was not asked for."""
    no_class = pl.col("reason") != ""
    excluded = {"decision": pl.lit("excluded"), "class": pl.lit("")}
    other = pl.concat_str(pl.lit("a class that was not asked for: "), pl.col("class").cast(pl.String))
    return [
        pictures.filter(no_class).select("id", "reason", **excluded),
        pictures.filter(~no_class).select("id", other.alias("reason"), **excluded),
    ]


def check_choice(
    schema: str,
    classes: Sequence[str] | None,
    cap: int | None,
    random: str = "unused",
    n_random: int | None = None,
) -> list[str]:
    """Check schema, classes, cap, random and n_random as `choose` takes them; return the classes in order.

    Raises
    ------
    ValueError
        An unknown class or rule, or a number below 1.
    """
    known = schema_classes(schema)
    unknown = [one for one in classes or [] if one not in known]
    if unknown:
        raise ValueError(f"classes must be among {', '.join(known)}; got {', '.join(map(repr, unknown))}.")
    if random not in RANDOM_RULES:
        raise ValueError(f"random must be one of {', '.join(RANDOM_RULES)}; got {random!r}.")
    for label, value in (("cap", cap), ("n_random", n_random)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise ValueError(f"{label} must be None or a whole number of at least 1; got {value!r}.")
    return [one for one in known if classes is None or one in classes]


def missing_files(pictures: Decisions) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split off pictures that would be in a class but have no file; return (rest, decisions).

    Which pictures have no file is settled before the caps, so that a partial download fills its classes.
    """
    table = as_polars(pictures)
    lost = pl.lit("no file of that picture was found")
    gone = table.filter(pl.col("file").is_null())
    made = gone.select("id", "class", decision=pl.lit("missing file"), reason=lost)
    return table.filter(pl.col("file").is_not_null()), made
