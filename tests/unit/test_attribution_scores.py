"""What is explained: class scores and association scores as functions of pixels."""

import numpy as np
import pytest
import torch
from torch import nn

from biastransfer.association import effect_size
from biastransfer.attribution.networks import PixelModule, eval_mode
from biastransfer.attribution.scores import (
    association_score,
    check_scores,
    class_score,
    pixel_module,
)
from biastransfer.backbones import Backbone, Transform, forward_layer, load_backbone


def toy(**transform):
    """Return a network with batch normalisation on 8 × 8 pictures, as a backbone."""
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(3, 6, 3),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(6, 3),
    )
    module[1].running_var.uniform_(0.5, 2)
    settings = {"mean": (0.4, 0.5, 0.6), "std": (0.2, 0.3, 0.4), **transform}
    made = Transform(8, 1.0, "bilinear", **settings)
    layers = {"conv": "2", "embedding": "4"}
    return Backbone("toy", module.eval(), made, 6, tuple(layers), "", ("car", "cat", "dog"), layers, "6")


@pytest.fixture
def images():
    return torch.rand(5, 3, 8, 8, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    "transform", [{}, {"scale": 255.0, "bgr": True, "mean": (104.0, 117.0, 124.0), "std": (1.0,) * 3}]
)
def test_pixel_module_sees_what_the_transform_makes(images, transform):
    backbone = toy(**transform)
    module = pixel_module(backbone)
    torch.testing.assert_close(module.normalise(images), backbone.transform.normalise(images))
    torch.testing.assert_close(
        module(images), backbone.module(backbone.transform.normalise(images)), rtol=1e-4, atol=1e-4
    )


def test_pixels_take_the_networks_precision(images):
    """Arrays of scikit-image are double: they must not stop a network that is not."""
    score = class_score(toy(), 0)
    torch.testing.assert_close(score(images.double()), score(images), rtol=1e-5, atol=1e-7)
    score.module.double()
    assert score(images).dtype == torch.float64


def test_class_scores_are_the_columns_of_softmax_sigmoid_and_logits(images):
    backbone = toy()
    logits = backbone.module(backbone.transform.normalise(images)).detach().double().numpy()
    powers = np.exp(logits)
    expected = {
        "probability": powers[:, 1] / powers.sum(1),
        "sigmoid": 1 / (1 + np.exp(-logits[:, 1])),
        "logit": logits[:, 1],
    }
    for output, values in expected.items():
        by_name, by_number = (
            class_score(backbone, "cat", output=output),
            class_score(backbone, 1, output=output),
        )
        np.testing.assert_allclose(by_name(images).detach(), values, rtol=1e-5)
        torch.testing.assert_close(by_name(images), by_number(images), rtol=0, atol=0)


def test_folding_changes_no_score_and_leaves_the_network_alone(images):
    backbone = toy()
    before = {key: value.clone() for key, value in backbone.module.state_dict().items()}
    folded = class_score(backbone, 0, fold=True)
    torch.testing.assert_close(folded(images), class_score(backbone, 0)(images), rtol=1e-5, atol=1e-6)
    assert not any(isinstance(part, nn.BatchNorm2d) for part in folded.module.modules())
    assert all(torch.equal(before[key], value) for key, value in backbone.module.state_dict().items())


def test_a_plain_module_takes_pixels_or_its_transform(images):
    brightness = nn.Sequential(nn.Flatten(), nn.Linear(192, 2))
    expected = brightness(images)[:, 0]
    torch.testing.assert_close(class_score(brightness, 0, output="logit")(images), expected)
    doubled = class_score(brightness, 0, output="logit", transform=lambda pixels: 2 * pixels)
    torch.testing.assert_close(doubled(images), brightness(2 * images)[:, 0])


