"""What notebooks hand to the book."""

import base64
import json
import re
import subprocess

import numpy as np
import pandas as pd
import pytest

from biastransfer import report


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path))
    return tmp_path


@pytest.fixture
def glued(monkeypatch):
    values = {}
    monkeypatch.setattr(report, "_glue", lambda name, value, display: values.update({name: (value, display)}))
    return values


def commit(root):
    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)

    git("init", "-q")
    (root / "file").write_text("1")
    git("add", "file")
    git("commit", "-qm", "first")


def test_numbers_are_glued_as_plain_python(glued):
    report.glue(d=np.float32(0.5), n=np.int64(7), p=1.23456789e-4, pair="car, mammal")
    assert glued == {
        "d": (0.5, False),
        "n": (7, False),
        "p": (0.000123, False),
        "pair": ("car, mammal", False),
    }
    assert [type(value) for value, _ in glued.values()] == [float, int, float, str]


def test_an_undefined_number_is_glued_as_nan(glued):
    report.glue(r=np.nan)
    assert glued["r"][0] != glued["r"][0]


def test_a_figure_is_glued_and_shown(glued):
    report.glue_figure("main_figure", "a figure")
    assert glued == {"main_figure": ("a figure", True)}


def test_table_rounds_marks_missing_values_and_scrolls():
    frame = pd.DataFrame(
        {"d": [0.12345, np.nan], "p": [0.00012345, 1.0], "n": [150, 9], "reason": ["", "one picture"]}
    )
    shown = report.table(frame, "Effect sizes", formats={"p": ".2g"}).data
    cells = re.findall("<td>(.*)</td>", shown)
    assert cells == ["0.123", "0.00012", "150", "", "–", "1", "9", "one picture"]
    assert "overflow-x:auto" in shown
    assert 'tabindex="0"' in shown
    assert shown.startswith('<p class="table-caption">Effect sizes</p>')


def test_no_zero_is_negative_and_a_default_format_can_be_given():
    shown = report.table(pd.DataFrame({"d": [-0.0001, -0.126]}), "c", formats={"": ".1f"}).data
    assert re.findall("<td>(.*)</td>", shown) == ["0.0", "-0.1"]


def test_columns_are_headed_by_names_and_formatted_by_their_own():
    columns = pd.MultiIndex.from_tuples([("", "p"), ("after", "p_holm")])
    shown = report.table(
        pd.DataFrame([[0.001234, 0.5]], columns=columns),
        "c",
        names={"p_holm": "p, Holm"},
        formats={"p": ".1e"},
    )
    assert re.findall("<th[^>]*>(.*)</th>", shown.data) == ["after", "p", "p, Holm"]
    assert re.findall("<td>(.*)</td>", shown.data) == ["", "1.2e-03", "0.500"], "an empty head is no head"


def test_table_cannot_be_broken_by_names():
    shown = report.table(pd.DataFrame({"class": ["<script>x</script>"]}), 'a "quoted" <b>').data
    assert "<script>" not in shown
    assert "<b>" not in shown
    assert 'aria-label="a &quot;quoted&quot; &lt;b&gt;"' in shown


def test_table_link_holds_what_is_shown():
    columns = pd.MultiIndex.from_tuples([("", "item"), ("pretrained", "d")])
    frame = pd.DataFrame([["car", -0.126]], columns=columns)
    shown = report.table(frame, "c", csv="d.csv").data
    data = shown.split("base64,")[1].split('"')[0]
    assert base64.b64decode(data).decode() == "item,pretrained d\ncar,-0.126\n"
    assert 'download="d.csv"' in shown


def test_run_line_names_what_made_the_numbers(root):
    commit(root)
    line = report.run_line("smoke", "03-similarity", seed=4)
    head = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, text=True
    ).stdout.strip()
    assert line.startswith(f"run smoke · commit {head} · seed 4 · ")
    assert "\nbiastransfer 0" in line
    assert f"numpy {np.__version__}" in line
    facts = json.loads((root / "data/results/smoke/provenance-03-similarity.json").read_text())
    assert facts["commit"] == head
    assert facts["seed"] == 4


