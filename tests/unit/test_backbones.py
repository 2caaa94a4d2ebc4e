import dataclasses
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import skimage.data
import torch
from torch import nn

from biastransfer.backbones import (
    Backbone,
    Transform,
    forward_layer,
    list_backbones,
    load_backbone,
    replace_head,
)
from biastransfer.backbones.pip_weights import read_arrays
from biastransfer.embed.folding import fold_batch_norm

PRETRAINED = ["efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2", "squeezenet1_1"]
HALVES = Transform(size=4, crop=1.0, interpolation="bilinear", mean=(0.5,) * 3, std=(0.5,) * 3)


@pytest.fixture(scope="module")
def loaded():
    return {name: load_backbone(name) for name in [*PRETRAINED, "thumbnail", "random"]}


def top(backbone, rgb):
    with torch.inference_mode():
        probabilities = backbone.module(backbone.transform(rgb)[None])[0].softmax(0)
    best = int(probabilities.argmax())
    return backbone.classes[best], float(probabilities[best])


@pytest.mark.parametrize(
    ("name", "cat", "coffee"),
    [
        ("efficientnet_lite0", ("tiger cat", 0.385), ("espresso", 0.951)),
        ("efficientnet_lite1", ("Egyptian cat", 0.448), ("espresso", 0.542)),
        ("efficientnet_lite2", ("Egyptian cat", 0.594), ("espresso", 0.885)),
        ("squeezenet1_1", ("Egyptian cat", 0.352), ("espresso", 0.965)),
    ],
)
def test_predictions_on_real_photographs(loaded, name, cat, coffee):
    """Weights, mapping, channel order and transform together: any one wrong moves these."""
    for picture, (label, probability) in ((skimage.data.cat(), cat), (skimage.data.coffee(), coffee)):
        found, value = top(loaded[name], picture)
        assert found == label
        assert value == pytest.approx(probability, abs=0.01)


@pytest.mark.parametrize("name", ["efficientnet_lite0", "squeezenet1_1"])
def test_wrong_channel_order_would_be_seen(loaded, name):
    right = top(loaded[name], skimage.data.coffee())[1]
    assert top(loaded[name], skimage.data.coffee()[:, :, ::-1].copy())[1] < right - 0.05


def test_own_transforms(loaded):
    sizes = {name: backbone.transform.size for name, backbone in loaded.items()}
    assert sizes == dict(zip([*PRETRAINED, "thumbnail", "random"], [224, 240, 260, 224, 64, 224]))
    white = np.full((300, 300, 3), 255, np.uint8)
    assert loaded["efficientnet_lite1"].transform(white).unique().item() == pytest.approx(1.0)
    red = np.zeros((300, 300, 3), np.uint8)
    red[..., 0] = 255
    # 0–255 in the order blue, green, red, minus the means, no division
    expected = [-103.939, -116.779, 255 - 123.68]
    assert loaded["squeezenet1_1"].transform(red)[:, 0, 0].tolist() == pytest.approx(expected, abs=1e-4)


def test_transform_sees_the_central_square():
    rgb = np.zeros((4, 8, 3), np.uint8)
    rgb[:, 2:6] = 200
    assert HALVES.crop_box(4, 8) == (2, 0, 6, 4)
    assert (HALVES.resized(rgb) == 200).all()
    half = Transform(size=2, crop=0.5, interpolation="bicubic", mean=(0.0,) * 3, std=(1.0,) * 3)
    assert half.crop_box(4, 8) == (3, 1, 5, 3)
    assert HALVES.with_size(16).normalise(torch.ones(3, 2, 2)).eq(1).all()
    assert HALVES.with_size(16)(rgb).shape == (3, 16, 16)


def test_transform_of_a_batch_equals_that_of_each(loaded):
    pixels = torch.rand(3, 3, 8, 8)
    transform = loaded["squeezenet1_1"].transform
    assert torch.equal(transform.normalise(pixels), torch.stack([transform.normalise(p) for p in pixels]))


def test_transform_survives_json_fields():
    assert Transform.from_dict(HALVES.to_dict()) == HALVES


@pytest.mark.parametrize(
    "rgb", [np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3)), np.zeros((4, 4, 4), np.uint8)]
)
def test_transform_refuses_what_is_no_picture(rgb):
    with pytest.raises(ValueError, match=r"must be \(H, W, 3\) uint8; got .*read_rgb"):
        HALVES(rgb)


