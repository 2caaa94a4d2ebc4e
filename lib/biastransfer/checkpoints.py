"""Checkpoints: saved with all that is needed to rebuild, loaded safely, matched with a coverage report."""

import hashlib
import json
from pathlib import Path

import safetensors
import safetensors.torch
import torch

from biastransfer import paths

_KEY = "biastransfer"


def state_hash(state: dict[str, torch.Tensor]) -> str:
    """Return the SHA-256 of a state dict: names, types, shapes and bytes, as 64 hex digits."""
    digest = hashlib.sha256()
    for name in sorted(state):
        value = state[name].detach().cpu().contiguous()
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def save(backbone, path: Path | str, **meta) -> Path:
    """Write a backbone to a safetensors file that `load_backbone` rebuilds whole.

    Parameters
    ----------
    backbone : Backbone
    path : path
        Written whole or not at all.
    **meta
        Anything JSON can hold (recipe, seed, epoch …); `read_meta` gives it back.

    Returns
    -------
    path
    """
    state = {name: value.detach().cpu().contiguous() for name, value in backbone.module.state_dict().items()}
    record = {
        **meta,
        "format": 1,
        "architecture": backbone.name,
        "classes": list(backbone.classes),
        "own_head": backbone.own_head,
        "transform": backbone.transform.to_dict(),
        "source": backbone.source,
        "sha256": state_hash(state),
    }
    with paths.replacing(path) as partial:
        safetensors.torch.save_file(state, partial, metadata={_KEY: json.dumps(record)})
    return Path(path)


def read_meta(path: Path | str) -> dict:
    """Return what `save` wrote to ``path`` beside the weights: classes, transform, its ``**meta`` …"""
    return _open(path, weights=False)[0]


def read(path: Path | str) -> tuple[dict, dict[str, torch.Tensor]]:
    """Return the metadata and the weights of a file that `save` wrote, checked against its own hash."""
    meta, state = _open(path, weights=True)
    if state_hash(state) != meta["sha256"]:
        raise ValueError(
            f"the weights in {path} are not those that were saved; the file is damaged. Make it again."
        )
    return meta, state


def _open(path, *, weights: bool) -> tuple[dict, dict]:
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint {path}; train one or correct the path")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            meta = json.loads((file.metadata() or {}).get(_KEY, "null"))
            state = {name: file.get_tensor(name) for name in file.keys()} if weights else {}  # noqa: SIM118
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path} is not a whole safetensors file ({error}). Make it again.") from None
    if meta is None:
        raise ValueError(f"{path} does not say which network it holds; load a backbone and use load_into")
    return meta, state


def load_into(module, path, *, trust_pickle: bool = False, min_coverage: float = 0.95):
    """Load the weights of any checkpoint that fit into a network (being written)."""
    raise NotImplementedError
