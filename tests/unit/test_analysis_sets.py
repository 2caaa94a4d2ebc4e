import hashlib

import numpy as np
import pandas as pd
import polars as pl
import pytest
from PIL import Image

from biastransfer import paths
from biastransfer.analysis_sets import AnalysisSet, load_set, schema_classes
from biastransfer.analysis_sets.choosing import assign, choose
from biastransfer.analysis_sets.decisions import REPORT_COLUMNS, tabulate_decisions
from biastransfer.analysis_sets.folder import class_name
from biastransfer.analysis_sets.manifest import ITEM_COLUMNS, split_class
from biastransfer.analysis_sets.ranking import ranks


def picture(path, colour="red"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 6), colour).save(path, format="PNG")
    return path


def decided(report, decision):
    rows = report[report["decision"] == decision]
    return {(row["class"], row["reason"]): (row["n"], row["ids"]) for _, row in rows.iterrows()}


def test_schema_classes_are_the_papers_tables():
    assert schema_classes("coco") == [
        *("man", "woman", "random", "stop sign", "car", "car+man", "car+woman", "refrigerator"),
        *("refrigerator+man", "refrigerator+woman", "surfboard", "surfboard+man", "surfboard+woman"),
    ]
    assert schema_classes("openimages") == [
        *("man", "woman", "random", "stop sign", "car", "car+man", "car+woman", "sports", "sports+man"),
        *("sports+woman", "fashion", "fashion+man", "fashion+woman", "mammal", "mammal+man", "mammal+woman"),
    ]
    with pytest.raises(ValueError, match="schema must be one of coco, openimages; got 'imagenet'"):
        schema_classes("imagenet")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("man", ("", "man")),
        ("random", ("", "")),
        ("stop sign", ("stop sign", "")),
        ("surfboard+woman", ("surfboard", "woman")),
        ("a+b", ("a+b", "")),
    ],
)
def test_a_class_name_is_object_and_attribute(name, parts):
    assert split_class(name) == parts


def test_folder_reads_any_picture_and_counts_the_rest(tmp_path):
    picture(tmp_path / "car" / "B.JPG")
    picture(tmp_path / "car" / "été ☀.png", "blue")
    picture(tmp_path / "car" / "inner" / "a.webp", "lime")
    picture(tmp_path / "car" / ".hidden.png")
    picture(tmp_path / "car" / ".thumbs" / "a.png")
    (tmp_path / "car" / "Thumbs.db").write_bytes(b"x")
    (tmp_path / "car" / "empty.png").write_bytes(b"")
    (tmp_path / "car" / "page.jpg").write_text("<html>not found</html>")
    picture(tmp_path / "car_man" / "1.png", "black")
    picture(tmp_path / "man" / "1.png", "white")
    picture(tmp_path / ".git" / "1.png")
    loaded = load_set("folder", root=tmp_path)
    assert isinstance(loaded, AnalysisSet)
    assert loaded.classes == ["man", "car", "car+man"]
    assert loaded.counts.to_dict() == {"man": 1, "car": 3, "car+man": 1}
    assert list(loaded.items.columns) == ITEM_COLUMNS
    assert list(loaded.report.columns) == REPORT_COLUMNS
    assert loaded.items["id"].tolist()[1:4] == ["car/B.JPG", "car/inner/a.webp", "car/été ☀.png"]
    assert loaded.files("car")[0] == str(tmp_path / "car" / "B.JPG")
    assert loaded.items.loc[1, "sha256"] == paths.sha256(tmp_path / "car" / "B.JPG")
    assert loaded.items[["class", "object", "attribute"]].drop_duplicates().to_numpy().tolist() == [
        ["man", "", "man"],
        ["car", "car", ""],
        ["car+man", "car", "man"],
    ]
    excluded = decided(loaded.report, "excluded")
    assert excluded["car", "hidden file"] == (2, ".hidden.png;.thumbs/a.png")
    assert excluded["car", "not a picture by its name"] == (1, "Thumbs.db")
    assert decided(loaded.report, "empty file") == {("car", "the file has 0 bytes"): (1, "car/empty.png")}
    assert "this is a web page" in loaded.report.set_index("decision").loc["unreadable", "reason"]
    assert loaded.report.loc[loaded.report["decision"] == "kept", "n"].sum() == 5


