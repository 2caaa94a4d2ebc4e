"""What an analysis set is: a manifest of pictures by class, and a report of every decision behind it."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from .. import paths
from ..images import ImageReadError, check_header, read_rgb, without_folder
from .decisions import Decisions, tabulate_decisions

ITEM_COLUMNS = ["id", "file", "class", "object", "attribute", "source", "licence", "sha256"]
CANDIDATE_COLUMNS = [
    *("class", "id", "file", "proposed", "reason"),
    *("object_share", "person_share", "captions", "accept"),
]
NO_PICTURE = "no picture"  # the decision about a class that is left out
ATTRIBUTES = ("man", "woman")
OBJECTS = {
    "coco": ("car", "refrigerator", "surfboard"),
    "openimages": ("car", "sports", "fashion", "mammal"),
}


@dataclass(frozen=True)
class AnalysisSet:
    """Pictures by class, and what was decided about every picture that was looked at.

    Attributes
    ----------
    name : str
        The set's name, for tables.
    items : DataFrame
        One row a (picture, class): id, file (absolute path), class, object, attribute ("man", "woman" or
        ""), source, licence, sha256. Ordered by class in the schema's order, then by id.
    report : DataFrame
        One row a decision: class, decision, reason, n (pictures), ids (joined by ";", newlines escaped).
    notes : tuple of str
        Readings taken, one sentence each.
    candidates : DataFrame
        For a person to go through, see `review.candidates`; without a row where the kind of set has none.
    """

    name: str
    items: pd.DataFrame
    report: pd.DataFrame
    notes: tuple[str, ...] = ()
    candidates: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=CANDIDATE_COLUMNS))

    @property
    def classes(self) -> list[str]:
        """The classes in schema order."""
        return list(dict.fromkeys(self.items["class"]))

    @property
    def counts(self) -> pd.Series:
        """Pictures a class, in schema order."""
        return self.items["class"].value_counts().reindex(self.classes).rename("n")

    def files(self, name: str) -> list[str]:
        """Return the files of one class, ordered by id.

        Raises
        ------
        ValueError
            The set has no such class.
        """
        if name not in self.classes:
            raise ValueError(f"class must be one of {', '.join(self.classes)}; got {name!r}.")
        return self.items.loc[self.items["class"] == name, "file"].tolist()

    def pixels(self, name: str, most: int) -> list[np.ndarray]:
        """Return the first ``most`` pictures of a class, those that do not decode passed over.

        Only headers are read when a set is loaded; damage further on is reported when the set is embedded.

        Raises
        ------
        ValueError
            The set has no such class.
        """
        found: list[np.ndarray] = []
        for file in self.files(name):
            with contextlib.suppress(ImageReadError):
                found.append(read_rgb(file))
            if len(found) == most:
                break
        return found


def schema_classes(schema: str) -> list[str]:
    """Return the class names of a schema in the order of the paper's Table 5 or 6.

    Parameters
    ----------
    schema : {"coco", "openimages"}
        13 classes of the COCO analysis set, or 16 of the Open Images one.

    Raises
    ------
    ValueError
        Another schema.

    Examples
    --------
    >>> schema_classes("coco")[:7]
    ['man', 'woman', 'random', 'stop sign', 'car', 'car+man', 'car+woman']
    >>> len(schema_classes("openimages"))
    16
    """
    if schema not in OBJECTS:
        raise ValueError(f"schema must be one of {', '.join(OBJECTS)}; got {schema!r}.")
    pairs = [(name, f"{name}+man", f"{name}+woman") for name in OBJECTS[schema]]
    return ["man", "woman", "random", "stop sign", *(name for triple in pairs for name in triple)]


def split_class(name: str) -> tuple[str, str]:
    """Return (object, attribute) of a class name; "" where it has none.

    Examples
    --------
    >>> split_class("car+man"), split_class("woman"), split_class("random"), split_class("car")
    (('car', 'man'), ('', 'woman'), ('', ''), ('car', ''))
    """
    if name in ATTRIBUTES:
        return "", name
    if name == "random":
        return "", ""
    thing, plus, attribute = name.rpartition("+")
    return (thing, attribute) if plus and attribute in ATTRIBUTES else (name, "")


def assemble(
    name: str,
    classes: Sequence[str],
    chosen: pd.DataFrame,
    made: Sequence[Decisions] = (),
    notes: Sequence[str] = (),
    *,
    candidates: pd.DataFrame | None = None,
    optional: bool = False,
    ask: str = "Loosen the curation, or leave that class out with classes=[…].",
) -> AnalysisSet:
    """Build the set from chosen pictures: check each file, hash it, order the rows and count the decisions.

    Parameters
    ----------
    name, classes, notes
        As in `AnalysisSet`.
    chosen : DataFrame
        id, class, file (None where there is none), source, licence; optional note (the reason of "kept").
    made : sequence of DataFrame
        Decisions taken so far, as `decisions.decisions` returns them.
    candidates : DataFrame, optional
        As in `AnalysisSet`.
    optional : bool
        Leave out a class that ends without a picture, and report it; otherwise that is an error.
    ask : str
        What the error about an empty class asks for.

    Raises
    ------
    ValueError
        A class that is not optional has no picture left, or no class has.
    """
    verdicts = {file: _verdict(file) for file in chosen["file"].drop_duplicates()}
    checked = chosen.assign(
        decision=[verdicts[file][0] for file in chosen["file"]],
        problem=[verdicts[file][1] for file in chosen["file"]],
        sha256=[verdicts[file][2] for file in chosen["file"]],
    )
    kept = checked[checked["decision"] == "kept"].copy()
    log = checked.assign(
        reason=checked["problem"].where(checked["decision"] != "kept", checked.get("note", ""))
    )
    report = tabulate_decisions([log, *made], classes)
    missing = [one for one in classes if one not in set(kept["class"])]
    if missing and (kept.empty or not optional):
        counts = ", ".join(f"{one} {n}" for one, n in kept["class"].value_counts().items()) or "none"
        raise ValueError(
            f"{name}: every class must have a picture; {missing[0]!r} has none (kept: {counts}). {ask}"
        )
    for one in missing:
        report.loc[len(report)] = [one, NO_PICTURE, "no picture of the class was found", 0, ""]
    kept["object"] = [split_class(one)[0] for one in kept["class"]]
    kept["attribute"] = [split_class(one)[1] for one in kept["class"]]
    order = {one: place for place, one in enumerate(classes)}
    kept = kept.assign(_place=kept["class"].map(order)).sort_values(["_place", "id"], kind="stable")
    shown = pd.DataFrame(columns=CANDIDATE_COLUMNS) if candidates is None else candidates
    return AnalysisSet(name, kept[ITEM_COLUMNS].reset_index(drop=True), report, tuple(notes), shown)


def _verdict(file: object) -> tuple[str, str, str]:
    """Return (decision, reason, sha256) for one file, from its existence, size and header."""
    if not isinstance(file, str) or not Path(file).is_file():  # a missing name may be None or NaN
        return "missing file", "no file of that picture was found", ""
    if Path(file).stat().st_size == 0:
        return "empty file", "the file has 0 bytes", ""
    try:
        check_header(file)
    except ImageReadError as problem:
        return "unreadable", without_folder(str(problem), file), ""
    return "kept", "", paths.sha256(file)


def described(options: Mapping[str, object]) -> str:
    """Return options as one line for a note."""
    return ", ".join(f"{key} = {value!r}" for key, value in options.items())
