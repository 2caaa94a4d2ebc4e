import numpy as np
import pandas as pd
import pytest
from PIL import Image
from test_finetune_data import write_coco

from biastransfer import paths
from biastransfer.analysis_sets import load_set
from biastransfer.analysis_sets.copies import same_bytes, shared_id
from biastransfer.finetune import make_target, prepare_target
from biastransfer.finetune.exclusion import COLUMNS, exclude
from biastransfer.finetune.targets import draw_order

ONE, TWO = "000000000001", "cf0b02ccf0961130"


def scene(seed, size=(96, 64)):
    rough = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    return Image.fromarray(rough).resize(size, Image.Resampling.BICUBIC)


@pytest.fixture
def measured(tmp_path):
    """A set of two classes: a COCO id, an Open Images id and a name of its own folder."""
    for seed, name in enumerate((f"car/{ONE}.png", f"man/{TWO}.png", "man/1.png")):
        (tmp_path / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        scene(seed).save(tmp_path / "set" / name)
    return load_set("folder", root=tmp_path / "set")


@pytest.fixture
def target(tmp_path, measured):
    """Training pictures with each relation to the set, and one of them in val and one in test."""
    folder = tmp_path / "target"
    folder.mkdir()
    scene(90).save(folder / f"COCO_train2014_{ONE}.jpg")  # the id, other bytes
    (folder / "copy.png").write_bytes((tmp_path / "set" / "man" / "1.png").read_bytes())
    scene(2).save(folder / "again.jpg", quality=70)  # re-encoded
    scene(91).save(folder / "1.png")  # another picture of a name that means nothing elsewhere
    scene(1).save(folder / f"{TWO}.jpg")
    scene(92).save(folder / "other.png")
    (folder / "tested.png").write_bytes((tmp_path / "set" / "man" / "1.png").read_bytes())
    train = [f"COCO_train2014_{ONE}.jpg", "copy.png", "again.jpg", "1.png"]
    parts = (train, [f"{TWO}.jpg", "other.png"], ["tested.png"])
    return make_target(
        ["a", "b"], *[([folder / n for n in names], np.eye(2)[[0] * len(names)]) for names in parts]
    )


def names(split):
    return [file.rsplit("/", 1)[1] for file in split.files]


def test_pictures_go_by_id_and_bytes_and_likenesses_are_listed(target, measured):
    kept, report = exclude(target, [measured])
    assert names(kept.train) == ["again.jpg", "1.png"]
    assert names(kept.val) == ["other.png"]
    assert names(kept.test) == ["tested.png"]
    assert kept.train.labels.shape == (2, 2)
    assert list(report.columns) == COLUMNS
    assert report.drop(columns="set").to_numpy().tolist() == [
        ["train", f"COCO_train2014_{ONE}.jpg", "id", "excluded", "car", f"car/{ONE}.png"],
        ["train", "copy.png", "bytes", "excluded", "man", "man/1.png"],
        ["train", "again.jpg", "likeness", "kept", "man", "man/1.png"],
        ["val", f"{TWO}.jpg", "id", "excluded", "man", f"man/{TWO}.png"],
    ]
    assert kept.notes == (
        "2 pictures of analysis sets, by id or bytes, are left out of train; 1 more look like one and stay",
        "1 pictures of analysis sets, by id or bytes, are left out of val; 0 more look like one and stay",
    )


def test_test_pictures_go_where_that_is_asked_for_and_likeness_can_be_left(target, measured):
    few = exclude(target, [measured], splits=("train",), near=False)
    assert set(few[1]["split"]) == {"train"}
    assert set(few[1]["rule"]) == {"id", "bytes"}
    assert few[0].notes[0].endswith("left out of train; likeness was not looked for")
    with pytest.raises(ValueError, match="the test split must have pictures; got none"):
        exclude(target, [measured], splits=("test",))
    with pytest.raises(ValueError, match="splits must be among train, val, test; got 'valid'"):
        exclude(target, [measured], splits=("valid",))


def test_nothing_goes_for_sets_that_share_nothing(target, measured):
    kept, report = exclude(target, [])
    assert kept.train.files == target.train.files
    assert report.empty
    np.testing.assert_array_equal(kept.val.labels, target.val.labels)


def test_the_number_asked_for_is_drawn_from_what_is_left(target, measured):
    order = [names(target.train)[at] for at in draw_order(5, target.train.files)]
    left = [name for name in order if name in ("again.jpg", "1.png")]
    for most in (1, 2):
        kept, report = exclude(target, [measured], max_train=most, seed=5)
        assert sorted(names(kept.train)) == sorted(left[:most])
        before = order[: order.index(left[most - 1])] if most == 1 else order  # 2 of 2: all were looked at
        gone = report.query("split == 'train' and decision == 'excluded'")["picture"].unique()
        assert set(gone) == set(before) - set(left)
        listed = report.query("split == 'train' and rule == 'likeness'")["picture"].tolist()
        assert listed == [name for name in ("again.jpg",) if name in left[:most]]
    assert len(exclude(target, [measured], max_train=1, seed=5)[0].val) == 1
    assert "train: the first 1 of the others in the draw by seed 5 are used" in (
        exclude(target, [measured], max_train=1, seed=5)[0].notes
    )


def test_a_damaged_training_picture_is_listed(target, measured):
    with open(target.train.files[3], "r+b") as file:
        file.truncate(500)
    _, report = exclude(target, [measured])
    row = report[report["rule"] == "unreadable"].iloc[0]
    assert row[["split", "picture", "decision", "set"]].tolist() == ["train", "1.png", "kept", ""]


def test_ids_have_the_forms_of_coco_and_open_images():
    listed = ["a/COCO_val2014_000000000139.jpg", "139.jpg", "491_z", f"{TWO}\n"]
    assert [shared_id(name) for name in listed] == ["000000000139", "", "", TWO]


def test_only_files_of_a_pictures_length_are_read(measured, tmp_path, monkeypatch):
    longer = tmp_path / "longer.png"
    longer.write_bytes(b"x" * 1_000_000)
    read = []
    monkeypatch.setattr(paths, "sha256", lambda file: read.append(file) or "")
    same_bytes(measured.items, [str(longer), measured.items["file"][0]])
    assert read == [measured.items["file"][0]]


def test_max_train_is_reached_where_pictures_are_excluded(tmp_path, monkeypatch, measured):
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path))
    splits = {"train": {k: [1 + 2 * (k % 2)] for k in range(1, 9)}, "val": {20: [1]}, "test": {30: [3]}}
    root = write_coco(paths.raw("targets", "mine"), splits)
    copied = (tmp_path / "set" / "man" / "1.png").read_bytes()
    first = names(prepare_target("own", "mine", max_train=1, seed=3).train)[0]
    (root / "images" / first).write_bytes(copied)
    drawn = {
        n: names(prepare_target("own", "mine", max_train=n, seed=3, exclude=[measured]).train) for n in (1, 4)
    }
    assert {n: len(found) for n, found in drawn.items()} == {1: 1, 4: 4}
    with pytest.raises(ValueError, match="max_train must be None or at least 1; got 0"):
        prepare_target("own", "mine", max_train=0, exclude=[measured])
    assert first not in drawn[4]
    assert set(drawn[1]) < set(drawn[4])
    assert set(drawn[4]) == set(names(prepare_target("own", "mine", max_train=5, seed=3).train)) - {first}


def test_a_target_is_prepared_without_the_pictures_of_a_set(tmp_path, monkeypatch, measured):
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path))
    splits = {"train": {1: [1], 2: [3]}, "val": {20: [1]}, "test": {30: [3]}}
    root = write_coco(paths.raw("targets", "mine"), splits)
    (root / "images" / "000001.png").write_bytes((tmp_path / "set" / "man" / "1.png").read_bytes())
    whole = prepare_target("own", "mine")
    assert len(whole.train) == 2
    assert not paths.results("own", "exclusion-mine.csv").exists()
    assert names(prepare_target("own", "mine", exclude=[measured]).train) == ["000002.png"]
    written = pd.read_csv(paths.results("own", "exclusion-mine.csv"))
    assert list(written.columns) == ["run", "target", *COLUMNS]
    assert written[["run", "target", "picture", "rule"]].to_numpy().tolist() == [
        ["own", "mine", "000001.png", "bytes"]
    ]
