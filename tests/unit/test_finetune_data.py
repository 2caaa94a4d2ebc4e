import json

import numpy as np
import pytest
from PIL import Image

from biastransfer.backbones import load_backbone
from biastransfer.finetune.data import load_target
from biastransfer.finetune.recipes import find_recipe
from biastransfer.finetune.resume import identity
from biastransfer.finetune.targets import fingerprint, make_target

CATEGORIES = [{"id": 7, "name": "surfboard"}, {"id": 1, "name": "person"}, {"id": 3, "name": "car"}]


def write_coco(root, splits, *, categories=CATEGORIES, folder="images", name="instances_{}", pictures=True):
    """Write COCO files; ``splits`` maps a split to {picture id: category ids}."""
    (root / "annotations").mkdir(parents=True, exist_ok=True)
    for split, contents in splits.items():
        images = [{"id": i, "file_name": f"{i:06d}.png", "width": 8, "height": 8} for i in contents]
        pairs = [(i, c) for i, present in contents.items() for c in present]
        annotations = [
            {"id": n, "image_id": i, "category_id": c, "bbox": [0, 0, 4, 4], "area": 16, "iscrowd": 0}
            for n, (i, c) in enumerate(pairs)
        ]
        content = {"images": images, "annotations": annotations, "categories": categories}
        (root / "annotations" / (name.format(split) + ".json")).write_text(json.dumps(content))
        for image in images:
            file = root / folder.format(split) / image["file_name"]
            file.parent.mkdir(parents=True, exist_ok=True)
            if pictures:
                Image.new("RGB", (8, 8), (image["id"] % 256, 0, 0)).save(file)
    return root


THREE = {"train": {12: [1, 3, 3], 5: [7]}, "val": {20: [1], 21: []}, "test": {30: [3]}}


def test_labels_by_hand(tmp_path):
    target = load_target(write_coco(tmp_path, THREE))
    assert target.classes == ("person", "car", "surfboard")  # by category id, not by file order
    assert [file[-10:] for file in target.train.files] == ["000005.png", "000012.png"]  # by picture id
    assert target.train.labels.tolist() == [[0, 0, 1], [1, 1, 0]]
    assert target.val.labels.tolist() == [[1, 0, 0], [0, 0, 0]]
    assert target.notes == ()
    assert target.gaps() == (
        "2 of 3 classes have no positive in val: car, surfboard",
        "2 of 3 classes have no positive in test: person, surfboard",
    )
    counts = target.counts().set_index(["split", "class"])
    assert counts.loc[("train", "surfboard")].tolist() == [1, 1, 0]
    assert counts.loc[("val", "car")].tolist() == [0, 2, 0]


@pytest.mark.parametrize("folder", ["images", "images/{}", "images/{}2017", "{}2017", "{}", "."])
def test_pictures_are_found_in_every_usual_place(tmp_path, folder):
    target = load_target(write_coco(tmp_path, THREE, folder=folder, name="instances_{}2017"))
    assert len(target.train) == 2
    assert all(Image.open(file).size == (8, 8) for split in target.splits for file in split.files)


def test_without_test_file_half_of_val_becomes_test(tmp_path):
    write_coco(tmp_path, {"train": THREE["train"], "val": {i: [1, 3] for i in range(100, 110)}})
    target, again = load_target(tmp_path), load_target(tmp_path)
    assert (len(target.val), len(target.test)) == (5, 5)
    assert not set(target.val.files) & set(target.test.files)
    assert target.notes == ("no test file: half of val, drawn by seed, is the test split",)
    assert fingerprint(target) == fingerprint(again)
    assert load_target(tmp_path, seed=1).val.files != target.val.files


def test_single_file_is_drawn_into_shares(tmp_path):
    write_coco(tmp_path, {"": {i: [1, 3, 7] for i in range(20)}}, name="instances")
    target = load_target(tmp_path)
    assert [len(split) for split in target.splits] == [12, 4, 4]
    assert len({file for split in target.splits for file in split.files}) == 20
    assert "60% train, 20% val, 20% test" in target.notes[0]


def test_lvis_negatives_leave_the_other_classes_unknown(tmp_path):
    root = write_coco(tmp_path, THREE)
    file = root / "annotations" / "instances_train.json"
    content = json.loads(file.read_text())
    content["images"][0]["neg_category_ids"] = [7]
    content["images"][1]["neg_category_ids"] = [1]
    file.write_text(json.dumps(content))
    labels = load_target(root).train.labels
    np.testing.assert_array_equal(labels, [[0, np.nan, 1], [1, 1, 0]])


