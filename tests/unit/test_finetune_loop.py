import dataclasses
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import safetensors.torch
import torch
from PIL import Image

from biastransfer import backbones, checkpoints, paths
from biastransfer.backbones.batches import to_batch
from biastransfer.finetune import curves, find_recipe, finetune, make_target, summary, table, training
from biastransfer.finetune.devices import stated_precision
from biastransfer.finetune.evaluation import mean_average_precision
from biastransfer.finetune.pictures import augment, open_pictures
from biastransfer.finetune.recipes import RECIPES
from biastransfer.finetune.resume import resume_file
from biastransfer.finetune.schedules import make_optimizer, rate_at
from biastransfer.finetune.scoring import predict
from biastransfer.finetune.settings import Recipe
from biastransfer.finetune.training import DivergedError

QUICK = Recipe("quick", epochs=2, lr=0.01, batch_size=5, size=48, shift=4, schedule="cosine", warmup=0.2)
NAMES = {"run": "test", "target_name": "squares"}


def write_squares(folder, counts=(12, 6, 6)):
    """Write pictures of coloured squares on noise, labelled by colour; return the target."""
    rng = np.random.default_rng(0)
    parts = []
    for split, n in zip(("train", "val", "test"), counts):
        labels = (rng.random((n, 3)) < 0.5).astype(float)
        labels[:3] = np.eye(3)
        files = [folder / f"{split}-{i}.png" for i in range(n)]
        for file, present in zip(files, labels):
            picture = rng.integers(0, 60, (80, 80, 3)).astype(np.uint8)
            for channel in np.flatnonzero(present):
                y, x = rng.integers(10, 50, 2)
                picture[y : y + 20, x : x + 20, channel] = 255
            Image.fromarray(picture).save(file)
        parts.append((files, labels))
    return make_target(["red", "green", "blue"], *parts)


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    return write_squares(tmp_path_factory.mktemp("squares"))


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # tiny batches: threads would mostly wait for each other
    yield
    torch.set_num_threads(threads)


def weights(path):
    return checkpoints.read(path)[1]


def train(target, backbone="squeezenet1_1", recipe=QUICK, **options):
    return finetune(backbone, target, recipe=recipe, **{**NAMES, **options})


def bytes_of(result):
    return [file.read_bytes() for file in (result.best, result.last, result.csv)]


@pytest.mark.parametrize("backbone", ["squeezenet1_1", "efficientnet_lite0"])
def test_same_seed_gives_the_same_bytes_and_another_seed_does_not(target, backbone):
    first = train(target, backbone)
    kept = bytes_of(first)
    assert bytes_of(train(target, backbone)) == kept
    other = train(target, backbone, seed=1)
    assert other.best != first.best
    assert checkpoints.read_meta(other.last)["sha256"] != checkpoints.read_meta(first.last)["sha256"]


def test_loop_equals_plain_training(target, monkeypatch):
    """The same three epochs written out with torch alone: one learning rate, no augmentation, no dropout."""
    recipe = dataclasses.replace(QUICK, epochs=3, flip=0.0, shift=0, schedule="constant", batch_size=12)
    result = train(target, "efficientnet_lite0", recipe)
    backbone = backbones.replace_head(
        backbones.load_backbone("efficientnet_lite0"), ["red", "green", "blue"], seed=0
    )
    module = backbone.module.train().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    transform = backbone.transform.with_size(48)
    x = torch.stack([transform(np.array(Image.open(file))) for file in target.train.files])
    y = torch.tensor(target.train.labels)
    losses = []
    for epoch in (1, 2, 3):
        rng = np.random.default_rng([0, epoch])
        rng.integers(2**62)
        order = rng.permutation(12)  # batch 12 of 12: the order moves rounding only
        loss = torch.nn.functional.binary_cross_entropy_with_logits(module(x[order]), y[order])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    np.testing.assert_allclose(curves(result.history)["train_loss"][1:], losses, rtol=1e-4)
    state = weights(result.last)
    assert state.keys() == module.state_dict().keys()
    for name, value in module.state_dict().items():
        torch.testing.assert_close(state[name], value, rtol=1e-3, atol=1e-5, msg=name)


