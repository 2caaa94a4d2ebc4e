"""The in-painter: what it learns from, that training resumes exactly, what ships, how it is compared."""

import json

import numpy as np
import pandas as pd
import pytest
import safetensors
import torch
from scipy.ndimage import binary_dilation

from biastransfer import paths
from biastransfer.analysis_sets.scenes import draw_scene
from biastransfer.attribution import inpainter_training as training
from biastransfer.attribution.inpainter_evaluation import FeatureDistance, compare, psnr, summary
from biastransfer.attribution.inpainter_network import (
    InpainterNet,
    bridged,
    continued,
    load_weights,
    save_weights,
    smooth_fill,
)
from biastransfer.attribution.inpainter_scenes import HOLES, draw_hole, draw_removals, widened
from biastransfer.attribution.removal import make_fill
from biastransfer.backbones import load_backbone


@pytest.fixture(scope="module")
def removals():
    return draw_removals("train", 6, seed=5)


def far_columns(mask):
    """Columns a third of the picture from a mask: no shadow reaches there."""
    columns = np.flatnonzero(mask.any(0))
    return np.r_[: max(columns[0] - 85, 0), min(columns[-1] + 86, 256) : 256]


def test_a_scene_without_an_actor_keeps_all_else():
    scene = draw_scene(("man", "stop sign", "chair"), 3)
    for gone in range(3):
        less = draw_scene(("man", "stop sign", "chair"), 3, leave_out=[gone])
        kept = [k for k in range(3) if k != gone]
        assert [actor.name for actor in less.actors] == [scene.actors[k].name for k in kept]
        for mask, before in zip(less.masks, scene.masks[kept]):
            assert not (before & ~mask).any()  # nobody else loses a pixel
        changed = (less.image != scene.image).any(-1)
        assert changed[scene.masks[gone]].mean() > 0.9
        assert not changed[:, far_columns(scene.masks[gone])].any()
    empty = draw_scene(("man", "stop sign", "chair"), 3, leave_out=range(3))
    assert empty.masks.shape == (0, 256, 256)
    assert empty.boxes.shape == (0, 4)
    with pytest.raises(ValueError, match=r"actors 0 to 2 of the scene; got \[3\]"):
        draw_scene(("man", "stop sign", "chair"), 3, leave_out=[3])


def test_removals_depend_on_their_number_only(removals):
    fewer = draw_removals("train", 2, seed=5)
    assert np.array_equal(fewer.before, removals.before[:2])
    assert np.array_equal(fewer.after, removals.after[:2])
    assert np.array_equal(fewer.removed, removals.removed[:2])
    assert not np.array_equal(draw_removals("test", 1, seed=5).before, removals.before[:1])
    differs = (removals.before != removals.after).any(-1)
    assert differs[removals.removed].mean() > 0.9
    assert all(removed.any() for removed in removals.removed)


def test_widened_is_a_square_dilation():
    mask = np.random.default_rng(0).random((40, 50)) < 0.02
    assert np.array_equal(widened(mask, 3), binary_dilation(mask, np.ones((7, 7))))
    assert np.array_equal(widened(mask, 0), mask)


@pytest.mark.parametrize("kind", list(HOLES))
def test_holes_follow_their_seed(kind, removals):
    draw = HOLES[kind]
    one, same, other = (draw(np.random.default_rng(k), 96, removals.removed) for k in (0, 0, 1))
    assert one.shape == (96, 96)
    assert one.dtype == bool
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert 0 < one.mean() < 1


def test_a_drawn_hole_is_neither_empty_nor_all(removals, monkeypatch):
    answers = iter([np.zeros((8, 8), bool), np.ones((8, 8), bool), np.eye(8, dtype=bool)])
    for kind in HOLES:
        monkeypatch.setitem(HOLES, kind, lambda rng, size, silhouettes: next(answers))
    assert np.array_equal(draw_hole(np.random.default_rng(0), 8, removals.removed), np.eye(8, dtype=bool))


