"""Printed numbers held against what runs measured: a verdict and its reason for each."""

from collections.abc import Sequence

import pandas as pd

from .claims import claims
from .measured import measured
from .models import same_model
from .printed import SETTINGS, Tolerances, numbers
from .reanalysis import reanalysis

VERDICTS = ("agrees", "differs", "not comparable", "not run")
COLUMNS = [
    *("part", "table", "cell", "quantity", "printed", "theirs", "run", "ours", "low", "high"),
    *("tolerance", "verdict", "reason"),
]
_UNCOUNTED = {
    "CLIP-ViT-B/32": ("not comparable", "a count of training data that were never released"),
    "COCO": ("not run", "a count of the whole data set, which no run reads"),
    "Open Images": ("not run", "a count of the whole data set, which no run reads"),
    "all models": ("not run", "a setting of the paper's finetuning; no run given repeats all six"),
}
_MEANING = {
    "d": "effect sizes",
    "r": "bias transfer scores",
    "pictures": "picture counts",
    "classes": "classes",
}


def build(runs: Sequence[str], *, tolerances: Tolerances | None = None, alpha: float = 0.05) -> pd.DataFrame:
    """Build the ledger from ``data/published`` and the results of the given runs.

    Parameters
    ----------
    runs : sequence of str
        Folders below ``data/results``.
    tolerances : Tolerances, optional
        How far ours may lie from the printed number.
    alpha : float
        Level of the re-analysed tests.

    Returns
    -------
    DataFrame
        One row a number and run that measured it, and one row for a number that none did. `part` is
        "printed", "re-analysis" (ours is recomputed from the printed tables) or "claims" (§8); `table`,
        `cell`, `quantity`, `printed`, `theirs`, `run`, `ours`, `low`, `high`, `tolerance`, `verdict` and
        `reason`.
    """
    found = measured(runs)
    parts = [hold(numbers(tolerances), found), reanalysis(alpha), claims(found)]
    return pd.concat(
        [part.reindex(columns=COLUMNS).astype(object) for part in parts], ignore_index=True
    ).astype({"theirs": float, "ours": float, "low": float, "high": float})


