import argparse
import json
import pickle
import struct
import zipfile

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn

from biastransfer.backbones import load_backbone, replace_head
from biastransfer.checkpoints import load_into, read_meta, save


def small(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 2, 1))


NAMES = 8  # tensors of `small` without the counter of batches


def prefixed(state, prefix):
    return {prefix + name: value for name, value in state.items()}


def same(first, second):
    return all(torch.equal(value, second.state_dict()[name]) for name, value in first.state_dict().items())


@pytest.fixture(scope="module")
def finetuned():
    backbone = load_backbone("squeezenet1_1")
    return replace_head(backbone, ["car", "stop sign"], seed=3)


def test_saved_backbone_is_rebuilt_whole(finetuned, tmp_path):
    changed = type(finetuned)(**{**vars(finetuned), "transform": finetuned.transform.with_size(64)})
    path = save(changed, tmp_path / "best.safetensors", seed=3, recipe={"lr": 0.01}, epoch=4)
    again = load_backbone(path)
    x = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(again.module(x), finetuned.module(x))
    assert (again.name, again.classes, again.own_head) == ("squeezenet1_1", ("car", "stop sign"), False)
    assert again.transform == changed.transform
    assert not again.module.training
    meta = read_meta(path)
    assert (meta["seed"], meta["recipe"], meta["epoch"]) == (3, {"lr": 0.01}, 4)


def test_pretrained_backbone_keeps_its_own_head(tmp_path):
    backbone = load_backbone("squeezenet1_1")
    again = load_backbone(save(backbone, tmp_path / "own.safetensors"))
    assert same(again.module, backbone.module)
    assert again.own_head
    assert again.classes == backbone.classes


def test_same_backbone_same_bytes(finetuned, tmp_path):
    first, second = save(finetuned, tmp_path / "a.safetensors"), save(finetuned, tmp_path / "b.safetensors")
    assert first.read_bytes() == second.read_bytes()


def test_save_refuses_names_it_needs(finetuned, tmp_path):
    with pytest.raises(ValueError, match=r"'classes'.* written by save itself"):
        save(finetuned, tmp_path / "x.safetensors", classes=["a"])
    assert list(tmp_path.iterdir()) == []


def test_flipped_bit_in_a_checkpoint_is_seen(finetuned, tmp_path):
    path = save(finetuned, tmp_path / "best.safetensors")
    data = bytearray(path.read_bytes())
    data[-1000] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match="not those that were saved; the file is damaged"):
        load_backbone(path)


def test_what_is_no_checkpoint_of_ours(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
        load_backbone(tmp_path / "none.safetensors")
    (tmp_path / "half.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(ValueError, match="not a whole safetensors file"):
        load_backbone(tmp_path / "half.safetensors")
    safetensors.torch.save_file(small().state_dict(), tmp_path / "plain.safetensors")
    with pytest.raises(ValueError, match=r"does not say which network it holds; .* load_into"):
        read_meta(tmp_path / "plain.safetensors")


@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: state,
        lambda state: {"state_dict": prefixed(state, "module."), "epoch": 3},
        lambda state: {"state_dict": prefixed(state, "backbone.") | {"head.weight": torch.rand(2, 2)}},
        lambda state: {"model": prefixed(state, "model."), "args": argparse.Namespace(lr=0.1)},
        lambda state: {
            "classy_state_dict": {"base_model": {"model": {"trunk": prefixed(state, "_feature_blocks.")}}}
        },
        lambda state: {
            "state_dict": state,
            "best": np.float64(0.5),
            "optimizer": {"state": {0: {"step": 3}}},
        },
        lambda state: {"pytorch-lightning_version": "2.0", "state_dict": prefixed(state, "net.encoder.")},
        lambda state: {"pytorch-lightning_version": "2.0", "state_dict": prefixed(state, "model.")},
    ],
    ids=["plain", "module", "backbone", "namespace", "vissl", "numpy scalar", "lightning", "lightning model"],
)
def test_layouts_of_pth(wrap, tmp_path):
    source, target = small(1), small(2)
    torch.save(wrap(source.state_dict()), tmp_path / "model.pth")
    report = load_into(target, tmp_path / "model.pth")
    assert (report.matched, report.total, report.coverage, report.unmatched) == (NAMES, NAMES, 1.0, ())
    source[1].num_batches_tracked += target[1].num_batches_tracked
    assert same(source, target)


def test_momentum_encoder_is_not_taken(tmp_path):
    query, key, target = small(1), small(2), small(3)
    both = prefixed(key.state_dict(), "module.encoder_k.") | prefixed(query.state_dict(), "module.encoder_q.")
    torch.save({"state_dict": both}, tmp_path / "moco.pth.tar")
    report = load_into(target, tmp_path / "moco.pth.tar")
    assert same(query, target)
    assert report.prefix == "state_dict.module.encoder_q."
    assert report.alternatives == ("state_dict.module.encoder_k.",)
    load_into(target, tmp_path / "moco.pth.tar", prefix="state_dict.module.encoder_k.")
    assert same(key, target)


