import csv
import json

import numpy as np
import polars as pl
import pytest
from PIL import Image

from biastransfer.analysis_sets import load_set, schema_classes
from biastransfer.analysis_sets.openimages_classes import CHILDREN, PARENTS, PARTS, PEOPLE, below, roles
from biastransfer.analysis_sets.ranking import rank, ranks

MID = {
    "Man": "/m/04yx4",
    "Woman": "/m/03bt1vf",
    "Boy": "/m/01bl7v",
    "Girl": "/m/05r655",
    "Person": "/m/01g317",
    "Human face": "/m/0dzct",
    "Car": "/m/0k4j",
    "Taxi": "/m/0pg52",
    "Van": "/m/0h2r6",
    "Stop sign": "/m/02pv19",
    "Sports equipment": "/m/05y5lj",
    "Surfboard": "/m/019w40",
    "Fashion accessory": "/m/0463sg",
    "Necklace": "/m/01llwg",
    "Mammal": "/m/04rky",
    "Dog": "/m/0bt9lr",
    "Tree": "/m/07j7r",
}
BOX = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,"
BOX += "IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside"
SMALL = ["man", "woman", "random", "stop sign", "car", "car+man", "car+woman"]


def write(root, boxes, labels=(), *, v7=False, without_file=()):
    """Write Open Images files: boxes are (id, class, [side], [flag]); labels (id, class, confidence)."""
    more = ",XClick1X,XClick2X" if v7 else ""
    with open(root / f"{'oidv6-' if v7 else ''}train-annotations-bbox.csv", "w", newline="") as text:
        text.write(BOX + more + "\n")
        for one, label, *rest in boxes:
            side = next((value for value in rest if isinstance(value, float)), 0.5)
            flags = [int(name in rest) for name in ("group_of", "depiction", "inside")]
            row = [one, "xclick", MID[label], 1, 0.1, 0.1 + side, 0.2, 0.2 + side, 0, 0, *flags]
            csv.writer(text).writerow(row + ([-1, -1] if v7 else []))
    if labels:
        with open(root / "train-annotations-human-imagelabels-boxable.csv", "w", newline="") as text:
            text.write("ImageID,Source,LabelName,Confidence\n")
            for one, label, confidence in labels:
                source = "machine" if confidence not in (0, 1) else "verification"
                csv.writer(text).writerow([one, source, MID[label], confidence])
    described = "".join(f"{mid},{name}\n" for name, mid in MID.items())
    (root / "class-descriptions-boxable.csv").write_text(
        ("LabelName,DisplayName\n" if v7 else "") + described
    )
    (root / "train").mkdir(exist_ok=True)
    for one in {row[0] for row in [*boxes, *labels]} - set(without_file):
        Image.new("RGB", (10, 10)).save(root / "train" / f"{one}.jpg")
    return root


BOXES = [
    ("a1", "Man"),
    ("a2", "Man"),
    ("a2", "Human face"),
    ("a3", "Man"),
    ("a3", "Boy"),
    ("b1", "Woman"),
    ("c1", "Car"),
    ("c2", "Van"),  # a child class
    ("c3", "Car"),
    ("c3", "Tree"),  # other classes do not confound
    ("d1", "Car"),
    ("d1", "Man"),
    ("e1", "Car"),
    ("e1", "Woman"),
    ("s1", "Stop sign"),
    ("r1", "Tree"),
    ("x1", "Car"),
    ("x1", "Dog"),
    ("x2", "Man"),
    ("x2", "Girl"),
    ("x3", "Man"),
    ("x3", "Person"),
    ("x4", "Car"),
    ("x4", "Human face"),
    ("x5", "Boy"),
    ("x6", "Car", "group_of"),
    ("x7", "Car", "depiction"),
    ("x8", "Car", "inside"),
    ("x9", "Tree", "group_of"),  # flags of other classes say nothing
    ("y1", "Stop sign"),
    ("y1", "Man"),
]


def classes(loaded):
    return {name: list(ids) for name, ids in loaded.items.groupby("class", sort=False)["id"]}


def reasons(loaded):
    report = loaded.report[loaded.report["decision"] == "excluded"]
    return {row["reason"]: row["ids"].split(";") for _, row in report.iterrows()}