def test_squashing_transform_sees_the_whole_picture_out_of_proportion():
    rgb = np.zeros((4, 8, 3), np.uint8)
    rgb[:, 4:] = 200
    squash = dataclasses.replace(HALVES, fit="squash", size=2)
    assert squash.crop_box(4, 8) == (0, 0, 8, 4)
    assert squash.resized(rgb)[:, :, 0].tolist() == HALVES.with_size(2).resized(rgb[:, 2:6])[:, :, 0].tolist()
    assert dataclasses.replace(squash, crop=0.5).crop_box(4, 8) == (2, 1, 6, 3)


@pytest.mark.parametrize("fields", [{"size": 0}, {"crop": 1.5}, {"interpolation": "cubic"}, {"fit": "pad"}])
def test_transform_refuses_impossible_settings(fields):
    with pytest.raises(ValueError, match="a transform needs size ≥ 1"):
        Transform(**{**HALVES.to_dict(), **fields})


def test_unknown_backbone_lists_the_known():
    with pytest.raises(ValueError, match="unknown backbone 'resnet51'; known: ") as error:
        load_backbone("resnet51")
    assert ", ".join(list_backbones()) in str(error.value)
    assert "any name of timm (timm:NAME) and of open_clip (open_clip:ARCHITECTURE:TAG)" in str(error.value)
    assert "Did you mean 'resnet50'" in str(error.value)
    with pytest.raises(ValueError, match=r"Did you mean 'efficientnet_lite\d'"):
        load_backbone("efficientnet_lite")


def test_random_depends_on_its_seed_alone(loaded):
    state = torch.random.get_rng_state()
    again, other = load_backbone("random"), load_backbone("random", seed=1)
    assert torch.equal(torch.random.get_rng_state(), state)
    first = loaded["random"].module.conv_stem.weight
    assert torch.equal(first, again.module.conv_stem.weight)
    assert not torch.equal(first, other.module.conv_stem.weight)
    assert "seed 1" in other.source
    assert other.classes == ()
    assert all((norm.running_mean == 0).all() for norm in _norms(other.module))


def _norms(module):
    return [part for part in module.modules() if isinstance(part, nn.BatchNorm2d)]


def test_every_layer_is_pooled_by_the_mean_over_space(loaded):
    for backbone in loaded.values():
        x = torch.rand(2, 3, 64, 64)
        with torch.no_grad():
            shapes = {layer: forward_layer(backbone, x, layer).shape for layer in backbone.layers}
        assert backbone.layers[-1] == "embedding"
        assert all(shape[0] == 2 and len(shape) == 2 for shape in shapes.values())
        assert shapes["embedding"] == (2, backbone.dim)


def test_embedding_is_what_the_head_reads(loaded):
    lite, x = loaded["efficientnet_lite0"], torch.rand(2, 3, 96, 96)
    with torch.no_grad():
        assert torch.allclose(lite.module.classifier(forward_layer(lite, x)), lite.module(x), atol=1e-4)
        squeeze = loaded["squeezenet1_1"]
        assert torch.equal(forward_layer(squeeze, x), squeeze.module.features(x).mean((2, 3)))


def test_forward_layer_accepts_submodules_passes_gradients_and_leaves_no_hook(loaded):
    lite = loaded["efficientnet_lite0"]
    x = torch.rand(1, 3, 64, 64, requires_grad=True)
    forward_layer(lite.module, x, "blocks.1").sum().backward()
    assert x.grad.abs().sum() > 0
    with pytest.raises(RuntimeError):
        forward_layer(lite, torch.rand(1, 5, 64, 64))
    assert not any(part._forward_hooks for part in lite.module.modules())


def test_unknown_layer_lists_the_known(loaded):
    with pytest.raises(ValueError, match="unknown layer 'stage9'; known: stem, stage1"):
        forward_layer(loaded["efficientnet_lite0"], torch.rand(1, 3, 64, 64), "stage9")
    with pytest.raises(ValueError, match=r"unknown layer 'embedding'; known: .*features"):
        forward_layer(loaded["squeezenet1_1"].module, torch.rand(1, 3, 64, 64))


