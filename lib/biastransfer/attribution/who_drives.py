"""Chapter 07 from a set's name: pictures, networks before and after finetuning, attribute sets, tables."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from biastransfer import finetune, paths
from biastransfer.analysis_sets.named import load_named
from biastransfer.attribution.association_map import AssociationMaps, association_maps
from biastransfer.attribution.attribute_sets import AttributeSets, embedded_attributes
from biastransfer.attribution.person_pictures import (
    PersonPicture,
    PersonPictures,
    coco_person_pictures,
    scene_person_pictures,
)
from biastransfer.attribution.person_removal import REMOVED, removal_cosines
from biastransfer.attribution.removal_effects import associations, effects
from biastransfer.backbones import Backbone, load_backbone
from biastransfer.embed import Condition, conditions

KEYS = ("run", "set", *Condition._fields)


@dataclasses.dataclass(frozen=True, eq=False)
class Study:
    """What the chapter works on.

    Attributes
    ----------
    run, set_name : str
    pictures : PersonPictures
    networks : mapping of Condition to Backbone
    sets : mapping of Condition to AttributeSets
    """

    run: str
    set_name: str
    pictures: PersonPictures
    networks: Mapping[Condition, Backbone]
    sets: Mapping[Condition, AttributeSets]


def study(
    set_name: str,
    *,
    run: str,
    backbone: str,
    target: str = "scenes",
    seeds: Sequence[int] = (0,),
    most: int = 12,
    scale: float = 1.0,
    seed: int = 0,
    root: str = "",
) -> Study:
    """Load the pictures of a set that show a person, and the networks that look at them.

    Parameters
    ----------
    set_name : str
        ``scenes-coco``, ``scenes-openimages`` (exact masks and removals; each scene with a man and with a
        woman) or ``mini-coco`` (boxes; every picture with people of one gender is taken, and the attribute
        sets are all of them, a picture left out for itself).
    run, backbone, target, seeds
        Whose checkpoints are used: one network before finetuning, and after it with each seed. ``"smoke"``
        trains them where they are missing.
    most : int
        Scenes an object; photographs an object and gender.
    scale, seed, root
        As for `load_named`.

    Returns
    -------
    Study

    Raises
    ------
    ValueError
        Another set, or one that lacks pictures of men or women.
    FileNotFoundError
        If a checkpoint or folder is missing.
    """
    kind, _, schema = set_name.partition("-")
    if kind != "scenes" and set_name != "mini-coco":
        raise ValueError(f"set_name must be scenes-coco, scenes-openimages or mini-coco; got {set_name!r}.")
    loaded = load_named(set_name, root=root, scale=scale, seed=seed)
    if kind == "scenes":
        pictures = scene_person_pictures(loaded, schema, scale=scale, seed=seed, most=most)
    else:
        pictures = coco_person_pictures(root, most=most)
    finetune.ensure(run, [backbone], target, seeds)
    networks = {
        one: load_backbone(
            backbone if one.stage == "pretrained" else paths.checkpoint(run, one.backbone, target, one.seed)
        )
        for one in conditions(run, [backbone], [backbone], target, seeds)
    }
    source = loaded if kind == "scenes" else pictures.pictures
    sets = {one: embedded_attributes(network, source) for one, network in networks.items()}
    return Study(run, set_name, pictures, networks, sets)


def explain(
    given: Study, methods: Mapping[str, Mapping], fills: Sequence[str], *, pictures: int = 8, seed: int = 0
) -> AssociationMaps:
    """Explain some pictures of a study under its first network of either stage.

    Parameters
    ----------
    given : Study
    methods, fills, seed
        As for `association_maps`.
    pictures : int
        How many, objects and genders taken in turn, of those that `clear` returns.

    Returns
    -------
    AssociationMaps
        With the columns run and set in its shares.
    """
    stages = {one.stage: one for one in reversed(given.networks)}
    networks = {one: given.networks[one] for one in given.networks if stages[one.stage] == one}
    sets = {one: given.sets[one] for one in networks}
    found = association_maps(
        networks,
        sets,
        in_turn(clear(given.pictures.pictures), pictures),
        methods,
        fills,
        keys=Condition._fields,
        seed=seed,
    )
    shares = found.shares.copy()
    shares.insert(0, "run", given.run)
    shares.insert(1, "set", given.set_name)
    return dataclasses.replace(found, shares=shares)


def map_settings(*, stride: int, samples: int, steps: int = 16) -> dict[str, dict]:
    """Return the chapter's methods and their settings, for `explain`; the last two are controls.

    Parameters
    ----------
    stride : int
        Of the sliding patch, in pixels.
    samples : int
        Perturbed pictures of LIME.
    steps : int
        Points of integrated gradients.
    """
    return {
        "sliding_patch": {"stride": stride},
        "lime": {"n_samples": samples},
        "integrated_gradients": {"n_steps": steps},
        "random_map": {},
        "gaussian_map": {},
    }


def clear(pictures: Sequence[PersonPicture]) -> list[PersonPicture]:
    """Return the ``pictures`` with a person on 5 to 50 % of them and an object on at least 2 %; else all."""
    found = []
    for one in pictures:
        person, thing = (one.picture.masks.get(part) for part in ("person", "object"))
        if thing is not None and 0.05 <= np.mean(person) <= 0.5 and np.mean(thing) >= 0.02:
            found.append(one)
    return found or list(pictures)


def in_turn(pictures: Sequence[PersonPicture], count: int) -> list[PersonPicture]:
    """Return up to ``count`` pictures, one of each object and gender in turn, in their own order.

    Parameters
    ----------
    pictures : sequence of PersonPicture
    count : int
    """
    turns: dict[tuple[str, str], int] = {}
    ranked = []
    for place, one in enumerate(pictures):
        turn = turns[one.object, one.attribute] = turns.get((one.object, one.attribute), -1) + 1
        ranked.append((turn, place))
    chosen = sorted(place for _, place in sorted(ranked)[:count])
    return [pictures[place] for place in chosen]


def remove(
    given: Study, fills: Sequence[str], *, resamples: int = 2000, seed: int = 0
) -> dict[str, pd.DataFrame]:
    """Remove person, object and a control from every picture of a study, and say what leaves.

    Parameters
    ----------
    given : Study
    fills : sequence of str
        As for `make_fill`; scenes are also redrawn.
    resamples, seed : int
        Of the intervals; of controls and noise.

    Returns
    -------
    dict
        ``removal``: `KEYS`, fill, then as `removal_effects.effects`. ``removal_pictures``: `KEYS`, fill,
        picture, object, attribute, control (how it was placed), the areas of person and object, and s with
        each part removed. ``removal_skipped``: picture, reason.
    """
    found = removal_cosines(given.networks, given.sets, given.pictures.pictures, fills, seed=seed)
    pooled = "pictures" if given.set_name.startswith("mini") else "objects"
    parts, single = [], []
    for (condition, fill), cosines in found.cosines.items():
        one = associations(cosines, found.pictures, given.sets[condition], resamples=resamples, seed=seed)
        keys = {"run": given.run, "set": given.set_name, **condition._asdict(), "fill": fill}
        part = effects(one, pooled=pooled)
        parts.append(pd.concat([pd.DataFrame([keys] * len(part)), part], axis=1))
        scores = pd.DataFrame(one.s.T.round(6), columns=[f"s_{removed}" for removed in REMOVED])
        places = found.places.rename(columns={"person": "person_area", "object": "object_area"}).round(4)
        places.insert(1, "object", one.objects)
        places.insert(2, "attribute", one.attributes)
        single.append(pd.concat([pd.DataFrame([keys] * len(places)), places, scores], axis=1))
    skipped = pd.concat([given.pictures.skipped, found.skipped], ignore_index=True)
    return {
        "removal": pd.concat(parts, ignore_index=True),
        "removal_pictures": pd.concat(single, ignore_index=True),
        "removal_skipped": skipped,
    }
