"""How much of an object's, and of gender's, signal a probe still finds after a fill has removed it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from biastransfer.analysis_sets.scene_drawing import Scene, draw_scene
from biastransfer.attribution.inpainter_scenes import widened
from biastransfer.attribution.removal import make_fill
from biastransfer.attribution.ridge_probe import probe_auc
from biastransfer.backbones import Backbone, forward_layer

_STREAM = 4  # a stream of its own: none of these pictures is in an analysis set, a target or the in-painter's
COLUMNS = ("what", "fill", "pictures", "auc", "low", "high", "n")
# what is removed: (contents of the two classes of a pair, place of the removed thing in the content)
WHATS: dict[str, tuple[tuple[str, ...], tuple[str, ...], int]] = {
    "object": (("woman", "car"), ("woman", "refrigerator"), 1),
    "gender": (("man", "chair"), ("woman", "chair"), 0),
}


@dataclass(frozen=True)
class RemovalPairs:
    """Scenes of two classes before and after removal: uint8 (n, 256, 256, 3), masks bool (n, 256, 256).

    ``present`` shows the thing, ``absent`` the same scene drawn without it and its shadow, ``masks`` its
    visible pixels, ``labels`` the class (0, 1), ``groups`` the pair: scenes drawn from one seed.
    """

    present: np.ndarray
    absent: np.ndarray
    masks: np.ndarray
    labels: np.ndarray
    groups: np.ndarray


def draw_pairs(what: str, n: int, *, seed: int = 0) -> RemovalPairs:
    """Draw ``n`` pairs of scenes, a car's and a refrigerator's or a man's and a woman's, with exact masks.

    Parameters
    ----------
    what : {"object", "gender"}
        What differs within a pair and is removed. Man and woman of a pair are twins: one drawing of a man,
        one of a woman, all else the same.
    n : int
        Pairs; pair i depends on ``what``, ``seed`` and i only.
    seed : int

    Raises
    ------
    ValueError
        Another ``what``.
    """
    if what not in WHATS:
        raise ValueError(f"what must be one of {', '.join(WHATS)}; got {what!r}.")
    *contents, place = WHATS[what]
    rows = []
    for i in range(n):
        for label, content in enumerate(contents):
            key = (seed, _STREAM, list(WHATS).index(what), i)
            scene = draw_scene(content, key)
            gone = _numbered(scene, content[place])
            absent = draw_scene(content, key, leave_out=[gone]).image
            rows.append((scene.image, absent, scene.masks[gone], label, i))
    return RemovalPairs(*(np.stack(column) for column in zip(*rows)))


def _numbered(scene: Scene, name: str) -> int:
    return next(k for k, actor in enumerate(scene.actors) if actor.name == name)


def removal_signal(
    backbone: Backbone,
    fills: Iterable[str | Callable],
    *,
    what: str = "object",
    n: int = 60,
    widen: int = 0,
    seed: int = 0,
) -> pd.DataFrame:
    """Measure what a probe still finds of a thing that each fill has removed.

    Parameters
    ----------
    backbone : Backbone
        Its pooled penultimate layer is what the probe sees.
    fills : iterable of str or callable
        As for `make_fill`.
    what : {"object", "gender"}
        Car or refrigerator; man or woman.
    n : int
        Pairs of scenes, at least 10.
    widen : int
        Pixels by which the exact mask is grown before it is filled: at 0 the outline's blended pixels stay.
    seed : int

    Returns
    -------
    DataFrame
        Columns `COLUMNS`. ``pictures`` is "removed" (the thing was there), "mask only" (the same mask on the
        same scene drawn without the thing: what the hole's shape alone tells) or, with fill "nothing",
        "present" and "absent" (what is there to find, and what the rest of the picture tells).

    Raises
    ------
    ValueError
        Another ``what``, an unknown fill, or fewer than 10 pairs.

    Notes
    -----
    A hole's outline can tell the class whatever stood in it; "removed" above "mask only" is what is left of
    the thing itself: fringes, its shadow, or colours that a blur has spread.
    """
    if n < 10:
        raise ValueError(f"a probe needs at least 10 pairs of scenes; got {n}.")
    pairs, run = draw_pairs(what, n, seed=seed), _embedder(backbone)
    masks = np.stack([widened(mask, widen) for mask in pairs.masks])
    rows = []

    def probe(fill: str, pictures: str, images: np.ndarray, removing: Callable | None) -> None:
        vectors = run(images, masks, removing)
        found = probe_auc(vectors, pairs.labels, pairs.groups, seed=seed)
        rows.append((what, fill, pictures, found.auc, found.low, found.high, found.n))

    probe("nothing", "present", pairs.present, None)
    probe("nothing", "absent", pairs.absent, None)
    for fill in fills:
        name = fill if isinstance(fill, str) else getattr(fill, "__name__", "own")
        removing = make_fill(fill, seed=seed)
        probe(name, "removed", pairs.present, removing)
        probe(name, "mask only", pairs.absent, removing)
    return pd.DataFrame(rows, columns=COLUMNS)


def _embedder(backbone: Backbone) -> Callable[[np.ndarray, np.ndarray, Callable | None], np.ndarray]:
    """Return a function (images, masks, fill or None) → vectors (n, D), four pictures at a time."""
    transform = backbone.transform

    def resized(image: np.ndarray, mask: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        stencil = transform.pixels(np.repeat(mask[..., None] * np.uint8(255), 3, 2))
        return transform.pixels(image), stencil[:1] > 0

    @torch.inference_mode()
    def run(images: np.ndarray, masks: np.ndarray, removing: Callable | None) -> np.ndarray:
        vectors = []
        for start in range(0, len(images), 4):
            both = [resized(*pair) for pair in zip(images[start : start + 4], masks[start : start + 4])]
            pixels, holes = (torch.stack(part) for part in zip(*both))
            pixels = removing(pixels, holes) if removing else pixels
            pixels = pixels.contiguous(memory_format=torch.channels_last)
            vectors.append(forward_layer(backbone, transform.normalise(pixels)))
        return torch.cat(vectors).numpy()

    return run
