"""From two names and a folder of pictures to one HTML file and one JSON file."""

import json as json_module
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure
from pandas import DataFrame

from biastransfer import paths
from biastransfer.analysis_sets import AnalysisSet, load_set
from biastransfer.analysis_sets.lint import lint
from biastransfer.analysis_sets.named import load_named
from biastransfer.audit import answers, page
from biastransfer.audit.facts import collect
from biastransfer.audit.figures import draw, svg_uri
from biastransfer.audit.maps import explain, telling
from biastransfer.audit.measures import measure
from biastransfer.audit.networks import embed_all, load_networks
from biastransfer.audit.roles import find_roles, parse_roles
from biastransfer.audit.rules import PASSED, decide, parse_rules


@dataclass(frozen=True)
class Audit:
    """What an audit came to.

    Attributes
    ----------
    facts : dict
        As in audit.json.
    figures : dict of str to Figure
        Those of the report: similarities, transfer, associations.
    html, json : Path or None
        The files that were written.
    """

    facts: dict
    figures: dict[str, Figure]
    html: Path
    json: Path | None

    @property
    def passed(self) -> bool:
        """Whether every rule passed; a rule that could not be decided did not."""
        return all(one["decision"] == PASSED for one in self.facts["rules"])


def audit(
    before: str | os.PathLike,
    after: str | os.PathLike | None = None,
    *,
    pictures: str | os.PathLike | AnalysisSet,
    out: str | os.PathLike,
    json: str | os.PathLike | None = None,
    fail_on: Sequence[str] = (),
    roles: Mapping[str, Sequence[str]] | Sequence[str] | None = None,
    untrained: int = 19,
    seed: int = 0,
    maps: int = 10,
    resamples: int = 2000,
    fill: str = "mean",
    before_architecture: str | None = None,
    after_architecture: str | None = None,
    trust: bool = False,
    root: str = "",
    scale: float = 1.0,
    report: Callable[[str], object] = str,
) -> Audit:
    """Audit a network, or a network before and after finetuning, on pictures of one's own.

    Parameters
    ----------
    before, after : str or path
        As for `load_backbone`; without ``after`` one network is audited alone.
    pictures : path, str or AnalysisSet
        A folder with a folder a class, ``object+attribute`` for combinations, or the name of a set as
        ``load_named`` takes it.
    out : path
        The HTML file.
    json : path, optional
        The same as plain values, see audit.schema.json.
    fail_on : sequence of str
        Rules on bounds of intervals, see `rules.parse_rules`.
    roles : mapping or sequence of str, optional
        "attributes", "objects", "random" → classes, or ``key=name,name``; what is left out is inferred.
    untrained : int
        Networks of the same architecture with initial weights, beside every number; 0 for none.
    seed, resamples : int
        Of everything random; resamples of the pictures for intervals.
    maps : int
        Pictures with association maps.
    fill : str
        What the sliding patch covers a picture with.
    before_architecture, after_architecture : str, optional
        Of files that do not say what they hold.
    trust : bool
        Whether code in the files (TorchScript, pickles) may run.
    root, scale
        Of a set that is given by name.
    report : callable
        Told, in a few words, each network and stage before it begins; by default nobody is.

    Returns
    -------
    Audit

    Raises
    ------
    ValueError, FileNotFoundError, NotADirectoryError
        A network, set, role or rule that cannot be; the message says what to do.
    """
    rules = parse_rules(fail_on)
    counts = {"seed": seed, "untrained": untrained, "maps": maps, "resamples": resamples}
    _check(counts, {"out": out, "json": json})
    known = _pictures(pictures, root, scale, seed)
    found = find_roles(known.classes, _roles(roles, known.classes))
    architectures = {"before_architecture": before_architecture, "after_architecture": after_architecture}
    networks = load_networks(before, after, **architectures, trust=trust, seed=seed)
    vectors = embed_all(networks, known, found, untrained, seed, report)
    report(f"similarities, associations and scores, {resamples} resamples of the pictures")
    numbers = measure(vectors, found, resamples=resamples, seed=seed)
    explained = explain(networks, vectors, telling(vectors), maps, fill=fill, seed=seed, report=report)
    settings = {"seed": seed, "resamples": resamples, "untrained": untrained, "fill": fill}
    facts = collect(networks, known, found, vectors, numbers, _linted(known, report), explained, settings)
    facts |= {"answer": answers.answer(facts), "cannot_show": answers.cannot_show(facts)}
    facts["rules"] = decide(rules, facts)
    figures = draw(numbers, found, networks.names)
    _write(out, page.render(facts, {name: svg_uri(one) for name, one in figures.items()}, explained))
    _write(json, json_module.dumps(facts, indent=2, ensure_ascii=False) + "\n")
    return Audit(facts, figures, Path(out), None if json is None else Path(json))


def _check(counts: Mapping[str, int], files: Mapping[str, str | os.PathLike | None]) -> None:
    """Refuse, before any network runs, what cannot come to an end."""
    for name, value in counts.items():
        least = 100 if name == "resamples" else 0
        if value < least:
            raise ValueError(f"{name} must be at least {least}; got {value}.")
    written = [os.path.realpath(file) for file in files.values() if file is not None]
    if len(set(written)) < len(written):
        raise ValueError(f"{' and '.join(files)} must be two files; both are {files['out']}. Rename one.")
    for name, file in files.items():
        paths.check_writable(file, f"{name} (--{name})")


def _roles(roles, classes: Sequence[str]) -> Mapping[str, Sequence[str]] | None:
    return roles if roles is None or isinstance(roles, Mapping) else parse_roles(roles, classes)


def _pictures(pictures, root: str, scale: float, seed: int) -> AnalysisSet:
    if isinstance(pictures, AnalysisSet):
        return pictures
    if os.path.exists(pictures):
        if root:
            raise ValueError(
                f"root (--root) must be left out beside a folder of pictures: it says where a set by name "
                f"lies; got {str(root)!r} and the folder {pictures}."
            )
        return load_set("folder", root=pictures)
    try:
        return load_named(str(pictures), root=root, scale=scale, seed=seed)
    except ValueError as problem:
        raise ValueError(
            f"pictures must be a folder or the name of a set; {pictures} is no folder, and {problem}"
        ) from None


def _linted(known: AnalysisSet, report: Callable[[str], object]) -> DataFrame:
    report("the pictures themselves: copies, imbalance, damage")
    return lint(known)


def _write(file: str | os.PathLike | None, text: str) -> None:
    if file is None:
        return
    with paths.replacing(file) as partial:
        partial.write_text(text, encoding="utf-8")
