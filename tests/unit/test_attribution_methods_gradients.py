"""Gradient methods and Grad-CAM against closed forms, Captum and hand computation."""

import captum.attr
import numpy as np
import pytest
import timm
import torch
import torchvision
from torch import nn
from torch.nn.functional import interpolate

from biastransfer.attribution.methods import (
    gradcam,
    gradient,
    heat_map,
    integrated_gradients,
    occlusion,
    smoothgrad,
)
from biastransfer.attribution.scores import association_score, class_score
from biastransfer.backbones import Backbone, Transform

VisionTransformer = timm.models.vision_transformer.VisionTransformer
GRADIENTS = ["gradient", "integrated_gradients", "smoothgrad", "occlusion", "gradcam"]
FAST = {"occlusion": {"patch": 4, "stride": 4}}


@pytest.fixture
def picture():
    return torch.rand(3, 16, 20, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def weights():
    return torch.randn(3, 16, 20, generator=torch.Generator().manual_seed(1))


def network(classes=3):
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 3, 2), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten()]
    return nn.Sequential(*layers, nn.Dropout(0.5), nn.Linear(32, classes)).eval()


def test_a_linear_models_gradient_is_its_weights(picture, weights):
    linear = lambda images: (images * weights).sum((1, 2, 3))  # noqa: E731
    np.testing.assert_allclose(gradient(linear, picture), weights.sum(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gradient(linear, picture, reduce="abs_max"), weights.abs().amax(0), rtol=1e-6)
    np.testing.assert_allclose(gradient(linear, picture, reduce="abs_sum"), weights.abs().sum(0), rtol=1e-6)
    np.testing.assert_allclose(smoothgrad(linear, picture), weights.sum(0), rtol=1e-4, atol=1e-5)


def test_integrated_gradients_of_a_linear_model_are_weights_times_difference(picture, weights):
    linear = lambda images: (images * weights).sum((1, 2, 3))  # noqa: E731
    black = integrated_gradients(linear, picture, n_steps=5)
    np.testing.assert_allclose(black, (weights * picture).sum(0), rtol=1e-4, atol=1e-5)
    colour = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
    mean = integrated_gradients(linear, picture, n_steps=5, fill="mean")
    np.testing.assert_allclose(mean, (weights * (picture - colour)).sum(0), rtol=1e-4, atol=1e-5)


def test_integrated_gradients_add_up_to_the_difference_of_scores(picture):
    score = class_score(network(), 1)
    found = integrated_gradients(score, picture, n_steps=200)
    difference = score(picture[None]) - score(torch.zeros(1, 3, 16, 20))
    assert found.sum() == pytest.approx(difference.item(), rel=1e-2)


def test_smoothgrad_averages_over_noise_of_its_seed(picture):
    """Of Σ x³ the gradient is 3 (x + noise)², so the noise can be seen."""
    cubes = lambda images: images.pow(3).sum((1, 2, 3))  # noqa: E731
    found = smoothgrad(cubes, picture, n_samples=6, noise=0.2, seed=3)
    deviation = 0.2 * float(picture.max() - picture.min())
    noise = torch.from_numpy(np.random.default_rng(3).standard_normal((6, 3, 16, 20), np.float32))
    expected = (3 * (picture + deviation * noise) ** 2).mean(0).sum(0)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert np.abs(found - smoothgrad(cubes, picture, n_samples=6, noise=0.2, seed=4)).max() > 0.01


def test_occlusion_is_captums(picture):
    net = network()
    found = occlusion(net, picture, 1, patch=4, stride=4, fill="black")
    wanted = captum.attr.Occlusion(net).attribute(
        picture[None], sliding_window_shapes=(3, 4, 4), strides=(3, 4, 4), target=1, baselines=0.0
    )
    np.testing.assert_allclose(found, wanted[0, 0].detach(), atol=1e-5)
    overlapping = occlusion(net, picture, 1, patch=4, stride=2, fill="black")
    both = captum.attr.Occlusion(net).attribute(
        picture[None], sliding_window_shapes=(3, 4, 4), strides=(3, 2, 2), target=1, baselines=0.0
    )
    np.testing.assert_allclose(overlapping, both[0, 0].detach(), atol=1e-5)


@pytest.mark.parametrize("name", ["integrated_gradients", "smoothgrad", "occlusion"])
def test_batch_size_changes_no_value(picture, name):
    score = class_score(network(), 1)
    maps = [heat_map(name, score, picture, batch_size=size, **FAST.get(name, {})) for size in (1, 4, 7, 64)]
    for found in maps[1:]:
        np.testing.assert_allclose(found, maps[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_model_that_ignores_the_picture_gets_an_empty_map(picture, name):
    net = network()
    nn.init.zeros_(net[-1].weight)
    found = heat_map(name, class_score(net, 0), picture, **FAST.get(name, {}))
    np.testing.assert_allclose(found, 0, atol=1e-7)
    constant = lambda images: torch.full((len(images),), 0.3)  # noqa: E731
    if name != "gradcam":
        found = heat_map(name, constant, picture, **FAST.get(name, {}))
        np.testing.assert_allclose(found, 0, atol=1e-7)


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("fails", [False, True])
def test_the_network_is_left_as_it_was(picture, name, fails):
    net = network().train()
    net[1].eval()
    net[0].weight.requires_grad_(False)
    if fails:
        net[-1].register_forward_hook(lambda *_: 1 / 0)
    before = {key: value.clone() for key, value in net.state_dict().items()}
    hooks = sum(len(part._forward_hooks) for part in net.modules())
    function = {"gradient": gradient, "gradcam": gradcam, "smoothgrad": smoothgrad}.get(name)
    function = function or {"integrated_gradients": integrated_gradients, "occlusion": occlusion}[name]
    if fails:
        with pytest.raises(ZeroDivisionError):
            function(net, picture, 1, **FAST.get(name, {}))
    else:
        with torch.inference_mode():  # whatever surrounds the call
            function(net, picture, 1, **FAST.get(name, {}))
    assert [part.training for part in net] == [True, False, True, True, True, True, True]
    assert [p.requires_grad for p in net.parameters()] == [False] + [True] * 5
    assert all(p.grad is None for p in net.parameters())
    assert all(torch.equal(before[key], value) for key, value in net.state_dict().items())
    assert sum(len(part._forward_hooks) for part in net.modules()) == hooks


def test_a_backbone_is_explained_on_pixels(picture):
    transform = Transform(16, 1.0, "bilinear", (0.5,) * 3, (0.25,) * 3)
    backbone = Backbone("toy", network(), transform, 6, ("conv",), "", (), {"conv": "2"}, "6")
    np.testing.assert_allclose(
        gradient(backbone, picture, 1), 4 * gradient(backbone.module, (picture - 0.5) / 0.25, 1), atol=1e-5
    )
    np.testing.assert_allclose(
        gradcam(backbone, picture, 1, layer="conv"),
        gradcam(backbone.module, (picture - 0.5) / 0.25, 1, layer="2"),
        atol=1e-5,
    )


def test_an_association_can_be_explained(picture):
    module = nn.Sequential(nn.Conv2d(3, 4, 4, 4), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    transform = Transform(16, 1.0, "bilinear", (0.5,) * 3, (0.25,) * 3)
    backbone = Backbone("toy", module, transform, 4, ("embedding",), "", (), {"embedding": "0"}, "2")
    rng = np.random.default_rng(0)
    score = association_score(backbone, rng.normal(size=(3, 4)), rng.normal(size=(3, 4)))
    picture = picture[:, :, :16]
    x = picture.clone().requires_grad_()
    [slope] = torch.autograd.grad(score(x[None])[0], x)
    np.testing.assert_allclose(heat_map("gradient", score, picture), slope.sum(0), rtol=1e-5, atol=1e-7)
    assert heat_map("gradcam", score, picture, relu=False).std() > 0


def test_gradcam_by_hand():
    """Two channels of 2 × 2 cells, pooled and weighed: the map is the weighed channels over 4."""
    net = nn.Sequential(
        nn.Conv2d(3, 2, 2, 2, bias=False), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 1)
    )
    with torch.no_grad():
        net[0].weight.zero_()
        net[0].weight[0, 0], net[0].weight[1, 1] = 0.25, 0.25  # means of red and of green
        net[3].weight.copy_(torch.tensor([[2.0, -1.0]]))
    red, green = torch.tensor([[1.0, 0.2], [0.4, 0.0]]), torch.tensor([[0.0, 0.0], [1.0, 1.0]])
    picture = torch.stack([red, green, torch.zeros(2, 2)]).repeat_interleave(2, 1).repeat_interleave(2, 2)
    signed = torch.tensor([[2.0, 0.4], [0.8 - 1, -1.0]]) / 4
    for relu in (False, True):
        grid = signed.relu() if relu else signed
        expected = interpolate(grid[None, None], (4, 4), mode="bilinear")[0, 0]
        np.testing.assert_allclose(gradcam(net, picture, 0, relu=relu), expected, atol=1e-6)


def transformer(**settings):
    torch.manual_seed(0)
    shape = {"img_size": (24, 40), "patch_size": 8, "embed_dim": 16, "depth": 2, "num_heads": 4}
    return VisionTransformer(**{**shape, "num_classes": 3, **settings}).eval()


def gradcam_of_tokens(net, picture, layer, grid, target=1):
    """Return Grad-CAM of one layer of tokens, computed apart: what stands first is dropped."""
    kept = []
    handle = dict(net.named_modules())[layer].register_forward_hook(lambda _m, _i, out: kept.append(out))
    value = net(picture[None])[0, target]
    handle.remove()
    [slope] = torch.autograd.grad(value, kept)
    rows, columns = grid
    tokens, slope = kept[0][0, -rows * columns :], slope[0, -rows * columns :]
    found = (tokens * slope.mean(0)).sum(1).reshape(1, 1, rows, columns).relu()
    return interpolate(found, picture.shape[1:], mode="bilinear")[0, 0].detach()


@pytest.mark.parametrize(
    ("settings", "layer"),
    [
        ({}, "blocks.1.norm1"),  # class token: what follows the last attention does not reach it
        ({"reg_tokens": 4}, "blocks.1.norm1"),
        ({"class_token": False, "global_pool": "avg", "fc_norm": False}, "norm"),
    ],
)
def test_gradcam_finds_a_transformers_layer_and_grid(settings, layer):
    net = transformer(**settings)
    picture = torch.rand(3, 24, 40, generator=torch.Generator().manual_seed(0))
    expected = gradcam_of_tokens(net, picture, layer, (3, 5))
    assert expected.max() > 0
    np.testing.assert_allclose(gradcam(net, picture, 1), expected, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(gradcam(net, picture, 1, layer=layer), expected, rtol=1e-4, atol=1e-9)


def test_gradcam_finds_the_grid_of_other_transformers():
    torch.manual_seed(0)
    net = torchvision.models.VisionTransformer(32, 8, 2, 4, 16, 32, num_classes=3).eval()
    nn.init.normal_(net.heads[0].weight)
    picture = torch.rand(3, 32, 32)
    expected = gradcam_of_tokens(net, picture, "encoder.layers.encoder_layer_1.ln_1", (4, 4))
    np.testing.assert_allclose(gradcam(net, picture, 1), expected, rtol=1e-4, atol=1e-9)


def test_gradcam_reads_maps_with_channels_last():
    torch.manual_seed(0)
    shape = {"img_size": 64, "window_size": 2, "embed_dim": 8, "depths": (1, 1, 1, 1), "num_heads": (1,) * 4}
    net = timm.create_model("swin_tiny_patch4_window7_224", pretrained=False, num_classes=3, **shape).eval()
    picture, kept = torch.rand(3, 64, 64), []
    net.norm.register_forward_hook(lambda _m, _i, out: kept.append(out))
    [slope] = torch.autograd.grad(net(picture[None])[0, 1], kept)
    found = (kept[0][0] * slope[0].mean((0, 1))).sum(-1)[None, None].relu()
    expected = interpolate(found, (64, 64), mode="bilinear")[0, 0].detach()
    np.testing.assert_allclose(gradcam(net, picture, 1), expected, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("name", ["resnet18", "squeezenet1_1", "mobilenet_v3_small"])
def test_gradcam_takes_the_last_maps_of_convolutional_networks(name):
    torch.manual_seed(0)
    net = getattr(torchvision.models, name)(num_classes=3).eval()
    picture = torch.rand(3, 64, 96)
    layer = {"resnet18": "layer4", "squeezenet1_1": "classifier.2", "mobilenet_v3_small": "features"}[name]
    found = gradcam(net, picture, 1, relu=False)
    np.testing.assert_array_equal(found, gradcam(net, picture, 1, relu=False, layer=layer))
    assert found.std() > 0


def test_gradcam_says_what_is_wrong(picture):
    net = network()
    with pytest.raises(ValueError, match=r"unknown layer '7'; the network has 2, 3, 4, 5, 6"):
        gradcam(net, picture, 1, layer="7")
    transform = Transform(16, 1, "bilinear", (0,) * 3, (1,) * 3)
    backbone = Backbone("toy", net, transform, 6, (), "", (), {"conv": "2"})
    with pytest.raises(ValueError, match=r"unknown layer 'convv'; .* has conv\. Did you mean 'conv'"):
        gradcam(backbone, picture, 1, layer="convv")
    with pytest.raises(ValueError, match="layer '4' must give one tensor of 3 or 4 dimensions"):
        gradcam(net, picture, 1, layer="4")
    flat = nn.Sequential(nn.Flatten(), nn.Linear(960, 2))
    with pytest.raises(ValueError, match="needs a layer laid out like the picture; last outputs: none"):
        gradcam(flat, picture, 1)
    mixed = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.Flatten(2), nn.LayerNorm(14 * 18), nn.Flatten(), nn.Linear(1008, 2)
    )
    with pytest.raises(ValueError, match=r"laid out like the picture; last outputs: .* 2 \(1, 4, 252\)"):
        gradcam(mixed, picture, 1)  # not silently the convolution, which is far from the end
    assert gradcam(mixed, picture, 1, layer="0", relu=False).std() > 0
    with pytest.raises(ValueError, match="whose layers it can read"):
        gradcam(lambda images: images.sum((1, 2, 3)), picture)
    with pytest.raises(ValueError, match=r"must be 2 × 5 patches and 1 others; layer .* has 5 others"):
        gradcam(transformer(), torch.rand(3, 24, 40), 1, grid=(2, 5))
    with pytest.raises(ValueError, match="laid out like the picture"):
        gradcam(transformer(), torch.rand(3, 24, 40), 1, grid=(7, 7))


@pytest.mark.parametrize("name", GRADIENTS)
def test_wrong_classes_and_shapes_raise(picture, name):
    from biastransfer.attribution import methods

    function = getattr(methods, name)
    options = FAST.get(name, {})
    with pytest.raises(ValueError, match="class between 0 and 2, which the network has; got 3"):
        function(network(), picture, 3, **options)
    with pytest.raises(ValueError, match="one number a picture"):
        function(network(), picture, None, **options)
    with pytest.raises(ValueError, match="Put the channels first"):
        function(network(), picture.permute(1, 2, 0), 1, **options)


def test_maps_that_are_not_finite_raise(picture):
    """√0 is finite, its slope is not."""
    rooted = lambda images: (images * 0).sqrt().sum((1, 2, 3))  # noqa: E731
    with pytest.raises(ValueError, match="heat map must be finite; 320 of 320 values"):
        gradient(rooted, picture)
    with pytest.raises(ValueError, match="gradient must be finite"):
        heat_map("meaningful_perturbation", rooted, picture, mask_size=4)
    with pytest.raises(ValueError, match="scores must be finite; 1 of 1"):
        gradient(lambda images: images.log().sum((1, 2, 3)), torch.zeros(3, 4, 4))


def test_settings_are_checked(picture):
    net = network()
    with pytest.raises(ValueError, match="unknown reduce 'max'; known: sum, abs_sum, abs_max"):
        gradient(net, picture, 1, reduce="max")
    with pytest.raises(ValueError, match="n_steps must be at least 1"):
        integrated_gradients(net, picture, 1, n_steps=0)
    with pytest.raises(ValueError, match="n_samples ≥ 1 and noise ≥ 0"):
        smoothgrad(net, picture, 1, noise=-1)


def test_nothing_is_said_on_standard_error(picture, recwarn, capfd):
    for name in GRADIENTS:
        heat_map(name, class_score(network(), 1), picture, **FAST.get(name, {}))
    assert [str(warning.message) for warning in recwarn] == []
    assert capfd.readouterr() == ("", "")
