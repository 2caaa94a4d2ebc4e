"""Entries of run files: one for many pages, data that a person gives, the whole programme of the paper."""

import pytest

from biastransfer import paths
from biastransfer.analysis_sets.named import KINDS, load_named
from biastransfer.backbones import list_backbones
from biastransfer.finetune import find_recipe
from biastransfer.graph.entries import DATA, RunError, expanded, matched, named, with_data
from biastransfer.graph.runs import load_pages, plan

SIX = ["resnet50", "resnet18", "bit_m_r50x1", "clip_vit_b32", "moco_resnet50", "simclr_resnet50"]


@pytest.fixture
def data(tmp_path):
    """Return the paths of data that a person might give: empty folders."""
    for name in DATA:
        (tmp_path / name).mkdir()
    return {name: str(tmp_path / name) for name in DATA}


def test_an_entry_stands_for_every_combination():
    entry = {
        "page": "{net}-{seed}",
        "each": {"net": ["a", "b"], "seed": [0, 1]},
        "parameters": {"run": "of-{net}", "list": ["{net}", 1], "seed": 7},
        "writes": ["{net}.csv"],
    }
    pages = expanded([entry, {"page": "{stays}"}], "mine")
    assert [page["page"] for page in pages] == ["a-0", "a-1", "b-0", "b-1", "{stays}"]
    assert pages[1]["parameters"] == {"net": "a", "seed": 7, "run": "of-a", "list": ["a", 1]}
    assert pages[2]["writes"] == ["b.csv"]
    assert "each" not in pages[0]


def test_a_name_in_braces_that_has_no_values_is_refused():
    entry = {"page": "{net}-{sead}", "each": {"net": ["a"]}}
    with pytest.raises(
        RunError, match=r"in runs/mine.yaml: only net may stand in braces.*got '{net}-{sead}'"
    ):
        expanded([entry], "mine")


def test_data_change_what_they_are_given_for_and_no_more():
    entry = {
        "page": "x",
        "parameters": {"committed": True, "nets": []},
        "given": {
            "RELEASED": {"committed": False, "root": "$RELEASED"},
            "COCO_MINI": {"nets": ["a"]},
            "COCO": {"roots": ["$RELEASED:$COCO", "$COCO_MINI"]},
        },
    }
    assert with_data(entry, {}, "mine") == ({"committed": True, "nets": []}, [])
    assert with_data(entry, {"COCO_MINI": "/m"}, "mine") == ({"committed": True, "nets": ["a"]}, [])
    parameters, used = with_data(entry, {"RELEASED": "/r", "COCO": "/c"}, "mine")
    assert parameters == {"committed": False, "root": "/r", "nets": []}, "$COCO_MINI lacks for the third"
    assert used == ["RELEASED"]
    parameters, used = with_data(entry, {"RELEASED": "/r", "COCO": "/c", "COCO_MINI": "/m"}, "mine")
    assert parameters["roots"] == ["/r:/c", "/m"]
    assert used == ["COCO", "COCO_MINI", "RELEASED"]
    with pytest.raises(
        RunError, match=r"`given` of x in runs/mine.yaml may name RELEASED, .*; got 'RELEASE'"
    ):
        with_data({"page": "x", "given": {"RELEASE": {}}}, {}, "mine")


def test_only_data_are_found_in_values():
    assert named({"a": ["$COCO/x", "$HOME"], "b": {"c": "$RELEASED:$COCO"}, "d": 1}) == {"COCO", "RELEASED"}


def test_patterns_of_predecessors_are_written_out():
    names = ["02-a-seed0", "02-a-seed1", "02-b-seed0", "03"]
    assert matched(["02-a-*", ["03", "02-a-seed0"]], names, "x") == ("02-a-seed0", "02-a-seed1", "03")
    with pytest.raises(RunError, match=r"x comes after \['04', '05-\*'\], which no page is called"):
        matched(["05-*", "04", "03"], names, "x")


