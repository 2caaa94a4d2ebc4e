"""The networks of an audit: before, after, those that never learned; and their vectors of a set."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from biastransfer.analysis_sets import AnalysisSet
from biastransfer.audit.roles import Roles
from biastransfer.audit.words import for_an_audit
from biastransfer.backbones import Backbone, initialise_anew, layer_path, load_backbone
from biastransfer.checkpoints import state_hash
from biastransfer.embed import Condition, Embedded, Embeddings, by_class, embed
from biastransfer.embed.cache import key
from biastransfer.embed.untrained import normalise
from biastransfer.nulls import BASELINE, UNTRAINED

AUDITED = "audited"
BEFORE, AFTER = Condition(AUDITED, "pretrained", "", 0), Condition(AUDITED, "finetuned", "own", 0)
STAGES = {"before": BEFORE, "after": AFTER}


@dataclass(frozen=True)
class Networks:
    """What is compared.

    Attributes
    ----------
    before : Backbone
    after : Backbone or None
        None where one network is audited alone.
    names : dict of str to str
        Stage → the name that was given; of a file without its folder.
    files : frozenset of str
        Stages that were given as files.
    """

    before: Backbone
    after: Backbone | None
    names: dict[str, str]
    files: frozenset[str] = frozenset()

    @property
    def stages(self) -> dict[str, Backbone]:
        """Stage ("before", "after") → network."""
        return {"before": self.before} | ({"after": self.after} if self.after else {})

    @property
    def same(self) -> bool:
        """Whether both give the same embeddings: the same weights, heads left out, and the same transform."""
        return self.after is not None and _identity(self.before) == _identity(self.after)

    @property
    def one_architecture(self) -> bool:
        """Whether both are built alike, or there is but one."""
        return self.after is None or self.before.name == self.after.name


def load_networks(
    before: str | os.PathLike,
    after: str | os.PathLike | None = None,
    *,
    before_architecture: str | None = None,
    after_architecture: str | None = None,
    trust: bool = False,
    seed: int = 0,
) -> Networks:
    """Load the networks of an audit.

    Parameters
    ----------
    before, after : str or path
        As for `backbones.load_backbone`; no ``after`` where one network is audited alone.
    before_architecture, after_architecture : str, optional
        Of files that do not say what they hold.
    trust : bool
        Whether code in the files may run.
    seed : int
        Of networks that are random.

    Raises
    ------
    ValueError, FileNotFoundError
        As `load_backbone`; the message says which of the two.
    """
    found = {}
    given = {"before": (before, before_architecture), "after": (after, after_architecture)}
    for stage, (name, architecture) in given.items():
        if name in (None, ""):
            continue
        try:
            found[stage] = load_backbone(name, architecture=architecture or None, trust=trust, seed=seed)
        except (ValueError, FileNotFoundError) as problem:
            raise type(problem)(f"{stage}: {for_an_audit(problem, stage)}") from problem
    if "before" not in found:
        raise ValueError("before must name a network or a file; got none.")
    names = {stage: _shown(given[stage][0]) for stage in found}
    files = frozenset(stage for stage in found if os.path.isfile(given[stage][0]))
    return Networks(found["before"], found.get("after"), names, files)


def describe(backbone: Backbone, name: str, from_file: bool) -> dict:
    """Return what a report says of a network.

    Parameters
    ----------
    backbone : Backbone
    name : str
        As it was given; a file's without its folder.
    from_file : bool
        Whether it was a file.
    """
    return {
        "name": name,
        "file": from_file,
        "architecture": "TorchScript" if backbone.scripted else backbone.name,
        "source": backbone.source,
        "dimension": int(backbone.dim),
        "input_size": int(backbone.transform.size),
        "weights_sha256": state_hash(backbone.module.state_dict()),
    }


@dataclass(frozen=True)
class Vectors:
    """A set under all networks of an audit.

    Attributes
    ----------
    embedded : Embedded
        Condition → name for measures (see `Roles`) → (n, D). `BEFORE` and `AFTER` are the audited networks;
        untrained networks of a second architecture have target "after".
    items : DataFrame
        The pictures behind the rows: those that every network could embed, in the set's order, with a column
        ``name``, that for measures.
    lost : DataFrame
        Columns file (without its folder) and reason: pictures that are left out.
    why_no_null : dict of str to str
        Stage → why there are no untrained networks for it.
    notes : tuple of str
        Of the cache.
    """

    embedded: Embedded
    items: pd.DataFrame
    lost: pd.DataFrame
    why_no_null: dict[str, str]
    notes: tuple[str, ...]

    def family(self, stage: str) -> dict[Condition, dict]:
        """Return the vectors of the network of a ``stage`` and of its architecture's nulls."""
        own = "after" if stage == "after" and any(c.target == "after" for c in self.embedded) else ""
        if stage in self.why_no_null:
            own = "none"
        wanted = {STAGES[stage], *(c for c in self.embedded if c.backbone == BASELINE)}
        wanted |= {c for c in self.embedded if c.backbone == UNTRAINED and c.target == own}
        return {condition: found for condition, found in self.embedded.items() if condition in wanted}


