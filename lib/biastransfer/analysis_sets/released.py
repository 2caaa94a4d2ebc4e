"""The analysis sets as the paper's authors released them: lists and pictures, each oddity reported."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from . import picture_files
from .archive import original_names, unpack
from .choosing import check_choice
from .coco_files import read_instances
from .coco_places import annotation_files
from .decisions import decisions
from .manifest import AnalysisSet, assemble

LISTS = {"openimages": "openimages_test", "coco": "coco_test"}
PICTURES = "oi_png"
_OWN_NAME = "looked for under its own name"
_SECOND = "the name without a newline, then the first by name, is taken"
_COCO_ID = re.compile(r"\d{12}")
_LICENCES = {"openimages": "CC BY 2.0", "coco": "each picture's own, see COCO"}


def load(
    root: Path,
    *,
    schema: str = "openimages",
    images: Path | str | None = None,
    instances: Path | str | Sequence[Path | str] | None = None,
    classes: Sequence[str] | None = None,
    in_two_classes: str = "keep",
    name: str | None = None,
) -> AnalysisSet:
    """Read the released analysis sets.

    Parameters
    ----------
    root : Path
        A checkout of the authors' repository, its ``analysis_sets`` folder, or a tar of that.
    schema : {"openimages", "coco"}
        Open Images: ids and pictures. COCO: addresses only, so ``images`` has to be given.
    images : path-like, optional
        Folder of COCO pictures under their official names.
    instances : path-like or sequence of path-like, optional
        COCO's instances JSON (relative paths: below ``images``); otherwise every ``instances*.json`` there,
        if there is any. Of an address on Flickr they tell the COCO id, and of each picture its licence.
    classes : sequence of str, optional
        Only these classes.
    in_two_classes : {"keep", "drop"}
        A picture that stands in two classes: kept in both, as the paper did, or dropped from both.
        Reported in either case.
    name : str, optional
        Of the set.

    Returns
    -------
    AnalysisSet
        ``report`` counts beside the kept pictures: empty files, missing files, names that end in a newline,
        ids in two classes, ids listed twice or with two files, addresses that are not COCO's and what they
        were resolved to, pictures that no list names.

    Raises
    ------
    FileNotFoundError
        No list of the schema below ``root``, or no ``images`` folder for COCO.
    ValueError
        A class without a picture, or an unknown option.
    """
    wanted = check_choice(schema, classes, None)
    if in_two_classes not in ("keep", "drop"):
        raise ValueError(f"in_two_classes must be keep or drop; got {in_two_classes!r}.")
    folder = _folder(unpack(root) if root.is_file() else root, schema, root)
    listed, made = _listed(folder / LISTS[schema], wanted, schema)
    if schema == "coco":
        found, more = _coco_pictures(listed, images, instances)
        made += more
    else:
        found, more = _open_images_pictures(listed, folder, wanted)
        made += more
    twice = found[found.duplicated("id", keep=False)].sort_values(["id", "class"])
    made += [_in_two_classes(twice)]
    if in_two_classes == "drop":
        found = found.drop(twice.index)
        dropped = decisions(twice["id"], "excluded", "in two classes")
        made += [dropped.assign(**{"class": twice["class"].to_numpy()})]
    own = found.get("licence", pd.Series("", index=found.index))
    chosen = found.assign(licence=own.where(own != "", _LICENCES[schema]))
    chosen["source"] = f"released analysis sets ({LISTS[schema]})"
    notes = [f"Pictures in two classes: {in_two_classes}."]
    return assemble(
        name or f"released-{schema}",
        wanted,
        chosen,
        made,
        notes,
        ask="Fetch its pictures, or leave it out with classes=[…].",
    )


def _folder(place: Path, schema: str, root: Path) -> Path:
    """Return the folder that holds the schema's lists: ``place``, or its ``analysis_sets``."""
    for folder in (place, place / "analysis_sets"):
        if (folder / LISTS[schema]).is_dir():
            return folder
    raise FileNotFoundError(
        f"released analysis sets must hold {LISTS[schema]}/<class>.txt; neither {root} "
        "nor an analysis_sets folder in it has that."
    )


def _listed(folder: Path, wanted: Sequence[str], schema: str) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    """Return the listed pictures (id, class, name) and the decisions about entries that repeat or are odd."""
    rows, made = [], []
    for one in wanted:
        file = folder / f"{released_name(one)}.txt"
        entries = file.read_text(encoding="utf-8").split() if file.is_file() else []
        names = [_identity(entry, schema) for entry in entries]
        again = (Counter(names) - Counter(set(names))).elements()
        made.append(decisions(list(again), "listed twice", "counted once", one))
        rows += [(_id, one) for _id in dict.fromkeys(names)]
    return pd.DataFrame(rows, columns=["id", "class"]), made


