import io
import json
import shutil
import tarfile

import pytest
from PIL import Image

from biastransfer.analysis_sets import load_set, schema_classes
from biastransfer.analysis_sets.archive import unpack
from biastransfer.analysis_sets.released import released_name
from biastransfer.images import read_rgb

TABLE_6 = dict(
    zip(
        schema_classes("openimages"),
        [150, 150, 150, 22, 150, 150, 49, 150, 120, 32, 150, 52, 150, 150, 150, 150],
    )
)
TABLE_5 = dict(zip(schema_classes("coco"), [12, 15, 20, 44, 12, 9, 6, 18, 8, 9, 14, 23, 16]))
WANTED = ["man", "random", "car"]


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path / "compendium"))


@pytest.fixture
def root(tmp_path):
    """Two classes and a control with every oddity of the release."""
    folder = tmp_path / "release" / "analysis_sets"
    lists = {"man": ["aa", "ab", "ac"], "random": ["ba", "ab"], "car": ["ca", "ca", "cb", "cb", "cc"]}
    stored = {"man": ["aa\n", "ab\n", "ac"], "random": ["ba\n", "ab\n"], "car": ["ca\n", "cb\n", "zz\n"]}
    (folder / "openimages_test").mkdir(parents=True)
    for name, ids in lists.items():
        (folder / "openimages_test" / f"{name}.txt").write_text("\n".join([*ids, ""]))
        (folder / "oi_png" / name).mkdir(parents=True)
        for number, stem in enumerate(stored[name]):
            shade = sum(map(ord, stem)) % 256
            Image.new("RGB", (4, 4), (shade, number, 0)).save(folder / "oi_png" / name / f"{stem}.png")
    (folder / "oi_png" / "car" / "cb\n.png").write_bytes(b"")
    (folder / "oi_png" / "car" / ".DS_Store").write_bytes(b"x")
    return folder.parent


def tarred(root, tmp_path, mode="w"):
    file = tmp_path / "sets.tar"
    with tarfile.open(file, mode) as archive:
        archive.add(root / "analysis_sets", "analysis_sets")
    return file


def findings(loaded):
    report = loaded.report[loaded.report["decision"] != "kept"]
    return {(row["decision"], row["class"]): row["ids"] for _, row in report.iterrows()}


EXPECTED = {
    ("name ends in a newline", "man"): "aa\\n;ab\\n",
    ("name ends in a newline", "random"): "ab\\n;ba\\n",
    ("name ends in a newline", "car"): "ca\\n;cb\\n;zz\\n",
    ("in two classes", "man"): "ab",
    ("in two classes", "random"): "ab",
    ("listed twice", "car"): "ca;cb",
    ("empty file", "car"): "cb",
    ("missing file", "car"): "cc",
    ("not listed", "car"): "zz",
}


def test_each_oddity_is_reported_and_nothing_is_lost(root):
    loaded = load_set("released", root=root, classes=WANTED)
    assert findings(loaded) == EXPECTED
    assert loaded.counts.to_dict() == {"man": 3, "random": 2, "car": 2}
    assert loaded.items["id"].tolist() == ["aa", "ab", "ac", "ab", "ba", "ca", "zz"]
    assert load_set("released", root=root / "analysis_sets", classes=WANTED).items.equals(loaded.items)


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_a_tar_reads_as_the_folder_does_and_is_unpacked_once(root, tmp_path, mode):
    file = tarred(root, tmp_path, mode)
    loaded = load_set("released", root=file, classes=WANTED)
    assert findings(loaded) == EXPECTED
    folder = load_set("released", root=root, classes=WANTED)
    assert loaded.items.drop(columns="file").equals(folder.items.drop(columns="file"))
    assert not loaded.items["file"].str.contains("\n").any()
    assert loaded.items["file"].str.startswith(str(tmp_path / "compendium")).all()
    shutil.rmtree(root)
    stamp = unpack(file).stat().st_mtime_ns
    again = load_set("released", root=file, classes=WANTED)
    assert again.items.equals(loaded.items)
    assert unpack(file).stat().st_mtime_ns == stamp


