"""Whether a file is the one that was published: its size, its hash, or that it is a picture at all."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from biastransfer.images import ImageReadError, check_header


@dataclass(frozen=True)
class Expected:
    """What is known about a file beforehand; hashes may be the first digits only."""

    bytes: int | None = None
    sha256: str = ""
    md5: str = ""
    picture: bool = False

    @property
    def hashed(self) -> bool:
        """Whether a hash tells right bytes from wrong ones."""
        return bool(self.sha256 or self.md5)


def complaint(path: Path, expected: Expected) -> str:
    """Say in what a file differs from what is expected; "" where it does not.

    Parameters
    ----------
    path : Path
        The file, whole.
    expected : Expected

    Returns
    -------
    str
        What must hold and what came, without the file's name.
    """
    size = path.stat().st_size
    if expected.bytes is not None and size != expected.bytes:
        return f"it must have {expected.bytes:,} bytes; it has {size:,}"
    for name in ("sha256", "md5"):
        if wanted := getattr(expected, name):
            with open(path, "rb") as file:
                found = hashlib.file_digest(file, name).hexdigest()
            if not found.startswith(wanted):
                return f"its {name} must begin with {wanted}; it is {found[: max(len(wanted), 16)]}"
    if expected.picture:
        try:
            check_header(path)
        except ImageReadError as problem:
            return str(problem).partition(": ")[2].partition(". ")[0]
    return ""
