"""Any name of timm and open_clip, any file, TorchScript programs, and machines without a network."""

import contextlib
import dataclasses
import hashlib
import http.server
import re
import socket
import threading
import time

import numpy as np
import open_clip
import pytest
import safetensors.torch
import skimage.data
import timm
import torch
from PIL import Image
from timm.data import create_transform, resolve_data_config
from torch import nn

from biastransfer.backbones import forward_layer, load_backbone, replace_head
from biastransfer.backbones.architectures import architecture
from biastransfer.backbones.clip_models import build_tower, clip_architecture
from biastransfer.backbones.reading import pool
from biastransfer.backbones.timm_models import look
from biastransfer.backbones.weights import Weights, find
from biastransfer.checkpoints import save
from biastransfer.embed import embed

TINY = [
    "test_vit",
    "test_vit2",
    "test_vit3",
    "test_convnext",
    "test_resnet",
    "test_efficientnet",
    "test_nfnet",
]

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("weights")


@pytest.fixture(scope="module")
def tiny(folder):
    """Networks of timm with other values than initial ones, and the backbones loaded from their files."""
    pairs = {}
    for name in TINY:
        module = timm.create_model(name, pretrained=False).eval()
        generator = torch.Generator().manual_seed(1)
        for key, value in module.state_dict().items():
            if value.is_floating_point():
                value.add_(0.01 * torch.rand(value.shape, generator=generator), alpha=1.0)
            assert key
        file = folder / f"{name}.safetensors"
        safetensors.torch.save_file(module.state_dict(), file)
        pairs[name] = module, load_backbone(f"timm:{name}", weights=file)
    return pairs


@pytest.mark.parametrize("name", TINY)
def test_network_of_timm_is_read_as_timm_reads_it(tiny, name):
    module, backbone = tiny[name]
    x = torch.rand(2, 3, 160, 160)
    with torch.no_grad():
        logits = module(x)
        assert torch.equal(backbone.module(x), logits)
        embedding = forward_layer(backbone, x)
        assert torch.allclose(embedding, module.forward_head(module.forward_features(x), pre_logits=True))
        assert all(forward_layer(backbone, x, layer).ndim == 2 for layer in backbone.layers)
        new = replace_head(backbone, ["car", "dog"])
        assert torch.equal(forward_layer(new, x), embedding)
        assert torch.allclose(new.module(x), new.module.get_classifier()(embedding), atol=1e-6)
    assert embedding.shape == (2, backbone.dim)
    assert (backbone.coverage.coverage, backbone.coverage.head) == (1.0, "filled")
    assert len(backbone.classes) == 1000
    assert len(backbone.layers) >= 4
    assert backbone.layers[-1] == "embedding"


@pytest.mark.parametrize("name", ["test_vit", "test_resnet", "test_efficientnet"])
def test_transform_is_timms(tiny, name):
    module, backbone = tiny[name]
    photograph = skimage.data.cat()
    theirs = create_transform(**resolve_data_config({}, model=module))(Image.fromarray(photograph))
    # theirs rounds the resized side to whole pixels before it crops
    assert (backbone.transform(photograph) - theirs).abs().mean() < 0.02


def test_blocks_are_read_at_the_class_token_or_the_mean_of_the_patches(tiny):
    x = torch.rand(1, 3, 160, 160)
    for name, by_class in (("test_vit", True), ("test_vit2", False)):
        module, backbone = tiny[name]
        with torch.no_grad():
            last = module.forward_intermediates(x, norm=False, output_fmt="NLC", return_prefix_tokens=True)[
                1
            ][-1]
            patches, prefix = last
            expected = prefix[:, 0] if by_class else patches.mean(1)
            layer = backbone.layers[-2]
            assert torch.allclose(forward_layer(backbone, x, layer), expected, atol=1e-5)
        assert (backbone.tokens, backbone.prefix_tokens) == ("class" if by_class else "mean", 1)


def test_register_tokens_are_no_patches():
    module = timm.create_model("test_vit", reg_tokens=4, class_token=False, global_pool="avg").eval()
    found = look(module)
    assert (found["tokens"], found["prefix_tokens"]) == ("mean", 4)


