"""The planted-bias experiment: one pool of pictures, many doses, every network's embeddings."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from biastransfer.backbones import Backbone, load_backbone
from biastransfer.finetune.recipes import RECIPES
from biastransfer.finetune.settings import Recipe
from biastransfer.planted.doses import checked_dose, men, realised
from biastransfer.planted.measures import Seen, look
from biastransfer.planted.scenes import Pool, classes, draw_analysis, draw_pool
from biastransfer.planted.stage import (
    Pixels,
    Stage,
    new_stage,
    read_pixels,
    stage_inputs,
    train,
    usual_rate,
    vectors,
)

OBJECTS = ("car", "cat", "handbag", "skateboard")  # two of each planted group
# what becomes of the bias of the first training in the second, as shares of the highest dose
CONSTRUCTIONS = {"none": (0, 0), "kept": (1, 1), "added": (0, 1), "flipped": (1, -1), "removed": (1, 0)}
PRETRAINED, FIRST, FULL, POOL = "pretrained", "first", "full", "training pool"
_SECOND = 1000  # added to the seed of a second training: other twins, another order


@dataclass(frozen=True)
class Network:
    """How one network came about: ``start`` is a dose, or "pretrained"; ``realised`` the dose counted.

    ``construction`` is a key of `CONSTRUCTIONS` after a second training, else "first"; ``how`` says whether
    the last ``"stage"`` was trained or the ``"full"`` network; ``loss`` the mean of the last steps.
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
        """Whether nothing was planted by a first training of the last stage (dose 0, or people shuffled)."""
        return self.direct and (self.shuffled or self.dose == 0)

    @property
    def direct(self) -> bool:
        """Whether only the last stage was trained, straight from the pretrained network."""
        return self.construction == FIRST and self.how == "stage"

    @property
    def plain(self) -> tuple[float, int] | None:
        """Return dose and seed of a `direct` network that was not shuffled, else None."""
        return (self.dose, self.seed) if self.direct and not self.shuffled else None


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
    pixels: dict[str, Pixels]
    stored: dict[str, torch.Tensor]
    labels: str
    recipe: Recipe

    def start(self, seed: int = 0, how: str = "stage") -> Stage:
        """Return a pretrained stage with a new head: the last, or by ``how`` the ``full`` network."""
        return new_stage(self.backbone, classes(self.labels), seed=seed, full=how == FULL)

    def fit(self, stage: Stage, dose: float, seed: int, mixed: bool, how: str) -> tuple[float, float]:
        """Train a ``stage`` at a ``dose`` in place; return the dose that was there and the last loss."""
        who = men(self.pool.objects, dose, seed=seed, shuffled=mixed)
        rows = 2 * np.arange(len(who)) + ~who
        inputs, rate = self.stored[POOL][rows], self.recipe.lr
        if how == FULL:
            inputs, rate = self.pixels[POOL].of(rows), RECIPES["demo"].rate(self.backbone.name)
        truth = self.pool.labels(who, self.labels)
        losses = train(stage, inputs, truth, self.recipe, rate=rate, seed=seed)
        return realised(self.pool.objects, who), float(np.mean(losses[-8:]))

    def embedded(self, stage: Stage, how: str = "stage") -> dict[str, np.ndarray]:
        """Return class → embeddings of the analysis set by a ``stage``."""
        source = self.pixels if how == FULL else self.stored
        return {name: vectors(stage, inputs) for name, inputs in source.items() if name != POOL}


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
    full: Sequence[float] = (),
    pairs: int = 20,
    pictures: int = 60,
    labels: str = "gender",
    epochs: int = 8,
    rate: float | None = None,
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
    full : sequence of float
        Doses, also trained as full networks, a seed each, at the demo recipe's rate.
    pairs, pictures : int
        Training pictures an object and dose; analysis pictures a class.
    labels : {"gender", "person"}
        See `Pool.labels`.
    epochs, size : int
        Of the recipe; pixels a side.
    rate : float, optional
        Peak learning rate; default that of `stage.RATES`.
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
    doses = _checked(doses, seeds, constructions, full)
    used = recipe(epochs, rate or usual_rate(backbone), size)
    bench = _bench(backbone, pairs, pictures, labels, used, seed)
    pretrained = bench.embedded(bench.start())
    made = _first(bench, doses, seeds, shuffled, full)
    for name in constructions:
        first, second = (share * max(doses) for share in CONSTRUCTIONS[name])
        for k in seeds:
            start = next(one for one in made if one[0].plain == (first, k))
            made.append(_trained(bench, start[1].copy(), second, k, start=first, construction=name))
    told, _, vectors_of = zip(*made)
    seen = [look(one) for one in vectors_of]
    place = {one.plain: seen[k] for k, one in enumerate(told) if one.plain}
    before = [look(pretrained) if one.construction == FIRST else place[one.start, one.seed] for one in told]
    sizes = {name: len(z) for name, z in pretrained.items()}
    return Experiment(list(told), seen, before, sizes, list(vectors_of), _notes(bench, backbone))


