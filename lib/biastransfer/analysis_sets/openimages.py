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
    table = pl.DataFrame(roles(files.hierarchy), schema=["LabelName", "role"], orient="row")
    boxes = scan_boxes(files.boxes)
    every = boxes.select(pl.col("ImageID").unique()).collect(engine="streaming")["ImageID"]
    ours = boxes.join(table.lazy(), on="LabelName").collect(engine="streaming")
    labels = scan_labels(files.labels).join(table.lazy(), on="LabelName").collect(engine="streaming")
    more = scan_labels(files.labels).select(pl.col("ImageID").unique()).collect(engine="streaming")["ImageID"]
    index = pd.Index(sorted(set(every) | set(more)), name="id")
    share = _wide(ours, index)
    positive = _wide(labels.filter("present").with_columns(share=pl.lit(1.0)), index) > 0
    denied = labels.filter(~pl.col("present")).select("ImageID", "LabelName").unique()
    facts = _read(share, positive, min_area)
    contradicted = _among(index, ours.join(denied, on=["ImageID", "LabelName"])["ImageID"])
    absent = _among(index, denied.filter(pl.col("LabelName") == PERSON)["ImageID"])
    flagged = [
        (_among(index, ours.filter(flag)["ImageID"]), _FLAG_REASONS[flag])
        for flag in FLAGS
        if flag not in allow
    ]
    alone = (facts["object"] != "") & (facts["person"] == "")
    rules = [
        *flagged,
        (contradicted, "a box of a class that was verified absent"),
        (facts["problem"] != "", facts["problem"]),
        (alone & ~absent & verified_absence, "a person's absence is not verified"),
    ]
    facts["problem"] = np.select([rule for rule, _ in rules], [text for _, text in rules], default="")
    return facts.assign(person_absent=absent).reset_index()


def _read(share: pd.DataFrame, positive: pd.DataFrame, min_area: float) -> pd.DataFrame:
    """Read object, person and first problem from each role's largest box and from positive labels."""
    boxed = share > 0
    things = boxed[list(PARENTS)]
    number = things.sum(axis=1)
    people = boxed[list(PEOPLE)]
    someone = people.any(axis=1) | boxed["part"]
    male, female = boxed["man"] | boxed["boy"], boxed["woman"] | boxed["girl"]
    person = np.select(
        [male & female, boxed["person"] | (someone & ~male & ~female), male, female],
        ["both", "unknown", "man", "woman"],
        default="",
    )
    child = (boxed["boy"] | boxed["girl"]) & ~boxed["man"] & ~boxed["woman"]
    named = (
        positive[["man", "woman", "boy", "girl", *PARENTS]]
        & ~boxed[["man", "woman", "boy", "girl", *PARENTS]]
    )
    unboxed = named.any(axis=1) | (positive[["person", "part"]].any(axis=1) & ~someone)
    small_thing = (number == 1) & (share[list(PARENTS)].max(axis=1) < min_area)
    small_person = people.any(axis=1) & (share[list(PEOPLE)].max(axis=1) < min_area)
    rules = [
        (unboxed, "labelled as present but not boxed"),
        (child & (person != "both"), "a boy or a girl, and no man or woman"),
        (small_thing, "one of the set's objects below the minimum area"),
        (small_person, "a person below the minimum area"),
    ]
    problem = np.select([rule for rule, _ in rules], [text for _, text in rules], default="")
    only = np.where(number > 1, "several", np.where(number == 1, things.idxmax(axis=1), ""))
    return pd.DataFrame({"object": only, "person": person, "problem": problem}, index=share.index)


def _wide(rows: pl.DataFrame, index: pd.Index) -> pd.DataFrame:
    """Return each picture's largest share by role, 0 where the role does not occur."""
    every = [*PARENTS, *PEOPLE, "part"]
    largest = rows.group_by("ImageID", "role").agg(pl.col("share").max()).sort("ImageID", "role")
    frame = pd.DataFrame(
        {name: largest[name].to_list() for name in ("ImageID", "role", "share")},
        columns=["ImageID", "role", "share"],
    )
    # A box of no area (a line, rounding) still says that the thing is there.
    frame["share"] = np.maximum(frame["share"].to_numpy(dtype=float), 1e-9)
    wide = frame.pivot(index="ImageID", columns="role", values="share")
    return wide.reindex(index=index, columns=every).fillna(0.0)


def _among(index: pd.Index, ids: pl.Series) -> np.ndarray:
    return index.isin(ids.unique().to_list())


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
