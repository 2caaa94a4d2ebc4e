import pandas as pd
import pytest
from test_analysis_sets_coco import MAN, NOBODY, box, write
from test_analysis_sets_openimages import write as write_open_images

from biastransfer import paths
from biastransfer.analysis_sets import load_set
from biastransfer.analysis_sets.named import load_named
from biastransfer.analysis_sets.review import CANDIDATE_COLUMNS

CARS = {number: ([box("car")], NOBODY) for number in range(1, 9)}
MEN = {number: ([box("person"), box("person", 30)], MAN) for number in range(11, 14)}
NOTHING = {number: ([], NOBODY) for number in range(21, 27)}
OPTIONS = {"classes": ["man", "random", "car"], "cap": 3}


@pytest.fixture
def root(tmp_path):
    return write(tmp_path / "coco", CARS | MEN | NOTHING)


def load(root, **options):
    return load_set("coco", root=root, **OPTIONS | options)


def sheet(tmp_path, table):
    return paths.write_csv(table, tmp_path / "candidates.csv")


def ids(loaded, name):
    return loaded.items.loc[loaded.items["class"] == name, "id"].tolist()


def test_candidates_are_the_chosen_pictures_and_the_next_ones(root):
    loaded = load(root)
    table = loaded.candidates
    assert list(table.columns) == CANDIDATE_COLUMNS
    proposed = table.groupby(["class", "proposed"], sort=False).size().to_dict()
    assert proposed == {
        **{("man", "accept"): 3, ("random", "accept"): 3, ("random", "reject"): 3},
        **{("car", "accept"): 3, ("car", "reject"): 3},
    }
    chosen = table[table["proposed"] == "accept"]
    assert chosen[["class", "id"]].to_numpy().tolist() == loaded.items[["class", "id"]].to_numpy().tolist()
    assert table["accept"].tolist() == [{"accept": "yes", "reject": "no"}[one] for one in table["proposed"]]
    assert set(table.loc[table["proposed"] == "reject", "reason"]) == {"over the cap"}
    man = table.iloc[0]
    assert man[["id", "file", "object_share", "person_share", "captions"]].tolist() == [
        *("000000000011", "val2017/000000000011.jpg", 0.0, 0.25, " | ".join(MAN)),
    ]
    assert table.loc[table["class"] == "car", "object_share"].tolist() == [0.25] * 6
    wider = load(root, cap=6).candidates  # the next ones are those that a higher cap would take
    assert set(wider.loc[wider["proposed"] == "accept", "id"]) >= set(table["id"])


def test_what_a_person_accepts_is_the_set(root, tmp_path):
    table = load(root).candidates
    cars = table[table["class"] == "car"].index
    table.loc[cars[0], "accept"] = "no"
    table.loc[cars[3:5], "accept"] = ["Yes", "TRUE"]
    spare_random = table[(table["class"] == "random") & (table["proposed"] == "reject")].index
    table.loc[spare_random[0], "accept"] = "yes"
    loaded = load(root, review=sheet(tmp_path, table))
    assert ids(loaded, "car") == sorted(table.loc[[*cars[1:5]], "id"])
    assert ids(loaded, "random") == sorted(
        [
            *table.loc[(table["class"] == "random") & (table["proposed"] == "accept"), "id"],
            table.loc[spare_random[0], "id"],
        ]
    )
    report = loaded.report
    row = report[report["reason"] == "rejected by a person"]
    assert row[["class", "decision", "ids"]].to_numpy().tolist() == [
        ["car", "excluded", table.loc[cars[0], "id"]]
    ]
    assert report["n"].sum() == 17  # every picture is decided on once
    assert report.loc[report["reason"] == "over the cap of 3", "n"].item() == 3
    assert loaded.notes[-1] == "A person went through 15 candidates."


def test_as_proposed_is_the_set_as_it_was(root, tmp_path):
    loaded = load(root)
    again = load(root, review=sheet(tmp_path, loaded.candidates))
    pd.testing.assert_frame_equal(again.items, loaded.items)
    pd.testing.assert_frame_equal(again.report, loaded.report)
    chosen = loaded.candidates[loaded.candidates["proposed"] == "accept"]  # the others may be deleted
    pd.testing.assert_frame_equal(load(root, review=sheet(tmp_path, chosen)).items, loaded.items)


def changed(table, change):
    if change == "unknown":
        return pd.concat([table, table.tail(1).assign(id="000000000099")])
    if change == "class":
        return table.assign(**{"class": table["class"].replace("man", "woman")})
    if change == "missing":
        return table.iloc[1:]
    if change == "twice":
        return pd.concat([table, table.head(1)])
    if change == "undecided":
        return table.assign(accept=["maybe", *table["accept"][1:]])
    return table.drop(columns=change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("unknown", r"no other; car 000000000099 is no candidate \(1 so\)\. Load the set with the options"),
        ("class", r"no other; woman 000000000011 is no candidate \(3 so\)"),
        ("missing", r"man 000000000011 is a candidate without a row \(1 so\)"),
        ("twice", r"one row; line 17 of .* is man 000000000011 again"),
        ("undecided", r"accept must be yes or no; line 2 of .* has 'maybe'\. Decide on it"),
        ("accept", "must have the columns class, id, accept; it lacks accept"),
    ],
)
def test_a_review_that_does_not_fit_is_an_error(root, tmp_path, change, message):
    file = sheet(tmp_path, changed(load(root).candidates, change))
    with pytest.raises(ValueError, match=message):
        load(root, review=file)


def test_a_review_that_is_not_there(root, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"reviewed candidates must exist; .*none\.csv does not"):
        load(root, review=tmp_path / "none.csv")


@pytest.mark.parametrize("form", ["{:016x}", "c{}"])
def test_open_images_are_reviewed_alike_whatever_form_ids_have(tmp_path, form):
    boxes = [(form.format(number), "Car") for number in range(6)]
    root = write_open_images(tmp_path, boxes)
    table = load_set("openimages", root=root, classes=["car"], cap=2).candidates
    assert table["proposed"].tolist() == ["accept"] * 2 + ["reject"] * 2
    table["accept"] = ["no", "yes", "yes", "no"]
    loaded = load_set("openimages", root=root, classes=["car"], cap=2, review=sheet(tmp_path, table))
    assert loaded.items["id"].tolist() == sorted(table["id"][1:3])
    assert loaded.report["n"].sum() == 6
    excluded = loaded.report[loaded.report["decision"] == "excluded"].set_index("reason")["n"]
    assert excluded.to_dict() == {"rejected by a person": 1, "over the cap of 2": 3}


def test_a_reviewed_table_in_the_pictures_folder_is_followed_wherever_the_set_is_named(root):
    few = load_named("curated-coco", root=root)
    assert few.classes == ["man", "random", "car"]
    table = few.candidates
    table.loc[table["id"] == "000000000001", "accept"] = "no"
    paths.write_csv(table, root / "reviewed-curated-coco.csv")
    assert set(ids(few, "car")) - set(ids(load_named("curated-coco", root=root), "car")) == {"000000000001"}
