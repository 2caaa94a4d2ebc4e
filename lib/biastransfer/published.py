"""The gender paper's printed tables as tidy frames, and what follows from their numbers alone."""

import numpy as np
import pandas as pd
from scipy import stats as scipy_stats

from biastransfer import paths
from biastransfer.stats import benjamini_hochberg, benjamini_yekutieli, holm, spearman_t_p
from biastransfer.stats.ranks import spearman_null

TABLES = (*(f"table{number}" for number in range(1, 10)), "text", "attribution_card")
PERMUTATION_Z = np.sqrt(75)  # d·√75 is the permutation z of 150 + 150 pictures: 1/√(1/150 + 1/150)
SAMPLED_FLOOR = 1e-4  # 10,000 draws cannot give less, so a printed 10⁻⁵ is read as "at most this"


def load(table):
    """Read one published table as printed.

    Parameters
    ----------
    table : str
        ``table1`` … ``table9``, ``text`` (numbers in the running text) or ``attribution_card``.

    Returns
    -------
    pandas.DataFrame
        Tidy rows. Columns that end in ``_printed`` hold the text as it stands in the paper.

    Raises
    ------
    ValueError
        If there is no such table.

    Examples
    --------
    >>> int(load("table5")["n"].sum()), int(load("table6")["n"].sum())
    (206, 1925)
    """
    if table not in TABLES:
        raise ValueError(f"unknown table {table!r}; known: {', '.join(TABLES)}.")
    file = paths.published(f"{table}.csv")
    as_text = {
        name: str for name in ("d_printed", "p_printed", "r_printed", "printed", "table", "class_printed")
    }
    return pd.read_csv(file, dtype=as_text, keep_default_na=False, na_values={"spread": [""]})


def transfer_scores():
    """Recompute every printed bias transfer score's p from its r and number of items (Tables 3 and 4).

    Returns
    -------
    pandas.DataFrame
        A row a score: `r`, `n_items`, `p_printed`; `r_attainable`, the correlation of n untied ranks that is
        nearest to the printed one; `p_t` (t approximation) and `p_exact` (permutations) at that r; `agrees`,
        whether the printed p is `p_t` at its own precision; `low` and `high`, the 95 % interval of r.

    Notes
    -----
    With n untied items, r takes only the values 1 − 6·Σd²/(n(n²−1)). The interval is Fisher's with the
    standard error √((1 + r²/2)/(n − 3)) of Bonett and Wright (2000), too narrow if anything at these n.
    """
    frame = pd.concat([load("table3"), load("table4")], ignore_index=True)
    frame["target"] = frame["table"].map({"3": "COCO", "4": "Open Images"})
    rows = [_rescored(row.r, row.n_items, row.p) for row in frame.itertuples()]
    return frame.join(pd.DataFrame(rows, index=frame.index))


def _rescored(r, n, p_printed):
    values, shares = spearman_null(n)
    nearest = float(values[np.abs(values - r).argmin()])
    p_t = spearman_t_p(nearest, n)
    low, high = correlation_interval(nearest, n)
    return {
        "r_attainable": nearest,
        "p_t": p_t,
        "p_exact": float(shares[np.abs(values) >= abs(nearest) - 1e-9].sum()),
        "agrees": _prints_as(p_t, p_printed),
        "low": low,
        "high": high,
    }


def _prints_as(p, printed):
    """Whether p, rounded or cut at the printed number's last digit, is that number."""
    unit = (
        10 ** -min(3, max(len(np.format_float_positional(printed)) - 2, 1))
        if printed >= 1e-3
        else printed / 2
    )
    return bool(abs(p - printed) < unit + 1e-12)


def correlation_interval(r, n, level=0.95):
    """Interval of a Spearman correlation of n items, by Fisher's z with Bonett and Wright's standard error.

    Parameters
    ----------
    r : float
        Correlation in [-1, 1].
    n : int
        Items.
    level : float
        Coverage aimed at.

    Returns
    -------
    low, high : float
        Bounds in [-1, 1]; both 1 (or −1) where ``|r|`` is 1, and NaN below four items.
    """
    if n < 4 or not np.isfinite(r):
        return float("nan"), float("nan")
    if abs(r) >= 1:
        return float(np.sign(r)), float(np.sign(r))
    half = scipy_stats.norm.ppf((1 + level) / 2) * np.sqrt((1 + r * r / 2) / (n - 3))
    return float(np.tanh(np.arctanh(r) - half)), float(np.tanh(np.arctanh(r) + half))


