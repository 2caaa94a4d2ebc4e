"""`make book`: execute the pages of a run that are stale, gather them, and render the book."""

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from biastransfer import paths
from biastransfer.graph.entries import DATA, RunError
from biastransfer.graph.locks import locked
from biastransfer.graph.runs import RELEASED, Page, left_out, plan


def execute_pages(
    run: str,
    data: Mapping[str, str] | None = None,
    cores: int = 2,
    profile: str = "local",
    held: Sequence[int] = (),
) -> list[Page]:
    """Execute what is stale of a run through Snakemake and return all its pages.

    Parameters
    ----------
    run : str
        The name of a file in ``runs/`` without ``.yaml``.
    data : mapping of str to str, optional
        Name of `entries.DATA` → folder or tar; where none is given, committed numbers are shown.
    cores : int
        How many pages may be executed at once on this machine; those with two threads one at a time.
    profile : str
        Where: a folder of ``profiles/``, ``local`` or ``slurm``, whose own settings say how many at once.
    held : sequence of int
        Descriptors of locks that Snakemake holds too: it may outlive this process, when only that is killed.

    Returns
    -------
    list of Page

    Raises
    ------
    RunError
        When the run cannot start, or a page failed.
    """
    data = data or {}
    pages = plan(run, data)
    _forget_pages_outside(pages)
    for folder in {paths.results(page.run) for page in pages} | {paths.derived(), paths.raw()}:
        _must_be_writable(folder)
    command = [sys.executable, "-m", "snakemake", "--profile", str(_profile(profile))]
    command += ["--cores", str(cores)] if profile == "local" else []
    command += ["--config", f"run={run}", *(f"{name}={Path(path).resolve()}" for name, path in data.items())]
    record = paths.derived("executed", f"snakemake-{run}.log")
    record.parent.mkdir(parents=True, exist_ok=True)
    with open(record, "w") as log:
        status = subprocess.run(command, cwd=paths.root(), stderr=log, check=False, pass_fds=held).returncode
    for page in pages:  # Snakemake leaves an empty log for each page that succeeded
        kept = paths.failed(page.run, page.name)
        if kept.exists() and not kept.stat().st_size:
            kept.unlink()
    if status:
        told = record.read_text(errors="replace")
        reason = "" if "a job execution failed" in told else "\n".join(told.strip().splitlines()[-5:]) + "\n"
        raise RunError(f"{reason}The run {run} stopped; the pages that succeeded are kept. Its log: {record}")
    return pages


def _profile(name: str) -> Path:
    known = sorted(file.parent.name for file in paths.profile("x").parent.glob("*/config.yaml"))
    if name not in known:
        raise RunError(f"PROFILE must be one of {', '.join(known)}; got {name!r}.")
    return paths.profile(name)


def _forget_pages_outside(pages: Iterable[Page]) -> None:
    """Remove executed notebooks of pages that these runs no longer have."""
    kept = {page.executed for page in pages}
    for folder in {file.parent for file in kept}:
        for file in set(folder.glob("*.ipynb")) - kept:
            file.unlink()


def forget_partials(folders: Iterable[Path], age: float = 600.0) -> int:
    """Remove temporary files that killed processes left; return how many.

    Parameters
    ----------
    folders : iterable of Path
        Where to look, at any depth.
    age : float
        Seconds since the last write from which on nobody can still be writing.
    """
    removed = 0
    for folder in folders:
        for left in sorted(folder.rglob(".*.partial-*")):
            if left.exists() and time.time() - left.stat().st_mtime > age:
                shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
                removed += 1
    return removed


def gather(pages: Iterable[Page]) -> None:
    """Make ``book/results`` hold exactly these pages, executed; a file that is already right is left alone.

    Parameters
    ----------
    pages : iterable of Page
    """
    wanted = {}
    for page in pages:
        below = [RELEASED] if page.run == RELEASED else []
        wanted[paths.book_pages(*below, page.executed.name)] = page.executed
    for file in paths.book_pages().rglob("*.ipynb"):
        if file not in wanted:
            file.unlink()
            if paths.built_book().exists():  # Sphinx would keep its page: render anew
                paths.built_book(".unfinished").touch()
    for target, source in wanted.items():
        if not target.exists() or target.stat().st_mtime_ns != source.stat().st_mtime_ns:
            with paths.replacing(target) as partial:
                shutil.copy2(source, partial)


def render(held: Sequence[int] = ()) -> Path:
    """Render the book with warnings as errors and return its first page.

    Parameters
    ----------
    held : sequence of int
        Descriptors of locks that jupyter-book holds too, as in `execute_pages`.

    Returns
    -------
    Path

    Raises
    ------
    RunError
        When jupyter-book warns or fails, or there is no first page although it reported success.
    """
    first = paths.built_book("html", "index.html")
    unfinished = paths.built_book(".unfinished")
    if unfinished.exists():  # a page that Sphinx has read is not warned about again: start over
        shutil.rmtree(paths.built_book())
    _must_be_writable(paths.built_book())
    unfinished.touch()
    command = [
        str(Path(sys.executable).with_name("jupyter-book")),
        "build",
        "book",
        "--config",
        "_config.yml",
    ]
    command += ["--path-output", ".", "-W", "-n", "--keep-going", "-q"]
    if subprocess.run(command, cwd=paths.root(), check=False, pass_fds=held).returncode:
        raise RunError("The book was not rendered: jupyter-book stopped at the warnings above.")
    if not first.is_file():
        raise RunError(f"The book was not rendered: jupyter-book reported success, but there is no {first}.")
    unfinished.unlink()
    return first


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks; return the exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: those of the process.
    """
    parser = argparse.ArgumentParser(prog="python -m biastransfer.graph.build", description=__doc__)
    parser.add_argument("--run", default="demo")
    parser.add_argument(
        "--data", action="append", default=[], type=_named, metavar="NAME=PATH", help=", ".join(DATA)
    )
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--profile", default="local", help="where: a folder of profiles/")
    parser.add_argument("--pages-only", action="store_true", help="execute the notebooks, render nothing")
    given = parser.parse_args(arguments)
    data = {name: path for name, path in given.data if path}
    try:
        plan(given.run, data)
        _must_be_writable(paths.derived())
        with locked(paths.run_lock(), on_wait=_say_waiting) as lock:
            with locked(paths.pages_lock(), on_wait=_say_waiting):
                # pages that a killed run left behind have ended
                forget_partials([paths.derived(), paths.results("x").parent, paths.book_pages()])
            pages = execute_pages(given.run, data, given.cores, given.profile, [lock])
            print(f"{len(pages)} pages of {given.run} are up to date.", flush=True)
            if lacking := left_out(pages):
                print(f"Left out, since their numbers are not committed: {', '.join(lacking)}.", flush=True)
            if given.pages_only:
                return 0
            _must_be_writable(paths.book_pages())
            gather(pages)
            print(f"The book: {render([lock])}")
    except RunError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped; the same command goes on from here.", file=sys.stderr)
        return 130
    return 0


def _named(text: str) -> tuple[str, str]:
    name, given, path = text.partition("=")
    if not given or name not in DATA:
        raise argparse.ArgumentTypeError(f"must be NAME=PATH, NAME one of {', '.join(DATA)}; got {text!r}")
    return name, path


def _must_be_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with paths.replacing(folder / ".writable") as partial:
            partial.touch()
        (folder / ".writable").unlink()
    except OSError as error:
        raise RunError(
            f"{folder} must be a folder that can be written; {error.strerror or error}."
        ) from error


def _say_waiting() -> None:
    print("Another run is at work in this folder; this one waits for it to end.", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
