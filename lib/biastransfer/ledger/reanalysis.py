"""Printed numbers held against what follows from the paper's own tables."""

import pandas as pd

from biastransfer.published import association_tests, load, transfer_scores

from .printed import numbers, place

AGREES = {True: "agrees", False: "differs"}


def reanalysis(alpha: float = 0.05) -> pd.DataFrame:
    """Return the printed numbers that can be recomputed from others: ours is recomputed, no run is needed.

    Parameters
    ----------
    alpha : float
        Level of the 72 tests of Table 9, corrected as one family.

    Returns
    -------
    DataFrame
        `part`, `table`, `cell`, `quantity`, `printed`, `theirs`, `run` ("recomputed"), `ours`, `low`, `high`,
        `tolerance`, `verdict`, `reason`: the p of the 24 scores from r and n; the p of the 72 tests from
        d, and after Holm's correction; sums of Tables 5 and 6; Table 2 in Table 9; the text in the tables.

    Examples
    --------
    >>> rows = reanalysis()
    >>> rows.query("quantity == 'p of r'")["verdict"].value_counts().to_dict()
    {'agrees': 23, 'differs': 1}
    """
    rows = [*_scores(), *_tests(alpha), *_sums(), *_repeated()]
    frame = pd.DataFrame(rows).assign(part="re-analysis", run="recomputed")
    return frame.sort_values("table", key=lambda table: table.map(place), kind="stable", ignore_index=True)


def _row(table, cell, quantity, printed, theirs, ours, tolerance, agrees, reason):
    return {
        **{"table": table, "cell": cell, "quantity": quantity, "printed": printed, "theirs": theirs},
        **{"ours": ours, "tolerance": tolerance, "verdict": AGREES[bool(agrees)], "reason": reason},
    }


def _scores():
    for row in transfer_scores().itertuples():
        cell = f"{row.model}, {row.kind}"
        reason = f"t-approximation at r {row.r_attainable:.3f}, n {row.n_items}; exact p {row.p_exact:.2g}"
        shown = (row.p_printed, row.p, row.p_t, "its printed digits", row.agrees, reason)
        yield _row(f"Table {row.table}", cell, "p of r", *shown)


def _tests(alpha):
    for row in association_tests().itertuples():
        cell = f"{row.model}, {row.concept_a}/{row.concept_b}, {row.stage}"
        reason = f"normal tail of z = d·√75 = {row.z:.2f} at 150 + 150 pictures"
        shown = (
            row.p_printed,
            row.p,
            row.p_z,
            "4 Monte Carlo errors; up to .01 also factor 2",
            row.fits,
            reason,
        )
        yield _row("Table 9", cell, "p of d", *shown)
        kept = (row.p < alpha) == (row.holm < alpha)
        reason = (
            "not significant either way"
            if row.p >= alpha
            else "stays significant"
            if kept
            else "does not stay"
        )
        if 1 - row.p < alpha:
            reason = f"the other direction: 1 − p is {1 - row.p:.2g}"
        shown = (row.p_printed, row.p, row.holm, f"same side of {alpha:g}", kept, reason)
        yield _row("Table 9", cell, "p of d, Holm over 72", *shown)


def _sums():
    text = load("text").set_index("id")
    for number, pictures, classes in (("5", "T04", "T05"), ("6", "T07", "T08")):
        table = load(f"table{number}")
        for key, ours, what in ((pictures, table["n"].sum(), "sum"), (classes, len(table), "rows")):
            row = text.loc[key]
            shown = (
                row["printed"],
                row["value"],
                ours,
                "equal",
                ours == row["value"],
                f"{what} of Table {number}",
            )
            yield _row("text", f"§{row['section']}: {row['subject']}", row["quantity"].split(", ")[1], *shown)


def _repeated():
    """Yield the cells of Table 2 and the numbers of the text that Tables 3, 4 and 9 repeat."""
    printed = numbers()
    keys = ["quantity", "model", "set", "stage", "item"]
    cells = printed[printed["table"].isin(["Table 3", "Table 4", "Table 9"])].set_index(keys)
    for row in printed[printed["table"].isin(["Table 2", "text"]) & (printed["model"] != "")].to_dict(
        "records"
    ):
        other = cells.loc[tuple(row[key] for key in keys)]
        ours, digits = other["theirs"], len(row["printed"].partition(".")[2]) if row["table"] == "text" else 9
        if row["printed"].startswith("<"):
            agrees, tolerance = ours <= row["theirs"], f"{row['tolerance']}, as rounded"
        else:
            agrees = abs(ours - row["theirs"]) <= 0.5 * 10**-digits + 1e-9
            tolerance = "its printed digits"
        reason = f"{other['table']} prints {other['printed']}"
        shown = (row["printed"], row["theirs"], ours, tolerance, agrees, reason)
        yield _row(row["table"], row["cell"], f"{row['quantity']}, repeated", *shown)
