"""Two processes over gloo give what one process gives: embeddings, scores, gradients, checkpoints, files."""

import dataclasses
import os
import pickle
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from biastransfer import checkpoints, distributed
from biastransfer.backbones import Transform, load_backbone
from biastransfer.embed import embed
from biastransfer.finetune import Recipe, finetune, make_target, scoring
from biastransfer.finetune.batch_norm import SharedBatchNorm, share
from biastransfer.finetune.pictures import Pictures
from biastransfer.finetune.schedules import make_optimizer
from biastransfer.finetune.scoring import predict
from biastransfer.finetune.training import epoch_batches, train_epoch

QUICK = Recipe("quick", epochs=2, lr=0.05, batch_size=8, size=32, shift=2)
CPU = torch.device("cpu")
PLAIN = Transform(12, 1.0, "bilinear", (0.5,) * 3, (0.25,) * 3)
STEPS = [(norm, accumulate) for norm in (False, True) for accumulate in (1, 2)]


def toy(norm):
    torch.manual_seed(0)
    middle = [nn.BatchNorm2d(6)] if norm else []
    return nn.Sequential(
        nn.Conv2d(3, 6, 3), *middle, nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(24, 3)
    )


def drawn(n=11):
    rng = np.random.default_rng(0)
    labels = (rng.random((n, 3)) < 0.5).astype(np.float32)
    labels[::4, 1] = np.nan  # so that ranks hold different numbers of known labels
    pixels = rng.integers(0, 256, (n, 12, 12, 3)).astype(np.uint8)
    return Pictures(tuple(map(str, range(n))), PLAIN, pixels), labels


def stepped(norm, accumulate):
    """Train a toy for two epochs; return loss and weights."""
    pictures, labels = drawn()
    module = share(toy(norm), CPU)
    recipe = dataclasses.replace(QUICK, accumulate=accumulate)
    trained, optimizer = distributed.wrapped(module, CPU), make_optimizer(module, recipe, 0.05)
    settings = {"seed": 3, "device": CPU}
    losses = [train_epoch(trained, optimizer, pictures, labels, recipe, epoch=k, **settings) for k in (1, 2)]
    return losses, {name: value.numpy() for name, value in module.state_dict().items()}


def scored():
    scoring._scoring_batch = lambda *_: 2  # 11 pictures: batches of 2, the last of 1
    return predict(toy(True), drawn()[0], CPU, QUICK)


def files_in(folder: Path):
    return [str(folder / f"{k}.png") for k in range(9)]


def a_target(folder: Path):
    files = files_in(folder)
    labels = np.array([[1, 0], [0, 1], [1, 1]] * 3, dtype=float)
    return make_target("ab", (files[:7], labels[:7]), (files[7:8], labels[:1]), (files[8:], labels[2:3]))


def work(folder: Path, root: str) -> dict:
    """Do everything once, on however many ranks there are."""
    torch.set_num_threads(1)
    distributed.start()
    os.environ.update(BIASTRANSFER_ROOT=root, BIASTRANSFER_CACHE=f"{root}/cache")
    asked = [*files_in(folder), str(folder / "broken.png")]
    first = embed(load_backbone("squeezenet1_1"), asked)
    recipe = dataclasses.replace(QUICK, lr=0.01)
    result = finetune("efficientnet_lite0", a_target(folder), run="r", target_name="t", recipe=recipe)
    return {
        "steps": [stepped(*case) for case in STEPS],
        "logits": scored(),
        "embeddings": [first, embed(load_backbone("squeezenet1_1"), asked)],
        "history": result.history,
        "rank": distributed.rank(),
    }


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _on_ranks(folder, root, count=2, what="work", ends=0):
    script = (
        f"import pathlib, pickle, sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
        f"import test_finetune_distributed as t\n"
        f"found = t.{what}(pathlib.Path({str(folder)!r}), {str(root)!r})\n"
        f"pathlib.Path({str(folder)!r}, f\"rank{{found['rank']}}\").write_bytes(pickle.dumps(found))\n"
    )
    group = {"WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1"}
    group |= {"MASTER_PORT": _free_port(), "OMP_NUM_THREADS": 1}
    processes = []
    for rank in range(count):
        own = {"RANK": rank, "LOCAL_RANK": rank, **group}
        environment = os.environ | {name: str(value) for name, value in own.items()}
        processes.append(subprocess.Popen([sys.executable, "-c", script], env=environment))
    if ends:  # the first rank dies; torchrun would end the others
        assert processes[0].wait(timeout=240) == ends
        for process in processes[1:]:
            process.kill()
            process.wait()
        return []
    assert [process.wait(timeout=240) for process in processes] == [0] * count
    return [pickle.loads((folder / f"rank{rank}").read_bytes()) for rank in range(count)]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """What one process found, what each of two ranks found, and the folders that both wrote."""
    folder = tmp_path_factory.mktemp("ranks")
    rng = np.random.default_rng(0)
    for file in files_in(folder):
        Image.fromarray(rng.integers(0, 256, (40, 50, 3)).astype(np.uint8)).save(file)
    (folder / "broken.png").write_bytes(b"no picture")
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BIASTRANSFER_ROOT", "")
        patch.setenv("BIASTRANSFER_CACHE", "")
        patch.setattr(scoring, "_scoring_batch", scoring._scoring_batch)
        one = work(folder, str(folder / "one"))
    torch.set_num_threads(threads)
    return one, _on_ranks(folder, folder / "two"), folder


