"""Families, ranks, intervals and permutation nulls against hand-worked values, enumeration and SciPy."""

from itertools import combinations, permutations, product
from math import comb

import numpy as np
import pytest
from scipy import stats as scipy_stats

from biastransfer.stats import (
    benjamini_hochberg,
    benjamini_yekutieli,
    effect_intervals,
    effect_of_scores,
    holm,
    jackknife_t,
    max_t,
    permutation_p,
    shared_max_t,
    spearman,
    spearman_permutation_p,
    spearman_t_p,
    within_group_permutation_p,
)
from biastransfer.stats.partitions import countable, exact, sampled
from biastransfer.stats.resampling import (
    bootstrap_interval,
    half_weights,
    multinomial_weights,
    weighted_intra,
)
from biastransfer.stats.saddlepoint import fourier


def listed(scores, n, width=1e-12):
    """Both one-sided p-values by listing every partition."""
    sums = np.array([scores[list(chosen)].sum() for chosen in combinations(range(len(scores)), n)])
    observed = scores[:n].sum()
    return (sums >= observed - width).mean(), (sums <= observed + width).mean()


def test_families_by_hand():
    p = [0.01, 0.04, 0.03, 0.005]
    np.testing.assert_allclose(holm(p), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(benjamini_hochberg(p), [0.02, 0.04, 0.04, 0.02])
    np.testing.assert_allclose(
        benjamini_yekutieli(p), np.array([0.02, 0.04, 0.04, 0.02]) * (1 + 1 / 2 + 1 / 3 + 1 / 4)
    )


@pytest.mark.parametrize(("ours", "method"), [(benjamini_hochberg, "bh"), (benjamini_yekutieli, "by")])
def test_false_discovery_rates_agree_with_scipy(ours, method):
    p = np.random.default_rng(0).uniform(size=37) ** 3
    np.testing.assert_allclose(ours(p), scipy_stats.false_discovery_control(p, method=method), rtol=1e-12)


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg, benjamini_yekutieli])
def test_families_leave_nan_out_of_the_count(adjust):
    p = np.array([[0.01, np.nan], [0.2, 0.03]])
    adjusted = adjust(p)
    assert np.isnan(adjusted[0, 1])
    np.testing.assert_allclose(adjusted[~np.isnan(p)], adjust(p[~np.isnan(p)]))
    assert adjust([]).shape == (0,)
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]; got 1.5 at position 1"):
        adjust([0.1, 1.5])


def test_max_t_counts_the_largest_of_the_family():
    permuted = np.array([[1.0, -3.0, 9.0], [2.0, 0.0, 9.0], [0.5, 0.5, 9.0]])
    np.testing.assert_allclose(max_t([-2.0, 0.4, np.nan], permuted), [3 / 4, 1.0, np.nan])


def test_max_t_counts_one_side():
    permuted = np.array([[1.0, -3.0], [2.0, 0.0], [0.5, 0.5]])
    np.testing.assert_allclose(max_t([2.0, -2.0], permuted, alternative="greater"), [2 / 4, 1.0])
    np.testing.assert_allclose(max_t([2.0, -2.0], permuted, alternative="less"), [1.0, 2 / 4])
    with pytest.raises(ValueError, match="unknown alternative 'both'; known: two-sided, greater, less"):
        max_t([1.0], [[1.0]], alternative="both")


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_shared_max_t_is_the_share_of_all_partitions(alternative):
    """Against every partition listed, d computed from its definition: unequal sets, a test that failed."""
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(4, 9)) * [[1e-6], [1.0], [1e3], [1.0]] + [[5.0], [0.0], [0.0], [0.0]]
    scores[:3, :4] += [[8e-7], [-0.6], [300.0]]
    scores[3, 0] = np.nan
    every = [[*c, *(set(range(9)) - set(c))] for c in combinations(range(9), 4)]
    d = np.array([effect_of_scores(scores[:, order], 4) for order in every])
    side = {"two-sided": np.abs, "greater": np.positive, "less": np.negative}[alternative]
    largest = side(d[:, :3]).max(1)
    truth = [(largest >= side(d[0, k]) - 1e-9).mean() for k in range(3)]
    p = shared_max_t(scores, 4, alternative=alternative, draws=40_000, seed=1)
    np.testing.assert_allclose(p, [*truth, np.nan], atol=5 * 0.5 / np.sqrt(40_000))


