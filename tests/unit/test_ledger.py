"""The ledger: every printed number once, compared only with the same thing, built from what lies there."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

from biastransfer import ledger, paths, published
from biastransfer.graph.runs import Page

SET = "released-openimages"


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Return a function that writes one CSV of a run in an empty compendium with the published tables."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "published").symlink_to(paths.published())
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path))

    def write(run, name, rows):
        paths.write_csv(pd.DataFrame(rows), paths.results(run, name))

    return write


def association(**changed):
    row = {"backbone": "resnet50", "stage": "pretrained", "target": "", "seed": 0, "set": SET, "X": "man"}
    row |= {"Y": "woman", "A": "car", "B": "fashion", "effect_size": 0.12, "low": -0.1, "high": 0.34}
    return row | {"p_greater": 0.15} | changed


def transfer(**changed):
    row = {"backbone": "resnet50", "target": "openimages", "seed": 0, "set": SET, "kind": "intra", "r": 0.69}
    return row | {"p": 0.058, "low": 0.1, "high": 0.9} | changed


def rows(table, **wanted):
    """Return the ledger's rows of a printed table that hold what is wanted."""
    frame = ledger.build(["mine"]).query("part == 'printed' and table == @table")
    for column, value in wanted.items():
        frame = frame[frame[column] == value]
    return frame


def test_every_printed_number_is_there_once():
    numbers = ledger.numbers()
    sizes = {"2": 24 * 2, "3": 12 * 2, "4": 12 * 2, "5": 13, "6": 16, "7": 6 * 5, "8": 6 * 4, "9": 72 * 2}
    assert numbers["table"].value_counts().to_dict() == {f"Table {n}": s for n, s in sizes.items()} | {
        "text": 24
    }
    assert not numbers.duplicated(["table", "cell", "quantity"]).any()
    assert (numbers["lowest"] <= numbers["theirs"]).all()
    assert (numbers["theirs"] <= numbers["highest"]).all()
    assert numbers.query("table == 'Table 6'")["theirs"].sum() == 1925


def test_without_results_nothing_is_compared(results):
    printed = ledger.build(["mine"]).query("part == 'printed'")
    assert len(printed) == 347
    assert set(printed["verdict"]) == {"not run", "not comparable"}
    assert printed["ours"].isna().all()
    assert (printed["reason"] != "").all()
    assert printed.query("verdict == 'not comparable'")["cell"].tolist() == [
        "§1 (Eq. 1 ff.): CLIP-ViT-B/32, pictures that CLIP was trained on, millions"
    ]


def test_the_same_network_pictures_and_stage_are_compared_by_the_tolerance(results):
    results("mine", f"association-{SET}.csv", [association()])
    [d] = rows("Table 9", cell="ResNet50, car/fashion, pretrained", quantity="d").to_dict("records")
    assert (d["theirs"], d["ours"], d["run"], d["verdict"]) == (0.107, 0.12, "mine", "agrees")
    assert d["reason"] == "theirs lies inside our 95 % interval"
    near = ledger.build(["mine"], tolerances=ledger.Tolerances(d=0.01))
    assert near.query("part == 'printed' and verdict == 'differs'")["quantity"].unique().tolist() == [
        "d",
        "p of d",
    ]
    assert rows("Table 2", verdict="agrees")["quantity"].tolist() == ["d", "p of d"]


def test_p_has_the_room_that_the_tolerance_of_d_makes():
    row = ledger.numbers().query("table == 'Table 9' and cell == 'ResNet50, car/mammal, pretrained'").iloc[1]
    z = scipy_stats.norm.isf(0.272)
    expected = scipy_stats.norm.sf([z + 0.05 * np.sqrt(75), z - 0.05 * np.sqrt(75)])
    assert row[["lowest", "highest"]].tolist() == pytest.approx(expected)
    strongest = ledger.numbers().query("quantity == 'p of d' and printed == '10^-5'")
    assert (strongest["lowest"] == 0).all()
    assert (strongest["highest"] >= 1e-4).all()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"backbone": "squeezenet1_1"}, "network: ResNet50 was not run, but squeezenet1_1"),
        ({"backbone": "resnet50_v2"}, "network: ResNet50 was not run, but resnet50_v2"),
        ({"set": "scenes-openimages"}, "pictures: scenes-openimages, not released-openimages"),
        ({"stage": "finetuned", "target": "scenes"}, "stage: finetuned on scenes, not pretrained"),
    ],
)
def test_what_is_not_the_same_is_not_compared_and_named(results, changed, reason):
    results("mine", "association-x.csv", [association(**changed)])
    [d] = rows("Table 9", cell="ResNet50, car/fashion, pretrained", quantity="d").to_dict("records")
    assert (d["verdict"], d["run"]) == ("not comparable", "")
    assert np.isnan(d["ours"])
    assert d["reason"] == reason


