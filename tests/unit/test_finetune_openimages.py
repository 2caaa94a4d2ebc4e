import numpy as np
import pytest
from PIL import Image
from test_finetune_data import write_coco

from biastransfer.finetune.data import load_target

CAR, MAN, TREE = "/m/0k4j", "/m/04yx4", "/m/07j7r"
BOX = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,"
BOX += "IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside"
LABEL = "ImageID,Source,LabelName,Confidence"


def write(root, *, boxes=None, labels=None, v7=False, pictures=True):
    """Write the files of some splits: boxes (picture, class), labels (picture, class, confidence)."""
    root.mkdir(exist_ok=True)
    prefix = "oidv6-" if v7 else ""
    for split, rows in (boxes or {}).items():
        text = [BOX + (",XClick1X" if v7 else "")]
        text += [f"{one},xclick,{mid},1,.1,.5,.1,.5,0,0,0,0,0{',-1' if v7 else ''}" for one, mid in rows]
        (root / f"{prefix}{split}-annotations-bbox.csv").write_text("\n".join(text) + "\n")
    for split, rows in (labels or {}).items():
        text = [LABEL]
        text += [f"{one},{'machine' if 0 < c < 1 else 'verification'},{mid},{c}" for one, mid, c in rows]
        name = f"{split}-annotations-human-imagelabels-boxable.csv"
        (root / name).write_text("\n".join(text) + "\n")
    described = f"{CAR},Car\n{TREE},Tree\n{MAN},Man\n"
    (root / "class-descriptions-boxable.csv").write_text(
        ("LabelName,DisplayName\n" if v7 else "") + described
    )
    if pictures:
        for split in {*(boxes or {}), *(labels or {})}:
            (root / split).mkdir(exist_ok=True)
            for one in {row[0] for row in [*(boxes or {}).get(split, []), *(labels or {}).get(split, [])]}:
                Image.new("RGB", (4, 4)).save(root / split / f"{one}.jpg")
    return root


BOXES = {"train": [("a", CAR), ("a", CAR), ("b", MAN)], "validation": [("v", CAR)], "test": [("t", MAN)]}
LABELS = {
    "train": [
        ("a", MAN, 0),
        ("b", CAR, 0),
        ("c", TREE, 1),
        ("c", CAR, 0),
        ("b", TREE, 0.9),
        ("d", "/m/x", 1),
    ],
    "validation": [("v", TREE, 1), ("v", MAN, 0), ("w", MAN, 1)],
}
NAN = np.nan


@pytest.mark.parametrize("v7", [False, True])
def test_labels_by_hand(tmp_path, v7):
    target = load_target(write(tmp_path, boxes=BOXES, labels=LABELS, v7=v7))
    assert target.classes == ("Car", "Tree", "Man")  # in the order of the class descriptions
    assert [file[-5:] for file in target.train.files] == ["a.jpg", "b.jpg", "c.jpg"]
    np.testing.assert_array_equal(target.train.labels, [[1, NAN, 0], [0, NAN, 1], [0, 1, NAN]])
    np.testing.assert_array_equal(target.val.labels, [[1, 1, 0], [NAN, NAN, 1]])
    np.testing.assert_array_equal(target.test.labels, [[NAN, NAN, 1]])
    assert target.notes == ()


def test_as_the_papers_code_read_the_labels(tmp_path):
    """Confidence 0 as a positive, what nobody looked at as a negative."""
    target = load_target(write(tmp_path, boxes=BOXES, labels=LABELS), reading="released")
    assert target.train.labels.tolist() == [[1, 0, 1], [1, 0, 1], [1, 1, 0]]


def test_a_contradiction_is_unknown_and_counted(tmp_path):
    labels = {"train": [("a", CAR, 0), ("a", MAN, 1), ("b", MAN, 0)]}
    target = load_target(write(tmp_path, boxes=BOXES, labels=labels))
    np.testing.assert_array_equal(target.train.labels[0], [NAN, NAN, 1])
    assert "train: 2 labels are said to be present and absent: read as unknown" in target.notes
    assert "train: 1 pictures of which nothing is known are left out" in target.notes
    assert len(target.train) == 1


