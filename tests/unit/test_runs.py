"""Runs: pages are checked before anything is executed, and every refusal is one sentence."""

import os
import subprocess
import sys

import pytest
from house import CELL, write_notebook, write_run

from biastransfer import paths
from biastransfer.graph import build, execute, runs
from biastransfer.graph.locks import locked
from biastransfer.graph.runs import RunError, load_pages, plan


@pytest.fixture
def house(tmp_path, monkeypatch):
    """Return a compendium of one notebook, with runs demo and released."""
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path))
    write_notebook(tmp_path, "01-a", CELL)
    write_run(
        tmp_path, "demo", "pages:\n  - {page: 01-a-one, notebook: 01-a, parameters: {run: demo, seed: 1}}"
    )
    write_run(
        tmp_path,
        "released",
        "pages:\n  - {page: 01-a, notebook: 01-a, parameters: {committed: true},"
        " reads: [data/results/released/a.csv], given: {RELEASED: {committed: false, root: $RELEASED}}}",
    )
    return tmp_path


def test_a_page_has_what_its_entry_says(house):
    [page] = load_pages("demo")
    assert (page.run, page.name, page.notebook) == ("demo", "01-a-one", "01-a")
    assert page.parameters == {"run": "demo", "seed": 1}
    assert page.executed == house / "data/derived/executed/demo/01-a-one.ipynb"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "pages:\n  - {page: x, notebook: 09-z}",
            r"x in runs/demo.yaml needs 09-z.ipynb, which is not in notebooks/",
        ),
        ("pages:\n  - {page: x, notebook: 01-a, tourch: 1}", r"takes the keys after, .*; got \['tourch'\]"),
        (
            "pages:\n  - {page: x, notebook: 01-a, parameters: {sead: 1}}",
            r"01-a \(for x of .*no parameter 'sead'; did",
        ),
        ("pages:\n  - {page: x, notebook: 01-a, parameters: {seed: -1}}", r"seed must be >= 0; got -1"),
        ("pages:\n  - {page: x, notebook: 01-a, after: [y]}", r"x in runs/demo.yaml comes after \['y'\]"),
        (
            "pages:\n" + 2 * "  - {page: x, notebook: 01-a}\n",
            r"must name each page once; 'x' stands there twice",
        ),
        ("pages: !!python/object:os.system {}", r"runs/demo.yaml must list pages.*ConstructorError"),
        ("- 1", r"runs/demo.yaml must list pages"),
        ("pages:\n  - {page: x}", r"runs/demo.yaml must list pages.*notebook"),
    ],
)
def test_a_wrong_entry_is_named(house, text, message):
    write_run(house, "demo", text)
    with pytest.raises(RunError, match=message):
        load_pages("demo")


def test_lists_of_predecessors_may_be_nested(house):
    entry = "  - {page: %s, notebook: 01-a, after: %s}\n"
    write_run(
        house, "demo", "pages:\n" + entry % ("a", "[]") + entry % ("b", "[]") + entry % ("c", "[b, [a]]")
    )
    assert load_pages("demo")[2].after == ("b", "a")


def test_unknown_run_lists_the_runs(house, capsys):
    assert build.main(["--run", "deme"]) == 1
    assert capsys.readouterr().err == "RUN must be one of demo, released; got 'deme'.\n"


@pytest.mark.parametrize("name", ["../elsewhere", "/absolute", "a/b", ""])
def test_the_name_of_a_run_is_no_path(name):
    for path in (
        paths.results,
        lambda run: paths.executed(run, "a"),
        lambda run: paths.checkpoint(run, "a", "b", 0),
    ):
        with pytest.raises(ValueError, match="no path"):
            path(name)


def test_missing_released_folder(house, capsys):
    assert build.main(["--run", "released", "--data", "RELEASED=/nowhere"]) == 1
    message = "RELEASED must be the folder or tar of the released analysis sets; /nowhere does not exist.\n"
    assert capsys.readouterr().err == message
    with pytest.raises(RunError, match="RELEASED goes with RUN=released; got RUN=demo"):
        plan("demo", {"RELEASED": str(house)})


def test_released_pages_show_committed_numbers_where_there_are_some(house):
    assert [page.name for page in plan("demo")] == ["01-a-one"]
    with pytest.raises(RunError, match=r"data/results/released/a\.csv must hold the committed numbers"):
        plan("released")
    paths.results("released").mkdir(parents=True)
    paths.results("released", "a.csv").write_text("a\n")
    main, beside = plan("demo")
    assert (main.run, beside.run) == ("demo", "released")
    assert beside.parameters == {"committed": True}


