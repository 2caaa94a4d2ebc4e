"""Finetuning a backbone on a multi-label target: epochs, best and last checkpoint, history, resuming."""

import copy
import dataclasses
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch

from biastransfer import backbones, distributed, paths
from biastransfer.backbones import Backbone
from biastransfer.finetune.devices import choose_device, make_scaler, stated_precision
from biastransfer.finetune.job import Job, prepare, row, save, score
from biastransfer.finetune.recipes import find_recipe
from biastransfer.finetune.resume import Progress, identity, load_progress, resume_file, save_progress
from biastransfer.finetune.schedules import make_optimizer, make_plateau, rate_at
from biastransfer.finetune.settings import Recipe
from biastransfer.finetune.tables import COLUMNS, history_file, value_of
from biastransfer.finetune.targets import Target
from biastransfer.finetune.trainable import load_trainable
from biastransfer.finetune.training import train_epoch


@dataclasses.dataclass(frozen=True)
class FinetuneResult:
    """One finetuning: history, checkpoints, circumstances; ``resumed_from`` epochs were not repeated."""

    history: pd.DataFrame = dataclasses.field(repr=False)
    best: Path
    last: Path
    csv: Path
    best_epoch: int
    device: str
    why: str
    seconds: float
    resumed_from: int
    notes: tuple[str, ...]


def finetune(
    backbone: str | Backbone,
    target: Target,
    *,
    run: str,
    target_name: str,
    recipe: str | Recipe = "demo",
    seed: int = 0,
    device: str | None = None,
    resume: bool = True,
    report: Callable[[str], None] | None = None,
) -> FinetuneResult:
    """Finetune a backbone with a new head on a target; write checkpoints and history.

    Parameters
    ----------
    backbone : str or Backbone
        A name that `backbones.load_backbone` knows, or a loaded one, for instance of a local file.
    target : Target
    run, target_name : str
        Name the files: ``paths.checkpoint(run, backbone's name, target_name, seed)`` and the history's CSV.
    recipe : str or Recipe
        A name as `find_recipe` knows it, or settings of one's own.
    seed : int
        Of the new head, the order of the pictures, augmentation and dropout.
    device : str, optional
        Default: the first CUDA device, else the CPU; under torchrun each rank's own CUDA device.
    resume : bool
        Go on where a killed training of exactly these settings stopped; False starts over.
    report : callable, optional
        Gets one sentence an epoch, on the first rank.

    Returns
    -------
    FinetuneResult
        ``history`` has the columns `tables.COLUMNS`; epoch 0 is the pretrained network with a new head.

    Raises
    ------
    ValueError
        Unknown backbone or recipe, a backbone that cannot be finetuned so (`load_trainable`), a precision
        that the device lacks, fewer pictures in a step than ranks × accumulate.
    DivergedError
        The loss or a score is not finite; names epoch, batch and pictures.
    ImageReadError
        A picture that cannot be read.

    Notes
    -----
    Multi-label binary cross-entropy over the known labels; all weights are trained, batch norm in train mode
    (it normalises by the step's batch). Training and validation see ``recipe.size`` pixels; the
    checkpoint keeps the backbone's own transform, so that embeddings before and after are taken at one size.
    On a CPU the same seed and number of threads give the same weights bit for bit, also after a kill; GPUs
    may differ in the last digits. The best epoch is the one with the highest ``recipe.monitor`` on the
    validation split, the earliest of equals; test numbers are that epoch's.

    Started by torchrun, the ranks train one network together: each step's batch is divided among them, batch
    norm sees all parts, every picture is scored once, the first rank writes. The weights are those of one
    process up to the order of sums; only dropout is drawn rank by rank. A training killed on some number of
    ranks may go on with another.
    """
    started = time.perf_counter()
    distributed.start(device)
    name = backbone if isinstance(backbone, str) else backbone.name
    recipe = find_recipe(recipe, name)
    device_, why = choose_device(device, recipe.precision)
    with torch.random.fork_rng(devices=[]):  # the caller's random state stays as it is
        pretrained = load_trainable(backbone, recipe)
        job = prepare(pretrained, target, recipe, device_, (run, name, target_name, seed))
    with stated_precision(recipe.precision):
        return _run(job, resume, report, why, started)


