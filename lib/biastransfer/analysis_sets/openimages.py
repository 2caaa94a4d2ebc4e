"""Analysis sets from Open Images: objects and perceived gender by boxes, absence by verified labels."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl

from .choosing import assign, check_choice, choose, missing_files
from .manifest import AnalysisSet, assemble, described
from .openimages_classes import PARENTS, PEOPLE, PERSON, roles
from .openimages_files import FLAGS, Files, descriptions, find, licences, scan_boxes, scan_labels
from .picture_files import by_stem

_FLAG_REASONS = {
    "group_of": "a group-of box",
    "depiction": "a depiction (drawing, statue, toy)",
    "inside": "a view from inside",
}
_ROLES = [*PARENTS, *PEOPLE, "part"]  # each a bit of a picture's `boxed` and `positive`
_UNKNOWN = "no person boxed, absence not verified"
_ABSENT = "no person boxed, absence verified"


def load(
    root: Path,
    *,
    images: Path | str | None = None,
    classes: Sequence[str] | None = None,
    cap: int | None = None,
    seed: int = 0,
    min_area: float = 0.0,
    allow: Sequence[str] = (),
    verified_absence: bool = False,
    random: str = "unused",
    n_random: int | None = None,
    name: str = "openimages",
    source: str = "Open Images",
    licence: str = "CC BY 2.0",
) -> AnalysisSet:
    """Curate an Open Images analysis set from the official CSV files (v4 to v7).

    Parameters
    ----------
    root : Path
        Folder with box CSV, and where there are any image-label CSV, class descriptions, hierarchy and
        picture information; pictures are called by their ids.
    images : path-like, optional
        Folder of the pictures; otherwise anywhere below ``root``.
    classes, cap, seed, random, n_random
        See `choosing.choose`.
    min_area : float
        Share of the picture, from 0 to 1, that the largest box of the object and of the person must cover.
    allow : sequence of {"group_of", "depiction", "inside"}
        Flagged boxes to take as ordinary ones. Without it a picture is left out, and counted, when a box
        of one of the set's objects or of a person has the flag.
    verified_absence : bool
        Take an object as alone only where a person's absence was verified (Confidence 0).
    name, source, licence : str
        For tables and manifest; picture information files give each picture's own licence.

    Returns
    -------
    AnalysisSet

    Raises
    ------
    FileNotFoundError
        No box file, no picture folder.
    ValueError
        A class without a picture, or an option out of range.

    Notes
    -----
    A class stands for its child classes too: those of the hierarchy file, else the list in
    `openimages_classes`. Confidence 0 is a verified absence and never a positive label; a class that is
    neither boxed nor labelled is unknown, and the report counts how many objects stand alone on that
    ground. A picture whose labels contradict its boxes, or name something of the set without a box, is
    left out. Man and woman (with boy and girl) are annotators' readings: perceived gender.
    """
    _check(min_area, allow)
    wanted = check_choice("openimages", classes, cap, random, n_random)
    files = find(root)
    facts = describe(files, min_area=min_area, allow=allow, verified_absence=verified_absence)
    folder = root if images is None else root / images
    if not folder.is_dir():
        raise FileNotFoundError(f"the folder of Open Images pictures must exist; {folder} does not.")
    found = by_stem(folder)
    facts["file"] = [found.get(one) for one in facts["id"]]
    present, gone = missing_files(assign(facts))
    chosen, made = choose(
        present, "openimages", classes=classes, cap=cap, seed=seed, random=random, n_random=n_random
    )
    own = licences(files.pictures, chosen["id"].tolist())
    chosen = chosen.assign(source=source, licence=[own.get(one, licence) for one in chosen["id"]])
    alone = chosen["class"].isin(PARENTS)
    chosen["note"] = np.where(alone, np.where(chosen["person_absent"], _ABSENT, _UNKNOWN), "")
    options = {"min_area": min_area, "allow": tuple(allow), "verified_absence": verified_absence}
    options |= {"random": random, "cap": cap}
    notes = [f"Curated with {described(options)}.", *_expansion(files)]
    return assemble(name, wanted, chosen, [gone, *made], notes)


def describe(files: Files, *, min_area: float, allow: Sequence[str], verified_absence: bool) -> pd.DataFrame:
    """Say about each picture which object and which person it shows, as `choosing.assign` takes it.

    Parameters
    ----------
    files : Files
        From `openimages_files.find`.
    min_area, allow, verified_absence
        As in `load`.

    Returns
    -------
    DataFrame
        id, object, person, problem, person_absent (bool), ordered by id.
    """
    table = pl.DataFrame(roles(files.hierarchy), schema=["LabelName", "role"], orient="row").with_columns(
        bit=pl.col("role").replace_strict({role: 1 << place for place, role in enumerate(_ROLES)}),
        thing=pl.col("role").is_in(list(PARENTS)),
        someone=pl.col("role").is_in(list(PEOPLE)),
    )
    boxes = scan_boxes(files.boxes).join(table.lazy(), on="LabelName", how="left")
    labels = scan_labels(files.labels).join(table.lazy(), on="LabelName", how="left")
    denied = labels.filter(~pl.col("present") & pl.col("bit").is_not_null()).select("ImageID", "LabelName")
    against = boxes.join(denied, on=["ImageID", "LabelName"], how="semi").select("ImageID").unique()
    seen, said, contradicted = pl.collect_all(
        [_boxed(boxes), _labelled(labels), against.with_columns(contradicted=pl.lit(True))],
        engine="streaming",
    )
    facts = seen.join(said, on="ImageID", how="full", coalesce=True)
    facts = facts.join(contradicted, on="ImageID", how="left").sort("ImageID")
    known = {name: facts[name].fill_null(0).to_numpy() for name in facts.columns if name != "ImageID"}
    read = _read(known, min_area)
    flagged = [(known[flag] > 0, reason) for flag, reason in _FLAG_REASONS.items() if flag not in allow]
    alone = (read["object"] != "") & (read["person"] == "")
    absent = known["person_absent"] > 0
    rules = [
        *flagged,
        (known["contradicted"] > 0, "a box of a class that was verified absent"),
        (read["problem"] != "", read["problem"]),
        (alone & ~absent & verified_absence, "a person's absence is not verified"),
    ]
    read["problem"] = np.select([rule for rule, _ in rules], [text for _, text in rules], default="")
    return pd.DataFrame({"id": facts["ImageID"].to_list()} | read | {"person_absent": absent})


def _boxed(boxes: pl.LazyFrame) -> pl.LazyFrame:
    """Return a row a picture: roles boxed (bits), largest shares of object and person, flags of ours."""
    ours = pl.col("bit").is_not_null()
    return boxes.group_by("ImageID").agg(
        pl.col("bit").fill_null(0).bitwise_or().alias("boxed"),
        pl.col("share").filter("thing").max().alias("thing_share"),
        pl.col("share").filter("someone").max().alias("person_share"),
        *[(pl.col(flag) & ours).any().cast(pl.Int8).alias(flag) for flag in FLAGS],
    )


def _labelled(labels: pl.LazyFrame) -> pl.LazyFrame:
    """Return a row a picture: roles verified present (bits), and whether a person was verified absent."""
    absent = (pl.col("LabelName") == PERSON) & ~pl.col("present")
    return labels.group_by("ImageID").agg(
        pl.when("present").then(pl.col("bit")).fill_null(0).bitwise_or().alias("positive"),
        absent.any().cast(pl.Int8).alias("person_absent"),
    )


def _read(known: dict[str, np.ndarray], min_area: float) -> dict[str, np.ndarray]:
    """Read object, person and first problem from the roles boxed and labelled and the largest shares."""
    boxed, said = (
        {role: known[kind] & (1 << place) > 0 for place, role in enumerate(_ROLES)}
        for kind in ("boxed", "positive")
    )
    number = sum(boxed[thing].astype(int) for thing in PARENTS)
    people = np.any([boxed[one] for one in PEOPLE], axis=0)
    someone = people | boxed["part"]
    male, female = boxed["man"] | boxed["boy"], boxed["woman"] | boxed["girl"]
    person = np.select(
        [male & female, boxed["person"] | (someone & ~male & ~female), male, female],
        ["both", "unknown", "man", "woman"],
        default="",
    )
    child = (male | female) & ~boxed["man"] & ~boxed["woman"]
    whole = [*PARENTS, "man", "woman", "boy", "girl"]
    unboxed = np.any([said[role] & ~boxed[role] for role in whole], axis=0)
    rules = [
        (unboxed | ((said["person"] | said["part"]) & ~someone), "labelled as present but not boxed"),
        (child & (person != "both"), "a boy or a girl, and no man or woman"),
        (
            (number == 1) & (known["thing_share"] < min_area),
            "one of the set's objects below the minimum area",
        ),
        (people & (known["person_share"] < min_area), "a person below the minimum area"),
    ]
    problem = np.select([rule for rule, _ in rules], [text for _, text in rules], default="")
    only = np.select([number > 1, *[boxed[thing] for thing in PARENTS]], ["several", *PARENTS], default="")
    return {"object": only, "person": person, "problem": problem}


def _expansion(files: Files) -> list[str]:
    """Say which classes each object stands for."""
    names = descriptions(files.descriptions)
    notes = []
    for thing in PARENTS:
        mids = [mid for mid, role in roles(files.hierarchy) if role == thing]
        if len(mids) > 1:
            notes.append(f"{thing} stands for {', '.join(names.get(mid, mid) for mid in mids)}.")
    return notes


def _check(min_area: float, allow: Sequence[str]) -> None:
    if isinstance(min_area, bool) or not isinstance(min_area, int | float) or not 0 <= min_area <= 1:
        raise ValueError(f"min_area must be a share of the picture from 0 to 1; got {min_area!r}.")
    unknown = [one for one in allow if one not in FLAGS] if not isinstance(allow, str) else [allow]
    if unknown:
        raise ValueError(f"allow must hold only {', '.join(FLAGS)}; got {', '.join(map(repr, unknown))}.")
