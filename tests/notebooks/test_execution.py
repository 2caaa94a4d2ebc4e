"""Notebooks under the bare `papermill` command, and what the smoke run left; nbval compares again."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from biastransfer import paths
from biastransfer.graph import runs
from biastransfer.graph.dependencies import code_of
from biastransfer.parameters import declared

NOTEBOOKS = sorted(file.stem for file in paths.notebook("x").parent.glob("*.ipynb"))


def papermill(notebook, target, *parameters, **environment):
    command = [sys.executable, "-m", "papermill", str(paths.notebook(notebook)), str(target), *parameters]
    return subprocess.run(
        [*command, "--no-progress-bar"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )


@pytest.mark.parametrize(
    ("notebook", "parameters", "message"),
    [
        ("03-similarity", ("-p", "sead", "1"), "no parameter 'sead'; did you mean 'seed'?"),
        ("02-finetune", ("-p", "seed", "one"), "seed must be of type int; got 'one' (str)."),
        (
            "05-association",
            ("-p", "alternative", "bigger"),
            "alternative must be one of greater, less, two-sided",
        ),
        ("01-analysis-sets", ("-p", "scale", "0"), "scale must be > 0; got 0."),
        ("04-bias-transfer", ("-y", "scales: [0.1, -1]"), "each element of scales must be > 0; got -1."),
    ],
)
def test_a_wrong_parameter_stops_at_once_and_lists_the_valid_ones(notebook, parameters, message, tmp_path):
    done = papermill(notebook, tmp_path / "out.ipynb", *parameters)
    assert done.returncode != 0
    assert message in done.stderr
    cells = [declared(cell) for cell in code_of(paths.notebook(notebook))]
    for parameter in next(filter(None, cells)):
        assert f"  {parameter.name}: {parameter.type} = " in done.stderr


@pytest.mark.parametrize(
    ("notebook", "table", "rows"),
    [
        ("03-similarity", "similarity", 22),
        ("04-bias-transfer", "transfer", 2),
        ("05-association", "association", 2),
    ],
)
def test_own_vectors_run_without_pictures_or_networks(notebook, table, rows, tmp_path):
    classes = [
        "man",
        "woman",
        "random",
        *(f"{o}{p}" for o in ("car", "sports") for p in ("", "+man", "+woman")),
    ]
    rng, repeated = np.random.default_rng(0), np.repeat(classes, 5)
    before = rng.normal(size=(len(repeated), 4)) + np.repeat(rng.normal(size=(len(classes), 4)), 5, axis=0)
    names = np.array([f"picture {number}" for number in range(len(repeated))])
    np.savez(
        tmp_path / "mine.npz",
        vectors=before,
        vectors_after=before + 0.5 * rng.normal(size=before.shape),
        classes=repeated,
        names=names,
    )
    parameters = ("-p", "embeddings", str(tmp_path / "mine.npz"))
    done = papermill(notebook, tmp_path / "out.ipynb", *parameters, BIASTRANSFER_ROOT=str(tmp_path))
    assert done.returncode == 0, done.stderr[-2000:]
    found = pd.read_csv(tmp_path / "data" / "results" / "smoke" / f"{table}-mine.csv")
    assert set(found["backbone"]) == {"mine"}
    assert len(found) == rows


def test_every_notebook_is_in_the_smoke_run():
    assert sorted({page.notebook for page in runs.load_pages("smoke")}) == NOTEBOOKS


@pytest.mark.parametrize("page", runs.load_pages("smoke"), ids=lambda page: page.name)
def test_the_smoke_run_executed_every_cell(page):
    if not page.executed.exists():
        pytest.skip("the smoke run is not executed here; `make test` does it")
    cells = [cell for cell in json.loads(page.executed.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [cell["source"] for cell in cells if cell["execution_count"] is None] == []
    kinds = {output["output_type"] for cell in cells for output in cell["outputs"]}
    assert "error" not in kinds
    streams = [
        o for cell in cells for o in cell["outputs"] if o["output_type"] == "stream" and o["name"] == "stderr"
    ]
    assert streams == [], "a page of the book shows no warnings"
    assert "display_data" in kinds
    assert [file for file in page.writes if not file.exists()] == []


@pytest.mark.parametrize("page", runs.load_pages("smoke"), ids=lambda page: page.name)
def test_run_all_takes_thirty_seconds(page):
    """The promise for a laptop; here three times that, since tests share the machine with others."""
    if not page.executed.exists():
        pytest.skip("the smoke run is not executed here; `make test` does it")
    assert json.loads(page.executed.read_text())["metadata"]["papermill"]["duration"] < 90