def trained(folder: Path, root: str, report=None) -> dict:
    torch.set_num_threads(1)
    distributed.start()
    os.environ.update(BIASTRANSFER_ROOT=root)
    recipe = dataclasses.replace(QUICK, lr=0.01, epochs=3)
    names = {"run": "r", "target_name": "t", "recipe": recipe}
    result = finetune("efficientnet_lite0", a_target(folder), **names, report=report)
    return {"rank": distributed.rank(), "resumed": result.resumed_from}


def killed(folder: Path, root: str) -> dict:
    return trained(folder, root, lambda sentence: os._exit(9) if "epoch 2" in sentence else None)


@pytest.mark.slow
def test_killed_on_two_ranks_it_goes_on_to_the_same_bytes(tmp_path):
    rng = np.random.default_rng(0)
    for file in files_in(tmp_path):
        Image.fromarray(rng.integers(0, 256, (40, 50, 3)).astype(np.uint8)).save(file)
    whole = _on_ranks(tmp_path, tmp_path / "whole", what="trained")
    _on_ranks(tmp_path, tmp_path / "cut", what="killed", ends=9)
    again = _on_ranks(tmp_path, tmp_path / "cut", what="trained")
    assert [found["resumed"] for found in whole + again] == [0, 0, 2, 2]
    for name in ("best.safetensors", "last.safetensors", "*.csv"):
        one, other = (next((tmp_path / part).rglob(name)).read_bytes() for part in ("whole", "cut"))
        assert one == other, name


@pytest.mark.parametrize("case", range(len(STEPS)), ids=[f"norm={n},parts={a}" for n, a in STEPS])
def test_gradients_are_those_of_the_whole_batch(both, case):
    one, ranks, _ = both
    losses, weights = one["steps"][case]
    for found in ranks:
        np.testing.assert_allclose(found["steps"][case][0], losses, rtol=1e-5)
        for name, value in found["steps"][case][1].items():
            np.testing.assert_allclose(value, weights[name], rtol=1e-4, atol=2e-6, err_msg=name)
    for name, value in ranks[0]["steps"][case][1].items():  # ranks never drift apart
        assert np.array_equal(value, ranks[1]["steps"][case][1][name]), name


def test_accumulation_gives_the_gradient_of_the_whole_batch(both):
    plain, parts = both[0]["steps"][0], both[0]["steps"][1]
    np.testing.assert_allclose(parts[0], plain[0], rtol=1e-5)
    for name, value in parts[1].items():
        np.testing.assert_allclose(value, plain[1][name], rtol=1e-4, atol=2e-6, err_msg=name)
    normed, in_parts = both[0]["steps"][2], both[0]["steps"][3]  # batch norm sees parts: said, and so
    assert not np.allclose(normed[1]["0.weight"], in_parts[1]["0.weight"], rtol=1e-4, atol=2e-6)


def test_every_picture_is_scored_once_with_the_same_bits(both):
    one, ranks, _ = both
    assert one["logits"].shape == (11, 3)
    assert all(np.array_equal(found["logits"], one["logits"]) for found in ranks)


def test_embeddings_and_their_file_have_the_same_bits(both):
    one, ranks, folder = both
    for found in ranks:
        for theirs, ours in zip(found["embeddings"], one["embeddings"]):
            assert np.array_equal(theirs.vectors, ours.vectors)
            assert theirs.ids == ours.ids == files_in(folder)
            assert theirs.failed.equals(ours.failed)
            assert theirs.computed == ours.computed
    assert [found.computed for found in one["embeddings"]] == [9, 0]
    files = [sorted((folder / name / "cache").rglob("*.safetensors")) for name in ("one", "two")]
    assert [file.name for file in files[0]] == [file.name for file in files[1]]
    assert len(files[0]) == 1


