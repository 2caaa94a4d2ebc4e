"""A set as the tables that chapter 01 shows and the results folder keeps."""

from collections.abc import Mapping, Sequence

import pandas as pd

from .lint import lint
from .manifest import AnalysisSet
from .pretraining import pretraining_overlap

OVERLAP_COLUMNS = ["learned_from", "backbones", "of", "object", "n", "classes"]


def set_tables(
    pictures: AnalysisSet,
    learned: Mapping[str, tuple[Sequence[str], str]],
    *,
    run: str,
    set_name: str,
) -> dict[str, pd.DataFrame]:
    """Return what there is to say about a set before anything is measured on it.

    Parameters
    ----------
    pictures : AnalysisSet
    learned : mapping
        Backbone → (pretraining classes, statement), as `backbones.pretraining_classes` gives them.
    run, set_name : str
        The first two columns of each table.

    Returns
    -------
    dict
        ``sets``: n by class and licence; ``set_report``: the decisions; ``lint``: the linter's findings;
        ``overlap``: which objects are pretraining classes (`overlap`).
    """
    keys = ["class", "object", "attribute", "licence"]
    counts = pictures.items.groupby(keys, sort=False).size().reset_index(name="n")
    objects = [one for one in dict.fromkeys(pictures.items["object"]) if one]
    frames = {
        "sets": counts,
        "set_report": pictures.report,
        "lint": lint(pictures),
        "overlap": overlap(objects, learned),
    }
    columns = {"run": run, "set": set_name}
    return {
        name: pd.concat([pd.DataFrame(columns, index=frame.index), frame], axis=1)
        for name, frame in frames.items()
    }


def overlap(objects: Sequence[str], learned: Mapping[str, tuple[Sequence[str], str]]) -> pd.DataFrame:
    """Return how many pretraining classes are an object or a kind of it, for all backbones.

    Parameters
    ----------
    objects : sequence of str
    learned : mapping
        As for `set_tables`.

    Returns
    -------
    DataFrame
        One row a (pretraining, object): learned_from (the statement), backbones (joined by ", "), of (all
        classes; 0 where the pictures have none that are known), object, n (empty where there are none),
        classes.
    """
    groups: dict[str, list[str]] = {}
    for backbone, (_, statement) in learned.items():
        groups.setdefault(statement, []).append(backbone)
    parts = []
    for statement, backbones in groups.items():
        classes = learned[backbones[0]][0]
        found = pretraining_overlap(objects, classes)
        said = {"learned_from": statement, "backbones": ", ".join(backbones), "of": len(classes)}
        found["n"] = pd.array(found["n"] if len(classes) else [pd.NA] * len(found), dtype="Int64")
        parts.append(found.assign(**said)[OVERLAP_COLUMNS])
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=OVERLAP_COLUMNS)