def embed_all(
    networks: Networks,
    pictures: AnalysisSet,
    roles: Roles,
    untrained: int,
    seed: int = 0,
    report: Callable[[str], object] = str,
) -> Vectors:
    """Embed a set under the audited networks, colour and layout, and untrained networks.

    Parameters
    ----------
    networks : Networks
    pictures : AnalysisSet
    roles : Roles
        Classes without a role are not embedded.
    untrained : int
        Networks with initial weights for each architecture.
    seed : int
        Of the first untrained network; the others have those after it.
    report : callable
        Told each network before it runs.

    Returns
    -------
    Vectors

    Raises
    ------
    ValueError
        If no picture of a class could be embedded.
    """
    kept = pictures.items[pictures.items["class"].isin(roles.names)]
    known = replace(pictures, items=kept.reset_index(drop=True))
    found: dict[Condition, Embeddings] = {}
    for stage, backbone in networks.stages.items():
        report(f"{stage}: {networks.names[stage]}, {len(known.items)} pictures")
        found[STAGES[stage]] = embed(backbone, known)
    found[Condition(BASELINE, "pretrained", "", 0)] = embed(load_backbone(BASELINE), known)
    nulls, why = _untrained(networks, known, untrained, seed, report)
    found |= nulls
    embedded = by_class(known, found)
    whole = ~known.items["file"].isin(embedded.failed["file"])
    items = known.items[whole].reset_index(drop=True)
    items["name"] = items["class"].map(roles.names)
    renamed = Embedded()
    for condition, vectors in embedded.items():
        renamed[condition] = {roles.names[name]: rows for name, rows in vectors.items()}
    return Vectors(renamed, items, embedded.failed[["file", "reason"]], why, embedded.notes)


def _untrained(
    networks: Networks, known: AnalysisSet, untrained: int, seed: int, report: Callable[[str], object]
) -> tuple[dict[Condition, Embeddings], dict[str, str]]:
    found: dict[Condition, Embeddings] = {}
    why: dict[str, str] = {}
    files = known.items["file"].tolist()
    for stage, backbone in networks.stages.items():
        if stage == "after" and networks.one_architecture and not backbone.scripted:
            continue  # those of before serve both
        first = seed + (backbone.name == UNTRAINED)  # an audited random network is not its own null
        try:
            for number in range(first, first + untrained):
                report(f"untrained network {number - first + 1} of {untrained}: {backbone.name}")
                network = normalise(initialise_anew(backbone, number), files)
                target = "" if stage == "before" else "after"
                found[Condition(UNTRAINED, "pretrained", target, number)] = embed(network, known)
        except ValueError as problem:
            why[stage] = str(problem)
    if "before" in why and networks.one_architecture and "after" in networks.stages:
        why.setdefault("after", why["before"])
    return found, why


def _identity(backbone: Backbone) -> str:
    return key(backbone, layer_path(backbone, None))


def _shown(name: str | os.PathLike) -> str:
    """Return a name as it was given, a file without its folder."""
    return Path(name).name if os.path.isfile(name) else str(name)
