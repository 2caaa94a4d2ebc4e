import json
import re

import pandas as pd
import pytest
from PIL import Image

from biastransfer.analysis_sets import coco_files, load_set
from biastransfer.analysis_sets.coco_files import read_captions, read_instances
from biastransfer.analysis_sets.lint import lint

# Official category ids run from 1 to 90 with gaps.
CATEGORIES = {"person": 1, "car": 3, "stop sign": 13, "dog": 18, "surfboard": 42, "refrigerator": 82}


def box(name, side=50, crowd=0):
    """A box of side × side of the 100 × 100 picture: share side² / 10,000."""
    return (name, side, crowd)


def write(root, pictures, *, without_file=(), name=""):
    """Write COCO files: pictures maps id → (boxes, captions)."""
    images, annotations, captions = [], [], []
    (root / "annotations").mkdir(parents=True, exist_ok=True)
    (root / "val2017").mkdir(exist_ok=True)
    for number, (boxes, said) in pictures.items():
        file = f"{number:012d}.jpg"
        images.append({"id": number, "file_name": file, "width": 100, "height": 100, "license": 4})
        for label, side, crowd in boxes:
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": CATEGORIES[label],
                    "bbox": [1.5, 2.5, side, side],
                    "area": side * side / 2,
                    "iscrowd": crowd,
                    "segmentation": {"counts": [1], "size": [1, 1]} if crowd else [[0, 0, 1, 1, 2, 2]],
                }
            )
        for text in said:
            captions.append({"id": len(captions) + 1, "image_id": number, "caption": text})
        if number not in without_file:
            Image.new("RGB", (10, 10), (number % 256, 0, 0)).save(root / "val2017" / file)
    categories = [{"id": number, "name": label, "supercategory": "x"} for label, number in CATEGORIES.items()]
    licences = [
        {"id": 4, "name": "Attribution License", "url": "http://creativecommons.org/licenses/by/2.0/"}
    ]
    head = {"info": {}, "licenses": licences, "images": images}
    instances = head | {"annotations": annotations, "categories": categories}
    (root / "annotations" / f"instances{name}.json").write_text(json.dumps(instances))
    (root / "annotations" / f"captions{name}.json").write_text(json.dumps(head | {"annotations": captions}))
    return root


MAN, WOMAN, NOBODY = ["A man there"] * 5, ["A woman there"] * 5, ["A thing"] * 5
PICTURES = {
    1: ([box("person")], MAN),
    2: ([box("person")], WOMAN),
    3: ([box("car")], NOBODY),
    4: ([box("car"), box("person")], MAN),
    5: ([box("car"), box("person")], WOMAN),
    6: ([box("stop sign")], NOBODY),
    7: ([], NOBODY),  # a picture without annotations
    8: ([box("car"), box("surfboard")], NOBODY),
    9: ([box("car"), box("dog")], NOBODY),
    10: ([box("car", 5)], NOBODY),
    11: ([box("car"), box("person", 5)], MAN),
    12: ([box("car"), box("person")], ["A man", "a woman", "", "", ""]),
    13: ([box("car"), box("person")], NOBODY),
    14: ([box("car")], MAN),
    15: ([box("car"), box("person", 60, 1)], NOBODY),
    16: ([box("stop sign"), box("person")], MAN),
    17: ([box("dog")], NOBODY),
    18: ([box("car"), box("dog", 5)], NOBODY),
    19: ([box("car")], []),  # no captions at all: nobody is named
}
SMALL = ["man", "woman", "random", "stop sign", "car", "car+man", "car+woman"]


@pytest.fixture
def root(tmp_path):
    return write(tmp_path, PICTURES)


def classes(loaded):
    return {
        name: [int(one) for one in part["id"]] for name, part in loaded.items.groupby("class", sort=False)
    }


def reasons(loaded):
    report = loaded.report[loaded.report["decision"] == "excluded"]
    return {row["reason"]: sorted(map(int, row["ids"].split(";"))) for _, row in report.iterrows()}


