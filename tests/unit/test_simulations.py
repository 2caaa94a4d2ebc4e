"""The committed error rates: tidy, whole, from the functions of the slow tests, and as the book says."""

import json

import numpy as np
import pandas as pd
import pytest

import simulations
from biastransfer import paths

COLUMNS = ["measure", "n", "quantity", "value", "low", "high", "trials", "seed"]


def committed(name):
    return pd.read_csv(paths.results("checks", f"{name}.csv"))


def test_a_row_is_a_share_with_its_wilson_interval():
    """Five of ten: Wilson's bounds are .5 ± .2634 (z² = 3.8415)."""
    row = simulations.row("d", 6, "95 % interval", np.arange(10) < 5, 3)
    assert list(row) == COLUMNS
    assert (row["value"], row["trials"], row["seed"]) == (0.5, 10, 3)
    half = np.sqrt(3.8415) * np.sqrt(0.25 / 10 + 3.8415 / 400) / (1 + 0.38415)
    assert (row["low"], row["high"]) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-4)


@pytest.mark.parametrize("name", ["coverage", "type1"])
def test_committed_rates_are_shares_of_their_trials(name):
    table = committed(name)
    assert table.columns.tolist() == COLUMNS
    assert not table.duplicated(["measure", "n", "quantity"]).any()
    for row in table.itertuples():
        hits = np.arange(row.trials) < round(row.value * row.trials)
        again = simulations.row(row.measure, row.n, row.quantity, hits, row.seed)
        bounds = (again["value"], again["low"], again["high"])
        assert (row.value, row.low, row.high) == pytest.approx(bounds, abs=1e-4)


def test_every_interval_has_its_coverage_at_every_size():
    sizes = committed("coverage").groupby("measure")["n"].apply(list)
    assert set(sizes.index) == {
        "effect size d", "change of d", "intra-class similarity", "inter-class similarity", "transfer score"
    }  # fmt: skip
    assert all(found == list(simulations.SIZES) for found in sizes)


def test_the_book_names_the_commit_of_the_rates_and_tells_the_worst():
    text = (paths.root() / "book" / "how-to-read.md").read_text()
    facts = json.loads(paths.results("checks", "provenance-simulations.json").read_text())
    assert text.count(f"committed, run checks, commit {facts['commit']}") == 3
    assert "dirty" not in facts["commit"]
    errors = committed("type1").query("quantity == 'p ≤ 0.05'").set_index(["measure", "n"])["value"]
    said = errors["transfer score, exact p, random low in both", 9]
    assert f"in **{said:.2f}** of the trials".replace("0.", ".") in text
    changes = committed("coverage").query("measure == 'change of d'").set_index("n")["value"]
    wrong = committed("type1").query("measure == 'change of d, p' and quantity == 'p ≤ 0.05'")["value"]
    said = f"in {changes[6]:.2f} of the trials at six a set, in {changes[40]:.2f} at forty"
    assert said.replace("0.", ".") in text
    assert f"came in {wrong.min():.2f} to {wrong.max():.2f} of".replace("0.", ".") in text
    lowest = committed("coverage").query("measure == 'transfer score'")["value"]
    assert f"in {lowest.min():.2f} to".replace("0.", ".") in text
