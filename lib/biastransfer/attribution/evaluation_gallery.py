"""What a reader should see before any number: the maps of one picture, and what each fill puts in a hole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from biastransfer.attribution.boxes import box_mask
from biastransfer.attribution.evaluation import Evaluation
from biastransfer.attribution.evaluation_plan import named_fills
from biastransfer.attribution.evaluation_study import PLAIN, Programme, maps_of
from biastransfer.attribution.evaluation_units import Explained, Subject
from biastransfer.attribution.heatmaps import score_pictures
from biastransfer.attribution.inpainter_scenes import widened
from biastransfer.attribution.pictures import PictureSet
from biastransfer.attribution.removal import make_fill

_LARGEST = 0.995  # quantile of a map's absolute values that gets the full colour
_HIGHEST = 0.2  # share of the pixels that stand for the object where nothing is annotated


@dataclass(frozen=True, eq=False)
class Shown:
    """One picture and its heat maps.

    Attributes
    ----------
    name, label : str
        Of the picture.
    clean : float
        The class's score on the whole picture.
    pixels : (S, S, 3) float32 array
        RGB in [0, 1].
    outline : (S, S) bool array or None
        The annotated object.
    maps : mapping of (str, str) to (S, S) array
        By method and fill, divided by the 99.5 % quantile of the map's absolute values and cut at ±1; RISE's,
        whose level means nothing, after taking its median off.
    """

    name: str
    label: str
    clean: float
    pixels: np.ndarray
    outline: np.ndarray | None
    maps: Mapping[tuple[str, str], np.ndarray]


@dataclass(frozen=True, eq=False)
class Removed:
    """A picture whose object a fill has removed: pixels (S, S, 3), by which fill, and the class's score."""

    name: str
    fill: str
    pixels: np.ndarray
    score: float


def gallery(backbone, pictures: Sequence, evaluation: Evaluation, *, targets="top", **options) -> list[Shown]:
    """Return pictures with the maps that an evaluation made of them.

    Parameters
    ----------
    backbone, targets, **options
        As the evaluation had them: ``output``, ``transform``.
    pictures : sequence of AttributionPicture
        Those to be shown.
    evaluation : Evaluation

    Returns
    -------
    list of Shown
        A picture that cannot be read is left out: the evaluation's rows say why.
    """
    found = []
    for subject in _subjects(backbone, pictures, targets, options):
        name = subject.picture.name
        own = {key[1:3]: evaluation.map(*key) for key in evaluation.keys if key[0] == name}
        there = {key: _scaled(heat, key[0]) for key, heat in own.items() if heat is not None}
        pixels, outline = _pixels(subject.prepared.image), _annotated(subject)
        found.append(Shown(name, subject.picture.label, subject.clean, pixels, outline, there))
    return found


def removed(
    backbone, pictures: Sequence, fills, *, widen: int = 1, seed: int = 0, targets="top", maps=None, **options
) -> list[Removed]:
    """Return pictures without their object, once a fill, and what is left of the class's score.

    Parameters
    ----------
    backbone, targets, **options
        As for `gallery`.
    pictures : sequence of AttributionPicture
    fills : sequence or mapping
        As for `evaluation.run_evaluation`.
    widen : int
        Pixels by which the object's mask is grown.
    seed : int
        Of fills that draw random numbers.
    maps : mapping of str to (S, S) array, optional
        By picture, for those with neither mask nor box: the fifth of the pixels that is highest is removed.

    Returns
    -------
    list of Removed
        First each picture as it is, fill "nothing".

    Raises
    ------
    ValueError
        A picture without mask, box or map.
    """
    found = []
    for subject in _subjects(backbone, pictures, targets, options):
        image, name = subject.prepared.image, subject.picture.name
        hole = torch.from_numpy(widened(_object(subject, (maps or {}).get(name)), widen))
        found.append(Removed(name, "nothing", _pixels(image), subject.clean))
        for label, (fill, _) in named_fills(fills).items():
            without = make_fill(fill, seed=seed)(image, hole)
            score = float(score_pictures(subject.scores[True], without[None])[0])
            found.append(Removed(name, label, _pixels(without), score))
    return found


def chapter_gallery(
    backbone, pictures: PictureSet, targets: str | Mapping, programme: Programme, *, most: int = 2
) -> tuple[list[Shown], list[Removed]]:
    """Return the first pictures with their maps, and without their object.

    Parameters
    ----------
    backbone, pictures, targets, programme
        As for `evaluation_study.attribution_study`, whose maps are taken where they were made.
    most : int
        Pictures.

    Returns
    -------
    shown : list of Shown
        With the maps of mean grey and the in-painter.
    removed : list of Removed
        Where a picture has no annotated object: without what Grad-CAM, or the first map, puts highest.
    """
    few = pictures.pictures[:most]
    done = maps_of(backbone, few, targets, programme)
    options = {"targets": targets, "output": programme.output}
    shown = gallery(backbone, few, done, **options)
    highest = {one.name: one.maps.get(("gradcam", "none"), next(iter(one.maps.values()))) for one in shown}
    fills = [PLAIN, "blur", programme.inpainter]
    without = removed(backbone, few, fills, maps=highest, seed=programme.seed, **options)
    kept = [
        replace(one, maps={key: heat for key, heat in one.maps.items() if key[1] != "blur"}) for one in shown
    ]
    return kept, without


def _subjects(backbone, pictures, targets, options: Mapping) -> list[Subject]:
    explained = Explained.of(
        backbone,
        options.get("transform"),
        targets=targets,
        output=options.get("output", "probability"),
        fold=False,
    )
    found = [Subject.of(picture, explained, 0) for picture in pictures]
    return [one for one in found if not one.problem]


def _object(subject: Subject, heat: np.ndarray | None) -> np.ndarray:
    """Return the mask (S, S) of the picture's object: exact, its boxes, or the highest part of a map."""
    found = _annotated(subject)
    if found is not None:
        return found
    if heat is None:
        raise ValueError(
            f"{subject.picture.name}: what is removed must be known; it has no mask, box or map."
        )
    return heat >= np.quantile(heat, 1 - _HIGHEST)


def _annotated(subject: Subject) -> np.ndarray | None:
    label, size = subject.picture.label, tuple(subject.prepared.image.shape[1:])
    if label in subject.prepared.masks:
        return subject.prepared.masks[label]
    boxes = subject.prepared.boxes_of(label)
    return box_mask(boxes, size) if len(boxes) else None


def _scaled(heat: np.ndarray, method: str) -> np.ndarray:
    level = np.median(heat) if method == "rise" else 0.0
    largest = np.quantile(np.abs(heat - level), _LARGEST)
    return np.clip((heat - level) / largest, -1, 1) if largest > 0 else np.zeros_like(heat)


def _pixels(image: torch.Tensor) -> np.ndarray:
    return image.permute(1, 2, 0).numpy().clip(0, 1)