def _run(job: Job, resume: bool, report, why: str, started: float) -> FinetuneResult:
    recipe, module = job.recipe, job.backbone.module
    optimizer = make_optimizer(module, recipe, job.rate)
    scaler = make_scaler(job.device, recipe.precision)
    scheduler = make_plateau(optimizer, recipe)
    parts = {"module": module, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler}
    key = distributed.from_first(
        lambda: identity(job.backbone, job.target, recipe, job.seed, job.device.type)
    )
    file = resume_file(*job.keys)
    if not resume:
        _forget(file)
    progress = load_progress(file, key, **parts)
    resumed_from = progress.epoch
    if not progress.history:
        progress.history += score(job, job.target.val, 0)
    while not _finished(progress, recipe):
        _one_epoch(job, progress, optimizer, scheduler, scaler)
        save_progress(file, key, progress, **parts)
        if report and distributed.is_first():
            report(_sentence(job, progress))
    return _finish(job, progress, file, why, started, resumed_from)


def _finished(progress: Progress, recipe: Recipe) -> bool:
    waited = progress.epoch - progress.best_epoch
    return progress.epoch >= recipe.epochs or (recipe.stop_after is not None and waited >= recipe.stop_after)


def _one_epoch(job: Job, progress: Progress, optimizer, scheduler, scaler) -> None:
    """Train and score one epoch, keep it when it is the best; a kill repeats exactly this epoch."""
    recipe, epoch, train = job.recipe, progress.epoch + 1, job.target.train
    per_epoch = -(-len(train) // recipe.batch_size)

    def set_rate(number: int) -> None:
        step = (epoch - 1) * per_epoch + number
        for group in optimizer.param_groups:
            group["lr"] = rate_at(recipe, job.rate, step, recipe.epochs * per_epoch)

    loss = train_epoch(
        job.trained, optimizer, job.pictures["train"], train.labels, recipe, epoch=epoch, seed=job.seed,
        device=job.device, set_rate=None if scheduler else set_rate, scaler=scaler,
    )  # fmt: skip
    rows = [row(job, epoch, train, "loss", loss), *score(job, job.target.val, epoch)]
    value = value_of(rows, recipe.monitor)
    if scheduler:
        scheduler.step(value)
    if recipe.keep == "last" or value > progress.best_value or not progress.best_epoch:
        progress.best_epoch, progress.best_value = epoch, value
        save(job, "best", epoch, rows)
    progress.epoch = epoch
    progress.history += rows


def _finish(job: Job, progress, file: Path, why: str, started: float, resumed_from: int) -> FinetuneResult:
    """Write the last checkpoint, score the kept one on test, write the history, forget the progress."""
    last = save(job, "last", progress.epoch, _latest(progress))
    best = paths.checkpoint(*job.keys)
    kept = copy.deepcopy(job.backbone.module)
    kept.load_state_dict(distributed.from_first(lambda: _weights(best)))
    rows = progress.history + score(job, job.target.test, progress.best_epoch, kept)
    history, csv = pd.DataFrame(rows, columns=COLUMNS), history_file(*job.keys)
    if distributed.is_first():
        paths.write_csv(history, csv)
    _forget(file)
    return FinetuneResult(
        history, best, last, csv, progress.best_epoch, str(job.device), why,
        time.perf_counter() - started, resumed_from, (*job.target.notes, *job.target.gaps()),
    )  # fmt: skip


def _weights(checkpoint: Path) -> dict:
    """Return the weights of a network as it is rebuilt from a checkpoint, by whoever uses it next."""
    with torch.random.fork_rng(devices=[]):
        return backbones.load_backbone(checkpoint).module.state_dict()


def _forget(file: Path) -> None:
    if distributed.is_first():
        file.unlink(missing_ok=True)


def _latest(progress: Progress) -> list[list]:
    """Return the history's rows of the last epoch."""
    column = COLUMNS.index("epoch")
    return [entry for entry in progress.history if entry[column] == progress.epoch]


def _sentence(job: Job, progress: Progress) -> str:
    rows = [entry for entry in _latest(progress) if entry[COLUMNS.index("split")] == "val"]
    return (
        f"{job.keys[1]} seed {job.seed}, epoch {progress.epoch} of {job.recipe.epochs}: "
        f"validation mAP {value_of(rows, 'mAP'):.3f} (chance {value_of(rows, 'chance mAP'):.3f})"
    )