@pytest.mark.parametrize("v7", [False, True])
def test_every_picture_is_decided_on_by_its_boxes(tmp_path, v7):
    loaded = load_set("openimages", root=write(tmp_path, BOXES, v7=v7), classes=SMALL, random="background")
    assert classes(loaded) == {
        "man": ["a1", "a2", "a3"],
        "woman": ["b1"],
        "random": ["r1", "x9"],
        "stop sign": ["s1"],
        "car": ["c1", "c2", "c3"],
        "car+man": ["d1"],
        "car+woman": ["e1"],
    }
    assert reasons(loaded) == {
        "several of the set's objects": ["x1"],
        "people of both perceived genders": ["x2"],
        "a person whose gender is not stated": ["x3", "x4"],
        "a boy or a girl, and no man or woman": ["x5"],
        "a group-of box": ["x6"],
        "a depiction (drawing, statue, toy)": ["x7"],
        "a view from inside": ["x8"],
        "a person beside the stop sign": ["y1"],
    }
    assert loaded.report["n"].sum() == len({row[0] for row in BOXES})
    assert loaded.items["licence"].unique().tolist() == ["CC BY 2.0"]
    assert "car stands for Car, /m/01lcw4, Van." in loaded.notes


def test_flagged_boxes_can_be_allowed_one_by_one(tmp_path):
    root = write(tmp_path, BOXES)

    def cars(*allow):
        return classes(load_set("openimages", root=root, classes=["car"], allow=allow))["car"][3:]

    assert cars() == []
    assert cars("group_of") == ["x6"]
    assert cars("depiction", "inside") == ["x7", "x8"]


def test_confidence_0_is_absence_a_missing_label_is_unknown(tmp_path):
    boxes = [
        ("c1", "Car"),
        ("c2", "Car"),
        ("c3", "Car"),
        ("c4", "Car"),
        ("c5", "Car"),
        ("m1", "Man"),
        ("c6", "Car"),
    ]
    labels = [
        ("c1", "Person", 0),  # verified: nobody there
        ("c2", "Person", 1),  # somebody there whom nobody boxed
        ("c3", "Car", 0),  # contradicts its box
        ("c4", "Man", 0.9),  # a machine's guess is neither
        ("c5", "Mammal", 1),  # another object of the set, not boxed
        ("m1", "Person", 1),  # said by the box of the man
        ("m1", "Woman", 0),
        ("m1", "Man", 1),
        ("n1", "Dog", 0),  # a verified absence is no dog
        ("c6", "Taxi", 0),
    ]
    loaded = load_set(
        "openimages",
        root=write(tmp_path, boxes, labels),
        classes=["man", "random", "car"],
        random="background",
    )
    assert classes(loaded) == {"man": ["m1"], "random": ["n1"], "car": ["c1", "c4", "c6"]}
    assert reasons(loaded) == {
        "a box of a class that was verified absent": ["c3"],
        "labelled as present but not boxed": ["c2", "c5"],
    }
    kept = loaded.report[(loaded.report["decision"] == "kept") & (loaded.report["class"] == "car")]
    assert dict(zip(kept["reason"], kept["ids"])) == {
        "no person boxed, absence verified": "c1",
        "no person boxed, absence not verified": "c4;c6",
    }
    strict = load_set("openimages", root=tmp_path, classes=["car"], verified_absence=True)
    assert classes(strict) == {"car": ["c1"]}
    assert reasons(strict)["a person's absence is not verified"] == ["c4", "c6"]


def test_minimum_area(tmp_path):
    boxes = [("c1", "Car", 0.5), ("c2", "Car", 0.1), ("d1", "Car", 0.5), ("d1", "Man", 0.1)]
    root = write(tmp_path, boxes)
    assert classes(load_set("openimages", root=root, classes=["car", "car+man"]))["car"] == ["c1", "c2"]
    loaded = load_set("openimages", root=root, classes=["car"], min_area=0.02)
    assert classes(loaded) == {"car": ["c1"]}
    assert reasons(loaded) == {
        "one of the set's objects below the minimum area": ["c2"],
        "a person below the minimum area": ["d1"],
    }


