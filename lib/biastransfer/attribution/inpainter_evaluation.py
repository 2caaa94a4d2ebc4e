"""Compares fills where the truth is known: ``python -m biastransfer.attribution.inpainter_evaluation``.

On scenes of the split "test", which no training has seen, an object is removed and the answer compared with
the same scene drawn without it; holes of other kinds, and photographs, are compared with what was there.
"""

import argparse
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch.nn.functional import adaptive_avg_pool2d, normalize

from biastransfer import paths
from biastransfer.attribution.inpainter_scenes import HOLES, cached_removals, widened
from biastransfer.attribution.removal import make_fill
from biastransfer.backbones import Backbone, layer_path, load_backbone
from biastransfer.images import read_rgb
from biastransfer.stats import jackknife_t

FILLS_COMPARED = ("mean", "black", "noise", "blur", "telea", "road", "scenes-inpainter")
LAYERS = ("stem", "stage2", "stage3", "stage5")  # of lite0: 1/2, 1/4, 1/8 and 1/16 of the resolution
KEYS = ("pictures", "holes", "fill", "metric", "against")
_REMOVAL = "removed object"
_WIDENED = 2
_CENTRE = slice(16, 240)  # a scene's central 224 pixels
_KINDS = ("patch", "cells", "field")
_SUPPORTED = 1e-10


def psnr(answer: torch.Tensor, wanted: torch.Tensor, hole: torch.Tensor) -> float:
    """Return the peak signal-to-noise ratio in dB over the hole's pixels and channels only; higher is better.

    Parameters
    ----------
    answer, wanted : (3, H, W) tensors
        RGB in [0, 1].
    hole : (1, H, W) bool tensor
        Not empty.

    Examples
    --------
    >>> hole = torch.tensor([[[True, False]]])
    >>> round(psnr(torch.tensor([[[0.1, 0.0]]]).repeat(3, 1, 1), torch.zeros(3, 1, 2), hole), 3)
    20.0
    """
    error = float(((answer - wanted).square() * hole).sum() / (3 * hole.sum()))
    return float(-10 * np.log10(max(error, _SUPPORTED)))


class FeatureDistance:
    """Distance of pictures in a network's features: like LPIPS, without its learned weights.

    At each of `LAYERS` features are scaled to length 1 at every place; squared differences are summed over
    channels (so 0 to 4) and averaged over places, each weighted by the share of the hole in it; then the mean
    over the layers. 0 = alike, lower is better. The network is EfficientNet-Lite0 with ImageNet weights.
    """

    def __init__(self, backbone: Backbone, layers: Sequence[str] = LAYERS):
        self.backbone = backbone
        self.paths = [layer_path(backbone, layer) for layer in layers]

    @torch.inference_mode()
    def features(self, pixels: torch.Tensor) -> list[torch.Tensor]:
        """Return the features of one picture (3, H, W), each (1, C, h, w) of length 1 at every place."""
        found: dict[str, torch.Tensor] = {}
        handles = [
            self.backbone.module.get_submodule(path).register_forward_hook(
                lambda _module, _inputs, output, path=path: found.__setitem__(path, output)
            )
            for path in self.paths
        ]
        try:
            self.backbone.module(self.backbone.transform.normalise(pixels[None]))
        finally:
            for handle in handles:
                handle.remove()
        return [normalize(found[path], dim=1) for path in self.paths]

    def __call__(self, answer: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor], hole) -> float:
        """Return the distance of the `features` of two pictures over a hole (1, H, W)."""
        values = []
        for a, b in zip(answer, wanted):
            weight = adaptive_avg_pool2d(hole[None].float(), a.shape[-2:])
            values.append(float(((a - b).square().sum(1, keepdim=True) * weight).sum() / weight.sum()))
        return float(np.mean(values))


def compare(
    cases: Iterable[tuple[torch.Tensor, torch.Tensor, torch.Tensor]],
    fills: Mapping,
    distance: FeatureDistance,
) -> pd.DataFrame:
    """Fill every case with every fill and return one row a case and fill.

    Parameters
    ----------
    cases : iterable of (picture (3, H, W), hole (1, H, W) bool, picture wanted (3, H, W))
    fills : mapping of str to callable
        Name → fill of pixels.
    distance : FeatureDistance

    Returns
    -------
    DataFrame
        case, fill, psnr (dB, in the hole), distance (in features), milliseconds.
    """
    rows = []
    for case, (picture, hole, wanted) in enumerate(cases):
        truth = distance.features(wanted)
        for name, fill in fills.items():
            started = time.perf_counter()
            answer = fill(picture, hole)
            spent = 1000 * (time.perf_counter() - started)
            # what is outside the hole is not the fill's doing: there the wanted picture stands
            shown = torch.where(hole, answer, wanted)
            seen = distance.features(shown)
            rows.append((case, name, psnr(answer, wanted, hole), distance(seen, truth, hole), spent))
    return pd.DataFrame(rows, columns=["case", "fill", "psnr", "distance", "milliseconds"])


