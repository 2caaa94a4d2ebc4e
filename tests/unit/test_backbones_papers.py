"""The models of the papers: filled from files in the published layouts, run, embedded, saved, refused."""

import dataclasses
import functools
import hashlib
import tomllib

import numpy as np
import open_clip
import pytest
import safetensors.torch
import timm
import torch
from PIL import Image
from torch import nn

from biastransfer import paths
from biastransfer.backbones import forward_layer, load_backbone, pretraining_classes, replace_head
from biastransfer.backbones.architectures import REGISTRY, architecture
from biastransfer.backbones.paper_models import PAPER_MODELS
from biastransfer.checkpoints import save
from biastransfer.embed import embed
from biastransfer.finetune.paper_recipes import PAPER_RECIPES

BIT, CLIP, FULL = "bit_m_r50x1", "ViT-B-32-quickgelu", open_clip.get_model_config
MOCO = ["moco_resnet50", "moco_resnet50_v2_800"]
RESNETS = ["resnet50", *MOCO, "simclr_resnet50", "simclr_resnet50_vissl", "places365_resnet50"]

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning")


def seeded_only(initial, tensor, *arguments, generator=None, **settings):
    """Set initial values where a generator is given, as `replace_head` does; else leave memory as it is."""
    return initial(tensor, *arguments, generator=generator, **settings) if generator else tensor


