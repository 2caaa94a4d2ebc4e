"""Several files at once: what is there stays, what is missing comes, and each file's end is reported."""

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path, PurePosixPath

from tqdm import tqdm

from biastransfer import paths

from .archives import note_unpacked, still_unpacked, unpack
from .checks import Expected, complaint
from .download import PART, download
from .network import FetchError, Network, Settings
from .outcomes import FetchReport, Outcome
from .sources import Source, choose, load_sources, mirrored

_GONE = {401, 403, 404, 410}  # answers after which another address of the same picture may still have it


def fetch(
    names: Sequence[str],
    *,
    root: Path | str | None = None,
    mirror: str | None = None,
    workers: int = 4,
    retries: int = 5,
    timeout: float = 30.0,
    connect_timeout: float = 1.3,
    backoff: float = 0.5,
    sources: Path | str | None = None,
) -> FetchReport:
    """Fetch published files by name.

    Parameters
    ----------
    names : sequence of str
        Of files or groups in ``data/sources.toml``.
    root : path-like, optional
        Where they go; otherwise ``data/raw``.
    mirror : str, optional
        An address that takes the place of scheme and host of every source.
    workers : int
        Files at the same time.
    retries, timeout, connect_timeout, backoff
        See `Settings`.
    sources : path-like, optional
        Another list of sources.

    Returns
    -------
    FetchReport
        One outcome a file; a file that did not come does not stop the others.

    Raises
    ------
    ValueError
        An unknown name or an argument out of range.
    OSError
        The disk is smaller than what is known to be missing.

    Notes
    -----
    A file that is there and agrees with its published size and hash is not asked for again. What came before
    an interruption, a kill included, lies in ``<name>.part`` and is gone on with; bytes that differ from what
    is published never get the file's name. A file of that name that differs stays until the right one has
    come.
    """
    chosen = choose(names, load_sources(sources)[0])
    folder = paths.raw() if root is None else Path(root)
    network = Network(Settings(retries, timeout, connect_timeout, backoff))
    mirrored("http://any.host/", mirror)  # a mirror that is none fails once and not for each file
    _check_disk(chosen, folder)
    known = all(one.bytes for one in chosen)
    total = sum(one.bytes or 0 for one in chosen) if known else None
    with _bar(total, "B") as bar:
        jobs = [lambda one=one: _source(one, folder, mirror, network, bar.update) for one in chosen]
        return _all(jobs, [one.path for one in chosen], workers, network)


def fetch_pictures(
    pictures: Mapping[str, str | Sequence[str]],
    folder: Path | str,
    *,
    mirror: str | None = None,
    workers: int = 8,
    retries: int = 5,
    timeout: float = 30.0,
    connect_timeout: float = 1.3,
    backoff: float = 0.5,
) -> FetchReport:
    """Fetch single pictures.

    Parameters
    ----------
    pictures : mapping of str to str or sequence of str
        Each file's path below ``folder``, and its address; of several addresses the next is asked where a
        server says that it has no such picture.
    folder : path-like
    mirror, workers, retries, timeout, connect_timeout, backoff
        As in `fetch`.

    Returns
    -------
    FetchReport
        A file with a readable picture header counts as present; an answer without one is no picture.

    Raises
    ------
    ValueError
        An argument out of range, or a path that leads out of ``folder``.
    """
    network = Network(Settings(retries, timeout, connect_timeout, backoff))
    mirrored("http://any.host/", mirror)
    for name in pictures:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise ValueError(f"a picture's path must lie below its folder; got {name!r}. Leave it out.")
    with _bar(len(pictures), " pictures") as bar:
        jobs = [
            lambda name=name, urls=urls: _picture(
                name, [urls] if isinstance(urls, str) else urls, Path(folder), mirror, network, bar
            )
            for name, urls in pictures.items()
        ]
        return _all(jobs, list(pictures), workers, network)


def _source(source: Source, folder: Path, mirror: str | None, network: Network, advance) -> Outcome:
    """Fetch one file, and unpack it where it is an archive."""
    began, target = time.monotonic(), folder / source.path
    expected = Expected(source.bytes, source.sha256, source.md5)
    archive = source.unpack is not None
    if archive and still_unpacked(target):
        advance(source.bytes or 0)
        return _ended(source.path, "present", None, began)
    if target.is_file() and not complaint(target, expected):
        advance(target.stat().st_size)
        status = "present"
    else:
        status = download(mirrored(source.url, mirror), target, expected, network, advance)
    size = target.stat().st_size
    if archive:
        try:
            note_unpacked(target, unpack(target, folder / source.into, source.unpack or ()))
        finally:  # an archive that cannot be unpacked is no better for being kept
            target.unlink(missing_ok=True)
    return _ended(source.path, status, size, began)


def _picture(
    name: str, urls: Sequence[str], folder: Path, mirror: str | None, network: Network, bar: tqdm
) -> Outcome:
    """Fetch one picture from the first of its addresses that has it."""
    began, target = time.monotonic(), folder / name
    expected = Expected(picture=True)
    try:
        if target.is_file() and not complaint(target, expected):
            return _ended(name, "present", target.stat().st_size, began)
        for place, url in enumerate(urls):
            try:
                status = download(mirrored(url, mirror), target, expected, network)
                return _ended(name, status, target.stat().st_size, began)
            except FetchError as problem:
                if problem.code not in _GONE or place == len(urls) - 1:
                    raise
        raise FetchError("no address is known")
    finally:
        bar.update(1)


def _all(
    jobs: Sequence[Callable[[], Outcome]], names: Sequence[str], workers: int, network: Network
) -> FetchReport:
    """Run the jobs, ``workers`` at a time; one that fails says so in its outcome."""
    if type(workers) is not int or workers < 1:
        raise ValueError(f"workers must be a whole number of at least 1; got {workers!r}.")

    def run(job: Callable[[], Outcome], name: str) -> Outcome:
        began = time.monotonic()
        try:
            return job()
        except (FetchError, OSError, ValueError) as problem:
            return Outcome(name, "failed", 0, time.monotonic() - began, str(problem))

    pool = ThreadPoolExecutor(workers)
    try:
        running = [pool.submit(run, job, name) for job, name in zip(jobs, names)]
        while wait(running, timeout=0.2).not_done:
            pass  # not one long wait: where another thread takes the signal, Ctrl-C would end none
        return FetchReport(tuple(one.result() for one in running))
    finally:  # Ctrl-C: what is under way stops at its next bytes and keeps its part
        network.stop.set()
        pool.shutdown(cancel_futures=True)


def _ended(name: str, status: str, size: int | None, began: float) -> Outcome:
    return Outcome(name, status, size or 0, time.monotonic() - began)


def _bar(total: int | None, unit: str) -> tqdm:
    """Return a progress bar that shows in a terminal only."""
    return tqdm(total=total, unit=unit, unit_scale=unit == "B", disable=not sys.stderr.isatty(), leave=False)


def _check_disk(chosen: Iterable[Source], folder: Path) -> None:
    """Raise where what is known to be missing is more than the disk has free."""
    needed = 0
    for source in chosen:
        target = folder / source.path
        part = target.with_name(target.name + PART)
        there = max((file.stat().st_size for file in (target, part) if file.is_file()), default=0)
        if source.bytes and not (source.unpack is not None and still_unpacked(target)):
            needed += max(source.bytes - there, 0)
    place = next(one for one in (folder, *folder.absolute().parents) if one.is_dir())
    free = shutil.disk_usage(place).free
    if needed > free:
        raise OSError(f"the disk of {folder} must have {needed:,} bytes free; it has {free:,}. Make room.")