def _first(bench: Bench, doses, seeds, shuffled: int, full) -> list[tuple[Network, Stage, dict]]:
    """Train from the pretrained network on: every dose and seed, the shuffled, and the full networks."""
    plan = [(dose, k, False, "stage") for k in seeds for dose in doses]
    plan += [(max(doses), k, True, "stage") for k in range(shuffled)]
    plan += [(dose, k, False, FULL) for k in seeds for dose in full]
    return [
        _trained(bench, bench.start(k, how), dose, k, mixed=mixed, how=how) for dose, k, mixed, how in plan
    ]


def _trained(bench: Bench, stage: Stage, dose, seed, *, start=PRETRAINED, construction=FIRST, mixed=False,
             how="stage") -> tuple[Network, Stage, dict]:  # fmt: skip
    there, loss = bench.fit(stage, dose, seed + (_SECOND if construction != FIRST else 0), mixed, how)
    told = Network(start, dose, seed, mixed, construction, how, there, loss)
    return told, stage, bench.embedded(stage, how)


def _checked(doses, seeds, constructions, full) -> list[float]:
    doses = sorted({checked_dose(dose) for dose in doses})
    if unknown := sorted(set(constructions) - set(CONSTRUCTIONS)):
        raise ValueError(
            f"unknown construction {', '.join(unknown)}; known: {', '.join(CONSTRUCTIONS)}. Name those."
        )
    if 0 not in doses or len(doses) < 3 or max(doses) <= 0 or not seeds:
        raise ValueError(
            "the experiment needs three doses, 0 and one above 0 among them, and a seed; got doses "
            f"{doses} and seeds {list(seeds)}."
        )
    for dose in full:
        checked_dose(dose)
    return doses


def _bench(name: str, pairs: int, pictures: int, labels: str, used: Recipe, seed: int) -> Bench:
    pool = draw_pool(pairs, seed=seed)
    files = {POOL: pool.files.ravel().tolist(), **draw_analysis(OBJECTS, pictures, seed=seed)}
    backbone = load_backbone(name)
    pixels = {kind: read_pixels(backbone, listed, used.size) for kind, listed in files.items()}
    stored = {kind: stage_inputs(backbone, one) for kind, one in pixels.items()}
    return Bench(backbone, pool, pixels, stored, labels, used)


def _notes(bench: Bench, name: str) -> dict[str, int | float | str]:
    stage = bench.start()
    trained = sum(p.numel() for part in (stage.body, stage.head) for p in part.parameters())
    total = sum(p.numel() for p in bench.backbone.module.parameters())
    return {
        "backbone": name, "labels": bench.labels, "training": len(bench.pool.contents),
        "pictures": len(bench.stored["man"]), "parameters_trained": trained,
        "parameters": total,
    }  # fmt: skip
