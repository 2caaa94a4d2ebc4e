"""Bias transfer scores against SciPy, hand-worked values and networks whose score is known."""

from collections import namedtuple

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

import simulations
from biastransfer.similarity import items, similarities
from biastransfer.transfer import (
    ItemError,
    bias_transfer,
    bias_transfer_score,
    by_layer,
    leave_one_out,
    reference_scores,
    tabulate,
)

Condition = namedtuple("Condition", "backbone stage target seed")
CLASSES = ["man", "woman", "random", "stop sign"]
CLASSES += [f"{o}{a}" for o in ("car", "refrigerator", "surfboard") for a in ("", "+man", "+woman")]


def embeddings(seed, n=12, noise=1.0):
    """Classes about fixed centres: two seeds are two networks that see the same structure."""
    rng, centres = np.random.default_rng(seed), np.random.default_rng(99)
    means = {c: centres.normal(size=16) * centres.uniform(0.3, 1.5) for c in CLASSES}
    return {c: means[c] + noise * rng.normal(size=(n, 16)) for c in CLASSES}


def test_score_agrees_with_scipy_and_pairs_by_name():
    rng = np.random.default_rng(0)
    names = [f"item{k}" for k in range(9)]
    before, after = dict(zip(names, rng.normal(size=9))), dict(zip(names, rng.normal(size=9)))
    reference = scipy_stats.spearmanr(list(before.values()), list(after.values()))
    score = bias_transfer_score(before, pd.Series(after).sample(frac=1, random_state=1))
    assert (score.r, score.p) == pytest.approx((reference.statistic, reference.pvalue), abs=1e-12)
    assert (score.n, score.method, score.reason) == (9, "exact", "")
    assert np.isnan([score.low, score.high, score.ceiling]).all()


def test_order_kept_and_order_reversed():
    before = dict(zip("abcd", range(4)))
    assert bias_transfer_score(before, {k: np.exp(9 * v) for k, v in before.items()}).r == 1
    turned = bias_transfer_score(before, {k: -v for k, v in before.items()})
    assert (turned.r, turned.p_exact) == (-1, pytest.approx(2 / 24))


def test_missing_and_doubled_items_raise():
    with pytest.raises(ItemError, match="'b' is missing after finetuning"):
        bias_transfer_score({"a": 1, "b": 2}, {"a": 1})
    with pytest.raises(KeyError):
        bias_transfer_score({"a": 1}, {"a": 1, "b": 2})
    with pytest.raises(ValueError, match="'b' is missing before"):
        bias_transfer_score({"a": 1}, {"a": 1, "b": 2})
    with pytest.raises(ItemError, match="'a' stands twice in 'after'"):
        bias_transfer_score({"a": 1}, pd.Series([1, 2], index=["a", "a"]))
    with pytest.raises(TypeError, match=r"before must be a mapping or Series .*got list"):
        bias_transfer_score([1, 2, 3], [1, 2, 3])


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ([1, 2], [1, 2], "at least 3 items; got 2"),
        ([1, 1, 1], [1, 2, 3], "all similarities before finetuning are equal"),
        ([1, 2, 3], [5, 5, 5], "all similarities after finetuning are equal"),
        ([1, np.nan, 3], [1, 2, 3], "no finite similarity for b"),
    ],
)
def test_undefined_scores_are_nan_with_a_reason(before, after, reason):
    score = bias_transfer_score(dict(zip("abc", before)), dict(zip("abc", after)))
    assert np.isnan([score.r, score.p, score.p_exact]).all()
    assert reason in score.reason


def test_bias_transfer_adds_interval_and_ceiling_to_the_same_score():
    before, after = embeddings(1), embeddings(2)
    for listed in items(CLASSES):
        score = bias_transfer(before, after, listed, resamples=400)
        plain = bias_transfer_score(similarities(before, listed), similarities(after, listed))
        assert (score.r, score.p, score.p_exact, score.n) == (plain.r, plain.p, plain.p_exact, plain.n)
        assert -1 <= score.low <= score.r <= score.high <= 1
        assert 0 < score.ceiling <= 1
        again = bias_transfer(before, after, listed, resamples=400)
        np.testing.assert_array_equal([score.low, score.ceiling], [again.low, again.ceiling])


def test_a_network_that_did_not_move_reaches_its_ceiling_not_more():
    before = embeddings(1, n=30)
    score = bias_transfer(before, before, items(CLASSES)[0], resamples=200)
    assert score.r == 1
    assert score.high == 1
    assert score.cross_half == pytest.approx(score.ceiling, abs=0.01)
    assert score.ceiling < 1


def test_rotation_and_another_dimension_change_nothing():
    before, after, listed = embeddings(1), embeddings(2), items(CLASSES)[1]
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(20, 20)))[0][:16]
    turned = {k: 3 * (v @ turn) for k, v in after.items()}
    one, two = (bias_transfer(before, a, listed, resamples=200) for a in (after, turned))
    np.testing.assert_allclose(
        [one.r, one.low, one.high, one.ceiling, one.p_within],
        [two.r, two.low, two.high, two.ceiling, two.p_within],
    )


