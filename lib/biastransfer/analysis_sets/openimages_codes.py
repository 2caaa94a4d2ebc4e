"""All that Open Images' files say about a picture as one number, and what such a number means."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import polars as pl

from .openimages_classes import PARENTS, PEOPLE, PERSON, roles
from .openimages_files import FLAGS, Files, scan_boxes, scan_labels, scan_people

FLAG_REASONS = {
    "group_of": "a group-of box",
    "depiction": "a depiction (drawing, statue, toy)",
    "inside": "a view from inside",
}
_ROLES = [*PARENTS, *PEOPLE, "part"]
# One bit each. MIAP's are the boxes of people that it gives, and what it says of all of them together.
_BITS = [
    *(f"boxed {role}" for role in _ROLES),
    *(f"labelled {role}" for role in _ROLES),
    *FLAGS,
    *("large thing", "large person", "contradicted", "person absent"),
    *("miap", "miap woman", "miap man", "miap unknown", "miap grown", "miap large"),
    *(f"miap {flag}" for flag in FLAGS),
]
_BIT = {name: 1 << place for place, name in enumerate(_BITS)}


def codes(files: Files, *, min_area: float, people: bool = False) -> pl.DataFrame:
    """Return one row a picture: id and code.

    Parameters
    ----------
    files : Files
        From `openimages_files.find`.
    min_area : float
        Share of the picture from which a box is large.
    people : bool
        Read MIAP's boxes as well.

    Returns
    -------
    polars.DataFrame
        id, a number where every id is 16 hexadecimal digits (`decisions.written_id`; they are then compared
        as numbers, without regard to case), else text; code (UInt64), for `meanings`.
    """
    found = _collected(files, min_area, people, numbers=True)
    if found["id"].null_count():  # not the official ids
        found = _collected(files, min_area, people, numbers=False)
    return found


def _collected(files: Files, min_area: float, people: bool, *, numbers: bool) -> pl.DataFrame:
    """Gather every file's codes in one pass each, and join what they say about one picture."""
    table = pl.LazyFrame(
        [
            (mid, _BIT[f"boxed {role}"], _large(role), _BIT[f"labelled {role}"])
            for mid, role in roles(files.hierarchy)
        ],
        schema={"LabelName": pl.String, "boxed": pl.UInt64, "large": pl.UInt64, "labelled": pl.UInt64},
        orient="row",
    )
    boxes = scan_boxes(files.boxes, area=min_area > 0).join(table, on="LabelName", how="left")
    code = pl.col("boxed") | _flags("") | _when(pl.col("share") >= min_area, pl.col("large"))
    gathered = [_by_picture(boxes, code, numbers)]
    if files.labels:
        labels = scan_labels(files.labels).join(table, on="LabelName", how="left")
        gathered += _labelled(labels, boxes, numbers)
    if people:
        gathered.append(_by_picture(scan_people(files.people), _miap_code(min_area), numbers))
    first, *others = pl.collect_all(gathered, engine="streaming")
    for other in others:
        first = first.join(other.rename({"code": "more"}), on="id", how="full", coalesce=True).select(
            "id", pl.col("code").fill_null(0) | pl.col("more").fill_null(0)
        )
    return first.with_columns(pl.col("code").fill_null(0))


def _by_picture(rows: pl.LazyFrame, code: pl.Expr, numbers: bool) -> pl.LazyFrame:
    one = pl.col("ImageID")
    if numbers:
        one = pl.when(one.str.len_bytes() == 16).then(
            one.str.to_integer(base=16, dtype=pl.UInt64, strict=False)
        )
    return rows.select(one.alias("id"), code.alias("code")).group_by("id").agg(pl.col("code").bitwise_or())


def _labelled(labels: pl.LazyFrame, boxes: pl.LazyFrame, numbers: bool) -> list[pl.LazyFrame]:
    """Return what verified labels say: presence, a person's absence, and the absence of a boxed class."""
    absent = ~pl.col("present")
    nobody = _when(absent & (pl.col("LabelName") == PERSON), _bit("person absent"))
    said = _by_picture(labels, _when(pl.col("present"), pl.col("labelled")) | nobody, numbers)
    denied = labels.filter(absent & pl.col("labelled").is_not_null()).select("ImageID", "LabelName")
    against = boxes.select("ImageID", "LabelName").join(denied, on=["ImageID", "LabelName"], how="semi")
    return [said, _by_picture(against, _bit("contradicted"), numbers)]


def _miap_code(min_area: float) -> pl.Expr:
    shown = pl.col("GenderPresentation").str.to_lowercase()
    gender = (
        pl.when(shown.str.contains("feminine"))
        .then(_bit("miap woman"))
        .when(shown.str.contains("masculine"))
        .then(_bit("miap man"))
        .otherwise(_bit("miap unknown"))
    )
    grown = _when(pl.col("AgePresentation").str.to_lowercase() != "young", _bit("miap grown"))
    large = _when(pl.col("share") >= min_area, _bit("miap large"))
    return _bit("miap") | gender | grown | large | _flags("miap ")