def test_layer_that_the_network_skips_is_an_error():
    class Skipping(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = nn.Conv2d(3, 2, 1), nn.Conv2d(3, 2, 1)

        def forward(self, x):
            return self.used(x)

    with pytest.raises(ValueError, match="does not pass through layer unused"):
        forward_layer(Skipping(), torch.rand(1, 3, 2, 2), "unused")


@pytest.mark.parametrize("name", ["efficientnet_lite0", "squeezenet1_1"])
def test_replace_head(loaded, name):
    old, x = loaded[name], torch.rand(2, 3, 64, 64)
    new = replace_head(old, ["car", "dog", "person"])
    with torch.no_grad():
        assert new.module(x).shape == (2, 3)
        assert (new.module(x) < 0).any() or name != "squeezenet1_1"  # no ReLU cuts the logits
        assert torch.equal(forward_layer(new, x), forward_layer(old, x))
        assert old.module(x).shape == (2, 1000)
        assert torch.equal(new.module(x), replace_head(old, ["car", "dog", "person"]).module(x))
        assert not torch.equal(new.module(x), replace_head(old, ["car", "dog", "person"], seed=1).module(x))
    assert new.classes == ("car", "dog", "person")
    assert not new.module.training


@pytest.mark.parametrize("classes", [[], ["car", "car"]])
def test_replace_head_refuses(loaded, classes):
    with pytest.raises(ValueError, match="at least one class and no name twice"):
        replace_head(loaded["squeezenet1_1"], classes)


def test_arrays_only_reads_arrays(tmp_path):
    file = tmp_path / "arrays.pkl"
    file.write_bytes(pickle.dumps({"conv": [np.arange(3.0), np.eye(2)]}, protocol=2))
    assert read_arrays(file)["conv"][0].tolist() == [0, 1, 2]


class _Touches:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_arrays_only_runs_nothing(tmp_path):
    file, touched = tmp_path / "evil.pkl", tmp_path / "touched"
    file.write_bytes(pickle.dumps({"conv1": _Touches(touched)}))
    with pytest.raises(pickle.UnpicklingError, match=r"NumPy arrays only; it asks for .*open"):
        read_arrays(file)
    assert not touched.exists()


def test_folding_changes_nothing_but_speed():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 4, 1),
        nn.BatchNorm2d(4, affine=False),
    )
    for norm in _norms(net):
        norm.running_mean.uniform_(-1, 1)
        norm.running_var.uniform_(0.5, 2)
    net.train()
    x = torch.rand(2, 3, 9, 9)
    folded = fold_batch_norm(net, lambda module, x: module(x), x)
    assert _norms(folded) == []
    assert net.training
    assert len(_norms(net)) == 2
    assert torch.allclose(folded(x), net.eval()(x), atol=1e-5)


def test_folding_steps_back_where_the_convolution_itself_is_read():
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)).eval()
    net[1].running_var.fill_(9.0)
    x = torch.rand(2, 3, 9, 9)
    unfolded = fold_batch_norm(net, lambda module, x: forward_layer(module, x, "0"), x)
    assert torch.equal(forward_layer(unfolded, x, "0"), forward_layer(net, x, "0"))


def test_backbone_says_where_it_comes_from(loaded):
    assert all(isinstance(backbone, Backbone) and backbone.source for backbone in loaded.values())
    assert all(not backbone.module.training for backbone in loaded.values())
    assert len(loaded["efficientnet_lite0"].classes) == 1000


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's allocator")
def test_freed_memory_is_kept_unless_the_environment_decides():
    passes = (
        "import resource, torch\n"
        "from biastransfer.backbones import load_backbone\n"
        "from biastransfer.backbones.allocation import keep_freed_memory\n"
        "module = load_backbone('efficientnet_lite0').module.to(memory_format=torch.channels_last)\n"
        "x = torch.rand(4, 3, 224, 224)\n"
        "with torch.inference_mode():\n"
        "    module(x)\n"
        "    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "    module(x)\n"
        "print(keep_freed_memory(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)\n"
    )

    def run(**more):
        known = {
            name: value for name, value in os.environ.items() if not name.startswith(("MALLOC", "GLIBC"))
        }
        done = subprocess.run(
            [sys.executable, "-c", passes], env=known | more, capture_output=True, text=True, check=True
        )
        kept, faults = done.stdout.split()
        return kept == "True", int(faults)

    kept, faults = run()
    left, more = run(MALLOC_TRIM_THRESHOLD_="131072")
    assert not left
    if kept:  # glibc; others have no such setting
        assert faults < more / 10