def test_every_picture_is_decided_on_by_the_rule(root):
    loaded = load_set("coco", root=root, classes=SMALL, random="background")
    assert classes(loaded) == {
        "man": [1],
        "woman": [2],
        "random": [7, 17],
        "stop sign": [6],
        "car": [3, 18, 19],
        "car+man": [4],
        "car+woman": [5],
    }
    assert reasons(loaded) == {
        "several of the set's objects": [8],
        "another object that is large": [9],
        "one of the set's objects below the minimum area": [10],
        "a person below the minimum area": [11],
        "people of both perceived genders": [12],
        "a person whose gender is not stated": [13],
        "captions name a person without a box": [14],
        "a crowd box of people or of one of the set's objects": [15],
        "a person beside the stop sign": [16],
    }
    assert loaded.report["n"].sum() == len(PICTURES)
    assert loaded.items["licence"].unique().tolist() == ["Attribution License"]
    assert loaded.items["source"].unique().tolist() == ["COCO 2017"]
    assert loaded.items.loc[0, "id"] == "000000000001"


def test_crowd_policies_are_explicit(root):
    def people(**options):
        return classes(load_set("coco", root=root, classes=["car"], **options))["car"]

    assert people() == [3, 18, 19]
    assert people(crowd="ignore") == [3, 15, 18, 19]  # as if the crowd box were not there
    counted = load_set("coco", root=root, classes=["car"], crowd="count")
    assert 15 in reasons(counted)["a person whose gender is not stated"]


def test_areas_are_shares_of_the_picture(root):
    assert classes(load_set("coco", root=root, classes=["car"], min_area=0))["car"] == [3, 10, 19]
    assert classes(load_set("coco", root=root, classes=["car"], min_area=0.25))["car"] == [3, 18, 19]
    both = load_set("coco", root=root, classes=["car"], confounder_area=1.0)
    assert classes(both)["car"] == [3, 9, 18, 19]
    with pytest.raises(ValueError, match=r"coco: every class must have a picture; 'car' has none"):
        load_set("coco", root=root, classes=["car"], min_area=0.2501)


def test_min_captions(tmp_path):
    one = ["A man", "", "", "", ""]
    root = write(tmp_path, {1: ([box("person")], one), 2: ([box("person")], MAN), 3: ([box("car")], one)})
    assert classes(load_set("coco", root=root, classes=["man"]))["man"] == [1, 2]
    twice = load_set("coco", root=root, classes=["man", "car"], min_captions=2)
    assert classes(twice) == {"man": [2], "car": [3]}


def test_a_missing_file_is_reported_and_replaced_within_the_cap(tmp_path):
    cars = {number: ([box("car")], NOBODY) for number in range(1, 11)}
    root = write(tmp_path, cars, without_file={2, 5})
    loaded = load_set("coco", root=root, classes=["car"], cap=8)
    assert classes(loaded)["car"] == [1, 3, 4, 6, 7, 8, 9, 10]
    row = loaded.report[loaded.report["decision"] == "missing file"].iloc[0]
    assert (row["class"], row["n"], row["ids"]) == ("car", 2, "000000000002;000000000005")


def test_two_splits_are_read_and_a_picture_in_both_counts_once(tmp_path):
    write(tmp_path, {1: ([box("car")], NOBODY)}, name="_train2017")
    write(tmp_path, {1: ([box("car")], NOBODY), 2: ([box("person")], ["A man", "x"])}, name="_val2017")
    loaded = load_set("coco", root=tmp_path, classes=["man", "car"])
    assert classes(loaded) == {"man": [2], "car": [1]}
    assert loaded.report.set_index("decision").loc["listed twice", "n"] == 1
    one = load_set("coco", root=tmp_path, instances="annotations/instances_train2017.json", classes=["car"])
    assert classes(one) == {"car": [1]}
    said = read_captions(
        [tmp_path / "annotations" / f"captions_{split}2017.json" for split in ("train", "val")]
    )
    assert len(said[1]) == 5


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"min_area": 2}, ValueError, "min_area must be a share of the picture from 0 to 1; got 2"),
        ({"confounder_area": -1}, ValueError, "confounder_area must be a share of the picture"),
        ({"crowd": "keep"}, ValueError, "crowd must be one of exclude, count, ignore; got 'keep'"),
        ({"instances": "no.json"}, FileNotFoundError, r"COCO instances must exist; .*no\.json does not"),
        ({"images": "nowhere"}, FileNotFoundError, r"the folder of COCO pictures must exist; .*nowhere"),
        (
            {"captions": "annotations/instances.json"},
            ValueError,
            r"must be COCO captions JSON .*Check",
        ),
        ({"min_captions": 0}, ValueError, "min_captions must be a whole number"),
    ],
)
def test_errors_are_one_sentence(root, options, error, message):
    with pytest.raises(error, match=message):
        load_set("coco", root=root, classes=["car"], **options)


