"""Where a value lies among the same value of networks that were never trained."""

import numpy as np
import pandas as pd

UNTRAINED = "random"  # the backbone whose seeds are the untrained networks
BASELINE = "thumbnail"  # the fixed embedding of colour and layout
NULLS = (UNTRAINED, BASELINE)
COLUMNS = [
    *("n_untrained", "untrained_low", "untrained_median", "untrained_high"),
    *("p_untrained", "z_untrained", "added", "thumbnail"),
]


def place(frame: pd.DataFrame, keys: list[str], value: str) -> pd.DataFrame:
    """Add to every row of a table its place among the untrained networks.

    Parameters
    ----------
    frame : DataFrame
        Tidy, with a column backbone; the rows of ``"random"`` are the untrained networks.
    keys : list of str
        Columns that say what is measured, such as A and B: a row is held against the untrained rows that
        agree with it in these.
    value : str
        Column of the value.

    Returns
    -------
    DataFrame
        `frame` with the columns n_untrained (k), untrained_low, untrained_median, untrained_high (smallest,
        middle and largest of the k), p_untrained (rank p of the size, (1 + number of untrained with
        absolute value at least as large) / (k + 1)), z_untrained (distance from their mean in their standard
        deviations), added (value − median) and thumbnail (the value that colour and layout give). NaN
        where there is none; an untrained row has no place among its own.

    Notes
    -----
    The rank p cannot fall below 1 / (k + 1). The untrained spread shows what architecture, colour and layout
    give without learning: a value outside it was learned, a value inside it may still be a bias, of
    pictures or of learning, that this comparison cannot tell apart.
    """
    groups: dict[tuple, list[int]] = {}
    for row, key in enumerate(frame[keys].astype(object).itertuples(index=False, name=None)):
        groups.setdefault(key, []).append(row)
    backbones, values = frame["backbone"].to_numpy(), frame[value].to_numpy(float)
    columns = {name: np.full(len(frame), np.nan) for name in COLUMNS}
    for rows in map(np.array, groups.values()):
        null = values[rows[backbones[rows] == UNTRAINED]]
        null = null[np.isfinite(null)]
        baseline = values[rows[backbones[rows] == BASELINE]]
        columns["thumbnail"][rows] = baseline[0] if len(baseline) else np.nan
        columns["n_untrained"][rows] = len(null)
        if not len(null):
            continue
        for name, at in (("low", 0.0), ("median", 0.5), ("high", 1.0)):
            columns[f"untrained_{name}"][rows] = np.quantile(null, at)
        rows = rows[(backbones[rows] != UNTRAINED) & np.isfinite(values[rows])]
        larger = np.abs(null)[None] >= np.abs(values[rows])[:, None] * (1 - 1e-12)
        columns["p_untrained"][rows] = (1 + larger.sum(1)) / (len(null) + 1)
        columns["added"][rows] = values[rows] - np.median(null)
        if len(null) > 1 and null.std() > 0:
            columns["z_untrained"][rows] = (values[rows] - null.mean()) / null.std(ddof=1)
    columns["n_untrained"] = columns["n_untrained"].astype(int)
    return frame.assign(**columns)


def collapse(frame: pd.DataFrame, keys: list[str], value: str) -> pd.DataFrame:
    """Put one row in the place of the rows of all untrained networks: their median, smallest and largest.

    Parameters
    ----------
    frame : DataFrame
        Tidy, with columns backbone, stage, seed, low and high.
    keys : list of str
        Columns that say what is measured.
    value : str
        Column of the value.

    Returns
    -------
    DataFrame
        Other rows are as they were; below them, for each of the keys, a row with stage "untrained", seed 0,
        the median in `value`, and smallest and largest in low and high. For figures and tables.
    """
    untrained = frame["backbone"] == UNTRAINED
    if not untrained.any():
        return frame
    null = frame[untrained].groupby(keys, sort=False)
    summary = null[value].agg(["median", "min", "max"]).reset_index()
    rows = null.first().reset_index().assign(stage="untrained", seed=0)
    rows[value], rows["low"], rows["high"] = summary["median"], summary["min"], summary["max"]
    return pd.concat([frame[~untrained], rows[frame.columns]], ignore_index=True)


def without_learning(frame: pd.DataFrame) -> pd.DataFrame:
    """Show a row for each pair of what d is without learning, with headings for readers.

    Parameters
    ----------
    frame : DataFrame
        From `association_table`.

    Returns
    -------
    DataFrame
        Columns A, B and those of the nulls, as "untrained, low".
    """
    rows = frame.drop_duplicates(["A", "B"]).filter(
        regex="^(A|B|untrained.*|thumbnail|shuffled.*|detectable)$"
    )
    return rows.rename(columns={name: name.replace("_", ", ") for name in rows})