def test_collapsed_embeddings_have_no_order():
    before = embeddings(1)
    after = {
        k: np.tile(np.array([[0.3, 0.7, 0.1]]), (len(v), 1)) * np.arange(1, len(v) + 1)[:, None]
        for k, v in before.items()
    }
    score = bias_transfer(before, after, items(CLASSES)[0], resamples=50)
    assert np.isnan(score.r)
    assert score.reason == "all similarities after finetuning are equal, so they have no order"


def test_pictures_must_match():
    before, after = embeddings(1), embeddings(2)
    after["car"] = after["car"][:-1]
    with pytest.raises(
        ValueError, match=r"class 'car' must hold the same pictures.*got 12 before and 11 after"
    ):
        bias_transfer(before, after, ["car", "man", "woman"])
    with pytest.raises(ValueError, match="resamples must be a whole number of at least 0; got -1"):
        bias_transfer(before, before, ["car", "man", "woman"], resamples=-1)


def test_classes_of_one_to_three_pictures_give_a_score_with_open_parts():
    before, after = embeddings(1, n=2), embeddings(2, n=2)
    score = bias_transfer(before, after, items(CLASSES)[0], resamples=50)
    assert np.isfinite(score.r)
    assert np.isnan(score.ceiling)  # half of two pictures has no intra-class similarity
    single = bias_transfer(embeddings(1, n=1), embeddings(2, n=1), ["car", "man", "woman"], resamples=50)
    assert single.reason == "no finite similarity for car, man, woman"


def test_leave_one_out_is_the_score_without_the_item():
    before, after = dict(zip("abcd", [1, 2, 3, 4])), dict(zip("abcd", [4, 1, 2, 3]))
    table = leave_one_out(before, after).set_index("item")
    assert table.loc["a", "r_without"] == 1
    assert table.loc["a", "contribution"] == pytest.approx(bias_transfer_score(before, after).r - 1)


def test_tables_have_a_row_for_every_seed_and_for_their_mean():
    embedded = {
        Condition("net", "pretrained", "", 0): embeddings(1),
        Condition("other", "pretrained", "", 0): embeddings(5),
        Condition("net", "finetuned", "scenes", 0): embeddings(2),
        Condition("net", "finetuned", "scenes", 1): embeddings(3),
    }
    table = tabulate(embedded, "set", "run", resamples=100)
    assert [*zip(table["seed"], table["kind"])] == [
        (s, k) for s in (0, 1, "mean") for k in ("intra", "inter")
    ]
    listed = items(CLASSES)[0]
    after = [similarities(embeddings(s), listed) for s in (2, 3)]
    mean = {k: (after[0][k] + after[1][k]) / 2 for k in listed}
    assert table.loc[4, "r"] == pytest.approx(
        bias_transfer_score(similarities(embeddings(1), listed), mean).r
    )
    references = reference_scores(embedded, "set", "run")
    assert set(references["reference"]) == {"other"}
    assert references["seed"].tolist() == [0, 0, 1, 1, "mean", "mean"]
    del embedded[Condition("net", "pretrained", "", 0)]
    with pytest.raises(ValueError, match="needs the pretrained 'net'"):
        tabulate(embedded, "set", "run")


def test_by_layer_is_the_table_of_each_layer_with_the_same_draws():
    before, after = Condition("net", "pretrained", "", 0), Condition("net", "finetuned", "scenes", 0)
    same, other = embeddings(1), embeddings(5)
    layered = {"late": {before: same, after: other}, "early": {before: same, after: same}}
    found = by_layer(layered, "set", "run", resamples=50)
    assert found["layer"].tolist() == ["late", "late", "early", "early"]
    assert found.columns.tolist()[4:7] == ["set", "layer", "kind"]
    late = tabulate(layered["late"], "set", "run", resamples=50)
    pd.testing.assert_frame_equal(found[:2].drop(columns="layer"), late)
    early = found[found["layer"] == "early"]
    assert early[["r", "low", "high"]].to_numpy() == pytest.approx(1)
    with pytest.raises(ValueError, match="need at least one layer; got none"):
        by_layer({}, "set", "run")


@pytest.mark.slow
def test_intervals_cover():
    """At 20 pictures a class the interval holds the score of the population in about 95 % of trials."""
    assert simulations.transfer_covered(20, 150, seed=0).mean() >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("n", [7, 9])
def test_type_one_error_of_the_exact_p(n):
    exact, _ = simulations.transfer_p(n, 600, seed=n)
    assert np.mean(exact <= 0.05) <= 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / 600)


def test_an_item_named_twice_counts_once():
    before, after = embeddings(1), embeddings(2, noise=3.0)
    names = items(CLASSES)[1]
    once, twice = (
        bias_transfer(before, after, chosen, resamples=20) for chosen in (names, [names[0], *names, names[3]])
    )
    assert (twice.r, twice.n, twice.low) == (once.r, once.n, once.low)
