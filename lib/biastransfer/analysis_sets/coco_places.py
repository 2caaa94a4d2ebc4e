"""Where COCO's annotation files and pictures lie below a folder."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from .picture_files import below


def annotation_files(root: Path, given, kind: str) -> list[Path]:
    """Return the annotation files that were named, or all of their kind below ``root``.

    Parameters
    ----------
    root : Path
    given : path-like, sequence of path-like or None
        Relative ones are below ``root``.
    kind : {"instances", "captions"}

    Raises
    ------
    FileNotFoundError
        None there, or a named one is missing.
    """
    if given is None:
        found = sorted(root.rglob(f"{kind}*.json"))
        if not found:
            raise FileNotFoundError(f"COCO {kind} must be below {root}; no {kind}*.json was found there.")
        return found
    named = [root / one for one in ([given] if isinstance(given, str | Path) else given)]
    for one in named:
        if not one.is_file():
            raise FileNotFoundError(f"COCO {kind} must exist; {one} does not.")
    return named


def picture_files(names: Sequence[str], root: Path, images: Path | str | None) -> list[str | None]:
    """Return each picture's file, None where there is none: by its name, anywhere below the folder.

    Parameters
    ----------
    names : sequence of str
        As the annotation files list them.
    root, images : Path
        The folder is ``images``, which may be relative to ``root``, else ``root``.

    Raises
    ------
    FileNotFoundError
        No such folder.
    """
    folder = root if images is None else root / images
    if not folder.is_dir():
        raise FileNotFoundError(f"the folder of COCO pictures must exist; {folder} does not.")
    table: dict[str, list[Path]] = {}
    for file in below(folder):
        table.setdefault(file.name, []).append(file)
    return [_file(Path(name), table.get(Path(name).name, [])) for name in names]


def _file(name: Path, called_so: list[Path]) -> str | None:
    """Return the first file, in order, of a listed name; one whose folders fit it too comes before others."""
    fitting = [file for file in called_so if file.parts[-len(name.parts) :] == name.parts] or called_so
    return str(fitting[0]) if fitting else None


def refuse_shared_files(facts: pd.DataFrame) -> None:
    """Raise ValueError where two pictures of ``facts`` (id, file) would be read from one file.

    That happens when splits number their files alike.
    """
    shared = facts[facts["file"].notna() & facts.duplicated("file", keep=False)].sort_values("file")
    if len(shared):
        one, other = shared["id"].iloc[:2]
        raise ValueError(
            f"a file may be one picture only; {shared['file'].iloc[0]} stands for pictures {one} and "
            f"{other}. Load the splits one by one: name instances, captions and images."
        )
