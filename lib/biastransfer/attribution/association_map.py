"""Association maps: which pixels bring a picture closer to one gender's set, and on what their shares lie."""

import hashlib
import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import torch

from biastransfer.attribution.attribute_sets import AttributeSets
from biastransfer.attribution.heatmaps import as_heatmap, defect
from biastransfer.attribution.methods import METHODS, heat_map
from biastransfer.attribution.person_pictures import PersonPicture
from biastransfer.attribution.person_removal import prepare_masks, vector_reader
from biastransfer.attribution.removal import INPAINTERS, Fill, make_fill
from biastransfer.attribution.scores import Score, association_score
from biastransfer.backbones import Backbone

REGIONS = ("person", "object", "rest")
SCORES = ("association", "similarity")
COLUMNS = ("picture", "object", "attribute", "score", "method", "fill", "region")
_NO_FILL = ("gradcam", "gradient", "smoothgrad", "random_map", "gaussian_map")


@dataclass(frozen=True, eq=False)
class AssociationMaps:
    """Maps of some pictures, and the shares of each on person, object and rest.

    Attributes
    ----------
    shares : DataFrame
        `COLUMNS`, the network's keys, then share (of the absolute map), positive (of its positive part), area
        (the region's share of the picture) and reason where there is no share.
    maps : mapping of (picture, network, score, method, fill) to (S, S) float32 array
        In the score's unit: above 0 where a pixel brings the picture closer to the set of its own gender.
    images, people : mapping of picture to (S, S, 3) float array and to (S, S) bool array
        As the networks see them: RGB in [0, 1], and where the person is.
    skipped : DataFrame
        picture, reason.
    """

    shares: pd.DataFrame
    maps: Mapping[tuple, np.ndarray]
    images: Mapping[str, np.ndarray]
    people: Mapping[str, np.ndarray] = field(default_factory=dict)
    skipped: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["picture", "reason"]))


def similarity_score(backbone: Backbone | torch.nn.Module, A, **options) -> Score:
    """Return a picture's mean cosine with one set, as a function of its pixels.

    Parameters
    ----------
    backbone, **options
        As for `scores.association_score`.
    A : (n, D) array
        Embeddings of the set.

    Returns
    -------
    Score
        In [−1, 1]: the summand of the inter-class similarity of the picture's class and A.
    """
    A = np.asarray(A)
    doubled = association_score(backbone, A, -A, **options)  # cos(z, −a) is −cos(z, a)
    return replace(doubled, read=lambda network, images: doubled.read(network, images) / 2)


def map_shares(heatmap, person: np.ndarray, thing: np.ndarray | None = None) -> pd.DataFrame:
    """Return which share of a map lies on the person, the object, and the rest.

    Parameters
    ----------
    heatmap : (H, W) array
    person : (H, W) bool array
    thing : (H, W) bool array, optional
        The object; what it shares with the person counts as the person's.

    Returns
    -------
    DataFrame
        region, share (of Σ|map|), positive (of Σ max(map, 0)), area, reason. Shares of the regions sum to 1;
        NaN with the reason where there is nothing to share.

    Examples
    --------
    >>> person = np.array([[True, False], [False, False]])
    >>> map_shares(np.array([[3.0, -1.0], [0.0, 0.0]]), person)["share"].tolist()
    [0.75, 0.0, 0.25]
    """
    found = as_heatmap(heatmap, person.shape)
    thing = np.zeros_like(person) if thing is None else thing & ~person
    regions = dict(zip(REGIONS, (person, thing, ~(person | thing))))
    problem, rows = defect(found), []
    sizes = {"share": np.abs(found), "positive": np.maximum(found, 0)}
    for name, region in regions.items():
        row = {"region": name, "area": float(region.mean()), "reason": problem}
        for column, mass in sizes.items():
            total = float(mass.sum(dtype=np.float64))
            fine = not problem and total > 0
            row[column] = float(mass[region].sum(dtype=np.float64)) / total if fine else float("nan")
        rows.append(row)
    return pd.DataFrame(rows)[["region", "share", "positive", "area", "reason"]]


