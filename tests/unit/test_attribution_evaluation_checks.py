"""Sweeps, sanity check, pictures, gallery and programme of the attribution chapter."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from biastransfer.attribution.evaluation import run_evaluation
from biastransfer.attribution.evaluation_checks import robustness_rows, sanity_rows, scaled
from biastransfer.attribution.evaluation_gallery import gallery, removed
from biastransfer.attribution.evaluation_pictures import IMAGENET_CLASSES, SKIMAGE, chapter_pictures
from biastransfer.attribution.evaluation_study import PLAIN, Programme, maps_of
from biastransfer.attribution.pictures import AttributionPicture
from biastransfer.attribution.robustness import SWEEPS, Sweep
from biastransfer.backbones import Backbone, Transform

SIDE = 48  # the least that histograms of gradients take


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASTRANSFER_CACHE", str(tmp_path))


@pytest.fixture(scope="module")
def backbone():
    torch.manual_seed(0)
    body = nn.Sequential(nn.Conv2d(3, 6, 5, 2), nn.ReLU(), nn.Conv2d(6, 8, 3, 2), nn.ReLU())
    module = nn.Sequential(body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3)).eval()
    transform = Transform(SIDE, 1.0, "bilinear", (0.5,) * 3, (0.5,) * 3)
    return Backbone(
        "own", module, transform, 8, ("embedding",), "test", ("car", "dog", "cup"), {"embedding": "2"}, "3"
    )


@pytest.fixture(scope="module")
def scenes():
    return chapter_pictures("scenes", 4)[0]


def test_sweeps_in_pixels_are_scaled_and_others_are_not():
    assert scaled(SWEEPS["SP patch, wide"], 128).values == (3, 17, 30)
    assert scaled(SWEEPS["SP patch, narrow"], 112).values == (26, 27, 28), "at least a pixel apart"
    assert scaled(SWEEPS["MP blur"], 112).values == (2.5, 5, 15)
    assert scaled(SWEEPS["LIME seed"], 112) == SWEEPS["LIME seed"]


def test_an_unchanged_seed_leaves_maps_the_same_and_a_setting_that_matters_does_not(
    backbone, scenes, monkeypatch
):
    monkeypatch.setitem(SWEEPS, "GAUSSIAN seed", Sweep("gaussian_map", "seed", (0, 1)))
    methods = {"meaningful_perturbation": {"steps": 2, "mask_size": 12}, "gaussian_map": {}}
    methods["lime"] = {"n_samples": 12, "n_segments": 9}
    sweeps = ["GAUSSIAN seed", "MP blur", "LIME seed", "SP patch, wide"]
    found = robustness_rows(
        backbone,
        scenes.pictures[:2],
        methods,
        {"lime": [PLAIN, "telea"]},
        sweeps=sweeps,
        most=2,
        targets="top",
    )
    assert set(found["setting"]) == set(sweeps[:3]), "no sweep of a method that is not asked for"
    values = found.set_index(["setting", "metric", "fill"])["value"]
    np.testing.assert_allclose(values["GAUSSIAN seed"], 1)
    assert (values["LIME seed"] < 0.999).all()
    assert set(found.loc[found["setting"] == "MP blur", "fill"]) == {"blur"}, "no other fill depends on it"
    assert len(found) == 2 * 3 * (1 + 1 + 2)
    assert set(found["direction"]) == {"↑"}
    with pytest.raises(ValueError, match="unknown sweep 'SP'; known: SP patch, wide"):
        robustness_rows(backbone, scenes.pictures, methods, {}, sweeps=["SP"])


def test_random_weights_change_a_gradient_and_not_a_random_map(backbone, scenes):
    before = [one.detach().clone() for one in backbone.module.parameters()]
    found = sanity_rows(backbone, scenes.pictures[:2], {"gradient": {}, "random_map": {}}, {}, targets="top")
    values = found.set_index(["method", "setting", "metric"])["value"]
    np.testing.assert_allclose(values["random_map"], 1)
    assert (values["gradient", "all weights", "spearman"].abs() < 0.5).all()
    assert all(torch.equal(a, b) for a, b in zip(before, backbone.module.parameters()))
    assert len(found) == 2 * 2 * 2 * 3


def test_a_check_that_fails_is_a_row_with_its_reason(backbone, scenes):
    lone = AttributionPicture("lone", scenes.pictures[0].source, "boat")
    rows = sanity_rows(backbone, [lone], {"random_map": {}}, {}, targets="label")
    assert rows["value"].isna().all()
    assert rows["reason"].str.contains("'boat'").all()
    rows = robustness_rows(
        backbone, [lone], {"lime": {"n_samples": 3}}, {}, sweeps=["LIME seed"], targets="label"
    )
    assert rows["value"].isna().all()
    assert rows["reason"].str.startswith("picture: ").all()


def test_scenes_hold_their_object_once_or_twice_and_do_not_depend_on_their_number(scenes):
    assert [len(one.boxes[[name == one.label for name in one.box_labels]]) for one in scenes.pictures] == [
        1,
        1,
        1,
        2,
    ]
    assert all(one.label in one.masks for one in scenes.pictures)
    [first, *_] = chapter_pictures("scenes", 2)[0].pictures
    np.testing.assert_array_equal(first.source, scenes.pictures[0].source)


def test_photographs_are_scikit_images_own_where_there_is_no_folder(tmp_path):
    found, targets = chapter_pictures("photographs", 5)
    assert [one.name for one in found.pictures] == list(SKIMAGE)
    assert {one.label for one in found.pictures} <= set(targets)
    assert all(licence.startswith(("CC0", "public domain")) for _, licence in SKIMAGE.values())
    with pytest.raises(FileNotFoundError, match="must be a folder of pictures"):
        chapter_pictures("photographs", 5, root=tmp_path / "none")
    with pytest.raises(ValueError, match="the pictures must come from scenes or photographs; got 'folder'"):
        chapter_pictures("folder", 5)


def test_photographs_with_boxes_are_drawn_from_those_that_imagenet_knows(shared_data):
    found, _ = chapter_pictures("photographs", 9, root=shared_data / "dali_boxes")
    assert len(found) == 3 + 9
    assert {one.label for one in found.pictures} <= set(IMAGENET_CLASSES)
    assert found.skipped["reason"].str.contains("ImageNet has no class for Cow").sum() > 0
    again, _ = chapter_pictures("photographs", 9, root=shared_data / "dali_boxes")
    assert [one.name for one in again.pictures] == [one.name for one in found.pictures]


def test_the_gallery_scales_every_map_alike_and_the_object_goes(backbone, scenes):
    few = scenes.pictures[:2]
    done = run_evaluation(
        backbone, few, {"gradient": {}, "rise": {"n_samples": 8}}, {"rise": [PLAIN]}, [], targets="top"
    )
    shown = gallery(backbone, few, done, targets="top")
    assert [list(one.maps) for one in shown] == [[("gradient", "none"), ("rise", PLAIN)]] * 2
    for one in shown:
        assert all(np.abs(heat).max() == 1 for heat in one.maps.values())
        assert np.median(one.maps["rise", PLAIN]) == pytest.approx(0, abs=1e-6)
        assert one.pixels.shape == (SIDE, SIDE, 3)
    without = removed(backbone, few, ["black"], widen=0, targets="top")
    assert [one.fill for one in without] == ["nothing", "black"] * 2
    gone = (without[0].pixels != without[1].pixels).any(2)
    assert gone.sum() >= 0.95 * shown[0].outline.sum()
    assert not gone[~shown[0].outline].any()


def test_what_has_no_object_loses_the_highest_fifth_of_a_map(backbone, scenes):
    lone = AttributionPicture("lone", scenes.pictures[0].source, "car")
    heat = np.arange(SIDE * SIDE, dtype=float).reshape(SIDE, SIDE)
    without = removed(backbone, [lone], ["black"], widen=0, maps={"lone": heat})
    gone = (without[1].pixels == 0).all(2)
    assert gone.mean() == pytest.approx(0.2, abs=0.01)
    assert gone[-5:].all()
    with pytest.raises(ValueError, match="lone: what is removed must be known; it has no mask, box or map"):
        removed(backbone, [lone], ["black"])


def test_the_programme_scales_pixels_and_in_paints_the_papers_three_methods(backbone, scenes):
    names = ["sliding_patch", "lime", "rise", "gradcam", "random_map"]
    programme = Programme(names, "telea", stride=28, lime_samples=5, points=7)
    assert programme.settings(112)["sliding_patch"] == {"stride": 14}
    assert programme.settings(112)["rise"] == {"n_samples": 20}
    assert programme.measures(112, masks=False)["deletion"] == {"step": 1792}
    assert "mass_inside_mask" not in programme.measures(112, masks=False)
    assert programme.fills["lime"] == [PLAIN, "blur", "telea"]
    assert programme.fills["rise"] == [PLAIN]
    done = maps_of(backbone, scenes.pictures[:1], "top", programme)
    found = pd.DataFrame(list(done.keys), columns=["picture", "method", "fill", "setting"])
    assert found.groupby("method").size().to_dict() == {
        "sliding_patch": 3, "lime": 3, "rise": 1, "gradcam": 1, "random_map": 1
    }  # fmt: skip