def test_run_line_tells_of_uncommitted_changes_and_of_no_git(root):
    assert "commit no git" in report.run_line("smoke", "page", seed=0)
    commit(root)
    (root / "data" / "results" / "smoke" / "numbers.csv").write_text("1")
    assert "-dirty" not in report.run_line("smoke", "page", seed=0), "results are not what makes numbers"
    (root / "file").write_text("2")
    assert "-dirty ·" in report.run_line("smoke", "page", seed=0)


def test_torch_is_named_only_when_it_is_loaded(root, monkeypatch):
    monkeypatch.delitem(report.sys.modules, "torch", raising=False)
    line = report.run_line("smoke", "page", seed=0)
    assert "torch" not in line
    assert "no network was run" in line
    monkeypatch.setitem(report.sys.modules, "torch", type("Torch", (), {"__version__": "9.9"}))
    assert "torch 9.9" in report.run_line("smoke", "page", seed=0)


def test_committed_pages_tell_of_the_run_that_made_them(root):
    commit(root)
    report.run_line("released", "05-association", seed=3, device="gpu (found)")
    before = (root / "data/results/released/provenance-05-association.json").read_bytes()
    line = report.run_line("released", "05-association", seed=0, committed=True)
    assert line.startswith("committed · run released · commit ")
    assert "seed 3 · " in line
    assert "gpu (found) · shown at commit " in line
    assert (root / "data/results/released/provenance-05-association.json").read_bytes() == before
    assert report.origin("released", "05-association", True).startswith("committed, run released, commit ")


def test_committed_pages_without_facts_say_so(root):
    assert "kept no facts" in report.run_line("released", "other", seed=0, committed=True)
    assert report.origin("released", "other", True) == "committed, run released, commit not recorded"
    assert report.origin("smoke", "other", False) == "computed, run smoke"


def test_networks_stand_side_by_side_in_the_order_of_the_frame():
    frame = pd.DataFrame(
        [
            ("lite1", "pretrained", 0, "car", 0.5, 0.4, 0.6),
            ("lite0", "pretrained", 0, "car", 0.7, np.nan, np.nan),
            ("lite0", "finetuned", 1, "car", 0.9, 0.8, 1.0),
            ("lite0", "finetuned", 1, "bus", 0.1, 0.0, 0.2),
            ("lite1", "finetuned", 1, "bus", 0.2, 0.1, 0.3),
        ],
        columns=["backbone", "stage", "seed", "item", "value", "low", "high"],
    )
    wide = report.side_by_side(frame, ["item"], ["backbone", "network"], ["value"])
    assert list(wide.columns) == [
        ("", "item"), ("lite1", "pretrained"), ("lite1", "finetuned, seed 1"),
        ("lite0", "pretrained"), ("lite0", "finetuned, seed 1"),
    ]  # fmt: skip
    assert wide.iloc[0].drop(("lite1", "finetuned, seed 1")).tolist() == ["car", 0.5, 0.7, 0.9]
    assert wide.iloc[1].tolist()[::2] == ["bus", 0.2, 0.1]
    rows = report.side_by_side(frame, ["backbone", "item"], [], ["value", "95 % interval"])
    assert list(rows) == ["backbone", "item", "value", "95 % interval"]
    assert len(rows) == len(frame)
    spans = report.side_by_side(frame, ["backbone", "item"], ["network"], ["value", "95 % interval"])
    assert spans["pretrained", "95 % interval"].tolist()[:2] == ["0.40 to 0.60", "–"]
    near = pd.DataFrame({"item": ["a", "b", "c"], "low": [-0.0002, 0.0004, 0.0], "high": 0.02})
    near = report.side_by_side(near.assign(kind="x"), ["item"], ["kind"], ["95 % interval"])
    assert near["x"].tolist() == ["-0.0002 to 0.0200", "0.0004 to 0.0200", "0.0000 to 0.0200"]


def test_an_empty_table_says_so():
    shown = report.table(pd.DataFrame({"class": [], "n": []}), "Pictures left out.").data
    assert "Pictures left out. <em>None.</em>" in shown
    assert "<table" not in shown


def test_a_p_value_is_never_shown_as_nothing():
    shown = report.table(
        pd.DataFrame({"p": [0.0, 3e-16, 0.0234, 1.0, None]}), "of t at r = 1", formats={"p": "p"}
    ).data
    cells = re.findall(r"<td>(.*?)</td>", shown)
    assert cells == ["&lt; 1e-15", "&lt; 1e-15", "0.023", "1", "–"]
