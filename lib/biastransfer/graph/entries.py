"""The entries of ``runs/<run>.yaml``: one a page, or one for every combination of some values."""

import fnmatch
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from biastransfer.graph.dependencies import code_of
from biastransfer.parameters import ParameterError, declared, validate

# What a person may give on the command line, such as COCO=<folder>; in a run file it stands as $COCO.
DATA = {
    "RELEASED": "the folder or tar of the released analysis sets",
    "COCO_MINI": "a folder of some COCO pictures with annotations/instances.json and captions.json",
    "COCO": "the folder of COCO 2017: annotations, train2017 and val2017",
    "OPENIMAGES": "the folder of Open Images: its CSV files and pictures",
    "BOXES": "a folder of photographs, images, with boxes in COCO's format, instances.json",
}
_NAME = re.compile(r"\$(\w+)")
_PAGE = re.compile(r"\w[\w.+-]{0,199}")  # it becomes a file's name
_MOST = 100_000  # values in a run file, aliases written out; the largest run has some hundred
KEYS = {"page", "notebook", "parameters", "given", "after", "torch", "reads", "writes", "each", "resources"}
# What a page asks a cluster for, under the names that Snakemake's executors know: GPUs, MiB, minutes, cores.
# On one machine nothing is reserved. Pages that use torch ask for the second row.
RESOURCES = {"gpu": 0, "mem_mb": 8_000, "runtime": 60, "cpus_per_task": 2}
TORCH_RESOURCES = {"gpu": 1, "mem_mb": 16_000, "runtime": 240, "cpus_per_task": 4}


class RunError(ValueError):
    """A run that cannot start; the message is one sentence for the person who typed the command."""


def bounded(contents, run: str):
    """Return what a run file holds; refuse aliases that stand for more than can be gone through.

    Parameters
    ----------
    contents : object
        What YAML made of the file; aliases are shared in it, so that it may be small and stand for much.
    run : str
        For the message.

    Raises
    ------
    RunError
        More than 100,000 values, or an alias inside what it stands for.
    """
    waiting, seen = [contents], 0
    while waiting:
        value = waiting.pop()
        seen += 1
        if seen > _MOST:
            raise RunError(f"runs/{run}.yaml must hold {_MOST:,} values at most; its aliases stand for more.")
        if isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)
    return contents


def check_names(entry: Mapping, run: str) -> None:
    """Raise `RunError` unless an ``entry`` of ``run`` names its page, notebook and files as it must."""
    if not isinstance(entry["page"], str) or not _PAGE.fullmatch(entry["page"]):
        raise RunError(
            f"the name of a page must be letters, digits, '.', '_', '+' and '-'; got {entry['page']!r} in "
            f"runs/{run}.yaml. Rename it."
        )
    if not isinstance(entry["notebook"], str) or not _PAGE.fullmatch(entry["notebook"]):
        raise RunError(
            f"{entry['page']} in runs/{run}.yaml must name a notebook by its name in notebooks/; got "
            f"{entry['notebook']!r}."
        )
    for key in ("reads", "writes"):
        for name in entry.get(key, ()):
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise RunError(
                    f"{key} of {entry['page']} in runs/{run}.yaml must be a path below the compendium; "
                    f"got {name!r}."
                )


def resources(entry: Mapping, run: str) -> dict[str, int]:
    """Return what the page of an ``entry`` of ``run`` asks a cluster for: `RESOURCES`, changed by its own.

    Raises
    ------
    RunError
        An unknown name, or a value that is no whole number, below 0 or, beside ``gpu``, 0.
    """
    usual = TORCH_RESOURCES if entry.get("torch") else RESOURCES
    own = entry.get("resources", {})
    for name, value in own.items():
        if name not in usual or type(value) is not int or value < (name != "gpu"):
            raise RunError(
                f"resources of {entry['page']} in runs/{run}.yaml must be whole numbers of "
                f"{', '.join(RESOURCES)}; got {name}: {value!r}."
            )
    return {**usual, **own}