def test_maps_with_channels_last_and_two_heads():
    with torch.device("meta"):
        swin = timm.create_model("swin_tiny_patch4_window7_224").eval()
        entry = architecture("timm:swin_tiny_patch4_window7_224").seen_in(swin)
        assert entry.maps == "NHWC"
        assert entry.dim == 768
    module = timm.create_model("deit_tiny_distilled_patch16_224").eval()
    seen = architecture("timm:deit_tiny_distilled_patch16_224").seen_in(module)
    assert (seen.head, seen.prefix_tokens, seen.tokens) == ("head", 2, "class")
    x = torch.rand(1, 3, 224, 224)
    backbone = backbone_of(module, seen)
    new = replace_head(backbone, ["car", "dog"])
    with torch.no_grad():
        assert new.module(x).shape == (1, 2)


def backbone_of(module, entry):
    from biastransfer.backbones.loading import _backbone

    return _backbone("x", entry, module, "x")


def test_swin_maps_are_averaged_over_space():
    with torch.device("meta"):
        module = timm.create_model("swin_tiny_patch4_window7_224").eval()
        backbone = backbone_of(module, architecture("timm:swin_tiny_patch4_window7_224"))
        x = torch.rand(2, 3, 224, 224)
        widths = [forward_layer(backbone, x, layer).shape for layer in backbone.layers]
    assert widths == [(2, 96), (2, 192), (2, 384), (2, 768), (2, 768)]


@pytest.mark.parametrize(
    ("shape", "axes"),
    [((2, 5, 3, 3), (2, 3)), ((2, 3, 3, 5), (1, 2)), ((2, 3, 3, 3), (2, 3)), ((2, 4, 3, 2), (2, 3))],
)
def test_square_map_is_averaged_over_its_equal_sides(tiny, shape, axes):
    output = torch.rand(shape)
    assert torch.equal(pool(tiny["test_resnet"][1], output), output.mean(axes))
    assert torch.equal(pool(tiny["test_resnet"][0], output), output.mean(axes))


def test_tokens_are_pooled_by_what_they_are(tiny):
    """Some networks add the class token behind their first blocks: there all tokens are patches."""
    by_class, by_mean = tiny["test_vit"][1], tiny["test_vit2"][1]
    with_class, patches = torch.rand(2, 1 + 9, 4), torch.rand(2, 9, 4)
    assert torch.equal(pool(by_class, with_class), with_class[:, 0])
    assert torch.equal(pool(by_mean, with_class), with_class[:, 1:].mean(1))
    assert torch.equal(pool(by_class, patches), patches.mean(1))
    assert torch.equal(pool(by_mean.module, with_class), with_class.mean(1))
    assert torch.equal(pool(by_mean, (with_class, patches)), pool(by_mean, with_class))


def test_lists_of_blocks_and_lists_of_classifiers():
    with torch.device("meta"):
        twins = look(timm.create_model("twins_pcpvt_small"))
        crossvit = timm.create_model("crossvit_tiny_240")
    assert [*twins["layer_modules"].items()][:2] == [("stage1", "blocks.0.0"), ("stage2", "blocks.0.1")]
    with pytest.raises(ValueError, match=r"must classify one embedding; CrossVit classifies 2 at once"):
        look(crossvit)


def test_layout_of_the_authors_goes_through_timms_own_rule(tiny, folder):
    module, _ = tiny["test_convnext"]

    def theirs(name):
        name = re.sub(r"^stem\.", "downsample_layers.0.", name)
        name = re.sub(r"^stages\.(\d)\.downsample\.", r"downsample_layers.\1.", name)
        name = re.sub(r"^stages\.(\d)\.blocks\.", r"stages.\1.", name)
        name = name.replace("conv_dw", "dwconv").replace("mlp.fc", "pwconv")
        return name.replace("head.fc.", "head.").replace("head.norm.", "norm.")

    state = {theirs(name): value for name, value in module.state_dict().items()}
    torch.save({"model": state}, folder / "authors.pth")
    backbone = load_backbone("test_convnext", weights=folder / "authors.pth")
    x = torch.rand(1, 3, 160, 160)
    with torch.no_grad():
        assert torch.equal(backbone.module(x), module(x))