def test_all_sixteen_classes_with_parent_and_child_classes(tmp_path):
    things = {"car": "Car", "sports": "Surfboard", "fashion": "Necklace", "mammal": "Mammal"}
    boxes = [("man", "Man"), ("woman", "Woman"), ("stop", "Stop sign"), ("tree", "Tree")]
    for thing, label in things.items():
        boxes += [(thing, label)]
        boxes += [(f"{thing}-{who}", one) for who in ("man", "woman") for one in (label, who.title())]
    loaded = load_set("openimages", root=write(tmp_path, boxes), random="background")
    assert loaded.classes == schema_classes("openimages")
    assert loaded.counts.tolist() == [1] * 16
    parent = loaded.items.set_index("class")
    assert parent.loc["sports+woman", ["id", "object", "attribute"]].tolist() == [
        "sports-woman",
        "sports",
        "woman",
    ]


def test_a_hierarchy_file_replaces_the_list(tmp_path):
    tree = {
        "LabelName": "/m/0bl9f",
        "Subcategory": [
            {
                "LabelName": MID["Car"],
                "Subcategory": [{"LabelName": MID["Tree"], "Subcategory": [{"LabelName": "/m/x"}]}],
            },
            {
                "LabelName": "/m/y",
                "Part": [{"LabelName": MID["Mammal"], "Subcategory": [{"LabelName": MID["Dog"]}]}],
            },
        ],
    }
    root = write(tmp_path, [("c1", "Tree"), ("c2", "Van"), ("m1", "Dog")])
    file = root / "bbox_labels_600_hierarchy.json"
    file.write_text(json.dumps(tree))
    assert below(file, MID["Car"]) == [MID["Tree"], "/m/x"]
    assert below(file, MID["Mammal"]) == [MID["Dog"]]
    assert below(file, "/m/x") == []
    loaded = load_set("openimages", root=root, classes=["car", "mammal"])
    assert classes(loaded) == {"car": ["c1"], "mammal": ["m1"]}
    file.write_text("[]")
    with pytest.raises(ValueError, match="must be Open Images' box hierarchy"):
        load_set("openimages", root=root, classes=["car"])


def test_the_list_of_child_classes_holds_boxable_classes_once(shared_data):
    text = (shared_data / "openimages" / "class-descriptions-boxable.csv").read_text()
    names = dict(line.split(",", 1) for line in text.splitlines())
    every = [mid for mid, _ in roles()]
    assert len(every) == len(set(every))
    assert [mid for mid in every if mid not in names] == []
    assert {name: names[mid] for name, mid in PARENTS.items()} == {
        "car": "Car",
        "sports": "Sports equipment",
        "fashion": "Fashion accessory",
        "mammal": "Mammal",
        "stop sign": "Stop sign",
    }
    assert [names[mid] for mid in PEOPLE.values()] == ["Man", "Woman", "Boy", "Girl", "Person"]
    assert all(names[mid].startswith("Human") for mid in PARTS)
    children = {name: {names[mid] for mid in mids.split()} for name, mids in CHILDREN.items()}
    assert {"Surfboard", "Football", "Bicycle helmet"} <= children["sports"]
    assert {"Necklace", "Sun hat", "Handbag"} <= children["fashion"]
    assert {"Dog", "Polar bear", "Elephant"} <= children["mammal"]
    assert "Teddy bear" not in children["mammal"]


def test_licences_and_the_images_folder(tmp_path):
    root = write(tmp_path, [("c1", "Car"), ("c2", "Car")])
    (root / "train-images-boxable-with-rotation.csv").write_text(
        "ImageID,Subset,OriginalURL,License\nc1,train,http://a,https://creativecommons.org/licenses/by/2.0/\n"
    )
    loaded = load_set("openimages", root=root, images="train", classes=["car"])
    assert loaded.items["licence"].tolist() == ["https://creativecommons.org/licenses/by/2.0/", "CC BY 2.0"]


