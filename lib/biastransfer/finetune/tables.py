"""Reading the histories of a run's finetunings back: one tidy frame, curves, and what each came to."""

from pathlib import Path

import pandas as pd

from biastransfer import paths

COLUMNS = [
    "run", "backbone", "target", "seed", "recipe", "epoch", "split", "metric", "class", "value", "n",
]  # fmt: skip
_KEYS = ["run", "backbone", "target", "seed"]


def history_file(run: str, backbone: str, target: str, seed: int) -> Path:
    """Return the CSV of one finetuning's history, named by run, backbone, target and seed."""
    return paths.results(run, f"finetuning-{backbone}-{target}-seed{seed}.csv")


def value_of(rows: list[list], metric: str) -> float:
    """Return the value of the first of some history ``rows`` that carries ``metric``."""
    return next(row[COLUMNS.index("value")] for row in rows if row[COLUMNS.index("metric")] == metric)


def table(run: str) -> pd.DataFrame:
    """Return the histories of all finetunings of a run, in the order of their file names.

    Parameters
    ----------
    run : str

    Returns
    -------
    DataFrame
        Columns run, backbone, target, seed, recipe, epoch, split (train, val, test), metric, class, value, n.
        Metrics: ``loss`` (nats ↓), ``mAP`` and ``micro-F1`` (0..1 ↑), ``chance mAP`` and ``chance micro-F1``,
        and ``AP`` with its class; epoch 0 is before training; the test rows stand at the best epoch; n counts
        pictures.

    Raises
    ------
    FileNotFoundError
        The run has no finetuning yet.
    """
    files = sorted(paths.results(run).glob("finetuning-*-seed*.csv"))
    if not files:
        raise FileNotFoundError(
            f"run {run!r} must have finetuning-*.csv in {str(paths.results(run))!r}; found none. "
            "Execute notebook 02-finetune with this run first."
        )
    return pd.concat([_read(file) for file in files], ignore_index=True)


def _read(file: Path) -> pd.DataFrame:
    return pd.read_csv(file, keep_default_na=True).fillna({"class": ""})


def summary(history: pd.DataFrame) -> pd.DataFrame:
    """Return what each finetuning came to, one row a run, backbone, target and seed.

    Parameters
    ----------
    history : DataFrame
        From `table`, or ``FinetuneResult.history``.

    Returns
    -------
    DataFrame
        Columns run, backbone, target, seed, best_epoch, epochs, val_map, val_micro_f1, val_chance,
        val_chance_f1, test_map, test_micro_f1, test_chance, test_chance_f1, before_map (validation mAP at
        epoch 0), classes (with an average precision on test) and n_train, n_val, n_test. All of the best
        epoch; higher is better.
    """
    return pd.DataFrame([_summed(keys, rows) for keys, rows in history.groupby(_KEYS, sort=False)])


def _summed(keys, rows: pd.DataFrame) -> dict:
    best = int(rows.loc[rows["split"] == "test", "epoch"].iloc[0])

    def pick(split: str, metric: str, epoch: int = best) -> float:
        at = rows[(rows["split"] == split) & (rows["metric"] == metric) & (rows["epoch"] == epoch)]
        return float(at["value"].iloc[0])

    sizes = rows.groupby("split")["n"].first()
    scored = rows[(rows["split"] == "test") & (rows["metric"] == "AP")]["value"].notna().sum()
    return {
        **dict(zip(_KEYS, keys)),
        "best_epoch": best,
        "epochs": int(rows["epoch"].max()),
        "val_map": pick("val", "mAP"),
        "val_micro_f1": pick("val", "micro-F1"),
        "val_chance": pick("val", "chance mAP"),
        "val_chance_f1": pick("val", "chance micro-F1"),
        "test_map": pick("test", "mAP"),
        "test_micro_f1": pick("test", "micro-F1"),
        "test_chance": pick("test", "chance mAP"),
        "test_chance_f1": pick("test", "chance micro-F1"),
        "before_map": pick("val", "mAP", 0),
        "classes": int(scored),
        **{f"n_{split}": int(sizes[split]) for split in ("train", "val", "test")},
    }


def curves(history: pd.DataFrame) -> pd.DataFrame:
    """Return one row an epoch, one column a curve: what `plots.finetuning_curves` draws.

    Parameters
    ----------
    history : DataFrame
        From `table`, or ``FinetuneResult.history``.

    Returns
    -------
    DataFrame
        Columns run, backbone, target, seed, epoch, train_loss, val_loss, val_map, val_micro_f1; the training
        loss of epoch 0 is NaN.
    """
    names = {
        ("train", "loss"): "train_loss",
        ("val", "loss"): "val_loss",
        ("val", "mAP"): "val_map",
        ("val", "micro-F1"): "val_micro_f1",
    }
    kept = history.assign(curve=[names.get(pair) for pair in zip(history["split"], history["metric"])])
    wide = kept.dropna(subset="curve").pivot(index=[*_KEYS, "epoch"], columns="curve", values="value")
    return wide.reindex(columns=list(names.values())).rename_axis(columns=None).reset_index()
