"""Planted bias: doses are counted, training on stored inputs is training, runs repeat themselves."""

import dataclasses
import importlib

import numpy as np
import pytest
import torch
from torch import nn

from biastransfer import planted
from biastransfer.backbones import Backbone, Transform, forward_layer, load_backbone, replace_head
from biastransfer.finetune.schedules import rate_at
from biastransfer.finetune.training import epoch_batches
from biastransfer.images import read_rgb
from biastransfer.planted import scenes, stage
from biastransfer.planted.experiment import recipe as make_recipe

OBJECTS = np.array([*planted.PLUS, *planted.MINUS] * 20)
HALVES = Transform(size=32, crop=1.0, interpolation="bilinear", mean=(0.5,) * 3, std=(0.5,) * 3)


class Toy(nn.Module):
    """The parts of an EfficientNet-Lite by their names, a few channels wide."""

    def __init__(self):
        super().__init__()
        self.conv_stem, self.bn1 = nn.Conv2d(3, 4, 3, stride=4), nn.BatchNorm2d(4)
        self.blocks = nn.Sequential(*(self.block() for _ in range(2)))
        self.conv_head, self.bn2 = nn.Conv2d(4, 6, 1), nn.Sequential(nn.BatchNorm2d(6), nn.ReLU())
        self.global_pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(1))
        self.classifier = nn.Linear(6, 5)

    @staticmethod
    def block():
        return nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())

    def forward(self, x):
        x = self.blocks(self.bn1(self.conv_stem(x)))
        return self.classifier(self.global_pool(self.bn2(self.conv_head(x))))


@pytest.fixture
def toy():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        net = Toy().eval()
    known = {"layers": ("embedding",), "layer_modules": {"embedding": "bn2"}, "head": "classifier"}
    return Backbone("efficientnet_lite0", net, HALVES, 6, source="", **known)


