"""Checkpoints: saved with all that is needed to rebuild, loaded safely, matched with a coverage report."""

import hashlib
import json
from pathlib import Path

import safetensors
import safetensors.torch
import torch

from biastransfer import paths
from biastransfer.checkpoint_files import read_tensors
from biastransfer.checkpoint_matching import Coverage, listing
from biastransfer.checkpoint_matching import match as match_tensors

__all__ = ["Coverage", "load_into", "read", "read_meta", "save", "state_hash"]

_KEY = "biastransfer"
_RESERVED = {"format", "architecture", "classes", "own_head", "transform", "source", "sha256", "seal"}


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
        If a name in ``meta`` is one that the file needs itself, or the backbone is a TorchScript program.
    """
    if backbone.scripted:
        raise ValueError(
            f"{backbone.name} is a TorchScript program, which no checkpoint can rebuild; load its weights "
            "into a network that has a name (load_backbone(path, architecture=…)) and save that"
        )
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
    record["seal"] = _seal(record)
    with paths.replacing(path) as partial:
        try:
            safetensors.torch.save_file(state, partial, metadata={_KEY: json.dumps(record)})
        except safetensors.SafetensorError as error:  # a full disk, which is no OSError there
            raise OSError(f"{path} could not be written ({error}); what was there stays whole.") from error
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
        raise ValueError(
            f"{path} does not say which network it holds; name it with "
            "load_backbone(path, architecture=…), or load a backbone and use load_into"
        )
    if meta.pop("seal", None) not in (None, _seal(meta)):  # files of before have none
        raise ValueError(f"what {path} says of its weights has changed; the file is damaged. Make it again.")
    return meta, state


def _seal(record: dict) -> str:
    rest = {name: value for name, value in record.items() if name != "seal"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def load_into(
    module,
    path: Path | str,
    *,
    trust_pickle: bool = False,
    min_coverage: float = 0.95,
    prefix: str | None = None,
    convert=None,
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
        Smallest share of the network's tensors, 0 to 1, that must match in name and shape. The head of a
        `Backbone` is not counted: it is filled if the file holds one that fits, and kept otherwise.
    prefix : str, optional
        Which part of the file to take; default the one under which most tensors match.
    convert : callable (module, dict of tensors) → dict of tensors, optional
        Renames a foreign layout; tried only where too few names match without it.

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
    head = getattr(module, "head", "") if not isinstance(module, torch.nn.Module) else ""
    module = module if isinstance(module, torch.nn.Module) else module.module
    found = read_tensors(path, trust_pickle=trust_pickle)
    best = match_tensors(module, found, prefix, head)
    if convert and best.report.coverage < min_coverage and (other := convert(module, found)):
        best = max(best, match_tensors(module, other, prefix, head), key=lambda one: one.report.coverage)
    report = best.report
    if report.coverage < min_coverage:
        besides = ", the head left out" if head else ""
        raise ValueError(
            f"{path} must hold at least {min_coverage:.0%} of the network's tensors{besides}; it holds "
            f"{report.matched} of {report.total} ({report.coverage:.1%}). "
            f"Without match: {listing(report.unmatched)}. "
            f"In the file and unused: {listing(report.unused)}. "
            "Build the network that the file was made with, or name the prefix."
        )
    if bad := [name for name, tensor in best.state.items() if not torch.isfinite(tensor).all()]:
        raise ValueError(f"weights must be finite; in {path} these are not: {listing(bad)}")
    module.load_state_dict(best.state, strict=False)
    return report
