"""One file over HTTP: what came is kept in ``<name>.part``, gone on with, checked, and then named."""

import contextlib
import fcntl
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import requests

from biastransfer import paths

from .checks import Expected, complaint
from .network import FetchError, Network

PART = ".part"
_FORWARD = 2**20  # bytes a failed try must have brought to count as progress
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")


def download(
    url: str,
    target: Path,
    expected: Expected,
    network: Network,
    advance: Callable[[int], object] = lambda n: None,
) -> str:
    """Fetch one file.

    Parameters
    ----------
    url : str
    target : Path
        Where it goes. Beside it, while it is not whole, ``<name>.part`` and what the server said of it.
    expected : Expected
        Bytes that are not these are thrown away and asked for once more.
    network : Network
    advance : callable
        Gets the number of bytes that came; negative where some were thrown away.

    Returns
    -------
    {"fetched", "resumed", "present"}
        Resumed: pieced together from several answers of the server. Present: another process was faster.

    Raises
    ------
    FetchError
        It did not come; what did is kept for another time, unless it was wrong.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + PART)
    with _held(part) as file:
        if target.is_file() and not complaint(target, expected):
            part.unlink(missing_ok=True)
            return "present"
        advance(_size(file))
        joined = _until_whole(url, file, expected, network, advance)
        file.flush()
        os.fsync(file.fileno())
        os.replace(part, target)
        _notes(part).unlink(missing_ok=True)
    return "resumed" if joined else "fetched"


@contextlib.contextmanager
def _held(part: Path) -> Iterator[BinaryIO]:
    """Open a part for reading and writing, with its lock."""
    with open(part, "ab+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as problem:
            raise FetchError("another process is fetching it") from problem
        try:
            yield file
        finally:
            if part.is_file() and not part.stat().st_size:
                part.unlink()
                _notes(part).unlink(missing_ok=True)


def _until_whole(url: str, file: BinaryIO, expected: Expected, network: Network, advance) -> bool:
    """Try until the part is the file that is expected; return whether it was pieced together."""
    part = Path(file.name)
    failures: Counter[int | None] = Counter()  # by how often such a failure may be tried again
    joined = False
    while True:
        before = _size(file)
        try:
            joined = _ask(url, file, expected, network, advance) or joined
            if not (problem := complaint(part, expected)):
                return joined
            _empty(file, advance)
            raise FetchError(problem, 1)
        except OSError as problem:
            raise FetchError((problem.strerror or str(problem)).lower()) from problem
        except FetchError as problem:
            if _size(file) - before >= _FORWARD:
                failures[None] = 0
            failures[problem.tries] += 1
            tried = failures[problem.tries]
            if tried > (network.settings.retries if problem.tries is None else problem.tries):
                often = f" ({tried} tries)" if tried > 1 else ""
                raise FetchError(f"{problem}{often}", code=problem.code) from problem
            network.wait(tried, problem.wait)


def _ask(url: str, file: BinaryIO, expected: Expected, network: Network, advance) -> bool:
    """Ask for what is missing and append it; return whether the answer went on with an earlier one."""
    have, notes = _size(file), _read_notes(file)
    if have and have == (expected.bytes or notes.get("total")):
        return False  # killed after the last byte and before the check
    headers = {}
    if have and notes.get("url") == url and notes.get("validator"):
        headers = {"Range": f"bytes={have}-", "If-Range": notes["validator"]}
    elif have and expected.hashed:
        headers = {"Range": f"bytes={have}-"}
    with contextlib.closing(network.get(url, headers)) as answer:
        start = _start(answer, notes, have if headers else 0)
        if start is None:
            _empty(file, advance)
            raise FetchError("the server's file changed while it was fetched", 1)
        if start == 0:
            _empty(file, advance)
            _write_notes(file, url, answer)
        total = _total(answer, start)
        _check_total(total, start, expected, Path(file.name))
        for data in network.chunks(answer):
            file.write(data)
            file.flush()  # a kill loses nothing that came
            advance(len(data))
    if total is not None and _size(file) != total:
        raise FetchError(f"the connection ended after {_size(file):,} of {total:,} bytes", None)
    return start > 0


def _start(answer: requests.Response, notes: dict, have: int) -> int | None:
    """Return the byte that an answer begins with, 0 or ``have``; None where it goes on with another file."""
    if answer.status_code == 200:
        return 0
    span = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
    changed = notes.get("validator") and _validator(answer) not in ("", notes["validator"])
    same_size = not notes.get("total") or (span and span[3] in ("*", str(notes["total"])))
    if answer.status_code == 206 and span and int(span[1]) == have and same_size and not changed:
        return have
    return None


def _total(answer: requests.Response, start: int) -> int | None:
    """Return the size of the whole file as the server states it."""
    span = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
    if answer.status_code == 206 and span and span[3] != "*":
        return int(span[3])
    length = answer.headers.get("Content-Length", "")
    return start + int(length) if length.isdecimal() else None


def _check_total(total: int | None, start: int, expected: Expected, part: Path) -> None:
    """Raise before a wrong or too large body is read."""
    if total is None:
        return
    if expected.bytes is not None and total != expected.bytes:
        raise FetchError(f"it must have {expected.bytes:,} bytes; the server offers {total:,}", 1)
    free = shutil.disk_usage(part.parent).free
    if total - start > free:
        raise FetchError(f"the disk must have {total - start:,} bytes free; it has {free:,}")


def _empty(file: BinaryIO, advance) -> None:
    advance(-_size(file))
    file.truncate(0)


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _notes(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _write_notes(file: BinaryIO, url: str, answer: requests.Response) -> None:
    """Keep what tells later whether the server still has the same file."""
    said = {"url": url, "validator": _validator(answer), "total": _total(answer, 0)}
    with paths.replacing(_notes(Path(file.name))) as partial:
        partial.write_text(json.dumps(said), encoding="utf-8")


def _read_notes(file: BinaryIO) -> dict:
    with contextlib.suppress(OSError, ValueError):
        said = json.loads(_notes(Path(file.name)).read_text(encoding="utf-8"))
        return said if isinstance(said, dict) else {}
    return {}


def _validator(answer: requests.Response) -> str:
    """Return the strong entity tag; the date of change where there is no tag at all (RFC 9110, 13.1.5)."""
    tag = answer.headers.get("ETag", "")
    if tag:
        return "" if tag.startswith("W/") else tag
    return answer.headers.get("Last-Modified", "")
