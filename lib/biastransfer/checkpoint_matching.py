"""Tensors of a file found for those of a network: under which prefix, how many, and which are missing."""

import collections
import dataclasses
import re
from collections.abc import Sequence
from typing import NamedTuple

import torch

_COUNTER = "num_batches_tracked"
_AVERAGED = re.compile(r"(^|[._])(encoder_k|ema|teacher|momentum|target)([._]|$)|_(ema|k)\.")


@dataclasses.dataclass(frozen=True)
class Coverage:
    """How much of a network a checkpoint filled, counters of batches left out: no output depends on them.

    Attributes
    ----------
    matched, total : int
        Tensors (weights, biases, running statistics) that were filled, and that the network has; of a
        `Backbone` those of its head are not counted.
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
    head : str
        What became of a `Backbone`'s head: "filled", "none" (it has no weights), or "left as it was" with the
        reasons; "" for a bare module, whose head counts like the rest.
    """

    matched: int
    total: int
    coverage: float
    prefix: str
    alternatives: tuple[str, ...]
    unmatched: tuple[str, ...]
    unused: tuple[str, ...]
    head: str = ""


class Match(NamedTuple):
    """The tensors to load under the network's names, and the report."""

    state: dict[str, torch.Tensor]
    report: Coverage


def match(module, found: dict, prefix: str | None, head: str) -> Match:
    """Find a tensor of the file for each of the network; a head is taken whole or not at all.

    Parameters
    ----------
    module : torch.nn.Module
        Left as it is.
    found : dict of str to tensor
        All tensors of the file.
    prefix : str or None
        What stands before the network's names; None finds the one under which most match.
    head : str
        Submodule whose tensors do not count; "" if all do.

    Returns
    -------
    Match
    """
    wanted = {name: value for name, value in module.state_dict().items() if not name.endswith(_COUNTER)}
    heads = {name for name in wanted if head and name.startswith(f"{head}.")}
    body = {name: value for name, value in wanted.items() if name not in heads}
    chosen, others = _prefix(found, body) if prefix is None else (prefix, ())
    state, unmatched = {}, {}
    for name, value in wanted.items():
        tensor = found.get(chosen + name)
        if tensor is None:
            unmatched[name] = "not in the file"
        elif tensor.shape != value.shape:
            unmatched[name] = f"{tuple(tensor.shape)} in the file, {tuple(value.shape)} in the network"
        else:
            state[name] = tensor
    kept = [f"{name}: {why}" for name, why in unmatched.items() if name in heads]
    if kept:
        state = {name: tensor for name, tensor in state.items() if name not in heads}
    matched = sum(name in body for name in state)
    used = {chosen + name for name in state}
    report = Coverage(
        matched,
        len(body),
        matched / len(body) if body else 0.0,
        chosen,
        others,
        tuple(f"{name}: {why}" for name, why in unmatched.items() if name in body),
        tuple(sorted(name for name in found if name not in used and not name.endswith(_COUNTER))),
        "" if not head else f"left as it was ({listing(kept)})" if kept else "filled" if heads else "none",
    )
    return Match(state, report)


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


def listing(names: Sequence[str], most: int = 12) -> str:
    """Return the first ``most`` of some names in one line, and how many more there are."""
    more = f" … and {len(names) - most} more" if len(names) > most else ""
    return ("; ".join(names[:most]) or "nothing") + more
