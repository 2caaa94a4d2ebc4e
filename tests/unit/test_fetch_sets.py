"""Which pictures a set needs: those that the loaders then choose, and no others."""

import io
import json
import shutil

import pandas as pd
import pytest
from PIL import Image
from test_analysis_sets_coco import box
from test_analysis_sets_coco import write as write_coco
from test_analysis_sets_openimages import write as write_openimages

from biastransfer.analysis_sets import load_set, schema_classes
from biastransfer.analysis_sets.released import released_name
from biastransfer.fetch import fetch_set, fetch_splits
from biastransfer.finetune import load_target

QUICK = {"backoff": 0.01, "timeout": 5.0, "retries": 2}
MAN, WOMAN, NOBODY = ["a man"] * 5, ["a woman"] * 5, ["a street"] * 5
COCO = {
    **{number: ([box("person")], MAN) for number in (1, 2, 3)},
    **{number: ([box("person")], WOMAN) for number in (4, 5)},
    **{number: ([box("car")], NOBODY) for number in (6, 7)},
    **{number: ([box("car"), box("person")], MAN) for number in (8, 9)},
    **{number: ([box("dog")], NOBODY) for number in (10, 11, 12, 13)},
}
COCO_CLASSES = ["man", "woman", "random", "car", "car+man"]


def served(server, folder):
    """Move a folder's pictures to the server, so that only annotations are left."""
    for file in sorted(folder.rglob("*.jpg")):
        server.files[f"/{file.relative_to(folder).as_posix()}"] = file.read_bytes()
        file.unlink()


@pytest.fixture
def coco(tmp_path, server):
    folder = tmp_path / "raw" / "coco"
    write_coco(folder, COCO)
    for kind in ("instances", "captions"):
        (folder / "annotations" / f"{kind}.json").rename(folder / "annotations" / f"{kind}_val2017.json")
    served(server, folder)
    return folder


def jpeg(shade):
    file = io.BytesIO()
    Image.new("RGB", (8, 8), (shade, 0, 0)).save(file, "JPEG")
    return file.getvalue()


def test_a_curated_coco_set_gets_what_the_loader_then_chooses(coco, server, tmp_path):
    options = {"classes": COCO_CLASSES, "cap": 2, "seed": 3}
    report = fetch_set("curated-coco", folder=coco, mirror=server.url, options=options, **QUICK)
    assert report.counts == {"fetched": 10, "present": 0, "resumed": 0, "failed": 0}
    everything = tmp_path / "all" / "coco"
    write_coco(everything, COCO)
    whole, fetched = (load_set("coco", root=root, **options) for root in (everything, coco))
    assert fetched.items[["id", "class", "sha256"]].equals(whole.items[["id", "class", "sha256"]])
    assert sorted(file.name for file in (coco / "val2017").iterdir()) == sorted(
        f"{one}.jpg" for one in whole.items["id"]
    )
    more = fetch_set("curated-coco", folder=coco, mirror=server.url, options=options, spare=True, **QUICK)
    assert more.counts["present"] == 10
    assert more.counts["fetched"] > 0, "the third man, at least"


def test_a_curated_open_images_set_asks_the_split_that_its_files_tell(server, tmp_path):
    boxes = [(f"{number:016x}", "Man") for number in range(3)]
    boxes += [(f"{number:016x}", "Woman") for number in range(3, 6)]
    boxes += [(f"{number:016x}", "Tree") for number in range(6, 12)]
    folder, everything = tmp_path / "raw" / "openimages", tmp_path / "all"
    for root in (folder, everything):
        root.mkdir(parents=True)
        write_openimages(root, boxes)
    served(server, folder)
    options = {"classes": ["man", "woman", "random"], "cap": 2}
    report = fetch_set("curated-openimages", folder=folder, mirror=server.url, options=options, **QUICK)
    assert report.counts["fetched"] == 6
    assert {path for path, _ in server.asked} <= {f"/train/{one}.jpg" for one, *_ in boxes}
    whole, fetched = (load_set("openimages", root=root, **options) for root in (everything, folder))
    assert fetched.items[["id", "class"]].equals(whole.items[["id", "class"]])
    (folder / "train-annotations-bbox.csv").rename(folder / "annotations-bbox.csv")
    shutil.rmtree(folder / "train")
    server.files = {path.replace("train", "test"): data for path, data in server.files.items()}
    report = fetch_set("curated-openimages", folder=folder, mirror=server.url, options=options, **QUICK)
    assert report.counts["fetched"] == 6, "train and validation do not have them, test does"
    assert sorted({one.file.split("/")[0] for one in report.outcomes}) == ["pictures"]


@pytest.fixture
def lists(tmp_path):
    folder = tmp_path / "release" / "coco_test"
    folder.mkdir(parents=True)
    for number, name in enumerate(schema_classes("coco")):
        entry = f"http://images.cocodataset.org/train2017/{number:012d}.jpg"
        (folder / f"{released_name(name)}.txt").write_text(f"{entry}\n")
    with open(folder / "random.txt", "a") as text:
        text.write("http://farm5.staticflickr.com/4074/4916292003_958bde8bcb_z.jpg\n")
    return folder.parent


