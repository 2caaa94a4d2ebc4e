"""The planted-bias experiment: one pool of pictures, many doses, every network's embeddings."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from biastransfer.backbones import Backbone, load_backbone
from biastransfer.finetune.settings import Recipe
from biastransfer.planted.doses import checked_dose, men, realised
from biastransfer.planted.measures import Seen, look
from biastransfer.planted.scenes import Pool, classes, draw_analysis, draw_pool
from biastransfer.planted.stage import Stage, new_stage, stage_inputs, train, vectors

OBJECTS = ("car", "cat", "handbag", "skateboard")  # two of each planted group
# what becomes of the bias of the first training in the second, as shares of the highest dose
CONSTRUCTIONS = {"none": (0, 0), "kept": (1, 1), "added": (0, 1), "flipped": (1, -1), "removed": (1, 0)}
PRETRAINED = "pretrained"
_SECOND = 1000  # added to the seed of a second training: other twins, another order


@dataclass(frozen=True)
class Network:
    """How one network came about: ``start`` is a dose, or "pretrained"; ``realised`` the dose counted.

    ``construction`` is a key of `CONSTRUCTIONS` after a second training, else ""; ``how`` says whether the
    last ``"stage"`` was trained or the ``"full"`` network; ``loss`` the mean of the last steps.
    """

    start: float | str
    dose: float
    seed: int
    shuffled: bool
    construction: str
    how: str
    realised: float
    loss: float

    @property
    def null(self) -> bool:
        """Whether nothing was planted: dose 0, or the people shuffled, straight from the pretrained network."""
        return not self.construction and (self.shuffled or self.dose == 0)


@dataclass(frozen=True)
class Experiment:
    """What `experiment` gives: networks with their embeddings, each with those of the network before it."""

    networks: list[Network]
    seen: list[Seen]
    before: list[Seen]
    sizes: dict[str, int]
    embeddings: list[dict[str, np.ndarray]]
    notes: dict[str, int | float | str]


@dataclass(frozen=True)
class Bench:
    """What all trainings share: pictures, stored inputs of the last stage, settings."""

    backbone: Backbone
    pool: Pool
    inputs: torch.Tensor
    analysis: dict[str, torch.Tensor]
    labels: str
    recipe: Recipe

    def fit(self, stage: Stage, dose: float, seed: int, shuffled: bool = False) -> tuple[float, float]:
        """Train a ``stage`` at a ``dose`` in place; return the dose that was there and the last loss."""
        who = men(self.pool.objects, dose, seed=seed, shuffled=shuffled)
        rows = 2 * np.arange(len(who)) + ~who
        truth = self.pool.labels(who, self.labels)
        losses = train(stage, self.inputs[rows], truth, self.recipe, rate=self.recipe.lr, seed=seed)
        return realised(self.pool.objects, who), float(np.mean(losses[-8:]))

    def embedded(self, stage: Stage) -> dict[str, np.ndarray]:
        """Return class → embeddings of the analysis set by a ``stage``."""
        return {name: vectors(stage, inputs) for name, inputs in self.analysis.items()}


def recipe(epochs: int, rate: float, size: int) -> Recipe:
    """Return the experiment's recipe: ``epochs``, peak ``rate``, side ``size``; nothing is augmented."""
    return Recipe(
        "planted", epochs=epochs, lr=rate, size=size, schedule="cosine", warmup=0.1, flip=0.0, keep="last"
    )


