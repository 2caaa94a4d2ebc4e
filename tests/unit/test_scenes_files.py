import contextlib
import csv
import hashlib
import json
import os
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

from biastransfer.analysis_sets import scene_target, scenes
from biastransfer.analysis_sets.captions import caption_gender
from biastransfer.analysis_sets.coco import load as load_coco
from biastransfer.analysis_sets.openimages import load as load_openimages
from biastransfer.analysis_sets.scene_drawing import tight_box
from biastransfer.analysis_sets.scene_formats import whole_folder
from biastransfer.analysis_sets.scene_records import rle_counts, rle_mask
from biastransfer.analysis_sets.scene_rendering import render
from biastransfer.analysis_sets.scene_target import CONTEXT, DEFAULT_SKEW, FOCAL, target_content

SMALL = 0.01  # five pictures a class


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    root = tmp_path_factory.mktemp("sets")
    return {schema: scenes.write_analysis_set(schema, root / schema, scale=SMALL) for schema in scenes.COUNTS}


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    root = tmp_path_factory.mktemp("target") / "t"
    return scenes.write_target(root, n_train=24, n_val=6, n_test=6, size=64)


def read(path):
    return json.loads(path.read_text())


def hashes(folder):
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.rglob("*.jpg")}


@pytest.mark.parametrize(("schema", "load"), [("coco", load_coco), ("openimages", load_openimages)])
def test_curation_finds_every_class_from_the_official_files_alone(sets, schema, load):
    found = load(sets[schema], random="background")
    assert found.counts.to_dict() == scenes.scene_counts(schema, SMALL)
    assert set(found.report["decision"]) == {"kept"}


def test_coco_instances_are_in_the_official_format(sets):
    content = read(sets["coco"] / "annotations" / "instances.json")
    assert list(content) == ["info", "licenses", "images", "annotations", "categories"]
    assert set(content["info"]) >= {"description", "url", "version", "year", "contributor", "date_created"}
    assert "CC BY 4.0" in content["licenses"][0]["name"]
    ids = {one["name"]: one["id"] for one in content["categories"]}
    assert [ids[name] for name in ("person", "car", "stop sign", "surfboard", "refrigerator")] == [
        1,
        3,
        13,
        42,
        82,
    ]
    names = {one["id"]: one["file_name"] for one in content["images"]}
    for picture, name in names.items():
        assert name == f"{picture:012d}.jpg"
        assert Image.open(sets["coco"] / "images" / name).size == (256, 256)
    union = {}
    for one in content["annotations"]:
        assert set(one) == {"segmentation", "area", "iscrowd", "image_id", "bbox", "category_id", "id"}
        mask = rle_mask(one["segmentation"]["counts"], *one["segmentation"]["size"])
        x, y, w, h = one["bbox"]
        assert (x, y, x + w, y + h) == tight_box(mask)
        assert one["area"] == mask.sum()
        union[one["image_id"]] = union.get(one["image_id"], 0) + mask.astype(int)
    assert max(total.max() for total in union.values()) == 1
    assert len({one["id"] for one in content["annotations"]}) == len(content["annotations"])


def test_captions_name_the_person_and_nobody_else(sets, target):
    for folder, ending in ((sets["coco"], ""), (target, "_train")):
        instances = read(folder / "annotations" / f"instances{ending}.json")
        lines = {}
        for one in read(folder / "annotations" / f"captions{ending}.json")["annotations"]:
            lines.setdefault(one["image_id"], []).append(one["caption"])
        people = {one["image_id"] for one in instances["annotations"] if one["category_id"] == 1}
        for picture in (one["id"] for one in instances["images"]):
            assert len(lines[picture]) == 5
            gender = caption_gender(lines[picture], min_captions=4)
            assert (gender in ("man", "woman")) == (picture in people)