class KilledError(Exception):
    """Stands for a kill in a test."""


@pytest.mark.parametrize(
    ("backbone", "schedule"), [("squeezenet1_1", "plateau"), ("efficientnet_lite0", "cosine")]
)
def test_killed_at_any_step_it_ends_in_the_same_bytes(target, monkeypatch, backbone, schedule):
    recipe = dataclasses.replace(QUICK, schedule=schedule, patience=0, epochs=3)
    expected = bytes_of(train(target, backbone, recipe))
    step, done = training._step, []

    def step_or_die(*arguments):
        done.append(1)
        if len(done) % 4 == 0:  # 3 steps an epoch: dies in each epoch, after its first step, second …
            raise KilledError
        return step(*arguments)

    monkeypatch.setattr(training, "_step", step_or_die)
    kills, result = 0, None
    while result is None:
        try:
            result = train(target, backbone, recipe)
        except KilledError:
            kills += 1
    assert kills >= 2
    assert result.resumed_from == 2
    assert bytes_of(result) == expected
    assert not resume_file("test", backbone, "squares", 0).exists()


def test_killed_while_writing_it_ends_in_the_same_bytes(target, monkeypatch):
    expected = bytes_of(train(target))
    save = checkpoints.save
    for which, after in (("best", True), ("last", False), ("last", True)):

        def save_or_die(backbone, path, *, which=which, after=after, **meta):
            if path.stem == which and not after:
                raise KilledError
            save(backbone, path, **meta)
            if path.stem == which:
                raise KilledError

        monkeypatch.setattr(checkpoints, "save", save_or_die)
        with pytest.raises(KilledError):
            train(target)
        monkeypatch.setattr(checkpoints, "save", save)
        assert bytes_of(train(target)) == expected


def test_progress_of_other_settings_is_not_resumed(target, monkeypatch):
    expected = bytes_of(train(target))
    with pytest.raises(KilledError):
        train(target, recipe=dataclasses.replace(QUICK, lr=0.02), report=_die)
    again = train(target)
    assert again.resumed_from == 0
    assert bytes_of(again) == expected
    with pytest.raises(KilledError):
        train(target, report=_die)
    assert train(target, resume=False).resumed_from == 0


def test_damaged_progress_starts_over(target):
    expected = bytes_of(train(target))
    with pytest.raises(KilledError):
        train(target, report=_die)
    file = resume_file("test", "squeezenet1_1", "squares", 0)
    file.write_bytes(file.read_bytes()[:1000])
    again = train(target)
    assert again.resumed_from == 0
    assert bytes_of(again) == expected


def _die(_sentence):
    raise KilledError


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("unexpected pos")])
def test_full_disk_leaves_the_last_progress_whole(target, monkeypatch, error):
    with pytest.raises(KilledError):
        train(target, report=_die)
    file = resume_file("test", "squeezenet1_1", "squares", 0)
    whole = file.read_bytes()

    def full(_state, path):
        path.write_bytes(b"half")
        raise error

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(OSError, match=r"No space left|resume.pt could not be written \(unexpected pos\)"):
        train(target)
    assert file.read_bytes() == whole
    assert sorted(f.name for f in file.parent.iterdir()) == ["best.safetensors", "resume.pt"]