def expanded(entries: Iterable[Mapping], run: str) -> list[dict]:
    """Return an entry for every page: ``each`` gives one for every combination of its values.

    Parameters
    ----------
    entries : iterable of mapping
        As they stand in the file. ``each`` maps names to lists; ``{name}`` in any text of the entry becomes
        the value, and the values are parameters of the page as well.
    run : str
        For the message.

    Returns
    -------
    list of dict
        Without ``each``.

    Raises
    ------
    RunError
        An unknown key, or a name in braces that ``each`` does not have.

    Examples
    --------
    >>> entry = {"page": "{net}-{seed}", "each": {"net": ["a"], "seed": [0, 1]}}
    >>> [page["page"] for page in expanded([entry], "mine")]
    ['a-0', 'a-1']
    """
    pages = []
    for entry in entries:
        if unknown := set(entry) - KEYS:
            raise RunError(
                f"a page of runs/{run}.yaml takes the keys {', '.join(sorted(KEYS))}; got {sorted(unknown)}."
            )
        each = dict(entry.get("each", {}))
        rest = {key: value for key, value in entry.items() if key != "each"}
        for values in itertools.product(*each.values()):
            one = dict(zip(each, values))
            page = _filled(rest, one, f"{entry['page']} in runs/{run}.yaml") if each else dict(rest)
            if each:
                page["parameters"] = one | page.get("parameters", {})
            pages.append(page)
    return pages


def _filled(value, values: Mapping[str, object], where: str):
    """Put the values of ``each`` in the place of their names, in every text of an entry."""
    if isinstance(value, Mapping):
        return {key: _filled(inner, values, where) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, values, where) for inner in value]
    if not isinstance(value, str):
        return value
    try:
        return value.format(**values)
    except (KeyError, IndexError, ValueError) as error:
        raise RunError(
            f"{where}: only {', '.join(values)} may stand in braces, as `each` has them; got {value!r}."
        ) from error


def with_data(entry: Mapping, data: Mapping[str, str], run: str) -> tuple[dict, list[str]]:
    """Return the parameters of an entry with the data that were given, and the names of those it uses.

    Parameters
    ----------
    entry : mapping
        With ``parameters``, and ``given``: what changes in them with each of `DATA`. A change is made when
        everything that it names with a dollar sign is there.
    data : mapping of str to str
        Name of `DATA` → absolute path.
    run : str
        For the message.

    Raises
    ------
    RunError
        ``given`` names something that is not in `DATA`.
    """
    parameters = {**entry.get("parameters", {})}
    for name, changes in entry.get("given", {}).items():
        if name not in DATA:
            raise RunError(
                f"`given` of {entry['page']} in runs/{run}.yaml may name {', '.join(DATA)}; got {name!r}."
            )
        if {name, *named(changes)} <= set(data):
            parameters |= changes
    used = sorted(named(parameters) & set(data))
    return {key: _resolved(value, data) for key, value in parameters.items()}, used


def named(value) -> set[str]:
    """Return the names of `DATA` that stand in a value, with a dollar sign.

    Examples
    --------
    >>> sorted(named({"roots": ["$RELEASED:$COCO"], "seed": 1}))
    ['COCO', 'RELEASED']
    """
    if isinstance(value, Mapping):
        return set().union(*map(named, value.values()))
    if isinstance(value, list | tuple):
        return set().union(*map(named, value))
    return set(_NAME.findall(value)) & set(DATA) if isinstance(value, str) else set()


def _resolved(value, data: Mapping[str, str]):
    if isinstance(value, list):
        return [_resolved(inner, data) for inner in value]
    if isinstance(value, str):
        return _NAME.sub(lambda found: data.get(found[1], found[0]), value)
    return value


def matched(after: Sequence, names: Sequence[str], where: str) -> tuple[str, ...]:
    """Return the pages that come before another, patterns with ``*`` written out.

    Parameters
    ----------
    after : sequence
        Names and patterns, or lists of them that YAML anchors stand for.
    names : sequence of str
        Of all pages of the run.
    where : str
        The page, for the message.

    Raises
    ------
    RunError
        A name or pattern that no page has.
    """
    listed = [name for item in after for name in ([item] if isinstance(item, str) else item)]
    found = {pattern: fnmatch.filter(names, pattern) for pattern in listed}
    if unknown := [pattern for pattern, pages in found.items() if not pages]:
        raise RunError(f"{where} comes after {sorted(unknown)}, which no page is called.")
    return tuple(dict.fromkeys(name for pages in found.values() for name in pages))


def check_parameters(notebook: Path, parameters: Mapping[str, object], where: str) -> None:
    """Raise `RunError`, naming ``where``, unless the notebook declares these parameters and takes them."""
    known = next(filter(None, map(declared, code_of(notebook))), ())
    try:
        validate(known, parameters, where=where)
    except ParameterError as error:
        raise RunError(str(error)) from error