def test_training_examples_show_the_wanted_picture_outside_a_hole_that_is_no_removal(removals, monkeypatch):
    monkeypatch.setattr(training, "_REMOVAL", 0.0)
    pixels, holes, wanted = training.training_batch(removals, 128, 4, (0, 1))
    assert torch.equal(pixels, wanted)
    assert holes.shape == (4, 1, 128, 128)
    assert set(holes.unique().tolist()) == {0.0, 1.0}
    again = training.training_batch(removals, 128, 4, (0, 1))
    assert all(torch.equal(a, b) for a, b in zip(again, (pixels, holes, wanted)))


def test_the_network_does_not_see_what_is_in_the_hole():
    torch.manual_seed(0)
    net, hole = InpainterNet().eval(), torch.zeros(1, 1, 64, 96)
    torch.nn.init.normal_(net.out.weight)
    hole[..., 10:40, 20:60] = 1
    picture = torch.rand(1, 3, 64, 96)
    other = torch.where(hole > 0, torch.rand(1, 3, 64, 96), picture)
    with torch.inference_mode():
        assert torch.equal(net(picture, hole), net(other, hole))


def test_smooth_fill_takes_the_nearest_means():
    picture, hole = torch.full((1, 3, 64, 64), 0.3), torch.zeros(1, 1, 64, 64)
    hole[..., 4:60, 8:50] = 1
    torch.testing.assert_close(smooth_fill(picture, hole), picture)
    picture[..., 32:] = 0.9  # left .3, right .9: a hole within either half keeps to its half
    hole[...] = 0
    hole[..., 20:44, 4:12] = hole[..., 20:44, 52:60] = 1
    filled = smooth_fill(picture, hole)[0, 0]
    torch.testing.assert_close(filled[32, 8], torch.tensor(0.3))
    torch.testing.assert_close(filled[32, 56], torch.tensor(0.9))
    hole[...] = 1
    hole[..., :4, :4] = 0  # one square known, which is a 256th of the picture: all take its mean
    torch.testing.assert_close(smooth_fill(picture, hole)[0, 0, 40:, 40:], torch.full((24, 24), 0.3))


def test_bridges_are_straight_lines_between_the_nearest_known_pixels():
    picture, hole = torch.zeros(1, 3, 4, 40), torch.zeros(1, 1, 4, 40)
    picture[:, :, 0] = torch.linspace(0, 1, 40)
    picture[:, :, 1, :15], picture[:, :, 1, 20:] = 0.2, 0.8
    hole[:, :, 0, 10:30] = hole[:, :, 1, 15:20] = hole[:, :, 2, 5:] = hole[:, :, 3] = 1
    picture[:, :, 2, :5] = 0.7
    filled = bridged(torch.where(hole > 0, 9.0, picture), hole, torch.full_like(picture, 0.4))[0, 0]
    line = np.linspace(0, 1, 40)  # anchors: the means of five pixels at either side
    expected = np.interp(np.arange(10, 30), [9, 30], [line[5:10].mean(), line[30:35].mean()])
    np.testing.assert_allclose(filled[0, 10:30], expected, atol=1e-6)
    np.testing.assert_allclose(filled[1, 15:20], 0.2 + 0.6 * np.arange(1, 6) / 6, atol=1e-6)
    np.testing.assert_allclose(filled[2, 5:], 0.7, atol=1e-6)  # one side only: it goes on
    np.testing.assert_allclose(filled[3], 0.4, atol=1e-6)  # nothing known in the row


def test_an_untrained_network_mixes_three_plain_fills():
    picture, hole = torch.rand(1, 3, 64, 32), torch.ones(1, 1, 64, 32)
    hole[..., :20, :] = hole[..., :9] = 0
    smooth = smooth_fill(picture, hole)
    rows = bridged(picture, hole, smooth)
    columns = bridged(*(x.transpose(2, 3) for x in (picture, hole, smooth))).transpose(2, 3)
    with torch.inference_mode():
        found = InpainterNet()(picture, hole)
    torch.testing.assert_close(found, (smooth + np.e * rows + columns) / (2 + np.e))


