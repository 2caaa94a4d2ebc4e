"""Which picture files lie below a folder: order and names never left to the file system."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

SUFFIXES = frozenset(
    f".{name}"
    for name in (
        *("jpg", "jpeg", "jpe", "jfif", "png", "webp", "avif", "gif", "bmp"),
        *("tif", "tiff", "ppm", "pgm", "pnm", "pfm", "jp2", "j2k", "tga"),
    )
)


def below(folders: Path | str | Iterable[Path | str]) -> list[Path]:
    """Return the picture files below one folder or several, sorted; hidden ones are left out."""
    found = []
    for folder in [folders] if isinstance(folders, str | Path) else folders:
        for parent, inner, names in walk(folder):
            inner[:] = [name for name in inner if not name.startswith(".")]
            found += [Path(parent, name) for name in names if is_picture(name)]
    return found


def walk(folder: Path | str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield (folder, folders, files) as `os.walk` does, sorted, through links, each real folder once."""
    seen = set()
    for parent, inner, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(parent)
        if real in seen:  # a link to where the walk has been, or to a folder that holds it
            inner.clear()
            continue
        seen.add(real)
        inner.sort()
        yield parent, inner, sorted(names)


def is_picture(name: str) -> bool:
    """Tell by its name whether a file is a picture that is not hidden.

    Examples
    --------
    >>> is_picture("A.JPG"), is_picture(".a.jpg"), is_picture("a.txt")
    (True, False, False)
    """
    return not name.startswith(".") and Path(name).suffix.lower() in SUFFIXES


def by_stem(folders: Path | str | Iterable[Path | str]) -> dict[str, str]:
    """Return {name without its suffix: absolute path}; of two files of one stem the first in order."""
    table: dict[str, str] = {}
    for file in below(folders):
        table.setdefault(file.stem, str(file))
    return table