def test_pages_without_committed_numbers_are_left_out_and_named(house):
    entry = (
        "  - {page: %s, notebook: 01-a, after: [%s], parameters: {committed: true},"
        " reads: [data/results/released/%s.csv]}\n"
    )
    write_run(house, "released", "pages:\n" + entry % ("01-a", "", "a") + entry % ("01-b", "01-a", "b"))
    with pytest.raises(RunError, match=r"a\.csv must hold the committed numbers"):
        plan("released")
    paths.results("released").mkdir(parents=True)
    paths.results("released", "b.csv").write_text("b\n")
    pages = plan("released")
    assert [page.name for page in pages] == ["01-a-one", "01-b"]
    assert pages[1].after == (), "it does not wait for a page that is not there"
    assert runs.left_out(pages) == ["01-a"]
    assert runs.left_out(load_pages("demo")) == [], "a book without such pages lacks none"


def test_released_pages_compute_from_given_pictures(house):
    beside = plan("released", {"RELEASED": str(house)})[1]
    assert beside.parameters == {"committed": False, "root": str(house)}
    assert beside.reads == (house,)


def test_a_folder_that_cannot_be_written(house, capsys):
    (house / "data").write_text("a file")
    assert build.main(["--run", "demo"]) == 1
    assert "data/derived must be a folder that can be written; Not a directory." in capsys.readouterr().err


def test_the_book_shows_exactly_the_pages_of_the_run(house):
    [page] = load_pages("demo")
    page.executed.parent.mkdir(parents=True)
    page.executed.write_text("new")
    paths.book_pages("released").mkdir(parents=True)
    for stale in (paths.book_pages("old.ipynb"), paths.book_pages("released", "old.ipynb")):
        stale.write_text("")
    build.gather([page])
    assert [file.name for file in paths.book_pages().rglob("*.ipynb")] == ["01-a-one.ipynb"]
    before = paths.book_pages("01-a-one.ipynb").stat()
    build.gather([page])
    after = paths.book_pages("01-a-one.ipynb").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns), (
        "left alone when it is right"
    )


def test_a_failed_page_is_kept_and_its_error_told(house, capsys):
    write_notebook(house, "02-b", CELL, "1 / seed")
    page, unfinished = house / "page.ipynb", house / "unfinished" / "page.ipynb"
    status = execute.main([str(house / "notebooks/02-b.ipynb"), str(page), str(unfinished), '{"seed": 0}'])
    said = capsys.readouterr().out
    assert status == 1
    assert (
        f"page failed: ZeroDivisionError: division by zero\n  What was executed is kept in {unfinished}."
        in said
    )
    assert unfinished.exists()
    assert not page.exists()
    assert execute.main([str(house / "notebooks/02-b.ipynb"), str(page), str(unfinished), '{"seed": 1}']) == 0
    assert page.exists()
    assert not unfinished.exists()


