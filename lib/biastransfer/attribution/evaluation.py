"""Methods × fills × metrics on pictures, in one call: tidy rows, resumed where a run was stopped."""

import itertools
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from torch import nn
from tqdm import tqdm

from biastransfer import paths
from biastransfer.attribution.evaluation_plan import DEFAULT, map_jobs, metric_jobs
from biastransfer.attribution.evaluation_store import read_map, read_record
from biastransfer.attribution.evaluation_units import Explained, Subject, rows_of
from biastransfer.attribution.pictures import AttributionPicture, PictureSet
from biastransfer.backbones import Backbone

COLUMNS = (
    "picture", "label", "objects", "target", "clean", "method", "fill", "setting", "metric", "metric_fill",
    "direction", "value", "seconds", "forwards", "map_seconds", "map_forwards", "at_floor", "reason",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What an evaluation found.

    Attributes
    ----------
    rows : DataFrame
        As `evaluate` returns them.
    skipped : DataFrame
        Columns picture and reason: what the pictures' source had left out.
    keys : mapping
        (picture, method, fill, setting) → key of its map.
    folders : (path, path)
        What is kept, and what is there as long as this object: that which only a callable made.
    """

    rows: pd.DataFrame
    skipped: pd.DataFrame
    keys: Mapping[tuple[str, str, str, str], str]
    folders: tuple[Path, Path]
    lasting: object = None

    def map(self, picture: str, method: str, fill: str, setting: str = DEFAULT) -> np.ndarray | None:
        """Return the heat map (H, W) of a ``picture`` by a ``method``, ``fill`` and ``setting``, or None."""
        key = self.keys.get((picture, method, fill, setting), "")
        found = [read_map(folder, key) for folder in self.folders] if key else []
        return next((one for one in found if one is not None), None)

    def curves(self, metric: str = "deletion") -> pd.DataFrame:
        """Return the curves of one ``metric``, a row a point: read from the store, not held.

        Returns
        -------
        DataFrame
            picture, method, fill, setting, metric, metric_fill, fraction, score.
        """
        parts = []
        for (names, key), folder in itertools.product(self.keys.items(), self.folders):
            for found in read_record(folder, key).get("metrics", {}).values() if key else ():
                if found["metric"] == metric and found.get("curve"):
                    keys = dict(zip(("picture", "method", "fill", "setting"), names))
                    keys |= {"metric": metric, "metric_fill": found["metric_fill"]}
                    fractions, scores = found["curve"]
                    parts.append(pd.DataFrame({**keys, "fraction": fractions, "score": scores}))
        columns = ["picture", "method", "fill", "setting", "metric", "metric_fill", "fraction", "score"]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def evaluate(
    backbone: Backbone | nn.Module,
    pictures: PictureSet | Iterable[AttributionPicture],
    methods: Sequence[str] | Mapping,
    fills: Sequence | Mapping,
    metrics: Sequence[str] | Mapping,
    **options,
) -> pd.DataFrame:
    """Evaluate heat maps: every method with every fill by every metric on every picture.

    Parameters
    ----------
    backbone, pictures, methods, fills, metrics, **options
        As for `run_evaluation`.

    Returns
    -------
    DataFrame
        One row a picture, method, fill, setting, metric and metric_fill: label; objects (annotated boxes of
        the class); target (the class explained) and clean (its score on the whole picture); direction (which
        way is better: ``"↑"`` or ``"↓"``) and value; seconds and forwards (pictures through the network) of
        the metric, map_seconds and map_forwards of the map; at_floor (the saliency metric's area was at its
        floor); reason (why there is no value, or what is odd about it; else "").

    Raises
    ------
    ValueError, FileNotFoundError
        As for `run_evaluation`.
    """
    return run_evaluation(backbone, pictures, methods, fills, metrics, **options).rows


def run_evaluation(
    backbone: Backbone | nn.Module,
    pictures: PictureSet | Iterable[AttributionPicture],
    methods: Sequence[str] | Mapping,
    fills: Sequence | Mapping,
    metrics: Sequence[str] | Mapping,
    *,
    metric_fills: Sequence | Mapping | None = None,
    targets: str | Mapping = "top",
    output: str = "probability",
    transform=None,
    fold: bool = False,
    batch_size: int = 8,
    seed: int = 0,
    store: Path | str | None = None,
) -> Evaluation:
    """Evaluate heat maps and keep the maps and curves.

    Parameters
    ----------
    backbone : Backbone or torch.nn.Module
        Gives (N, classes).
    pictures : PictureSet or iterable of AttributionPicture
        Names must differ. One picture is held at a time.
    methods : sequence of str, or mapping
        Names of `methods.METHODS`. A mapping has settings that differ from the method's own, one mapping or a
        list of them to be compared: ``{"sliding_patch": [{"patch": 29}, {"patch": 53}], "gradcam": {}}``.
    fills : sequence, or mapping of str to fill
        What methods that remove pixels do it with: names of `removal.FILLS`, or callables (images, masks) →
        images; or a mapping from methods to the fills of each. Maps and metrics with a callable are kept for
        later runs only where a mapping names it: the name stands for what it does.
    metrics : sequence of str, or mapping
        Names of `metrics.METRICS`; a mapping has settings that differ. None are needed for maps alone.
    metric_fills : sequence or mapping, optional
        Fills of the metrics that remove pixels, for all or by metric. Default: each metric's own.
    targets : str or mapping
        The class to explain, fixed once a picture: see `targets.target_of`. Boxes and masks are those of the
        picture's label.
    output : str
        As for `scores.class_score`.
    transform : Transform or boxes.Warp, optional
        How pictures are cropped and resized. A backbone brings its own; a plain module needs one, and a
        `Transform` also normalises for it.
    fold : bool
        Whether what only runs forward uses a copy with batch normalisation folded away: about 1.15 times
        as fast, the same values to 2e-6. For a `Backbone`.
    batch_size : int
        Pictures a forward pass; it changes no value beyond rounding, and how many are sent to fill the last
        pass up.
    seed : int
        Of methods and fills that draw random numbers; each picture has a seed of its own from it and its
        pixels.
    store : path, optional
        Folder of what has been computed. Default: below ``data/derived``.

    Returns
    -------
    Evaluation

    Raises
    ------
    ValueError
        An unknown method, fill, metric or setting; no picture, or two of one name; a plain module without a
        transform. What goes wrong with one picture, map or metric is a row with a reason.
    FileNotFoundError
        A fill whose file is not there.

    Notes
    -----
    Killed at any time, a later call goes on where it was: everything is kept by its content, whole or not at
    all. Failures are not kept; a later call tries them again.
    """
    maps, measures = map_jobs(methods, fills), metric_jobs(metrics, metric_fills)
    listed = list(pictures.pictures if isinstance(pictures, PictureSet) else pictures)
    if not listed or len({one.name for one in listed}) < len(listed):
        raise ValueError(f"pictures must be there and have different names; got {len(listed)}.")
    explained = Explained.of(backbone, transform, targets=targets, output=output, fold=fold)
    lasting = tempfile.TemporaryDirectory(prefix="biastransfer-")
    folders = Path(store) if store else paths.attribution_store(), Path(lasting.name)
    rows: list[dict] = []
    keys = {}
    with tqdm(total=len(listed) * len(maps), unit="map", disable=None) as progress:
        for picture in listed:
            subject = Subject.of(picture, explained, seed)
            for job in maps:
                found, key = rows_of(subject, job, measures, folders, batch_size=batch_size)
                rows += found
                keys[picture.name, job.method, job.fill, job.setting] = key
                progress.update()
    nothing = pd.DataFrame(columns=["picture", "reason"])
    skipped = pictures.skipped if isinstance(pictures, PictureSet) else nothing
    return Evaluation(pd.DataFrame(rows, columns=list(COLUMNS)), skipped, keys, folders, lasting)
