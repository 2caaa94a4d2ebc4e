import pytest

from biastransfer.analysis_sets.manifest import OBJECTS
from biastransfer.analysis_sets.pretraining import COLUMNS, EXCEPT, NAMES, pretraining_overlap
from biastransfer.backbones import pretraining_classes


def found(thing, *classes):
    row = pretraining_overlap([thing], classes).iloc[0]
    assert row["n"] == len([one for one in row["classes"].split("; ") if one])
    return row["classes"]


@pytest.mark.parametrize(
    ("thing", "classes", "expected"),
    [
        ("car", ("sports car, sport car", "Cab, hack, taxi", "scar", "carriage"), "sports car; cab"),
        ("car", ("freight car", "passenger car, coach", "streetcar, trolley car", "tow truck, tow car"), ""),
        ("refrigerator", ("refrigerator, icebox", "ice cream"), "refrigerator"),
        ("mammal", ("hotdog, hot dog", "teddy, teddy bear", "tabby, tabby cat"), "tabby"),
        ("fashion", ("seat belt, seatbelt", "bow tie, bow-tie, bowtie"), "bow tie"),
        ("stop sign", ("street sign", "stop_sign"), "stop sign"),
        ("zebra", ("zebra", "horse"), "zebra"),  # an object that is not listed goes by its name
    ],
)
def test_names_by_hand(thing, classes, expected):
    assert found(thing, *classes) == expected


def test_the_paper_s_objects_in_imagenet_1k():
    """Oracle: ImageNet-1k has 218 mammals and ten kinds of car by WordNet."""
    classes, _ = pretraining_classes("resnet18")
    table = pretraining_overlap(list(NAMES), classes).set_index("object")
    assert list(table.reset_index().columns) == COLUMNS
    assert table["n"].to_dict() == {
        **{"car": 10, "refrigerator": 1, "surfboard": 0, "stop sign": 0},
        **{"sports": 24, "fashion": 15, "mammal": 218},
    }
    assert table.loc["car", "classes"] == (
        "ambulance; beach wagon; cab; convertible; jeep; limousine; minivan; model t; racer; sports car"
    )
    ranges = ((101, 107), (147, 151), (151, 300), (330, 389))  # tusker … wombat, whales, carnivores, the rest
    mammals = [classes[k].split(",")[0].lower() for first, end in ranges for k in range(first, end)]
    assert table.loc["mammal", "classes"].split("; ") == mammals


def test_every_object_of_the_sets_has_names_and_unknown_classes_give_none():
    assert set(NAMES) == {name for names in OBJECTS.values() for name in names} | {"stop sign"}
    assert set(EXCEPT) <= set(NAMES)
    assert pretraining_overlap(["car"], pretraining_classes("clip_vit_b32")[0])["n"].tolist() == [0]