def items_needed(difference, r=0.8, power=0.8, level=0.95):
    """Number of items at which two independent transfer scores, r and r − difference, can be told apart.

    Parameters
    ----------
    difference, r : float
        What is to be seen, and the higher of the two scores.
    power, level : float
        Chance of seeing it, and one minus the level of the two-sided test.

    Returns
    -------
    int
        Items in each score for the given power of the two-sided z test on Fisher's scale.
    """
    gap = np.arctanh(r) - np.arctanh(r - difference)
    spread = (1 + r * r / 2) + (1 + (r - difference) ** 2 / 2)
    quantiles = scipy_stats.norm.ppf((1 + level) / 2) + scipy_stats.norm.ppf(power)
    return int(np.ceil(3 + spread * (quantiles / gap) ** 2))


def association_tests():
    """Return the 72 printed association tests with corrected p-values and what their d implies (Table 9).

    Returns
    -------
    pandas.DataFrame
        Printed columns, and `p_two_sided` = min(1, 2·min(p, 1 − p)); `holm`, `benjamini_yekutieli`,
        `benjamini_hochberg` over the 72 one-sided p, and the same names with ``_two_sided``; `z` = d·√75 and
        `p_z`, its one-sided normal tail; `fits`, whether the printed p is compatible with the printed d.

    Notes
    -----
    10⁻⁵ is taken as printed for the corrections, although 10,000 samples cannot give it. A printed p *fits*
    when it lies within four Monte Carlo standard errors (10,000 draws) and .001 of `p_z` and, where `p_z` is
    at most .01, also within a factor of two; one at or below 10⁻⁴ fits every `p_z` up to 2·10⁻⁴.
    """
    frame = load("table9")
    two = np.minimum(1.0, 2 * np.minimum(frame["p"], 1 - frame["p"]))
    frame["p_two_sided"] = two
    for rule in (holm, benjamini_yekutieli, benjamini_hochberg):
        frame[rule.__name__] = rule(frame["p"])
        frame[f"{rule.__name__}_two_sided"] = rule(two)
    frame["z"] = frame["d"] * PERMUTATION_Z
    frame["p_z"] = scipy_stats.norm.sf(frame["z"])
    error = 4 * np.sqrt(frame["p_z"] * (1 - frame["p_z"]) / 10_000) + 1e-3
    ratio = np.maximum(frame["p"], 1e-300) / frame["p_z"]
    near = (np.abs(frame["p"] - frame["p_z"]) <= error) & ((frame["p_z"] > 0.01) | ratio.between(0.5, 2))
    floor = (frame["p"] <= SAMPLED_FLOOR) & (frame["p_z"] <= 2 * SAMPLED_FLOOR)
    frame["fits"] = near | floor
    return frame


def family_counts(alpha=0.05):
    """Count how many of the 72 printed tests stay significant under each correction, one- and two-sided.

    Parameters
    ----------
    alpha : float
        Level.

    Returns
    -------
    pandas.DataFrame
        Columns `sides`, `correction`, `significant`, and `opposite`: significant the other way round, where
        1 − p of the one-sided test is below `alpha` (only for uncorrected one-sided p).
    """
    frame = association_tests()
    names = {
        "p": "none",
        "benjamini_hochberg": "Benjamini–Hochberg",
        "benjamini_yekutieli": "Benjamini–Yekutieli",
        "holm": "Holm",
    }
    rows = []
    for column, label in names.items():
        for sides in ("one-sided", "two-sided"):
            p = frame[column if sides == "one-sided" else f"{column}_two_sided"]
            opposite = int((1 - frame["p"] < alpha).sum()) if (column, sides) == ("p", "one-sided") else pd.NA
            rows.append((sides, label, int((p < alpha).sum()), opposite))
    return pd.DataFrame(rows, columns=["sides", "correction", "significant", "opposite"])