def test_shared_max_t_costs_nothing_for_a_test_that_says_the_same():
    """Copies of one test, in other units, are one test: Holm would triple its p."""
    scores = np.random.default_rng(3).normal(size=14) + np.repeat([1.2, 0], 7)
    p = shared_max_t(np.stack([scores, 3 + 1e-5 * scores, -scores]), 7)
    single = shared_max_t(scores[None], 7)
    np.testing.assert_array_equal(p, np.repeat(single, 3))
    assert single[0] == pytest.approx(2 * permutation_p(scores, 7)[0], abs=0.025)


def test_shared_max_t_is_never_0_and_of_nothing_is_nothing():
    apart = np.repeat([5.0, 0.0], 30)[None] + np.random.default_rng(4).normal(size=60)
    assert shared_max_t(apart, 30, draws=999)[0] == 1 / 1000
    assert np.isnan(shared_max_t(np.full((2, 8), np.nan), 4)).all()


@pytest.mark.parametrize("ties", [False, True])
def test_spearman_agrees_with_scipy(ties):
    rng = np.random.default_rng(1)
    x, y = (rng.integers(0, 4, (2, 9)) if ties else rng.normal(size=(2, 9))).astype(float)
    reference = scipy_stats.spearmanr(x, y)
    assert spearman(x, y) == pytest.approx(reference.statistic, abs=1e-12)
    assert spearman_t_p(spearman(x, y), 9) == pytest.approx(reference.pvalue, abs=1e-12)
    np.testing.assert_allclose(spearman(np.stack([x, y]), np.stack([y, x])), reference.statistic)


def test_spearman_is_undefined_for_constants_and_nan():
    assert np.isnan(spearman([1, 1, 1], [1, 2, 3]))
    assert np.isnan(spearman([1, np.nan, 3], [1, 2, 3]))
    assert np.isnan(spearman_t_p(np.nan, 5))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", [3, 5, 7])
def test_permutation_p_of_spearman_counts_all_pairings(n, ties):
    rng = np.random.default_rng(n)
    x, y = (rng.integers(0, 3, (2, n)) if ties else rng.normal(size=(2, n))).astype(float)
    x[0], x[1], y[0], y[1] = 0, 1, 1, 0  # never constant
    every = np.abs(spearman(np.tile(x, (len(list(permutations(y))), 1)), np.array(list(permutations(y)))))
    p, method = spearman_permutation_p(x, y)
    assert method == "exact"
    assert p == pytest.approx(np.mean(every >= abs(spearman(x, y)) - 1e-12), abs=1e-12)


@pytest.mark.parametrize(
    ("n", "r", "p"),
    [
        (7, 0.714, 0.0881),
        (7, 0.893, 0.0123),
        (8, 0.714, 0.0576),
        (8, 0.952, 0.0011),
        (9, 0.867, 0.0045),
        (12, 0.748, 0.0070),
    ],
)
def test_permutation_p_of_the_published_scores(n, r, p):
    """Orders with the printed r, found by swapping neighbours, have the published exact p."""
    rng, x = np.random.default_rng(0), np.arange(n)
    y = next(y for y in (rng.permutation(n) for _ in range(200_000)) if abs(spearman(x, y) - r) < 6e-4)
    assert spearman_permutation_p(x, y)[0] == pytest.approx(p, abs=6e-5)


def test_more_than_14_items_are_sampled_with_one_added():
    x = np.arange(20.0)
    assert spearman_permutation_p(x, x, n_samples=999) == (1 / 1000, "sampled")


def test_permutation_within_groups():
    x, y, groups = np.arange(6.0), np.array([1.0, 0, 2, 3, 5, 4]), [0, 0, 0, 1, 1, 1]
    every = [[*a, *b] for a, b in product(permutations(y[:3]), permutations(y[3:]))]
    expected = np.mean([abs(spearman(x, z)) >= abs(spearman(x, y)) - 1e-12 for z in every])
    assert len(every) == 36
    assert within_group_permutation_p(x, y, groups) == pytest.approx(expected)
    assert np.isnan(within_group_permutation_p(x, np.ones(6), groups))