def test_a_second_file_of_an_id_is_reported(root):
    Image.new("RGB", (4, 4)).save(root / "analysis_sets" / "oi_png" / "man" / "ac.webp")
    loaded = load_set("released", root=root, classes=WANTED)
    assert findings(loaded) == EXPECTED | {("second file of an id", "man"): "ac.webp"}
    assert loaded.items.loc[loaded.items["id"] == "ac", "file"].item().endswith("ac.png")


def test_a_name_with_a_newline_beside_the_plain_one_is_the_same_id_in_a_folder_and_in_a_tar(root, tmp_path):
    folder = root / "analysis_sets" / "oi_png" / "man"
    Image.new("RGB", (4, 4), "red").save(folder / "aa.png")  # beside "aa\\n.png"
    for place in (root, tarred(root, tmp_path)):
        loaded = load_set("released", root=place, classes=WANTED)
        [file] = loaded.items.loc[loaded.items["id"] == "aa", "file"]
        assert read_rgb(file)[0, 0].tolist() == [255, 0, 0]
        assert loaded.counts.to_dict() == {"man": 3, "random": 2, "car": 2}
        report = loaded.report
        [second] = report.loc[report["decision"] == "second file of an id", "ids"]
        assert second == "aa\\n.png"
        newline = report[(report["decision"] == "name ends in a newline") & (report["class"] == "man")]
        assert newline["ids"].tolist() == ["ab\\n"]


def test_pictures_in_two_classes_can_be_dropped(root):
    loaded = load_set("released", root=root, classes=WANTED, in_two_classes="drop")
    assert loaded.items["id"].tolist() == ["aa", "ac", "ba", "ca", "zz"]
    excluded = loaded.report[loaded.report["decision"] == "excluded"]
    assert excluded[["class", "reason", "ids"]].to_numpy().tolist() == [
        ["man", "in two classes", "ab"],
        ["random", "in two classes", "ab"],
    ]


def hostile(tmp_path, name, kind=tarfile.REGTYPE, content=b"x"):
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, len(content) if kind == tarfile.REGTYPE else 0
    member.linkname = "/etc/passwd"
    with tarfile.open(tmp_path / "bad.tar", "w") as archive:
        archive.addfile(member, io.BytesIO(content))
    return tmp_path / "bad.tar"


@pytest.mark.parametrize("name", ["../evil.txt", "/tmp/evil.txt", "a/../../evil.txt", ".\n./evil.txt"])
def test_no_file_leaves_its_folder(tmp_path, name):
    with pytest.raises(ValueError, match="must hold only paths below its own folder; got"):
        unpack(hostile(tmp_path, name))
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert left == [tmp_path / "bad.tar"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_not_unpacked(tmp_path, kind):
    assert [path.name for path in unpack(hostile(tmp_path, "a.png", kind)).iterdir()] == ["names.json"]


def test_names_that_differ_only_in_control_characters_stay_apart(tmp_path):
    with tarfile.open(tmp_path / "two.tar", "w") as archive:
        for name, content in (("a.png", b"1"), ("a\n.png", b"2")):
            member = tarfile.TarInfo(name)
            member.size = 1
            archive.addfile(member, io.BytesIO(content))
    folder = unpack(tmp_path / "two.tar")
    assert sorted(path.read_bytes() for path in folder.glob("*.png")) == [b"1", b"2"]


def test_a_broken_or_missing_tar_leaves_nothing_behind(tmp_path, root):
    file = tmp_path / "no.tar"
    file.write_bytes(b"no tar")
    with pytest.raises(ValueError, match=r"no\.tar must be a whole tar file; .*Fetch it again"):
        load_set("released", root=file)
    whole = tarred(root, tmp_path)
    whole.write_bytes(whole.read_bytes()[:3000])
    with pytest.raises(ValueError, match="must be a whole tar file"):
        load_set("released", root=whole)
    packed = tarred(root, tmp_path, "w:gz")
    packed.write_bytes(packed.read_bytes()[:-200])
    with pytest.raises(ValueError, match="must be a whole tar file"):
        load_set("released", root=packed)
    assert [path for path in (tmp_path / "compendium").rglob("*") if path.is_file()] == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path, root):
    (tmp_path / "compendium").write_text("a file where the folder should be")
    with pytest.raises(OSError, match=r"must be writable to unpack sets\.tar there .*set BIASTRANSFER_ROOT"):
        load_set("released", root=tarred(root, tmp_path))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"schema": "imagenet"}, ValueError, "schema must be one of coco, openimages"),
        ({"in_two_classes": "first"}, ValueError, "in_two_classes must be keep or drop; got 'first'"),
        ({"schema": "coco"}, FileNotFoundError, r"must hold coco_test/<class>\.txt; neither"),
        ({"classes": None}, ValueError, "every class must have a picture; 'woman' has none"),
    ],
)
def test_errors_are_one_sentence(root, options, error, message):
    with pytest.raises(error, match=message):
        load_set("released", root=root, **{"classes": WANTED} | options)


