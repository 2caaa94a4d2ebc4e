"""What an evaluation has to do: every map and every metric of it, checked before anything is computed."""

import inspect
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from biastransfer.attribution.curves import name_of
from biastransfer.attribution.evaluation_store import identity
from biastransfer.attribution.methods import METHODS
from biastransfer.attribution.metrics import METRICS
from biastransfer.attribution.removal import Fill, make_fill

DEFAULT = "default"  # the setting of a map with its method's own
NO_FILL = "none"  # of a method that removes nothing, and of a metric that does not
# methods whose map depends on what stands in removed places; integrated gradients fill the whole picture,
# which leaves in-painters nothing to go by, so they keep their baseline
FILLED = tuple(
    name
    for name, method in METHODS.items()
    if "fill" in inspect.signature(method.function).parameters and name != "integrated_gradients"
)
POINTS = 28  # steps of a curve: 1,792 of 224 · 224 pixels, the paper's; as many at other sizes


@dataclass(frozen=True)
class MapJob:
    """One heat map a picture: a method, what it removes with, and settings that differ from its own."""

    method: str
    fill: str
    setting: str
    options: Mapping = field(default_factory=dict)
    filling: str | Fill | None = None
    identity: str | None = ""  # of the fill; None where nothing tells it from another


@dataclass(frozen=True)
class MetricJob:
    """One metric a map: its name, what it removes with, its settings."""

    metric: str
    fill: str
    options: Mapping = field(default_factory=dict)
    filling: str | Fill | None = None
    identity: str | None = ""  # of the fill; None where nothing tells it from another


def map_jobs(methods: Sequence[str] | Mapping, fills) -> list[MapJob]:
    """Return the maps of every picture: each method with each setting, and each fill where it removes.

    Parameters
    ----------
    methods : sequence of str, or mapping
        Names of `METHODS`; a mapping has their settings, one mapping or several to be compared.
    fills : sequence or mapping
        As for `evaluation.evaluate`.

    Returns
    -------
    list of MapJob

    Raises
    ------
    ValueError
        No method, an unknown one, a setting that it does not have, an unknown fill, two fills of one name.
    """
    by_method = isinstance(fills, Mapping) and set(fills) <= set(METHODS)
    named = {} if by_method else named_fills(fills)
    listed = [(name, {}) for name in methods] if not isinstance(methods, Mapping) else [
        (name, one) for name, given in methods.items() for one in _several(given)
    ]  # fmt: skip
    if not listed:
        raise ValueError(f"methods must name at least one; got none. Known: {', '.join(METHODS)}")
    jobs = []
    for name, options in listed:
        if name not in METHODS:
            raise ValueError(f"unknown method {name!r}; known: {', '.join(METHODS)}")
        known = set(inspect.signature(METHODS[name].function).parameters)
        known -= {"fill", "batch_size", "space", "score", "module", "image", "target"}
        if unknown := sorted(set(options) - known):
            raise ValueError(f"{name} has no setting {', '.join(unknown)}; known: {', '.join(sorted(known))}")
        own = METHODS[name].settings.get("fill", NO_FILL)
        with_fills = {own: ()} if name not in FILLED else named or named_fills(fills.get(name, [own]))
        jobs += [
            MapJob(name, label, setting_text(options), options, *fill) for label, fill in with_fills.items()
        ]
    return _once(jobs, "methods")


def metric_jobs(metrics: Sequence[str] | Mapping, fills) -> list[MetricJob]:
    """Return the metrics of every map: each with each of its fills where it removes; none for maps alone.

    Parameters
    ----------
    metrics : sequence of str, or mapping
        Names of `METRICS`; a mapping has their settings.
    fills : None, sequence or mapping
        As ``metric_fills`` of `evaluation.evaluate`.

    Returns
    -------
    list of MetricJob

    Raises
    ------
    ValueError
        An unknown metric, fills for one that is not asked for; otherwise as for `map_jobs`.
    """
    given = metrics if isinstance(metrics, Mapping) else {name: {} for name in metrics}
    if unknown := [name for name in given if name not in METRICS]:
        raise ValueError(f"unknown metric {unknown[0]!r}; known: {', '.join(METRICS)}")
    by_metric = isinstance(fills, Mapping) and set(fills) <= set(METRICS)
    if by_metric and (extra := sorted(set(fills) - set(given))):
        raise ValueError(f"metric_fills names {', '.join(extra)}, which is not among the metrics.")
    jobs = []
    for name, options in given.items():
        if not METRICS[name].filled:
            jobs.append(MetricJob(name, NO_FILL, options))
            continue
        own = [inspect.signature(METRICS[name].measure).parameters["fill"].default]
        chosen = (fills.get(name, own) if by_metric else fills) or own
        jobs += [MetricJob(name, label, options, *fill) for label, fill in named_fills(chosen).items()]
    return jobs


def named_fills(fills: Iterable | Mapping) -> dict[str, tuple[str | Fill, str | None]]:
    """Return fills and their identities by name: callables by their own name or the one given.

    Parameters
    ----------
    fills : sequence of str or callable, or mapping of str to either

    Raises
    ------
    ValueError
        No fill, an unknown one, or two of one name; what a fill needs and lacks.
    """
    if isinstance(fills, str):
        raise ValueError(f"fills must be a list of fills or a mapping; got {fills!r}. Write [{fills!r}].")
    pairs = list(fills.items()) if isinstance(fills, Mapping) else [(name_of(one), one) for one in fills]
    if not pairs:
        raise ValueError("fills must name at least one; got none.")
    names = [name for name, _ in pairs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(
            f"fills must have different names; {twice[0]!r} stands there twice. Give a mapping from names."
        )
    tile = torch.zeros(3, 16, 16)
    for _, fill in pairs:
        if isinstance(fill, str):  # a missing file or package is said now, not after hours
            make_fill(fill)(tile, torch.eye(16, dtype=torch.bool))
    given = isinstance(fills, Mapping)
    return {name: (fill, identity(fill, name if given else "")) for name, fill in pairs}


def setting_text(options: Mapping) -> str:
    """Return settings as the text that tells rows apart.

    Parameters
    ----------
    options : mapping

    Examples
    --------
    >>> setting_text({"stride": 28, "patch": 53})
    'patch=53, stride=28'
    """
    return ", ".join(f"{name}={options[name]}" for name in sorted(options)) or DEFAULT


def _several(given) -> list[Mapping]:
    return [given] if isinstance(given, Mapping) else list(given)


def _once(jobs: list[MapJob], what: str) -> list[MapJob]:
    keys = [(job.method, job.fill, job.setting) for job in jobs]
    for key in itertools.filterfalse(lambda key: keys.count(key) == 1, keys):
        raise ValueError(
            f"{what} must ask for each map once; {' '.join(filter(None, key))} stands there twice."
        )
    return jobs