def test_files_of_one_name_are_told_apart_by_the_folders_that_are_listed(tmp_path):
    write(tmp_path, {3: ([box("car")], NOBODY)})
    (tmp_path / "thumbs").mkdir()
    Image.new("RGB", (10, 10)).save(tmp_path / "thumbs" / "000000000003.jpg")
    file = tmp_path / "annotations" / "instances.json"
    [first] = load_set("coco", root=tmp_path, classes=["car"]).items["file"]
    assert first == str(tmp_path / "thumbs" / "000000000003.jpg")
    file.write_text(file.read_text().replace("000000000003.jpg", "val2017/000000000003.jpg"))
    [found] = load_set("coco", root=tmp_path, classes=["car"]).items["file"]
    assert found == str(tmp_path / "val2017" / "000000000003.jpg")


def test_one_file_never_stands_for_two_pictures(tmp_path):
    write(tmp_path, {3: ([box("car")], NOBODY)}, name="_train")
    write(tmp_path, {4: ([box("car")], NOBODY)}, name="_val")
    file = tmp_path / "annotations" / "instances_val.json"
    file.write_text(file.read_text().replace("000000000004.jpg", "000000000003.jpg"))
    message = (
        r"000000000003\.jpg stands for pictures 000000000003 and 000000000004\. Load the splits one by one"
    )
    with pytest.raises(ValueError, match=message):
        load_set("coco", root=tmp_path, classes=["car"])


def test_no_annotations(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"COCO instances must be below .*no instances\*\.json"):
        load_set("coco", root=tmp_path)


def test_a_box_of_no_listed_picture_is_an_error(root):
    file = root / "annotations" / "instances.json"
    data = json.loads(file.read_text())
    data["annotations"][0]["image_id"] = 999
    file.write_text(json.dumps(data))
    with pytest.raises(ValueError, match="1 boxes name no listed picture, 0 no category"):
        read_instances([file])


def test_real_files_give_what_a_plain_reading_gives(shared_data):
    """The 331 real pictures: class man and car+man again, with nothing but json and loops."""
    folder = shared_data / "coco-mini" / "annotations"
    data = json.loads((folder / "instances.json").read_text())
    said = {}
    for one in json.loads((folder / "captions.json").read_text())["annotations"]:
        said.setdefault(one["image_id"], "")
        said[one["image_id"]] += " " + one["caption"].lower()
    names = {one["id"]: one["name"] for one in data["categories"]}
    area = {one["id"]: one["width"] * one["height"] for one in data["images"]}
    shares = {number: {} for number in area}
    crowded = set()
    for one in data["annotations"]:
        name, at = names[one["category_id"]], one["image_id"]
        if one["iscrowd"]:
            crowded |= {at} if name in ("person", "car", "surfboard", "refrigerator", "stop sign") else set()
            continue
        share = one["bbox"][2] * one["bbox"][3] / area[at]
        shares[at][name] = max(share, shares[at].get(name, 0))
    male, female = (
        re.compile(rf"(?<![\w-])({words})('s)?(?![\w-])")
        for words in (
            "males?|boys?|man|men|gentleman|gentlemen",
            "females?|girls?|woman|women|lady|ladies",
        )
    )
    expected = []
    for number, largest in shares.items():
        text = said.get(number, "")
        others = [share for name, share in largest.items() if name not in ("person",)]
        ours = {"car", "surfboard", "refrigerator", "stop sign"} & set(largest)
        gendered = bool(male.search(text)) and not female.search(text)
        if number not in crowded and largest.get("person", 0) >= 0.02 and gendered and not ours:
            expected += [number] if all(share < 0.02 for share in others) else []
    loaded = load_set(
        "coco",
        root=shared_data / "coco-mini",
        instances="annotations/instances.json",
        captions="annotations/captions.json",
        classes=["man", "woman", "random", "stop sign", "car", "refrigerator", "surfboard+man"],
    )
    assert classes(loaded)["man"] == sorted(expected)
    assert loaded.counts.to_dict() == {
        "man": 23,
        "woman": 11,
        "random": 20,
        "stop sign": 2,
        "car": 1,
        "refrigerator": 2,
        "surfboard+man": 4,
    }
    assert set(loaded.items["licence"]) <= {f"COCO licence {number}" for number in range(1, 9)}
    pd.testing.assert_frame_equal(loaded.items, loaded.items.drop_duplicates(["id"]))


