"""An audit as plain values that JSON can hold: what ``audit.json`` documents, see audit.schema.json."""

import importlib.metadata
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from biastransfer.analysis_sets import AnalysisSet
from biastransfer.audit.maps import Explained
from biastransfer.audit.measures import Measures
from biastransfer.audit.networks import Networks, Vectors, describe
from biastransfer.audit.roles import Roles
from biastransfer.images import without_folder

SCHEMA, VERSION = "biastransfer-audit", 1
NULL_COLUMNS = ["n_untrained", "untrained_low", "untrained_median", "untrained_high"]
SIMILARITY = ["value", "low", "high", "n", *NULL_COLUMNS, "thumbnail", "reason"]
ASSOCIATION = [
    *("effect_size", "low", "high", "p", "p_holm", "direction", *NULL_COLUMNS, "p_untrained", "thumbnail"),
    *("added", "added_low", "added_high", "detectable", "n_x", "n_y", "n_a", "n_b", "n_tests", "method"),
    "reason",
]
CHANGE = ["before", "after", "change", "low", "high", "p", "p_holm", "verdict"]
TRANSFER = [
    *("kind", "r", "low", "high", "p_exact", "p_holm", "ceiling", "cross_half", "n", "pictures"),
    *("r_significant", *NULL_COLUMNS, "reason"),
]
RENAMED = {"n": "n_items", "pictures": "smallest_class", "thumbnail": "colour_and_layout"}


def collect(
    networks: Networks,
    pictures: AnalysisSet,
    roles: Roles,
    vectors: Vectors,
    measures: Measures,
    findings: pd.DataFrame,
    explained: Sequence[Explained],
    settings: dict,
) -> dict:
    """Put an audit's results together, under the names that the set's classes have.

    Parameters
    ----------
    networks, pictures, roles, vectors, measures, explained
        Of the audit.
    findings : DataFrame
        From `lint`.
    settings : dict
        seed, resamples, untrained, fill.

    Returns
    -------
    dict
        Without NaN: what does not exist is None. No folder of this machine is in it.
    """
    facts = {
        "schema": SCHEMA,
        "version": VERSION,
        "made_with": {"biastransfer": importlib.metadata.version("biastransfer"), **settings},
        "networks": {
            **dict.fromkeys(("before", "after")),
            **{
                stage: describe(one, networks.names[stage], stage in networks.files)
                for stage, one in networks.stages.items()
            },
            "same_embedding": networks.same,
            "one_architecture": networks.one_architecture,
        },
        "pictures": _pictures(pictures, roles, vectors, findings),
        "roles": {
            "attributes": list(roles.attributes),
            "objects": list(roles.objects),
            "random": roles.reference or None,
            "given": roles.given,
        },
        **_tables(measures, roles.shown),
        "nulls": {"untrained": settings["untrained"], "missing": dict(vectors.why_no_null)},
        "maps": [_map(one) for one in explained],
    }
    return _plain(facts)


def _tables(measures: Measures, shown: dict[str, str]) -> dict[str, list[dict]]:
    """Return the rows of each table with the set's own names."""
    rows: dict[str, list[dict]] = {
        name: [] for name in ("similarities", "transfer", "associations", "changes")
    }
    for row in measures.similarities.to_dict("records"):
        keys = {"stage": row["stage"], "kind": row["kind"]}
        keys["classes"] = [shown[name] for name in row["item"].split("|")]
        rows["similarities"].append(keys | _picked(row, SIMILARITY, RENAMED | {"n": "n_pictures"}))
    for row in measures.transfer.to_dict("records"):
        rows["transfer"].append(_picked(row, TRANSFER, RENAMED))
    for row in measures.associations.to_dict("records"):
        keys = {"stage": row["stage"]} | {key: shown[row[key]] for key in "XYAB"}
        rows["associations"].append(keys | _picked(row, ASSOCIATION, RENAMED))
    for row in measures.changes.to_dict("records"):
        keys = {key: shown[row[key]] for key in "AB"}
        rows["changes"].append(keys | _picked(row, CHANGE, {}))
    return rows


def _pictures(pictures: AnalysisSet, roles: Roles, vectors: Vectors, findings: pd.DataFrame) -> dict:
    used = vectors.items["class"].value_counts()
    lost = vectors.lost.drop_duplicates("file")
    return {
        "name": pictures.name,
        "n": len(vectors.items),
        "classes": [
            {"name": name, "role": roles.role(name), "n": int(n), "used": int(used.get(name, 0))}
            for name, n in pictures.counts.items()
        ],
        "lost": [
            {"file": Path(row.file).name, "reason": without_folder(str(row.reason), row.file)}
            for row in lost.itertuples()
        ],
        "findings": findings[["severity", "check", "class", "n", "ids", "what"]].to_dict("records"),
    }


def _map(one: Explained) -> dict:
    methods = list(dict.fromkeys(method for _, method, uri in one.maps if uri))
    return {**one.row, "methods": methods, "problems": one.problems}


def _picked(row: dict, names: Sequence[str], renamed: dict) -> dict:
    return {renamed.get(name, name): row.get(name) for name in names}


def _plain(value):
    """Return a value with NumPy's numbers as Python's, and None for what is not finite."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