@pytest.mark.parametrize("dose", [-1.0, -0.7, -0.3, 0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("seed", [0, 5])
def test_the_skew_that_is_there_is_the_dose_that_was_asked(dose, seed):
    who = planted.men(OBJECTS, dose, seed=seed)
    for group, share in ((planted.PLUS, (1 + dose) / 2), (planted.MINUS, (1 - dose) / 2)):
        assert [int(who[name == OBJECTS].sum()) for name in group] == [round(20 * share)] * 6
    assert who.sum() == len(who) / 2
    assert planted.realised(OBJECTS, who) == pytest.approx(dose)


def test_doses_share_all_pictures_but_those_they_differ_in():
    lower, higher = (planted.men(OBJECTS, dose, seed=1) for dose in (-0.3, 0.3))
    plus = np.isin(OBJECTS, planted.PLUS)
    assert not (lower & ~higher)[plus].any()
    assert not (higher & ~lower)[~plus].any()
    assert (lower != higher).sum() == 0.3 * len(OBJECTS)
    assert (planted.men(OBJECTS, 0.3, seed=2) != higher).any()


def test_shuffled_people_are_as_many_and_in_relation_to_no_object():
    plain = planted.men(OBJECTS, 1.0)
    there = [planted.men(OBJECTS, 1.0, seed=k, shuffled=True) for k in range(40)]
    assert all(one.sum() == plain.sum() for one in there)
    doses = [planted.realised(OBJECTS, one) for one in there]
    assert abs(np.mean(doses)) < 3 / np.sqrt(40 * len(OBJECTS))
    assert max(map(abs, doses)) < 0.3


@pytest.mark.parametrize("dose", [1.01, -2, float("nan"), True, "1"])
def test_a_dose_out_of_range_is_refused(dose):
    with pytest.raises(ValueError, match="a dose must be a number from -1 to 1; got"):
        planted.men(OBJECTS, dose)


def test_an_object_without_pictures_or_without_a_group_is_refused():
    with pytest.raises(ValueError, match=r"object needs a picture .* holds cat, dog. Draw more"):
        planted.men(OBJECTS[~np.isin(OBJECTS, ["cat", "dog"])], 0.5)
    with pytest.raises(ValueError, match=r"an object of a planted group; got chair. Known: car"):
        planted.men([*OBJECTS, "chair"], 0.5)


@pytest.fixture
def own_root(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path))


def test_the_pool_holds_twins_and_says_what_is_in_them(own_root):
    pool = scenes.draw_pool(1, seed=4)
    assert sorted(pool.objects) == sorted([*planted.PLUS, *planted.MINUS])
    who = np.arange(12) % 2 == 0
    gender, person = pool.labels(who), pool.labels(who, "person")
    assert gender[:, 0].tolist() == who.tolist()
    assert gender[:, 1].tolist() == (~who).tolist()
    assert person[:, 0].tolist() == [1.0] * 12
    assert (person[:, 1:] == gender[:, 2:]).all()
    named = [scenes.classes("gender")[k] for k in np.flatnonzero(gender[3])]
    assert sorted(named) == sorted({"woman", *pool.contents[3][1:]})
    man, woman = ([read_rgb(file) for file in pool.files[:, side]] for side in (0, 1))
    same = [(np.abs(a.astype(int) - b) < 8).all(-1).mean() for a, b in zip(man, woman)]
    assert min(same) > 0.3
    assert max(same) < 1
    with pytest.raises(ValueError, match="labels must be one of gender, person; got 'both'"):
        pool.labels(who, "both")
    with pytest.raises(ValueError, match="every object needs a pair; got 0"):
        scenes.draw_pool(0)
    with pytest.raises(ValueError, match="at least 2 pictures; got 1"):
        scenes.draw_analysis(["car"], 1)


def test_training_on_stored_inputs_is_training_with_the_trunk_frozen(toy):
    """A second computation: the whole network, trunk in eval mode, weights of the rest stepped by hand."""
    rng = np.random.default_rng(0)
    pixels = stage.Pixels(rng.integers(0, 256, (22, 32, 32, 3), dtype=np.uint8), HALVES)
    labels = (rng.random((22, 3)) < 0.5).astype(np.float32)
    recipe = make_recipe(epochs=3, rate=0.2, size=32)
    cached = stage.new_stage(toy, "abc", seed=1)
    inputs = stage.stage_inputs(toy, pixels)
    losses = stage.train(cached, inputs, labels, recipe, rate=0.2, seed=7)

    net = replace_head(toy, "abc", seed=1).module.train()
    for part in (net.conv_stem, net.bn1, net.blocks[0]):
        part.eval().requires_grad_(False)
    free = [p for p in net.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(free, lr=0.2, momentum=0.9, weight_decay=1e-4)
    order, plain = np.random.default_rng([7, 3]), []
    for _ in range(3):
        for rows in epoch_batches(22, 16, order):
            optimizer.param_groups[0]["lr"] = rate_at(recipe, 0.2, len(plain), 6)
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(
                net(pixels[rows]), torch.from_numpy(labels[rows])
            )
            loss.backward()
            optimizer.step()
            plain.append(loss.item())
    assert losses == pytest.approx(plain, abs=1e-5)
    net.eval()
    with torch.no_grad():
        whole = net.bn2(net.conv_head(net.blocks(net.bn1(net.conv_stem(pixels[np.arange(22)])))))
    np.testing.assert_allclose(stage.vectors(cached, inputs), whole.mean((2, 3)), atol=1e-5)
    assert not torch.equal(cached.body[0][1].running_mean, toy.module.blocks[1][1].running_mean)
    with pytest.raises(ValueError, match="the loss must stay finite; it became nan"):
        stage.train(cached, inputs * float("inf"), labels, recipe, rate=0.2, seed=7)


@pytest.mark.parametrize("name", ["efficientnet_lite0", "squeezenet1_1"])
def test_the_parts_are_the_network(name):
    backbone = load_backbone(name)
    pixels = np.random.default_rng(1).integers(0, 256, (2, 64, 64, 3), dtype=np.uint8)
    x = stage.Pixels(pixels, backbone.transform.with_size(64))[np.arange(2)]
    trunk, last = stage.cut(backbone)
    with torch.no_grad():
        inner = trunk(x)
        torch.testing.assert_close(last.head(last.body(inner)), backbone.module(x))
        torch.testing.assert_close(torch.from_numpy(stage.vectors(last, inner)), forward_layer(backbone, x))


def test_a_network_of_another_family_is_refused(toy):
    other = dataclasses.replace(toy, name="vit_small")
    with pytest.raises(
        ValueError, match=r"last stage of 'vit_small' is not known; known .* efficientnet_lite…"
    ):
        stage.cut(other)


def test_the_experiment_repeats_itself_and_says_where_each_network_comes_from(own_root, toy, monkeypatch):
    module = importlib.import_module("biastransfer.planted.experiment")  # its function has its name
    monkeypatch.setattr(module, "load_backbone", lambda name: toy)
    options = {"doses": [1, 0, -1], "seeds": [0], "shuffled": 1, "full": [1], "size": 32}
    options |= {"pairs": 1, "pictures": 3, "epochs": 1, "constructions": ["flipped", "added"]}
    one, two = (planted.experiment("efficientnet_lite0", **options) for _ in range(2))
    assert [(n.start, n.dose, n.shuffled, n.construction, n.how) for n in one.networks] == [
        ("pretrained", -1, False, "first", "stage"),
        ("pretrained", 0, False, "first", "stage"),
        ("pretrained", 1, False, "first", "stage"),
        ("pretrained", 1, True, "first", "stage"),
        ("pretrained", 1, False, "first", "full"),
        (1, -1, False, "flipped", "stage"),
        (0, 1, False, "added", "stage"),
    ]
    assert [n.null for n in one.networks] == [False, True, False, True, False, False, False]
    assert one.before[5] is one.seen[2]
    assert one.before[6] is one.seen[1]
    assert [n.loss for n in one.networks] == [n.loss for n in two.networks]
    for a, b in zip(one.embeddings, two.embeddings):
        assert all((a[name] == b[name]).all() for name in a)
    assert any((one.embeddings[0][name] != one.embeddings[2][name]).any() for name in one.sizes)
    made = planted.tables(one, "tiny", counts=[2], draws=4)
    assert list(made) == list(planted.TABLES)
    assert set(made["planted"]["measure"]) == set(planted.MEASURES)
    full = planted.shown(made)["full"].set_index("measure")
    whole = made["planted"].query("how == 'full' and measure == 'difference'")["value"].item()
    assert full.loc["inter-class difference", ["dose", "full"]].tolist() == [1, whole]
    assert all(one.columns.is_unique for one in planted.shown(made).values())  # else a page cannot show it
    told = planted.numbers(made)
    assert (told["doses"], told["seeds"], told["networks"], told["nulls"]) == (3, 1, 4, 2)
    assert told["largest_error"] == 0
    assert told["changed"] == 2
    assert told["unchanged"] == 0


def test_an_experiment_that_cannot_be_read_is_refused():
    for wrong in ({"doses": [-1, 1, 0.5]}, {"seeds": []}, {"doses": [0, 1]}, {"doses": [-1, -0.5, 0]}):
        with pytest.raises(ValueError, match="three doses, 0 and one above 0 among them, and a seed; got"):
            planted.experiment("squeezenet1_1", **{"doses": [-1, 0, 1], "seeds": [0]} | wrong)
    with pytest.raises(ValueError, match="unknown construction turned; known: none, kept"):
        planted.experiment("squeezenet1_1", doses=[-1, 0, 1], seeds=[0], constructions=["turned"])
    with pytest.raises(ValueError, match="a dose must be a number"):
        planted.experiment("squeezenet1_1", doses=[-1, 0, 1], seeds=[0], full=[3])