def test_a_missing_file_is_reported(tmp_path):
    root = write(tmp_path, [("c1", "Car"), ("c2", "Car")], without_file=["c1"])
    loaded = load_set("openimages", root=root, classes=["car"])
    assert classes(loaded) == {"car": ["c2"]}
    row = loaded.report[loaded.report["decision"] == "missing file"].iloc[0]
    assert (row["class"], row["ids"]) == ("car", "c1")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"allow": ["groupof"]},
            ValueError,
            "allow must hold only group_of, depiction, inside; got 'groupof'",
        ),
        (
            {"allow": "group_of"},
            ValueError,
            "allow must hold only group_of, depiction, inside; got 'group_of'",
        ),
        ({"min_area": -0.1}, ValueError, "min_area must be a share of the picture from 0 to 1; got -0.1"),
        (
            {"images": "nowhere"},
            FileNotFoundError,
            r"Open Images pictures must exist; .*nowhere",
        ),
        (
            {"classes": ["sports"]},
            ValueError,
            r"every class must have a picture; 'sports' has none",
        ),
    ],
)
def test_errors_are_one_sentence(tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        load_set("openimages", root=write(tmp_path, BOXES), **{"classes": ["car"]} | options)


def test_classes_that_nobody_named_may_be_empty_but_not_all_of_them(tmp_path):
    loaded = load_set("openimages", root=write(tmp_path, BOXES), random="background")
    assert loaded.classes == ["man", "woman", "random", "stop sign", "car", "car+man", "car+woman"]
    empty = loaded.report[loaded.report["decision"] == "no picture"]
    assert len(empty) == 9
    assert empty["n"].sum() == 0
    with pytest.raises(ValueError, match="every class must have a picture; 'man' has none"):
        load_set("openimages", root=write(tmp_path, [("x", "Girl")]), random="background")


def test_no_box_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Open Images boxes must be below .*no CSV there has"):
        load_set("openimages", root=tmp_path)


MIAP = "ImageID,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,"
MIAP += "IsGroupOf,IsDepictionOf,IsInsideOf,GenderPresentation,AgePresentation"
SHOWN = {"f": "Predominantly Feminine", "m": "Predominantly Masculine", "u": "Unknown"}


def write_miap(root, people):
    """Write MIAP's file: people are (picture, presentation, [age], [side], [flag])."""
    lines = [MIAP]
    for one, gender, *rest in people:
        side = next((value for value in rest if isinstance(value, float)), 0.5)
        age = next((value for value in rest if value in ("Young", "Middle", "Older", "Unknown")), "Middle")
        flags = ",".join(str(int(name in rest)) for name in ("group_of", "depiction", "inside"))
        sides = f"0.1,{0.1 + side},0.2,{0.2 + side}"
        lines.append(f"{one},{MID['Person']},1,{sides},0,0,{flags},{SHOWN[gender]},{age}")
    (root / "open_images_extended_miap_boxes_train.csv").write_text("\n".join(lines) + "\n")
    return root


def test_perceived_gender_presentation_of_miap(tmp_path):
    boxes = [(one, "Car") for one in ("c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9")]
    boxes += [("c1", "Woman"), ("c9", "Man"), ("m1", "Person"), ("w1", "Man"), ("x1", "Human face")]
    people = [
        ("c1", "m"),  # against the box of the class woman
        ("c2", "f"),  # whom nobody had boxed
        ("c3", "u"),
        ("c4", "m"),
        ("c4", "u"),  # unknown stays unknown beside a known one
        ("c5", "m"),
        ("c5", "f"),
        ("c6", "m", "Young"),
        ("c7", "m", "group_of"),
        ("m1", "m", "Older"),
        ("m1", "m", "Young"),
        ("w1", "f", "Unknown"),
        ("r1", "f"),  # a picture of MIAP only
    ]
    root = write_miap(write(tmp_path, [*boxes, ("t1", "Tree")]), people)
    wanted = ["man", "woman", "random", "car", "car+man", "car+woman"]
    Image.new("RGB", (10, 10)).save(root / "train" / "r1.jpg")
    loaded = load_set("openimages", root=root, classes=wanted, gender="miap", random="background")
    assert classes(loaded) == {
        "man": ["m1"],
        "woman": ["r1", "w1"],
        "random": ["t1"],
        "car": ["c8"],
        "car+man": ["c1"],
        "car+woman": ["c2"],
    }
    assert reasons(loaded) == {
        "a gender presentation that MIAP calls unknown": ["c3", "c4"],
        "people of both perceived genders": ["c5"],
        "a boy or a girl, and no man or woman": ["c6"],
        "a group-of box": ["c7"],
        "a person whom MIAP does not list": ["c9", "x1"],
    }
    assert "gender = 'miap'" in loaded.notes[0]


def test_miap_is_not_read_unless_asked_for(tmp_path):
    root = write_miap(write(tmp_path, BOXES), [("c1", "m", "depiction")])
    loaded = load_set("openimages", root=root, classes=SMALL, random="background")
    assert classes(loaded)["car"] == ["c1", "c2", "c3"]
    allowed = {"gender": "miap", "allow": ["depiction"]}
    flagged = load_set("openimages", root=root, classes=["car+man", "random"], **allowed)
    assert classes(flagged)["car+man"] == ["c1"]


def test_the_minimum_area_holds_for_miaps_boxes(tmp_path):
    boxes = [("c1", "Car"), ("c2", "Car")]
    root = write_miap(write(tmp_path, boxes), [("c1", "m", 0.5), ("c2", "m", 0.1)])
    loaded = load_set("openimages", root=root, classes=["car+man"], gender="miap", min_area=0.02)
    assert classes(loaded) == {"car+man": ["c1"]}
    assert reasons(loaded) == {"a person below the minimum area": ["c2"]}


def test_miap_has_to_be_there_and_the_rule_known(tmp_path):
    root = write(tmp_path, BOXES)
    with pytest.raises(FileNotFoundError, match=r"MIAP's boxes must be below .* for gender='miap'; .*Fetch"):
        load_set("openimages", root=root, classes=["car"], gender="miap")
    with pytest.raises(ValueError, match="gender must be one of boxes, miap; got 'names'"):
        load_set("openimages", root=root, classes=["car"], gender="names")


def official(one):
    """An id of 16 hexadecimal digits, unlike for every short one."""
    return one.encode().hex().zfill(16)


@pytest.mark.parametrize("v7", [False, True])
def test_official_ids_are_read_as_numbers_and_give_the_same_set(tmp_path, v7):
    labels = [("c1", "Person", 0), ("c3", "Car", 0), ("d1", "Person", 1), ("n1", "Dog", 0)]
    labels += [("c2", "Mammal", 1)]
    (tmp_path / "short").mkdir()
    (tmp_path / "long").mkdir()
    short = write(tmp_path / "short", BOXES, labels, v7=v7)
    long = write(
        tmp_path / "long",
        [(official(one), *rest) for one, *rest in BOXES],
        [(official(one), *rest) for one, *rest in labels],
        v7=v7,
        without_file=[official("a2")],
    )
    options = {"classes": SMALL, "random": "background", "min_area": 0.01}
    one, other = (load_set("openimages", root=root, **options) for root in (short, long))
    assert classes(other) == {
        name: [official(key) for key in ids if key != "a2"] for name, ids in classes(one).items()
    }
    assert reasons(other) == {reason: list(map(official, ids)) for reason, ids in reasons(one).items()}
    gone = other.report[other.report["decision"] == "missing file"]
    assert gone["ids"].tolist() == [official("a2")]


def test_the_order_of_a_draw_is_one_for_texts_and_numbers():
    ids = [f"{number:016x}" for number in (0, 1, 255, 2**63, 2**64 - 1)]
    numbers = pl.Series([int(one, 16) for one in ids], dtype=pl.UInt64)
    np.testing.assert_array_equal(ranks(3, pl.Series(ids)), ranks(3, numbers))
    assert [rank(3, one) for one in ids] == ranks(3, numbers).tolist()
    many = pl.Series(np.arange(100_000, dtype=np.uint64))
    share = ranks(0, many) / 2**56
    assert abs(np.mean(share) - 0.5) < 0.005
    assert abs(np.corrcoef(share, ranks(1, many) / 2**56)[0, 1]) < 0.02
    assert abs(np.corrcoef(share[:-1], share[1:])[0, 1]) < 0.02


def test_the_real_class_descriptions_name_child_classes(tmp_path, shared_data):
    real = (shared_data / "openimages" / "class-descriptions-boxable.csv").read_text()
    root = write(tmp_path, [("m1", "Dog")])
    (root / "class-descriptions-boxable.csv").write_text(real)
    notes = load_set("openimages", root=root, classes=["mammal"]).notes
    mammals = next(note for note in notes if note.startswith("mammal stands for Mammal, "))
    assert "Dog" in mammals
    assert "/m/" not in mammals
