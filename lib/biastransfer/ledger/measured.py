"""What runs measured, in one frame: read from the tidy CSVs below ``data/results``."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from biastransfer import paths

FIELDS = [
    "run",
    "quantity",
    "item",
    "model",
    "set",
    "stage",
    "target",
    "seed",
    "value",
    "low",
    "high",
    "note",
]
WORDS = ["item", "model", "set", "stage", "target", "seed", "note"]  # "" where there is none
LOST = {"empty file", "missing file", "unreadable", "excluded"}  # decisions that cost a listed picture


def measured(runs: Sequence[str]) -> pd.DataFrame:
    """Return what the given runs measured of the quantities that the paper prints.

    Parameters
    ----------
    runs : sequence of str
        Names of folders below ``data/results``; one that does not exist has measured nothing.

    Returns
    -------
    DataFrame
        `run`, `quantity` ("d", "p of d", "r", "p of r", "pictures", "classes", "mAP", "micro-F1",
        "epochs", their "spread of …"), `item`, `model`, `set`, `stage`, `target`, `seed`, `value`, the 95 %
        interval `low`, `high` where the run has one, and a `note`.

    Raises
    ------
    ValueError
        When a CSV lacks a column that is read from it.
    """
    rows = []
    blank = dict.fromkeys(WORDS, "")
    for run in dict.fromkeys(runs):
        for kind, reader in _READERS.items():
            for file in sorted(paths.results(run).glob(f"{kind}-*.csv")):
                rows += [blank | {"run": run} | row for row in _read(file, reader)]
        rows += [blank | {"run": run} | row for row in _finetunings(run)]
    frame = pd.DataFrame(rows, columns=FIELDS)
    words = frame[WORDS].astype(object)
    return frame.assign(**words.where(words.notna(), "").map(str))


def _table(file: Path) -> pd.DataFrame:
    return pd.read_csv(file, keep_default_na=False, na_values=[""])


def _read(file: Path, reader: Callable) -> list[dict]:
    frame = _table(file)
    try:
        return list(reader(frame, file))
    except KeyError as error:
        raise ValueError(
            f"{file.relative_to(paths.root())} must have a column {error}; it has {', '.join(frame)}. "
            "Compute the run again."
        ) from error


def _associations(frame: pd.DataFrame, file: Path):
    for row in frame[(frame["X"] == "man") & (frame["Y"] == "woman")].to_dict("records"):
        key = {name: row[name] for name in ("set", "stage", "target", "seed")}
        key |= {"model": row["backbone"], "item": f"{row['A']}|{row['B']}"}
        yield key | {"quantity": "d", "value": row["effect_size"], "low": row["low"], "high": row["high"]}
        yield key | {"quantity": "p of d", "value": row["p_greater"]}


def _transfers(frame: pd.DataFrame, file: Path):
    for row in frame.to_dict("records"):
        key = {name: row[name] for name in ("set", "target", "seed")}
        key |= {"model": row["backbone"], "item": row["kind"], "stage": "finetuned"}
        yield key | {"quantity": "r", "value": row["r"], "low": row["low"], "high": row["high"]}
        yield key | {"quantity": "p of r", "value": row["p"]}


def _counts(frame: pd.DataFrame, file: Path):
    report = file.with_name(file.name.replace("sets-", "set_report-", 1))
    lost = _table(report) if report.exists() else pd.DataFrame(columns=["class", "decision", "n"])
    lost = lost[lost["decision"].isin(LOST)]
    for name, n in [*zip(frame["class"], frame["n"]), ("all", frame["n"].sum())]:
        part = lost if name == "all" else lost[lost["class"] == name]
        note = f"{n + part['n'].sum()} listed, {part['n'].sum()} of them unusable: " if len(part) else ""
        note += ", ".join(dict.fromkeys(part["decision"]))
        yield {"quantity": "pictures", "item": name, "set": frame["set"].iloc[0], "value": n, "note": note}
    yield {"quantity": "classes", "item": "all", "set": frame["set"].iloc[0], "value": len(frame)}


_READERS = {"association": _associations, "transfer": _transfers, "sets": _counts}


def _finetunings(run: str):
    """Yield the validation scores after the last epoch, averaged over seeds, and their spread."""
    files = sorted(paths.results(run).glob("finetuning-*.csv"))
    if not files:
        return
    frame = pd.concat([_table(file) for file in files], ignore_index=True)
    for (model, target), part in frame.groupby(["backbone", "target"]):
        seeds = sorted(part["seed"].unique())
        key = {"model": model, "target": target, "stage": "finetuned", "seed": f"{len(seeds)} seeds"}
        sizes = part.loc[part["split"] == "train", "n"]
        size = f"{int(sizes.max())} training pictures" if len(sizes) else ""
        yield key | {"quantity": "epochs", "value": part["epoch"].max(), "note": size}
        last = part[
            (part["split"] == "val") & (part["epoch"] == part.groupby("seed")["epoch"].transform("max"))
        ]
        for metric in ("mAP", "micro-F1"):
            values = last.loc[last["metric"] == metric, "value"]
            if len(values):
                yield key | {"quantity": metric, "value": values.mean(), "note": size}
            if len(values) > 1:
                yield key | {"quantity": f"spread of {metric}", "value": values.std(ddof=1), "note": size}
