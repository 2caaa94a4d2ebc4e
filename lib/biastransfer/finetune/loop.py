"""Finetuning a backbone on a multi-label target: epochs, best and last checkpoint, history, resuming."""

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from biastransfer import backbones, checkpoints, paths
from biastransfer.backbones import Backbone
from biastransfer.finetune.evaluation import (
    binary_cross_entropy,
    chance_map,
    mean_average_precision,
    micro_f1,
    sigmoid,
)
from biastransfer.finetune.pictures import open_pictures
from biastransfer.finetune.recipes import Recipe, find_recipe
from biastransfer.finetune.resume import identity, load_progress, resume_file, save_progress
from biastransfer.finetune.tables import COLUMNS, history_file, value_of
from biastransfer.finetune.targets import Split, Target
from biastransfer.finetune.training import (
    DivergedError,
    choose_device,
    make_optimizer,
    make_plateau,
    predict,
    rate_at,
    train_epoch,
)


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


@dataclasses.dataclass(frozen=True)
class _Job:
    """What stays fixed through one finetuning."""

    backbone: Backbone
    target: Target
    recipe: Recipe
    rate: float
    device: torch.device
    pictures: dict
    keys: tuple  # run, backbone, target, seed: the first columns of the history and the checkpoint's path

    @property
    def seed(self) -> int:
        return self.keys[-1]


