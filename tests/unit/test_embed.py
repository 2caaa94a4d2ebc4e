import dataclasses
import multiprocessing

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import nn

from biastransfer import checkpoints, paths
from biastransfer.backbones import Backbone, Transform, forward_layer, load_backbone, replace_head
from biastransfer.embed import Condition, conditions, embed, embed_classes
from biastransfer.embed import cache as stored
from biastransfer.images import read_rgb


def toy(seed=0):
    torch.manual_seed(seed)
    module = nn.Sequential(
        nn.Conv2d(3, 6, 3),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(6, 2),
    )
    module[1].running_var.uniform_(0.5, 2)
    transform = Transform(16, 1.0, "bilinear", (0.5,) * 3, (0.5,) * 3)
    layers = {"conv": "0", "embedding": "3"}
    return Backbone("toy", module.eval(), transform, 6, tuple(layers), "", (), layers, "6")


@dataclasses.dataclass(frozen=True)
class Set:
    items: pd.DataFrame

    @property
    def classes(self):
        return list(dict.fromkeys(self.items["class"]))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASTRANSFER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path / "root"))
    return tmp_path / "cache"


@pytest.fixture
def files(tmp_path):
    """Seven pictures of different sizes whose names are not in the order of their making."""
    rng = np.random.default_rng(0)
    made = []
    for index in range(7):
        made.append(tmp_path / f"{(index * 3) % 7} é.png")
        Image.fromarray(rng.integers(0, 256, (20 + index, 30, 3), dtype=np.uint8)).save(made[-1])
    return [str(file) for file in made]


def reference(backbone, files, layer=None):
    """One picture at a time through the unfolded network."""
    with torch.no_grad():
        rows = [forward_layer(backbone, backbone.transform(read_rgb(file))[None], layer) for file in files]
    return torch.cat(rows).numpy()


def shards(cache):
    return sorted(cache.rglob("*.safetensors"))


@pytest.mark.parametrize("batch_size", [1, 3, 4, 100])
def test_vectors_in_the_order_of_the_items_at_any_batch_size(files, batch_size):
    found = embed(toy(), files, batch_size=batch_size, cache=False)
    assert np.allclose(found.vectors, reference(toy(), files), atol=1e-5)
    assert found.vectors.dtype == np.float32
    assert found.ids == files
    assert found.rows.tolist() == list(range(7))
    assert embed(toy(), files[::-1]).ids == files[::-1]


@pytest.mark.parametrize("name", ["efficientnet_lite0", "squeezenet1_1"])
def test_real_backbones_at_any_batch_size(files, name):
    backbone = load_backbone(name)
    three, one = (embed(backbone, files[:3], batch_size=size, cache=False).vectors for size in (3, 1))
    scale = np.abs(one).max()
    assert np.abs(three - one).max() <= 1e-5 * scale
    assert np.abs(one - reference(backbone, files[:3])).max() <= 1e-5 * scale


@pytest.mark.parametrize("name", ["efficientnet_lite0", "squeezenet1_1"])
def test_a_vector_has_the_same_bits_whichever_others_the_cache_lacks(files, name):
    backbone = load_backbone(name)
    whole = embed(backbone, files, cache=False).vectors
    embed(backbone, files[1:6:2])
    found = embed(backbone, files)  # the rest, in other batches
    assert found.computed == 4
    assert np.array_equal(found.vectors, whole)


@pytest.mark.parametrize("layer", ["conv", "1"])
def test_other_layers(files, layer):
    assert np.allclose(embed(toy(), files, layer).vectors, reference(toy(), files, layer), atol=1e-5)


def test_network_is_left_as_it_was(files):
    backbone = toy()
    backbone.module.train()
    backbone.module[1].eval()
    before = checkpoints.state_hash(backbone.module.state_dict())
    vectors = embed(backbone, files).vectors
    assert [part.training for part in backbone.module] == [True, False, True, True, True, True, True]
    assert checkpoints.state_hash(backbone.module.state_dict()) == before
    assert np.allclose(vectors, reference(toy(), files), atol=1e-5)


def test_a_gpu_computes_in_full_single_precision(files):
    seen, backbone = [], toy()
    hook = torch.nn.modules.module.register_module_forward_hook(
        lambda *_: seen.append(torch.backends.cudnn.allow_tf32 and torch.is_inference_mode_enabled())
    )
    try:
        embed(backbone, files, cache=False)
    finally:
        hook.remove()
    assert seen
    assert not any(seen)