@pytest.mark.parametrize("name", ["test_vit", "test_nfnet"])
def test_checkpoint_of_any_name_is_rebuilt(tiny, folder, name):
    new = replace_head(tiny[name][1], ["car", "dog"], seed=1)
    again = load_backbone(save(new, folder / "again.safetensors"))
    x = torch.rand(1, 3, 160, 160)
    with torch.no_grad():
        assert torch.equal(again.module(x), new.module(x))
        layer = new.layers[1]
        assert torch.equal(forward_layer(again, x, layer), forward_layer(new, x, layer))
    assert (again.name, again.transform, again.classes) == (f"timm:{name}", new.transform, ("car", "dog"))


def test_embedding_of_a_timm_network(tiny, folder):
    module, backbone = tiny["test_resnet"]
    Image.fromarray(skimage.data.cat()).save(folder / "cat.png")
    Image.fromarray(skimage.data.coffee()).save(folder / "coffee.png")
    result = embed(backbone, [folder / "cat.png", folder / "coffee.png"], cache=False, device="cpu")
    x = torch.stack([backbone.transform(picture) for picture in (skimage.data.cat(), skimage.data.coffee())])
    with torch.no_grad():
        expected = module.forward_head(module.forward_features(x), pre_logits=True).numpy()
    assert np.abs(result.vectors - expected).max() < 1e-5 * np.abs(expected).max()


@pytest.fixture
def narrow(monkeypatch):
    """Make open_clip's towers small; names, tags and settings stay."""
    whole = open_clip.get_model_config

    def small(name):
        config = whole(name)
        return config and {**config, "vision_cfg": {**config["vision_cfg"], "width": 64, "layers": 2}}

    monkeypatch.setattr("open_clip.get_model_config", small)


def test_plain_clip_name_gets_the_activation_of_its_weights(narrow, folder):
    """The openai weights were trained with QuickGELU: under the plain name open_clip would build GELU."""
    name = "open_clip:ViT-B-32:openai"
    tower = build_tower("ViT-B-32", True, 3)
    torch.save(
        {"state_dict": {f"module.{key}": v for key, v in tower.state_dict().items()}}, folder / "clip.pt"
    )
    backbone = load_backbone(name, weights=folder / "clip.pt")
    again = load_backbone(save(replace_head(backbone, ["a"]), folder / "clip.safetensors"))
    x = torch.rand(1, 3, 224, 224)
    with torch.no_grad():
        assert torch.equal(backbone.module(x), tower.eval()(x))
        assert not torch.allclose(build_tower("ViT-B-32", False, 3).eval()(x), tower(x), atol=1e-5)
        assert torch.equal(forward_layer(again, x), backbone.module(x))
    assert "QuickGELU" in backbone.source
    assert backbone.layers == ("stem", "block1", "block2", "embedding")
    assert backbone.classes == ()


def test_towers_of_other_kinds_have_layers_and_their_own_transform():
    resnet, siglip = (
        clip_architecture(f"open_clip:{name}") for name in ("RN50:openai", "ViT-B-16-SigLIP:webli")
    )
    assert (siglip.transform.mean, siglip.transform.fit, siglip.transform.size) == ((0.5,) * 3, "squash", 224)
    with torch.device("meta"):
        for entry, dim, first in ((resnet, 1024, "stage1"), (siglip, 768, "block1")):
            module = entry.build(0)
            backbone = backbone_of(module, entry)
            x = torch.rand(2, 3, 224, 224)
            shapes = [forward_layer(backbone, x, layer).shape for layer in backbone.layers]
            assert (backbone.dim, backbone.layers[0]) == (dim, first)
            assert shapes[-1] == module.eval()(x).shape == (2, dim)
            assert all(len(shape) == 2 for shape in shapes)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("timm:vit_smal_patch16_224", "Near it: vit_small_patch16_224"),
        ("open_clip:ViT-B-33:openai", "architectures near it: ViT-B-32"),
        ("open_clip:ViT-B-32:opnai", r"tags near it: openai, laion400m_e31"),
        ("open_clip:ViT-B-32", "written open_clip:ARCHITECTURE:TAG"),
        ("timm:vit_base_patch16_sapiens2.fb", r"square colour pictures; .* takes \(3, 1024, 768\)"),
        ("vit_smal_patch16_224", "Did you mean 'vit_small_patch16_224' or"),
        ("resnext50_32x4", "Did you mean 'resnet50' or 'resnext50_32x4d'"),
        ("timm:efficientnet_b8", "must have published weights; timm names none. Pass weights=PATH"),
    ],
)
def test_names_that_mean_nothing(name, words):
    with pytest.raises(ValueError, match=words):
        load_backbone(name)


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 5, 3), nn.BatchNorm2d(5)

    def forward(self, x):
        return self.norm(self.conv(x)).relu()