def test_parts_that_match_in_different_rows_are_no_match(results):
    rows_ = [association(set="scenes-openimages"), association(backbone="squeezenet1_1")]
    results("mine", "association-x.csv", rows_)
    [d] = rows("Table 9", cell="ResNet50, car/fashion, pretrained", quantity="d").to_dict("records")
    assert (d["verdict"], d["reason"]) == (
        "not comparable",
        "no run has this network, pictures and stage together",
    )


def test_the_other_schema_only_shares_names(results):
    results("mine", "transfer-scenes-coco.csv", [transfer(set="scenes-coco")])
    assert set(rows("Table 4", quantity="r")["verdict"]) == {"not run"}
    assert set(rows("Table 3", quantity="r").query("cell.str.endswith('intra')")["verdict"]) == {
        "not comparable"
    }


def test_a_score_of_seed_means_goes_before_single_seeds(results):
    scores = [transfer(seed=0, r=0.1), transfer(seed=1, r=0.2), transfer(seed="mean")]
    results("mine", f"transfer-{SET}.csv", scores)
    [row] = rows("Table 4", cell="ResNet50, intra", quantity="r").to_dict("records")
    assert (row["ours"], row["verdict"]) == (0.69, "agrees")
    assert row["reason"].startswith("seed mean of 3")
    [p] = rows("Table 4", cell="ResNet50, intra", quantity="p of r").to_dict("records")
    assert (p["theirs"], p["ours"], p["verdict"]) == (0.071, 0.058, "agrees")


def test_every_run_that_measured_a_number_has_its_row(results):
    for run, d in (("mine", 0.1), ("yours", 0.5)):
        results(run, f"association-{SET}.csv", [association(effect_size=d)])
    frame = ledger.build(["mine", "yours"]).query("table == 'Table 9' and quantity == 'd' and run != ''")
    assert list(zip(frame["run"], frame["verdict"])) == [
        ("mine", "agrees"),
        ("yours", "differs"),
    ]


def test_counts_are_equal_or_explained(results):
    table = published.load("table6").assign(set=SET)
    table.loc[table["class"] == "fashion", "n"] = 149
    results("mine", f"sets-{SET}.csv", table)
    lost = {"class": "fashion", "decision": "empty file", "reason": "0 bytes", "n": 1, "ids": "a"}
    results("mine", f"set_report-{SET}.csv", [lost])
    assert rows("Table 6")["verdict"].value_counts().to_dict() == {"agrees": 15, "differs": 1}
    [fashion] = rows("Table 6", cell="fashion").to_dict("records")
    assert (fashion["ours"], fashion["reason"]) == (149, "150 listed, 1 of them unusable: empty file")
    text = rows("text", run="mine").set_index("quantity")
    assert text["ours"].to_dict() == {"pictures": 1924, "classes": 16}


def test_finetuning_is_the_last_epochs_validation_over_seeds(results):
    base = {"backbone": "resnet18", "target": "coco", "recipe": "paper", "class": "", "n": 100}
    for seed, value in ((0, 0.63), (1, 0.65)):
        kept = [
            base
            | {"seed": seed, "epoch": epoch, "split": "val", "metric": "mAP", "value": value - 1 + epoch / 25}
            for epoch in (0, 25)
        ]
        results("mine", f"finetuning-resnet18-coco-seed{seed}.csv", kept)
    found = rows("Table 7", cell="ResNet18").set_index("quantity")
    assert found.loc["mAP", "ours"] == pytest.approx(0.64)
    assert found.loc["spread of mAP", "ours"] == pytest.approx(0.01 * np.sqrt(2))
    assert found.loc[["mAP", "epochs"], "verdict"].tolist() == ["agrees", "agrees"]
    assert found.loc["learning rate", "verdict"] == "not comparable"
    assert set(rows("Table 8")["verdict"]) <= {"not run", "not comparable"}


def test_an_undefined_value_is_no_verdict(results):
    results("mine", f"association-{SET}.csv", [association(effect_size=np.nan)])
    [d] = rows("Table 9", cell="ResNet50, car/fashion, pretrained", quantity="d").to_dict("records")
    assert (d["verdict"], d["reason"]) == ("not comparable", "undefined in the run")


def test_results_of_another_layout_are_named(results):
    results("mine", f"transfer-{SET}.csv", [{"backbone": "resnet50"}])
    with pytest.raises(
        ValueError, match=r"transfer-released-openimages.csv must have a column 'set'; it has back"
    ):
        ledger.measured(["mine"])


def test_reanalysis_repeats_what_the_published_tables_give():
    again = ledger.reanalysis()
    by = again.groupby(["table", "quantity"])["verdict"].value_counts()
    assert by["Table 4", "p of r", "differs"] == 1
    assert by["Table 9", "p of d", "differs"] == (~published.association_tests()["fits"]).sum()
    counts = published.family_counts().query("sides == 'one-sided'").set_index("correction")["significant"]
    assert by["Table 9", "p of d, Holm over 72", "differs"] == counts["none"] - counts["Holm"]
    assert by["Table 2", "d, repeated", "agrees"] == 24
    differing = again.query("table == 'text' and verdict == 'differs'")
    assert differing["printed"].tolist() == ["0.791"], "only Figure 3 prints what its table does not"