def test_each_distinct_picture_is_computed_once(files, tmp_path):
    copied = tmp_path / "copy.png"
    copied.write_bytes((tmp_path / "0 é.png").read_bytes())
    found = embed(toy(), [files[0], files[0], str(copied)])
    assert found.computed == 1
    assert found.vectors.shape == (3, 6)
    assert (found.vectors == found.vectors[0]).all()


def test_second_call_computes_nothing_and_gives_the_same_bits(files, cache):
    first, second = embed(toy(), files), embed(toy(), files)
    assert (first.computed, second.computed) == (7, 0)
    assert np.array_equal(first.vectors, second.vectors)
    assert len(shards(cache)) == 1
    assert embed(toy(), files, cache=False).computed == 7


def test_one_pixel_recomputes_one_picture(files):
    embed(toy(), files)
    pixels = read_rgb(files[2]).copy()
    pixels[5, 5, 0] ^= 128
    Image.fromarray(pixels).save(files[2])
    found = embed(toy(), files)
    assert found.computed == 1
    assert np.allclose(found.vectors, reference(toy(), files), atol=1e-5)


def test_one_weight_recomputes_what_depends_on_it(files):
    embed(toy(), files)
    changed = toy()
    with torch.no_grad():
        changed.module[0].weight[0, 0, 0, 0] += 0.5
    found = embed(changed, files)
    assert found.computed == 7
    assert np.allclose(found.vectors, reference(changed, files), atol=1e-5)
    headed = toy()
    with torch.no_grad():
        headed.module[6].bias += 1
    assert embed(headed, files).computed == 0
    assert embed(headed, files, "6").computed == 7
    assert embed(toy(), files, "6").computed == 7


@pytest.mark.parametrize(
    "change",
    [
        lambda toy: dataclasses.replace(toy, transform=toy.transform.with_size(17)),
        lambda toy: (toy.module.__setitem__(2, nn.GELU()), toy)[1],
        lambda toy: (toy.module.__setitem__(1, nn.BatchNorm2d(6, eps=1)), toy)[1],
    ],
    ids=["transform", "activation", "epsilon"],
)
def test_what_the_weights_do_not_show_is_in_the_key(files, change):
    assert stored.key(change(toy()), "3") != stored.key(toy(), "3")


def test_layer_is_in_the_key(files):
    embed(toy(), files)
    assert embed(toy(), files, "conv").computed == 7


@pytest.mark.parametrize("damage", ["flip", "cut", "empty"])
def test_damaged_cache_is_noticed_and_computed_again(files, cache, damage):
    first = embed(toy(), files)
    [shard] = shards(cache)
    data = bytearray(shard.read_bytes())
    data[-5] ^= 1
    shard.write_bytes({"flip": data, "cut": data[:40], "empty": b""}[damage])
    again = embed(toy(), files)
    assert again.computed == 7
    assert len(again.notes) == 1
    assert "damaged; removed and computed again" in again.notes[0]
    assert np.array_equal(first.vectors, again.vectors)
    assert embed(toy(), files).notes == ()


def test_cache_that_cannot_be_written_costs_nothing_but_time(files, cache):
    cache.write_text("a file where the folder should be")
    found = embed(toy(), files)
    assert found.vectors.shape == (7, 6)
    assert len(found.notes) == 1
    assert found.notes[0].startswith("embeddings were not cached: ")


