"""What can be fetched: data/sources.toml, checked line by line before anything is asked of a server."""

import difflib
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from biastransfer import paths

_DIGITS = {"sha256": 64, "md5": 32}
_FEWEST = 8  # hex digits of a hash that tell files apart: some publishers print no more


@dataclass(frozen=True)
class Source:
    """One file to fetch.

    Attributes
    ----------
    name : str
    url, path : str
        Where it is published; where it goes, below the root that `fetch` is given.
    licence, use : str
        The terms it comes with; what it is for.
    bytes : int or None
        Its size; None where nobody published it.
    sha256, md5 : str
        Hex digits as published, perhaps only the first of them; "" where there are none.
    group : tuple of str
        Names that stand for it and others.
    unpack : tuple of str or None
        None: no archive; (): every member; otherwise these members, placed below ``into``.
    into : str
        Folder below the root.
    """

    name: str
    url: str
    path: str
    licence: str
    use: str
    bytes: int | None = None
    sha256: str = ""
    md5: str = ""
    group: tuple[str, ...] = ()
    unpack: tuple[str, ...] | None = None
    into: str = ""


@dataclass(frozen=True)
class Pictures:
    """Where single pictures are: ``url`` with ``{split}`` and ``{id}``, ``path`` below the root."""

    name: str
    url: str
    splits: tuple[str, ...]
    path: str
    licence: str
    use: str


def load_sources(file: Path | str | None = None) -> tuple[dict[str, Source], dict[str, Pictures]]:
    """Read the list of sources.

    Parameters
    ----------
    file : path-like, optional
        Otherwise ``data/sources.toml``.

    Returns
    -------
    files : dict of str to Source
    pictures : dict of str to Pictures
        Both in the file's order.

    Raises
    ------
    FileNotFoundError
        No such file.
    ValueError
        No TOML, an unknown or missing key, an address that is no http(s), a path that leaves its folder, or a
        hash that is none.
    """
    file = Path(file) if file is not None else paths.sources()
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as problem:
        raise FileNotFoundError(
            f"the list of sources must exist; {file} does not. Run from a checkout, or set BIASTRANSFER_ROOT."
        ) from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ValueError(f"{file} must be TOML; {problem}.") from problem
    if unknown := set(content) - {"files", "pictures"}:
        raise ValueError(
            f"{file} must hold [files.…] and [pictures.…] only; got {', '.join(sorted(unknown))}."
        )
    read = [
        {name: _entry(kind, name, entry) for name, entry in content.get(part, {}).items()}
        for part, kind in (("files", Source), ("pictures", Pictures))
    ]
    return read[0], read[1]


def choose(names: Sequence[str], files: dict[str, Source]) -> list[Source]:
    """Return the sources that names stand for, each once, in the order of the file.

    Parameters
    ----------
    names : sequence of str
        Names of files or of groups.
    files : dict of str to Source
        From `load_sources`.

    Raises
    ------
    ValueError
        A name that is neither, with the nearest that is.
    """
    groups = {group for source in files.values() for group in source.group}
    for name in names:
        if name not in files and name not in groups:
            near = difflib.get_close_matches(name, [*groups, *files], n=1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"unknown source {name!r}.{meant} Groups: {', '.join(sorted(groups))}; "
                f"files: {', '.join(files)}."
            )
    return [one for one in files.values() if one.name in names or set(one.group) & set(names)]


def mirrored(url: str, mirror: str | None) -> str:
    """Return an address with scheme and host of a ``mirror``; its path is kept, below the mirror's own.

    Raises
    ------
    ValueError
        ``mirror`` is no http(s) address.

    Examples
    --------
    >>> mirrored("https://a.org/x/y.csv?v=1", "http://localhost:8000/copies/")
    'http://localhost:8000/copies/x/y.csv?v=1'
    >>> mirrored("https://a.org/x/y.csv", None)
    'https://a.org/x/y.csv'
    """
    if mirror is None:
        return url
    there, ours = urlsplit(mirror), urlsplit(url)
    if there.scheme not in ("http", "https") or not there.hostname or there.query or there.fragment:
        raise ValueError(f"a mirror must be an address as https://host/path; got {mirror!r}.")
    place = there._replace(path=there.path.rstrip("/") + ours.path, query=ours.query)
    return place.geturl()


def _entry(kind: type, name: str, entry: object):
    """Return a checked Source or Pictures."""
    known = {field.name: field for field in fields(kind) if field.name != "name"}
    if not isinstance(entry, dict):
        raise ValueError(f"source {name} must be a table of keys; got {entry!r}.")
    if unknown := [key for key in entry if key not in known]:
        raise ValueError(f"source {name} has unknown keys {', '.join(unknown)}; known: {', '.join(known)}.")
    needed = ("url", "path", "licence", "use", *(("splits",) if kind is Pictures else ()))
    if missing := [key for key in needed if not entry.get(key)]:
        raise ValueError(f"source {name} must state {', '.join(needed)}; it lacks {', '.join(missing)}.")
    for key, value in entry.items():
        if complaint := _complaint(key, value):
            raise ValueError(f"source {name}: {key} {complaint}; got {value!r}.")
    lists = {key: tuple(value) for key, value in entry.items() if isinstance(value, list)}
    return kind(name=name, **{**entry, **lists})


def _complaint(key: str, value: object) -> str:
    """Say what a value must be, or nothing where it is that."""
    if key in ("group", "unpack", "splits"):
        fine = isinstance(value, list) and all(isinstance(one, str) and one for one in value)
        return "" if fine else "must be a list of names"
    if key == "bytes":
        return "" if type(value) is int and value > 0 else "must be a whole number above 0"
    if not isinstance(value, str):
        return "must be text"
    if key in _DIGITS:
        fine = re.fullmatch("[0-9a-f]*", value) and _FEWEST <= len(value) <= _DIGITS[key]
        return "" if fine else f"must be {_FEWEST} to {_DIGITS[key]} hex digits"
    if key == "url":
        fine = urlsplit(value).scheme in ("http", "https") and urlsplit(value).hostname
        return "" if fine else "must be an http or https address"
    if key in ("path", "into"):
        place = PurePosixPath(value)
        fine = not place.is_absolute() and ".." not in place.parts and place.parts
        return "" if fine else "must be a path below data/raw"
    return ""
