"""What the book's extensions read: executed notebooks, CSVs of a run, the packages they take scripts from."""

import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
from docutils import nodes
from docutils.utils import new_document

from biastransfer import paths, report

sys.path.insert(0, str(Path(__file__).parents[2] / "book" / "_extensions"))
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import benchmark_tables
import executed
import explorer
import from_notebooks
import html_tables
import notebook_status
import offline_tables
import page_data
import record
import results_table

FACTS = {
    "run": "demo",
    "commit": "0f1e2d3-dirty",
    "seed": 0,
    "seconds": 12.5,
    "device": "cuda (NVIDIA, 80 GB)",
}
FACTS["versions"] = {"biastransfer": "0.1.0", "torch": "2.14.1"}


def code(source, *outputs, tags=()):
    return {"cell_type": "code", "source": source, "outputs": list(outputs), "metadata": {"tags": list(tags)}}


def notebook(*cells, **given):
    first = "# What is it?\n\n*Reads* much. *Writes* `a-<set>.csv`,\n`b-<k>-<set>.csv` and `c*.csv` "
    first += "below `data/results/<run>/`."
    first = {"cell_type": "markdown", "source": first, "metadata": {}}
    own = code('run: str = "smoke"\nset_name: str = "x.y"\nseeds: list[int] = [0, 1]', tags=["parameters"])
    papermill = {"papermill": {"parameters": given, "duration": 7.3}}
    return {"cells": [first, own, *cells], "metadata": papermill}


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A function that writes empty CSVs of run smoke, by name."""
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path))

    def write(*names):
        for name in names:
            with paths.replacing(paths.results("smoke", name)) as partial:
                partial.write_text("a\n")

    return write


def printed(line):
    return {"output_type": "stream", "text": ["something else\n", *line.splitlines(keepends=True)]}


def test_a_run_line_is_read_as_report_writes_it():
    page = executed.parse(notebook(code("", printed(report._sentence(FACTS)))), Path("x.ipynb"))
    assert page.line == {
        "committed": "",
        **{name: str(FACTS[name]) for name in ("run", "commit", "seed", "seconds", "device")},
        "versions": "biastransfer 0.1.0, torch 2.14.1",
    }


def test_the_committed_line_of_report_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path))
    with paths.replacing(paths.results("demo", "provenance-p.json")) as partial:
        partial.write_text(json.dumps(FACTS))
    line = report.run_line("demo", "p", seed=3, committed=True)
    read = executed.parse(notebook(code("", printed(line))), Path("x.ipynb")).line
    assert (read["committed"], read["commit"], read["device"]) == (
        "committed · ",
        FACTS["commit"],
        FACTS["device"],
    )


def test_the_files_of_a_page_are_those_that_it_says_it_writes(results):
    results("a-x.y.csv", "a-xzy.csv", "b-1-x.y.csv", "b-2-x.y.csv", "c.csv", "c-more.csv", "d.csv")
    page = executed.parse(notebook(), Path("x.ipynb"))
    found = [file.name for file in executed.results_of(page)]
    assert found == ["a-x.y.csv", "b-1-x.y.csv", "c-more.csv", "c.csv"]


def test_a_file_named_by_a_parameter_is_that_of_its_value():
    """The page of one seed does not show the file of another, though 0 is the value of some parameter."""
    [pattern] = executed._patterns("`f-<seed>.csv`", {"seed": 1, "limit": 0})
    assert [re.fullmatch(pattern, f"f-{seed}.csv") is not None for seed in (0, 1)] == [False, True]


def test_parameters_given_go_before_the_notebooks_own():
    page = executed.parse(notebook(set_name="other", seeds=[5, 6]), Path("x.ipynb"))
    assert page.parameters == {"run": "smoke", "set_name": "other", "seeds": [5, 6]}
    assert page.given == ("set_name", "seeds")
    facts = notebook_status.facts(page)
    assert facts[:4] == ["smoke", "7", "computed", "–"]
    assert facts[-1] == "set_name: other; seeds: 5, 6"


class App:
    """As much of Sphinx as `link_files` asks for."""

    class env:
        @staticmethod
        def doc2path(name):
            return f"{name}.ipynb"


def test_a_table_links_to_the_file_it_names_and_else_keeps_what_it_shows(results):
    results("a-x.y.csv")
    frame = pd.DataFrame({"v": [1.0]})
    tables = [report.table(frame, "c", csv=name).data for name in ("a-x.y.csv", "shown.csv")]
    outputs = [{"output_type": "display_data", "data": {"text/html": table}} for table in tables]
    source = [json.dumps(notebook(code("", *outputs), code("run line")))]
    page_data.link_files(App, "results/x", source)
    cells = json.loads(source[0])["cells"]
    named, shown = (output["data"]["text/html"] for output in cells[2]["outputs"])
    assert 'href="page-data:smoke/a-x.y.csv">a-x.y.csv</a>' in named
    assert "base64" not in named
    assert shown == tables[1]
    assert "a-x.y.csv</a>" in cells[-2]["source"], "the foot lists the files, above the run line"
    assert cells[-1]["source"] == "run line"


def test_a_glued_number_has_a_minus_and_a_name_its_hyphen():
    glued, written = (
        nodes.inline("", "-0.31 to .2 (-26 %), scenes-3", classes=[c]) for c in ("pasted-text", "x")
    )
    page = new_document("page")
    page += nodes.paragraph("", "", glued, written)
    from_notebooks.minus_signs(None, page, "page")
    assert [one.astext() for one in page[0]] == [
        "−0.31 to .2 (−26 %), scenes-3",
        "-0.31 to .2 (-26 %), scenes-3",
    ]


def test_links_are_placed_as_seen_from_their_page():
    context = {"pathto": lambda name, resource=0: f"../{name}" + ("" if resource else ".html")}
    context["body"] = '<a href="page-data:smoke/a.csv">a</a> <a href="page:results/x">x</a>'
    page_data.place_links(None, "results/x", "", context, None)
    html_tables.place_links(None, "results/x", "", context, None)
    assert context["body"] == '<a href="../_data/smoke/a.csv">a</a> <a href="../results/x.html">x</a>'
    assert page_data.PLACED.findall(context["body"]) == [("smoke", "a.csv")]


def test_cells_cannot_break_a_table():
    made = html_tables.html_table(["<h>"], [[("<b>", 'a"b')]], 'of "x"')
    assert '<a href="page:a&quot;b">&lt;b&gt;</a>' in made
    assert 'aria-label="of &quot;x&quot;"' in made
    assert '<th scope="col">&lt;h&gt;</th>' in made


def test_explorer_keeps_networks_apart_and_untrained_ones_as_a_range(results):
    results("nothing.csv")
    keys = {"stage": "pretrained", "target": None, "set": "s", "kind": "intra", "item": "car", "n": 9}
    rows = [
        {**keys, "backbone": "random", "seed": k, "value": v, "low": 0, "high": 1}
        for k, v in enumerate((0.3, 0.1, 0.7))
    ]
    rows.append({**keys, "backbone": "net", "seed": 0, "value": 1 / 3, "low": float("nan"), "high": 1.0})
    paths.write_csv(pd.DataFrame(rows), paths.results("smoke", "similarity-s.csv"))
    [found] = explorer.gathered(["smoke"])
    assert found["untrained"] == {"car": [0.1, 0.3, 0.7, 3]}
    [row] = found["similarity"]
    assert (row["backbone"], row["value"], row["low"], row["high"], row["target"]) == (
        "net",
        0.3333,
        None,
        1,
        None,
    )
    assert found["association"] == []
    assert found["files"] == ["similarity-s.csv"]


def test_the_explorer_says_of_finetuned_networks_what_became_of_an_association(results):
    results("nothing.csv")
    pair = {"backbone": "net", "A": "car", "B": "mammal"}
    stages = [("pretrained", "", 0), ("finetuned", "scenes", 0), ("finetuned", "scenes", 1)]
    tests = [pair | dict(zip(("stage", "target", "seed"), stage)) | {"effect_size": 0.5} for stage in stages]
    changes = [pair | {"target": "scenes", "seed": 1, "verdict": "added"}]
    tables = {"similarity": [pair | {"item": "car", "value": 1}], "association": tests}
    for table, rows in (tables | {"association_changes": changes}).items():
        paths.write_csv(pd.DataFrame(rows), paths.results("smoke", f"{table}-s.csv"))
    [found] = explorer.gathered(["smoke"])
    assert [row["verdict"] for row in found["association"]] == [None, None, "added"]
    assert found["files"] == ["similarity-s.csv", "association-s.csv", "association_changes-s.csv"]


def test_datatables_is_made_a_plain_script():
    module = "var a=1,b=2;export{a as Other,b as default,c as jQuery};"
    made = offline_tables.plain_script(module)
    assert "window.DataTable = b;" in made
    assert "export" not in made
    bundle = Path(find_spec("itables").origin).parent / "html" / "dt_bundle.js"
    assert "window.DataTable = " in offline_tables.plain_script(bundle.read_text(encoding="utf-8"))


def test_another_bundle_is_refused_by_name():
    with pytest.raises(ValueError, match=r"must end in one export list with a default; got 0.*make setup"):
        offline_tables.plain_script("var a=1;")


def test_a_kept_ratio_is_shown_with_its_machine(results, monkeypatch, capsys):
    monkeypatch.setattr(record, "ROWS", [])
    monkeypatch.setattr(record, "machine", lambda: "A <processor>, 2 processors")
    record.ratio("ours / theirs", 0.51239, "≤ 1", "note")
    record.keep("more", 12349.678)
    record.keep("more", 12349.678)
    record.keep("slower / allowed", 1.2, "≤ 1")
    record.keep("faster / asked for", 3.1, "≥ 3")
    file = record.write("/somewhere/bench_mark.py", clock="wall")
    assert capsys.readouterr().out == "ours / theirs: 0.512 (must be ≤ 1; note)\n"
    made = benchmark_tables.section(file)
    title, body = made.children
    shown = body.astext()
    assert (title.astext(), made["ids"]) == ("Bench mark", ["benchmark-bench-mark"])  # in "On this page"
    assert "<td>ours / theirs (note)</td><td>0.512</td><td>≤ 1</td>" in shown
    assert shown.count("<td>more</td><td>12,350</td><td>–</td>") == 1
    assert "<td>slower / allowed</td><td>1.2</td><td>≤ 1, missed</td>" in shown
    assert "<td>faster / asked for</td><td>3.1</td><td>≥ 3</td>" in shown
    assert "Bench mark: A &lt;processor&gt;, 2 processors, " in shown
    assert "clock wall" in shown
    assert 'href="page-data:benchmarks/bench_mark.csv"' in shown


def test_whole_numbers_of_a_results_table_have_their_thousands_apart():
    assert [results_table.grouped(one) for one in ("999", "1000", "10000", "0.1234", "2000 × 1")] == [
        "999", "1,000", "10,000", "0.1234", "2000 × 1",
    ]  # fmt: skip