def test_a_newline_in_a_name_is_escaped_in_the_report(tmp_path):
    picture(tmp_path / "car" / "ok.png")
    (tmp_path / "car" / "a\n.png").write_bytes(b"")
    report = load_set("folder", root=tmp_path).report
    assert decided(report, "empty file")["car", "the file has 0 bytes"] == (1, "car/a\\n.png")


def test_two_folders_of_one_class_are_an_error_and_neither_is_lost(tmp_path):
    picture(tmp_path / "car_man" / "1.png")
    picture(tmp_path / "car+man" / "2.png")
    with pytest.raises(ValueError, match=r"'car\+man' and 'car_man' both stand for 'car\+man'"):
        load_set("folder", root=tmp_path)


def test_a_link_back_does_not_multiply_pictures(tmp_path):
    picture(tmp_path / "set" / "car" / "inner" / "1.png")
    (tmp_path / "set" / "car" / "inner" / "back").symlink_to(tmp_path / "set" / "car")
    picture(tmp_path / "elsewhere" / "2.png", "blue")
    (tmp_path / "set" / "car" / "linked").symlink_to(tmp_path / "elsewhere")
    assert load_set("folder", root=tmp_path / "set").items["id"].tolist() == [
        "car/inner/1.png",
        "car/linked/2.png",
    ]