def test_sides_are_mirrored_to_the_grid():
    x = torch.arange(15.0).reshape(1, 1, 3, 5)
    expected = np.pad(x[0, 0].numpy(), ((0, 1), (0, 3)), mode="symmetric")
    assert continued(x, 4)[0, 0].tolist() == expected.tolist()
    assert continued(x[..., :1], 4)[0, 0, 0].tolist() == [0, 0, 0, 0]


@pytest.fixture
def own_root(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path))
    monkeypatch.setattr(paths, "inpainter_weights", lambda: tmp_path / "weights.safetensors")
    monkeypatch.setattr(training, "_REPORT", 2)
    monkeypatch.setattr(training, "_HELD_OUT", 2)
    return tmp_path


def test_training_goes_on_where_it_was_killed(own_root, monkeypatch, capsys):
    settings = ["--scenes", "4", "--small", "3", "--large", "1", "--small-batch", "2", "--large-batch", "1"]
    training.main(settings)
    whole = (own_root / "weights.safetensors").read_bytes()
    curve_file = own_root / "data" / "results" / "inpainter" / "training-curve.csv"
    curve = curve_file.read_text()
    for file in own_root.glob("data/derived/inpainter/training-*"):
        file.unlink()
    step = training._step

    def killed(net, optimizer, batch, given, number):
        if number == 3:
            raise KeyboardInterrupt
        return step(net, optimizer, batch, given, number)

    monkeypatch.setattr(training, "_step", killed)
    (own_root / "weights.safetensors").unlink()
    with pytest.raises(KeyboardInterrupt):
        training.main(settings)
    assert not (own_root / "weights.safetensors").exists()
    monkeypatch.setattr(training, "_step", step)
    training.main([*settings, "--minutes", "0"])
    training.main(settings)
    assert (own_root / "weights.safetensors").read_bytes() == whole
    assert pd.read_csv(curve_file)["step"].tolist() == [2, 4]
    assert curve_file.read_text().splitlines()[1] == curve.splitlines()[1]
    printed = capsys.readouterr().out
    assert printed.count("finished") == 2
    assert printed.count("run the same command again to go on") == 1


