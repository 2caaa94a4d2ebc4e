"""What a killed finetuning needs to go on, in one file: weights, optimiser, epoch and history."""

import hashlib
import json
import pickle
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from biastransfer import distributed, paths
from biastransfer.backbones import Backbone
from biastransfer.checkpoints import state_hash
from biastransfer.finetune.settings import Recipe
from biastransfer.finetune.targets import Target, fingerprint


@dataclass
class Progress:
    """Where a finetuning stands: ``epoch`` finished ones, ``history`` rows, the best epoch and its value."""

    epoch: int = 0
    best_epoch: int = 0
    best_value: float = float("-inf")
    history: list[list] = field(default_factory=list)


def resume_file(run: str, backbone: str, target: str, seed: int) -> Path:
    """Return the file of an unfinished finetuning, named by run, backbone, target and seed."""
    return paths.checkpoint(run, backbone, target, seed, "resume").with_suffix(".pt")


def identity(backbone: Backbone, target: Target, recipe: Recipe, seed: int, device: str) -> str:
    """Return 64 hex digits of all that decides the final weights, so that no other training resumes a file.

    Parameters
    ----------
    backbone : Backbone
        With its new head, before training: its weights and transform count.
    target : Target
        Its file names and sizes (scenes drawn anew keep their names), labels and classes count.
    recipe, seed, device
        Count with every field.
    """
    record = {
        "weights": state_hash(backbone.module.state_dict()),
        "transform": backbone.transform.to_dict(),
        "target": fingerprint(target),
        "sizes": [Path(file).stat().st_size for split in target.splits for file in split.files],
        "recipe": asdict(recipe),
        "seed": seed,
        "device": device,
        "torch": torch.__version__,
    }
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def save_progress(path: Path, key: str, progress: Progress, **parts) -> None:
    """Write the state after an epoch; the first rank does.

    Parameters
    ----------
    path : Path
        Replaced whole: a full disk or a kill leaves the previous epoch's file.
    key : str
        From `identity`.
    progress : Progress
    **parts : torch.nn.Module, torch.optim.Optimizer …
        All that has a ``state_dict``, by a name of its own; None is left out.

    Notes
    -----
    Random states are not in it: every epoch's shuffling, augmentation and dropout follow from (seed, epoch).
    """
    if not distributed.is_first():
        return
    states = {name: part.state_dict() for name, part in parts.items() if part is not None}
    state = {"key": key, "progress": asdict(progress), **states}
    with paths.replacing(path) as partial:
        try:
            torch.save(state, partial)
        except RuntimeError as error:  # a full disk, which is no OSError there
            raise OSError(
                f"{path} could not be written ({error}); the state of the epoch before stays whole. If the "
                "disk is full, free some space and run the same again."
            ) from error


def load_progress(path: Path, key: str, **parts) -> Progress:
    """Put a saved state back, where ``path`` holds one of this very training.

    Parameters
    ----------
    path : Path
        May not exist. The first rank reads it for all.
    key : str
        From `identity`; a file with another key belongs to other settings and is left unread.
    **parts : torch.nn.Module, torch.optim.Optimizer …
        As `save_progress` got them; changed in place.

    Returns
    -------
    Progress
        A fresh one (epoch 0, no history) when there is nothing to resume.
    """
    state = distributed.from_first(lambda: _read(path, key))
    if state is None:
        return Progress()
    for name, part in parts.items():
        if part is not None:
            part.load_state_dict(state[name])
    return Progress(**state["progress"])


def _read(path: Path, key: str) -> dict | None:
    if not path.is_file():
        return None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, pickle.UnpicklingError, zipfile.BadZipFile):
        return None  # not whole, although always written whole: the training starts over
    return state if isinstance(state, dict) and state.get("key") == key else None
