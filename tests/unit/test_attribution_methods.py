"""Perturbation methods against closed forms, brute force and reference implementations."""

import itertools

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from torch import nn
from torch.nn.functional import interpolate

from biastransfer.attribution import meaningful_perturbation as mp
from biastransfer.attribution.lime import fit_ridge, superpixels
from biastransfer.attribution.methods import (
    METHODS,
    gaussian_map,
    heat_map,
    lime,
    meaningful_perturbation,
    random_map,
    rise,
    sliding_patch,
)
from biastransfer.attribution.perturbation import remover
from biastransfer.attribution.removal import FILLS, IMAGENET, INPAINTERS, PIXELS, make_fill
from biastransfer.attribution.rise import RiseMasks
from biastransfer.attribution.scores import class_score

SMALL = {
    "sliding_patch": {"patch": 5, "stride": 3},
    "lime": {"n_segments": 6, "n_samples": 41, "sigma": 1.0},
    "meaningful_perturbation": {"mask_size": 7, "steps": 6},
    "rise": {"n_samples": 41, "cells": 4},
}


@pytest.fixture
def picture():
    return torch.rand(3, 16, 20, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def weights():
    return torch.randn(3, 16, 20, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def linear(weights):
    return lambda images: (images * weights).sum((1, 2, 3))


def network():
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 3, 2), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten()]
    return nn.Sequential(*layers, nn.Dropout(0.5), nn.Linear(32, 3)).eval()


def test_a_sliding_patch_over_a_linear_model_gives_the_patches_own_sums(picture, weights, linear):
    parts = (picture * weights).double()
    found = sliding_patch(linear, picture, patch=4, stride=4, fill="black")
    sums = parts.reshape(3, 4, 4, 5, 4).sum((0, 2, 4))
    expected = interpolate(sums[None, None], (16, 20), mode="bilinear")[0, 0]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    one = sliding_patch(linear, picture, patch=1, stride=1, fill="black")
    np.testing.assert_allclose(one, parts.sum(0), atol=1e-4)


def test_the_last_patch_ends_at_the_edge(picture, weights, linear):
    """3 of stride 5 from 0, 5, 10 and then 13 of 16 rows: every patch whole, the edge covered."""
    found = sliding_patch(linear, picture, patch=3, stride=5, fill="black", aggregate="mean")
    parts = (picture * weights).sum(0)
    np.testing.assert_allclose(found[15, 19], parts[13:16, 17:20].sum(), atol=1e-4)
    # row 12 lies under the patch from 10 only, row 13 not under it
    np.testing.assert_allclose(found[12, 0], parts[10:13, 0:3].sum(), atol=1e-4)
    assert found[3, 0] == 0  # between patches: covered by none


def test_the_fill_stands_where_the_patch_was(picture, weights, linear):
    found = sliding_patch(linear, picture, patch=16, stride=4, fill="mean")
    colour = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
    drop = ((picture - colour) * weights)[:, :, 0:16].sum()
    np.testing.assert_allclose(found[:, 0], drop, rtol=1e-4)
    normalised = IMAGENET.values(picture)
    in_space = sliding_patch(linear, normalised, patch=16, stride=4, fill="mean", space=IMAGENET)
    zero = sliding_patch(linear, normalised, patch=16, stride=4, fill="zero", space=IMAGENET)
    np.testing.assert_allclose(in_space, zero, atol=1e-4)


@pytest.mark.parametrize("fill", sorted(set(FILLS) - set(INPAINTERS)))
@pytest.mark.parametrize("space", [PIXELS, IMAGENET])
def test_asking_a_fill_once_gives_what_it_gives_every_time(picture, fill, space):
    values = space.values(picture)
    masks = torch.rand(4, 1, 16, 20, generator=torch.Generator().manual_seed(2)) < 0.3
    fast = remover(values, fill, space=space, seed=5, settings=None)(masks)
    assert torch.equal(fast, make_fill(fill, space=space, seed=5)(values[None], masks))