def summary(frame: pd.DataFrame, against: Sequence[str] = ("mean", "telea")) -> pd.DataFrame:
    """Return means over cases of `compare`'s ``frame``, and of paired differences from the fills ``against``.

    Returns
    -------
    DataFrame
        fill, metric, against ("" = the value itself), value, low, high (95 %, Student's t over pictures), n.
    """
    rows = []
    for metric in ("psnr", "distance", "milliseconds"):
        table = frame.pivot(index="case", columns="fill", values=metric)
        for name in dict.fromkeys(frame["fill"]):
            for other in ("", *(one for one in against if one != name and metric != "milliseconds")):
                values = (table[name] - table[other] if other else table[name]).to_numpy()
                mean, n = values.mean(), len(values)
                deleted = (mean * n - values) / max(n - 1, 1)
                rows.append((name, metric, other, mean, *jackknife_t(mean, deleted), n))
    return pd.DataFrame(rows, columns=["fill", "metric", "against", "value", "low", "high", "n"])


def removal_cases(n: int, *, seed: int = 0):
    """Yield ``n`` scenes of ``seed`` at 224 pixels, a hole where actors were, and the scene without them.

    The hole is the actors' exact mask grown by two pixels.
    """
    scenes = cached_removals("test", n, seed=seed)
    for before, after, removed in zip(scenes.before, scenes.after, scenes.removed):
        hole = widened(removed, _WIDENED)[_CENTRE, _CENTRE]
        if hole.any():
            yield (
                _pixels(before[_CENTRE, _CENTRE]),
                torch.tensor(hole)[None],
                _pixels(after[_CENTRE, _CENTRE]),
            )


def hole_cases(pictures: Iterable[np.ndarray], kind: str, *, seed: int = 0):
    """Yield pictures with a hole of a ``kind`` of `HOLES`, drawn by ``seed``; wanted is what was there.

    ``pictures`` are (224, 224, 3) uint8 arrays.
    """
    silhouettes = cached_removals("test", 8, seed=seed).removed
    for k, picture in enumerate(pictures):
        hole = HOLES[kind](np.random.default_rng((seed, k)), len(picture), silhouettes)
        if hole.any() and not hole.all():
            yield _pixels(picture), torch.from_numpy(np.array(hole))[None], _pixels(picture)


def _pixels(picture: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.array(picture)).permute(2, 0, 1).float() / 255


def evaluate_inpainter(n: int = 60, *, photographs: Path | str | None = None, seed: int = 0) -> pd.DataFrame:
    """Compare `FILLS_COMPARED` on held-out scenes and, where given, on photographs.

    Parameters
    ----------
    n : int
        Scenes, and photographs at most.
    photographs : path, optional
        A folder of JPEGs; the first ``n`` by name, their central square at 224 pixels.
    seed : int
        Of scenes and holes.

    Returns
    -------
    DataFrame
        `KEYS`, value, low, high, n.
    """
    backbone = load_backbone("efficientnet_lite0")
    distance = FeatureDistance(backbone)
    fills = {name: make_fill(name, seed=seed) for name in FILLS_COMPARED}
    scenes = [scene[_CENTRE, _CENTRE] for scene in cached_removals("test", n, seed=seed).before]
    sets = {("scenes", _REMOVAL): removal_cases(n, seed=seed)}
    sets |= {("scenes", kind): hole_cases(scenes, kind, seed=seed) for kind in _KINDS}
    if photographs is not None:
        files = sorted(Path(photographs).glob("*.jpg"))[:n]
        photos = [backbone.transform.resized(read_rgb(file)) for file in files]
        sets |= {
            ("photographs", kind): hole_cases(photos, kind, seed=seed) for kind in ("silhouette", *_KINDS)
        }
    parts = []
    for (pictures, holes), cases in sets.items():
        part = summary(compare(cases, fills, distance))
        parts.append(part.assign(pictures=pictures, holes=holes))
    return pd.concat(parts)[[*KEYS, "value", "low", "high", "n"]]


def main(arguments: list[str] | None = None) -> None:
    """Compare from the command line; ``arguments`` as in ``--help``."""
    parser = argparse.ArgumentParser(description="Compare fills on held-out scenes and photographs.")
    parser.add_argument("--n", type=int, default=60, help="scenes, and photographs at most")
    parser.add_argument("--photographs", help="a folder of JPEGs")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    frame = evaluate_inpainter(given.n, photographs=given.photographs, seed=given.seed)
    paths.write_csv(frame.round(4), paths.results("inpainter", "held-out.csv"))
    print(frame[frame["against"] == ""].round(3).to_string(index=False))


if __name__ == "__main__":
    main()
