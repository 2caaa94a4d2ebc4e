"""Similarity of maps against formulas written out; sweeps; random weights put back exactly."""

import inspect

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from skimage.feature import hog
from torch import nn

from biastransfer.attribution.methods import METHODS
from biastransfer.attribution.robustness import SWEEPS, compare_all, similarity
from biastransfer.attribution.sanity import layers_with_weights, randomised, weights_matter

SIDE = 64


def heat(seed=0, side=SIDE):
    coarse = np.random.default_rng(seed).standard_normal((8, 8))
    return np.kron(coarse, np.ones((side // 8, side // 8))) + 0.1 * np.random.default_rng(seed + 1).random(
        (side, side)
    )


def ssim_by_windows(a, b, data_range, size=5):
    """SSIM as the mean over all whole windows of Wang et al. 2004, eq. 13, with unbiased variances."""
    c1, c2, values = (0.01 * data_range) ** 2, (0.03 * data_range) ** 2, []
    for y in range(a.shape[0] - size + 1):
        for x in range(a.shape[1] - size + 1):
            u, v = a[y : y + size, x : x + size].ravel(), b[y : y + size, x : x + size].ravel()
            covariance = np.cov(u, v)
            top = (2 * u.mean() * v.mean() + c1) * (2 * covariance[0, 1] + c2)
            bottom = (u.mean() ** 2 + v.mean() ** 2 + c1) * (covariance[0, 0] + covariance[1, 1] + c2)
            values.append(top / bottom)
    return np.mean(values)


@pytest.mark.parametrize("data_range", [1.0, 2.0])
def test_ssim_equals_the_formula_over_every_window(data_range):
    a, b = heat(0)[:20, :24], heat(5)[:20, :24]
    a, b = a / np.abs(a).max(), b / np.abs(b).max()
    one = similarity(a, b, data_range=data_range)
    assert one.ssim == pytest.approx(ssim_by_windows(a, b, data_range), abs=1e-10)
    assert np.isnan(one.hog)
    assert one.reason == "HOG needs 48 pixels a side"


def test_spearman_and_hog_equal_a_second_computation():
    a, b = heat(0), heat(5).round(1)  # ties
    one = similarity(a, b)
    assert one.spearman == pytest.approx(spearmanr(a.ravel(), b.ravel()).statistic, abs=1e-12)
    vectors = [hog(m / np.abs(m).max(), pixels_per_cell=(16, 16)) for m in (a, b)]
    assert one.hog == pytest.approx(np.corrcoef(*vectors)[0, 1], abs=1e-12)
    assert one.reason == ""


def test_a_map_is_like_itself_and_unlike_its_negative():
    one = similarity(heat(), heat())
    assert (one.ssim, one.hog, one.spearman) == pytest.approx((1, 1, 1))
    noise = np.random.default_rng(0).random((SIDE, SIDE))
    against = similarity(noise, 1 - noise)
    assert against.spearman == pytest.approx(-1)
    assert against.ssim < 0
    assert against.hog == pytest.approx(1)  # gradients have no sign: why Spearman stands beside it


def test_similarity_is_symmetric_and_blind_to_scale():
    a, b = heat(0), heat(3)
    one = similarity(a, b)
    for other in (similarity(b, a), similarity(1e-6 * a, 50 * b), similarity(torch.from_numpy(a), b)):
        assert (other.ssim, other.hog, other.spearman) == pytest.approx((one.ssim, one.hog, one.spearman))


def test_unscaled_tiny_maps_look_alike_to_ssim():
    """Why maps are scaled by default: near 0 SSIM's constants decide."""
    a, b = 1e-3 * heat(0), 1e-3 * heat(3)
    assert similarity(a, b, scale=False).ssim > 0.99
    assert similarity(a, b).ssim < 0.6


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (np.ones((SIDE, SIDE)), "the map is constant"),
        (np.zeros((SIDE, SIDE)), "the map is constant"),
        (np.full((SIDE, SIDE), np.nan), "the map has 4096 of 4096 values that are not finite"),
    ],
)
def test_constant_and_spoilt_maps_have_no_similarity(bad, reason):
    for pair in ((heat(), bad), (bad, heat()), (bad, bad)):
        one = similarity(*pair)
        assert np.isnan([one.ssim, one.hog, one.spearman]).all()
        assert one.reason == reason


def test_small_maps_say_what_they_are_too_small_for():
    one = similarity(np.arange(12.0).reshape(4, 3), np.arange(12.0).reshape(4, 3) ** 2)
    assert one.reason == "SSIM needs 5 pixels a side; HOG needs 48 pixels a side"
    assert one.spearman == 1