def test_a_damaged_picture_is_named_without_its_folder_and_passed_over_where_pictures_are_shown(tmp_path):
    whole = picture(tmp_path / "car" / "b.png").read_bytes()
    picture(tmp_path / "car" / "c.png", "blue")
    (tmp_path / "car" / "a.png").write_bytes(whole[: len(whole) // 2 + 10])  # its header is whole
    (tmp_path / "car" / "page.jpg").write_text("<html>not found</html>")
    loaded = load_set("folder", root=tmp_path)
    [reason] = loaded.report.loc[loaded.report["decision"] == "unreadable", "reason"]
    assert reason.startswith("page.jpg: a picture file must hold a picture")
    assert loaded.counts["car"] == 3
    assert [pixels[0, 0].tolist() for pixels in loaded.pixels("car", 9)] == [[255, 0, 0], [0, 0, 255]]
    assert len(loaded.pixels("car", 1)) == 1


def test_folder_order_does_not_come_from_the_file_system(tmp_path):
    for name in ("c", "a", "b"):
        picture(tmp_path / "zebra" / f"{name}.png")
        picture(tmp_path / "ant" / f"{name}.png")
    items = load_set("folder", root=tmp_path).items
    assert items["id"].tolist() == [f"{c}/{n}.png" for c in ("ant", "zebra") for n in "abc"]
    assert load_set("folder", root=tmp_path, classes=["zebra"]).classes == ["zebra"]


def test_folder_errors_are_one_sentence(tmp_path):
    with pytest.raises(
        ValueError, match=r"kind of analysis set must be one of coco, .*scenes; got 'imagenet'"
    ):
        load_set("imagenet", root=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"must exist; .*nowhere does not"):
        load_set("folder", root=tmp_path / "nowhere")
    with pytest.raises(ValueError, match="must hold one folder a class; it holds no folder"):
        load_set("folder", root=tmp_path)
    (tmp_path / "car").mkdir()
    with pytest.raises(
        ValueError, match=r"every class must have a picture; 'car' has none .*Put a picture there"
    ):
        load_set("folder", root=tmp_path)
    with pytest.raises(ValueError, match="must hold a folder 'man'; it holds car"):
        load_set("folder", root=tmp_path, classes=["man"])
    file = picture(tmp_path / "a.png")
    with pytest.raises(NotADirectoryError, match="must be a folder"):
        load_set("folder", root=file)


def test_an_unknown_class_of_a_set_lists_its_classes(tmp_path):
    picture(tmp_path / "car" / "a.png")
    with pytest.raises(ValueError, match="class must be one of car; got 'cat'"):
        load_set("folder", root=tmp_path).files("cat")


def test_released_folder_names_stand_for_classes():
    assert class_name("fashion_woman") == "fashion+woman"
    assert class_name("refrigerator_man") == "refrigerator+man"
    assert class_name("fashion_week") == "fashion_week"


def facts(rows):
    columns = ["id", "object", "person", "problem"]
    return pd.DataFrame(rows, columns=columns).assign(file=lambda table: table["id"])


def test_each_picture_gets_its_one_class_or_a_reason():
    table = assign(
        facts(
            [
                ("a", "car", "", ""),
                ("b", "car", "man", ""),
                ("c", "", "woman", ""),
                ("d", "", "", ""),
                ("e", "several", "man", ""),
                ("f", "car", "both", ""),
                ("g", "", "unknown", ""),
                ("h", "stop sign", "woman", ""),
                ("i", "stop sign", "", ""),
                ("j", "car", "", "a crowd"),
            ]
        )
    )
    assert table["class"].tolist() == ["car", "car+man", "woman", "", "", "", "", "", "stop sign", ""]
    assert table["reason"].tolist() == [
        *("", "", "", "none of the set's objects and no person", "several of the set's objects"),
        *("people of both perceived genders", "a person whose gender is not stated"),
        *("a person beside the stop sign", "", "a crowd"),
    ]


def test_the_order_of_texts_is_their_hash_behind_the_seed_whatever_stands_beside_them():
    texts = ["000000000139", "", "é", "A" * 16, "0123456789abcdeg", "000000000000000f\n"]
    digests = [hashlib.blake2b(f"3:{one}".encode(), digest_size=7).digest() for one in texts]
    expected = [int.from_bytes(one) for one in digests]
    assert ranks(3, pl.Series(texts)).tolist() == expected
    number = ranks(3, pl.Series([15], dtype=pl.UInt64)).tolist()
    assert ranks(3, pl.Series([*texts[:3], "000000000000000f", *texts[3:]])).tolist() == [
        *expected[:3],
        *number,
        *expected[3:],
    ]
    assert ranks(3, pl.Series([], dtype=pl.String)).tolist() == []


def cars(n):
    return assign(
        facts([(f"c{k:03d}", "car", "", "") for k in range(n)] + [("x", "", "", ""), ("y", "", "both", "")])
    )


def test_a_cap_is_a_seeded_draw_that_other_pictures_do_not_change():
    chosen, made, _ = choose(cars(50), "openimages", classes=["car"], cap=10, seed=3)
    assert len(chosen) == 10
    again, *_ = choose(cars(50).iloc[::-1], "openimages", classes=["car"], cap=10, seed=3)
    assert sorted(again["id"]) == sorted(chosen["id"])
    more, *_ = choose(cars(51), "openimages", classes=["car"], cap=10, seed=3)
    assert len(set(more["id"]) & set(chosen["id"])) >= 9
    other, *_ = choose(cars(50), "openimages", classes=["car"], cap=10, seed=4)
    assert set(other["id"]) != set(chosen["id"])
    log = tabulate_decisions(made, ["car"])
    assert log["n"].sum() + len(chosen) == 52  # every picture is decided on once
    assert log.loc[log["reason"] == "over the cap of 10", "n"].tolist() == [40]


def test_random_comes_from_the_unused_pictures_or_from_the_background_only():
    unused, *_ = choose(cars(5), "openimages", classes=["car", "random"])
    assert set(unused.loc[unused["class"] == "random", "id"]) == {"x", "y"}
    background, made, _ = choose(cars(5), "openimages", classes=["car", "random"], random="background")
    assert background.loc[background["class"] == "random", "id"].tolist() == ["x"]
    assert tabulate_decisions(made, ["car"])["ids"].tolist() == ["y"]
    many = assign(facts([(f"{k:04d}", "", "", "") for k in range(400)]))
    assert len(choose(many, "openimages", classes=["random"])[0]) == 150  # Table 6
    assert len(choose(many, "coco", classes=["random"])[0]) == 20  # Table 5
    assert len(choose(many, "coco", classes=["random"], n_random=7)[0]) == 7
    assert len(choose(many, "coco", classes=["random"], random="background")[0]) == 400


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": ["cat"]}, "classes must be among man, .*; got 'cat'"),
        ({"cap": 0}, "cap must be None or a whole number of at least 1; got 0"),
        ({"cap": True}, "cap must be None or a whole number"),
        ({"n_random": 1.5}, "n_random must be None or a whole number"),
        ({"random": "any"}, "random must be one of unused, background; got 'any'"),
    ],
)
def test_what_cannot_be_chosen(options, message):
    with pytest.raises(ValueError, match=message):
        choose(cars(3), "coco", **options)


def test_items_and_report_agree_for_large_numbers_of_decisions():
    table = cars(200)
    _, made, _ = choose(table, "coco", classes=["car"], cap=1)
    report = tabulate_decisions(made, ["car"])
    row = report[report["class"] == "car"].iloc[0]
    assert row["n"] == 199
    assert row["ids"].endswith("… and 149 more")
    assert np.array_equal(report["n"], [199, 1, 1])
