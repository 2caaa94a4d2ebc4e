"""The causal test: how a picture's association changes when its person, its object or neither is removed."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from biastransfer.attribution.attribute_sets import AttributeSets
from biastransfer.attribution.elsewhere import elsewhere
from biastransfer.attribution.inpainter_scenes import widened
from biastransfer.attribution.networks import folded
from biastransfer.attribution.person_pictures import PARTS, PersonPicture
from biastransfer.attribution.pictures import Prepared, prepare
from biastransfer.attribution.removal import make_fill
from biastransfer.backbones import Backbone, forward_layer, layer_path
from biastransfer.cosines import unit_lengths

REMOVED = ("nothing", *PARTS, "elsewhere")
REDRAWN = "redrawn"  # stands among the fills: the same scene drawn without the part, a perfect removal
WIDENED = 2  # pixels: the outline's blended pixels go as well


@dataclass(frozen=True, eq=False)
class RemovalCosines:
    """What every version of every picture is like, for every network and fill.

    Attributes
    ----------
    cosines : mapping of (network, fill) to (5, N, n) array
        Cosines of the N pictures with the n pictures of the attribute sets, by what was `REMOVED`; NaN
        where there is nothing of that kind to remove, or no room for the control.
    pictures : tuple of PersonPicture
        The N pictures.
    places : DataFrame
        picture, control (kind of its place), person, object (their shares of the picture).
    skipped : DataFrame
        picture, reason.
    """

    cosines: Mapping[tuple[Any, str], np.ndarray]
    pictures: tuple[PersonPicture, ...]
    places: pd.DataFrame
    skipped: pd.DataFrame


def holes(person: np.ndarray, thing: np.ndarray | None, *, seed=0) -> tuple[dict[str, np.ndarray], str]:
    """Return what is removed of a picture, and how its control was placed.

    Parameters
    ----------
    person : (H, W) bool array
    thing : (H, W) bool array or None
        The object, without a pixel of the person.
    seed : int or sequence of int
        Of the control's place.

    Returns
    -------
    dict of str to (H, W) bool array, str
        "person", and where there is an object "object" and "both", grown by two pixels but never into the
        other's own; "elsewhere", of the person's shape or area and apart from both, where there is room. Then
        the kind of `Elsewhere`.
    """
    thing = np.zeros_like(person) if thing is None else thing & ~person
    found = {"person": widened(person, WIDENED) & ~thing}
    if thing.any():
        found["object"] = widened(thing, WIDENED) & ~person
        found["both"] = widened(person | thing, WIDENED)
    control = elsewhere(found["person"], widened(person | thing, WIDENED), seed=seed)
    if control.mask.any():
        found["elsewhere"] = control.mask
    return found, control.kind


def removal_cosines(
    networks: Mapping[Hashable, Backbone],
    sets: Mapping[Hashable, AttributeSets],
    pictures: Sequence[PersonPicture],
    fills: Sequence[str] = ("mean", "scenes-inpainter"),
    *,
    seed: int = 0,
    batch_size: int = 8,
) -> RemovalCosines:
    """Remove person, object, both, and as much elsewhere from pictures, and compare with the attribute sets.

    Parameters
    ----------
    networks : mapping of any key to Backbone
        Before and after finetuning; of one input size, so that all see the same pictures.
    sets : mapping of the same keys to AttributeSets
        Embedded by the network of that key.
    pictures : sequence of PersonPicture
    fills : sequence of str
        As for `make_fill`. Pictures that bring them are also compared as `REDRAWN`.
    seed : int
        Of controls and of fills that draw random numbers.
    batch_size : int
        Pictures a forward pass; it changes no value beyond rounding.

    Returns
    -------
    RemovalCosines

    Raises
    ------
    ValueError
        If there is no network or picture, networks see pictures differently, keys differ, or every picture
        was skipped; as `AttributeSets.counted` raises it.
    """
    _check(networks, sets, pictures)
    transform = next(iter(networks.values())).transform
    readers = {key: vector_reader(backbone, batch_size) for key, backbone in networks.items()}
    fillers = {name: make_fill(name, seed=seed) for name in fills}
    rows, kept, places, skipped = [], [], [], []
    for picture in pictures:
        try:
            versions, place = _versions(picture, transform, fillers, seed)
        except ValueError as problem:
            skipped.append((picture.name, str(problem)))
            continue
        stack = torch.stack(list(versions.values()))
        rows.append({key: dict(zip(versions, read(stack))) for key, read in readers.items()})
        kept.append(picture)
        places.append(place)
    if not kept:
        raise ValueError(f"no picture could be used; the first because: {skipped[0][1]}")
    names = [*fills, *([REDRAWN] if all(one.redrawn for one in kept) else [])]
    cosines = {(key, fill): _cosines(rows, key, fill, sets[key]) for key in networks for fill in names}
    frame = pd.DataFrame(places, columns=["picture", "control", "person", "object"])
    return RemovalCosines(cosines, tuple(kept), frame, pd.DataFrame(skipped, columns=["picture", "reason"]))


def _check(networks: Mapping, sets: Mapping, pictures: Sequence[PersonPicture]) -> None:
    """Refuse, before any pass, what cannot be compared."""
    if not networks or set(networks) != set(sets) or not pictures:
        raise ValueError(
            "every network needs its attribute sets, and there must be a picture; got "
            f"{len(networks)} networks, {len(sets)} sets and {len(pictures)} pictures."
        )
    seen = [one.transform for one in networks.values()]
    crops = {(one.size, one.crop, one.interpolation, one.fit) for one in seen}
    if len(crops) > 1:
        raise ValueError(
            f"all networks must see the same part of a picture at one size; got {sorted(crops)}. "
            "Run them apart."
        )
    for one in sets.values():
        one.counted([picture.name for picture in pictures])


def prepare_masks(picture: PersonPicture, transform) -> tuple[Prepared, np.ndarray, np.ndarray | None]:
    """Return a picture as a network sees it, and the masks of person and object there.

    Parameters
    ----------
    picture : PersonPicture
    transform : backbones.Transform

    Raises
    ------
    ValueError
        If the crop leaves nothing of the person; as `pictures.prepare` does.
    """
    seen = prepare(picture.picture, transform)
    if "person" not in seen.masks:
        raise ValueError("the network's crop leaves nothing of the person")
    return seen, seen.masks["person"], seen.masks.get("object")


def _versions(picture: PersonPicture, transform, fillers: Mapping, seed: int):
    """Return (fill, removed) → image (3, S, S), the whole picture once, and the picture's row of places."""
    seen, person, thing = prepare_masks(picture, transform)
    own_seed = (seed, *(picture.pair or picture.name).encode())  # twins' controls lie alike
    masks, kind = holes(person, thing, seed=own_seed)
    found = {("", "nothing"): seen.image}
    stencils = torch.from_numpy(np.stack(list(masks.values())))[:, None]
    for name, fill in fillers.items():
        found |= {(name, part): image for part, image in zip(masks, fill(seen.image[None], stencils))}
    for part, image in picture.redrawn.items():
        if part in masks:
            found[REDRAWN, part] = transform.pixels(image)
    area = 0.0 if thing is None else float(thing.mean())
    return found, (picture.name, kind, float(person.mean()), area)


