"""Analysis sets from COCO: objects by their boxes, perceived gender by what the captions say."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from .captions import caption_gender
from .choosing import assign, check_choice, missing_files
from .coco_files import read_captions, read_instances
from .coco_places import annotation_files, picture_files, refuse_shared_files
from .decisions import decisions
from .manifest import OBJECTS, AnalysisSet, assemble, described, split_class
from .review import choose_and_review

SET_OBJECTS = (*OBJECTS["coco"], "stop sign")
CROWDS = ("exclude", "count", "ignore")
EMPTY = ("refuse", "leave out")
_NO_BOX = -np.inf  # below any share


def load(
    root: Path,
    *,
    instances: Path | str | Sequence[Path | str] | None = None,
    captions: Path | str | Sequence[Path | str] | None = None,
    images: Path | str | None = None,
    classes: Sequence[str] | None = None,
    cap: int | None = None,
    seed: int = 0,
    min_captions: int = 1,
    min_area: float = 0.02,
    confounder_area: float | None = None,
    crowd: str = "exclude",
    random: str = "unused",
    n_random: int | None = None,
    empty: str | None = None,
    review: Path | str | None = None,
    name: str = "coco",
    source: str = "COCO 2017",
) -> AnalysisSet:
    """Curate a COCO analysis set from the official files.

    Parameters
    ----------
    root : Path
        Folder with annotations and pictures.
    instances, captions : path-like or sequence of path-like, optional
        The JSON files; relative ones are below ``root``. Otherwise every ``instances*.json`` and
        ``captions*.json`` below ``root``.
    images : path-like, optional
        Folder of the pictures; otherwise anywhere below ``root``.
    classes, cap, seed, random, n_random
        See `choosing.choose`.
    min_captions : int
        Captions that must name a gender (`captions.caption_gender`).
    min_area : float
        Share of the picture, from 0 to 1, that the largest box of the object and of the person must cover.
    confounder_area : float, optional
        Share from which the box of any other category confounds the picture; otherwise ``min_area``. With 1
        nearly nothing does.
    crowd : {"exclude", "count", "ignore"}
        Crowd boxes: leave such pictures out where the crowd is of people or one of the set's objects;
        count them as ordinary boxes; or ignore them.
    empty : {"refuse", "leave out"}, optional
        What to do about a class without a picture: raise, or leave it out, and with it one that has nothing
        to be compared with (an object with a person, but none of the object alone). By default a class that
        ``classes`` names must have a picture, and others are left out and reported.
    review : path-like, optional
        The set's ``candidates`` as CSV, gone through by a person: what it accepts is the set
        (`review.reviewed`).
    name, source : str
        Of the set, for tables and manifest.

    Returns
    -------
    AnalysisSet

    Raises
    ------
    FileNotFoundError
        No annotation file, or no reviewed candidates.
    ValueError
        Reviewed candidates that do not fit, a named class without a picture, an option out of range, or one
        file for two pictures.

    Notes
    -----
    A picture shows an object alone only when it has no person box of any size and its captions name
    nobody; ``+man`` and ``+woman`` pictures need a person box of at least ``min_area`` and captions that
    name one gender. COCO says nothing about anybody's gender: what is read is how five annotators
    described the people, perceived gender.
    """
    confounder_area = min_area if confounder_area is None else confounder_area
    _check(crowd, empty, min_area=min_area, confounder_area=confounder_area)
    wanted = check_choice("coco", classes, cap, random, n_random)
    pictures, boxes = _pictures(root, instances, captions, images)
    facts = describe(pictures, boxes, min_captions, min_area, confounder_area, crowd)
    again = facts.duplicated("id")
    repeated = decisions(facts.loc[again, "id"], "listed twice", "the first annotation file's entry is taken")
    refuse_shared_files(facts[~again])
    present, gone = missing_files(assign(facts[~again]))
    usable = _usable(wanted, present, empty)
    rule = {"cap": cap, "seed": seed, "random": random, "n_random": n_random}
    choice, shown, said_so = choose_and_review(present, "coco", root, usable, review, **rule)
    options = {"min_area": min_area, "confounder_area": confounder_area, "min_captions": min_captions}
    notes = [f"Curated with {described(options | {'crowd': crowd, 'random': random, 'cap': cap})}."]
    notes += [f"Left out for lack of pictures: {one}." for one in wanted if one not in usable]
    chosen = choice.chosen.assign(source=source)
    made = [repeated, gone, *choice.made]
    rest = {"candidates": shown, "optional": empty is None and classes is None}
    return assemble(name, usable, chosen, made, [*notes, *said_so], **rest)


def _pictures(root: Path, instances, captions, images) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return pictures with their captions and files, and boxes."""
    pictures, boxes = read_instances(annotation_files(root, instances, "instances"))
    said = read_captions(annotation_files(root, captions, "captions"))
    pictures["captions"] = [tuple(said.get(one, ())) for one in pictures["id"]]
    pictures["id"] = [f"{one:012d}" for one in pictures["id"]]
    pictures["file"] = picture_files(pictures["file_name"], root, images)
    return pictures, boxes