@pytest.fixture(scope="module", autouse=True)
def small_and_quick():
    """Narrow CLIP to 64 channels and BiT to 9 classes; set no initial values, since all come from files."""
    config = open_clip.get_model_config("ViT-B-32-quickgelu")
    narrow = {**config, "vision_cfg": {**config["vision_cfg"], "width": 64}}
    bit = functools.partial(timm.create_model, "resnetv2_50x1_bit", num_classes=9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("open_clip.get_model_config", lambda name: narrow if name == CLIP else FULL(name))
        patch.setitem(REGISTRY, BIT, dataclasses.replace(PAPER_MODELS[BIT], build=lambda seed: bit()))
        for name in ("kaiming_uniform_", "kaiming_normal_", "xavier_uniform_", "normal_", "uniform_"):
            patch.setattr(f"torch.nn.init.{name}", functools.partial(seeded_only, getattr(nn.init, name)))
        yield


def network(name):
    """Build a network with random values everywhere."""
    module = architecture(name).build(1)
    generator = torch.Generator().manual_seed(1)
    for key, value in module.state_dict().items():
        if key.endswith("running_var") or (value.ndim == 1 and key.endswith("weight")):
            value.uniform_(0.5, 1.0, generator=generator)
        elif value.is_floating_point():
            value.normal_(std=value[0].numel() ** -0.5 if value.ndim > 1 else 0.1, generator=generator)
    return module.eval()


def prefixed(state, prefix):
    return {prefix + name: value for name, value in state.items()}


def body(state):
    return {name: value for name, value in state.items() if not name.startswith("fc.")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("weights")


@pytest.fixture(scope="module")
def resnet50():
    return network("resnet50")


@pytest.fixture(scope="module")
def published(folder, resnet50):
    """Files of random values in the layouts in which the weights of the papers are published."""
    whole = resnet50.state_dict()
    trunk = body(whole)
    key = {name: torch.zeros(()).expand(value.shape) for name, value in trunk.items()}  # little to write
    heads = {  # of version 1 a linear layer, whose names are a classifier's; of version 2 two layers
        "moco_resnet50": {"fc.weight": torch.rand(128, 2048), "fc.bias": torch.rand(128)},
        "moco_resnet50_v2_800": {"fc.0.weight": torch.rand(8, 8), "fc.2.weight": torch.rand(8, 8)},
    }
    layouts = {
        "resnet50": whole,
        **{
            name: {
                "epoch": 200,
                "arch": "resnet50",
                "state_dict": prefixed(key | head, "module.encoder_k.")
                | prefixed(trunk | head, "module.encoder_q."),
            }
            for name, head in heads.items()
        },
        "simclr_resnet50": {"state_dict": whole},
        "simclr_resnet50_vissl": {
            "phase_idx": 999,
            "classy_state_dict": {
                "base_model": {"model": {"trunk": prefixed(trunk, "_feature_blocks."), "heads": {}}},
                "meters": [np.float64(0.5)],
            },
        },
        "places365_resnet50": {
            "best_prec1": np.float64(54.7),
            "state_dict": prefixed(trunk, "module.")
            | {"module.fc.weight": torch.rand(365, 2048), "module.fc.bias": torch.rand(365)},
        },
    }
    files = {}
    for name, content in layouts.items():
        files[name] = folder / PAPER_MODELS[name].weights.file
        torch.save(content, files[name])
    return files


@pytest.fixture(scope="module")
def loaded(published):
    return {name: load_backbone(name, weights=file) for name, file in published.items()}


def test_every_model_of_the_recipes_is_there():
    wanted = {name.split("-")[1] for name in PAPER_RECIPES}
    assert wanted == {
        "resnet18",
        "resnet50",
        "bit_m_r50x1",
        "clip_vit_b32",
        "moco_resnet50",
        "simclr_resnet50",
    }
    assert wanted <= set(PAPER_MODELS)


@pytest.mark.parametrize("name", RESNETS)
def test_published_layout_gives_the_network_in_the_file(loaded, resnet50, name):
    backbone, x = loaded[name], torch.rand(2, 3, 64, 64)
    coverage = backbone.coverage
    assert (coverage.matched, coverage.total, coverage.coverage) == (265, 265, 1.0)
    with torch.no_grad():
        own = torch.flatten(nn.Sequential(*list(resnet50.children())[:-1])(x), 1)
        assert torch.equal(forward_layer(backbone, x), own)
        logits = backbone.module(x)
    if name == "resnet50":
        assert torch.equal(logits, resnet50(x))
        assert backbone.classes[:2] == ("tench, Tinca tinca", "goldfish, Carassius auratus")
    elif name == "places365_resnet50":
        assert logits.shape == (2, 365)
        assert backbone.classes == ()
    else:  # what the file has for a head is no classifier: the network ends with its embedding
        assert torch.equal(logits, own)
        assert backbone.classes == ()
    assert backbone.source.startswith(f"a given file, taken as {name} ({PAPER_MODELS[name].source}); ")
    assert not backbone.module.training


@pytest.mark.parametrize(
    ("name", "head", "digest"), [(MOCO[0], "fc.weight", "b251726a"), (MOCO[1], "fc.0.weight", "a04e12f8")]
)
def test_query_encoder_is_taken_and_the_key_encoder_said(loaded, name, head, digest):
    coverage = loaded[name].coverage
    assert coverage.prefix == "state_dict.module.encoder_q."
    assert coverage.alternatives == ("state_dict.module.encoder_k.",)
    assert coverage.head == "none"
    assert f"state_dict.module.encoder_q.{head}" in coverage.unused
    assert f"not the published {digest}…" in loaded[name].source


def test_own_transforms(loaded):
    white = np.full((300, 400, 3), 255, np.uint8)
    imagenet = [(1 - 0.485) / 0.229, (1 - 0.456) / 0.224, (1 - 0.406) / 0.225]
    for name in ("resnet50", "moco_resnet50", "simclr_resnet50_vissl", "places365_resnet50"):
        assert loaded[name].transform(white)[:, 0, 0].tolist() == pytest.approx(imagenet, abs=1e-6)
    assert loaded["simclr_resnet50"].transform(white).unique().tolist() == [1.0]
    bit, clip = (PAPER_MODELS[name].transform for name in ("bit_m_r50x1", "clip_vit_b32"))
    assert bit(white).unique().tolist() == [1.0]
    assert bit(np.zeros_like(white)).unique().tolist() == [-1.0]
    expected = [(1 - 0.48145466) / 0.26862954, (1 - 0.4578275) / 0.26130258, (1 - 0.40821073) / 0.27577711]
    assert clip(white)[:, 0, 0].tolist() == pytest.approx(expected, abs=1e-6)
    assert (clip.interpolation, clip.crop_box(300, 400)) == ("bicubic", (50, 0, 350, 300))
    assert (bit.interpolation, bit.crop_box(256, 256)) == ("bilinear", (16, 16, 240, 240))


def test_transforms_agree_with_those_that_timm_and_open_clip_state():
    bit = architecture("timm:resnetv2_50x1_bit.goog_in21k").transform
    clip = architecture("open_clip:ViT-B-32-quickgelu:openai").transform
    assert PAPER_MODELS["bit_m_r50x1"].transform == bit
    assert PAPER_MODELS["clip_vit_b32"].transform == clip


def test_full_size_networks_have_the_published_shapes(monkeypatch):
    """What the narrow ones above stand for, without its memory."""
    monkeypatch.setattr("open_clip.get_model_config", FULL)
    with torch.device("meta"):
        clip, bit = PAPER_MODELS["clip_vit_b32"].build(0), PAPER_MODELS[BIT].build(0)
    assert bit.head.fc.weight.shape == (21843, 2048, 1, 1)
    assert sum(value.numel() for value in clip.parameters()) == 87_849_216
    assert clip.visual.conv1.weight.shape == (768, 3, 32, 32)
    assert clip.visual.proj.shape == (768, 512)
    assert len(clip.visual.transformer.resblocks) == 12
    assert type(clip.visual.transformer.resblocks[0].mlp.gelu).__name__ == "QuickGELU"


def test_layers_by_depth(loaded):
    backbone, x = loaded["resnet50"], torch.rand(1, 3, 64, 64)
    assert backbone.layers == ("stem", "stage1", "stage2", "stage3", "stage4", "embedding")
    with torch.no_grad():
        widths = [forward_layer(backbone, x, layer).shape[1] for layer in backbone.layers]
    assert widths == [64, 256, 512, 1024, 2048, 2048]


def pictures(folder):
    for k, colour in enumerate([(200, 30, 60), (10, 90, 220)]):
        Image.linear_gradient("L").convert("RGB").save(folder / f"{k}.png")
        Image.new("RGB", (300, 240), colour).save(folder / f"{k}.jpg")
    return [folder / "0.png", folder / "1.jpg"]


def test_embedding_of_pictures_with_folded_normalisation(loaded, folder):
    small = loaded["moco_resnet50"].transform.with_size(96)
    backbone = dataclasses.replace(loaded["moco_resnet50"], transform=small)
    files = pictures(folder)
    result = embed(backbone, files, batch_size=2, cache=False, device="cpu")
    x = torch.stack([backbone.transform(np.array(Image.open(file).convert("RGB"))) for file in files])
    with torch.no_grad():
        expected = forward_layer(backbone, x).numpy()
    assert np.abs(result.vectors - expected).max() < 1e-5 * np.abs(expected).max()


def test_bit_from_its_official_arrays(folder):
    """Arrays named and turned as Google published them give the very network that they were taken from."""
    module = network(BIT)
    arrays = official_bit(module.state_dict())
    np.savez(folder / "BiT-M-R50x1.npz", **arrays)
    backbone = load_backbone(BIT, weights=folder / "BiT-M-R50x1.npz")
    own = module.state_dict()
    assert all(torch.equal(value, own[key]) for key, value in backbone.module.state_dict().items())
    assert backbone.coverage.head == "filled"
    assert backbone.coverage.unused == ()
    x = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        embedding = forward_layer(backbone, x)
        timms = module.forward_head(module.forward_features(x), pre_logits=True)
        assert torch.equal(embedding, timms.flatten(1))
        logits = module.head.fc(embedding[:, :, None, None]).flatten(1)
        assert torch.equal(backbone.module(x), logits)
        new = replace_head(backbone, ["car", "dog"])
        assert new.module(x).shape == (1, 2)
        assert torch.equal(forward_layer(new, x), embedding)
    result = embed(backbone, pictures(folder)[:1], batch_size=1, cache=False, device="cpu")
    assert result.vectors.shape == (1, 2048)


def official_bit(state):
    """Return a state dict of timm's BiT as the arrays of the official file, written out by hand."""
    arrays = {}

    def put(name, value):
        value = value.numpy()
        arrays[f"resnet/{name}"] = value.transpose(2, 3, 1, 0) if value.ndim == 4 else value

    put("root_block/standardized_conv2d/kernel", state["stem.conv.weight"])
    put("group_norm/gamma", state["norm.weight"])
    put("group_norm/beta", state["norm.bias"])
    put("head/conv2d/kernel", state["head.fc.weight"])
    put("head/conv2d/bias", state["head.fc.bias"])
    for stage, units in enumerate((3, 4, 6, 3)):
        for unit in range(units):
            old, new = f"stages.{stage}.blocks.{unit}", f"block{stage + 1}/unit{unit + 1:02d}"
            for number, letter in enumerate("abc", 1):
                put(f"{new}/{letter}/standardized_conv2d/kernel", state[f"{old}.conv{number}.weight"])
                put(f"{new}/{letter}/group_norm/gamma", state[f"{old}.norm{number}.weight"])
                put(f"{new}/{letter}/group_norm/beta", state[f"{old}.norm{number}.bias"])
            if unit == 0:
                put(f"{new}/a/proj/standardized_conv2d/kernel", state[f"{old}.downsample.conv.weight"])
    return arrays


class _Whole(nn.Module):
    """A model with a text tower, as OpenAI's archive holds it, in half precision."""

    def __init__(self, visual):
        super().__init__()
        self.visual = visual
        self.token_embedding = nn.Embedding(4, 8)
        self.logit_scale = nn.Parameter(torch.tensor(4.6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.logit_scale


@pytest.fixture(scope="module")
def clip(folder):
    tower = network("clip_vit_b32").half()
    torch.jit.save(torch.jit.script(_Whole(_Weights(tower.visual))), folder / "ViT-B-32.pt")
    return tower.float(), load_backbone("clip_vit_b32", weights=folder / "ViT-B-32.pt")


class _Weights(nn.Module):
    """The names and values of a network without its program, which TorchScript need not know."""

    def __init__(self, module):
        super().__init__()
        for name, value in module.named_parameters(recurse=False):
            self.register_parameter(name, value)
        for name, part in module.named_children():
            setattr(self, name, _Weights(part))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def test_clip_from_openais_archive(clip):
    tower, backbone = clip
    x = torch.rand(2, 3, 224, 224)
    with torch.no_grad():
        expected = tower.visual(x)
        assert torch.equal(forward_layer(backbone, x), expected)
        assert torch.equal(backbone.module(x), expected)  # no head: the network ends with its embedding
        stem, first, last = (forward_layer(backbone, x, layer) for layer in ("stem", "block1", "block12"))
        blocks = tower.visual.transformer.resblocks
        tokens = tower.visual._embeds(x)
        assert torch.equal(stem, tokens[:, 0])  # the class token
        assert torch.allclose(first, blocks[0](tokens)[:, 0], atol=1e-6)
        assert torch.allclose(tower.visual.ln_post(last) @ tower.visual.proj, expected, atol=1e-6)
    assert backbone.dim == 512
    assert backbone.layers == ("stem", *(f"block{k}" for k in range(1, 13)), "embedding")
    assert "logit_scale" in backbone.coverage.unused
    assert backbone.classes == ()


def test_clip_keeps_quickgelu_and_its_new_head_through_a_checkpoint(clip, folder):
    _, backbone = clip
    new = replace_head(backbone, ["car", "dog"], seed=2)
    again = load_backbone(save(new, folder / "clip.safetensors"))
    assert type(again.module.visual.transformer.resblocks[3].mlp.gelu).__name__ == "QuickGELU"
    x = torch.rand(1, 3, 224, 224)
    with torch.no_grad():
        logits = again.module(x)
        assert torch.equal(logits, new.module(x))
        assert torch.allclose(logits, new.module.head(forward_layer(backbone, x)), atol=1e-6)
    assert (again.name, again.tokens, again.dim) == ("clip_vit_b32", "class", 512)


def test_checkpoint_of_a_network_without_a_head(loaded, folder):
    again = load_backbone(save(loaded["moco_resnet50"], folder / "moco.safetensors"))
    x = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(again.module(x), loaded["moco_resnet50"].module(x))
    assert again.module.fc.__class__ is nn.Identity


def test_resnet18_head_that_does_not_fit_is_left_out(folder):
    state = network("resnet18").state_dict()
    state["fc.weight"] = torch.rand(7, 512)
    safetensors.torch.save_file(prefixed(state, "model.backbone."), folder / "mine.safetensors")
    backbone = load_backbone(folder / "mine.safetensors", architecture="resnet18")
    assert "fc.weight: (7, 512) in the file, (1000, 512) in the network" in backbone.coverage.head
    x = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(backbone.module(x), forward_layer(backbone, x))
        assert replace_head(backbone, ["a", "b", "c"]).module(x).shape == (2, 3)
    assert backbone.classes == ()
    with pytest.raises(ValueError, match="at least 95% of the network's tensors, the head left out"):
        load_backbone("resnet18", weights=publish(folder, {"conv1.weight": state["conv1.weight"]}))


def publish(folder, state):
    torch.save(state, folder / "other.pth")
    return folder / "other.pth"


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """Set up a machine without any weights or network."""
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path


@pytest.mark.parametrize("name", PAPER_MODELS)
def test_without_its_file_one_sentence_says_which_where_and_how(nowhere, name):
    weights = PAPER_MODELS[name].weights
    with pytest.raises(FileNotFoundError) as error:
        load_backbone(name)
    message = str(error.value)
    assert message.startswith(
        f"{name} needs its weights as {nowhere / 'data/raw/weights' / weights.file}, which"
    )
    assert "\n" not in message
    assert "biastransfer fetch" in message or name == "simclr_resnet50"
    assert "pass weights=PATH" in message


def test_file_in_its_place_must_have_the_published_hash(nowhere):
    file = paths.weights("resnet18-f37072fd.pth")
    file.parent.mkdir(parents=True)
    torch.save({}, file)
    begins = hashlib.sha256(file.read_bytes()).hexdigest()[:8]
    with pytest.raises(ValueError, match=rf"must have the published sha256, f37072fd…; it has {begins}…"):
        load_backbone("resnet18")


def test_file_is_found_in_pytorchs_cache(nowhere, monkeypatch):
    from biastransfer.backbones import weights

    file = nowhere / "torch" / "hub" / "checkpoints" / "some.pth"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"x")
    assert weights.find(weights.Weights("some.pth"), "some") == file


def test_sources_fetch_what_the_registry_looks_for():
    """The file that a message says to fetch is the one that is looked for, with the same hash."""
    listed = tomllib.loads((paths.root() / "data" / "sources.toml").read_text())["files"]
    for entry in PAPER_MODELS.values():
        if "biastransfer fetch" not in entry.weights.get:
            continue
        source = listed[entry.weights.get.split()[-1]]
        assert source["path"] == f"weights/{entry.weights.file}"
        if entry.weights.digest:
            kind, _, digest = entry.weights.digest.partition(":")
            assert source[kind] == digest


@pytest.mark.parametrize(
    ("name", "count", "words"),
    [
        ("resnet18", 1000, "with labels"),
        ("moco_resnet50", 1000, "without their labels"),
        ("bit_m_r50x1", 21843, "ImageNet-21k"),
        ("places365_resnet50", 0, "Places365"),
        ("clip_vit_b32", 0, "no fixed classes"),
        ("random", 0, "nothing"),
        ("timm:vit_small_patch16_224.augreg_in21k_ft_in1k", 1000, "augreg_in21k_ft_in1k"),
    ],
)
def test_pretraining_classes(name, count, words):
    classes, statement = pretraining_classes(name)
    assert len(classes) == count
    assert words in statement


def test_cars_are_among_the_pretraining_classes():
    assert "sports car" in " ".join(pretraining_classes("resnet50")[0])
    assert "person" in " ".join(pretraining_classes("bit_m_r50x1")[0])
