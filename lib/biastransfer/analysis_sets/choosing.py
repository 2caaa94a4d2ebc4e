"""From what is known about each picture to classes: one rule for every annotated data set."""

import hashlib
from collections.abc import Sequence

import numpy as np
import pandas as pd

from .manifest import decisions, schema_classes

NO_CLASS = "none of the set's objects and no person"
RANDOM_RULES = ("unused", "background")
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


def choose(
    pictures: pd.DataFrame,
    schema: str,
    *,
    classes: Sequence[str] | None = None,
    cap: int | None = None,
    seed: int = 0,
    random: str = "unused",
    n_random: int | None = None,
) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    """Choose at most ``cap`` pictures a class, and the pictures of ``random``.

    Parameters
    ----------
    pictures : DataFrame
        From `assign`.
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
    chosen : DataFrame
        Rows of ``pictures`` with their class.
    made : list of DataFrame
        The decisions about every other picture.

    Raises
    ------
    ValueError
        An unknown class or rule, or a cap below 1.
    """
    wanted = check_choice(schema, classes, cap, random, n_random)
    order = np.argsort([rank(seed, one) for one in pictures["id"].tolist()], kind="stable")
    ranked = pictures.iloc[order]
    named = ranked[ranked["class"].isin([one for one in wanted if one != "random"])]
    place = named.groupby("class").cumcount()
    kept = named if cap is None else named[place < cap]
    over = named.drop(kept.index)
    rest = ranked.drop(named.index)
    control = _control(rest, schema, cap, random, n_random) if "random" in wanted else rest.iloc[:0]
    unused = rest.drop(control.index)
    reason = unused["reason"].where(
        unused["reason"] != "", "a class that was not asked for: " + unused["class"]
    )
    made = [
        _decided(over, "excluded", f"over the cap of {cap}", over["class"]),
        _decided(unused, "excluded", reason, ""),
    ]
    chosen = pd.concat([kept, control.assign(**{"class": "random"})])
    return chosen.sort_index(), made


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


def missing_files(pictures: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split off pictures that would be in a class but have no file; return (rest, decisions).

    Which pictures have no file is settled before the caps, so that a partial download fills its classes.
    """
    gone = pictures["file"].isna()
    lacking = pictures[gone]
    made = decisions(lacking["id"], "missing file", "no file of that picture was found")
    made["class"] = lacking["class"].to_numpy()
    return pictures[~gone], made


def _control(
    rest: pd.DataFrame, schema: str, cap: int | None, random: str, n_random: int | None
) -> pd.DataFrame:
    """Return the first pictures of the ranked rest that may stand in ``random``."""
    if random == "background":
        rest = rest[rest["reason"] == NO_CLASS]
        return rest.head(n_random or cap or len(rest))
    return rest.head(n_random or cap or _TABLE_RANDOM[schema])


def _decided(pictures: pd.DataFrame, decision: str, reason, name) -> pd.DataFrame:
    made = decisions(pictures["id"], decision, "")
    made["reason"] = reason.to_numpy() if isinstance(reason, pd.Series) else reason
    made["class"] = name.to_numpy() if isinstance(name, pd.Series) else name
    return made


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
    return int.from_bytes(hashlib.blake2b(f"{seed}:{one}".encode(), digest_size=7).digest())
