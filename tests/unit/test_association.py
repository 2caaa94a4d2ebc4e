"""The association test against the reference definition, its invariances, and its tables."""

from collections import namedtuple
from itertools import combinations

import numpy as np
import pytest

import simulations
from biastransfer.association import association_test, effect_size, pairs, tabulate
from biastransfer.stats import benjamini_hochberg, holm

Condition = namedtuple("Condition", "backbone stage target seed")


def reference(X, Y, A, B):
    """Effect size and one-sided p as the reference implementation defines them, partitions listed."""

    def s(w):
        cosine = [[w @ v / np.linalg.norm(w) / np.linalg.norm(v) for v in Z] for Z in (A, B)]
        return np.mean(cosine[0]) - np.mean(cosine[1])

    scores = np.array([s(w) for w in [*X, *Y]])
    n = len(X)
    d = (scores[:n].mean() - scores[n:].mean()) / scores.std(ddof=1)
    sums = np.array([scores[list(c)].sum() for c in combinations(range(len(scores)), n)])
    return d, (sums >= scores[:n].sum() - 1e-12).mean(), (sums <= scores[:n].sum() + 1e-12).mean()


def draw(seed, *sizes, d=7):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, d)) + 0.5 * rng.normal(size=d) for n in sizes]


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (1, 4, 2, 3), (5, 2, 1, 4), (6, 6, 5, 5), (4, 8, 3, 9)])
def test_agrees_with_the_reference_definition(sizes):
    sets = draw(sum(sizes), *sizes)
    d, greater, less = reference(*sets)
    assert effect_size(*sets) == pytest.approx(d, abs=1e-10)
    for alternative, p in {
        "greater": greater,
        "less": less,
        "two-sided": min(1, 2 * min(greater, less)),
    }.items():
        result = association_test(*sets, alternative=alternative)
        assert (result.effect_size, result.p) == pytest.approx((d, p), abs=1e-10)
        assert (result.method, result.error) == ("exact", 0)
        assert result.direction == ("greater" if d > 0 else "less")


def test_ties_count_against_significance():
    X, Y, A, B = draw(3, 5, 5, 4, 4)
    X[0] = Y[0]
    X[1], Y[1] = X[2], 3 * Y[0]
    result = association_test(X, Y, A, B)
    assert (result.p, result.p_less) == pytest.approx(reference(X, Y, A, B)[1:], abs=1e-12)
    assert result.p_greater + result.p_less > 1


def test_invariances():
    X, Y, A, B = sets = draw(4, 8, 6, 5, 7)
    d = effect_size(*sets)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(7, 7)))[0]
    assert effect_size(*(1e3 * (z @ turn) for z in sets)) == pytest.approx(d, abs=1e-12)
    assert effect_size(*(z * np.linspace(1, 9, len(z))[:, None] for z in sets)) == pytest.approx(d, abs=1e-12)
    assert effect_size(Y, X, A, B) == pytest.approx(-d, abs=1e-12)
    assert effect_size(X, Y, B, A) == pytest.approx(-d, abs=1e-12)
    one, swapped = association_test(X, Y, A, B), association_test(Y, X, A, B)
    assert (one.p_greater, one.p_less) == pytest.approx((swapped.p_less, swapped.p_greater), abs=1e-12)
    assert (one.low, one.high) == pytest.approx((-swapped.high, -swapped.low))
    assert association_test(X[::-1], Y[::-1], A, B).p == pytest.approx(one.p, abs=1e-12)


def test_methods_agree():
    sets = draw(5, 18, 18, 9, 9)
    exact = association_test(*sets, method="exact")
    inverted = association_test(*sets, method="fourier")
    drawn = association_test(*sets, method="sampled", n_samples=20_000)
    assert abs(inverted.p - exact.p) <= inverted.error
    assert abs(drawn.p - exact.p) < 5 * drawn.error
    assert (exact.n_partitions, drawn.n_partitions) == (9_075_135_300, 20_000)


def test_many_pictures_are_inverted_and_resolve_small_p():
    X, Y, A, B = draw(6, 150, 150, 40, 40)
    X = X + 1.2 * (A.mean(0) - B.mean(0))
    result = association_test(X, Y, A, B)
    assert result.method == "fourier"
    assert 0 < result.p < 1e-12
    assert result.error < 1e-3 * result.p
    assert result.low < result.effect_size < result.high


@pytest.mark.parametrize("case", ["same pictures", "same attributes"])
def test_no_spread_is_nan_with_a_reason(case):
    X, Y, A, B = draw(7, 4, 5, 3, 3)
    if case == "same pictures":
        X, Y = X[:1] * np.arange(1, 5)[:, None], X[:1] * np.array([[0.1], [7.0]])
    else:
        B = 2 * A
    assert np.isnan(effect_size(X, Y, A, B))
    result = association_test(X, Y, A, B)
    assert np.isnan([result.effect_size, result.p, result.low, result.high]).all()
    assert result.direction == "none"
    assert result.reason.startswith("all associations are equal")


def test_intervals_need_two_pictures_a_set():
    result = association_test(*draw(8, 4, 4, 1, 3))
    assert np.isnan(result.low)
    assert result.low_fixed < result.effect_size < result.high_fixed
    assert result.reason == "an interval needs at least 2 pictures in every set"


