"""Runs on a cluster: what is asked for, the scripts around sbatch, a run through a scheduler of shell."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from house import CELL, write_notebook, write_run

from biastransfer import paths
from biastransfer.graph import build
from biastransfer.graph.entries import RESOURCES, TORCH_RESOURCES, RunError
from biastransfer.graph.runs import load_pages

ROOT = paths.root()

# A scheduler of one machine: a job runs at once in the background; its books hold what became of it.
SBATCH = """\
for script; do :; done
echo "$@" >>"$BOOKS/asked"
number=$(wc -l <"$BOOKS/asked")
( bash "$script" >"$BOOKS/$number.log" 2>&1; [ $? = 0 ] && echo COMPLETED || echo FAILED ) >"$BOOKS/$number" &
echo "$number;here"
"""
SACCT = 'while [ "$1" != --jobs ]; do shift; done; cat "$BOOKS/$2" 2>/dev/null'


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """Return the folder of the books of a cluster whose commands stand first on the path."""
    for name, script in {"sbatch": SBATCH, "sacct": SACCT, "squeue": "exit 1", "scancel": "exit 0"}.items():
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/usr/bin/env bash\n{script}\n")
        program.chmod(0o755)
    (tmp_path / "books").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("BOOKS", str(tmp_path / "books"))
    return tmp_path / "books"


def script(name, *arguments, cwd):
    command = ["bash", str(ROOT / "profiles" / "slurm" / name), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(("gpus", "asked"), [("0", ""), ("2", " --gpus 2")])
def test_a_page_is_submitted_with_what_it_asks_for(cluster, tmp_path, gpus, asked):
    (tmp_path / "job.sh").write_text("exit 0")
    assert script("submit.sh", "demo_01-a", gpus, "8000", "60", "2", "job.sh", cwd=tmp_path) == "1"
    assert (cluster / "asked").read_text() == (
        "--parsable --job-name demo_01-a --cpus-per-task 2 --mem 8000M --time 60 "
        f"--output data/derived/executed/slurm/%x-%j.log{asked} job.sh\n"
    )


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("COMPLETED", "success"),
        *[(state, "running") for state in ("PENDING", "RUNNING", "COMPLETING", "REQUEUED", "")],
        *[
            (state, "failed")
            for state in ("FAILED", "TIMEOUT", "OUT_OF_MEMORY", "CANCELLED by 0", "NODE_FAIL")
        ],
    ],
)
def test_every_state_of_a_job_has_its_meaning(cluster, tmp_path, state, said):
    (cluster / "7").write_text(f"{state}\n")
    assert script("status.sh", "7", cwd=tmp_path) == said


def test_a_job_that_is_not_in_the_books_is_looked_for_in_the_queue(cluster, tmp_path):
    (tmp_path / "bin" / "squeue").write_text("#!/bin/sh\necho PENDING\n")
    assert script("status.sh", "7", cwd=tmp_path) == "running"
    (tmp_path / "bin" / "squeue").write_text("#!/bin/sh\necho FAILED\n")
    assert script("status.sh", "7", cwd=tmp_path) == "failed"


PAGE = "pages:\n  - {{page: 01-a, notebook: 01-a, parameters: {{seed: 1}}{}}}\n"


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        ("", RESOURCES),
        (", torch: true", TORCH_RESOURCES),
        (", resources: {runtime: 600}", {**RESOURCES, "runtime": 600}),
        (", torch: true, resources: {gpu: 0, mem_mb: 100}", {**TORCH_RESOURCES, "gpu": 0, "mem_mb": 100}),
    ],
)
def test_what_a_page_asks_for(house, more, asked):
    write_run(house, "mine", PAGE.format(more))
    assert load_pages("mine")[0].resources == asked


@pytest.mark.parametrize(
    "wrong", ["gpus: 1", "gpu: -1", "runtime: 0", "mem_mb: 8.5", "runtime: 2h", "gpu: true"]
)
def test_what_no_cluster_understands_is_refused(house, wrong):
    write_run(house, "mine", PAGE.format(f", resources: {{{wrong}}}"))
    message = (
        r"resources of 01-a in runs/mine\.yaml must be whole numbers of gpu, mem_mb, runtime, cpus_per_task"
    )
    with pytest.raises(RunError, match=message):
        load_pages("mine")


def test_an_unknown_profile_lists_those_there_are(house):
    for name in ("local", "slurm"):
        (house / "profiles" / name).mkdir(parents=True)
        (house / "profiles" / name / "config.yaml").touch()
    write_run(house, "mine", PAGE.format(""))
    with pytest.raises(RunError, match="PROFILE must be one of local, slurm; got 'pbs'"):
        build.execute_pages("mine", profile="pbs")


@pytest.fixture
def house(tmp_path, monkeypatch):
    """Return a compendium of two notebooks, the second of which fails with seed 0."""
    root = tmp_path / "house"
    root.mkdir()
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(root))
    write_notebook(root, "01-a", CELL)
    write_notebook(root, "02-b", CELL, "1 / seed")
    return root


@pytest.mark.slow
def test_a_run_through_a_scheduler_keeps_what_succeeds_and_the_notebook_of_what_fails(house, cluster):
    """The same Snakefile and the slurm profile, with a scheduler made of shell: half a minute."""
    for name in ("Snakefile", "requirements.lock"):
        shutil.copy(ROOT / name, house / name)
    shutil.copytree(ROOT / "profiles", house / "profiles")
    (house / "pyproject.toml").touch()
    pages = (
        "pages:\n"
        "  - {page: 01-a, notebook: 01-a, parameters: {seed: 1}}\n"
        "  - {page: 02-b-0, notebook: 02-b, parameters: {seed: 0}}\n"
        "  - {page: 02-b-1, notebook: 02-b, parameters: {seed: 1}, torch: true, after: [01-a]}\n"
    )
    write_run(house, "mine", pages)
    command = [sys.executable, "-m", "biastransfer.graph.build", "--run", "mine", "--pages-only"]
    command += ["--profile", "slurm"]
    options = {"cwd": house, "capture_output": True, "text": True, "check": False}
    options["env"] = {**os.environ, "PYTHONPATH": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, **options)
    assert done.returncode == 1
    assert "The run mine stopped; the pages that succeeded are kept." in done.stderr, done.stderr
    executed = house / "data" / "derived" / "executed" / "mine"
    assert sorted(file.name for file in executed.glob("*.ipynb")) == ["01-a.ipynb", "02-b-1.ipynb"]
    kept = json.loads((executed / "unfinished" / "02-b-0.ipynb").read_text())
    assert "ZeroDivisionError" in json.dumps(kept)
    asked = (cluster / "asked").read_text().splitlines()
    assert sum("--job-name mine_01-a --cpus-per-task 2 --mem 8000M --time 60" in line for line in asked) == 1
    assert [line.count("--gpus 1") for line in asked if "mine_02-b-1" in line] == [1]
    assert [line.count("--gpus") for line in asked if "mine_02-b-0" in line] == [0]
    write_run(house, "mine", pages.replace("seed: 0", "seed: 2"))
    again = subprocess.run(command, **options)
    assert again.returncode == 0, again.stderr
    assert len((cluster / "asked").read_text().splitlines()) == len(asked) + 1, "only what failed is executed"
    assert Path(executed / "02-b-0.ipynb").exists()


@pytest.mark.slow
def test_a_change_is_seen_although_the_clock_went_back(house):
    """A notebook changed at an earlier time than the page's is executed again; half a minute."""
    for name in ("Snakefile", "requirements.lock"):
        shutil.copy(ROOT / name, house / name)
    shutil.copytree(ROOT / "profiles", house / "profiles")
    (house / "pyproject.toml").touch()
    write_run(house, "mine", "pages:\n  - {page: 01-a, notebook: 01-a, parameters: {seed: 1}}\n")
    command = [sys.executable, "-m", "biastransfer.graph.build", "--run", "mine", "--pages-only"]
    options = {"cwd": house, "capture_output": True, "text": True, "check": True}
    options["env"] = {**os.environ, "PYTHONPATH": "", "OMP_NUM_THREADS": "1"}
    assert "01-a done" in subprocess.run(command, **options).stdout
    assert "01-a done" not in subprocess.run(command, **options).stdout
    write_notebook(house, "01-a", CELL, "seed + 1")
    os.utime(house / "notebooks" / "01-a.ipynb", (10**9, 10**9))
    assert "01-a done" in subprocess.run(command, **options).stdout
    page = house / "data" / "derived" / "executed" / "mine" / "01-a.ipynb"
    assert "seed + 1" in page.read_text()
    os.utime(
        page, (10**9, 10**9)
    )  # as if executed while the clock was back: nothing it depends on has changed
    assert "01-a done" not in subprocess.run(command, **options).stdout


def test_the_books_page_says_what_the_run_files_ask_for():
    text = " ".join((ROOT / "book" / "cluster.md").read_text().split())
    for name in RESOURCES:
        unit = ", minutes" if name == "runtime" else ""
        assert f"| `{name}`{unit} | {TORCH_RESOURCES[name]} | {RESOURCES[name]} |" in text
    pages = load_pages("paper")
    with_gpu = [page for page in pages if page.resources["gpu"]]
    hours = sum(page.resources["gpu"] * page.resources["runtime"] for page in with_gpu) / 60
    assert f"`paper` has {len(pages)} pages, {len(with_gpu)} of them with a GPU" in text
    assert f"could not take more than {hours:.0f} GPU hours" in text