def finetune(
    backbone_name: str,
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
    backbone_name : str
        A name of `backbones.list_backbones`.
    target : Target
    run, target_name : str
        Name the files: ``paths.checkpoint(run, backbone_name, target_name, seed)`` and the history's CSV.
    recipe : str or Recipe
        A name as `find_recipe` knows it, or settings of one's own.
    seed : int
        Of the new head, the order of the pictures, augmentation and dropout.
    device : str, optional
        Default: the first CUDA device, else the CPU.
    resume : bool
        Go on where a killed training of exactly these settings stopped; False starts over.
    report : callable, optional
        Gets one sentence an epoch.

    Returns
    -------
    FinetuneResult
        ``history`` has the columns `tables.COLUMNS`; epoch 0 is the pretrained network with a new head.

    Raises
    ------
    ValueError
        Unknown backbone or recipe, labels that do not fit the classes.
    DivergedError
        The loss or a score is not finite; names epoch, batch and pictures.
    ImageReadError
        A picture that cannot be read.

    Notes
    -----
    Multi-label binary cross-entropy over the known labels; all weights are trained, batch norm in train mode
    (it normalises by batches of 8 to 16 here). Training and validation see ``recipe.size`` pixels; the
    checkpoint keeps the backbone's own transform, so that embeddings before and after are taken at one size.
    On a CPU the same seed and number of threads give the same weights bit for bit, also after a kill; GPUs
    may differ in the last digits. The best epoch is the one with the highest ``recipe.monitor`` on the
    validation split, the earliest of equals; test numbers are that epoch's.
    """
    started = time.perf_counter()
    recipe = find_recipe(recipe, backbone_name)
    device_, why = choose_device(device)
    job = _prepare(backbone_name, target, recipe, device_, (run, backbone_name, target_name, seed))
    module = job.backbone.module
    optimizer = make_optimizer(module, recipe, job.rate)
    scheduler = make_plateau(optimizer, recipe)
    key = identity(job.backbone, job.target, recipe, seed, device_.type)
    file = resume_file(*job.keys)
    if not resume:
        file.unlink(missing_ok=True)
    progress = load_progress(file, key, module, optimizer, scheduler)
    resumed_from = progress.epoch
    if not progress.history:
        progress.history += _score(job, job.target.val, 0)
    while not _finished(progress, recipe):
        _one_epoch(job, progress, optimizer, scheduler)
        save_progress(file, key, progress, module, optimizer, scheduler)
        if report:
            report(_sentence(job, progress))
    return _finish(job, progress, file, why, started, resumed_from)


def _prepare(backbone_name, target: Target, recipe: Recipe, device, keys) -> _Job:
    target = target.limit(recipe.max_train, recipe.max_val, recipe.max_test)
    with torch.random.fork_rng(devices=[]):  # the caller's random state stays as it is
        pretrained = backbones.load_backbone(backbone_name)
        backbone = backbones.replace_head(pretrained, target.classes, seed=keys[-1])
    backbone.module.to(device=device, memory_format=torch.channels_last)
    transform = backbone.transform.with_size(recipe.size) if recipe.size else backbone.transform
    pictures = {split.name: open_pictures(split.files, transform) for split in target.splits}
    return _Job(backbone, target, recipe, recipe.rate(backbone_name), device, pictures, keys)


def _finished(progress, recipe: Recipe) -> bool:
    waited = progress.epoch - progress.best_epoch
    return progress.epoch >= recipe.epochs or (recipe.stop_after is not None and waited >= recipe.stop_after)


def _one_epoch(job: _Job, progress, optimizer, scheduler) -> None:
    """Train and score one epoch, keep it when it is the best; a kill repeats exactly this epoch."""
    recipe, epoch, train = job.recipe, progress.epoch + 1, job.target.train
    per_epoch = -(-len(train) // recipe.batch_size)

    def set_rate(number: int) -> None:
        step = (epoch - 1) * per_epoch + number
        for group in optimizer.param_groups:
            group["lr"] = rate_at(recipe, job.rate, step, recipe.epochs * per_epoch)

    loss = train_epoch(
        job.backbone.module, optimizer, job.pictures["train"], train.labels, recipe,
        epoch=epoch, seed=job.seed, device=job.device, set_rate=None if scheduler else set_rate,
    )  # fmt: skip
    rows = [_row(job, epoch, train, "loss", loss), *_score(job, job.target.val, epoch)]
    value = value_of(rows, recipe.monitor)
    if scheduler:
        scheduler.step(value)
    if value > progress.best_value or not progress.best_epoch:
        progress.best_epoch, progress.best_value = epoch, value
        _save(job, "best", epoch, rows)
    progress.epoch = epoch
    progress.history += rows


def _row(job: _Job, epoch: int, split: Split, metric: str, value: float, of: str = "") -> list:
    return [*job.keys, job.recipe.name, epoch, split.name, metric, of, float(value), len(split)]


def _score(job: _Job, split: Split, epoch: int, module=None) -> list[list]:
    """Return the history rows of one split: loss, mAP, micro-F1, chance, every class's precision."""
    logits = predict(module or job.backbone.module, job.pictures[split.name], job.device, job.recipe)
    if not np.isfinite(logits).all():
        raise DivergedError(
            f"scores must stay finite; after epoch {epoch} those of the {split.name} split are not. "
            "Lower the learning rate."
        )
    macro, per_class = mean_average_precision(split.labels, logits)
    values = {
        "loss": binary_cross_entropy(split.labels, logits),
        "mAP": macro,
        "micro-F1": micro_f1(split.labels, sigmoid(logits)),
        "chance mAP": chance_map(split.labels),
    }
    rows = [_row(job, epoch, split, metric, value) for metric, value in values.items()]
    return rows + [
        _row(job, epoch, split, "AP", value, name) for name, value in zip(job.target.classes, per_class)
    ]


def _save(job: _Job, which: str, epoch: int, rows: list[list]) -> Path:
    return checkpoints.save(
        job.backbone,
        paths.checkpoint(*job.keys, which),
        recipe=dataclasses.asdict(job.recipe),
        seed=job.seed,
        epoch=epoch,
        target=job.keys[2],
        validation={metric: value_of(rows, metric) for metric in ("mAP", "micro-F1")},
    )


def _finish(job: _Job, progress, file: Path, why: str, started: float, resumed_from: int) -> FinetuneResult:
    """Write the last checkpoint, score the best one on test, write the history, forget the progress."""
    last = _save(job, "last", progress.epoch, progress.history[-4 - len(job.target.classes) :])
    best = paths.checkpoint(*job.keys)
    with torch.random.fork_rng(devices=[]):
        chosen = backbones.load_backbone(best).module
    chosen.to(device=job.device, memory_format=torch.channels_last)
    rows = progress.history + _score(job, job.target.test, progress.best_epoch, chosen)
    history = pd.DataFrame(rows, columns=COLUMNS)
    csv = paths.write_csv(history, history_file(*job.keys))
    file.unlink(missing_ok=True)
    return FinetuneResult(
        history, best, last, csv, progress.best_epoch, str(job.device), why,
        time.perf_counter() - started, resumed_from, (*job.target.notes, *job.target.gaps()),
    )  # fmt: skip


def _sentence(job: _Job, progress) -> str:
    rows = progress.history[-4 - len(job.target.classes) :]
    return (
        f"{job.keys[1]} seed {job.seed}, epoch {progress.epoch} of {job.recipe.epochs}: "
        f"validation mAP {value_of(rows, 'mAP'):.3f} (chance {value_of(rows, 'chance mAP'):.3f})"
    )