def experiment(
    backbone: str,
    *,
    doses: Sequence[float],
    seeds: Sequence[int],
    shuffled: int = 4,
    constructions: Sequence[str] = tuple(CONSTRUCTIONS),
    pairs: int = 20,
    pictures: int = 60,
    labels: str = "gender",
    epochs: int = 8,
    rate: float = 0.4,
    size: int = 128,
    seed: int = 0,
) -> Experiment:
    """Finetune the last stage of a backbone at every dose and seed, and embed the analysis set.

    Parameters
    ----------
    backbone : str
        ``efficientnet_lite0`` to 2, or ``squeezenet1_1``.
    doses : sequence of float
        In [-1, 1], among them 0 and, with ``constructions``, the negative of the highest.
    seeds : sequence of int
        Of each training: which twins, the new head, the order of the pictures.
    shuffled : int
        Networks more whose people were exchanged at random after dosing with the highest dose, seeds 0, 1, ….
    constructions : sequence of str
        Of `CONSTRUCTIONS`: second trainings, one a seed, from the network of the first dose on.
    pairs, pictures : int
        Training pictures an object and dose; analysis pictures a class.
    labels : {"gender", "person"}
        See `Pool.labels`.
    epochs, rate, size : int, float, int
        Of the recipe.
    seed : int
        Of the pictures.

    Returns
    -------
    Experiment

    Raises
    ------
    ValueError
        A dose out of range or missing, no seed, an unknown construction.
    """
    doses = _checked(doses, seeds, constructions)
    bench = _bench(backbone, pairs, pictures, labels, recipe(epochs, rate, size), seed)
    told, found = [], []
    stages: dict[tuple[float, int], Stage] = {}
    plan = [(dose, k, False) for k in seeds for dose in doses]
    plan += [(max(doses), k, True) for k in range(shuffled)]
    for dose, k, mixed in plan:
        stage = new_stage(bench.backbone, classes(labels), seed=k)
        there, loss = bench.fit(stage, dose, k, mixed)
        told.append(Network(PRETRAINED, dose, k, mixed, "", "stage", there, loss))
        found.append(bench.embedded(stage))
        if not mixed and dose in (0, max(doses)):
            stages[dose, k] = stage
    before = [look(bench.embedded(new_stage(bench.backbone, classes(labels))))] * len(told)
    seen = [look(one) for one in found]
    of_first = {(one.dose, one.seed): place for place, one in enumerate(told) if not one.shuffled}
    for name in constructions:
        first, second = (share * max(doses) for share in CONSTRUCTIONS[name])
        for k in seeds:
            stage = stages[first, k].copy()
            there, loss = bench.fit(stage, second, k + _SECOND)
            told.append(Network(first, second, k, False, name, "stage", there, loss))
            found.append(bench.embedded(stage))
            before.append(seen[of_first[first, k]])
    seen += [look(one) for one in found[len(seen) :]]
    sizes = {name: len(z) for name, z in found[0].items()}
    return Experiment(told, seen, before, sizes, found, _notes(bench, backbone))


def _checked(doses, seeds, constructions) -> list[float]:
    doses = sorted({checked_dose(dose) for dose in doses})
    if unknown := sorted(set(constructions) - set(CONSTRUCTIONS)):
        raise ValueError(
            f"unknown construction {', '.join(unknown)}; known: {', '.join(CONSTRUCTIONS)}. Name those."
        )
    if 0 not in doses or len(doses) < 3 or not seeds:
        raise ValueError(
            f"the experiment needs three doses, 0 among them, and a seed; got {doses} and seeds {list(seeds)}."
        )
    return doses


def _bench(name: str, pairs: int, pictures: int, labels: str, used: Recipe, seed: int) -> Bench:
    pool, files = draw_pool(pairs, seed=seed), draw_analysis(OBJECTS, pictures, seed=seed)
    backbone = load_backbone(name)
    inputs = stage_inputs(backbone, pool.files.ravel().tolist(), used.size)
    analysis = {kind: stage_inputs(backbone, listed, used.size) for kind, listed in files.items()}
    return Bench(backbone, pool, inputs, analysis, labels, used)


def _notes(bench: Bench, name: str) -> dict[str, int | float | str]:
    stage = new_stage(bench.backbone, classes(bench.labels))
    trained = sum(p.numel() for part in (stage.body, stage.head) for p in part.parameters())
    total = sum(p.numel() for p in bench.backbone.module.parameters())
    return {
        "backbone": name, "labels": bench.labels, "training": len(bench.pool.contents),
        "pictures": min(map(len, bench.analysis.values())), "parameters_trained": trained,
        "parameters": total,
    }  # fmt: skip