@pytest.fixture(scope="module")
def program(folder):
    torch.manual_seed(0)
    module = Small().eval()
    module.norm.running_var.fill_(4.0)
    torch.jit.script(module).save(folder / "net.pt")
    return module, folder / "net.pt"


def test_torchscript_program_runs_as_a_black_box_when_trusted(program, folder):
    module, file = program
    with pytest.raises(ValueError, match=r"is a TorchScript program.*trust=True.*architecture=NAME"):
        load_backbone(file)
    backbone = load_backbone(str(file), trust=True)
    x = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        expected = module(x).mean((2, 3))
        assert torch.allclose(forward_layer(backbone, x), expected, atol=1e-6)
        new = replace_head(backbone, ["car", "dog", "cat"])
        assert torch.allclose(new.module(x), new.module.head(expected), atol=1e-6)
    assert (backbone.layers, backbone.dim, backbone.scripted) == (("embedding",), 5, True)
    assert "as for ImageNet" in backbone.source
    assert backbone.transform(np.zeros((9, 9, 3), np.uint8))[0, 0, 0] == pytest.approx(-0.485 / 0.229)
    Image.fromarray(skimage.data.cat()).save(folder / "cat.png")
    vectors = embed(backbone, [folder / "cat.png"], cache=False, device="cpu").vectors
    with torch.no_grad():
        own = module(backbone.transform(skimage.data.cat())[None]).mean((2, 3)).numpy()
    assert np.allclose(vectors, own, atol=1e-5)
    with pytest.raises(ValueError, match="TorchScript program, which no checkpoint can rebuild"):
        save(new, folder / "no.safetensors")


class Negated(Small):
    def forward(self, x):
        return -self.norm(self.conv(x)).relu()


def test_cache_tells_programs_of_the_same_weights_apart(program, folder, monkeypatch):
    monkeypatch.setenv("BIASTRANSFER_CACHE", str(folder / "cache"))
    other = Negated().eval()
    other.load_state_dict(program[0].state_dict())
    torch.jit.script(other).save(folder / "negated.pt")
    Image.fromarray(skimage.data.cat()).save(folder / "cat.png")
    first, second = (load_backbone(file, trust=True) for file in (program[1], folder / "negated.pt"))
    vectors = embed(first, [folder / "cat.png"], device="cpu").vectors
    assert np.array_equal(embed(second, [folder / "cat.png"], device="cpu").vectors, -vectors)


def test_torchscript_program_of_another_shape(folder):
    torch.jit.script(nn.Flatten(0)).save(folder / "flat.pt")
    with pytest.raises(ValueError, match=r"must turn a picture \(1, 3, 224, 224\) .*\(150528,\)"):
        load_backbone(folder / "flat.pt", trust=True)


def test_file_that_does_not_say_what_it_holds(folder):
    safetensors.torch.save_file(Small().state_dict(), folder / "plain.safetensors")
    with pytest.raises(ValueError, match=r"which network it holds; name it with .*architecture="):
        load_backbone(folder / "plain.safetensors")
    torch.save(Small().state_dict(), folder / "plain.pth")
    with pytest.raises(ValueError, match=r"which network it holds; name it with .*architecture="):
        load_backbone(folder / "plain.pth")
    with pytest.raises(ValueError, match=r"architecture goes with a file; got the name 'resnet18'"):
        load_backbone("resnet18", architecture="resnet18")
    with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
        load_backbone(folder / "none.pth", architecture="test_resnet")


class _Anything:
    pass