def test_the_association_score_is_the_tests_summand(images):
    backbone = toy()
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(4, 6)), rng.normal(size=(3, 6))
    score = association_score(backbone, A, B)
    z = forward_layer(backbone, backbone.transform.normalise(images)).detach().double().numpy()

    def cosine(u, v):
        return u @ v / np.linalg.norm(u) / np.linalg.norm(v)

    expected = [np.mean([cosine(w, a) for a in A]) - np.mean([cosine(w, b) for b in B]) for w in z]
    found = score(images).detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    # and so the effect size of the association test follows from it
    d = (found[:3].mean() - found[3:].mean()) / found.std(ddof=1)
    assert d == pytest.approx(effect_size(z[:3], z[3:], A, B), abs=1e-4)
    np.testing.assert_allclose(association_score(backbone, B, A)(images).detach(), -found, atol=1e-6)
    np.testing.assert_allclose(
        association_score(backbone, A, B, fold=True)(images).detach(), found, rtol=1e-4, atol=1e-6
    )


def test_a_layer_before_its_normalisation_is_not_folded_into(images):
    """Its output would be that of a convolution with other weights."""
    backbone, vectors = toy(), np.random.default_rng(0).normal(size=(2, 3, 6))
    plain, fast = (association_score(backbone, *vectors, layer="0", fold=fold) for fold in (False, True))
    torch.testing.assert_close(fast(images), plain(images))
    assert any(isinstance(part, nn.BatchNorm2d) for part in fast.module.modules())


class Tokens(nn.Module):
    """A class token, the mean of all patches doubled, before 4 × 4 patches: (N, 17, 4)."""

    def __init__(self):
        super().__init__()
        self.patches, self.last = nn.Conv2d(3, 4, 4, 4), nn.Identity()

    def forward(self, images):
        patches = self.patches(images).flatten(2).transpose(1, 2)
        return self.last(torch.cat([2 * patches.mean(1, keepdim=True) + 1, patches], 1))[:, 0]


@pytest.mark.parametrize("tokens", ["class", "mean"])
def test_the_association_is_read_as_the_backbone_reads_embeddings(tokens):
    """A transformer's embedding is its class token or the mean of its patches; the backbone says which."""
    torch.manual_seed(0)
    net, transform = Tokens(), Transform(16, 1.0, "bilinear", (0.5,) * 3, (0.25,) * 3)
    reading = {"layer_modules": {"embedding": "last"}, "tokens": tokens, "prefix_tokens": 1}
    backbone = Backbone("toy", net, transform, 4, ("embedding",), "", **reading)
    pictures = torch.rand(2, 3, 16, 16)
    mean = net.patches((pictures - 0.5) / 0.25).mean((2, 3)).detach().numpy()
    z = 2 * mean + 1 if tokens == "class" else mean
    cosine = z[0] @ z[1] / np.linalg.norm(z[0]) / np.linalg.norm(z[1])
    found = association_score(backbone, z[:1], z[1:])(pictures).detach()
    np.testing.assert_allclose(found, [1 - cosine, cosine - 1], rtol=1e-4, atol=1e-6)


def test_scores_are_differentiable_in_the_pixels(images):
    backbone, vectors = toy(), np.random.default_rng(0).normal(size=(2, 3, 6))
    for score in (class_score(backbone, 0), association_score(backbone, *vectors)):
        x = images.double()[:1].clone().requires_grad_()
        score.module.double()
        [slope] = torch.autograd.grad(score(x)[0], x)
        step = torch.zeros_like(x)
        step[0, 1, 3, 4] = 1e-5
        numeric = (score(x + step) - score(x - step)).item() / 2e-5
        assert slope[0, 1, 3, 4].item() == pytest.approx(numeric, rel=1e-4, abs=1e-9)


def test_scoring_runs_in_eval_mode_and_restores_each_parts_own_mode(images):
    backbone = toy()
    expected = class_score(backbone, 0)(images)
    backbone.module.train()
    backbone.module[1].eval()  # frozen normalisation: a mixture must come back as a mixture
    torch.testing.assert_close(class_score(backbone, 0)(images), expected)
    assert [part.training for part in backbone.module] == [True, False, True, True, True, True, True]


