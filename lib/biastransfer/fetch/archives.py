"""Members of zip and tar archives, placed below one folder: never outside it, never a bomb."""

import json
import os
import secrets
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from biastransfer import paths
from biastransfer.analysis_sets.archive import BROKEN, safe_place

_RATIO = 100  # unpacked over packed bytes; annotation JSON comes to 10, a bomb to 1000
_SMALL = 2**20  # bytes: below this no ratio matters
_CHUNK = 2**20


def unpack(archive: Path, folder: Path, members: Sequence[str] = ()) -> list[Path]:
    """Place members of an archive below a folder, all of them or none.

    Parameters
    ----------
    archive : Path
        A zip, or any tar that Python opens.
    folder : Path
        Each member goes to its own path below it; files there are replaced.
    members : sequence of str
        Only these; otherwise every regular file. Links and devices are never unpacked.

    Returns
    -------
    list of Path
        What was unpacked, in the archive's order.

    Raises
    ------
    ValueError
        No whole archive, a name that leads outside the folder, a member that is wanted and not there, or more
        bytes than 100 times the archive's own.
    OSError
        The disk is too small, or the folder cannot be written.
    """
    partial = folder / f".{archive.name[:80]}.partial-{secrets.token_hex(4)}"
    partial.mkdir(parents=True)
    try:
        places = _extract(archive, partial, set(members))
        if missing := sorted(set(members) - {str(place) for place in places}):
            raise ValueError(f"{archive} must hold {', '.join(missing)}; it does not. Fetch it again.")
        for place in places:
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            os.replace(partial / place, folder / place)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, *BROKEN) as problem:
        what = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        raise ValueError(f"{archive} must be a whole zip or tar; {what}. Fetch it again.") from problem
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return [folder / place for place in places]


def note_unpacked(archive: Path, files: Sequence[Path]) -> None:
    """Write beside an ``archive`` which ``files`` came out of it, so that `still_unpacked` can tell."""
    sizes = {os.path.relpath(file, archive.parent): file.stat().st_size for file in files}
    with paths.replacing(_note(archive)) as partial:
        partial.write_text(json.dumps(sizes, indent=1), encoding="utf-8")


def still_unpacked(archive: Path) -> bool:
    """Tell whether every file that came out of an ``archive`` is still there in its size."""
    try:
        sizes = json.loads(_note(archive).read_text(encoding="utf-8"))
        return all((archive.parent / file).stat().st_size == size for file, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return False


def _note(archive: Path) -> Path:
    return archive.with_name(archive.name + ".unpacked")


def _extract(archive: Path, folder: Path, members: set[str]) -> list[PurePosixPath]:
    """Unpack into an empty folder; return the members' places in it."""
    packed = max(archive.stat().st_size, 1)
    places, budget = [], max(packed * _RATIO, _SMALL)
    for name, size, opened in _members(archive, members):
        place = safe_place(name, archive)
        budget -= size
        if budget < 0:
            raise ValueError(
                f"{archive} must unpack to {_RATIO} times its size at most; {name!r} goes beyond. "
                "Do not use it."
            )
        if size > (free := shutil.disk_usage(folder).free):
            raise OSError(f"the disk must have {size:,} bytes free to unpack {name!r}; it has {free:,}")
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        with opened() as source, open(folder / place, "wb") as copy:
            shutil.copyfileobj(source, copy, _CHUNK)
        places.append(place)
    return list(dict.fromkeys(places))


def _members(archive: Path, members: set[str]) -> Iterator[tuple]:
    """Yield (name, size, how to open it) of the wanted regular files; check every name, wanted or not."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            for info in packed.infolist():
                plain = stat.S_IFMT(info.external_attr >> 16) in (0, stat.S_IFREG) and not info.is_dir()
                if _wanted(info.filename, plain, members, archive):
                    yield info.filename, info.file_size, lambda info=info: packed.open(info)
        return
    with tarfile.open(archive) as packed:
        for member in packed:
            if _wanted(member.name, member.isfile(), members, archive):
                yield member.name, member.size, lambda member=member: _opened(packed, member)


def _wanted(name: str, plain: bool, members: set[str], archive: Path) -> bool:
    """Tell whether a member is to be unpacked; raise where a file's name leads outside."""
    return plain and (str(safe_place(name, archive)) in members or not members)


def _opened(packed: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    source = packed.extractfile(member)
    if source is None:
        raise tarfile.ReadError(f"{member.name!r} cannot be read")
    return source
