"""Checkpoints: saved with all that is needed to rebuild, loaded safely, matched with a coverage report."""

import collections
import dataclasses
import hashlib
import json
import re
from pathlib import Path

import safetensors
import safetensors.torch
import torch

from biastransfer import paths
from biastransfer.checkpoint_files import read_tensors

_KEY = "biastransfer"
_RESERVED = {"format", "architecture", "classes", "own_head", "transform", "source", "sha256"}
_COUNTER = "num_batches_tracked"
_AVERAGED = re.compile(r"(^|[._])(encoder_k|ema|teacher|momentum|target)([._]|$)|_(ema|k)\.")


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

    Raises
    ------
    ValueError
        If a name in ``meta`` is one that the file needs itself.
    """
    if reserved := _RESERVED & set(meta):
        raise ValueError(f"{sorted(reserved)} are written by save itself; give your own values other names")
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
    """Return metadata and weights of the file ``path`` that `save` wrote, checked against its own hash."""
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


@dataclasses.dataclass(frozen=True)
class Coverage:
    """How much of a network a checkpoint filled, counters of batches left out: no output depends on them.

    Attributes
    ----------
    matched, total : int
        Tensors (weights, biases, running statistics) that were filled, and that the network has.
    coverage : float
        matched / total, 0 to 1.
    prefix : str
        What stands before the network's names in the file, with nesting: ``"state_dict.module.encoder_q."``.
    alternatives : tuple of str
        Other prefixes that would have matched as well, for instance a momentum encoder's.
    unmatched : tuple of str
        Tensors of the network that kept the values they had, each with the reason.
    unused : tuple of str
        Tensors of the file that went nowhere.
    """

    matched: int
    total: int
    coverage: float
    prefix: str
    alternatives: tuple[str, ...]
    unmatched: tuple[str, ...]
    unused: tuple[str, ...]


def load_into(
    module,
    path: Path | str,
    *,
    trust_pickle: bool = False,
    min_coverage: float = 0.95,
    prefix: str | None = None,
) -> Coverage:
    """Load the weights of any checkpoint into a network, matching names and saying how much matched.

    Parameters
    ----------
    module : torch.nn.Module or Backbone
        Filled in place; left as it is when an error is raised.
    path : path
        safetensors, what ``torch.save`` writes, or ``.npz``; tensors may lie in nested dictionaries,
        come from a GPU, and stand under a prefix such as ``module.encoder_q.`` or ``backbone.``.
    trust_pickle : bool
        Whether a file that holds more than tensors and plain values may run code of its own. Only for files
        from a source that you trust.
    min_coverage : float
        Smallest share of the network's tensors, 0 to 1, that must match in name and shape.
    prefix : str, optional
        Which part of the file to take; default the one under which most tensors match.

    Returns
    -------
    Coverage

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, needs trust, holds values that are not finite, or covers too little of the
        network; the message then lists what did not match.
    """
    module = module if isinstance(module, torch.nn.Module) else module.module
    found = read_tensors(path, trust_pickle=trust_pickle)
    wanted = {name: value for name, value in module.state_dict().items() if not name.endswith(_COUNTER)}
    chosen, others = _prefix(found, wanted) if prefix is None else (prefix, ())
    state, unmatched = {}, []
    for name, value in wanted.items():
        tensor = found.get(chosen + name)
        if tensor is None:
            unmatched.append(f"{name}: not in the file")
        elif tensor.shape != value.shape:
            unmatched.append(
                f"{name}: {tuple(tensor.shape)} in the file, {tuple(value.shape)} in the network"
            )
        else:
            state[name] = tensor
    used = {chosen + name for name in state}
    unused = sorted(name for name in found if name not in used and not name.endswith(_COUNTER))
    coverage = len(state) / len(wanted) if wanted else 0.0
    if coverage < min_coverage:
        raise ValueError(
            f"{path} must hold at least {min_coverage:.0%} of the network's tensors; it holds {len(state)} "
            f"of {len(wanted)} ({coverage:.1%}). Without match: {_listing(unmatched)}. "
            f"In the file and unused: {_listing(unused)}. "
            "Build the network that the file was made with, or name the prefix."
        )
    if bad := [name for name, tensor in state.items() if not torch.isfinite(tensor).all()]:
        raise ValueError(f"weights must be finite; in {path} these are not: {_listing(bad)}")
    module.load_state_dict(state, strict=False)
    return Coverage(len(state), len(wanted), coverage, chosen, others, tuple(unmatched), tuple(unused))


def _prefix(found: dict, wanted: dict) -> tuple[str, tuple[str, ...]]:
    """Return the prefix under which most tensors match in name and shape, and those that match as many."""
    votes = collections.Counter()
    for name, tensor in found.items():
        parts = name.split(".")
        for cut in range(len(parts)):
            value = wanted.get(".".join(parts[cut:]))
            if value is not None and value.shape == tensor.shape:
                votes["".join(f"{part}." for part in parts[:cut])] += 1
    if not votes:
        return "", ()
    most = max(votes.values())
    # of two networks in one file: the trained one before its moving average, then the shallower
    tied = sorted(
        (name for name in votes if votes[name] == most),
        key=lambda name: (bool(_AVERAGED.search(name)), len(name), name),
    )
    return tied[0], tuple(tied[1:])


def _listing(names: list[str], most: int = 12) -> str:
    more = f" … and {len(names) - most} more" if len(names) > most else ""
    return ("; ".join(names[:most]) or "nothing") + more
