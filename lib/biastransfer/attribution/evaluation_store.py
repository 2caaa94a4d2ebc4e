"""What an evaluation has computed, kept by content: a killed run goes on, and never with stale numbers.

A map's key holds all that it depends on: the network's weights, structure and transform, the picture's
pixels, the class, the method with all its settings, the fill with its file, the seed, and the code that
makes maps.
"""

import functools
import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import nn

from biastransfer import paths
from biastransfer.attribution.removal import FILLS
from biastransfer.checkpoints import state_hash

# the modules that make maps and metrics; a test compares with what `methods` and `metrics` import
CODE = (
    "boxes", "curves", "faithfulness", "gradcam", "gradients", "heatmaps", "imputation", "inpainter_network",
    "inpainters", "lime", "localisation", "meaningful_perturbation", "methods", "metrics", "networks",
    "occlusion", "perturbation", "pointing", "removal", "rise", "road", "saliency", "scores", "sliding_patch",
    "targets",
)  # fmt: skip


def digest(*parts) -> str:
    """Return the hash, 32 hex digits, of ``parts`` that JSON can hold."""
    text = json.dumps(parts, sort_keys=True, default=repr)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def array_hash(values) -> str:
    """Return the hash of the type, shape and bytes of an array or tensor, ``values``."""
    found = np.ascontiguousarray(values)
    header = f"{found.dtype.str} {found.shape} ".encode()
    return hashlib.blake2b(header + found.tobytes(), digest_size=16).hexdigest()


def identity(thing, label: str = "") -> str | None:
    """Return what tells one network, fill or transform from another, or None where nothing can.

    Parameters
    ----------
    thing : object
        A network: its weights and structure. A named fill: its name, defaults and file. Anything else: its
        text, unless that only gives an address in memory.
    label : str
        The name that a caller gave it; for a callable it stands for what it does, so change both together.

    Returns
    -------
    str or None
    """
    if isinstance(thing, nn.Module):
        parts = [f"{name} {type(part)} {part.extra_repr()}" for name, part in thing.named_modules()]
        return digest(state_hash(thing.state_dict()), parts)
    if isinstance(thing, str):
        return digest(thing, FILLS.get(thing, (None, {}))[1], _file_hash(thing))
    text = repr(thing)
    return digest(text) if " at 0x" not in text else digest("labelled", label) if label else None


@functools.lru_cache(maxsize=1)
def code_hash() -> str:
    """Return the hash of the code that makes maps and metrics, and of the packages below it."""
    texts = [Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8") for name in CODE]
    return digest(texts, torch.__version__, np.__version__)


def read_map(folder: Path, key: str) -> np.ndarray | None:
    """Return the heat map of a ``key`` in a ``folder``, or None where there is none, or it is damaged."""
    data = _opened(folder / key[:2] / f"{key}.npy")
    return None if data is None else np.load(io.BytesIO(data), allow_pickle=False)


def read_record(folder: Path, key: str) -> dict:
    """Return what is known of the map of a ``key`` in a ``folder``: its cost, and its metrics by key."""
    data = _opened(folder / key[:2] / f"{key}.json")
    found = {} if data is None else json.loads(data)
    return found if isinstance(found, dict) and "metrics" in found else {}


def write_map(folder: Path, key: str, heatmap: np.ndarray) -> None:
    """Write a ``heatmap`` under its ``key`` in a ``folder``, whole or not at all."""
    data = io.BytesIO()
    np.save(data, heatmap)
    _seal(folder / key[:2] / f"{key}.npy", data.getvalue())


def write_record(folder: Path, key: str, record: Mapping) -> None:
    """Write what is known of a map, ``record``, under its ``key`` in a ``folder``, whole or not at all."""
    _seal(folder / key[:2] / f"{key}.json", json.dumps(record).encode())


def _seal(file: Path, data: bytes) -> None:
    """Write a file whole or not at all, its own hash below its content."""
    with paths.replacing(file) as partial:
        partial.write_bytes(data + b"\n" + _seal_of(data))


def _opened(file: Path) -> bytes | None:
    """Return the content of a file, or None where there is none or a bit of it has changed."""
    try:
        data, _, seal = file.read_bytes().rpartition(b"\n")
    except OSError:
        return None
    return data if seal == _seal_of(data) else None


def _seal_of(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).hexdigest().encode()


def _file_hash(fill: str) -> str:
    """Return the hash of the file that a named fill reads."""
    file = {"lama": paths.weights("big-lama.pt"), "scenes-inpainter": paths.inpainter_weights()}.get(fill)
    return _hashed(file, file.stat().st_mtime_ns) if file is not None and file.is_file() else ""


@functools.lru_cache(maxsize=8)
def _hashed(file: Path, changed: int) -> str:
    return paths.sha256(file)
