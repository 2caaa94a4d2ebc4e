"""Pictures with a person: scenes drawn again to the byte, COCO pictures with their boxes."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from biastransfer import plots
from biastransfer.analysis_sets.generated import load
from biastransfer.attribution.person_pictures import coco_person_pictures, scene_person_pictures
from biastransfer.attribution.removal_numbers import chapter_numbers
from biastransfer.attribution.removal_verdicts import carriers
from biastransfer.attribution.who_drives import in_turn, study
from biastransfer.images import read_rgb
from biastransfer.plots.pixels import _laid_over
from biastransfer.plots.style import STAGES

SCALE = 0.01  # five pictures a class


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    return load(tmp_path_factory.mktemp("scenes"), schema="coco", scale=SCALE, seed=3)


@pytest.fixture(scope="module")
def found(scenes):
    return scene_person_pictures(scenes, "coco", scale=SCALE, seed=3, most=2)


class TestScenes:
    def test_the_sets_own_pictures_drawn_again(self, scenes, found):
        assert len(found.pictures) == 12  # three objects, two scenes, twins
        own = {one.name: one for one in found.pictures if one.name in set(scenes.items["id"])}
        rows = scenes.items[scenes.items["id"].isin(own)]
        assert len(rows) == 6
        assert rows["attribute"].value_counts().to_dict() == {"man": 3, "woman": 3}
        for row in rows.itertuples():
            one = own[row.id]
            assert (one.object, one.attribute) == (row.object, row.attribute)
            assert np.array_equal(one.picture.rgb(), read_rgb(row.file))

    def test_twins_differ_where_the_person_is_and_not_without(self, found):
        pairs = pd.Series([one.pair for one in found.pictures])
        assert set(pairs.value_counts()) == {2}
        for name in pairs.unique():
            first, second = (one for one in found.pictures if one.pair == name)
            assert {first.attribute, second.attribute} == {"man", "woman"}
            assert np.array_equal(first.redrawn["person"], second.redrawn["person"])
            changed = np.abs(first.picture.rgb().astype(int) - first.redrawn["person"]).max(2)
            person = first.picture.masks["person"]
            assert (changed[person] > 40).mean() > 0.7
            assert not (person & first.picture.masks["object"]).any()
            thing = np.abs(first.picture.rgb().astype(int) - first.redrawn["object"]).max(2)
            assert (thing[first.picture.masks["object"]] > 20).mean() > 0.7

    def test_without_twins_each_picture_once(self, scenes):
        single = scene_person_pictures(scenes, "coco", scale=SCALE, seed=3, most=1, twins=False)
        assert {one.pair for one in single.pictures} == {""}
        assert {one.name for one in single.pictures} <= set(scenes.items["id"])
        assert len(single.pictures) == 3

    def test_those_explained_take_turns(self, found):
        chosen = in_turn(found.pictures, 6)
        assert {(one.object, one.attribute) for one in chosen} == {
            (thing, gender) for thing in ("car", "refrigerator", "surfboard") for gender in ("man", "woman")
        }


@pytest.fixture
def coco(tmp_path):
    """Four pictures: a man with a car, two women and a dog, both genders, a tiny man."""
    (tmp_path / "images").mkdir()
    (tmp_path / "annotations").mkdir()
    boxes = {
        1: [("person", [10, 5, 20, 30]), ("car", [25, 20, 30, 15])],
        2: [("person", [0, 0, 10, 40]), ("person", [50, 0, 10, 40]), ("dog", [52, 5, 5, 5])],
        3: [("person", [0, 0, 30, 40])],
        4: [("person", [0, 0, 2, 2]), ("car", [5, 5, 30, 30])],
    }
    said = {1: "A man beside a car", 2: "Two women walk.", 3: "A man and a woman", 4: "A man far away"}
    names = {"person": 1, "car": 3, "dog": 18}
    images = [{"id": k, "file_name": f"{k:012d}.png", "height": 40, "width": 60} for k in boxes]
    for one in images:
        Image.new("RGB", (60, 40), (90, 90, 90)).save(tmp_path / "images" / one["file_name"])
    listed = [
        {"id": 10 * k + n, "image_id": k, "category_id": names[name], "bbox": box, "area": 1, "iscrowd": 0}
        for k, found in boxes.items()
        for n, (name, box) in enumerate(found)
    ]
    categories = [{"id": k, "name": name} for name, k in names.items()]
    files = {
        "instances": {"images": images, "annotations": listed, "categories": categories},
        "captions": {
            "images": images,
            "annotations": [{"id": k, "image_id": k, "caption": text} for k, text in said.items()],
        },
    }
    for name, contents in files.items():
        (tmp_path / "annotations" / f"{name}.json").write_text(json.dumps(contents))
    return tmp_path


class TestPhotographs:
    def test_boxes_become_masks_and_captions_genders(self, coco):
        found = coco_person_pictures(coco)
        first, second = found.pictures
        assert (first.object, first.attribute, first.redrawn) == ("vehicle", "man", {})
        person = np.zeros((40, 60), bool)
        person[5:35, 10:30] = True
        assert np.array_equal(first.picture.masks["person"], person)
        thing = np.zeros((40, 60), bool)
        thing[20:35, 30:55] = True  # the box outside of the person's
        assert np.array_equal(first.picture.masks["object"], thing)
        assert (second.object, second.attribute) == ("animal", "woman")
        assert second.picture.masks["person"].sum() == 800
        assert "object" not in second.picture.masks  # the dog's box lies in a woman's

    def test_what_is_left_out_is_listed_with_its_reason(self, coco):
        skipped = coco_person_pictures(coco).skipped.set_index("picture")["reason"]
        assert skipped.to_dict() == {
            "000000000003": "captions name both",
            "000000000004": "people below 0.01 of the picture",
        }

    def test_no_more_than_asked_for(self, coco):
        assert [one.name for one in coco_person_pictures(coco, most=1, min_area=0).pictures] == [
            "000000000001",
            "000000000002",
        ]

    def test_a_few_hundred_of_coco(self, shared_data):
        """Counted by a second reading of the files: pictures whose captions name one gender, with a box."""
        root = shared_data / "coco-mini"
        found = coco_person_pictures(root)
        genders = pd.Series([one.attribute for one in found.pictures]).value_counts()
        assert genders.to_dict() == {"man": 78, "woman": 28}
        listed = json.loads((root / "annotations" / "instances.json").read_text())["images"]
        assert len(found.pictures) + found.skipped["picture"].nunique() == len(listed)
        for one in found.pictures:
            thing = one.picture.masks.get("object")
            assert thing is None or not (thing & one.picture.masks["person"]).any()

    def test_another_kind_of_set_is_refused(self):
        with pytest.raises(ValueError, match="scenes-coco, scenes-openimages or mini-coco; got 'released"):
            study("released-openimages", run="smoke", backbone="squeezenet1_1")


def removal_table():
    rows = []
    shares = {"nothing": np.nan, "person": 0.9, "object": 0.1, "both": 1.0, "elsewhere": 0.0}
    for stage, seed in (("pretrained", 0), ("finetuned", 1)):
        for removed, share in shares.items():
            row = {"stage": stage, "seed": seed, "fill": "telea", "object": "all", "removed": removed}
            row |= {
                "n_man": 5,
                "n_woman": 4,
                "value": 0.2 - 0.2 * np.nan_to_num(share),
                "low": 0.1,
                "high": 0.3,
            }
            row |= {"left": 0.2 * share, "left_low": 0, "left_high": 1, "share": share}
            row |= {
                "share_low": share - 0.1,
                "share_high": share + 0.1,
                "beyond_low": 0.01,
                "beyond_high": 0.2,
            }
            rows += [row | {"kind": kind} for kind in ("difference", "d")]
    return pd.DataFrame(rows)


def test_numbers_of_the_page():
    pictures = pd.DataFrame({"picture": ["a", "b", "a"], "attribute": ["man", "woman", "man"]})
    pixels = pd.DataFrame(
        {"stage": ["pretrained", "finetuned"] * 2, "region": "person", "score": "association", "fill": "mean",
         "method": ["lime", "lime", "sliding_patch", "sliding_patch"], "share": [0.2, 0.3, 0.4, 0.25],
         "positive": 0.5, "area": 0.15}
    )  # fmt: skip
    found = chapter_numbers(pixels, removal_table(), pictures, "telea")
    assert (found["n_pictures"], found["n_man"], found["n_woman"]) == (2, 1, 1)
    assert found["person_before"] == found["person_after"] == "90 % (80 to 100 %)"
    assert found["person_others"] == "none was tried"
    assert found["elsewhere_after"] == "0 % (-10 to 10 %)"
    assert found["redrawn_before"] == "not known for photographs"
    assert found["plain_before"] == "not tried"
    assert (found["map_before"], found["map_after"]) == ("20 to 40 %", "25 to 30 %")
    assert found["area"] == pytest.approx(0.15)
    assert (found["d_before"], found["d_without_before"]) == pytest.approx((0.2, 0.02))
    assert found["verdicts"] == "people 2 of 2"
    again = removal_table().query("stage == 'finetuned'").assign(seed=3, share=0.5)
    found = chapter_numbers(pixels, pd.concat([removal_table(), again]), pictures, "telea")
    assert found["person_after"] == "90 % (80 to 100 %)"
    assert found["person_others"] == "seed 3, 50 % (80 to 100 %)"


def test_a_stricter_rule_leaves_more_undecided():
    judged = carriers(removal_table(), at_least=0.85)
    assert set(judged["verdict"]) == {"undecided"}


class TestFigures:
    def marked(self, ax, stage):
        """Return where a panel has the markers of a stage: x by row, to the nearest whole row."""
        look = STAGES[stage]["marker"]
        lines = [line for line in ax.lines if line.get_marker() == look]
        return {round(float(line.get_ydata()[0])): float(line.get_xdata()[0]) for line in lines}

    def test_what_is_left_after_each_removal(self):
        table = removal_table()
        figure = plots.removal_effects(table[table["kind"] == "difference"])
        titles = {
            ax: ax.get_title("left") or ax.get_title() for ax in figure.axes
        }  # the style puts them left
        [panel] = [ax for ax, title in titles.items() if title]
        assert titles[panel] == "all objects"
        words = [label.get_text() for label in panel.get_yticklabels()]
        assert words == [
            "whole picture",
            "person removed",
            "as much elsewhere",
            "object removed",
            "both removed",
        ]
        for stage in ("pretrained", "finetuned"):
            assert self.marked(panel, stage) == pytest.approx({0: 0.2, 1: 0.02, 2: 0.2, 3: 0.18, 4: 0.0})

    def test_shares_stand_beside_the_area(self):
        parts = pd.DataFrame({"region": ["person", "rest"], "value": [0.4, 0.6], "area": [0.1, 0.9]})
        parts = parts.assign(method="lime", fill="mean", low=np.nan, high=np.nan)
        both = [parts.assign(stage=stage) for stage in ("pretrained", "finetuned")]
        figure = plots.region_shares(pd.concat(both))
        person, rest = figure.axes
        assert (self.marked(person, "pretrained"), self.marked(rest, "finetuned")) == ({0: 0.4}, {0: 0.6})
        dashed = [line for line in person.lines if line.get_linestyle() == "--"]
        assert [line.get_xdata()[0] for line in dashed] == [0.1]

    def test_a_map_is_laid_over_with_the_same_strength_everywhere(self):
        """Green towards men, purple towards women, pale where neither; a dark picture darkens all alike."""
        heat = np.array([[1.0, -1.0, 0.0]])
        bright, dark = (_laid_over(np.full((1, 3, 3), shade), heat) for shade in (1.0, 0.0))
        np.testing.assert_allclose(dark, 0.6 * bright)
        assert bright[0, 0].argmax() == 1
        assert bright[0, 1].argmin() == 1
        assert np.ptp(bright[0, 2]) < 0.01