def test_coco_lists_are_addresses(tmp_path):
    lists, pictures = tmp_path / "analysis_sets" / "coco_test", tmp_path / "pictures"
    lists.mkdir(parents=True)
    pictures.mkdir()
    address = "http://images.cocodataset.org/{}/{}.jpg"
    (lists / "man.txt").write_text(
        "\n".join(
            [
                address.format("train2017", "000000000001"),
                address.format("val2017", "000000000002"),
                address.format("val2017", "000000000001"),
                "http://farm5.staticflickr.com/4074/491_z.jpg",
            ]
        )
    )
    for name in ("000000000001", "491_z"):
        Image.new("RGB", (4, 4)).save(pictures / f"{name}.jpg")
    loaded = load_set("released", root=tmp_path, schema="coco", images=pictures, classes=["man"])
    assert loaded.items["id"].tolist() == ["000000000001", "491_z"]
    assert findings(loaded) == {
        ("listed twice", "man"): "000000000001",
        ("missing file", "man"): "000000000002",
        ("not a COCO address", "man"): "491_z",
    }
    with pytest.raises(FileNotFoundError, match="images must be a folder of COCO pictures"):
        load_set("released", root=tmp_path, schema="coco", classes=["man"])


def test_a_flickr_address_is_the_coco_picture_that_the_instances_file_says(tmp_path):
    lists, pictures = tmp_path / "analysis_sets" / "coco_test", tmp_path / "pictures"
    lists.mkdir(parents=True)
    pictures.mkdir()
    flickr = "http://farm5.staticflickr.com/4074/491_z.jpg"
    (lists / "man.txt").write_text(f"http://images.cocodataset.org/val2017/000000000001.jpg\n{flickr}\n")
    other = "https://farm1.staticflickr.com/1/{}_z.jpg"
    (lists / "car.txt").write_text(f"{other.format('unknown')}\n{other.format(1)}")
    sides = {"width": 4, "height": 4}
    images = [
        {"id": 1, "file_name": "a.jpg", "license": 4, "flickr_url": "http://a/1_z.jpg", **sides},
        {"id": 77, "file_name": "b.jpg", "license": 9, "flickr_url": flickr, **sides},
    ]
    data = {"images": images, "annotations": [], "categories": []}
    data["licenses"] = [{"id": 4, "name": "Attribution"}]
    (pictures / "instances.json").write_text(json.dumps(data))
    for name in ("000000000001", "000000000077"):
        Image.new("RGB", (4, 4)).save(pictures / f"{name}.jpg")
    options = {"schema": "coco", "images": pictures, "instances": "instances.json"}
    loaded = load_set("released", root=tmp_path, classes=["man", "car"], **options)
    assert loaded.items[["class", "id", "licence"]].to_numpy().tolist() == [
        ["man", "000000000001", "Attribution"],
        ["man", "000000000077", "COCO licence 9"],
        ["car", "000000000001", "Attribution"],
    ]
    odd = loaded.report[loaded.report["decision"] == "not a COCO address"]
    assert odd[["class", "reason", "ids"]].to_numpy().tolist() == [
        ["man", "the instances file has it as 000000000077", "491_z"],
        ["car", "looked for under its own name", "unknown_z"],
        ["car", "the instances file has it as 000000000001", "1_z"],
    ]
    assert findings(loaded)["missing file", "car"] == "unknown_z"
    found = load_set("released", root=tmp_path, classes=["man"], schema="coco", images=pictures)
    assert found.counts.to_dict() == {"man": 2}  # instances below the pictures are found
    both = (lists / "man.txt").read_text() + "http://images.cocodataset.org/val2017/000000000077.jpg"
    (lists / "man.txt").write_text(both)  # the picture of that address under its id as well
    again = load_set("released", root=tmp_path, classes=["man"], **options)
    assert again.counts.to_dict() == {"man": 2}
    assert findings(again)["listed twice", "man"] == "000000000077"


