import pandas as pd
from PIL import Image

from biastransfer.analysis_sets import load_set
from biastransfer.analysis_sets.tables import OVERLAP_COLUMNS, overlap, set_tables

LEARNED = {
    "one": (("sports car, sport car", "cab", "tench"), "labels"),
    "web": ((), "pairs"),
    "two": (("sports car, sport car", "cab", "tench"), "labels"),
}


def test_backbones_of_one_pretraining_share_their_rows():
    table = overlap(["car", "surfboard"], LEARNED)
    assert list(table.columns) == OVERLAP_COLUMNS
    assert table.fillna(-1).to_numpy().tolist() == [
        ["labels", "one, two", 3, "car", 2, "sports car; cab"],
        ["labels", "one, two", 3, "surfboard", 0, ""],
        ["pairs", "web", 0, "car", -1, ""],
        ["pairs", "web", 0, "surfboard", -1, ""],
    ]
    assert list(overlap(["car"], {}).columns) == OVERLAP_COLUMNS


def test_the_tables_of_a_set_are_keyed_and_say_what_it_holds(tmp_path):
    for number, name in enumerate(("man/1.png", "car/1.png", "car/2.png", "car_man/1.png")):
        file = tmp_path / "set" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (60 * number, 0, 0)).save(file)
    loaded = load_set("folder", root=tmp_path / "set", licence="CC0")
    found = set_tables(loaded, LEARNED, run="own", set_name="mine")
    assert list(found) == ["sets", "set_report", "lint", "overlap"]
    assert all((frame[["run", "set"]] == ["own", "mine"]).all().all() for frame in found.values())
    assert found["sets"].drop(columns=["run", "set"]).to_numpy().tolist() == [
        ["man", "", "man", "CC0", 1],
        ["car", "car", "", "CC0", 2],
        ["car+man", "car", "man", "CC0", 1],
    ]
    pd.testing.assert_frame_equal(found["set_report"].drop(columns=["run", "set"]), loaded.report)
    assert "small class" in set(found["lint"]["check"])
    assert found["overlap"]["object"].tolist() == ["car", "car"]