@pytest.mark.parametrize("run", ["coco", "openimages", "paper"])
def test_the_whole_programme_is_planned(run, data):
    """Every parameter is declared and checked by `load_pages`; here what the pages are about."""
    takes = {name for page in load_pages(run) for name in page.takes}
    pages = plan(run, {name: data[name] for name in takes})
    trained = [page for page in pages if page.notebook == "02-finetune"]
    targets = {"coco": ["coco"], "openimages": ["openimages"], "paper": ["coco", "openimages"]}[run]
    sizes = 3
    assert len(trained) == len(targets) * sizes * 6 * 3
    for page in trained:
        p = page.parameters
        assert p["backbone"] in SIX
        assert p["backbone"] in list_backbones()
        assert find_recipe(p["recipe"], p["backbone"]).name == f"{p['target']}-{p['backbone']}"
        assert p["root"] == data["COCO" if p["target"] == "coco" else "OPENIMAGES"]
        assert p["exclude"]
        assert page.writes == (paths.checkpoint(p["run"], p["backbone"], p["target"], p["seed"], "last"),), (
            "what later chapters look for"
        )
    made = {page.name: page.parameters for page in trained}
    for page in (page for page in pages if page.notebook == "03-similarity"):
        p = page.parameters
        before = [made[name] for name in page.after if name in made]
        assert {(one["run"], one["target"]) for one in before} == {(p["run"], p["target"])}
        assert sorted((one["backbone"], one["seed"]) for one in before) == sorted(
            (name, seed) for name in p["finetuned"] for seed in p["seeds"]
        ), "its checkpoints are made before it, and no others"
        assert p["set_name"].partition("-")[0] in KINDS
    assert "$" not in str([page.parameters for page in pages])
    ledger = next(page for page in pages if page.notebook == "09-ledger")
    assert ledger.parameters["runs"] == targets


@pytest.mark.parametrize("run", ["coco", "openimages", "paper"])
def test_what_a_run_lacks_is_one_sentence(run, data):
    with pytest.raises(RunError) as error:
        plan(run)
    takes = sorted({name for page in load_pages(run) for name in page.takes})
    wanted = " and ".join(f"{name}=<path> ({DATA[name]})" for name in takes)
    assert str(error.value) == f"RUN={run} needs {wanted}; not given."
    with pytest.raises(RunError, match=r"needs RELEASED=<path> \(the folder or tar of the released"):
        plan(run, {name: data[name] for name in takes if name != "RELEASED"})
    with pytest.raises(RunError, match="COCO_MINI goes with RUN=released; got RUN="):
        plan(run, data)


def test_data_that_are_no_folder(data, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"COCO must be the folder of COCO 2017.*; .*file is a file"):
        plan("coco", {"COCO": str(tmp_path / "file"), "RELEASED": data["RELEASED"]})


def test_pages_of_an_included_run_keep_its_name():
    pages = {page.name: page for page in load_pages("paper")}
    assert pages["04-bias-transfer-coco"].run == "coco"
    assert (pages["09-ledger"].run, pages["00-published"].run) == ("paper", "paper")


@pytest.mark.parametrize("name", ["coco", "folder-coco", "scenes-", "mini-openimages", "released-lvis"])
def test_a_set_is_named_by_kind_and_schema(name):
    with pytest.raises(ValueError, match=f"<kind>-<schema>, kind scenes, .* or mini; got '{name}'"):
        load_named(name)


def test_pictures_of_a_named_set_that_are_not_there(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path))
    for name, folder in (
        ("curated-coco", "coco"),
        ("released-openimages", "released"),
        ("mini-coco", "coco"),
    ):
        with pytest.raises(FileNotFoundError, match=f"of {name} must be there; .*data/raw/{folder} is not"):
            load_named(name)
    with pytest.raises(FileNotFoundError, match=r"of released-coco must be there; .*/nowhere is not"):
        load_named("released-coco", root=f"{tmp_path}:/nowhere")


def test_a_few_hundred_real_pictures_make_the_classes_they_have(shared_data):
    loaded = load_named("mini-coco", root=shared_data / "coco-mini")
    assert loaded.counts.to_dict() == {
        "man": 20, "woman": 20, "random": 20, "stop sign": 3, "car": 5, "car+man": 3, "car+woman": 1,
        "refrigerator": 7, "refrigerator+man": 3,
    }  # fmt: skip
    left = [note for note in loaded.notes if "Left out" in note]
    assert [note.split(": ")[1] for note in left] == [
        "refrigerator+woman.", "surfboard.", "surfboard+man.", "surfboard+woman.",
    ]  # fmt: skip
    assert loaded.items["id"].is_unique
    again = load_named("mini-coco", root=shared_data / "coco-mini")
    assert again.items.equals(loaded.items)