def test_jackknife_of_a_mean_is_the_t_interval():
    x = np.random.default_rng(2).normal(size=12)
    low, high = jackknife_t(x.mean(), (x.sum() - x) / 11)
    reference = scipy_stats.t.interval(0.95, 11, x.mean(), scipy_stats.sem(x))
    np.testing.assert_allclose((low, high), reference)


def test_jackknife_of_two_means_is_welch():
    x, y = np.random.default_rng(3).normal(size=9), np.random.default_rng(4).normal(size=14) * 3
    ours = jackknife_t(x.mean() - y.mean(), (x.sum() - x) / 8 - y.mean(), x.mean() - (y.sum() - y) / 13)
    np.testing.assert_allclose(ours, scipy_stats.ttest_ind(x, y, equal_var=False).confidence_interval(0.95))
    assert np.isnan(jackknife_t(1.0, [1.0])).all()


def test_effect_interval_deletes_every_picture_once():
    rng = np.random.default_rng(5)
    to_a, to_b, n = rng.uniform(-1, 1, (9, 4)), rng.uniform(-1, 1, (9, 3)), 4

    def d(rows, a, b, size):
        return effect_of_scores(to_a[np.ix_(rows, a)].mean(1) - to_b[np.ix_(rows, b)].mean(1), size)

    rows, a, b = list(range(9)), list(range(4)), list(range(3))
    without = [
        [d([r for r in rows if r != i], a, b, n - (i < n)) for i in part] for part in (rows[:n], rows[n:])
    ]
    without += [
        [d(rows, [k for k in a if k != i], b, n) for i in a],
        [d(rows, a, [k for k in b if k != i], n) for i in b],
    ]
    full = d(rows, a, b, n)
    ours = effect_intervals(to_a.mean(1) - to_b.mean(1), n, to_a, to_b)
    np.testing.assert_allclose(
        ours, (*jackknife_t(full, *without), *jackknife_t(full, *without[:2])), rtol=1e-10
    )


@pytest.mark.parametrize("sizes", [(1, 1), (1, 5), (5, 1), (6, 6), (4, 8), (8, 4)])
def test_exact_counting_is_enumeration(sizes):
    scores = np.random.default_rng(sum(sizes)).normal(size=sum(sizes))
    np.testing.assert_allclose(exact(scores, sizes[0]), listed(scores, sizes[0]), atol=1e-12)


def test_exact_counting_with_ties_and_rounding():
    scores = np.array(
        [0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.1 + 0.2, 0.3, 0.1, 0.6]
    )  # .1 + .2 ≠ .3 in floating point
    np.testing.assert_allclose(exact(scores, 4), listed(scores, 4, 1e-9), atol=1e-12)


def test_small_sets_are_counted_beyond_40_pictures():
    scores = np.random.default_rng(6).normal(size=60)
    assert countable(scores, 3)
    assert not countable(scores, 30)
    np.testing.assert_allclose(exact(scores, 2), listed(scores, 2), atol=1e-12)
    np.testing.assert_allclose(exact(scores, 58), exact(-scores[::-1], 2)[::-1][::-1], atol=1e-12)


@pytest.mark.parametrize("draw", ["normal", "exponential", "uniform"])
def test_fourier_stays_within_its_error_of_exact(draw):
    rng = np.random.default_rng(7)
    for _ in range(12):
        size, n = (int(k) for k in (rng.integers(26, 37), rng.integers(6, 20)))
        scores = getattr(rng, draw)(size=size)
        scores[:n] += rng.choice([0, 0.5, 1.0]) * scores.std()
        greater, less, error = fourier(scores, n)
        assert np.abs(np.subtract((greater, less), exact(scores, n))).max() <= error + 1e-14


@pytest.mark.parametrize("values", [2, 3, 10])
def test_fourier_is_exact_on_a_lattice(values):
    rng = np.random.default_rng(values)
    for n in (12, 20, 27):
        scores = rng.integers(0, values, 40) * 0.37 + 5
        np.testing.assert_allclose(fourier(scores, n)[:2], exact(scores, n), rtol=1e-10)