def test_boxes_or_labels_alone_are_enough_and_half_of_validation_becomes_test(tmp_path):
    only = {"train": BOXES["train"], "validation": [(f"v{n}", CAR) for n in range(6)]}
    target = load_target(write(tmp_path / "boxes", boxes=only))
    assert [len(split) for split in target.splits] == [2, 3, 3]
    assert target.notes[-1] == "no test file: half of val, drawn by seed, is the test split"
    target = load_target(write(tmp_path / "labels", labels=LABELS | {"test": [("t", CAR, 1)]}))
    np.testing.assert_array_equal(target.train.labels, [[NAN, NAN, 0], [0, NAN, NAN], [0, 1, NAN]])


def test_pictures_without_a_file_are_left_out_and_counted(tmp_path):
    root = write(tmp_path, boxes=BOXES, labels=LABELS)
    (root / "train" / "b.jpg").unlink()
    target = load_target(root)
    assert [file[-5:] for file in target.train.files] == ["a.jpg", "c.jpg"]
    assert target.notes[0] == "train: 1 of 3 listed pictures have no file and are left out"


@pytest.mark.parametrize("kind", ["openimages", "coco"])
def test_sizes_are_seeded_draws_that_hold_one_another(tmp_path, kind):
    if kind == "coco":
        splits = {"train": {n: [1] for n in range(40)}, "val": {90: [1]}, "test": {91: [1]}}
        root = write_coco(tmp_path, splits)
    else:
        root = write(tmp_path, boxes=BOXES | {"train": [(f"{n:04d}", CAR) for n in range(40)]})
    drawn = {n: load_target(root, max_train=n).train.files for n in (5, 10, 20, 40, 99)}
    assert [len(files) for files in drawn.values()] == [5, 10, 20, 40, 40]
    assert set(drawn[5]) < set(drawn[10]) < set(drawn[20]) < set(drawn[40])
    assert list(drawn[20]) == sorted(drawn[20])
    assert set(drawn[5]) != set(drawn[40][:5])
    assert load_target(root, max_train=5, seed=1).train.files != drawn[5]
    assert "train: 5 pictures drawn by seed 0" in load_target(root, max_train=5).notes
    assert len(load_target(root, max_train=5).val) == 1
    with pytest.raises(ValueError, match="max_train must be None or at least 1; got 0"):
        load_target(root, max_train=0)


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"train and validation .*; found those of train"):
        load_target(write(tmp_path / "a", boxes={"train": BOXES["train"]}))
    root = write(tmp_path / "b", boxes=BOXES)
    (root / "class-descriptions-boxable.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"class descriptions \(MID, name\) must be below"):
        load_target(root)
    with pytest.raises(ValueError, match="reading must be one of verified, released; got 'positive'"):
        load_target(write(tmp_path / "c", boxes=BOXES), reading="positive")
    root = write(tmp_path / "d", boxes=BOXES)
    (root / "train-annotations-bbox.csv").rename(root / "boxes.csv")
    with pytest.raises(ValueError, match=r"must say train, validation or test; got 'boxes\.csv'"):
        load_target(root)
    with pytest.raises(ValueError, match="the train split must have pictures; got none"):
        load_target(write(tmp_path / "e", boxes=BOXES, pictures=False))


def test_the_real_class_descriptions_give_601_classes(tmp_path, shared_data):
    root = write(tmp_path, boxes=BOXES)
    real = (shared_data / "openimages" / "class-descriptions-boxable.csv").read_text()
    (root / "class-descriptions-boxable.csv").write_text(real)
    target = load_target(root)
    assert len(target.classes) == 601
    assert target.train.labels.shape == (2, 601)
    assert [target.classes[k] for k in np.flatnonzero(target.train.labels[0] == 1)] == ["Car"]
    assert np.isnan(target.train.labels).sum() == 2 * 601 - 2