def association_maps(
    networks: Mapping[Hashable, Backbone],
    sets: Mapping[Hashable, AttributeSets],
    pictures: Sequence[PersonPicture],
    methods: Mapping[str, Mapping],
    fills: Sequence[str] = ("mean", "scenes-inpainter"),
    *,
    keys: Sequence[str] = ("network",),
    scores: Sequence[str] = SCORES,
    seed: int = 0,
    batch_size: int = 8,
) -> AssociationMaps:
    """Explain by several methods and fills what makes pictures closer to the set of their own gender.

    Parameters
    ----------
    networks, sets
        As for `person_removal.removal_cosines`; keys are tuples with a value for each of ``keys``.
    pictures : sequence of PersonPicture
    methods : mapping of str to mapping
        Names of `METHODS` → their settings.
    fills : sequence of str
        For methods that have one; a method whose fill only gives a baseline takes the first.
    keys : sequence of str
        Columns for what the networks are keyed by.
    scores : sequence of str
        "association": mean cosine with the own gender's set minus that with the other's. "similarity": the
        former alone.
    seed, batch_size : int
        As for `heat_map`.

    Returns
    -------
    AssociationMaps

    Raises
    ------
    ValueError
        An unknown method or score; a picture in its own set; what methods raise.

    Notes
    -----
    What a fill or a network makes of a version of the picture is kept while that picture is explained:
    scores share passes, and networks share fills.
    """
    if unknown := sorted(set(methods) - set(METHODS)) + sorted(set(scores) - set(SCORES)):
        raise ValueError(
            f"unknown {unknown[0]!r}; methods: {', '.join(METHODS)}; scores: {', '.join(SCORES)}"
        )
    rows, maps, images, people, skipped = [], {}, {}, {}, []
    readers = {key: vector_reader(backbone, batch_size) for key, backbone in networks.items()}
    for picture in pictures:
        filled = {name: _kept(make_fill(name, seed=seed)) if name in INPAINTERS else name for name in fills}
        for key, backbone in networks.items():
            explained = _scores(backbone, sets[key].halves(picture.name, picture.attribute), readers[key])
            try:
                seen, person, thing = prepare_masks(picture, backbone.transform)
            except ValueError as problem:
                skipped.append((picture.name, str(problem)))
                break
            images[picture.name], people[picture.name] = seen.image.permute(1, 2, 0).numpy(), person
            for score, (method, fill) in itertools.product(scores, _jobs(methods, fills)):
                call = explained[score][int(_forward_only(method))]
                common = {"fill": filled.get(fill), "seed": seed, "batch_size": batch_size}
                heat = heat_map(method, call, seen.image, **common, **methods[method])
                maps[picture.name, key, score, method, fill] = heat
                named = (picture.name, picture.object, picture.attribute, score, method, fill)
                shares = map_shares(heat, person, thing)
                rows.append(shares.assign(**dict(zip(COLUMNS[:-1], named)), **dict(zip(keys, key))))
    columns = [*keys, *COLUMNS, "share", "positive", "area", "reason"]
    table = pd.concat(rows, ignore_index=True)[columns] if rows else pd.DataFrame(columns=columns)
    listed = pd.DataFrame(skipped, columns=["picture", "reason"])
    return AssociationMaps(table, maps, images, people, listed)


def _jobs(methods: Mapping[str, Mapping], fills: Sequence[str]) -> list[tuple[str, str]]:
    """Return (method, fill), "" for methods that have none."""
    return [
        (method, fill)
        for method in methods
        for fill in ([""] if method in _NO_FILL else fills if _forward_only(method) else fills[:1])
    ]


def _forward_only(method: str) -> bool:
    return METHODS[method].kind == "perturbation" and method != "meaningful_perturbation"


def _scores(backbone: Backbone, halves, read: Callable) -> dict[str, tuple[Score, Callable]]:
    """Return each score twice: differentiable, and as a function of versions that are read once for all."""
    own, other = halves
    known: dict[bytes, np.ndarray] = {}
    return {
        "association": (
            association_score(backbone, own, other),
            _remembering(read, own.mean(0) - other.mean(0), known),
        ),
        "similarity": (similarity_score(backbone, own), _remembering(read, own.mean(0), known)),
    }


def _remembering(read: Callable, direction: np.ndarray, known: dict[bytes, np.ndarray]) -> Callable:
    """Return a score of versions that runs the network only for those whose unit vector is not ``known``."""

    def score(images: torch.Tensor) -> torch.Tensor:
        names = [hashlib.blake2b(image.numpy().tobytes()).digest() for image in images]
        missing = {name: k for k, name in enumerate(names) if name not in known}
        if missing:
            for name, vector in zip(missing, read(images[list(missing.values())])):
                known[name] = vector / np.linalg.norm(vector)
        return torch.from_numpy(np.stack([known[name] for name in names]) @ direction)

    return score


def _kept(fill: Fill) -> Fill:
    """Return a fill of one picture that keeps its answers by the mask."""
    answers: dict[bytes, torch.Tensor] = {}

    def filled(images: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
        names = [np.packbits(mask.numpy()).tobytes() for mask in masks]
        for k, name in enumerate(names):
            if name not in answers:
                answers[name] = fill(images[min(k, len(images) - 1)][None], masks[k : k + 1])[0]
        return torch.stack([answers[name] for name in names])

    return filled