def test_claims_say_what_runs_lack(results):
    results("mine", "association-x.csv", [association(backbone="squeezenet1_1")])
    said = ledger.claims(ledger.measured(["mine"])).set_index("quantity")
    assert said.loc["share of scores lower", ["verdict", "reason"]].tolist() == [
        "not run",
        "no run given finetunes",
    ]
    gap = said.loc["mean |d|, MoCo minus ResNet50"]
    assert gap["verdict"] == "not comparable"
    assert "needs MoCo ResNet50, SimCLR ResNet50, ResNet50 on the paper's pictures" in gap["reason"]
    assert gap["theirs"] > 0, "the paper's own MoCo has the larger mean |d|"


def test_claims_are_answered_by_runs_that_have_the_networks(results):
    both = [association(backbone="moco_resnet50", effect_size=-0.4), association(effect_size=0.1)]
    results("mine", f"association-{SET}.csv", both)
    gap = ledger.claims(ledger.measured(["mine"])).set_index("quantity").loc["mean |d|, MoCo minus ResNet50"]
    assert (gap["ours"], gap["verdict"]) == (pytest.approx(0.3), "agrees")
    results("mine", f"transfer-{SET}.csv", [transfer(r=0.9)])
    results("mine", "transfer-released-coco.csv", [transfer(r=0.5, set="released-coco", target="coco")])
    size = ledger.claims(ledger.measured(["mine"])).set_index("quantity").loc["share of scores lower"]
    assert (size["ours"], size["verdict"]) == (0.0, "differs")
    assert "differ in classes and pictures as well as size" in size["reason"]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("resnet18", "ResNet18"),
        ("resnet50", "ResNet50"),
        ("resnetv2_50x1_bit.goog_in21k", "BiT-M-R50x1"),
        ("clip_vit_b32", "CLIP-ViT-B/32"),
        ("ViT-B-32-quickgelu", "CLIP-ViT-B/32"),
        ("simclr_resnet50", "SimCLR ResNet50"),
        ("moco_v1_resnet50", "MoCo ResNet50"),
    ],
)
def test_a_network_is_one_of_the_papers_and_no_other(ours, theirs):
    assert [model for model in published.load("table1")["model"] if ledger.same_model(ours, model)] == [
        theirs
    ]


@pytest.mark.parametrize(
    "ours",
    [
        "resnetv2_50x1_bit.goog_in21k_ft_in1k",
        "moco_v2_resnet50",
        "moco_resnet50_v2_800",
        "simclr_resnet50_vissl",
        "random",
        "efficientnet_lite0",
    ],
)
def test_other_weights_are_another_network(ours):
    assert not any(ledger.same_model(ours, model) for model in published.load("table1")["model"])


def test_every_table_and_figure_has_a_page_or_says_that_none_has_it():
    page = Page("mine", "05-a", "05-association", {"set_name": SET, "backbones": ["resnet50"]},
                writes=(paths.results("mine", f"association-{SET}.csv"),))  # fmt: skip
    table = ledger.regenerated([page]).set_index("item")
    wanted = [f"Table {n}" for n in range(1, 10)] + [f"Figure {n}" for n in (2, 3, *range(6, 18))]
    assert table.index.tolist() == wanted
    assert table.loc["Table 9", ["run", "page", "command"]].tolist() == ["mine", "05-a", "make book RUN=mine"]
    assert table.loc["Table 9", "holds"] == "ResNet50; released-openimages"
    assert table.loc["Figure 17", "run"] == "none"


def test_counts_and_reasons_lose_no_number():
    frame = ledger.build([])
    assert ledger.counts(frame)["numbers"].sum() == len(frame)
    apart = frame.query("part == 'printed' and verdict in ['not comparable', 'not run']")
    assert ledger.reasons(frame)["numbers"].sum() == len(apart)


def test_a_tolerance_of_nothing_is_refused():
    with pytest.raises(ValueError, match="tolerance d must be > 0; got 0"):
        ledger.Tolerances(d=0)


def test_a_command_names_all_data_that_the_run_takes_and_a_target_its_own_table():
    trained = Page("big", "02-a", "02-finetune", {"target": "coco"}, takes=frozenset({"COCO"}))
    tested = Page("big", "05-a", "05-association", {"set_name": SET}, takes=frozenset({"RELEASED"}),
                  writes=(paths.results("big", f"association-{SET}.csv"),))  # fmt: skip
    table = ledger.regenerated([trained, tested, trained]).set_index("item")
    assert table.loc["Table 9", "command"] == "make book RUN=big COCO=<path> RELEASED=<path>"
    assert table.loc["Table 7", "page"] == "02-a", "given twice, counted once"
    assert table.loc["Table 8", "run"] == "none"
