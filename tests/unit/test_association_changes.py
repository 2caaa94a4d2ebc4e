"""What finetuning did to associations: exact on small sets, true to how the sets were made."""

from collections import namedtuple

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import simulations
from biastransfer.association import change_numbers, change_of_effect, changes, effect_size, tabulate

mpl.use("Agg")
from biastransfer import plots

Condition = namedtuple("Condition", "backbone stage target seed")
BEFORE, AFTER = Condition("net", "pretrained", "", 0), Condition("net", "finetuned", "scenes", 0)
PAIR = [("car", "mammal")]


def four(rng, n=(7, 6, 5, 4), d=6):
    return [rng.normal(size=(size, d)) + 0.3 for size in n]


def network(lean, n=30, seed=0, noise=0.5):
    """Embeddings in which men lie closer to cars and women to mammals by `lean`, in draw `seed`."""
    rng = np.random.default_rng(seed)
    centres = {"man": (lean, 0, 1), "woman": (0, lean, 1), "car": (1, 0, 1), "mammal": (0, 1, 1)}
    return {name: np.array(c, float) + noise * rng.normal(size=(n, 3)) for name, c in centres.items()}


def told(before, after, **options):
    embedded = {BEFORE: before, AFTER: after}
    return changes(embedded, tabulate(embedded, "set", "run", pairs=PAIR), **options)


def test_interval_and_p_are_those_of_leaving_each_picture_out_of_both():
    rng = np.random.default_rng(3)
    before, after = four(rng), four(rng, d=9)
    change, low, high, p = change_of_effect(before, after)
    assert change == pytest.approx(effect_size(*after) - effect_size(*before), abs=1e-12)
    parts, freedom = [], 0
    for k in range(4):
        values = []
        for i in range(len(before[k])):
            less = [
                [np.delete(s, i, 0) if j == k else s for j, s in enumerate(sets)] for sets in (before, after)
            ]
            values.append(effect_size(*less[1]) - effect_size(*less[0]))
        n = len(values)
        parts.append((n - 1) / n * ((np.array(values) - np.mean(values)) ** 2).sum())
        freedom += parts[-1] ** 2 / (n - 1)
    error, freedom = np.sqrt(sum(parts)), sum(parts) ** 2 / freedom
    half = stats.t.ppf(0.975, freedom) * error
    assert (low, high) == pytest.approx((change - half, change + half), abs=1e-6)
    assert p == pytest.approx(2 * stats.t.sf(abs(change) / error, freedom), abs=1e-6)


def test_the_other_way_round_is_the_other_sign_and_scale_changes_nothing():
    rng = np.random.default_rng(4)
    before, after = four(rng), four(rng)
    change, low, high, p = change_of_effect(before, after)
    assert change_of_effect(after, before) == pytest.approx((-change, -high, -low, p), abs=1e-9)
    scaled = [3 * sets for sets in after]
    assert change_of_effect(before, scaled) == pytest.approx((change, low, high, p), abs=1e-6)


def test_other_pictures_after_than_before_are_refused_by_the_set_that_differs():
    sets = four(np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"set A must hold the same pictures .* got 5 before and 4 after"):
        change_of_effect(sets, [*sets[:2], sets[2][1:], sets[3]])


def test_a_change_without_spread_or_from_single_pictures_has_no_interval():
    sets = four(np.random.default_rng(0), n=(6, 6, 1, 4))
    change, *rest = change_of_effect(sets, [2.0 + s for s in sets])
    assert np.isfinite(change)
    assert np.isnan(rest).all()
    flat = [np.ones((4, 3))] * 4
    assert np.isnan(change_of_effect(flat, flat)).all()


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (1.0, 1.0, "survives"),
        (0.5, 2.0, "survives, stronger"),
        (2.0, 0.5, "survives, weaker"),
        (0.0, 1.0, "added"),
        (1.0, 0.0, "removed"),
        (1.0, -1.0, "reversed"),
        (0.0, 0.0, "none shown"),
    ],
)
def test_each_verdict_is_found_where_it_was_built_in(before, after, verdict):
    [row] = told(network(before), network(after)).to_dict("records")
    assert row["verdict"] == verdict
    assert row["change"] == pytest.approx(row["after"] - row["before"], abs=1e-12)
    assert row["low"] <= row["change"] <= row["high"]