def test_weights_come_back_as_halves(tmp_path):
    torch.manual_seed(1)
    net = InpainterNet()
    save_weights(net, tmp_path / "w.safetensors", {"trained": "never"})
    for name, value in load_weights(tmp_path / "w.safetensors").state_dict().items():
        assert torch.equal(value, net.state_dict()[name].half().float())
    with pytest.raises(FileNotFoundError, match=r"there is no checkpoint .*none\.safetensors"):
        load_weights(tmp_path / "none.safetensors")
    safetensors.torch.save_file({"a": torch.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match="must hold the weights of InpainterNet; got 1 tensors"):
        load_weights(tmp_path / "other.safetensors")


def test_what_ships_is_small_and_says_how_it_was_trained():
    file = paths.inpainter_weights()
    assert file.stat().st_size <= 5_000_000
    with safetensors.safe_open(file, "pt") as opened:
        trained = training.Settings(**json.loads(opened.metadata()["trained"]))
    curve = paths.results("inpainter", "training-curve.csv")
    assert (pd.read_csv(curve)["step"].iloc[-1] if trained.steps else 0) == trained.steps
    moved = any(
        bool(weight.any()) for name, weight in load_weights(file).named_parameters() if name == "out.weight"
    )
    assert moved == (trained.steps > 0)  # before training there is no correction


def test_the_shipped_in_painter_removes_objects_better_than_telea_and_grey():
    scenes = draw_removals("test", 6, seed=0)
    values = {name: [] for name in ("scenes-inpainter", "telea", "mean")}
    for before, after, removed in zip(scenes.before, scenes.after, scenes.removed):
        seen, wanted = (torch.from_numpy(part).permute(2, 0, 1) / 255 for part in (before, after))
        hole = torch.from_numpy(widened(removed, 2))[None]
        for name, found in values.items():
            found.append(psnr(make_fill(name)(seen, hole), wanted, hole))
    means = {name: np.mean(found) for name, found in values.items()}
    assert means["scenes-inpainter"] > means["telea"] + 1
    assert means["scenes-inpainter"] > means["mean"] + 5


def test_psnr_counts_the_hole_only():
    hole = torch.zeros(1, 4, 4, dtype=torch.bool)
    hole[0, 1, 1:3] = True
    wanted, answer = torch.zeros(3, 4, 4), torch.ones(3, 4, 4)
    answer[:, 1, 1], answer[:, 1, 2] = 0.1, 0.3
    assert psnr(answer, wanted, hole) == pytest.approx(-10 * np.log10((0.01 + 0.09) / 2), abs=1e-5)


def test_feature_distance_is_the_mean_squared_difference_of_unit_features():
    backbone = load_backbone("efficientnet_lite0")
    distance = FeatureDistance(backbone, ("stage3",))
    rng = np.random.default_rng(0)
    a, b = (torch.from_numpy(rng.random((3, 64, 64), dtype=np.float32)) for _ in range(2))
    hole = torch.zeros(1, 64, 64, dtype=torch.bool)
    hole[0, :8, :16] = True  # stage 3 has an eighth of the resolution: two whole cells
    hole[0, 8:12, :8] = True  # and half a third one
    found = distance(distance.features(a), distance.features(b), hole)

    with torch.inference_mode():
        maps = [
            backbone.module.blocks[:3](
                backbone.module.bn1(backbone.module.conv_stem(backbone.transform.normalise(x[None])))
            )
            for x in (a, b)
        ]
    u, v = (m[0].numpy().astype(float) / np.linalg.norm(m[0].numpy().astype(float), axis=0) for m in maps)
    squares = ((u - v) ** 2).sum(0)
    assert found == pytest.approx((squares[0, 0] + squares[0, 1] + squares[1, 0] / 2) / 2.5, rel=1e-4)
    assert distance(distance.features(a), distance.features(a), hole) == 0
    assert not any(module._forward_hooks for module in backbone.module.modules())


def test_summary_pairs_fills_by_picture():
    frame = pd.DataFrame(
        {
            "case": [0, 0, 1, 1, 2, 2],
            "fill": ["mean", "net"] * 3,
            "psnr": [10.0, 13.0, 20.0, 24.0, 12.0, 17.0],
            "distance": [1.0, 0.5] * 3,
            "milliseconds": [1.0, 2.0] * 3,
        }
    )
    table = summary(frame, against=("mean",)).set_index(["fill", "metric", "against"])
    row = table.loc[("net", "psnr", "mean")]
    # differences 3, 4, 5: mean 4, standard error 1/√3, t(2) = 4.303
    assert row["value"] == 4
    assert row["high"] - 4 == pytest.approx(4.302653 / np.sqrt(3), rel=1e-6)
    assert row["n"] == 3
    assert table.loc[("mean", "psnr", ""), "value"] == 14
    assert ("mean", "psnr", "mean") not in table.index
    assert table.loc[("net", "distance", "mean"), "low"] == -0.5


def test_a_fill_that_knows_the_answer_has_distance_0_and_is_not_blamed_for_what_is_outside():
    wanted, hole = torch.full((3, 64, 64), 0.5), torch.zeros(1, 64, 64, dtype=torch.bool)
    hole[0, 20:40, 20:40] = True
    picture = torch.rand(3, 64, 64, generator=torch.Generator().manual_seed(0))  # differs outside the hole
    fills = {
        "knows": make_fill(lambda images, masks: torch.full_like(images, 0.5)),
        "black": make_fill("black"),
    }
    frame = compare([(picture, hole, wanted)], fills, FeatureDistance(load_backbone("efficientnet_lite0")))
    frame = frame.set_index("fill")
    assert frame.loc["knows", "distance"] == 0
    assert frame.loc["knows", "psnr"] == 100
    assert frame.loc["black", "distance"] > 0
    assert frame.loc["black", "psnr"] == pytest.approx(-10 * np.log10(0.25), abs=1e-5)
