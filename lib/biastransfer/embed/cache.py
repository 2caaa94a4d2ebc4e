"""Embeddings kept on disk, keyed by everything they depend on, each file checked against its own hash."""

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy

from biastransfer import paths
from biastransfer.checkpoints import state_hash

_FORMAT = 2  # raise when the same key would give other vectors: a change of the pooling, decoding, batching


def key(backbone, layer: str) -> str:
    """Return the hash of all that a vector depends on beside the picture.

    Parameters
    ----------
    backbone : Backbone
        Its weights (those of the head left out, unless ``layer`` lies in it), its structure down to each
        module's settings, such as the kind of activation, and its transform.
    layer : str
        Name of the submodule that is read.

    Returns
    -------
    str
        64 hex digits.
    """
    head = backbone.head
    skip = (lambda name: False) if not head or _within(layer, head) else (lambda name: _within(name, head))
    state = {name: value for name, value in backbone.module.state_dict().items() if not skip(name)}
    structure = [
        f"{name} {type(part).__module__}.{type(part).__qualname__} {part.extra_repr()}"
        for name, part in backbone.module.named_modules()
        if not skip(name)
    ]
    parts = [_FORMAT, state_hash(state), structure, backbone.transform.to_dict(), layer]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _within(name: str, module: str) -> bool:
    return name == module or name.startswith(f"{module}.")


def load(key: str, wanted: Iterable[str]) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return the cached vectors of some pictures.

    Parameters
    ----------
    key : str
        From `key`.
    wanted : iterable of str
        SHA-256 of the pictures' bytes.

    Returns
    -------
    vectors : dict of str to (D,) float32 array
        Those that are there.
    notes : list of str
        One sentence for each damaged file, which is removed: its vectors are computed again.
    """
    wanted = set(wanted)
    vectors, notes = {}, []
    for file in sorted(_folder(key).glob("*.safetensors")):
        if len(vectors) == len(wanted):
            break
        shard = _read(file)
        if shard is None:
            notes.append(f"the cached embeddings {file.name[:12]}… were damaged; removed and computed again")
            with contextlib.suppress(OSError):
                file.unlink()
            continue
        pictures = [row.tobytes().hex() for row in shard["pictures"]]
        vectors |= {name: row.copy() for name, row in zip(pictures, shard["vectors"]) if name in wanted}
    return vectors, notes


def store(key: str, vectors: Mapping[str, np.ndarray]) -> list[str]:
    """Write vectors as one new file that is named by its own hash, whole or not at all.

    Parameters
    ----------
    key : str
        From `key`.
    vectors : mapping of str to (D,) float32 array
        SHA-256 of a picture's bytes → its embedding.

    Returns
    -------
    list of str
        One sentence if the folder cannot be written; an embedding without a cache is slower, not wrong.

    Notes
    -----
    Files are only ever added, under names that their bytes determine: two processes that embed the same
    pictures at once write the same file or two files, and neither reads half of one.
    """
    if not vectors:
        return []
    pictures = np.array([np.frombuffer(bytes.fromhex(name), np.uint8) for name in vectors])
    data = safetensors.numpy.save({"pictures": pictures, "vectors": np.array(list(vectors.values()))})
    try:
        with paths.replacing(_folder(key) / f"{hashlib.sha256(data).hexdigest()}.safetensors") as partial:
            partial.write_bytes(data)
    except OSError as error:
        return [f"embeddings were not cached: {error.strerror or error}"]
    return []


def _folder(key: str) -> Path:
    return paths.embedding_cache() / key


def _read(file: Path) -> dict[str, np.ndarray] | None:
    """Return the arrays of a cache file, or None if its bytes are not those that its name promises."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:  # another process found it damaged first
        return None
    if hashlib.sha256(data).hexdigest() != file.stem:
        return None
    return safetensors.numpy.load(data)