def test_npz_and_safetensors_and_half_precision(tmp_path):
    source = small(1)
    state = source.state_dict()
    np.savez(
        tmp_path / "m.npz",
        **{f"params/{name.replace('.', '/')}": value.numpy() for name, value in state.items()},
    )
    safetensors.torch.save_file(prefixed(state, "module."), tmp_path / "m.safetensors")
    torch.save({name: value.half() for name, value in state.items()}, tmp_path / "half.pth")
    for file in ("m.npz", "m.safetensors"):
        target = small(2)
        assert load_into(target, tmp_path / file).coverage == 1
        assert same(source, target)
    target = small(2)
    load_into(target, tmp_path / "half.pth")
    assert target[0].weight.dtype == torch.float32
    assert torch.allclose(target[0].weight, source[0].weight, atol=1e-3)


def test_tensors_saved_on_a_gpu(tmp_path):
    """A file whose tensors say that they lay on a GPU, as written where there was one."""
    source, target = small(1), small(2)
    torch.save({"state_dict": source.state_dict()}, tmp_path / "cpu.pth")
    with zipfile.ZipFile(tmp_path / "cpu.pth") as old, zipfile.ZipFile(tmp_path / "gpu.pth", "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("data.pkl"):
                assert data.count(b"X\x03\x00\x00\x00cpu") >= 1
                data = data.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")
            new.writestr(name, data)
    assert load_into(target, tmp_path / "gpu.pth").coverage == 1
    assert same(source, target)
    assert all(not value.is_cuda for value in target.parameters())


def test_file_that_python_2_wrote(tmp_path):
    """Names as Python 2 pickled them, bytes of no encoding, in the layout before archives (Places365)."""
    source, target = small(1), small(2)
    state = prefixed(source.state_dict(), "module.")
    torch.save(
        {"arch": "small", "best_prec1": 54.7, "state_dict": state},
        tmp_path / "old.pth.tar",
        pickle_protocol=2,
        _use_new_zipfile_serialization=False,
    )
    data = (tmp_path / "old.pth.tar").read_bytes()
    for name in (*state, "arch", "state_dict", "best_prec1"):
        text = name.encode()
        unicode, old = b"X" + struct.pack("<I", len(text)) + text, b"U" + bytes([len(text)]) + text
        assert data.count(unicode) == 1
        data = data.replace(unicode, old)
    (tmp_path / "old.pth.tar").write_bytes(data)
    assert load_into(target, tmp_path / "old.pth.tar").prefix == "state_dict.module."
    source[1].num_batches_tracked += target[1].num_batches_tracked
    assert same(source, target)


@pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning")
def test_torchscript_archive_is_read_and_not_run(tmp_path, monkeypatch):
    source, target = small(1).half(), small(2)
    source[1].running_mean.fill_(0.25)
    torch.jit.save(torch.jit.script(source), tmp_path / "net.pt")
    monkeypatch.setattr(
        "torch.jit.load", lambda *_arguments, **_settings: pytest.fail("the program was loaded")
    )
    assert load_into(target, tmp_path / "net.pt").coverage == 1
    assert torch.equal(target[3].weight, source[3].weight.float())
    assert target[1].running_mean.tolist() == [0.25] * 4


def test_hostile_torchscript_archive_runs_nothing(tmp_path):
    touched = tmp_path / "touched"
    with zipfile.ZipFile(tmp_path / "evil.pt", "w") as archive:
        archive.writestr("net/data.pkl", pickle.dumps({"0.weight": _Touches(touched)}))
        archive.writestr("net/constants.pkl", b"")
    with pytest.raises(ValueError, match="it holds 0 of"):
        load_into(small(), tmp_path / "evil.pt")
    assert not touched.exists()
    with zipfile.ZipFile(tmp_path / "cut.pt", "w") as archive:
        archive.writestr("net/data.pkl", b"\x80\x02}q")
        archive.writestr("net/constants.pkl", b"")
    with pytest.raises(ValueError, match="is not a whole TorchScript archive"):
        load_into(small(), tmp_path / "cut.pt")


def test_head_of_a_backbone_does_not_count_and_is_said(finetuned, tmp_path):
    state = finetuned.module.state_dict()
    without = {name: value for name, value in state.items() if not name.startswith("classifier.")}
    torch.save(prefixed(without, "backbone."), tmp_path / "body.pth")
    target = replace_head(load_backbone("squeezenet1_1"), ["car", "stop sign"], seed=9)
    kept = target.module.classifier[1].weight.clone()
    report = load_into(target, tmp_path / "body.pth")
    assert (report.matched, report.total, report.coverage) == (len(without), len(without), 1.0)
    assert report.head.startswith("left as it was (classifier.1.weight: not in the file; ")
    assert torch.equal(target.module.classifier[1].weight, kept)
    torch.save(state | {"classifier.1.bias": torch.rand(5)}, tmp_path / "half.pth")
    report = load_into(target, tmp_path / "half.pth")
    assert "classifier.1.bias: (5,) in the file, (2,) in the network" in report.head
    assert torch.equal(target.module.classifier[1].weight, kept), "a head is filled whole or not at all"
    torch.save(state, tmp_path / "whole.pth")
    assert load_into(target, tmp_path / "whole.pth").head == "filled"
    few = dict(list(without.items())[:-3])
    torch.save(few, tmp_path / "few.pth")
    with pytest.raises(
        ValueError, match="95% of the network's tensors, the head left out; it holds 47 of 50"
    ):
        load_into(target, tmp_path / "few.pth")


def test_low_coverage_lists_what_did_not_match_and_loads_nothing(tmp_path):
    source, target = small(1).state_dict(), small(2)
    before = small(2)
    source["3.weight"] = torch.rand(7, 4, 1, 1)
    source["other.weight"] = source.pop("0.weight")
    torch.save(source, tmp_path / "model.pth")
    with pytest.raises(ValueError, match="at least 95% of the network's tensors") as error:
        load_into(target, tmp_path / "model.pth")
    assert f"6 of {NAMES} (75.0%)" in str(error.value)
    assert "0.weight: not in the file" in str(error.value)
    assert "3.weight: (7, 4, 1, 1) in the file, (2, 4, 1, 1) in the network" in str(error.value)
    assert "other.weight" in str(error.value)
    assert same(before, target)
    report = load_into(target, tmp_path / "model.pth", min_coverage=0.5)
    assert report.coverage == 0.75
    assert report.unused == ("3.weight", "other.weight")


@pytest.mark.parametrize("content", [{}, {"state_dict": {}}, {"epoch": 3}, {"fc.weight": torch.rand(2, 2)}])
def test_a_file_without_the_weights_is_an_error(content, tmp_path):
    torch.save(content, tmp_path / "model.pth")
    with pytest.raises(ValueError, match=rf"it holds 0 of {NAMES} \(0.0%\)"):
        load_into(small(), tmp_path / "model.pth")


class _Touches:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_pickle_runs_only_when_trusted(tmp_path):
    touched = tmp_path / "touched"
    torch.save({"state_dict": small(1).state_dict(), "hook": _Touches(touched)}, tmp_path / "model.pth")
    with pytest.raises(ValueError, match=r"tensors and plain values only.*trust_pickle=True"):
        load_into(small(2), tmp_path / "model.pth")
    assert not touched.exists()
    assert load_into(small(2), tmp_path / "model.pth", trust_pickle=True).coverage == 1


def test_whole_module_needs_trust(tmp_path):
    source, target = small(1), small(2)
    torch.save(source, tmp_path / "module.pt")
    with pytest.raises(ValueError, match="trust_pickle"):
        load_into(target, tmp_path / "module.pt")
    load_into(target, tmp_path / "module.pt", trust_pickle=True)
    assert same(source, target)


def test_weights_that_are_not_finite(tmp_path):
    state = small(1).state_dict()
    state["0.bias"][1] = float("nan")
    torch.save(state, tmp_path / "model.pth")
    with pytest.raises(ValueError, match=r"weights must be finite; .* 0\.bias"):
        load_into(small(2), tmp_path / "model.pth")


@pytest.mark.parametrize("name", ["cut.pth", "cut.npz", "cut.safetensors", "text.pth"])
def test_damaged_files(name, tmp_path):
    state = small(1).state_dict()
    torch.save(state, tmp_path / "cut.pth")
    np.savez(tmp_path / "cut.npz", **{key: value.numpy() for key, value in state.items()})
    safetensors.torch.save_file(state, tmp_path / "cut.safetensors")
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    (tmp_path / "text.pth").write_text("<html>not found</html>")
    with pytest.raises(ValueError, match=f"{name} is not a (whole|checkpoint that)") as error:
        load_into(small(2), tmp_path / name)
    assert "trust" not in str(error.value), "a damaged file is not to be trusted"


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
        load_into(small(), tmp_path / "none.pth")


def test_backbone_is_accepted_and_metadata_is_json(finetuned, tmp_path):
    path = save(finetuned, tmp_path / "best.safetensors", note="é")
    other = replace_head(load_backbone("squeezenet1_1"), ["car", "stop sign"], seed=9)
    assert load_into(other, path).coverage == 1
    assert same(other.module, finetuned.module)
    assert json.loads(json.dumps(read_meta(path)))["note"] == "é"
