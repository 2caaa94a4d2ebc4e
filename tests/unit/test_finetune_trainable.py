import dataclasses

import pytest
import torch

from biastransfer import backbones
from biastransfer.backbones.architectures import architecture
from biastransfer.finetune import find_recipe, finetune, load_trainable, make_target
from biastransfer.finetune.settings import Recipe

SMALL = Recipe("small", epochs=1, lr=0.01, batch_size=1, size=96)
NAMES = {"run": "test", "target_name": "none"}


@pytest.fixture
def unread():
    """A target whose pictures are not there: what reads one of them raises another error."""
    return make_target(["a"], *(([f"no-{split}.png"], [[1]]) for split in ("train", "val", "test")))


@pytest.fixture
def program(tmp_path):
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
    torch.jit.script(network.eval()).save(tmp_path / "net.pt")
    return tmp_path / "net.pt"


def drawn(name):
    """A network by name with random weights, since its own are not here."""
    entry = architecture(name)
    module = entry.build(0).eval()
    entry = entry.seen_in(module)
    return backbones.Backbone(
        name, module, entry.transform, entry.dim, tuple(entry.layer_modules), "random weights",
        layer_modules=entry.layer_modules, head=entry.head, tokens=entry.tokens,
        prefix_tokens=entry.prefix_tokens,
    )  # fmt: skip


def test_torchscript_program_is_refused_before_pictures_are_read(program, unread):
    loaded = backbones.load_backbone(program, trust=True)
    words = r"must be a network that can be rebuilt; net is a TorchScript program.*architecture=…"
    with pytest.raises(ValueError, match=words):
        finetune(loaded, unread, recipe=SMALL, **NAMES)
    with pytest.raises(ValueError, match=r"net\.pt is a TorchScript program, whose weights take no gradient"):
        finetune(str(program), unread, recipe=SMALL, **NAMES)  # refused without trusting it


@pytest.mark.parametrize(
    ("name", "own"),
    [("vit_tiny_patch16_224", 224), pytest.param("clip_vit_b32", 224, marks=pytest.mark.slow)],
)
def test_a_size_that_the_network_does_not_take_is_explained(unread, name, own):
    network = drawn(name)
    words = rf"{name} must be able.*takes {own} × {own} .*'small' has size 96 \(.+\)\. Use.*size=None"
    with pytest.raises(ValueError, match=words):
        finetune(network, unread, recipe=SMALL, **NAMES)
    for size in (None, own):
        assert load_trainable(network, dataclasses.replace(SMALL, size=size)) is network


def test_a_network_of_any_size_is_returned_unchanged():
    network = drawn("efficientnet_lite0")
    before = {key: value.clone() for key, value in network.module.state_dict().items()}
    state = torch.random.get_rng_state()
    assert load_trainable(network, find_recipe("demo", network.name)) is network
    assert all(torch.equal(value, before[key]) for key, value in network.module.state_dict().items())
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not network.module.training


def test_names_are_loaded_and_unknown_ones_listed():
    assert load_trainable("squeezenet1_1", "smoke").name == "squeezenet1_1"
    with pytest.raises(ValueError, match="unknown backbone 'resnet51'"):
        load_trainable("resnet51", "smoke")
    with pytest.raises(ValueError, match="unknown recipe 'demoo' for 'squeezenet1_1'"):
        load_trainable("squeezenet1_1", "demoo")