def vector_reader(backbone: Backbone, batch_size: int = 8):
    """Return a function (N, 3, S, S) pixels → (N, D) embeddings, as fast as `embed` and as independent of N.

    Parameters
    ----------
    backbone : Backbone
        Copied, its batch normalisation folded away.
    batch_size : int
        Pictures a forward pass, always as many: kernels are chosen by shape.
    """
    path = layer_path(backbone, None)
    network = folded(backbone, path, whole=False)

    @torch.inference_mode()
    def read(images: torch.Tensor) -> np.ndarray:
        found = []
        for start in range(0, len(images), batch_size):
            numbers = torch.arange(start, start + batch_size).clamp(max=len(images) - 1)
            batch = network.transform.normalise(images[numbers])
            vectors = forward_layer(network, batch.contiguous(memory_format=torch.channels_last), path)
            found.append(vectors[: len(images) - start].float().cpu())
        return torch.cat(found).numpy()

    return read


def _cosines(rows, key, fill: str, sets: AttributeSets) -> np.ndarray:
    """Return (5, N, n) cosines of the versions of all pictures under one network and fill."""
    found = np.full((len(REMOVED), len(rows), len(sets.units)), np.nan)
    for k, row in enumerate(rows):
        vectors = row[key]
        for part, removed in enumerate(REMOVED):
            vector = vectors.get(("", removed) if removed == "nothing" else (fill, removed))
            if vector is not None:
                z, length = unit_lengths(vector[None], f"{removed} removed")
                found[part, k] = sets.units @ (z[0] / length[0])
    return found