def test_fourier_of_two_values_is_hypergeometric():
    for size, n, marked in ((300, 150, 90), (2000, 1000, 700)):
        scores = np.r_[np.ones(marked // 2 + 20), np.zeros(n - marked // 2 - 20)]
        scores = np.r_[scores, np.ones(marked // 2 - 20), np.zeros(size - n - marked // 2 + 20)]
        tail = scipy_stats.hypergeom(size, marked, n).sf(marked // 2 + 19)
        assert fourier(scores, n)[0] == pytest.approx(tail, rel=1e-9)


def test_fourier_far_tail_keeps_its_digits():
    """Perfect separation is one partition in C(300, 150); its p is known exactly and far below 1e-12."""
    scores = np.random.default_rng(8).normal(size=300)
    scores[:150] += 50
    assert fourier(scores, 150)[0] == pytest.approx(1 / comb(300, 150), rel=1e-9)
    assert fourier(scores, 150)[1] == 1.0


def test_fourier_does_not_overflow_at_2000_pictures():
    scores = np.random.default_rng(9).normal(size=2000)
    greater, less, error = fourier(scores, 1000)
    z = scores[:1000].sum() / (scores.std(ddof=1) * np.sqrt(500))
    assert greater == pytest.approx(
        scipy_stats.norm.sf(z - scores.mean() * 1000 / (scores.std(ddof=1) * np.sqrt(500))), abs=2e-3
    )
    assert greater + less == pytest.approx(1, abs=1e-9)
    assert error < 1e-9


def test_shifting_and_scaling_scores_changes_no_p():
    scores = np.random.default_rng(10).normal(size=60)
    np.testing.assert_allclose(fourier(scores * 1e-6 + 1e-4, 25)[:2], fourier(scores, 25)[:2], rtol=1e-7)


def test_sampled_adds_the_observed_partition():
    scores = np.array([9.0, 8, 7, 6, 5, *range(-40, 0)])
    assert sampled(scores, 5, n_samples=999)[0] == 1 / 1000
    balanced = np.random.default_rng(11).normal(size=12)
    np.testing.assert_allclose(sampled(balanced, 6, n_samples=40_000), exact(balanced, 6), atol=0.01)


def test_permutation_p_chooses_its_method():
    rng = np.random.default_rng(12)
    assert permutation_p(rng.normal(size=40), 20)[2] == "exact"
    assert permutation_p(rng.normal(size=80), 40)[2] == "fourier"
    repeated = rng.choice(rng.normal(size=3), 90)  # few values off a lattice: the inversion cannot converge
    assert permutation_p(repeated, 45, n_samples=500)[2] == "sampled"
    with pytest.raises(ValueError, match=r"at most 40 pictures in X and Y together.*got 40 and 40"):
        permutation_p(rng.normal(size=80), 40, method="exact")


def test_weights_never_compare_a_picture_with_its_copy():
    rng = np.random.default_rng(13)
    weights = multinomial_weights(rng, 3, 500)
    assert (weights.sum(1) == 3).all()
    assert weights.max() == 2  # three times one picture was drawn again
    gram = np.corrcoef(rng.normal(size=(3, 9)))
    copies = [np.repeat(np.arange(3), w.astype(int)) for w in weights[:20]]
    by_hand = [np.mean([gram[i, j] for i, j in permutations(c, 2) if i != j]) for c in copies]
    np.testing.assert_allclose(weighted_intra(weights[:20], gram), by_hand)


def test_halves_do_not_overlap():
    first, second = half_weights(np.random.default_rng(14), 7, 50)
    assert (first.sum(1) == 3).all()
    assert (second.sum(1) == 3).all()
    assert (first * second == 0).all()


def test_bootstrap_interval_holds_the_estimate():
    low, high = bootstrap_interval(1.0, np.linspace(0.2, 0.9, 100))
    assert low > 0.2
    assert high == 1.0
    assert np.isnan(bootstrap_interval(0.5, [np.nan, np.nan, 0.4])).all()