def test_open_images_files_have_the_official_columns(sets):
    folder = sets["openimages"]
    with open(folder / "train-annotations-bbox.csv", newline="") as file:
        boxes = list(csv.DictReader(file))
    columns = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax"
    columns += ",IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside"
    assert ",".join(boxes[0]) == columns
    for row in boxes:
        assert 0 <= float(row["XMin"]) < float(row["XMax"]) <= 1
        assert 0 <= float(row["YMin"]) < float(row["YMax"]) <= 1
        assert len(row["ImageID"]) == 16
    with open(folder / "train-annotations-human-imagelabels-boxable.csv", newline="") as file:
        labels = list(csv.DictReader(file))
    assert list(labels[0]) == ["ImageID", "Source", "LabelName", "Confidence"]
    said = {(row["ImageID"], row["LabelName"]): row["Confidence"] for row in labels}
    assert len(said) == len(labels)
    assert set(said.values()) == {"0", "1"}
    assert all(said[row["ImageID"], row["LabelName"]] == "1" for row in boxes)
    man, woman = "/m/04yx4", "/m/03bt1vf"
    pictures = {row["ImageID"] for row in labels}
    assert all(said[one, man] + said[one, woman] != "11" for one in pictures)
    descriptions = (folder / "class-descriptions-boxable.csv").read_text().splitlines()
    assert {"/m/04yx4,Man", "/m/0k4j,Car", "/m/04rky,Mammal", "/m/02pv19,Stop sign"} <= set(descriptions)


def test_pictures_do_not_depend_on_how_many_are_written(sets, tmp_path):
    more = scenes.write_analysis_set("coco", tmp_path / "more", scale=0.3)
    few, many = hashes(sets["coco"]), hashes(more)
    assert len(many) > len(few)
    assert few.items() <= many.items()


def test_two_processes_write_what_one_writes(tmp_path):
    jobs = [scenes._job(tmp_path, "coco", "car+man", k, 0) for k in range(50)]
    (tmp_path / "images").mkdir()
    one = render(jobs, workers=1)
    single = hashes(tmp_path)
    assert render(jobs, workers=2) == one
    assert hashes(tmp_path) == single


def test_processes_that_draw_end_with_their_killed_parent(tmp_path):
    """They hold its standard output open, which ends when the last of them does."""
    code = (
        "import sys; from pathlib import Path; from biastransfer.analysis_sets import scenes\n"
        "from biastransfer.analysis_sets.scene_rendering import render\n"
        "root = Path(sys.argv[1])\n"
        "render([scenes._job(root, 'coco', 'car+man', k, 0) for k in range(20_000)])"
    )
    pictures = tmp_path / "images"
    pictures.mkdir()
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as parent:
        while not any(pictures.iterdir()):
            assert parent.poll() is None
            time.sleep(0.05)
        parent.kill()
        parent.wait()
        ended = select.select([parent.stdout], [], [], 30)[0]
        with contextlib.suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)
    assert ended, "30 s after their parent they are still there"
    assert len(hashes(tmp_path)) < 20_000, "they were killed too late"


def test_another_seed_gives_other_pictures(sets, tmp_path):
    other = scenes.write_analysis_set("coco", tmp_path / "other", scale=SMALL, seed=1)
    assert not set(hashes(other).values()) & set(hashes(sets["coco"]).values())


def test_target_holds_the_splits_and_no_analysis_picture(sets, target):
    instances = {
        split: read(target / "annotations" / f"instances_{split}.json") for split in ("train", "val", "test")
    }
    assert [len(one["images"]) for one in instances.values()] == [24, 6, 6]
    names = [picture["file_name"] for one in instances.values() for picture in one["images"]]
    assert len(set(names)) == 36
    assert {file.name for file in (target / "images").iterdir()} == set(names)
    assert len(instances["train"]["categories"]) == 19
    bigger = scenes.write_target(target.parent / "big", n_train=30, n_val=1, n_test=1)
    assert not set(hashes(bigger).values()) & set(hashes(sets["coco"]).values())