def test_errors_say_what_to_do():
    X, Y, A, B = draw(9, 4, 4, 3, 3)
    with pytest.raises(
        ValueError,
        match=r"X and A must have the same number of columns; got \(4, 7\) and \(3, 6\). Embed both",
    ):
        effect_size(X, Y, A[:, :6], B)
    with pytest.raises(ValueError, match="Y must hold at least one picture"):
        association_test(X, Y[:0], A, B)
    with pytest.raises(ValueError, match=r"B: every picture.*row 2 has a NaN"):
        association_test(X, Y, A, np.where(np.arange(3)[:, None] == 2, np.nan, B))
    with pytest.raises(ValueError, match="unknown alternative 'both'; known: greater, less, two-sided"):
        association_test(X, Y, A, B, alternative="both")
    with pytest.raises(ValueError, match="unknown method 'fast'; known: auto, exact, fourier, sampled"):
        association_test(X, Y, A, B, method="fast")
    with pytest.raises(ValueError, match="n_samples must be a whole number of at least 1; got 0"):
        association_test(X, Y, A, B, method="sampled", n_samples=0)


def test_sum_of_eq6_is_the_papers():
    """One picture a set: A = X and B = Y lie with their own person, so the sum towards woman is −2."""
    man, woman = np.eye(2)
    assert association_test([man], [woman], [man], [woman]).sum_eq6 == pytest.approx(-2)


def test_pairs_are_those_of_table_9():
    objects = ["car", "sports", "fashion", "mammal"]
    classes = [
        "man",
        "woman",
        "random",
        "stop sign",
        *(f"{o}{a}" for o in objects for a in ("", "+man", "+woman")),
    ]
    assert set(pairs(classes)) == {
        ("sports", "car"), ("sports", "fashion"), ("sports", "mammal"),
        ("car", "fashion"), ("car", "mammal"), ("mammal", "fashion"),
    }  # fmt: skip


def test_tables_lead_with_two_sided_p_and_correct_over_the_family():
    classes = [
        "man",
        "woman",
        "car",
        "car+man",
        "surfboard",
        "surfboard+woman",
        "refrigerator",
        "refrigerator+man",
    ]
    embedded = {
        Condition("net", stage, target, 0): dict(zip(classes, draw(seed, *[9] * len(classes))))
        for seed, (stage, target) in enumerate([("pretrained", ""), ("finetuned", "scenes")])
    }
    flat = np.tile(np.ones(7), (9, 1))
    embedded[Condition("flat", "pretrained", "", 0)] = {c: flat for c in classes}
    table = tabulate(embedded, "set", "run")
    assert len(table) == 9
    assert set(table["n_tests"]) == {6}
    assert table["p"].isna().sum() == 3
    np.testing.assert_allclose(table["p_holm"], holm(table["p"]))
    np.testing.assert_allclose(table["p_bh"], benjamini_hochberg(table["p"].to_numpy()))
    assert table["p_maxt"].isna().equals(table["p"].isna())
    assert (table["p_maxt"] + 0.03 >= table["p"])[table["p"].notna()].all()
    assert (table["p_maxt"] <= table["p_holm"] + 0.03)[table["p"].idxmin()]
    row, vectors = table.iloc[0], embedded[Condition("net", "pretrained", "", 0)]
    sets = [vectors[name] for name in ("man", "woman", row["A"], row["B"])]
    assert row["p"] == pytest.approx(association_test(*sets, alternative="two-sided").p)
    with pytest.raises(ValueError, match="needs class 'dog'"):
        tabulate(embedded, "set", "run", pairs=[("dog", "car")])
    with pytest.raises(ValueError, match="class 'car' must hold at least one picture"):
        tabulate({Condition("n", "pretrained", "", 0): {**vectors, "car": flat[:0]}}, "set", "run")


@pytest.mark.parametrize("alternative", ["two-sided", "less"])
def test_tables_share_what_is_measured_and_change_no_number(alternative):
    """Each row is, to the bit, the test of its four sets alone; p_maxt needs numbers alike everywhere."""
    names = ["man", "woman", "car", "car+man", "sports", "sports+man", "mammal", "mammal+man"]
    sizes = [9, 7, 5, 5, 6, 6, 8, 8]
    embedded = {Condition("net", "pretrained", "", k): dict(zip(names, draw(k, *sizes))) for k in range(2)}
    table = tabulate(embedded, "set", "run", alternative=alternative)
    for row in table.to_dict("records"):
        vectors = embedded[Condition("net", "pretrained", "", row["seed"])]
        sets = [vectors[name] for name in ("man", "woman", row["A"], row["B"])]
        alone = vars(association_test(*sets, alternative=alternative))
        assert {k: row[k] for k in alone if k in row} == {k: v for k, v in alone.items() if k in row}
        assert [row[f"n_{k}"] for k in "xyab"] == list(map(len, sets))
    fewer = {**vectors, "man": vectors["man"][1:]}
    mixed = tabulate(embedded | {Condition("net", "finetuned", "t", 0): fewer}, "set", "run")
    assert mixed["p_maxt"].isna().all()
    assert mixed["p_holm"].notna().all()


@pytest.mark.slow
@pytest.mark.parametrize(("method", "size"), [("exact", 8), ("fourier", 30), ("sampled", 30)])
def test_type_one_error(method, size):
    """Exchangeable pictures: p ≤ .05 in at most 5 % of trials, up to Monte Carlo error."""
    rejected = simulations.association_p(size, method, 600, seed=size) <= 0.05
    assert rejected.mean() <= 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / 600)


@pytest.mark.slow
def test_max_t_errs_once_in_twenty_families():
    smallest = simulations.smallest_max_t(15, 600, seed=0)
    assert 0.025 <= np.mean(smallest <= 0.05) <= 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / 600)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "least"), [(8, 0.90), (30, 0.93)])
def test_intervals_of_d_cover(size, least):
    assert simulations.effect_covered(size, 600, seed=size).mean() >= least