def test_lvis_negatives_of_an_unknown_category_are_named(tmp_path):
    root = write_coco(tmp_path, THREE)
    file = root / "annotations" / "instances_train.json"
    content = json.loads(file.read_text())
    content["images"][0]["neg_category_ids"] = [7, 99]
    file.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"neg_category_ids must name listed categories; picture \d+ has 99"):
        load_target(root)


def test_a_killed_training_does_not_go_on_with_other_pictures_of_the_same_names(tmp_path):
    target = load_target(write_coco(tmp_path, THREE))
    backbone = load_backbone("squeezenet1_1")
    before = identity(backbone, target, find_recipe("smoke", "squeezenet1_1"), 0, "cpu")
    assert identity(backbone, target, find_recipe("smoke", "squeezenet1_1"), 0, "cpu") == before
    with open(target.train.files[0], "ab") as file:
        file.write(b"more")
    assert identity(backbone, target, find_recipe("smoke", "squeezenet1_1"), 0, "cpu") != before


def test_limit_takes_the_first_pictures(tmp_path):
    target = load_target(write_coco(tmp_path, THREE))
    few = target.limit(1, None, 1)
    assert [len(split) for split in few.splits] == [1, 2, 1]
    assert few.train.labels.tolist() == [[0, 0, 1]]
    assert few.gaps()[0] == "2 of 3 classes have no positive in train: person, car"


def test_fingerprint_follows_names_labels_and_classes_but_not_the_folder():
    def target(classes=("a", "b"), file="x/1.png", label=1):
        parts = [([f"{file}{i}"], [[label, 1]]) for i in range(3)]
        return make_target(classes, *parts)

    assert fingerprint(target()) == fingerprint(target(file="y/1.png"))
    others = [target(("a", "c")), target(file="x/2.png"), target(label=0), target(label=np.nan)]
    assert len({fingerprint(t) for t in [target(), *others]}) == 5


def part(*names, labels=None):
    return list(names), np.ones((len(names), 2)) if labels is None else labels


@pytest.mark.parametrize(
    ("train", "val", "message"),
    [
        (part(), part("b"), "the train split must have pictures; got none"),
        (part("a", labels=np.ones((1, 3))), part("b"), r"\(1 pictures, 2 classes\); got \(1, 3\)"),
        (part("a", labels=[[2, 0]]), part("b"), "the train labels must be 0, 1 or NaN"),
        (part("a", labels=[[0, np.nan]]), part("b"), "the train split must have a positive label"),
        (part("a", "b"), part("b"), "1 stand in train and val, first 'b'"),
    ],
)
def test_bad_targets_are_explained(train, val, message):
    with pytest.raises(ValueError, match=message):
        make_target(["x", "y"], train, val, part("c"))


def test_class_named_twice_is_refused():
    with pytest.raises(ValueError, match="class names must be unique"):
        make_target(["x", "x"], part("a"), part("b"), part("c"))


def test_missing_things_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"the target's folder must exist; .*nowhere"):
        load_target(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="found neither"):
        load_target(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"found \['train'\]"):
        load_target(write_coco(tmp_path / "a", {"train": THREE["train"]}))
    with pytest.raises(FileNotFoundError, match=r"'000005.png' of instances_train.json must lie in images/"):
        load_target(write_coco(tmp_path / "b", THREE, pictures=False))
    root = write_coco(tmp_path / "c", THREE)
    (root / "images" / "000012.png").unlink()
    with pytest.raises(FileNotFoundError, match=r"'000012.png' of instances_train.json must lie in"):
        load_target(root)


def test_broken_annotations_are_explained(tmp_path):
    root = write_coco(tmp_path, THREE)
    file = root / "annotations" / "instances_val.json"
    whole = file.read_text()
    file.write_text(whole[:-30])
    with pytest.raises(ValueError, match=r"instances_val\.json must be COCO instances JSON "):
        load_target(root)
    content = json.loads(whole)
    content["annotations"][0]["category_id"] = 99
    file.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="got picture 20, category 99"):
        load_target(root)
    content["annotations"][0]["category_id"] = 1
    content["categories"] = content["categories"][:2]
    file.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"train has 3 and val 2, different: \['car'\]"):
        load_target(root)


def test_real_coco_pictures(shared_data):
    target = load_target(shared_data / "coco-mini")
    assert len(target.classes) == 80
    assert [len(split) for split in target.splits] == [199, 66, 66]
    assert sum((split.labels == 1).any(axis=1).sum() for split in target.splits) > 300