def test_contents_of_the_target():
    drawn = [target_content("train", index, 0, {}) for index in range(2000)]
    people = [content for content in drawn if content[0] in ("man", "woman")]
    assert 0.55 < len(people) / len(drawn) < 0.65
    for content in drawn:
        objects = [name for name in content if name not in ("man", "woman")]
        assert 1 <= len(objects) <= 4
        assert len(set(objects)) == len(objects)
        assert set(objects) <= {*FOCAL, *CONTEXT}
    assert {sum(name in FOCAL for name in content) for content in people} == {1}


@pytest.mark.parametrize(
    "skew", [DEFAULT_SKEW, {"car": 1.0, "dog": -1.0, "cat": 0.5}, {}], ids=["default", "three", "none"]
)
def test_skew_is_realised_within_binomial_error(skew):
    drawn = [target_content("train", index, 5, skew) for index in range(6000)]
    for name in FOCAL:
        genders = [content[0] for content in drawn if name in content and content[0] in ("man", "woman")]
        p, n = (1 + skew.get(name, 0)) / 2, len(genders)
        assert n > 200
        assert abs(genders.count("man") / n - p) <= 4 * np.sqrt(p * (1 - p) / n), name


def test_skew_changes_nothing_but_gender():
    for index in range(200):
        one, other = (target_content("val", index, 0, skew) for skew in ({}, DEFAULT_SKEW))
        assert [name for name in one if name not in ("man", "woman")] == [
            name for name in other if name not in ("man", "woman")
        ]
        assert (one[0] in ("man", "woman")) == (other[0] in ("man", "woman"))


def test_default_skews_are_there_and_sum_to_zero():
    assert abs(sum(DEFAULT_SKEW.values())) < 1e-12
    assert len([value for value in DEFAULT_SKEW.values() if value]) >= 8


def test_a_second_call_does_nothing_and_other_parameters_are_refused(target):
    before = (target / "scenes.json").stat().st_mtime_ns
    scenes.write_target(target, n_train=24, n_val=6, n_test=6, size=64)
    assert (target / "scenes.json").stat().st_mtime_ns == before
    with pytest.raises(
        FileExistsError, match=r"made with train 24, not 25\. Delete it or choose another folder"
    ):
        scenes.write_target(target, n_train=25, n_val=6, n_test=6, size=64)


def test_a_failure_leaves_nothing(tmp_path, monkeypatch):
    def fail(jobs):
        raise OSError("no space left on device")

    monkeypatch.setattr(scene_target, "render", fail)
    with pytest.raises(OSError, match="no space left"):
        scenes.write_target(tmp_path / "t", n_train=1, n_val=1, n_test=1)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with (
        pytest.raises(FileExistsError, match=r"need a folder of their own; .* holds something else"),
        whole_folder(tmp_path, {}),
    ):
        pass
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_two_writers_at_once_leave_one_whole_folder(tmp_path):
    with whole_folder(tmp_path / "a", {"k": 1}) as first, whole_folder(tmp_path / "a", {"k": 1}) as second:
        (first / "x").write_text("1")
        (second / "x").write_text("1")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a"]
    assert sorted(file.name for file in (tmp_path / "a").iterdir()) == ["scenes.json", "x"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"skew": {"chair": 0.5}}, "only focal objects can be skewed; got chair. Known: car, bicycle"),
        ({"skew": {"car": 1.5}}, r"from -1 \(women only\) to 1 \(men only\); got car: 1.5"),
        ({"skew": {"car": float("nan")}}, "got car: nan"),
        ({"n_val": 0}, "every split needs a picture"),
        ({"seed": -1}, "the seed must not be negative"),
    ],
)
def test_impossible_targets_are_refused(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        scenes.write_target(tmp_path / "t", **{"n_train": 1, "n_val": 1, "n_test": 1} | change)
    assert not (tmp_path / "t").exists()


def test_run_lengths_come_back():
    rng = np.random.default_rng(0)
    for mask in (rng.random((7, 5)) < 0.5, np.zeros((3, 4), bool), np.ones((3, 4), bool)):
        counts = rle_counts(mask)
        assert sum(counts) == mask.size
        assert min(counts[1:], default=1) > 0
        np.testing.assert_array_equal(rle_mask(counts, *mask.shape), mask)