def test_pickle_behind_a_backbone_needs_trust(tiny, folder):
    module, _ = tiny["test_resnet"]
    torch.save({"state_dict": module.state_dict(), "config": _Anything()}, folder / "pickled.pth")
    with pytest.raises(ValueError, match=r"tensors and plain values only.*trust"):
        load_backbone("test_resnet", weights=folder / "pickled.pth")
    assert load_backbone("test_resnet", weights=folder / "pickled.pth", trust=True).coverage.coverage == 1


def test_source_says_which_file(tiny, folder):
    file = folder / "test_vit.safetensors"
    begins = hashlib.sha256(file.read_bytes()).hexdigest()[:8]
    assert tiny["test_vit"][1].source.endswith(f"test_vit.safetensors (sha256 {begins}…)")
    state = tiny["test_vit"][0].state_dict()
    state.pop("norm.bias")
    safetensors.torch.save_file(state, folder / "less.safetensors")
    less = load_backbone("test_vit", weights=folder / "less.safetensors")
    assert "1 of 78 tensors were not in it" in less.source
    assert less.coverage.unmatched == ("norm.bias: not in the file",)


@pytest.fixture
def empty_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return monkeypatch


@contextlib.contextmanager
def silent():
    """Give the address of a machine that takes the call and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@contextlib.contextmanager
def absent():
    """Give an address where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{free.getsockname()[1]}"


@pytest.mark.parametrize("machine", [silent, absent])
def test_without_a_network_one_sentence_comes_at_once(empty_machine, machine):
    with machine() as address:
        empty_machine.setattr("huggingface_hub.constants.ENDPOINT", address)
        start = time.perf_counter()
        with pytest.raises(FileNotFoundError, match=r"needs its weights as .* which is not there; ") as error:
            load_backbone("timm:test_vit")
    assert time.perf_counter() - start < 4  # two seconds, and a busy machine
    assert "\n" not in str(error.value)


class _Hub(http.server.BaseHTTPRequestHandler):
    """A model hub with one file."""

    data = b""

    def do_HEAD(self):
        there = self.path.endswith("/resolve/main/model.safetensors")
        self.send_response(200 if there else 404)
        self.send_header("Content-Length", str(len(self.data)))
        self.send_header("ETag", f'"{hashlib.sha256(self.data).hexdigest()}"')
        self.send_header("X-Repo-Commit", "1" * 40)
        self.end_headers()

    def do_GET(self):
        self.do_HEAD()
        self.wfile.write(self.data)

    def log_message(self, *_arguments):
        pass


def test_weights_come_from_the_hub_where_it_answers(empty_machine, tiny, folder):
    module, _ = tiny["test_vit"]
    handler = type("Hub", (_Hub,), {"data": (folder / "test_vit.safetensors").read_bytes()})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        empty_machine.setattr("huggingface_hub.constants.ENDPOINT", address)
        template = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        empty_machine.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
        with pytest.raises(FileNotFoundError, match=r"which is not there; save other\.bin of https"):
            find(Weights("other.bin", hub="some/net", hub_files=("other.bin",)), "other")
        backbone = load_backbone("timm:test_vit")
        server.shutdown()
    x = torch.rand(1, 3, 160, 160)
    with torch.no_grad():
        assert torch.equal(backbone.module(x), module(x))


def test_file_in_the_cache_of_the_hub_is_used(empty_machine, tmp_path):
    empty_machine.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    snapshot = tmp_path / "hub" / "models--some--net" / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "pytorch_model.bin").write_bytes(b"x")
    references = snapshot.parents[1] / "refs"
    references.mkdir()
    (references / "main").write_text("0" * 40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("huggingface_hub.file_download.HF_HUB_CACHE", str(tmp_path / "hub"), raising=False)
        assert find(Weights("a.safetensors", hub="some/net"), "a") == snapshot / "pytorch_model.bin"


def test_file_below_data_raw_weights_comes_first(empty_machine, tmp_path, tiny):
    place = tmp_path / "data" / "raw" / "weights" / "test_vit.r160_in1k.safetensors"
    place.parent.mkdir(parents=True)
    safetensors.torch.save_file(tiny["test_vit"][0].state_dict(), place)
    backbone = load_backbone("test_vit")
    assert dataclasses.asdict(backbone.transform) == dataclasses.asdict(tiny["test_vit"][1].transform)
    assert backbone.coverage.coverage == 1
