"""From what is known about each picture to classes: one rule for every annotated data set."""

import hashlib
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl

from .decisions import Decisions, as_polars, written_id
from .manifest import schema_classes

NO_CLASS = "none of the set's objects and no person"
RANDOM_RULES = ("unused", "background")
_HEX = re.compile(r"[0-9a-f]{16}")  # an Open Images id
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
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
    thing, person = pictures["object"], pictures["person"]
    rules = [
        (pictures["problem"] != "", pictures["problem"]),
        (thing == "several", "several of the set's objects"),
        (person == "both", "people of both perceived genders"),
        (person == "unknown", "a person whose gender is not stated"),
        ((thing == "stop sign") & (person != ""), "a person beside the stop sign"),
        ((thing == "") & (person == ""), NO_CLASS),
    ]
    reason = np.select([rule for rule, _ in rules], [text for _, text in rules], default="")
    both = (thing != "") & (person != "")
    name = np.where(both, thing + "+" + person, thing + person)
    return pictures.assign(**{"class": np.where(reason == "", name, ""), "reason": reason})


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
    table = as_polars(pictures).with_row_index("row")
    table = table.with_columns(rank=pl.Series(ranks(seed, table["id"])))
    ours = pl.col("class").cast(pl.String).is_in([one for one in wanted if one != "random"])
    named, rest = table.filter(ours), table.filter(~ours)
    place = pl.col("rank").rank("ordinal").over("class")
    kept = named if cap is None else named.filter(place <= cap)
    over = named.filter(place > cap) if cap is not None else named.clear()
    pool = rest.filter(pl.col("reason") == NO_CLASS) if random == "background" else rest
    most = n_random or cap or (len(pool) if random == "background" else _TABLE_RANDOM[schema])
    drawn = pool.bottom_k(2 * most, by="rank").sort("rank") if "random" in wanted else pool.clear()
    control = drawn.head(most)
    made = [_over(over, cap), *_unused(rest.filter(~pl.col("row").is_in(control["row"].implode())))]
    spare = over.filter(place <= cap) if cap is not None else over
    return Choice(_rows(kept, control), made, _rows(spare, drawn[most:]))


def _rows(named: pl.DataFrame, control: pl.DataFrame) -> pd.DataFrame:
    """Return pictures as a pandas frame in their order, those of the control in class ``random``."""
    both = [named.cast({"class": pl.String}), control.with_columns(pl.lit("random").alias("class"))]
    table = pl.concat(both).sort("row")
    columns = {name: table[name].to_list() for name in table.columns if name not in ("row", "rank")}
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


def rank(seed: int, one: str) -> int:
    """Return where a picture stands in the order of a draw: a hash of its id keyed by ``seed``.

    Parameters
    ----------
    seed : int
    one : str
        The picture's id.

    Notes
    -----
    The first n pictures in this order are a draw of n, and part of every larger draw of the same seed.
    """
    return int(ranks(seed, pl.Series([one]))[0])


def draw(seed: int, ids: Sequence[str], n: int) -> list[str]:
    """Return the first ``n`` of ``ids`` in the order of the draw by ``seed`` (`rank`), sorted by id."""
    order = np.argsort(ranks(seed, pl.Series("id", list(ids), dtype=pl.String)), kind="stable")
    return sorted(ids[place] for place in order[:n])


def ranks(seed: int, ids: pl.Series) -> np.ndarray:
    """Return the `rank` by ``seed`` of each of ``ids``: text, or numbers for 16 hexadecimal digits each.

    Returns
    -------
    ndarray of uint64
        Below 2⁵⁶. Open Images' ids are mixed as the numbers that they are (the finaliser of SplitMix64), a
        million in a tenth of a second; others by BLAKE2b.
    """
    if ids.dtype == pl.UInt64:
        return _mixed(seed, ids.to_numpy())
    texts = ids.to_list()
    official = [len(one) == 16 and _HEX.fullmatch(one) is not None for one in texts]
    numbers = [int(one, 16) if yes else 0 for one, yes in zip(texts, official)]
    key = f"{seed}:".encode()
    hashed = [
        0 if yes else int.from_bytes(hashlib.blake2b(key + one.encode(), digest_size=7).digest())
        for one, yes in zip(texts, official)
    ]
    words = _mixed(seed, np.array(numbers, dtype=np.uint64))
    return np.where(official, words, np.array(hashed, dtype=np.uint64))


def _mixed(seed: int, numbers: np.ndarray) -> np.ndarray:
    """Return SplitMix64's finaliser of the numbers, offset by that of the seed, shifted to 56 bits."""
    start = _final(np.array([seed % 2**64], dtype=np.uint64) + _GOLDEN)
    return _final(numbers.astype(np.uint64) ^ start) >> np.uint64(8)


def _final(words: np.ndarray) -> np.ndarray:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