@pytest.mark.parametrize("which", ["best", "last", "csv"])
def test_full_disk_leaves_the_last_checkpoint_whole(target, monkeypatch, which):
    """Whatever is being written when no space is left: what was there stays, and training goes on from it."""
    recipe = dataclasses.replace(QUICK, lr=0.005)
    expected = bytes_of(train(target, recipe=recipe))
    with pytest.raises(KilledError):
        train(target, recipe=recipe, report=_die)
    folder = resume_file("test", "squeezenet1_1", "squares", 0).parent
    whole = {file.name: file.read_bytes() for file in folder.iterdir()}

    def full(*arguments, **_):
        path = next(argument for argument in arguments if hasattr(argument, "write_bytes"))
        if which == "csv" or path.name.startswith(f".{which}"):
            path.write_bytes(b"half")
            raise (
                OSError(28, "No space left on device")
                if which == "csv"
                else safetensors.SafetensorError("full")
            )
        return write(*arguments, **_)

    place, name = (pd.DataFrame, "to_csv") if which == "csv" else (safetensors.torch, "save_file")
    write = getattr(place, name)
    monkeypatch.setattr(place, name, full)
    message = (
        "No space left" if which == "csv" else rf"{which}\.safetensors could not be written \(full\); what"
    )
    with pytest.raises(OSError, match=message):
        train(target, recipe=recipe)
    monkeypatch.setattr(place, name, write)
    left = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert not [name for name in left if "partial" in name]
    assert left["best.safetensors"] in (whole["best.safetensors"], expected[0])
    assert left["resume.pt"] == whole["resume.pt"] or which != "best"
    checkpoints.read(folder / "last.safetensors")  # of the earlier training, and whole
    assert bytes_of(train(target, recipe=recipe)) == expected


@pytest.mark.slow
def test_sigkill_at_random_moments_ends_in_the_same_bytes(tmp_path, monkeypatch):
    folder = tmp_path / "pictures"
    folder.mkdir()
    target, recipe = write_squares(folder), dataclasses.replace(QUICK, epochs=60)
    expected = bytes_of(train(target, recipe=recipe))
    script = textwrap.dedent(f"""
        import dataclasses, pathlib, sys
        import torch
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        import test_finetune_loop as t
        torch.set_num_threads(1)
        target = t.write_squares(pathlib.Path({str(folder)!r}))
        t.train(target, recipe=dataclasses.replace(t.QUICK, epochs=60))
    """)
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path / "killed"))
    file, rng = resume_file("test", "squeezenet1_1", "squares", 0), np.random.default_rng(0)
    for _ in range(10):
        seen = file.stat().st_mtime_ns if file.exists() else 0
        with subprocess.Popen([sys.executable, "-c", script]) as process:
            while process.poll() is None and not (file.exists() and file.stat().st_mtime_ns > seen):
                time.sleep(0.01)
            time.sleep(rng.uniform(0, 0.4))
            process.send_signal(signal.SIGKILL)
    result = train(target, recipe=recipe)
    assert result.resumed_from >= 10
    assert bytes_of(result) == expected


def test_diverging_names_epoch_batch_and_pictures(target):
    with pytest.raises(
        DivergedError, match=r"became (nan|inf) in epoch 1, batch 2 of 3, pictures: .*train-"
    ) as error:
        train(target, recipe=dataclasses.replace(QUICK, lr=1e30, warmup=0.0))
    assert str(error.value).count("train-") == 4
    assert "Lower the learning rate" in str(error.value)


def test_diverging_in_the_last_step_is_noticed(target):
    recipe = dataclasses.replace(QUICK, lr=1e30, epochs=1, schedule="constant", batch_size=12)
    with pytest.raises(DivergedError, match="scores must stay finite; after epoch 1 those of the val split"):
        train(target, recipe=recipe)


def test_it_learns_and_best_is_the_earliest_highest_validation(target):
    recipe = dataclasses.replace(QUICK, epochs=6, lr=0.02)
    result = train(target, recipe=recipe)
    curve = curves(result.history)
    assert curve["epoch"].tolist() == list(range(7))
    assert curve["val_map"].iloc[-1] > curve["val_map"].iloc[0]
    assert curve["train_loss"].iloc[-1] < curve["train_loss"].iloc[1]
    assert result.best_epoch == 1 + int(np.argmax(curve["val_map"][1:]))
    assert checkpoints.read_meta(result.best)["epoch"] == result.best_epoch
    assert checkpoints.read_meta(result.last)["epoch"] == 6
    assert checkpoints.read_meta(result.best)["recipe"] == json.loads(json.dumps(dataclasses.asdict(recipe)))