def test_one_test_that_stands_and_one_that_does_not_are_no_change_by_themselves():
    """Two noisy networks with one effect: a level lies between their p."""
    embedded = {BEFORE: network(0.4, n=12, seed=2), AFTER: network(0.4, n=12, seed=5)}
    tests = tabulate(embedded, "set", "run", pairs=PAIR)
    level = tests["p_holm"].mean()  # between the two
    [row] = changes(embedded, tests, level=level).to_dict("records")
    assert row["p_holm"] > level
    assert row["verdict"] == "undecided"


def test_a_change_between_two_d_that_do_not_stand_is_said_to_be_that():
    embedded = {BEFORE: network(-0.5), AFTER: network(0.5)}
    tests = tabulate(embedded, "set", "run", pairs=PAIR).assign(p_holm=0.2)
    table = changes(embedded, tests)
    assert table["verdict"].tolist() == ["changed, neither stands"]
    assert change_numbers(table)["n_none"] == 1
    assert change_numbers(table)["n_moved"] == 1


def test_every_finetuned_network_is_held_against_its_own_start_and_corrected_together():
    other = Condition("other", "finetuned", "scenes", 0)  # has no start
    second = Condition("net", "finetuned", "scenes", 1)
    embedded = {BEFORE: network(0), AFTER: network(1), second: network(0.3), other: network(1)}
    tests = tabulate(embedded, "set", "run", pairs=PAIR)
    table = changes(embedded, tests)
    assert table["seed"].tolist() == [0, 1]
    assert set(table["backbone"]) == {"net"}
    assert (table["before"] == table["before"].iloc[0]).all()
    assert table["p_holm"].min() == pytest.approx(2 * table["p"].min())
    assert table["n_tests"].eq(2).all()


def test_numbers_count_each_association_once_and_tell_the_largest_that_stands():
    table = pd.concat(
        [told(network(a), network(b)) for a, b in [(0.5, 2), (0, 1), (1, 0), (1, -1), (0, 0)]],
        ignore_index=True,
    )
    numbers = change_numbers(table)
    counted = [
        numbers[f"n_{name}"] for name in ("survives", "added", "removed", "reversed", "undecided", "none")
    ]
    assert counted == [1, 1, 1, 1, 0, 1]
    assert numbers["n_associations"] == 5
    row = table.loc[table["change"].abs().idxmax()]
    assert numbers["largest_change"].startswith(
        f"from {row['before']:.2f} to {row['after']:.2f} (car against"
    )


def test_without_a_finetuned_network_nothing_changed():
    embedded = {BEFORE: network(1)}
    table = changes(embedded, tabulate(embedded, "set", "run", pairs=PAIR))
    assert table.empty
    assert "verdict" in table
    assert change_numbers(table)["n_associations"] == 0
    assert "no network" in change_numbers(table)["largest_change"]


def test_the_figure_has_a_mark_of_its_verdict_for_each_row_filled_where_the_change_stands():
    table = pd.concat([told(network(0), network(1)), told(network(0), network(0))], ignore_index=True)
    table = table.assign(seed=[0, 1])
    [ax] = plots.association_changes(table).axes
    marks = {line.get_marker(): line for line in ax.lines if len(line.get_xdata()) == 1}
    assert float(marks["^"].get_xdata()[0]) == table["change"][0]
    assert marks["^"].get_markerfacecolor() == marks["^"].get_color()
    assert marks["o"].get_markerfacecolor() == "white"
    spans = [tuple(line.get_xdata()) for line in ax.lines if len(line.get_xdata()) == 2]
    assert (table["low"][0], table["high"][0]) in spans


@pytest.mark.slow
@pytest.mark.parametrize("size", [8, 30])
def test_intervals_of_changes_cover_and_their_p_does_not_err_too_often(size):
    assert simulations.change_covered(size, 600, seed=size).mean() >= 0.93
    wrong = (simulations.no_change_p(size, 600, seed=size) <= 0.05).mean()
    assert 0 < wrong <= 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / 600)