def released_name(name: str) -> str:
    """Return the file or folder name that the release gives a class.

    Examples
    --------
    >>> released_name("car+man"), released_name("stop sign")
    ('car_man', 'stop_sign')
    """
    return name.replace("+", "_").replace(" ", "_")


def _identity(entry: str, schema: str) -> str:
    """Return the id of a list entry: an Open Images id, or the stem of an address."""
    return entry if schema == "openimages" else Path(entry).stem


def _coco_pictures(
    listed: pd.DataFrame, images: Path | str | None, instances
) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    """Return every listed picture with its file and, from the instances files, its licence."""
    if images is None or not Path(images).is_dir():
        raise FileNotFoundError(
            "the released COCO sets are lists of addresses: images must be a folder of COCO pictures under "
            f"their official names; got {images}."
        )
    folder = Path(images).absolute()
    known, licence = _known(folder, instances)
    foreign = listed[[not _COCO_ID.fullmatch(one) for one in listed["id"]]]
    made = []
    for one, name in zip(foreign["id"], foreign["class"]):
        said = f"the instances file has it as {known.get(one)}" if one in known else _OWN_NAME
        made.append(decisions([one], "not a COCO address", said, name))
    resolved = listed.assign(id=[known.get(one, one) for one in listed["id"]])
    again = resolved[resolved.duplicated(["id", "class"])]
    made += [again[["id", "class"]].assign(decision="listed twice", reason="counted once")]
    resolved = resolved.drop(again.index)
    table = picture_files.by_stem(folder)
    return resolved.assign(
        file=[table.get(one) for one in resolved["id"]],
        licence=[licence.get(one, "") for one in resolved["id"]],
    ), made


def _known(folder: Path, instances) -> tuple[dict[str, str], dict[str, str]]:
    """Return {name of the picture on Flickr: COCO id} and {COCO id: licence} of the instances files."""
    if instances is None and not any(folder.rglob("instances*.json")):
        return {}, {}
    pictures, _ = read_instances(annotation_files(folder, instances, "instances"))
    ids = [f"{one:012d}" for one in pictures["id"]]
    return {Path(one).stem: key for one, key in zip(pictures["address"], ids) if one}, dict(
        zip(ids, pictures["licence"])
    )


def _open_images_pictures(
    listed: pd.DataFrame, folder: Path, wanted: Sequence[str]
) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    """Return every listed or stored picture with its file, and the decisions about names."""
    changed = original_names(folder if (folder / "names.json").is_file() else folder.parent)
    rows, made = [], []
    for one in wanted:
        place = folder / PICTURES / released_name(one)
        files = [file for file in sorted(place.iterdir()) if file.is_file()] if place.is_dir() else []
        files = [file for file in files if picture_files.is_picture(file.name.replace("\n", ""))]
        stored = sorted(((_stem(file, folder, changed), file) for file in files), key=_plain_first)
        table: dict[str, Path] = {}
        again = [stem + file.suffix for stem, file in stored if table.setdefault(stem.strip(), file) != file]
        made.append(decisions(again, "second file of an id", _SECOND, one))
        stems = [stem for stem, file in stored if table[stem.strip()] == file]
        newline = [stem for stem in stems if stem.endswith("\n")]
        made.append(decisions(newline, "name ends in a newline", "id taken without it", one))
        names = listed.loc[listed["class"] == one, "id"].tolist()
        unlisted = sorted(set(table) - set(names))
        made.append(decisions(unlisted, "not listed", "picture stands in the folder only; kept", one))
        rows += [(key, one, str(table[key]) if key in table else None) for key in [*names, *unlisted]]
    return pd.DataFrame(rows, columns=["id", "class", "file"]), made


def _plain_first(stored: tuple[str, Path]) -> tuple[str, bool, str]:
    """Order the files of one id, in a folder as in a tar: those without a stray newline come first."""
    stem, file = stored
    return stem.strip(), stem != stem.strip(), file.name


def _stem(file: Path, folder: Path, changed: dict[str, str]) -> str:
    """Return a file's stem as it was released."""
    for base in (folder, folder.parent):
        name = changed.get(file.relative_to(base).as_posix())
        if name is not None:
            return Path(name).stem
    return file.stem


def _in_two_classes(twice: pd.DataFrame) -> pd.DataFrame:
    """Return one decision a (picture, class) for pictures of several classes, naming the other classes."""
    made = decisions(twice["id"], "in two classes", "")
    made["class"] = twice["class"].to_numpy()
    others = twice.groupby("id")["class"].agg(list).to_dict()
    made["reason"] = [
        "also in " + ", ".join(other for other in others[one] if other != name)
        for one, name in zip(made["id"], made["class"])
    ]
    return made