def test_checkpoint_reproduces_the_printed_numbers(target):
    result = train(target)
    backbone = backbones.load_backbone(result.best)
    assert backbone.classes == ("red", "green", "blue")
    assert backbone.transform.size == 224  # embeddings before and after at one size
    pictures = open_pictures(target.test.files, backbone.transform.with_size(48))
    logits = predict(backbone.module, pictures, torch.device("cpu"), QUICK)
    row = summary(result.history).iloc[0]
    assert mean_average_precision(target.test.labels, logits)[0] == pytest.approx(row["test_map"], abs=1e-12)
    assert row["best_epoch"] == result.best_epoch
    assert row[["n_train", "n_val", "n_test", "classes"]].tolist() == [12, 6, 6, 3]


def test_table_joins_the_runs_files(target):
    results = [train(target, seed=seed) for seed in (0, 1)]
    frame = table("test")
    assert len(frame) == sum(len(r.history) for r in results)
    assert summary(frame)["seed"].tolist() == [0, 1]
    assert summary(frame)["val_chance"].tolist() == [pytest.approx(target.val.labels.mean())] * 2
    wide = curves(frame)
    assert wide[["seed", "epoch"]].values.tolist() == [[s, e] for s in (0, 1) for e in (0, 1, 2)]
    assert np.isnan(wide["train_loss"][0])
    with pytest.raises(FileNotFoundError, match=r"run 'none' must have finetuning-\*.csv"):
        table("none")


def test_unknown_labels_move_nothing(target):
    labels = target.train.labels.copy()
    labels[:, 1] = np.nan
    unknown = make_target(
        target.classes, (target.train.files, labels), *((s.files, s.labels) for s in target.splits[1:])
    )
    recipe = dataclasses.replace(QUICK, weight_decay=0.0)
    before = backbones.replace_head(
        backbones.load_backbone("squeezenet1_1"), target.classes
    ).module.state_dict()
    after = weights(train(unknown, recipe=recipe).last)
    moved = (after["classifier.1.weight"] != before["classifier.1.weight"]).flatten(1).any(dim=1)
    assert moved.tolist() == [True, False, True]


def test_stopping_early(target):
    recipe = dataclasses.replace(QUICK, epochs=9, lr=1e-12, schedule="constant", stop_after=2)
    result = train(target, recipe=recipe)
    assert result.history["epoch"].max() == 3  # the first epoch is the best, two more without a better one
    assert result.best_epoch == 1


def test_plateau_lowers_the_rate(target):
    recipe = dataclasses.replace(QUICK, epochs=3, lr=1e-12, schedule="plateau", patience=0)
    rates = []
    step = training._step

    def spy(module, optimizer, *rest):
        rates.append(optimizer.param_groups[0]["lr"])
        return step(module, optimizer, *rest)

    training._step = spy
    try:
        train(target, recipe=recipe)
    finally:
        training._step = step
    assert rates == pytest.approx([1e-12] * 6 + [1e-13] * 3)


def test_lars_scales_layers_without_weight_decay():
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 4)
    start = layer.weight.detach().clone()
    optimizer = make_optimizer(layer, RECIPES["coco-simclr_resnet50"], 0.01)
    layer(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    gradient = layer.weight.grad
    plain = start - 0.01 * gradient
    trust = 0.001 * start.norm() / gradient.norm()
    assert not torch.allclose(layer.weight, plain, rtol=0, atol=1e-4)
    torch.testing.assert_close(layer.weight.detach(), start - 0.01 * trust * gradient)


def test_callers_random_state_and_mode_are_left_alone(target):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    train(target)
    assert torch.equal(torch.get_rng_state(), before)
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 48 * 48, 3)).train()
    transform = backbones.load_backbone("squeezenet1_1").transform.with_size(48)
    predict(module, open_pictures(target.val.files, transform), torch.device("cpu"), QUICK)
    assert module.training


def test_pictures_read_on_demand_train_to_the_same_weights(target, monkeypatch):
    expected = weights(train(target).last)
    from biastransfer.finetune import job

    monkeypatch.setattr(job, "open_pictures", lambda files, t: open_pictures(files, t, keep_bytes=0))
    again = weights(train(target).last)
    assert all(torch.equal(again[name], value) for name, value in expected.items())


