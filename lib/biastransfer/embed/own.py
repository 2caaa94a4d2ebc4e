"""Bring your own embeddings: an ``.npz`` of vectors, classes and names instead of pictures and networks."""

import os
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

from biastransfer.embed.conditions import UNTRAINED, Condition, Embedded

NEEDED, OPTIONAL = ("vectors", "classes", "names"), ("vectors_after",)
_RATIO, _SMALL = 100, 2**20  # unpacked over packed bytes; below a mebibyte no ratio matters
NULL_NAMES = (UNTRAINED, "thumbnail")  # backbones that stand for "nothing was learned"


def read_npz(path: str | os.PathLike) -> Embedded:
    """Read vectors that were made elsewhere, in the form that all measures take.

    Parameters
    ----------
    path : path-like
        A file that `numpy.savez` wrote, with the arrays ``vectors`` (N, D), ``classes`` (N,) and ``names``
        (N,) as text, and optionally ``vectors_after`` (N, D'), the same pictures after finetuning.

    Returns
    -------
    Embedded
        Condition → class, in the order of first occurrence → (n, D) array. The backbone is called as the
        file, without its suffix; ``vectors_after`` are a finetuned condition with target "own", seed 0.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If an array is missing, unknown, pickled, of a wrong shape or type, not finite, or a name occurs
        twice; the message names file and array. If the file is called as a null is, random or thumbnail.

    Notes
    -----
    Nothing in the file is executed: pickled arrays are refused. Classes are named as in the analysis sets
    (``man``, ``woman``, ``random``, ``car``, ``car+man``, …): measures find their items by these names.
    """
    path = Path(path)
    if path.stem in NULL_NAMES:
        raise ValueError(
            f"{path} must not be called {' or '.join(NULL_NAMES)}: tables take networks of these names for "
            "nulls. Rename the file."
        )
    arrays = _arrays(path)
    names, classes = (_texts(arrays[key], path, key) for key in ("names", "classes"))
    vectors = {key: _finite(arrays[key], path, key) for key in ("vectors", "vectors_after") if key in arrays}
    lengths = {key: len(array) for key, array in {**vectors, "classes": classes, "names": names}.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{key} {length}" for key, length in lengths.items())
        raise ValueError(f"{path}: all arrays must have one row a picture; got {found}. Save them together.")
    if (twice := pd.Series(names).duplicated().to_numpy()).any():
        raise ValueError(
            f"{path}: each picture must stand once in `names`; {str(names[twice][0])!r} stands twice. "
            "Keep one row a picture, in one class."
        )
    embedded = Embedded()
    for key, array in vectors.items():
        rows = {name: array[classes == name] for name in dict.fromkeys(classes.tolist())}
        after = key == "vectors_after"
        embedded[Condition(path.stem, "finetuned" if after else "pretrained", "own" if after else "", 0)] = (
            rows
        )
    embedded.failed = pd.DataFrame(columns=[*Condition._fields, "file", "reason"], dtype=object)
    embedded.notes = ()
    return embedded


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of the file by name, every one there and none unknown."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; give the .npz that numpy.savez wrote.")
    try:
        file = np.load(path, allow_pickle=False)
    except ValueError as error:  # NumPy takes anything else for a pickle and offers to trust it
        raise _unreadable(path, "it is no such archive") from error
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise _unreadable(path, error) from error
    if not isinstance(file, np.lib.npyio.NpzFile):
        raise _unreadable(path, "it holds one array without a name")
    with file:
        _no_bomb(path)
        found = {key: _array(file, path, key) for key in file.files}
    missing = [key for key in NEEDED if key not in found]
    unknown = [key for key in found if key not in NEEDED + OPTIONAL]
    if missing or unknown:
        raise ValueError(
            f"{path} must hold the arrays {', '.join(NEEDED)} and may hold {', '.join(OPTIONAL)}; "
            f"got {', '.join(found) or 'none'}. Rename or add what differs."
        )
    return found


def _unreadable(path: Path, why: object) -> ValueError:
    return ValueError(
        f"{path} must be an .npz that numpy.savez wrote; it cannot be read ({why}). Save it again."
    )


def _no_bomb(path: Path) -> None:
    packed = path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > max(_RATIO * packed, _SMALL):
        raise ValueError(
            f"{path} must unpack to {_RATIO} times its size at most; it states {unpacked:,} bytes in "
            f"{packed:,}. Save it with numpy.savez, which does not compress."
        )


def _array(file, path: Path, key: str) -> np.ndarray:
    try:
        return file[key]
    except (ValueError, zipfile.BadZipFile, EOFError, OSError, MemoryError) as error:  # pickled, or damaged
        raise ValueError(
            f"{path}: `{key}` must be a plain array; it is pickled or damaged ({error}). "
            "Save text as np.array(…, dtype=str)."
        ) from error


def _texts(array: np.ndarray, path: Path, key: str) -> np.ndarray:
    if array.ndim == 1 and not len(array):
        raise ValueError(f"{path} must hold one picture at least; `{key}` is empty. Save one row a picture.")
    if array.ndim != 1 or array.dtype.kind != "U":
        raise ValueError(
            f"{path}: `{key}` must be a list of text, one a picture; got shape {array.shape}, {array.dtype}."
        )
    if "" in array:
        raise ValueError(
            f"{path}: `{key}` must not be empty in any row; row {int(np.argmax(array == ''))} is."
        )
    return array


def _finite(array: np.ndarray, path: Path, key: str) -> np.ndarray:
    if array.ndim != 2 or array.dtype.kind not in "fiu" or not array.shape[1]:
        raise ValueError(
            f"{path}: `{key}` must be numbers of shape (pictures, dimensions); got shape {array.shape}, "
            f"{array.dtype}. Save one row a picture."
        )
    if not (whole := np.isfinite(array).all(1)).all():
        raise ValueError(
            f"{path}: `{key}` must be finite; row {int(np.argmin(whole))} is not. Leave that picture out."
        )
    return array
