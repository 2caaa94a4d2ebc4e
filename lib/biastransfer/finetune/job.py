"""One finetuning's fixed parts: the network, the target's pictures, where it computes, what is written."""

import dataclasses
from pathlib import Path

import torch
from torch import nn

from biastransfer import backbones, checkpoints, distributed, paths
from biastransfer.backbones import Backbone
from biastransfer.finetune import batch_norm
from biastransfer.finetune.pictures import Pictures, open_pictures
from biastransfer.finetune.scoring import predict, scores
from biastransfer.finetune.settings import Recipe
from biastransfer.finetune.tables import value_of
from biastransfer.finetune.targets import Split, Target


@dataclasses.dataclass(frozen=True)
class Job:
    """What stays fixed through one finetuning; ``trained`` is the backbone's module as ranks share it."""

    backbone: Backbone
    trained: nn.Module
    target: Target
    recipe: Recipe
    rate: float
    device: torch.device
    pictures: dict[str, Pictures]
    keys: tuple  # run, backbone, target, seed: the first columns of the history and the checkpoint's path

    @property
    def seed(self) -> int:
        """Return the seed."""
        return self.keys[-1]


def prepare(pretrained: Backbone, target: Target, recipe: Recipe, device: torch.device, keys: tuple) -> Job:
    """Give a backbone its new head, decode the pictures, put the network where it computes.

    Parameters
    ----------
    pretrained : Backbone
    target : Target
    recipe : Recipe
    device : torch.device
    keys : tuple
        run, backbone, target, seed.

    Raises
    ------
    ValueError
        The recipe refuses unknown labels and the target has some.
    """
    target = target.limit(recipe.max_train, recipe.max_val, recipe.max_test)
    unknown = int(target.counts()["unknown"].sum())
    if recipe.unknown == "refused" and unknown:
        raise ValueError(
            f"recipe {recipe.name!r} needs a target without unknown labels; {unknown} are. "
            "Read the target with reading='released'."
        )
    backbone = backbones.replace_head(pretrained, target.classes, seed=keys[-1])
    transform = recipe.seen(backbone.transform)
    pictures = {split.name: open_pictures(split.files, transform) for split in target.splits}
    backbone.module.to(device=device, memory_format=torch.channels_last)
    module = batch_norm.share(backbone.module, device)
    backbone = dataclasses.replace(backbone, module=module, transform=recipe.embedded(backbone.transform))
    trained = distributed.wrapped(module, device)
    return Job(backbone, trained, target, recipe, recipe.rate(keys[1]), device, pictures, keys)


def row(job: Job, epoch: int, split: Split, metric: str, value: float, of: str = "") -> list:
    """Return one row of the history: a ``metric`` of ``job``'s ``split`` after an ``epoch``, its ``value``.

    ``of`` is the class where the metric is one class's.
    """
    return [*job.keys, job.recipe.name, epoch, split.name, metric, of, float(value), len(split)]


def score(job: Job, split: Split, epoch: int, module: nn.Module | None = None) -> list[list]:
    """Return the history's rows of a split, the same on every rank.

    Parameters
    ----------
    job : Job
    split : Split
    epoch : int
    module : torch.nn.Module, optional
        Default the network in training.

    Notes
    -----
    The first rank computes the values and tells the others: what follows from them, such as stopping, may not
    depend on the last digits of two machines.
    """
    logits = predict(module or job.backbone.module, job.pictures[split.name], job.device, job.recipe)
    found = distributed.from_first(lambda: scores(split, logits, job.target.classes, epoch))
    return [row(job, epoch, split, metric, value, of) for metric, of, value in found]


def save(job: Job, which: str, epoch: int, rows: list[list]) -> Path:
    """Write the network as checkpoint ``which`` of a ``job``; the first rank does.

    The file names the ``epoch`` and the validation scores among the history's ``rows``.
    """
    path = paths.checkpoint(*job.keys, which=which)
    if not distributed.is_first():
        return path
    return checkpoints.save(
        job.backbone,
        path,
        recipe=dataclasses.asdict(job.recipe),
        seed=job.seed,
        epoch=epoch,
        target=job.keys[2],
        validation={metric: value_of(rows, metric) for metric in ("mAP", "micro-F1")},
    )