def _bit(name: str) -> pl.Expr:
    return pl.lit(_BIT[name], pl.UInt64)


def _large(role: str) -> int:
    return _BIT["large thing"] if role in PARENTS else _BIT["large person"] if role in PEOPLE else 0


def _when(condition: pl.Expr, value: pl.Expr) -> pl.Expr:
    return pl.when(condition).then(value).otherwise(pl.lit(0, pl.UInt64))


def _flags(prefix: str) -> pl.Expr:
    found = [_when(pl.col(flag), _bit(prefix + flag)) for flag in FLAGS]
    return found[0] | found[1] | found[2]


def meanings(
    found: np.ndarray, *, allow: Sequence[str], verified_absence: bool, people: bool = False
) -> pd.DataFrame:
    """Say about each code which object and which person such pictures show, as `choosing.assign` takes it.

    Parameters
    ----------
    found : ndarray of uint64
        Codes.
    allow, verified_absence
        As in `openimages.load`.
    people : bool
        Read people from MIAP's boxes, not from the others.

    Returns
    -------
    DataFrame
        code, object, person, problem, person_absent (bool).
    """
    known = {name: (found & np.uint64(bit)) > 0 for name, bit in _BIT.items()}
    boxed, said = ({role: known[f"{kind} {role}"] for role in _ROLES} for kind in ("boxed", "labelled"))
    number = sum(boxed[thing].astype(int) for thing in PARENTS)
    only = np.select([number > 1, *[boxed[thing] for thing in PARENTS]], ["several", *PARENTS], default="")
    unboxed = np.any([said[thing] & ~boxed[thing] for thing in PARENTS], axis=0)
    person, rules = (_miap if people else _boxed)(known, boxed, said)
    absent = known["person absent"]
    rules = [
        *[
            (_flagged(known, flag, people), reason)
            for flag, reason in FLAG_REASONS.items()
            if flag not in allow
        ],
        (known["contradicted"], "a box of a class that was verified absent"),
        (unboxed, "labelled as present but not boxed"),
        *rules[:-1],
        ((number == 1) & ~known["large thing"], "one of the set's objects below the minimum area"),
        rules[-1],
        ((only != "") & (person == "") & ~absent & verified_absence, "a person's absence is not verified"),
    ]
    problem = np.select([rule for rule, _ in rules], [text for _, text in rules], default="")
    return pd.DataFrame(
        {"code": found, "object": only, "person": person, "problem": problem, "person_absent": absent}
    )


def _flagged(known: dict, flag: str, people: bool) -> np.ndarray:
    return known[flag] | (known[f"miap {flag}"] & people)


def _boxed(known: dict, boxed: dict, said: dict) -> tuple[np.ndarray, list[tuple]]:
    """Return the person by the boxes of man, woman, boy, girl, person, and the problems; area comes last."""
    people = np.any([boxed[one] for one in PEOPLE], axis=0)
    someone = people | boxed["part"]
    male, female = boxed["man"] | boxed["boy"], boxed["woman"] | boxed["girl"]
    vague = boxed["person"] | (someone & ~male & ~female)
    person = np.select([male & female, vague, male, female], ["both", "unknown", "man", "woman"], default="")
    child = (male | female) & ~boxed["man"] & ~boxed["woman"]
    unboxed = np.any([said[one] & ~boxed[one] for one in ("man", "woman", "boy", "girl")], axis=0)
    return person, [
        (unboxed | ((said["person"] | said["part"]) & ~someone), "labelled as present but not boxed"),
        (child & (person != "both"), "a boy or a girl, and no man or woman"),
        (people & ~known["large person"], "a person below the minimum area"),
    ]


def _miap(known: dict, boxed: dict, said: dict) -> tuple[np.ndarray, list[tuple]]:
    """Return the person by MIAP's perceived gender presentation, and the problems; area comes last."""
    there = np.any([boxed[one] | said[one] for one in (*PEOPLE, "part")], axis=0)
    listed, male, female = known["miap"], known["miap man"], known["miap woman"]
    vague = known["miap unknown"]
    person = np.select([male & female, vague, male, female], ["both", "unknown", "man", "woman"], default="")
    return person, [
        (there & ~listed, "a person whom MIAP does not list"),
        (vague & (person == "unknown"), "a gender presentation that MIAP calls unknown"),
        (listed & ~known["miap grown"], "a boy or a girl, and no man or woman"),
        (listed & ~known["miap large"], "a person below the minimum area"),
    ]