@pytest.mark.parametrize("size", [150, 1000, 20_000])
@pytest.mark.parametrize("layout", ["official", "indented", "sorted"])
def test_a_large_file_read_in_pieces_gives_what_it_gives_whole(
    shared_data, tmp_path, monkeypatch, layout, size
):
    file = shared_data / "coco-mini" / "official-format" / "instances_val2017.json"
    data = json.loads(file.read_text())
    assert any(one["iscrowd"] for one in data["annotations"])  # whose outlines are objects, not lists
    options = {"official": {}, "indented": {"indent": 1}, "sorted": {"sort_keys": True}}[layout]
    (tmp_path / "instances.json").write_text(json.dumps(data, **options))
    whole = read_instances([tmp_path / "instances.json"])
    monkeypatch.setattr(coco_files, "_PIECE", size)
    monkeypatch.setattr(coco_files, "_Instances", None)  # nothing is read whole
    for one, other in zip(whole, read_instances([tmp_path / "instances.json"])):
        pd.testing.assert_frame_equal(one, other)


def test_a_damaged_large_file_says_where(root, monkeypatch):
    file = root / "annotations" / "instances.json"
    whole = file.read_text()
    monkeypatch.setattr(coco_files, "_PIECE", 200)
    for damaged in (whole[: len(whole) // 2], whole.replace('"bbox"', "bbox", 1), whole[:-1], "[1]" * 200):
        file.write_text(damaged)
        with pytest.raises(ValueError, match=r"instances\.json must be COCO instances JSON .*Check the file"):
            read_instances([file])
    data = json.loads(whole)
    file.write_text(json.dumps(data | {"annotations": []}))
    assert len(read_instances([file])[1]) == 0


def test_a_folder_of_few_pictures_loads_with_the_classes_that_it_has(shared_data):
    """Every annotation file and picture below the folder, two formats of one data set among them."""
    loaded = load_set("coco", root=shared_data / "coco-mini")
    assert loaded.counts.to_dict() == {
        **{"man": 23, "woman": 11, "random": 20, "stop sign": 2, "car": 1, "refrigerator": 2},
        "surfboard+man": 4,
    }
    report = loaded.report
    assert report.loc[report["decision"] == "listed twice", "n"].tolist() == [159]  # in both formats
    assert report["n"].sum() == 331 + 159
    left = report.loc[report["decision"] == "no picture", "class"].tolist()
    assert left == [
        "car+man",
        "car+woman",
        *("refrigerator+man", "refrigerator+woman"),
        "surfboard",
        "surfboard+woman",
    ]
    found = lint(loaded, near=False)
    assert found.loc[found["check"] == "no picture", "class"].tolist() == left
    with pytest.raises(ValueError, match=r"every class must have a picture; 'car\+man' has none"):
        load_set("coco", root=shared_data / "coco-mini", empty="refuse")
    few = load_set("coco", root=shared_data / "coco-mini", empty="leave out")
    assert few.classes == ["man", "woman", "random", "stop sign", "car", "refrigerator"]


def test_the_official_format_reads(shared_data):
    loaded = load_set("coco", root=shared_data / "coco-mini" / "official-format", classes=["random"])
    assert len(loaded.items) == 20
    assert loaded.items["file"].str.contains("val2017").all()
    assert "License" in loaded.items["licence"].iloc[0]