def test_the_real_open_images_sets(released_set):
    loaded, report = released_set, released_set.report
    assert loaded.classes == list(TABLE_6)
    empty = report[report["decision"] == "empty file"]
    assert dict(zip(empty["class"], empty["ids"])) == {
        "fashion": "cf0b02ccf0961130",
        "fashion+man": "ad8a5f8704a897c7",
        "mammal+man": "615d353bd6fa0705",
    }
    emptied = loaded.counts.add(empty.set_index("class")["n"], fill_value=0)
    assert emptied[list(TABLE_6)].to_dict() == TABLE_6  # 1,925 in all
    assert len(loaded.items) == 1922
    assert report.loc[report["decision"] == "name ends in a newline", "n"].sum() == 1925
    twice = report[report["decision"] == "in two classes"]
    assert twice.loc[twice["class"] == "random", "n"].sum() == 9  # random shares all nine with another class
    assert twice["n"].sum() == 18
    assert set(report["decision"]) == {"kept", "empty file", "in two classes", "name ends in a newline"}


def test_the_real_coco_lists(shared_data, tmp_path):
    with tarfile.open(shared_data / "released-analysis-sets.tar") as archive:
        lists = [one for one in archive if one.name.startswith("analysis_sets/coco_test/")]
        archive.extractall(tmp_path, members=lists, filter="data")
    pictures = shared_data / "coco-mini" / "images"
    loaded = load_set(
        "released", root=tmp_path, schema="coco", images=pictures, classes=["man", "woman", "refrigerator"]
    )
    assert loaded.counts.to_dict() == {"man": 6, "woman": 3, "refrigerator": 1}
    missing = loaded.report[loaded.report["decision"] == "missing file"].set_index("class")["n"]
    assert (missing + loaded.counts).to_dict() == {name: TABLE_5[name] for name in loaded.classes}


def test_the_real_coco_lists_hold_one_repeat_and_one_foreign_address(shared_data, tmp_path):
    with tarfile.open(shared_data / "released-analysis-sets.tar") as archive:
        lists = [one for one in archive if one.name.startswith("analysis_sets/coco_test/")]
        archive.extractall(tmp_path, members=lists, filter="data")
    addresses = [
        line
        for name in TABLE_5
        for line in (tmp_path / "analysis_sets/coco_test" / f"{released_name(name)}.txt").read_text().split()
    ]
    assert len(addresses) == 206
    stand_ins = tmp_path / "pictures"
    stand_ins.mkdir()
    for line in addresses:
        Image.new("RGB", (2, 2)).save(stand_ins / line.rsplit("/", 1)[1])
    loaded = load_set("released", root=tmp_path, schema="coco", images=stand_ins)
    assert findings(loaded) == {
        ("listed twice", "stop sign"): "000000256082",
        ("not a COCO address", "surfboard+woman"): "4916292003_958bde8bcb_z",
    }
    assert loaded.counts.to_dict() == TABLE_5 | {"stop sign": 43}