def hold(printed: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """Hold printed numbers against measured ones.

    Parameters
    ----------
    printed : DataFrame
        As `numbers` returns it.
    found : DataFrame
        As `measured` returns it.

    Returns
    -------
    DataFrame
        `printed` with `part`, `run`, `ours`, `low`, `high`, `verdict` and `reason`. A number is compared only
        with the same quantity of the same network, pictures, stage and target; of several seeds with the
        score of seed means where a run has one, else with the first.
    """
    rows = []
    for number in printed.to_dict("records"):
        alike = found[(found["quantity"] == number["quantity"]) & (found["item"] == number["item"])]
        if number["set"]:  # the other schema's classes and items only share their names
            alike = alike[alike["set"].str.endswith(number["set"].removeprefix("released"))]
        same = alike[
            _same(alike, number, "model") & _same(alike, number, "set") & _same(alike, number, "stage")
        ]
        if same.empty:
            verdict, reason = _apart(number, alike, found)
            rows.append(number | {"run": "", "ours": float("nan"), "verdict": verdict, "reason": reason})
        for _, part in same.groupby("run", sort=False):
            rows.append(number | _compared(number, part))
    return pd.DataFrame(rows).assign(part="printed")


def _same(alike, number, field):
    """Return which measured rows share the number's network, pictures, or stage with its target."""
    if not number[field]:
        return pd.Series(True, index=alike.index)
    if field == "model":
        return alike["model"].map(lambda ours: same_model(ours, number["model"])).astype(bool)
    equal = alike[field] == number[field]
    return equal & (alike["target"] == number["target"]) if field == "stage" else equal


def _compared(number, part):
    means = part[part["seed"] == "mean"]
    row = (means if len(means) else part.sort_values("seed")).iloc[0]
    if pd.isna(row["value"]):
        return {
            "run": row["run"],
            "ours": float("nan"),
            "verdict": "not comparable",
            "reason": "undefined in the run",
        }
    agrees = number["lowest"] <= row["value"] <= number["highest"]
    said = [row["note"]] if row["note"] else []
    if len(part) > 1:
        said.append(f"seed {row['seed']} of {len(part)}")
    if pd.notna(row["low"]):
        inside = row["low"] <= number["theirs"] <= row["high"]
        said.append(f"theirs lies {'inside' if inside else 'outside'} our 95 % interval")
    return {
        **{name: row[name] for name in ("run", "low", "high")},
        "ours": float(row["value"]),
        "verdict": "agrees" if agrees else "differs",
        "reason": "; ".join(said) or f"{'within' if agrees else 'outside'} the tolerance",
    }


def _apart(number, alike, found):
    """Return (verdict, reason) for a number that no run measured on the same network, pictures and stage."""
    if number["quantity"] in SETTINGS.values() and number["model"]:
        return _setting(number, found)
    if not number["set"] and not number["model"]:
        subject = number["cell"].split(": ")[1].split(", ")[0]
        return _UNCOUNTED[subject]
    if alike.empty:
        what = _MEANING.get(number["quantity"].removeprefix("p of "), number["quantity"])
        return "not run", f"no run given has {what} of this item"
    said, wanted = [], (number["stage"], number["target"])
    if not _same(alike, number, "model").any():
        said.append(f"network: {number['model']} was not run, but {_names(alike['model'])}")
    if not _same(alike, number, "set").any():
        said.append(f"pictures: {_names(alike['set'])}, not {number['set']}")
    if not _same(alike, number, "stage").any():
        said.append(f"stage: {_stages(alike)}, not {' on '.join(filter(None, wanted))}")
    return "not comparable", "; ".join(said) or "no run has this network, pictures and stage together"


def _setting(number, found):
    runs = found[found["quantity"] == "epochs"]
    if runs[_same(runs, number, "model") & _same(runs, number, "stage")].empty:
        return "not run", f"a setting; no run given finetunes {number['model']} on {number['target']}"
    return "not comparable", "a setting that results do not record; the run's recipe does"


def _names(values):
    return ", ".join(dict.fromkeys(values))


def _stages(alike):
    shown = alike["stage"].where(alike["target"] == "", alike["stage"] + " on " + alike["target"])
    return " or ".join(dict.fromkeys(shown))


def counts(ledger: pd.DataFrame) -> pd.DataFrame:
    """Count the verdicts of each table.

    Parameters
    ----------
    ledger : DataFrame
        As `build` returns it.

    Returns
    -------
    DataFrame
        Columns `part`, `table`, `numbers`, and one for each of `VERDICTS`.
    """
    grouped = ledger.groupby(["part", "table"], sort=False)["verdict"]
    wide = grouped.value_counts().unstack(fill_value=0).reindex(columns=list(VERDICTS), fill_value=0)
    wide = wide.loc[list(grouped.size().index)]
    wide.insert(0, "numbers", wide.sum(axis=1))
    return wide.rename_axis(columns=None).reset_index()


def reasons(ledger: pd.DataFrame) -> pd.DataFrame:
    """Gather printed numbers that share a table, a verdict and a reason.

    Parameters
    ----------
    ledger : DataFrame
        As `build` returns it.

    Returns
    -------
    DataFrame
        Columns `table`, `verdict`, `reason`, `numbers`; a network's own name is left out of its reason, so
        that the six networks of one table share a row.
    """
    rest = ledger[(ledger["part"] == "printed") & ~ledger["verdict"].isin(["agrees", "differs"])]
    names = "|".join(
        map(_escaped, ("ResNet18", "BiT-M-R50x1", "CLIP-ViT-B/32", "SimCLR ResNet50", "MoCo ResNet50"))
    )
    plain = rest["reason"].str.replace(f"{names}|ResNet50", "the paper's network", regex=True)
    grouped = rest.assign(reason=plain).groupby(["table", "verdict", "reason"], sort=False)
    return grouped.size().rename("numbers").reset_index()


def _escaped(name):
    return name.replace("/", "\\/")
