"""Every number of Tables 2 to 9 and of the text as one row, with the range of values that would agree."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats as scipy_stats

from biastransfer.published import PERMUTATION_Z, SAMPLED_FLOOR, load
from biastransfer.stats import spearman_t_p

SETS = {"COCO": "released-coco", "Open Images": "released-openimages"}  # the paper's own pictures
TARGETS = {"COCO": "coco", "Open Images": "openimages"}
OURS = {"surfboard": "sports"}  # Tables 2 and 9 say surfboard; Table 6 has no such class, sports stands in
SETTINGS = {"epochs": "epochs", "learning_rate": "learning rate", "momentum": "momentum"}
FIELDS = ["table", "cell", "quantity", "model", "set", "stage", "target", "item", "printed", "theirs"]

# numbers of the text that a run measures: quantity, item, schema, model, stage
_MEASURED = {
    "T04": ("pictures", "all", "COCO", "", ""),
    "T05": ("classes", "all", "COCO", "", ""),
    "T07": ("pictures", "all", "Open Images", "", ""),
    "T08": ("classes", "all", "Open Images", "", ""),
    "T12": ("r", "intra", "COCO", "BiT-M-R50x1", "finetuned"),
    "T13": ("p of r", "intra", "COCO", "BiT-M-R50x1", "finetuned"),
    "T14": ("r", "inter", "COCO", "BiT-M-R50x1", "finetuned"),
    "T15": ("p of r", "inter", "COCO", "BiT-M-R50x1", "finetuned"),
    "T16": ("r", "intra", "Open Images", "CLIP-ViT-B/32", "finetuned"),
    "T17": ("r", "inter", "Open Images", "MoCo ResNet50", "finetuned"),
    "T20": ("d", "mammal|fashion", "Open Images", "BiT-M-R50x1", "pretrained"),
    "T21": ("d", "sports|car", "Open Images", "BiT-M-R50x1", "pretrained"),
    "T22": ("d", "sports|car", "Open Images", "CLIP-ViT-B/32", "pretrained"),
    "T23": ("d", "car|mammal", "Open Images", "BiT-M-R50x1", "finetuned"),
    "T24": ("d", "car|mammal", "Open Images", "CLIP-ViT-B/32", "finetuned"),
}


@dataclass(frozen=True)
class Tolerances:
    """How far ours may lie from what is printed: d, r, and mAP or micro-F1. Counts must be equal."""

    d: float = 0.05
    r: float = 0.05
    score: float = 0.02

    def __post_init__(self) -> None:
        """Refuse what is no tolerance."""
        for name, value in vars(self).items():
            if not value > 0:
                raise ValueError(f"tolerance {name} must be > 0; got {value}. 0.05 is the default of d.")


def numbers(tolerances: Tolerances | None = None) -> pd.DataFrame:
    """Return the printed numbers, one a row, with what would agree with each.

    Parameters
    ----------
    tolerances : Tolerances, optional
        Default: .05 of d and r, .02 of mAP and micro-F1.

    Returns
    -------
    DataFrame
        Keys `table`, `cell`, `quantity`, `model`, `set`, `stage`, `target`, `item` ("" where none applies);
        `printed` as it stands, `theirs` as a number; `lowest`, `highest` and, in words, `tolerance`.

    Notes
    -----
    A p is given the room that its statistic's tolerance makes: p of d that of d·√75, p of r that of r at n
    items. At or below 10⁻⁴, the least that 10,000 draws can give, every smaller p agrees.

    Examples
    --------
    >>> len(numbers())
    347
    """
    given = tolerances or Tolerances()
    rows = [*_associations(given), *_transfers(given), *_counts(), *_finetunings(given), *_text(given)]
    return pd.DataFrame(rows).sort_values(
        "table", key=lambda table: table.map(place), kind="stable", ignore_index=True
    )


def place(table: str) -> int:
    """Return the order of a table by its number; the text comes last.

    Parameters
    ----------
    table : str
        "Table 2" … "Table 9" or "text".
    """
    return 99 if table == "text" else int(table.split()[1])


def _row(*fields, room):
    lowest, highest, tolerance = room
    return dict(zip(FIELDS, fields, strict=True)) | {
        "lowest": lowest,
        "highest": highest,
        "tolerance": tolerance,
    }


def _around(value, tolerance):
    return value - tolerance - 1e-9, value + tolerance + 1e-9, f"± {tolerance:g}" if tolerance else "equal"


def _p_of_d(p, tolerance):
    z = scipy_stats.norm.isf(np.clip(p, SAMPLED_FLOOR, 1 - SAMPLED_FLOOR))
    low, high = scipy_stats.norm.sf([z + tolerance * PERMUTATION_Z, z - tolerance * PERMUTATION_Z])
    return _range(0.0 if p <= SAMPLED_FLOOR else low, 1.0 if p >= 1 - SAMPLED_FLOOR else high)


def _p_of_r(r, n, tolerance):
    low = spearman_t_p(min(abs(r) + tolerance, 1.0), n)
    return _range(low, spearman_t_p(max(abs(r) - tolerance, 0.0), n))


def _range(low, high):
    return float(low), float(high), f"{low:.2g} to {high:.2g}"


def _associations(given):
    for number in ("2", "9"):
        for row in load(f"table{number}").itertuples():
            pair = [OURS.get(name, name) for name in (row.concept_a, row.concept_b)]
            cell = f"{row.model}, {row.concept_a}/{row.concept_b}, {row.stage}"
            target = TARGETS["Open Images"] if row.stage == "finetuned" else ""
            key = (row.model, SETS["Open Images"], row.stage, target, "|".join(pair))
            table = f"Table {number}"
            yield _row(table, cell, "d", *key, row.d_printed, row.d, room=_around(row.d, given.d))
            yield _row(table, cell, "p of d", *key, row.p_printed, row.p, room=_p_of_d(row.p, given.d))


def _transfers(given):
    for number, name in (("3", "COCO"), ("4", "Open Images")):
        for row in load(f"table{number}").itertuples():
            cell, key = (
                f"{row.model}, {row.kind}",
                (row.model, SETS[name], "finetuned", TARGETS[name], row.kind),
            )
            p_room = _p_of_r(row.r, row.n_items, given.r)
            yield _row(f"Table {number}", cell, "r", *key, row.r_printed, row.r, room=_around(row.r, given.r))
            yield _row(f"Table {number}", cell, "p of r", *key, row.p_printed, row.p, room=p_room)


def _counts():
    for number, name in (("5", "COCO"), ("6", "Open Images")):
        table = load(f"table{number}")
        for label, n in zip(table["class"], table["n"]):
            key = ("", SETS[name], "", "", label)
            yield _row(f"Table {number}", label, "pictures", *key, str(n), n, room=_around(n, 0))


def _finetunings(given):
    for number, name in (("7", "COCO"), ("8", "Open Images")):
        for row in load(f"table{number}").to_dict("records"):
            table, key = f"Table {number}", (row["model"], "", "finetuned", TARGETS[name], "")
            metric = row["metric"].replace(" ", "-")
            spread = 0.0 if pd.isna(row["spread"]) else row["spread"]
            room = _around(row["value"], max(given.score, spread))
            yield _row(table, row["model"], metric, *key, f"{row['value']:g}", row["value"], room=room)
            if spread:
                quantity, room = f"spread of {metric}", _around(spread, given.score)
                yield _row(table, row["model"], quantity, *key, f"± {spread:g}", spread, room=room)
            for column, setting in SETTINGS.items():
                room = _around(row[column], 0)
                yield _row(table, row["model"], setting, *key, f"{row[column]:g}", row[column], room=room)


def _text(given):
    for row in load("text").itertuples():
        quantity, item, schema, model, stage = _MEASURED.get(row.id, ("", "", "", "", ""))
        key = (model, SETS.get(schema, ""), stage, TARGETS[schema] if stage == "finetuned" else "", item)
        room = _around(row.value, {"d": given.d, "r": given.r}.get(quantity, 0))
        if quantity == "p of r":  # "p < .01"
            room = (0.0, row.value, f"below {row.value:g}")
        where = row.section if row.section.startswith("Figure") else f"§{row.section}"
        cell = f"{where}: " + ", ".join(dict.fromkeys([row.subject, *row.quantity.split(", ")]))
        yield _row("text", cell, quantity or row.quantity, *key, row.printed, row.value, room=room)
