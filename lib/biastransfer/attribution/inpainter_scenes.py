"""What the in-painter learns from: scenes with and without some of their actors, and holes of many kinds."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw
from scipy.ndimage import maximum_filter1d

from biastransfer import paths
from biastransfer.analysis_sets.scene_drawing import draw_scene
from biastransfer.analysis_sets.scene_target import SPLITS, target_content

SIZE = 256
_STREAM = 3  # analysis sets draw from stream 1, targets from 2: no picture of theirs is in here
_WHOLLY = 0.5  # share of scenes from which everybody and everything is removed, else one actor


@dataclass(frozen=True)
class Removals:
    """Scenes and what a perfect removal would make of them.

    Attributes
    ----------
    before, after : (n, 256, 256, 3) uint8 arrays
        The scene, and the same scene drawn without the removed actors and their shadows.
    removed : (n, 256, 256) bool array
        Visible pixels of the removed actors.
    """

    before: np.ndarray
    after: np.ndarray
    removed: np.ndarray


def draw_removals(split: str, n: int, *, seed: int = 0) -> Removals:
    """Draw ``n`` scenes of a ``split`` (train, val or test), each with its perfect removal.

    From half of them all actors are removed, from the others one. Content is drawn as in the finetuning
    target without skew, from a stream of its own; scene i depends on ``split``, ``seed`` and i only.
    """
    before = np.empty((n, SIZE, SIZE, 3), np.uint8)
    after, removed = np.empty_like(before), np.empty((n, SIZE, SIZE), bool)
    for i in range(n):
        key = (seed, _STREAM, SPLITS.index(split), i)
        content, rng = target_content(split, i, seed, {}), np.random.default_rng((*key, 1))
        scene = draw_scene(content, key, SIZE)
        gone = range(len(scene.actors)) if rng.random() < _WHOLLY else [int(rng.integers(len(scene.actors)))]
        before[i], after[i] = scene.image, draw_scene(content, key, SIZE, leave_out=gone).image
        removed[i] = scene.masks[list(gone)].any(0)
    return Removals(before, after, removed)


def cached_removals(split: str, n: int, *, seed: int = 0) -> Removals:
    """Return `draw_removals` of ``split``, ``n`` and ``seed`` from ``data/derived``, drawing them once."""
    file = paths.derived("inpainter", f"scenes-{split}-{n}-seed{seed}.npz")
    if not file.is_file():
        drawn = draw_removals(split, n, seed=seed)
        with paths.replacing(file) as partial, open(partial, "wb") as opened:
            np.savez(opened, before=drawn.before, after=drawn.after, removed=drawn.removed)
    with np.load(file) as arrays:
        return Removals(arrays["before"], arrays["after"], arrays["removed"])


def widened(mask: np.ndarray, by: int) -> np.ndarray:
    """Return an (H, W) bool ``mask`` grown by ``by`` pixels in every direction (a square brush)."""
    if by < 1:
        return mask
    across = maximum_filter1d(mask.view(np.uint8), 2 * by + 1, axis=1, mode="constant")
    return maximum_filter1d(across, 2 * by + 1, axis=0, mode="constant").view(bool)


def draw_hole(rng: np.random.Generator, size: int, silhouettes: np.ndarray) -> np.ndarray:
    """Draw a hole of a random kind of `HOLES`.

    Parameters
    ----------
    rng : numpy.random.Generator
    size : int
        Side in pixels.
    silhouettes : (n, H, W) bool array
        Shapes of things for the kind "silhouette".

    Returns
    -------
    (size, size) bool array
        True = hole; some pixels are in it and some are not.
    """
    while True:
        hole = list(HOLES.values())[rng.integers(len(HOLES))](rng, size, silhouettes)
        if hole.any() and not hole.all():
            return hole


def _silhouette(rng, size, silhouettes):
    shape = Image.fromarray(silhouettes[rng.integers(len(silhouettes))]).convert("L")
    zoom, shift = shape.width / size / rng.uniform(0.7, 1.3), rng.uniform(-0.3, 0.3, 2) * shape.width
    flip = rng.choice((-1, 1))
    start = shape.width / 2 - np.array([flip, 1]) * zoom * size / 2 + shift
    moved = shape.transform(
        (size, size), Image.Transform.AFFINE, (flip * zoom, 0, start[0], 0, zoom, start[1])
    )
    return widened(np.asarray(moved) > 127, int(rng.integers(0, 4)))


def _rectangles(rng, size, silhouettes):
    hole = np.zeros((size, size), bool)
    for _ in range(rng.integers(1, 4)):
        h, w = (rng.uniform(0.1, 0.6, 2) * size).astype(int)
        y, x = rng.integers(-h // 3, size - h // 2), rng.integers(-w // 3, size - w // 2)
        hole[max(y, 0) : y + h, max(x, 0) : x + w] = True
    return hole


def _patch(rng, size, silhouettes):
    side = int(rng.uniform(0.12, 0.36) * size)
    y, x = rng.integers(0, size - side, 2)
    hole = np.zeros((size, size), bool)
    hole[y : y + side, x : x + side] = True
    return hole


def _strokes(rng, size, silhouettes):
    drawing = Image.new("L", (size, size))
    pen = ImageDraw.Draw(drawing)
    for _ in range(rng.integers(1, 6)):
        points = [tuple(rng.uniform(0, size, 2))]
        for _ in range(rng.integers(2, 8)):
            points.append(tuple(np.clip(points[-1] + rng.normal(0, 0.2 * size, 2), 0, size)))
        pen.line(points, fill=255, width=int(rng.uniform(0.03, 0.12) * size), joint="curve")
    return np.asarray(drawing) > 0


def _cells(rng, size, silhouettes):
    """Cells around random points, as superpixels are: about 50, of which a tenth to most are removed."""
    points = rng.uniform(0, size, (int(rng.integers(30, 70)), 2))
    grid = np.stack(np.mgrid[:size:2, :size:2], -1).reshape(-1, 1, 2)
    nearest = ((grid - points) ** 2).sum(-1).argmin(1).reshape(-(-size // 2), -1)
    gone = rng.random(len(points)) < rng.uniform(0.1, 0.8)
    return gone[nearest].repeat(2, 0).repeat(2, 1)[:size, :size]


def _field(rng, size, silhouettes):
    """The highest tenth to 95 % of a smooth random map: what deleting along a heat map removes."""
    cells = int(rng.integers(4, 15))
    coarse = Image.fromarray(rng.random((cells, cells), dtype=np.float32))
    field = np.asarray(coarse.resize((size, size), Image.Resampling.BICUBIC))
    return field > np.quantile(field, 1 - rng.uniform(0.1, 0.95))


HOLES: dict[str, Callable] = {
    "silhouette": _silhouette,
    "rectangles": _rectangles,
    "patch": _patch,
    "strokes": _strokes,
    "cells": _cells,
    "field": _field,
}
