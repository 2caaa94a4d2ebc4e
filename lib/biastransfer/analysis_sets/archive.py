"""The released analysis sets out of a tar file: unpacked once, whole, and never outside a folder of ours."""

import gzip
import json
import lzma
import os
import secrets
import shutil
import tarfile
import zlib
from pathlib import Path, PurePosixPath

from .. import paths

NAMES = "names.json"
BROKEN = (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError)
_LARGEST = 64 * 2**20  # bytes a member: pictures of short side 256 have at most a megabyte


def unpack(tar: Path) -> Path:
    """Unpack the regular files of a tar below ``data/derived`` and return that folder.

    Parameters
    ----------
    tar : Path
        Any tar that Python opens, compressed or not.

    Returns
    -------
    Path
        Named after the tar's content, so another tar goes elsewhere and the same one is unpacked once.
        ``names.json`` in it maps each changed name to the name in the tar (released stems end in a newline).

    Raises
    ------
    OSError
        ``data/derived`` cannot be written.
    ValueError
        Not a tar, a member that would leave the folder, or one over 64 MiB.

    Notes
    -----
    Links and devices are not unpacked. Control characters are taken out of names.
    """
    folder = paths.derived("released", paths.sha256(tar)[:16])
    if (folder / NAMES).is_file():
        return folder
    partial = folder.with_name(f".{folder.name}.partial-{secrets.token_hex(4)}")
    try:
        partial.mkdir(parents=True)
        renamed = _extract(tar, partial)
        (partial / NAMES).write_text(json.dumps(renamed, indent=1), encoding="utf-8")
        os.replace(partial, folder)
    except OSError as problem:
        if not (folder / NAMES).is_file():  # otherwise another process was faster
            raise _unwritable(folder, tar, problem) from problem
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def original_names(folder: Path) -> dict[str, str]:
    """Return {path in ``folder``: name in the tar} for the names that were changed; {} for a checkout."""
    file = folder / NAMES
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def _unwritable(folder: Path, tar: Path, problem: OSError) -> OSError:
    return OSError(
        problem.errno,
        f"{folder.parent} must be writable to unpack {tar.name} there ({problem.strerror}); free it, or set "
        "BIASTRANSFER_ROOT to another folder",
    )


def _extract(tar: Path, folder: Path) -> dict[str, str]:
    renamed: dict[str, str] = {}
    try:
        with tarfile.open(tar) as archive:
            for member in archive:
                if not member.isfile():
                    continue
                target = folder / _place(member, tar)
                while target.exists():  # two names that differ only in control characters
                    target = target.with_name(f"{target.stem}~{target.suffix}")
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.extractfile(member) as source, open(target, "wb") as copy:
                    shutil.copyfileobj(source, copy)
                if target != folder / member.name:
                    renamed[target.relative_to(folder).as_posix()] = member.name
    except BROKEN as problem:
        what = str(problem).splitlines()[0].rstrip(":")
        raise ValueError(f"{tar} must be a whole tar file; {what}. Fetch it again.") from problem
    return renamed


def safe_place(name: str, archive: Path) -> PurePosixPath:
    """Return the path below a folder that a member called ``name`` of an ``archive`` may have.

    Raises
    ------
    ValueError
        The name is absolute, or leads out of the folder.

    Notes
    -----
    Control characters are taken out.

    Examples
    --------
    >>> safe_place("a/b.png\\n", Path("x.tar")).as_posix()
    'a/b.png'
    """
    place = PurePosixPath("".join(one for one in name if one.isprintable()))
    if place.is_absolute() or ".." in place.parts or not place.parts:
        raise ValueError(f"{archive} must hold only paths below its own folder; got {name!r}. Do not use it.")
    return place


def _place(member: tarfile.TarInfo, tar: Path) -> PurePosixPath:
    """Return where a member goes, or raise when it is no place of ours."""
    place = safe_place(member.name, tar)
    if member.size > _LARGEST:
        raise ValueError(
            f"{tar} must hold no file over {_LARGEST >> 20} MiB; {member.name!r} has {member.size:,} bytes."
        )
    return place