def test_mode_is_restored_after_an_error():
    module = nn.Sequential(nn.Flatten(), nn.Linear(5, 2)).train()
    with pytest.raises(RuntimeError):
        class_score(module, 0)(torch.zeros(1, 3, 8, 8))
    assert all(part.training for part in module.modules())
    with eval_mode(lambda x: x):  # what is no module has no mode
        pass


def test_values_are_checked():
    with pytest.raises(ValueError, match=r"2 of 4 are NaN or infinite"):
        check_scores(torch.tensor([1.0, float("nan"), float("inf"), 0.0]), 4)
    with pytest.raises(ValueError, match=r"shape \(4,\); got shape \(4, 10\).*class_score"):
        check_scores(torch.zeros(4, 10), 4)
    with pytest.raises(ValueError, match="got list"):
        check_scores([1.0], 1)
    with pytest.raises(ValueError, match=r"probabilities must lie in \[0, 1\]; got -2 to 3.*gives logits"):
        check_scores(torch.tensor([-2.0, 3.0]), 2, "given")
    assert check_scores(torch.tensor([[0.0], [1.00001]]), 2, "probability").tolist() == [
        0.0,
        pytest.approx(1.00001),
    ]


def test_logits_where_probabilities_were_promised_raise(images):
    backbone = toy()
    with pytest.raises(ValueError, match="probabilities must lie in"):
        class_score(backbone, 0, output="given")(100 * images)
    ready = nn.Sequential(PixelModule(backbone.module, backbone.transform), nn.Softmax(1)).eval()
    torch.testing.assert_close(
        class_score(ready, 0, output="given")(images), class_score(backbone, 0)(images)
    )


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (3, "class between 0 and 2"),
        (-1, "class between 0 and 2"),
        ("cot", r"one of the network's 3 classes; 'cot' is none of them\. Did you mean 'cat'"),
        (1.0, "number or name; got 1.0"),
        (True, "number or name; got True"),
    ],
)
def test_classes_that_are_not_there_raise(target, message):
    with pytest.raises(ValueError, match=message):
        class_score(toy(), target)


def test_other_mistakes_raise(images):
    backbone = toy()
    with pytest.raises(ValueError, match="unknown output 'softmax'; known: probability, sigmoid, logit"):
        class_score(backbone, 0, output="softmax")
    with pytest.raises(ValueError, match="class between 0 and 2, which the network has; got 7"):
        class_score(backbone.module, 7)(images)
    with pytest.raises(ValueError, match=r"\(pictures, classes\) = \(5, …\); got shape \(5, 3, 8, 8\)"):
        class_score(nn.Identity(), 0)(images)
    with pytest.raises(ValueError, match="brings its own transform"):
        pixel_module(backbone, transform=backbone.transform)
    with pytest.raises(ValueError, match="only a Backbone is folded"):
        pixel_module(backbone.module, fold=True)
    with pytest.raises(ValueError, match="same number of columns; got 4 and an embedding of shape"):
        association_score(backbone, np.eye(4), np.eye(4))(images)
    with pytest.raises(ValueError, match=r"^B: .* embedding of zero length"):
        association_score(backbone, np.eye(6), np.zeros((2, 6)))
    with pytest.raises(ValueError, match="unknown layer 'head'"):
        association_score(backbone, np.eye(6), np.eye(6), layer="head")


def test_real_weights_name_their_classes():
    backbone = load_backbone("efficientnet_lite0")
    picture = torch.rand(1, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        logits = backbone.module(backbone.transform.normalise(picture))
        found = class_score(backbone, "tabby", fold=True)(picture)
    torch.testing.assert_close(found, logits.softmax(1)[:, 281], rtol=1e-3, atol=1e-6)
    with pytest.raises(ValueError, match=r"1000 classes; 'tabbi' is none of them\. Did you mean 'tabby'"):
        class_score(backbone, "tabbi")
    with pytest.raises(
        ValueError, match=r"'crane' is the name of 2 of them. Did you mean 134 or 517"
    ):  # a bird and a machine
        class_score(backbone, "crane")
