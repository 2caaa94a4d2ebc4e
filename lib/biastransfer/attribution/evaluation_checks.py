"""Checks beside the metrics: do maps survive other settings, and do they change with other weights?

Both give rows as `evaluation.evaluate` does, so that `comparison` summarises them.
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from biastransfer.attribution.evaluation import COLUMNS, Evaluation, run_evaluation
from biastransfer.attribution.evaluation_plan import NO_FILL, map_jobs, setting_text
from biastransfer.attribution.evaluation_units import Explained, Subject, explain
from biastransfer.attribution.methods import METHODS
from biastransfer.attribution.robustness import SWEEPS, Sweep, compare_all
from biastransfer.attribution.sanity import weights_matter
from biastransfer.backbones import Backbone

MEASURES = ("ssim", "hog", "spearman")
_SIDE = 224  # of the pictures that the sweeps' pixels are meant for
_IN_PIXELS = ("patch", "blur_radius")


def scaled(sweep: Sweep, side: int) -> Sweep:
    """Return a ``sweep`` for pictures of ``side`` pixels: patches, at least a pixel apart, and blur to scale.

    Examples
    --------
    >>> scaled(SWEEPS["SP patch, wide"], 112).values
    (2, 14, 26)
    """
    if sweep.parameter not in _IN_PIXELS:
        return sweep
    values = [value * side / _SIDE for value in sweep.values]
    if sweep.parameter == "patch":
        pixels = [max(1, round(value)) for value in values]
        values = list(itertools.accumulate(pixels, lambda before, value: max(value, before + 1)))
    return dataclasses.replace(sweep, values=tuple(values))


def robustness_rows(
    backbone,
    pictures,
    methods: Mapping[str, Mapping],
    fills,
    *,
    sweeps: Sequence[str] = tuple(SWEEPS),
    most: int = 0,
    **options,
) -> pd.DataFrame:
    """Return how alike a method's maps are when one setting changes.

    Parameters
    ----------
    backbone, pictures, fills, **options
        As for `evaluation.run_evaluation`.
    methods : mapping
        Names of `METHODS` → settings besides the one that changes; sweeps of other methods are left out. The
        sweep of a blur is run with the fill "blur" alone, for no other fill depends on it.
    sweeps : sequence of str
        Names of `robustness.SWEEPS`; sizes in pixels are scaled to the pictures.
    most : int
        Values of each sweep that are compared, from its first; 0: all.

    Returns
    -------
    DataFrame
        Rows as `evaluation.evaluate` returns them: ``setting`` is the sweep, ``metric`` one of `MEASURES`,
        ``value`` its mean over all pairs of the sweep's values (1: the maps are the same).

    Raises
    ------
    ValueError
        An unknown sweep; otherwise as for `evaluation.run_evaluation`.
    """
    if unknown := [name for name in sweeps if name not in SWEEPS]:
        raise ValueError(f"unknown sweep {unknown[0]!r}; known: {', '.join(SWEEPS)}")
    side = (options.get("transform") or backbone.transform).size
    rows = []
    for name in sweeps:
        sweep = scaled(SWEEPS[name], side)
        if sweep.method not in methods:
            continue
        values = sweep.values[: most or None]
        settings = [{**methods[sweep.method], sweep.parameter: value} for value in values]
        own = {sweep.method: ["blur"]} if sweep.parameter == "blur_radius" else fills
        asked = {sweep.method: settings}, own, ["mass_inside_boxes"]  # a metric that costs nothing
        done = run_evaluation(backbone, pictures, *asked, **options)
        rows.append(_compared(done, name, sweep, dict(zip(map(setting_text, settings), values))))
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=list(COLUMNS))


def _compared(done: Evaluation, name: str, sweep: Sweep, settings: Mapping[str, object]) -> pd.DataFrame:
    facts = ["picture", "label", "objects", "target", "clean", "method", "fill"]
    rows = []
    for keys, part in done.rows.groupby(facts, sort=False, dropna=False):
        one = dict(zip(facts, keys))
        maps = {
            value: done.map(one["picture"], one["method"], one["fill"], text)
            for text, value in settings.items()
        }
        there = {value: heat for value, heat in maps.items() if heat is not None}
        lacking = "; ".join(
            dict.fromkeys(part["reason"][part["reason"].str.startswith(("heat map", "picture"))])
        )
        found = compare_all(there, data_range=sweep.data_range) if len(there) == len(maps) else None
        for measure in MEASURES:
            value = float("nan") if found is None else float(found[measure].mean(skipna=False))
            reason = lacking if found is None else "; ".join(filter(None, dict.fromkeys(found["reason"])))
            rows.append({**one, "setting": name, "metric": measure, "value": value, "reason": reason})
    return _as_rows(rows, "↑")


def sanity_rows(
    backbone: Backbone, pictures, methods: Mapping[str, Mapping], fills, *, seed: int = 0, **options
) -> pd.DataFrame:
    """Return how alike maps are before and after weights are randomised: those of the head, then all.

    Parameters
    ----------
    backbone : Backbone
        Restored exactly.
    pictures, methods, fills, **options
        As for `evaluation.run_evaluation`; nothing is kept, and ``fold`` plays no part.
    seed : int
        Of the new weights and of the methods.

    Returns
    -------
    DataFrame
        Rows as `evaluation.evaluate` returns them: ``setting`` is what is random ("head" or "all weights"),
        ``metric`` one of `MEASURES`; a map that explains the weights comes near 0.
    """
    taken = {name: options[name] for name in ("targets", "output", "transform") if name in options}
    explained = Explained.of(
        backbone,
        taken.pop("transform", None),
        **{"targets": "top", "output": "probability", **taken},
        fold=False,
    )
    rows = []
    for picture in getattr(pictures, "pictures", pictures):
        subject = Subject.of(picture, explained, seed)
        for job in map_jobs(methods, fills):
            keys = {**subject.facts, "method": job.method, "fill": job.fill}
            try:
                if subject.problem:
                    raise ValueError(subject.problem)
                found = weights_matter(
                    lambda: explain(subject, job, options.get("batch_size", 8)),  # noqa: B023  called here only
                    backbone.module, layers=[backbone.head, ""], seed=seed,
                )  # fmt: skip
            except Exception as problem:  # a map that fails is counted, whatever it fails by
                found = pd.DataFrame({name: [np.nan] * 2 for name in MEASURES} | {"reason": str(problem)})
            for what, one in zip(("head", "all weights"), found.to_dict("records")):
                same = {**keys, "setting": what, "reason": one["reason"]}
                rows += [{**same, "metric": measure, "value": one[measure]} for measure in MEASURES]
    return _as_rows(rows, "↓")


def _as_rows(rows: list[dict], direction: str) -> pd.DataFrame:
    return pd.DataFrame(rows).assign(metric_fill=NO_FILL, direction=direction).reindex(columns=list(COLUMNS))


def controls(methods) -> list[str]:
    """Return those of the ``methods`` that are controls: they know nothing of the network."""
    return [name for name in methods if METHODS[name].kind == "control"]