def test_lime_recovers_a_model_that_is_linear_in_superpixels(picture):
    segments = np.arange(16 * 20).reshape(16, 20) // 40  # eight of two rows each
    truth = np.array([3.0, -1.0, 0.0, 2.0, 0.5, -0.5, 1.0, 4.0])
    sums = torch.from_numpy(np.stack([segments == k for k in range(8)])).float()

    def score(images):  # a superpixel counts by the share of its pixels that are as they were
        same = (images == picture).all(1).float().flatten(1) @ sums.flatten(1).T / 40
        return same @ torch.from_numpy(truth).float()

    found = lime(score, picture, segments=segments, ridge=1e-6, n_samples=200)
    np.testing.assert_allclose(found, truth[segments], atol=1e-4)


def test_ridge_is_scikit_learns():
    rng = np.random.default_rng(0)
    on, y, w = rng.integers(0, 2, (60, 9)).astype(bool), rng.normal(size=60), rng.random(60)
    expected = Ridge(alpha=1.0).fit(on.astype(float), y, sample_weight=w).coef_
    np.testing.assert_allclose(fit_ridge(on, y, w, 1.0), expected, rtol=1e-9)


def test_lime_is_the_reference_recipe_by_hand(picture, linear):
    segments = np.arange(16 * 20).reshape(16, 20) // 80
    on = np.random.default_rng(3).integers(0, 2, (30, 4)).astype(bool)
    on[0] = True
    values = [float(linear((picture * torch.from_numpy(row[segments]))[None])) for row in on]
    norm = np.linalg.norm(on.astype(float), axis=1)
    cosine = np.divide(on.sum(1), norm * 2, out=np.zeros(30), where=norm > 0)  # |1| = √4
    kernel = np.sqrt(np.exp(-((1 - cosine) ** 2) / 0.25**2))
    expected = Ridge(alpha=1.0).fit(on.astype(float), values, sample_weight=kernel).coef_
    found = lime(linear, picture, segments=segments, n_samples=30, seed=3, fill="black")
    np.testing.assert_allclose(found, expected[segments], rtol=1e-3, atol=1e-3)


