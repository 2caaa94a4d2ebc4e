"""One picture, one map, its metrics: what `evaluation.run_evaluation` repeats."""

import contextlib
import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from biastransfer.attribution.evaluation_plan import POINTS, MapJob, MetricJob
from biastransfer.attribution.evaluation_store import (
    array_hash,
    code_hash,
    digest,
    identity,
    read_map,
    read_record,
    write_map,
    write_record,
)
from biastransfer.attribution.heatmaps import score_pictures
from biastransfer.attribution.methods import METHODS, heat_map
from biastransfer.attribution.metrics import METRICS
from biastransfer.attribution.networks import folded, pixel_module
from biastransfer.attribution.pictures import AttributionPicture, Prepared, prepare
from biastransfer.attribution.scores import Score, class_score
from biastransfer.attribution.targets import target_of
from biastransfer.backbones import Backbone, Transform

Folders = tuple[Path, Path]  # for good, and for this call alone


@dataclass(frozen=True, eq=False)
class Explained:
    """A network and which of its classes are explained; ``quick`` is the copy that only runs forward."""

    network: object
    quick: object
    transform: object
    normalise: object
    classes: Sequence[str]
    targets: str | Mapping
    output: str
    identity: str | None

    @classmethod
    def of(cls, backbone, transform, *, targets, output: str, fold: bool) -> "Explained":
        """Return it for a ``backbone``, ``transform``, ``targets``, ``output`` and ``fold`` as given."""
        ours = isinstance(backbone, Backbone)
        crop = transform or (backbone.transform if ours else None)
        if crop is None:
            raise ValueError(
                "a plain module needs transform=, which says how pictures are cropped and resized: a "
                "backbones.Transform, or boxes.Warp for one that takes pixels in [0, 1]."
            )
        if fold and not ours:
            raise ValueError("only a Backbone is folded; got a module. Leave fold out.")
        module = backbone.module if ours else backbone
        normalise = crop if isinstance(crop, Transform) and not ours else None
        known = [identity(module), identity(normalise), backbone.transform.to_dict() if ours else ""]
        whole = None if None in known else digest(known, output)
        quick = folded(backbone) if fold else backbone
        classes = tuple(getattr(backbone, "classes", ()))
        return cls(backbone, quick, crop, normalise, classes, targets, output, whole)

    def score(self, target: int, *, quick: bool) -> Score:
        """Return the score of a ``target``, by the ``quick`` copy or the network itself."""
        network = self.quick if quick else self.network
        return class_score(network, target, output=self.output, transform=self.normalise)


@dataclass(frozen=True, eq=False)
class Subject:
    """One picture ready to be explained, or the ``problem`` that keeps it from that."""

    picture: AttributionPicture
    problem: str = ""
    prepared: Prepared | None = None
    target: int | None = None
    clean: float = float("nan")
    seed: int = 0
    identity: str | None = ""
    scores: Mapping[bool, Score] = field(default_factory=dict)  # by whether it is the quick one

    @classmethod
    def of(cls, picture: AttributionPicture, explained: Explained, seed: int) -> "Subject":
        """Return it for a ``picture``, what is ``explained``, and a ``seed``."""
        try:
            prepared = prepare(picture, explained.transform)
            module = pixel_module(explained.network, transform=explained.normalise)
            outputs = score_pictures(module, prepared.image[None]).reshape(1, -1)[0]
            target = target_of(outputs, picture.label, explained.targets, explained.classes)
            scores = {quick: explained.score(target, quick=quick) for quick in (True, False)}
            clean = float(score_pictures(scores[True], prepared.image[None])[0])
        except Exception as problem:  # a picture that fails is counted, whatever it fails by
            return cls(picture, _said(problem))
        pixels = array_hash(prepared.image)
        own = int(digest(seed, pixels)[:8], 16) % 2**31
        whole = None if explained.identity is None else digest(explained.identity, pixels, target)
        return cls(picture, "", prepared, target, clean, own, whole, scores)

    @property
    def facts(self) -> dict:
        """Return what every row says of the picture."""
        boxes = self.prepared.boxes_of(self.picture.label) if self.prepared else ()
        names = {"picture": self.picture.name, "label": self.picture.label, "objects": len(boxes)}
        return names | {"target": self.target, "clean": self.clean}


def rows_of(
    subject: Subject, job: MapJob, measures: Sequence[MetricJob], folders: Folders, *, batch_size: int
) -> tuple[list[dict], str]:
    """Return the rows of one map, and its key; what is in the ``folders`` is not computed again.

    Parameters
    ----------
    subject : Subject
    job : MapJob
    measures : sequence of MetricJob
    folders : (path, path)
    batch_size : int
    """
    keys = {**subject.facts, "method": job.method, "fill": job.fill, "setting": job.setting}
    if subject.problem:
        return [_row(keys, one, {"reason": f"picture: {subject.problem}"}) for one in measures], ""
    options = {**METHODS[job.method].settings, "seed": subject.seed, **job.options}
    parts = [code_hash(), subject.identity, job.method, options, job.fill, job.identity]
    key = digest(*parts)
    place = folders[None in (subject.identity, job.identity)]
    record = read_record(place, key)
    heat = read_map(place, key) if record else None
    if heat is None:
        try:
            with _counted(subject.scores[_forward_only(job.method)]) as cost:
                heat = explain(subject, job, batch_size)
        except Exception as problem:  # counted, whatever it fails by
            return [_row(keys, one, {"reason": f"heat map: {_said(problem)}"}) for one in measures], key
        write_map(place, key, heat)
        record = {"metrics": {}, **cost}
        write_record(place, key, record)
    found = _measured(subject, heat, measures, key, record, (place, folders[1]), batch_size)
    cost = {"map_seconds": record["seconds"], "map_forwards": record["forwards"]}
    return [_row({**keys, **cost}, one, values) for one, values in zip(measures, found)], key