def test_the_released_coco_lists_with_the_one_flickr_address_looked_up(server, tmp_path, lists):
    folder = tmp_path / "raw" / "coco"
    for number in range(13):
        server.files[f"/train2017/{number:012d}.jpg"] = jpeg(number)
    server.files["/val2017/000000000777.jpg"] = jpeg(100)
    report = fetch_set("released-coco", folder=folder, released=lists, mirror=server.url, **QUICK)
    assert report.counts == {"fetched": 13, "present": 0, "resumed": 0, "failed": 1}
    [note] = report.notes
    assert "is not resolved to a COCO picture (no instances file is there" in note
    assert f"{note}." in report.sentences()
    (folder / "annotations").mkdir()
    images = [
        {
            "id": 777,
            "file_name": "000000000777.jpg",
            "flickr_url": "http://farm9.x.com/1/4916292003_958bde8bcb_z.jpg",
        },
        {"id": 778, "file_name": "000000000778.jpg"},
    ]
    file = folder / "annotations" / "instances_val2017.json"
    file.write_text(json.dumps({"images": images[1:]}))
    again = fetch_set("released-coco", folder=folder, released=lists, mirror=server.url, **QUICK)
    assert "(no instances file there names it)" in again.notes[0]
    images = [one | {"height": 8, "width": 8} for one in images]
    file.write_text(json.dumps({"images": images, "annotations": [], "categories": []}))
    report = fetch_set("released-coco", folder=folder, released=lists, mirror=server.url, **QUICK)
    assert report.counts == {"fetched": 2, "present": 13, "resumed": 0, "failed": 0}
    assert report.notes[0].endswith("4916292003_958bde8bcb_z.jpg is COCO's val2017/000000000777.jpg")
    for instances in (None, "annotations/instances_val2017.json"):
        loaded = load_set("released", root=lists, schema="coco", images=folder, instances=instances)
        assert loaded.counts.to_dict() == {name: 1 + (name == "random") for name in schema_classes("coco")}


def test_annotations_come_first_where_no_folder_is_given(server, tmp_path, listed, coco):
    where = listed(annotations=(b"", {"group": ["coco"]}))
    text = where["sources"].read_text()
    text += f"\n[pictures.coco]\nurl = '{server.url}/{{split}}/{{id}}.jpg'\nsplits = ['val2017']\n"
    where["sources"].write_text(text + "path = 'coco'\nlicence = 'x'\nuse = 'y'\n")
    server.tricks["/annotations"] = [404]
    options = {"options": {"classes": ["man", "woman"], "cap": 1}, **where, **QUICK}
    report = fetch_set("curated-coco", **options)
    assert [one.file for one in report.outcomes] == ["in/annotations"], "no pictures without annotations"
    server.files["/annotations"] = b"x"
    report = fetch_set("curated-coco", **options)
    assert report.counts["fetched"] == 3
    assert fetch_splits("coco", ["val2017"], **where, **QUICK).counts["present"] == 3
    assert len(load_target_files(coco)) == 13


def load_target_files(folder):
    return sorted((folder / "val2017").glob("*.jpg"))


def test_the_training_pictures_of_open_images_that_a_target_draws(server, tmp_path):
    folder, other = tmp_path / "openimages", tmp_path / "other"
    for root, first in ((folder, 0), (other, 40)):
        root.mkdir()
        boxes = [(f"{number:016x}", "Car" if number % 2 else "Tree") for number in range(first, first + 40)]
        write_openimages(root, boxes)
        served(server, root)
    (other / "train-annotations-bbox.csv").rename(folder / "validation-annotations-bbox.csv")
    server.files |= {path.replace("train", "validation"): data for path, data in server.files.items()}
    where = {"folder": folder, "mirror": server.url}
    report = fetch_splits("openimages", ["train"], most=9, seed=2, **where, **QUICK)
    assert report.counts["fetched"] == 9
    drawn = {one.file for one in report.outcomes}
    report = fetch_splits("openimages", ["train", "validation"], **where, **QUICK)
    assert report.counts == {"fetched": 71, "present": 9, "resumed": 0, "failed": 0}
    target = load_target(folder, max_train=9, seed=2)
    assert {file.removeprefix(f"{folder}/") for file in target.train.files} == drawn


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: fetch_set("scenes-coco"),
            "a set to fetch must be one of curated-coco, ",
        ),
        (
            lambda: fetch_splits("lvis", ["train"]),
            "pictures must be of coco, openimages, .*; got 'lvis'",
        ),
        (lambda: fetch_splits("coco", ["train"]), "splits of coco must be train2017, val2017; got train"),
        (
            lambda: fetch_splits("coco", ["val2017"], most=3),
            "a COCO target needs every picture of its",
        ),
    ],
)
def test_sets_and_splits_that_cannot_be(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_options_and_annotations_that_cannot_be(coco, tmp_path):
    with pytest.raises(ValueError, match="crowd must be one of exclude, count, ignore; got 'foo'"):
        fetch_set("curated-coco", folder=coco, options={"crowd": "foo"})
    with pytest.raises(FileNotFoundError, match=r"instances\*\.json must be below .*; there is none\."):
        fetch_set("curated-coco", folder=tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match=r"lists must be coco_test/<class>\.txt; neither"):
        fetch_set("released-coco", folder=coco, released=tmp_path)
    (tmp_path / "coco_test").mkdir()
    (coco / "annotations" / "instances_val2017.json").write_text("{}")
    (tmp_path / "coco_test" / "car.txt").write_text("http://elsewhere.org/x.jpg")
    with pytest.raises(ValueError, match=r"val2017\.json must be COCO instances JSON .*fetch it again"):
        fetch_set("released-coco", folder=coco, released=tmp_path)


def test_the_report_is_a_tidy_table(coco, server):
    options = {"classes": ["man", "woman"], "cap": 1}
    table = fetch_set("curated-coco", folder=coco, mirror=server.url, options=options, **QUICK).table()
    assert table.columns.tolist() == ["file", "status", "bytes", "seconds", "reason"]
    sizes = [(coco / file).stat().st_size for file in table["file"]]
    assert table["bytes"].tolist() == sizes
    assert pd.api.types.is_float_dtype(table["seconds"])