def test_a_finetuning_on_two_ranks_is_that_of_one_process(both):
    one, ranks, folder = both
    for found in ranks:
        assert found["history"].drop(columns="value").equals(one["history"].drop(columns="value"))
        np.testing.assert_allclose(found["history"]["value"], one["history"]["value"], rtol=2e-3, atol=1e-4)
    assert ranks[0]["history"].equals(ranks[1]["history"])
    written = [
        sorted(path.relative_to(folder / name).as_posix() for path in (folder / name).rglob("*.*"))
        for name in ("one", "two")
    ]
    assert written[0] == written[1]  # the first rank alone writes, and nothing is left behind
    last = Path("data", "derived", "checkpoints", "r", "efficientnet_lite0-t-seed0", "last.safetensors")
    ours, theirs = (checkpoints.read(folder / name / last)[1] for name in ("one", "two"))
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        torch.testing.assert_close(theirs[name], value, rtol=1e-2, atol=1e-3, msg=name)


@pytest.mark.parametrize("momentum", [0.1, None])
def test_shared_batch_norm_of_one_process_is_pytorchs(momentum, monkeypatch):
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda tensor: None)
    torch.manual_seed(0)
    plain = nn.BatchNorm2d(4, momentum=momentum)
    nn.init.uniform_(plain.weight)
    nn.init.uniform_(plain.bias)
    other = nn.BatchNorm2d(4, momentum=momentum)
    other.load_state_dict(plain.state_dict())
    shared = SharedBatchNorm(other)
    for _ in range(3):
        x = torch.randn(5, 4, 3, 2) * 3 + 7
        x, again = x.clone().requires_grad_(), x.clone().requires_grad_()
        for norm, values in ((plain, x), (shared, again)):
            (norm(values) * torch.arange(24.0).view(4, 3, 2)).sum().backward()
        torch.testing.assert_close(again.grad, x.grad, rtol=1e-3, atol=1e-4)
    assert list(shared.state_dict()) == list(plain.state_dict())
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(shared.state_dict()[name], value)
    torch.testing.assert_close(shared.weight.grad, plain.weight.grad, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(shared.eval()(x), plain.eval()(x))


def test_a_step_too_small_for_its_parts_is_explained():
    message = r"each of the 6 parts of a step \(ranks × accumulate\) needs a picture; the smallest step has 5"
    with pytest.raises(ValueError, match=message):
        epoch_batches(11, 6, np.random.default_rng(0), parts=6)


def test_a_process_of_its_own_is_the_first_of_one():
    assert (distributed.rank(), distributed.size(), distributed.is_first()) == (0, 1, True)
    assert distributed.gathered(3) == [3]
    assert distributed.total(torch.tensor([2.0])).tolist() == [2.0]
    assert share(toy(True), CPU)[1].__class__ is nn.BatchNorm2d


@pytest.fixture
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def half_precision(scale, accumulate=2):
    """Train the toy for one epoch in fp16; return weights before and after, loss and the scaler's state."""
    pictures, labels = drawn()
    module = toy(False)
    recipe = dataclasses.replace(QUICK, precision="fp16", accumulate=accumulate)
    optimizer = make_optimizer(module, recipe, 0.05)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    loss = train_epoch(
        module, optimizer, pictures, labels, recipe, epoch=1, seed=3, device=CPU, scaler=scaler
    )
    return before, module.state_dict(), loss, scaler.state_dict()


def test_scaled_fp16_stays_near_fp32(one_thread):
    pictures, labels = drawn()
    plain = toy(False)
    settings = {"epoch": 1, "seed": 3, "device": CPU}
    optimizer = make_optimizer(plain, QUICK, 0.05)
    expected = train_epoch(plain, optimizer, pictures, labels, QUICK, **settings)
    before, after, loss, _ = half_precision(2.0**10)
    assert loss == pytest.approx(expected, rel=5e-3)
    for name, value in plain.state_dict().items():
        moved = (value - before[name]).norm()
        assert (after[name] - value).norm() < 0.05 * moved


def test_a_step_whose_scaled_gradients_overflow_is_left_out(one_thread):
    before, after, _, state = half_precision(2.0**40)
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert state["scale"] == 2.0**38  # two steps, each halving it