def test_what_killed_processes_left_is_removed_and_what_is_being_written_is_not(tmp_path):
    for name in ("a/.t.csv.partial-0a", "a/b/.set.partial-1b/x.png", "a/.new.csv.partial-2c", "a/t.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name in ("a/.t.csv.partial-0a", "a/b/.set.partial-1b", "a/t.csv"):
        os.utime(tmp_path / name, (10**9, 10**9))
    assert build.forget_partials([tmp_path / "a", tmp_path / "not there"]) == 2
    left = sorted(file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*") if file.is_file())
    assert left == ["a/.new.csv.partial-2c", "a/t.csv"]


def test_locks_exclude_and_are_shared(tmp_path):
    waited = []

    def refuse():
        waited.append(True)
        raise TimeoutError

    file = tmp_path / "folder" / "lock"
    with locked(file, shared=True), locked(file, shared=True, on_wait=refuse):
        with pytest.raises(TimeoutError), locked(file, on_wait=refuse):
            pass
        assert waited == [True]
    with locked(file, on_wait=refuse):
        pass


def test_what_outlives_a_killed_run_holds_the_folder(house):
    """Only the first process is killed; Snakemake, here one that waits, goes on: nobody may run beside it."""
    (house / "snakemake.py").write_text("print('at work', flush=True)\ninput()\n")
    (house / "profiles" / "local").mkdir(parents=True)
    (house / "profiles" / "local" / "config.yaml").touch()
    command = [sys.executable, "-m", "biastransfer.graph.build", "--run", "demo", "--pages-only"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}

    def refuse():
        raise TimeoutError

    with subprocess.Popen(command, cwd=house, **pipes) as first:
        assert first.stdout.readline() == "at work\n"
        first.kill()
        first.wait()
        with pytest.raises(TimeoutError), locked(paths.run_lock(), on_wait=refuse):
            pass
        first.stdin.close()  # what waits goes on to its end
        assert first.stdout.read() == ""
        with locked(paths.run_lock(), on_wait=refuse):
            pass


def test_the_runs_of_this_compendium_are_right():
    assert runs.list_runs() == sorted(file.stem for file in paths.run_file("x").parent.glob("*.yaml"))
    for run in runs.list_runs():
        assert load_pages(run)


def test_pages_of_committed_numbers_wait_for_those_computed_now(tmp_path):
    """The ledger of the main slot reads released CSVs: with pictures it comes after what writes them."""
    ledger = {page.name: page for page in plan("released", {"RELEASED": str(tmp_path)})}["09-ledger"]
    assert paths.executed("released", "05-association") in ledger.reads
    ledger = {page.name: page for page in plan("demo")}["09-ledger"]
    assert paths.executed("released", "05-association") not in ledger.reads


def test_pages_of_quick_runs_leave_a_core_free():
    assert {page.threads for run in ("smoke", "demo") for page in load_pages(run)} == {1}


def test_a_page_that_shows_committed_numbers_reserves_neither_cores_nor_a_gpu(tmp_path):
    shown = {page.name: page for page in load_pages("released")}["05-association"]
    assert (shown.torch, shown.threads, shown.resources["gpu"]) == (False, 1, 0)
    computed = {page.name: page for page in plan("released", {"RELEASED": str(tmp_path)})}["05-association"]
    assert (computed.torch, computed.threads, computed.resources["gpu"]) == (True, 2, 1)


def test_pages_that_a_run_no_longer_has_are_forgotten(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path))
    page = runs.Page("smoke", "00-published", "00-published")
    page.executed.parent.mkdir(parents=True)
    old = page.executed.with_name("old-name.ipynb")
    for file in (page.executed, old):
        file.write_text("{}")
    build._forget_pages_outside([page])
    assert page.executed.exists()
    assert not old.exists()


def test_an_executed_page_tells_the_file_that_was_given_and_not_where_it_lay(tmp_path, monkeypatch):
    import nbformat

    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path))
    given, roots = str(tmp_path / "pictures.tar"), [f"{tmp_path}/lists:{tmp_path}/deep/coco", ""]
    code = f"root = {given!r}\nroots = {roots!r}"
    page = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    record = {"input_path": f"{tmp_path}/in.ipynb", "output_path": f"{tmp_path}/o.ipynb"}
    page.metadata.papermill = record | {"parameters": {"root": given, "roots": roots, "seed": 1}}
    nbformat.write(page, tmp_path / "o.ipynb")
    execute._forget_folders(tmp_path / "o.ipynb")
    assert str(tmp_path) not in (tmp_path / "o.ipynb").read_text()
    assert "root = 'pictures.tar'" in (tmp_path / "o.ipynb").read_text()
    told = nbformat.read(tmp_path / "o.ipynb", as_version=4).metadata.papermill.parameters
    assert told == {"root": "pictures.tar", "roots": ["lists:coco", ""], "seed": 1}


def test_a_file_that_is_no_tar_is_refused_before_anything_runs(tmp_path):
    (tmp_path / "sets.txt").write_text("not a tar")
    with pytest.raises(RunError, match="RELEASED must be the folder or tar"):
        plan("released", {"RELEASED": str(tmp_path / "sets.txt")})


def test_a_kernel_that_never_answers_is_replaced_and_a_failing_cell_is_not():
    answers = iter([RuntimeError("Kernel didn't respond in 60 seconds"), "done"])

    def start(*_, **__):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert execute._with_a_kernel(start, "notebook") == "done"
    answers = iter([RuntimeError("CUDA out of memory"), "done"])
    with pytest.raises(RuntimeError, match="out of memory"):
        execute._with_a_kernel(start, "notebook")
    answers = iter([RuntimeError("Kernel didn't respond in 60 seconds")] * 3)
    with pytest.raises(RuntimeError, match="didn't respond"):
        execute._with_a_kernel(start, "notebook")