def test_compare_all_gives_each_pair_once_with_its_keys():
    maps = {5: heat(0), 29: heat(1), 53: heat(2)}
    table = compare_all(maps, picture="a", method="SP")
    assert table[["first", "second"]].to_numpy().tolist() == [[5, 29], [5, 53], [29, 53]]
    assert set(table["picture"]) == {"a"}
    assert table.loc[1, "ssim"] == similarity(maps[5], maps[53]).ssim
    assert list(compare_all(maps)) == ["first", "second", "ssim", "hog", "spearman", "reason"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compare_all({1: heat()}), "at least two maps to compare; got 1"),
        (lambda: compare_all({1: heat(), 2: heat(side=32)}), r"heatmap must be \(H, W\) = \(64, 64\)"),
        (lambda: similarity(heat(), heat()[None]), r"heatmap must be \(H, W\) = \(64, 64\)"),
        (lambda: similarity(heat(), heat(1), data_range=0), "data_range must be positive; got 0"),
    ],
)
def test_mistaken_comparisons_raise(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("name", SWEEPS)
def test_every_sweep_names_an_argument_of_its_method(name):
    sweep = SWEEPS[name]
    assert sweep.parameter in inspect.signature(METHODS[sweep.method].function).parameters
    assert len(set(sweep.values)) == len(sweep.values) >= 3


# sanity check


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 48 * 48, 2)
    ).eval()


def image():
    return torch.from_numpy(np.random.default_rng(0).random((1, 3, 48, 48), dtype=np.float32))


def gradient_map(module):
    x = image().requires_grad_()
    module(x)[0, 1].backward()
    return x.grad.abs().sum((0, 1))


def test_layers_are_listed_from_the_output_down():
    assert layers_with_weights(network()) == ["4", "1", "0"]


@pytest.mark.parametrize("mode", ["cascading", "independent"])
def test_a_map_of_the_weights_changes_and_one_of_the_picture_does_not(mode):
    module = network()
    of_weights = weights_matter(lambda: gradient_map(module).numpy(), module, mode=mode, picture="a")
    of_picture = weights_matter(lambda: image()[0].mean(0), module, mode=mode)
    assert of_weights[["depth", "layer"]].to_numpy().tolist() == [[1, "4"], [2, "1"], [3, "0"]]
    assert of_weights["spearman"].iloc[0] < 0.3  # the head alone decides a linear read-out
    np.testing.assert_allclose(of_picture[["ssim", "hog", "spearman"]], 1)
    assert set(of_weights["picture"]) == {"a"}


def test_cascading_keeps_the_layers_before_it_randomised_and_independent_does_not():
    module = network()
    seen = []

    def explain():
        seen.append([not torch.equal(now, before) for now, before in zip(module.parameters(), originals)])
        return gradient_map(module)

    originals = [one.detach().clone() for one in module.parameters()]
    weights_matter(explain, module, layers=["4", "0"])
    # two calls on the unchanged network, then the head (parameters 4 and 5), then the first layer too
    assert [[k for k, changed in enumerate(one) if changed] for one in seen] == [[], [], [4, 5], [0, 1, 4, 5]]
    seen.clear()
    weights_matter(explain, module, layers=["4", "0"], mode="independent")
    assert [[k for k, changed in enumerate(one) if changed] for one in seen][2:] == [[4, 5], [0, 1]]


def test_weights_are_back_bit_for_bit_also_after_an_error():
    module = network()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    changed = []

    def interrupted():
        with randomised(module, ["4", "1", "0"]):
            changed.append(not torch.equal(module[0].weight, before["0.weight"]))
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        interrupted()
    assert changed == [True]
    weights_matter(lambda: gradient_map(module), module)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert all(one.requires_grad for one in module.parameters())
    assert not module.training


def test_new_weights_depend_on_seed_and_layer_only_and_keep_mean_and_deviation():
    module = network()

    def drawn(layers, seed):
        with randomised(module, layers, seed=seed):
            return module[4].weight.detach().clone()

    assert torch.equal(drawn(["4"], 0), drawn(["1", "4"], 0))
    assert not torch.equal(drawn(["4"], 0), drawn(["4"], 1))
    weight = module[4].weight.detach()
    assert float(drawn(["4"], 0).std()) == pytest.approx(float(weight.std()), rel=0.02)


def test_a_group_of_layers_is_randomised_as_one():
    module = nn.Sequential(network(), nn.Identity())
    with randomised(module, ["0", "0.4"]):
        pass
    table = weights_matter(lambda: gradient_map(module), module, layers=["0"])
    assert len(table) == 1
    assert table["spearman"].iloc[0] < 0.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "both"}, "mode must be one of cascading, independent; got 'both'"),
        ({"layers": ["2"]}, "every layer must be a submodule with weights; got '2'. Known: 4, 1, 0"),
        ({"layers": ["nowhere"]}, "got 'nowhere'"),
    ],
)
def test_mistaken_checks_raise(settings, message):
    module = network()
    with pytest.raises(ValueError, match=message):
        weights_matter(lambda: gradient_map(module), module, **settings)


def test_a_method_that_is_not_seeded_is_refused():
    generator = np.random.default_rng(0)
    with pytest.raises(
        ValueError, match=r"explain must give the same map for the same network.*Fix its seed"
    ):
        weights_matter(lambda: generator.random((48, 48)), network())
