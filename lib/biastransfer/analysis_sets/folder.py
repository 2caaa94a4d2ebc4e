"""Analysis sets from a folder: one folder a class, any readable picture."""

import os
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from .decisions import decisions
from .manifest import OBJECTS, AnalysisSet, assemble, schema_classes
from .picture_files import is_picture, walk


def load(
    root: Path,
    *,
    classes: Sequence[str] | None = None,
    name: str | None = None,
    source: str = "folder",
    licence: str = "",
) -> AnalysisSet:
    """Read every folder below ``root`` as a class of that name.

    Parameters
    ----------
    root : Path
        Holds one folder a class; folders inside a class are read too.
    classes : sequence of str, optional
        Only these folders, in this order; otherwise all, those of a schema first and in its order. Folders
        may be called as the classes are or as in the released sets (``car_man``, ``stop_sign``).
    name : str, optional
        Of the set; otherwise the folder's.
    source, licence : str
        For the manifest: a folder does not say where its pictures come from.

    Returns
    -------
    AnalysisSet
        Hidden files, files that are no pictures, empty and unreadable ones are counted in its report.

    Raises
    ------
    ValueError
        No class folder, two for one class, or a class without a picture.
    NotADirectoryError
        ``root`` is a file.
    """
    if not root.is_dir():
        raise NotADirectoryError(f"an analysis set of kind 'folder' must be a folder; {root} is a file.")
    folders: dict[str, Path] = {}
    for one in sorted(root.iterdir()):
        if one.is_dir() and not one.name.startswith("."):
            other = folders.setdefault(class_name(one.name), one)
            if other != one:
                raise ValueError(
                    f"{root} must hold one folder a class; {other.name!r} and {one.name!r} both stand for "
                    f"{class_name(one.name)!r}. Put them together."
                )
    wanted = list(classes) if classes is not None else _ordered(folders)
    for one in wanted:
        if one not in folders:
            raise ValueError(
                f"{root} must hold a folder {one!r}; it holds {', '.join(folders) or 'no folder'}."
            )
    if not wanted:
        raise ValueError(f"{root} must hold one folder a class; it holds no folder.")
    rows, made = [], []
    for one in wanted:
        found, left = _pictures(folders[one], one)
        rows += found
        made += left
    chosen = pd.DataFrame(rows, columns=["id", "class", "file"]).assign(source=source, licence=licence)
    return assemble(
        name or root.name, wanted, chosen, made, ask="Put a picture there, or leave the class out."
    )


def class_name(folder: str) -> str:
    """Return the class that a released folder or list name stands for.

    Examples
    --------
    >>> class_name("car_man"), class_name("stop_sign"), class_name("my class")
    ('car+man', 'stop sign', 'my class')
    """
    known = [one for schema in OBJECTS for one in schema_classes(schema)]
    released = {one.replace("+", "_").replace(" ", "_"): one for one in known}
    return released.get(folder, folder)


def _ordered(names) -> list[str]:
    known = list(dict.fromkeys(one for schema in ("openimages", "coco") for one in schema_classes(schema)))
    return [one for one in known if one in names] + sorted(one for one in names if one not in known)


def _pictures(folder: Path, name: str) -> tuple[list[tuple], list[pd.DataFrame]]:
    """Return the rows of one class and the decisions about files that are not read."""
    rows, hidden, others, unnamed = [], [], [], []
    for parent, _, names in walk(folder):
        for file in names:
            path = Path(parent, file)
            place = path.relative_to(folder)
            if any(part.startswith(".") for part in place.parts):
                hidden.append(str(place))
            elif (text := os.fsencode(file).decode(errors="replace")) != file:
                unnamed.append(str(place.with_name(text)))  # no table could hold it
            elif is_picture(file):
                rows.append((f"{name}/{place.as_posix()}", name, str(path)))
            else:
                others.append(str(place))
    return rows, [
        decisions(hidden, "excluded", "hidden file", name),
        decisions(others, "excluded", "not a picture by its name", name),
        decisions(unnamed, "excluded", "its name is no UTF-8 text", name),
    ]