def test_augmentation_moves_and_mirrors_by_hand():
    picture = np.arange(16, dtype=np.uint8).reshape(1, 4, 4, 1).repeat(3, axis=3)
    rng = np.random.default_rng(0)
    seen = {augment(picture, rng, flip=0.5, shift=1)[0, :, :, 0].tobytes() for _ in range(400)}
    padded = np.pad(picture[0, :, :, 0], 1, mode="reflect")
    windows = [padded[y : y + 4, x : x + 4] for y in range(3) for x in range(3)]
    assert seen == {w.tobytes() for w in windows} | {w[:, ::-1].tobytes() for w in windows}


def test_batch_is_what_the_transform_gives(target):
    for name in ("squeezenet1_1", "efficientnet_lite0"):
        transform = backbones.load_backbone(name).transform.with_size(48)
        pictures = open_pictures(target.val.files, transform)
        batch = to_batch(pictures.take(np.arange(6)), transform)
        expected = torch.stack([transform(np.array(Image.open(file))) for file in target.val.files])
        assert torch.equal(batch, expected)  # looked up, not computed: still the same bits
        assert batch.is_contiguous(memory_format=torch.channels_last)


def test_every_picture_is_seen_once_an_epoch():
    for n, size in ((33, 16), (1, 8), (16, 16), (600, 16)):
        batches = training.epoch_batches(n, size, np.random.default_rng(0))
        assert sorted(np.concatenate(batches)) == list(range(n))
        assert max(map(len, batches)) <= size
        assert max(map(len, batches)) - min(map(len, batches)) <= 1


def test_rates_of_a_schedule_by_hand():
    recipe = Recipe("x", epochs=1, lr=1.0, schedule="cosine", warmup=0.2)
    rates = [rate_at(recipe, 3.0, step, 10) for step in range(10)]
    assert rates[:3] == pytest.approx([1.0, 2.0, 3.0])
    assert rates[6] == pytest.approx(1.5)
    assert rates[9] == pytest.approx(3 * (1 + np.cos(np.pi * 7 / 8)) / 2)
    assert rate_at(dataclasses.replace(recipe, schedule="constant"), 3.0, 7, 10) == 3.0


def test_bf16_is_a_choice_that_stays_near(target):
    slow = dataclasses.replace(QUICK, lr=1e-5)
    plain, half = (
        curves(train(target, recipe=dataclasses.replace(slow, precision=p)).history)["train_loss"]
        for p in ("fp32", "bf16")
    )
    assert half[1] == pytest.approx(plain[1], rel=0.02)
    assert half[1] != plain[1]


NAMES_IN_PRINT = {
    "BiT-M-R50x1": "bit_m_r50x1",
    "ResNet50": "resnet50",
    "ResNet18": "resnet18",
    "CLIP-ViT-B/32": "clip_vit_b32",
    "SimCLR ResNet50": "simclr_resnet50",
    "MoCo ResNet50": "moco_resnet50",
}
PUBLISHED = Path(__file__).parents[2] / "data" / "published"
PRINTED = pd.concat([pd.read_csv(PUBLISHED / f"table{k}.csv") for k in (7, 8)])


@pytest.mark.parametrize("row", PRINTED.to_dict("records"), ids=lambda row: f"{row['table']}-{row['model']}")
def test_recipes_are_the_rows_of_tables_7_and_8(row):
    target, backbone = {7: "coco", 8: "openimages"}[row["table"]], NAMES_IN_PRINT[row["model"]]
    assert backbone in backbones.list_backbones()
    for recipe in (find_recipe(target, backbone), find_recipe(f"{target}-as_released", backbone)):
        assert (recipe.epochs, recipe.lr, recipe.momentum) == tuple(
            row[key] for key in ("epochs", "learning_rate", "momentum")
        )
        assert recipe.monitor.replace("-", " ") == row["metric"]
        assert recipe.notes
    assert row["optimizer"] == "SGD"