def test_superpixels_are_slics_and_can_be_seeded():
    from skimage.segmentation import slic

    picture = torch.rand(3, 48, 40, generator=torch.Generator().manual_seed(0))
    expected = slic(picture.permute(1, 2, 0).double().numpy(), 12, compactness=30, sigma=3, start_label=0)
    np.testing.assert_array_equal(superpixels(picture, 12), expected)
    seeded = [superpixels(picture, 12, seed=seed) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(seeded[0], seeded[1])
    assert (seeded[0] != seeded[2]).any()
    assert all(set(np.unique(found)) == set(range(found.max() + 1)) for found in seeded)
    # normalised values are scaled into the range that colours have, not cut off
    wide = superpixels((picture - 0.5) * 4, 12)
    assert wide.shape == (48, 40)
    assert 5 < wide.max() < 20


def test_rise_masks_are_shifted_enlarged_grids():
    masks = RiseMasks((16, 20), 5, 4, 0.5, 0)
    for number in range(5):
        grid = masks.grids[number].float()[None, None]
        large = interpolate(grid, (5 * 4, 5 * 5), mode="bilinear", align_corners=False)[0, 0]
        top, left = masks.shifts[number]
        expected = large[top : top + 16, left : left + 20]
        torch.testing.assert_close(masks[torch.tensor([number])][0], expected)
    assert masks.shifts[:, 0].max() < 4
    assert masks.shifts[:, 1].max() < 5


@pytest.mark.parametrize("binary", [False, True])
def test_rise_is_its_formula(picture, linear, binary):
    found = rise(linear, picture, n_samples=37, cells=4, probability=0.4, fill="black", binary=binary, seed=2)
    masks = RiseMasks((16, 20), 37, 4, 0.4, 2)
    total = np.zeros((16, 20))
    for number in range(37):
        mask = masks[torch.tensor([number])][0]
        shown = (mask >= 0.5).float() if binary else mask
        total += float(linear((picture * shown)[None])) * mask.double().numpy()
    np.testing.assert_allclose(found, total / (37 * 0.4), rtol=1e-4, atol=1e-3)


def test_rise_ranks_the_square_that_the_model_looks_at():
    score = lambda images: images[:, :, 4:12, 16:24].mean((1, 2, 3))  # noqa: E731
    found = rise(score, torch.ones(3, 32, 32), n_samples=800, fill="black")
    inside = np.zeros((32, 32), bool)
    inside[4:12, 16:24] = True
    row, column = np.unravel_index(found.argmax(), found.shape)
    assert inside[row, column]
    assert found[inside].min() > np.quantile(found[~inside], 0.75)


@pytest.mark.parametrize(
    "variant", [{"binary": False}, {"binary": True, "fill_kept": True}, {"binary": True}]
)
def test_a_learnt_mask_hides_the_square_that_the_model_looks_at(variant):
    score = lambda images: images[:, :, 8:16, 16:24].mean((1, 2, 3))  # noqa: E731
    found = meaningful_perturbation(
        score, torch.ones(3, 32, 32), mask_size=8, tv=1e-5, fill="black", jitter=0, **variant
    )
    inside = np.zeros((32, 32), bool)
    inside[8:16, 16:24] = True
    assert found[~inside].mean() < 0.05
    if variant != {"binary": True}:
        assert found[inside].mean() > 0.9
    else:  # only what was hidden by chance at first can stay hidden
        first = np.kron(np.random.default_rng(0).random((8, 8)), np.ones((4, 4)))
        np.testing.assert_array_equal(found[inside] > 0.5, first[inside] <= 0.5)


def test_one_step_of_the_mask_by_hand(picture):
    """Adam's first step is the learning rate times the gradient's sign, cut to [0, 1]."""
    score = lambda images: 50 * images.sum((1, 2, 3))  # noqa: E731
    first = np.random.default_rng(5).random((1, 1, 4, 4))[0, 0]
    found = meaningful_perturbation(score, picture, mask_size=4, steps=1, jitter=0, fill="black", seed=5)
    # every pixel is positive, so hiding any of it lowers the score: all cells go down
    expected = np.clip(first - 0.1, 0, 1)
    np.testing.assert_allclose(found, 1 - np.kron(expected, np.ones((4, 5))), atol=1e-5)


def test_the_penalty_sums_over_cells():
    mask = torch.tensor([[[[1.0, 0.5], [0.0, 0.5]]]])
    # |1 − m|: 0 + .5 + 1 + .5 = 2; down: 1³ + 0; right: .5³ + .5³
    assert float(mp._penalty(mask, 1e-1, 1e-2, 3)) == pytest.approx(0.2 + 1e-2 * 1.25)


def test_a_binary_mask_is_binary_forward_and_soft_backward(picture):
    seen = mp._shown_binary(picture[None], make_fill("black"), (16, 20), False)
    mask = torch.tensor([[[[0.9, 0.2], [0.7, 0.4]]]], requires_grad=True)  # threshold .55
    shown = seen(mask, 0, 0)
    torch.testing.assert_close(shown[0, :, :, :10], picture[:, :, :10])
    assert (shown[0, :, :, 10:] == 0).all()
    [slope] = torch.autograd.grad(shown.sum(), mask)
    hidden = picture[:, :8, 10:].sum()
    torch.testing.assert_close(slope[0, 0], torch.tensor([[0, hidden], [0, picture[:, 8:, 10:].sum()]]))
    alike = seen(torch.ones(1, 1, 2, 2), 0, 0)  # nothing chosen, nothing hidden
    torch.testing.assert_close(alike[0], picture)


@pytest.mark.parametrize("name", SMALL)
def test_batch_size_and_rest_change_no_value(picture, name):
    """41 samples are no multiple of 4, 7 or 64."""
    score = class_score(network(), 1)
    maps = [heat_map(name, score, picture, batch_size=size, **SMALL[name]) for size in (1, 4, 7, 64)]
    for found in maps[1:]:
        np.testing.assert_allclose(found, maps[0], rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("name", ["lime", "meaningful_perturbation", "rise"])
def test_seeds_repeat_and_differ_and_leave_the_global_generators_alone(picture, name):
    score = class_score(network(), 1)
    torch.manual_seed(7)
    np.random.seed(7)  # noqa: NPY002
    state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first, second, other = (heat_map(name, score, picture, seed=s, **SMALL[name]) for s in (0, 0, 1))
    np.testing.assert_array_equal(first, second)
    assert np.abs(first - other).max() > 1e-6
    assert torch.equal(state[0], torch.get_rng_state())
    assert (state[1] == np.random.get_state()[1]).all()  # noqa: NPY002


@pytest.mark.parametrize("name", ["sliding_patch", "lime", "occlusion"])
def test_a_model_that_ignores_the_picture_gets_an_empty_map(picture, name):
    found = heat_map(name, lambda images: torch.full((len(images),), 0.3), picture, **SMALL.get(name, {}))
    np.testing.assert_allclose(found, 0, atol=1e-7)


def test_a_model_that_ignores_the_picture_lets_the_learnt_mask_fade(picture):
    ignorant = lambda images: torch.full((len(images),), 0.3)  # noqa: E731
    assert meaningful_perturbation(ignorant, picture, mask_size=4, steps=200).max() == 0
    # RISE shows how often each pixel was drawn, times the constant
    found = rise(ignorant, picture, n_samples=30, cells=4)
    drawn = RiseMasks((16, 20), 30, 4, 0.5, 0).weighted_sum(np.ones(30)) / (30 * 0.5)
    np.testing.assert_allclose(found, 0.3 * drawn, rtol=1e-5)


@pytest.mark.parametrize("name", SMALL)
def test_no_graph_is_kept_and_the_network_is_left_as_it_was(picture, name):
    net = network().train()
    before = {key: value.clone() for key, value in net.state_dict().items()}
    seen = []
    score = class_score(net, 1)

    def spy(images):
        values = score(images)
        seen.append(values.requires_grad)
        return values

    heat_map(name, spy, picture.clone().requires_grad_(), **SMALL[name])
    assert any(seen) == (name == "meaningful_perturbation")
    assert all(part.training for part in net.modules())
    assert all(p.requires_grad and p.grad is None for p in net.parameters())
    assert all(torch.equal(before[key], value) for key, value in net.state_dict().items())


def test_memory_stays_flat_over_thousands_of_versions(picture):
    """Only one batch of altered pictures is ever alive."""
    alive, most = [], 0

    def score(images):
        nonlocal most
        alive.append(images.untyped_storage()._weak_ref())
        expired = torch.UntypedStorage._expired
        alive[:] = [reference for reference in alive if not expired(reference)]
        most = max(most, len(alive))
        return images.sum((1, 2, 3))

    sliding_patch(score, picture, patch=1, stride=1)
    assert most <= 2


@pytest.mark.parametrize("name", SMALL)
def test_any_fill_gives_the_generative_variant(picture, name):
    calls = []

    def continued(images, masks):  # a toy in-painter: the mean of what is left
        calls.append(masks.float().mean().item())
        left = (~masks).float()
        return (images * left).sum((2, 3), keepdim=True) / left.sum((2, 3), keepdim=True).clamp(
            min=1
        ) + torch.zeros_like(images)

    score = class_score(network(), 1)
    found = heat_map(name, score, picture, fill=continued, **SMALL[name])
    assert calls
    assert found.shape == (16, 20)
    assert np.isfinite(found).all()
    assert np.abs(found - heat_map(name, score, picture, fill="black", **SMALL[name])).max() > 1e-6


@pytest.mark.parametrize("name", [*SMALL, "occlusion", "gradient", "gradcam", "random_map", "gaussian_map"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x.permute(1, 2, 0), "Put the channels first"),
        (lambda x: x[None], r"one picture \(3, H, W\)"),
        (lambda x: (x * 255).to(torch.uint8), "Divide 8-bit pixels by 255"),
        (lambda x: x / 0, "must be finite"),
    ],
)
def test_wrong_pictures_raise(picture, name, change, message):
    with pytest.raises(ValueError, match=message):
        heat_map(name, class_score(network(), 0), change(picture), **SMALL.get(name, {}))


@pytest.mark.parametrize("name", SMALL)
def test_wrong_scores_raise(picture, name):
    def broken(images):
        return images.sum((1, 2, 3)) * float("nan")

    with pytest.raises(ValueError, match="NaN or infinite"):
        heat_map(name, broken, picture, **SMALL[name])
    with pytest.raises(ValueError, match="one number a picture"):
        heat_map(name, network(), picture, **SMALL[name])


def test_settings_are_checked(picture, linear):
    wrong = [
        (sliding_patch, {"patch": 17}, "must fit into the picture; got 17 and a side of 16"),
        (sliding_patch, {"patch": 0}, "patch must be an integer of at least 1"),
        (sliding_patch, {"patch": 4, "stride": 1.5}, "stride must be an integer"),
        (sliding_patch, {"patch": 4, "aggregate": "max"}, "unknown aggregate 'max'; known: resize, mean"),
        (sliding_patch, {"patch": 4, "batch_size": 0}, "batch_size must be an integer of at least 1"),
        (sliding_patch, {"patch": 4, "fill": "sepia"}, "unknown fill 'sepia'"),
        (lime, {"n_samples": 1}, "n_samples ≥ 2"),
        (lime, {"ridge": 0}, "ridge > 0"),
        (lime, {"n_segments": 1}, "n_segments must be at least 2"),
        (lime, {"segments": np.zeros((16, 20), int)}, "at least two superpixels; got one"),
        (lime, {"segments": np.zeros((4, 4), int)}, r"must be \(H, W\) = \(16, 20\) integers"),
        (rise, {"probability": 1.0}, "0 < probability < 1"),
        (rise, {"cells": 17}, "1 ≤ cells ≤ 16"),
        (meaningful_perturbation, {"mask_size": 17}, "mask_size must lie between 1 and the picture's 16"),
        (meaningful_perturbation, {"mask_size": 4, "steps": 0}, "steps must be at least 1"),
        (meaningful_perturbation, {"mask_size": 4, "jitter": 16}, "jitter must lie between 0"),
    ]
    for function, settings, message in wrong:
        with pytest.raises(ValueError, match=message):
            function(linear, picture, **settings)
    with pytest.raises(ValueError, match="unknown method 'shap'; known: sliding_patch, lime"):
        heat_map("shap", linear, picture)
    with pytest.raises(ValueError, match="rise has no setting patch; known: n_samples"):
        heat_map("rise", linear, picture, patch=3)


def test_controls(picture):
    found = random_map(picture, seed=1)
    np.testing.assert_array_equal(found, random_map(picture, seed=1))
    assert np.corrcoef(found.ravel(), random_map(picture, seed=2).ravel())[0, 1] < 0.2
    centred = gaussian_map(picture)
    np.testing.assert_allclose(centred, centred[::-1, ::-1])
    # σ is 5 columns; column 0 lies 9.5 off the middle and column 9 half a column
    assert centred[8, 0] / centred[8, 9] == pytest.approx(
        np.exp(-0.5 * (9.5 / 5) ** 2 + 0.5 * 0.01), rel=1e-5
    )
    with pytest.raises(ValueError, match="sigma must be above 0"):
        gaussian_map(picture, sigma=0)


def test_named_settings_are_the_defaults():
    import inspect

    common = {"seed", "batch_size", "space", "fill_settings", "binary", "segments", "layer", "grid"}
    for name, (function, _kind, settings) in METHODS.items():
        keywords = {
            key: parameter.default
            for key, parameter in inspect.signature(function).parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY and key not in common
        }
        assert keywords == settings, name


def test_the_papers_sliding_patch_has_50_by_50_positions():
    calls = itertools.count()

    def score(images):
        next(calls)
        return images[:, 0, 0, 0]

    sliding_patch(score, torch.zeros(3, 224, 224), batch_size=50)
    assert next(calls) == 51  # 2,500 patches and the picture itself


def test_patch_and_stride_keep_their_share_of_other_pictures(picture, linear):
    """77 and 3 of 224 are 5.5 and .2 of 16: a patch of 6 (to even) at every pixel."""
    expected = sliding_patch(linear, picture, patch=6, stride=1)
    np.testing.assert_array_equal(sliding_patch(linear, picture), expected)
