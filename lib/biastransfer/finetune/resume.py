"""What a killed finetuning needs to go on, in one file: weights, optimiser, epoch and history."""

import hashlib
import json
import pickle
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from biastransfer import paths
from biastransfer.backbones import Backbone
from biastransfer.checkpoints import state_hash
from biastransfer.finetune.recipes import Recipe
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


def save_progress(path: Path, key: str, progress: Progress, module, optimizer, scheduler) -> None:
    """Write the state after an epoch.

    Parameters
    ----------
    path : Path
        Replaced whole: a full disk or a kill leaves the previous epoch's file.
    key : str
        From `identity`.
    progress : Progress
    module, optimizer : torch.nn.Module, torch.optim.Optimizer
    scheduler : torch.optim.lr_scheduler.ReduceLROnPlateau or None

    Notes
    -----
    Random states are not in it: every epoch's shuffling, augmentation and dropout follow from (seed, epoch).
    """
    state = {
        "key": key,
        "progress": asdict(progress),
        "module": module.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict() if scheduler else {},
    }
    with paths.replacing(path) as partial:
        torch.save(state, partial)


def load_progress(path: Path, key: str, module, optimizer, scheduler) -> Progress:
    """Put a saved state back, where ``path`` holds one of this very training.

    Parameters
    ----------
    path : Path
        May not exist.
    key : str
        From `identity`; a file with another key belongs to other settings and is left unread.
    module, optimizer : torch.nn.Module, torch.optim.Optimizer
        Changed in place.
    scheduler : torch.optim.lr_scheduler.ReduceLROnPlateau or None
        Changed in place.

    Returns
    -------
    Progress
        A fresh one (epoch 0, no history) when there is nothing to resume.
    """
    if not path.is_file():
        return Progress()
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, pickle.UnpicklingError, zipfile.BadZipFile):
        return Progress()  # not whole, although always written whole: the training starts over
    if not isinstance(state, dict) or state.get("key") != key:
        return Progress()
    module.load_state_dict(state["module"])
    optimizer.load_state_dict(state["optimizer"])
    if scheduler:
        scheduler.load_state_dict(state["scheduler"])
    return Progress(**state["progress"])