def _measured(subject, heat, measures, key, record, folders: Folders, batch_size: int) -> list[dict]:
    """Return every metric's values, from what is kept where it is there; write down what is new."""
    passing = read_record(folders[1], key) if folders[0] != folders[1] else record
    passing = passing or {**record, "metrics": {}}
    found, changed = [], set()
    for job in measures:
        own = digest(job.metric, job.options, job.fill, job.identity, _region_hash(subject, job.metric))
        keeps = passing if job.identity is None else record
        values = keeps["metrics"].get(own)
        if values is None:
            values = _measure(subject, heat, job, batch_size)
            if not values.pop("failed", False):
                keeps["metrics"][own] = values
                changed.add(job.identity is None)
        found.append(values)
    for late in changed:
        write_record(folders[late], key, passing if late else record)
    return found


def explain(subject: Subject, job: MapJob, batch_size: int) -> np.ndarray:
    """Return the heat map (H, W) of a ``subject`` that a ``job`` asks for, ``batch_size`` pictures a pass."""
    options = {"seed": subject.seed, "fill": job.filling, "batch_size": batch_size, **job.options}
    return heat_map(job.method, subject.scores[_forward_only(job.method)], subject.prepared.image, **options)


def _forward_only(method: str) -> bool:
    return METHODS[method].kind == "perturbation" and method != "meaningful_perturbation"


def _measure(subject: Subject, heat: np.ndarray, job: MetricJob, batch_size: int) -> dict:
    metric, score = METRICS[job.metric], subject.scores[True]
    with _counted(score) as cost:
        try:
            if metric.needs == "score":
                options = _options(metric.measure, job, heat.size, batch_size, subject.seed)
                result = metric.measure(score, subject.prepared.image, heat, **options)
            else:
                result = metric.measure(heat, _region(subject, metric.needs), **job.options)
        except Exception as problem:  # a metric that fails is counted, whatever it fails by
            return {"reason": _said(problem), "failed": True}
    floor = getattr(result, "at_area_floor", None)
    values = {"value": float(result.value), "reason": result.reason, "at_floor": floor}
    if hasattr(result, "scores"):
        values["curve"] = [result.fractions.tolist(), result.scores.tolist()]
    return {"metric": job.metric, "metric_fill": job.fill, **values, **cost}


def _options(measure: Callable, job: MetricJob, pixels: int, batch_size: int, seed: int) -> dict:
    known = inspect.signature(measure).parameters
    every = {
        "step": max(1, round(pixels / POINTS)),
        "fill": job.filling,
        "batch_size": batch_size,
        "seed": seed,
    }
    return {**{name: value for name, value in every.items() if name in known}, **job.options}


def _region(subject: Subject, needs: str):
    label = subject.picture.label
    found = subject.prepared.boxes_of(label) if needs == "boxes" else subject.prepared.masks.get(label)
    if found is None or not len(found):
        raise ValueError(
            f"the picture has no {'box' if needs == 'boxes' else 'mask'} of {label or 'its class'!r}"
        )
    return found


def _region_hash(subject: Subject, metric: str) -> str:
    if METRICS[metric].needs == "score":
        return ""
    with contextlib.suppress(ValueError):
        return array_hash(_region(subject, METRICS[metric].needs))
    return "none"


@contextlib.contextmanager
def _counted(score: Score) -> Iterator[dict]:
    """Give a record that has, when the block ends, its seconds and the pictures through the network."""
    cost = {"seconds": 0.0, "forwards": 0}

    def count(module, inputs) -> None:
        cost["forwards"] += len(inputs[0])

    started, handle = time.perf_counter(), score.module.register_forward_pre_hook(count)
    try:
        yield cost
    finally:
        handle.remove()
        cost["seconds"] = round(time.perf_counter() - started, 6)


def _row(keys: Mapping, job: MetricJob, values: Mapping) -> dict:
    same = {"metric": job.metric, "metric_fill": job.fill, "direction": METRICS[job.metric].direction}
    nothing = {"value": float("nan"), "seconds": float("nan"), "forwards": 0}
    return {**keys, **same, **nothing, **{name: value for name, value in values.items() if name != "curve"}}


def _said(problem: Exception) -> str:
    text = " ".join(str(problem).split()) or type(problem).__name__
    return text if isinstance(problem, ValueError) else f"{type(problem).__name__}: {text}"