@pytest.mark.parametrize("target", ["coco", "openimages"])
def test_recipes_follow_the_appendix_where_the_tables_are_silent(target):
    """SimCLR: LARS, no weight decay; plateaus: MoCo, and on COCO ResNet18; weight decay 1e-4 for the rest."""
    rows = {name: RECIPES[f"{target}-{name}"] for name in NAMES_IN_PRINT.values()}
    assert [name for name, r in rows.items() if r.optimizer == "lars"] == ["simclr_resnet50"]
    assert {name: r.weight_decay for name, r in rows.items() if r.weight_decay != 1e-4} == {
        "simclr_resnet50": 0.0
    }
    plateaus = {name for name, r in rows.items() if r.schedule == "plateau"}
    assert plateaus == {"moco_resnet50"} | ({"resnet18"} if target == "coco" else set())
    assert {(r.keep, r.normalisation, r.unknown, r.stop_after) for r in rows.values()} == {
        ("best", "own", "masked", 5)
    }


def test_as_released_does_what_the_released_code_did():
    for name in NAMES_IN_PRINT.values():
        coco, images = (RECIPES[f"{target}-{name}-as_released"] for target in ("coco", "openimages"))
        own = backbones.architectures.REGISTRY[name].transform
        assert {(r.keep, r.stop_after, r.extraction) for r in (coco, images)} == {("last", None, "imagenet")}
        clip = backbones.architectures.REGISTRY["clip_vit_b32"].transform
        assert (coco.seen(own).mean, coco.seen(own).std) == (clip.mean, clip.std)
        assert (images.seen(own).mean, images.seen(own).std) == ((0, 0, 0), (1, 1, 1))
        imagenet = backbones.architectures.REGISTRY["resnet50"].transform
        assert images.embedded(own) == dataclasses.replace(own, mean=imagenet.mean, std=imagenet.std)
        decay = {"simclr_resnet50": 1e-5, "clip_vit_b32": 0.0}.get(name, 1e-4)
        assert (coco.weight_decay, images.weight_decay) == (decay, decay)
        assert (coco.unknown, images.unknown) == ("masked", "refused")
        assert "reading='released'" in " ".join(images.notes)


def test_last_weights_are_kept_and_foreign_statistics_used_where_a_recipe_says_so(target):
    released = {"keep": "last", "normalisation": "none", "extraction": "imagenet"}
    recipe = dataclasses.replace(QUICK, lr=1e-12, epochs=2, **released)
    result = train(target, recipe=recipe)
    assert result.best_epoch == 2  # the first epoch is as good: the best would be epoch 1
    backbone = backbones.load_backbone(result.best)
    assert (backbone.transform.mean, backbone.transform.bgr) == ((0.485, 0.456, 0.406), False)
    plain = dataclasses.replace(
        backbone.transform.with_size(48), mean=(0, 0, 0), std=(1, 1, 1), bgr=False, scale=1.0
    )
    logits = predict(backbone.module, open_pictures(target.test.files, plain), torch.device("cpu"), recipe)
    row = summary(result.history).iloc[0]
    assert mean_average_precision(target.test.labels, logits)[0] == pytest.approx(row["test_map"], abs=1e-12)


def test_unknown_labels_are_refused_where_the_recipe_has_none(target):
    labels = target.train.labels.copy()
    labels[0, 0] = np.nan
    unknown = make_target(
        target.classes, (target.train.files, labels), *((s.files, s.labels) for s in target.splits[1:])
    )
    recipe = dataclasses.replace(QUICK, name="strict", unknown="refused")
    with pytest.raises(
        ValueError, match=r"'strict' needs a target without unknown labels; 1 are\. Read .*'released'"
    ):
        train(unknown, recipe=recipe)


