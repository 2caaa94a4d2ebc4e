"""Analysis sets from Open Images: objects and perceived gender by boxes, absence by verified labels."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from .choosing import assign, check_choice, missing_files
from .manifest import AnalysisSet, assemble, described
from .openimages_classes import PARENTS, roles
from .openimages_codes import codes, meanings
from .openimages_files import FLAGS, Files, descriptions, find, licences, whole_files
from .picture_files import by_stem
from .review import choose_and_review

GENDERS = ("boxes", "miap")
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
    gender: str = "boxes",
    review: Path | str | None = None,
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
    gender : {"boxes", "miap"}
        Who is a man or a woman: by the boxes of these classes, or by the perceived gender presentation of
        MIAP (Open Images Extended), which boxes all people of 100,000 pictures; its "unknown" stays unknown,
        and such pictures are counted.
    review : path-like, optional
        The set's ``candidates`` as CSV, gone through by a person (`review.reviewed`).
    name, source, licence : str
        For tables and manifest; picture information files give each picture's own licence.

    Returns
    -------
    AnalysisSet

    Raises
    ------
    FileNotFoundError
        No box file, no picture folder, no MIAP file where one is asked for.
    ValueError
        A class that ``classes`` names and that has no picture, or an option out of range. Others are left out
        and reported.

    Notes
    -----
    A class stands for its child classes too: those of the hierarchy file, else the list in
    `openimages_classes`. Confidence 0 is a verified absence and never a positive label; a class that is
    neither boxed nor labelled is unknown, and the report counts how many objects stand alone on that
    ground. A picture whose labels contradict its boxes, or name something of the set without a box, is
    left out. Man and woman (with boy and girl) are annotators' readings: perceived gender.
    """
    _check(min_area, allow, gender)
    wanted = check_choice("openimages", classes, cap, random, n_random)
    files = _annotations(root, gender)
    reading = {"min_area": min_area, "allow": tuple(allow), "verified_absence": verified_absence}
    reading |= {"gender": gender}
    with whole_files(root):
        facts = _files(describe(files, **reading), root if images is None else root / images)
    present, gone = missing_files(facts)
    rule = {"cap": cap, "seed": seed, "random": random, "n_random": n_random}
    choice, shown, said_so = choose_and_review(present, "openimages", root, wanted, review, **rule)
    own = licences(files.pictures, choice.chosen["id"].tolist())
    chosen = choice.chosen.assign(source=source)
    chosen["licence"] = [own.get(one, licence) for one in chosen["id"]]
    alone = chosen["class"].isin(PARENTS)
    chosen["note"] = np.where(alone, np.where(chosen["person_absent"], _ABSENT, _UNKNOWN), "")
    notes = [f"Curated with {described(reading | {'random': random, 'cap': cap})}.", *_expansion(files)]
    made = [gone, *choice.made]
    rest = {"candidates": shown, "optional": classes is None}
    return assemble(name, wanted, chosen, made, [*notes, *said_so], **rest)


def _annotations(root: Path, gender: str) -> Files:
    files = find(root)
    if gender == "miap" and not files.people:
        raise FileNotFoundError(
            f"MIAP's boxes must be below {root} for gender='miap'; no CSV there has the columns ImageID, "
            "GenderPresentation, AgePresentation. Fetch open_images_extended_miap_boxes_*.csv."
        )
    return files


def describe(
    files: Files,
    *,
    min_area: float = 0.0,
    allow: Sequence[str] = (),
    verified_absence: bool = False,
    gender: str = "boxes",
) -> pl.DataFrame:
    """Give each picture its class, or the reason why it has none.

    Parameters
    ----------
    files : Files
        From `openimages_files.find`.
    min_area, allow, verified_absence, gender
        As in `load`.

    Returns
    -------
    polars.DataFrame
        id (as `openimages_codes.codes` gives it), class and reason (categorical), person_absent (bool).
    """
    people = gender == "miap"
    found = codes(files, min_area=min_area, people=people)
    said = assign(
        meanings(
            found["code"].unique().to_numpy(),
            allow=allow,
            verified_absence=verified_absence,
            people=people,
        )
    )
    table = pl.DataFrame({"code": said["code"].to_numpy(), "person_absent": said["person_absent"].to_numpy()})
    for name in ("class", "reason"):
        values = said[name].tolist()
        table = table.with_columns(pl.Series(name, values, dtype=pl.Enum(sorted(set(values)))))
    return found.join(table, on="code", how="left").drop("code")


def _files(pictures: pl.DataFrame, folder: Path) -> pl.DataFrame:
    """Return ``pictures`` with each one's file, null where there is none."""
    if not folder.is_dir():
        raise FileNotFoundError(f"the folder of Open Images pictures must exist; {folder} does not.")
    stored = by_stem(folder)
    names = pl.Series("id", list(stored), dtype=pl.String)
    files = pl.DataFrame({"id": names, "file": pl.Series(list(stored.values()), dtype=pl.String)})
    if pictures["id"].dtype == pl.UInt64:
        number = pl.col("id").str.to_integer(base=16, dtype=pl.UInt64, strict=False)
        files = files.filter(pl.col("id").str.len_bytes() == 16).with_columns(number).drop_nulls("id")
    return pictures.join(files.unique("id", keep="first", maintain_order=True), on="id", how="left")


def _expansion(files: Files) -> list[str]:
    """Say which classes each object stands for."""
    names = descriptions(files.descriptions)
    notes = []
    for thing in PARENTS:
        mids = [mid for mid, role in roles(files.hierarchy) if role == thing]
        if len(mids) > 1:
            notes.append(f"{thing} stands for {', '.join(names.get(mid, mid) for mid in mids)}.")
    return notes


def _check(min_area: float, allow: Sequence[str], gender: str) -> None:
    if isinstance(min_area, bool) or not isinstance(min_area, int | float) or not 0 <= min_area <= 1:
        raise ValueError(f"min_area must be a share of the picture from 0 to 1; got {min_area!r}.")
    unknown = [one for one in allow if one not in FLAGS] if not isinstance(allow, str) else [allow]
    if unknown:
        raise ValueError(f"allow must hold only {', '.join(FLAGS)}; got {', '.join(map(repr, unknown))}.")
    if gender not in GENDERS:
        raise ValueError(f"gender must be one of {', '.join(GENDERS)}; got {gender!r}.")