def describe(
    pictures: pd.DataFrame,
    boxes: pd.DataFrame,
    min_captions: int,
    min_area: float,
    confounder_area: float,
    crowd: str,
) -> pd.DataFrame:
    """Say about each picture which object and which person it shows, as `choosing.assign` takes it.

    Parameters
    ----------
    pictures, boxes : DataFrame
        From `coco_files.read_instances`; pictures also with captions (tuple of str).
    min_captions, min_area, confounder_area, crowd
        As in `load`.

    Returns
    -------
    DataFrame
        ``pictures`` with object, person, problem; object_share and person_share of the largest boxes;
        captions joined by " | ".
    """
    people, things, crowded, other = _covered(boxes, len(pictures), confounder_area, crowd)
    large = things >= min_area
    number = large.sum(axis=0)
    only = np.where(number > 0, np.array(SET_OBJECTS, dtype=object)[large.argmax(axis=0)], "")
    small = ((things > _NO_BOX) & ~large).any(axis=0)
    anyone, clear = people > _NO_BOX, people >= min_area
    said = _said(pictures["captions"], min_captions)
    named = (number > 0) | anyone  # pictures of nothing of ours are no class's problem
    rules = {
        "a crowd box of people or of one of the set's objects": crowded,
        "another object that is large": other & named,
        "one of the set's objects below the minimum area": small & (number <= 1),
        "a person below the minimum area": anyone & ~clear,
        "captions name a person without a box": ~anyone & (said != "unknown"),
    }
    return pictures.assign(
        object=np.where(number > 1, "several", only),
        person=np.where(anyone, said, ""),
        problem=np.select(list(rules.values()), list(rules), default=""),
        object_share=_or_none(things.max(axis=0)),
        person_share=_or_none(people),
        captions=[" | ".join(one) for one in pictures["captions"]],
    )


def _covered(boxes: pd.DataFrame, n: int, confounder_area: float, crowd: str) -> tuple[np.ndarray, ...]:
    """Return what boxes say of each of ``n`` pictures.

    The largest share of a person (n,) and of each of the set's objects (objects, n); whether there is a crowd
    box of these that excludes it (n,); whether anything else is large (n,).
    """
    picture, share, many = (boxes[name].to_numpy() for name in ("picture", "share", "crowd"))
    counted = np.ones_like(many) if crowd == "count" else ~many
    kind = boxes["category"].cat.codes.to_numpy()
    codes = boxes["category"].cat.categories.get_indexer(["person", *SET_OBJECTS])
    ours = np.isin(kind, codes)
    crowded = _any(n, picture[many & ours & (crowd == "exclude")])
    other = _any(n, picture[counted & ~ours & (share >= confounder_area)])
    shown = [counted & (kind == code) for code in codes]
    people, *things = (_largest(n, picture[one], share[one]) for one in shown)
    return people, np.stack(things), crowded, other


def _said(captions: pd.Series, min_captions: int) -> np.ndarray:
    """Return the perceived gender that each picture's captions name, "unknown" where they name none."""
    nobody = caption_gender((), min_captions)
    gender = [caption_gender(one, min_captions) if one else nobody for one in captions]
    return np.array([one or "unknown" for one in gender])


def _largest(n: int, picture: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return for each of ``n`` pictures the largest share of its boxes, `_NO_BOX` without one."""
    found = np.full(n, _NO_BOX)
    np.maximum.at(found, picture, share)
    return found


def _or_none(largest: np.ndarray) -> np.ndarray:
    """Return the largest shares with 0 where there is no box."""
    return np.where(largest > _NO_BOX, largest, 0.0)


def _any(n: int, picture: np.ndarray) -> np.ndarray:
    """Return for each of ``n`` pictures whether it is among some boxes' pictures."""
    found = np.zeros(n, dtype=bool)
    found[picture] = True
    return found


def _check(crowd: str, empty: str | None, **shares: float) -> None:
    for label, value in shares.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise ValueError(f"{label} must be a share of the picture from 0 to 1; got {value!r}.")
    if crowd not in CROWDS:
        raise ValueError(f"crowd must be one of {', '.join(CROWDS)}; got {crowd!r}.")
    if empty is not None and empty not in EMPTY:
        raise ValueError(f"empty must be one of {', '.join(EMPTY)}; got {empty!r}.")


def _usable(wanted: Sequence[str], present: pd.DataFrame, empty: str | None) -> list[str]:
    """Return the classes to fill: all, or those with a picture of theirs and of their object alone."""
    there = {"random", *present["class"]}
    return [one for one in wanted if empty != "leave out" or there >= {one, split_class(one)[0] or one}]