@pytest.mark.parametrize("precision", ["fp16", "tf32"])
def test_precisions_of_a_gpu_are_refused_on_a_cpu(target, precision):
    with pytest.raises(
        ValueError, match=f"precision '{precision}' needs a CUDA device; the device is cpu. Use fp32"
    ):
        train(target, recipe=dataclasses.replace(QUICK, precision=precision), device="cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_missing_gpu_is_named(target):
    with pytest.raises(ValueError, match="device 'cuda:1' needs a CUDA device; none was found"):
        train(target, device="cuda:1")


@pytest.mark.parametrize("device", ["tpu", "gpu", "cuda:first", "mps", ""])
def test_a_device_that_is_none_is_named(target, device):
    with pytest.raises(ValueError, match=f"device must be cpu, cuda or cuda:NUMBER; got '{device}'"):
        train(target, device=device)


def test_tf32_is_off_unless_asked_for_and_the_callers_setting_comes_back():
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    for precision, expected in (("fp32", ("highest", False)), ("tf32", ("high", True))):
        with stated_precision(precision):
            assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == expected
    assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == before


def test_recipes_are_found_or_listed():
    assert find_recipe("openimages", "resnet18") is RECIPES["openimages-resnet18"]
    assert find_recipe(QUICK, "anything") is QUICK
    with pytest.raises(
        ValueError, match=r"unknown recipe 'demmo' for 'squeezenet1_1'; known: demo, .*coco-bit"
    ):
        find_recipe("demmo", "squeezenet1_1")
    with pytest.raises(ValueError, match="unknown recipe 'coco' for 'squeezenet1_1'"):
        find_recipe("coco", "squeezenet1_1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schedule": "linear"}, "schedule must be one of constant, cosine, plateau; got 'linear'"),
        ({"epochs": 0}, "epochs must be above 0; got 0"),
        ({"flip": 1.5}, "flip must be in 0..1"),
        ({"precision": "fp8"}, "precision must be one of fp32, tf32, bf16, fp16; got .fp8."),
        ({"accumulate": 0}, "accumulate must be above 0; got 0"),
        ({"accumulate": 6}, "accumulate divides batch_size pictures; got 6 parts of 5"),
    ],
)
def test_impossible_recipes_are_explained(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(QUICK, **change)


@pytest.mark.parametrize(
    "name",
    ["resnet18", *(pytest.param(one, marks=pytest.mark.slow) for one in ("clip_vit_b32", "bit_m_r50x1"))],
)
def test_the_papers_networks_take_a_step(target, name):
    """With random weights, since theirs are not here: a head of its own, one step, saved and rebuilt."""
    entry = backbones.architectures.REGISTRY[name]
    module = entry.build(0).eval()
    drawn = backbones.Backbone(
        name, module, entry.transform, entry.dim, tuple(entry.layer_modules), "random weights",
        layer_modules=entry.layer_modules, head=entry.head, tokens=entry.tokens,
        prefix_tokens=entry.prefix_tokens,
    )  # fmt: skip
    few = target.limit(3, 3, 3)
    size = None if name == "clip_vit_b32" else 64
    recipe = Recipe("step", epochs=1, lr=0.01, batch_size=3, size=size)
    result = train(few, drawn, recipe)
    before = backbones.replace_head(drawn, target.classes, seed=0)
    rebuilt = backbones.load_backbone(result.best)
    assert rebuilt.classes == target.classes
    state = rebuilt.module.state_dict()
    moved = [key for key, value in before.module.named_parameters() if not torch.equal(value, state[key])]
    assert len(moved) > 0.9 * len(list(before.module.parameters()))
    pictures = open_pictures(few.test.files, recipe.seen(rebuilt.transform))
    logits = predict(rebuilt.module, pictures, torch.device("cpu"), recipe)
    rows = result.history.query("split == 'test' and metric == 'mAP'")
    assert mean_average_precision(few.test.labels, logits)[0] == pytest.approx(
        rows["value"].iloc[0], abs=1e-9
    )


def test_errors_before_training(target):
    with pytest.raises(ValueError, match="unknown backbone 'resnet51'"):
        train(target, "resnet51")
    broken = target.train.files[0]
    gone = make_target(
        target.classes, ([broken + "x"], [[1, 1, 1]]), *((s.files, s.labels) for s in target.splits[1:])
    )
    with pytest.raises(ValueError, match=r"train-0\.pngx"):
        train(gone)
    assert not paths.checkpoint("test", "squeezenet1_1", "squares", 0).exists()