def _store(seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        names = [rng.bytes(32).hex() for _ in range(3)]
        stored.store("a" * 64, {name: np.full(4, seed, np.float32) for name in names})
    stored.store("a" * 64, {"00" * 32: np.arange(4, dtype=np.float32)})


def test_processes_that_write_at_once(cache):
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_store, args=(seed,)) for seed in (1, 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(shards(cache)) == 41  # the same vectors are the same file
    assert not list(cache.rglob("*partial*"))
    vectors, notes = stored.load("a" * 64, ["00" * 32, "11" * 32])
    assert list(vectors) == ["00" * 32]
    assert vectors["00" * 32].tolist() == [0, 1, 2, 3]
    assert notes == []


def test_unreadable_pictures_are_named_counted_and_left_out(files, tmp_path):
    empty, text = tmp_path / "empty.jpg", tmp_path / "text.jpg"
    empty.write_bytes(b"")
    text.write_text("no picture")
    asked = [files[0], str(empty), str(text), files[1], "/none.jpg", str(empty)]
    for _ in range(2):  # computed, then cached
        found = embed(toy(), asked, batch_size=2)
        assert found.ids == [files[0], files[1]]
        assert found.rows.tolist() == [0, 3]
        assert set(found.failed["file"]) == {str(empty), str(text), "/none.jpg"}
        assert all(found.failed["reason"].str.len() > 20)
        assert np.allclose(found.vectors, reference(toy(), found.ids), atol=1e-5)


def test_vectors_that_are_not_finite_do_not_spread(files, cache):
    broken = toy()
    with torch.no_grad():
        broken.module[0].bias[0] = float("inf")
    found = embed(broken, files)
    assert found.vectors.shape == (0, 6)
    assert set(found.failed["reason"]) == {"its embedding is not finite"}
    assert shards(cache) == []


def test_nothing_asked_nothing_given():
    found = embed(toy(), [])
    assert found.vectors.shape == (0, 6)
    assert found.failed.empty


def test_no_progress_bar_in_a_log(files, capfd):
    embed(toy(), files)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("items", ["one.jpg", 3, {"a": 1}])
def test_items_must_be_a_set_or_a_list(items):
    with pytest.raises(TypeError, match="an analysis set or a list of paths; got"):
        embed(toy(), items)


def test_wrong_settings(files):
    with pytest.raises(ValueError, match="batch_size must be at least 1; got 0"):
        embed(toy(), files, batch_size=0)
    with pytest.raises(ValueError, match="unknown layer 'stage9'; known: conv, embedding"):
        embed(toy(), files, "stage9")


def test_conditions_of_a_run():
    assert conditions("demo", ["random", "squeezenet1_1"], ["squeezenet1_1"], "scenes", [0, 1]) == [
        Condition("random", "pretrained", "", 0),
        Condition("squeezenet1_1", "pretrained", "", 0),
        Condition("squeezenet1_1", "finetuned", "scenes", 0),
        Condition("squeezenet1_1", "finetuned", "scenes", 1),
    ]


def analysis_set(files, classes):
    ids = [str(index) for index in range(len(files))]
    return Set(pd.DataFrame({"id": ids, "file": files, "class": classes}))


def test_embed_classes_gives_the_same_pictures_in_every_condition(files, tmp_path):
    finetuned = replace_head(load_backbone("squeezenet1_1"), ["car"])
    with torch.no_grad():
        finetuned.module.features[0].bias += 1
    checkpoints.save(finetuned, paths.checkpoint("smoke", "squeezenet1_1", "scenes", 0))
    asked = conditions("smoke", ["squeezenet1_1"], ["squeezenet1_1"], "scenes", [0])
    # picture 0 stands in two classes, one file does not exist
    chosen = analysis_set([*files[:3], "/none.png", files[0]], ["man", "man", "car", "car", "car"])
    embedded = embed_classes(chosen, asked, run="smoke")
    assert list(embedded) == asked
    for condition, network in zip(asked, (load_backbone("squeezenet1_1"), finetuned)):
        assert list(embedded[condition]) == ["man", "car"]
        expected = reference(network, [files[0], files[1], files[2], files[0]])
        found = np.concatenate([embedded[condition]["man"], embedded[condition]["car"]])
        assert np.allclose(found, expected, atol=1e-4)
    assert embedded.failed[["stage", "file"]].values.tolist() == [
        ["pretrained", "/none.png"],
        ["finetuned", "/none.png"],
    ]


def test_missing_checkpoint_says_what_makes_it(files):
    with pytest.raises(FileNotFoundError, match=r"make it with notebook 02 .* run='demo', backbone='random'"):
        embed_classes(
            analysis_set(files, ["man"] * 7), [Condition("random", "finetuned", "scenes", 1)], run="demo"
        )


def test_class_without_any_readable_picture(files):
    chosen = analysis_set([files[0], "/none.png"], ["man", "car"])
    with pytest.raises(ValueError, match=r"class 'car' must have at least one picture .* all 1 failed"):
        embed_classes(chosen, conditions("smoke", ["squeezenet1_1"], [], "", []), run="smoke")
