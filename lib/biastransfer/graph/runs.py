"""What a run consists of: the pages of ``runs/<run>.yaml``, checked before anything is executed.

A page is a notebook with parameters. The main slot of the book holds one run; the pages of ``released`` (real
photographs) stand beside the demo's, from committed numbers unless the pictures are given.
"""

import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from biastransfer import paths
from biastransfer.graph.entries import (
    DATA,
    RunError,
    bounded,
    check_names,
    check_parameters,
    expanded,
    matched,
    named,
    resources,
    with_data,
)

RELEASED = "released"
MAIN_BESIDE_RELEASED = "demo"
_MALFORMED = (yaml.YAMLError, KeyError, TypeError, AttributeError, ValueError, RecursionError)
THREADS = 2  # of a kernel, unless the run says otherwise: the last bits of trained weights depend on it


@dataclass(frozen=True)
class Page:
    """One notebook: its parameters, what it comes after, its files, what a kernel and a cluster give it."""

    run: str
    name: str
    notebook: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    torch: bool = False
    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    threads: int = THREADS
    resources: Mapping[str, int] = field(default_factory=dict)  # as `entries.RESOURCES`
    takes: frozenset[str] = frozenset()  # names of `entries.DATA` that a person may give it

    @property
    def executed(self) -> Path:
        """Return where its executed notebook lies."""
        return paths.executed(self.run, self.name)


def list_runs() -> list[str]:
    """Return the names of all runs, those with a file in ``runs/``."""
    return sorted(file.stem for file in paths.run_file("x").parent.glob("*.yaml"))


def load_pages(run: str, data: Mapping[str, str] | None = None) -> list[Page]:
    """Return the pages of one run, with every notebook, parameter and predecessor checked.

    Parameters
    ----------
    run : str
        The name of a file in ``runs/`` without ``.yaml``.
    data : mapping of str to str, optional
        Name of `entries.DATA` → folder or tar. Pages that show committed numbers compute them where the
        data for them are given; other pages keep the name, ``$COCO``, until it is.

    Returns
    -------
    list of Page
        Those of the runs that the file includes, then its own, in its order. A page of its own stands in the
        place of an included one of that name.

    Raises
    ------
    RunError
        When the run, a key, a notebook, a parameter or a predecessor is unknown.
    """
    if run not in list_runs():
        raise RunError(f"RUN must be one of {', '.join(list_runs())}; got {run!r}.")
    data = {name: str(Path(path).resolve()) for name, path in (data or {}).items()}
    try:
        contents = bounded(yaml.safe_load(paths.run_file(run).read_text(encoding="utf-8")), run)
        entries = expanded(contents["pages"], run)
        included = [page for other in contents.get("include", []) for page in load_pages(other, data)]
        own = {entry["page"] for entry in entries}
        included = [page for page in included if page.name not in own]
        names = [*(page.name for page in included), *(entry["page"] for entry in entries)]
        threads = int(contents.get("threads", THREADS))
        pages = included + [_page(run, entry, data, names, threads) for entry in entries]
    except RunError:
        raise
    except _MALFORMED as error:
        raise RunError(
            f"runs/{run}.yaml must list pages, each with page and notebook; got {repr(error)[:300]}."
        ) from error
    for name in names:
        if names.count(name) > 1:
            raise RunError(f"runs/{run}.yaml must name each page once; {name!r} stands there twice.")
    return pages


def plan(run: str, data: Mapping[str, str] | None = None) -> list[Page]:
    """Return all pages of the book of a run: those of the main slot, then those on real photographs.

    Parameters
    ----------
    run : str
        ``smoke`` | ``demo`` | ``released`` | …; beside ``released`` the main slot holds the demo.
    data : mapping of str to str, optional
        Name of `entries.DATA` → folder or tar that the person gave; empty paths count as not given.

    Returns
    -------
    list of Page

    Raises
    ------
    RunError
        As `load_pages`, when data do not exist, come with a run that does not take them, or lack.

    Notes
    -----
    A page of committed numbers that are not all there is left out; `left_out` names it.
    """
    data = {name: path for name, path in (data or {}).items() if path}
    main = load_pages(MAIN_BESIDE_RELEASED if run == RELEASED else run, data)
    beside = load_pages(RELEASED, data) if run in (RELEASED, MAIN_BESIDE_RELEASED) else []
    _check_data(run, data, beside if run == RELEASED else main)
    missing = [file for page in beside for file in page.reads if not file.exists()]
    if run == RELEASED and not data and all(set(page.reads) & set(missing) for page in beside):
        raise RunError(
            f"{missing[0].relative_to(paths.root())} must hold the committed numbers, but is not there; "
            "compute it with make book RUN=released RELEASED=<folder or tar> COCO_MINI=<folder>."
        )
    if data and beside:  # what shows the committed numbers waits for those that are computed now
        computed = {file: page.executed for page in load_pages(RELEASED) for file in page.reads}
        shown = {file for page in beside for file in page.reads}
        computed = {file: page for file, page in computed.items() if file not in shown}
        main = [
            replace(page, reads=(*page.reads, *{computed[file] for file in page.reads if file in computed}))
            for page in main
        ]
    beside = [page for page in beside if not set(page.reads) & set(missing)]
    there = {page.name for page in beside}
    return main + [replace(page, after=tuple(filter(there.__contains__, page.after))) for page in beside]


def left_out(pages: Iterable[Page]) -> list[str]:
    """Return the names of the pages on real photographs that ``pages`` lack, of a book that has such pages.

    Their numbers are neither committed nor computed.
    """
    there = {page.name for page in pages if page.run == RELEASED}
    return [page.name for page in load_pages(RELEASED) if page.name not in there] if there else []


def _check_data(run: str, data: Mapping[str, str], pages: list[Page]) -> None:
    """Refuse data that do not exist, that the run does not take, or that it lacks."""
    takes = set().union(*(page.takes for page in pages))
    for name, path in data.items():
        if name not in takes:
            others = [other for other in list_runs() if any(name in page.takes for page in load_pages(other))]
            raise RunError(f"{name} goes with RUN={' or '.join(others) or 'none'}; got RUN={run}.")
        if not Path(path).exists():
            raise RunError(f"{name} must be {DATA[name]}; {path} does not exist.")
        if Path(path).is_file() and not ("tar" in DATA[name] and tarfile.is_tarfile(path)):
            kind = "neither" if "tar" in DATA[name] else "a file"
            raise RunError(f"{name} must be {DATA[name]}; {path} is {kind}.")
    if lacking := sorted(set().union(*(named(page.parameters) for page in pages))):
        wanted = " and ".join(f"{name}=<path> ({DATA[name]})" for name in lacking)
        raise RunError(f"RUN={run} needs {wanted}; not given.")


def _page(run: str, entry: Mapping, data: Mapping[str, str], names: Sequence[str], threads: int) -> Page:
    check_names(entry, run)
    notebook = paths.notebook(entry["notebook"])
    if not notebook.is_file():
        raise RunError(
            f"{entry['page']} in runs/{run}.yaml needs {notebook.name}, which is not in notebooks/."
        )
    parameters, used = with_data(entry, data, run)
    check_parameters(notebook, parameters, f"{notebook.stem} (for {entry['page']} of runs/{run}.yaml)")
    files = {key: tuple(paths.root() / name for name in entry.get(key, ())) for key in ("reads", "writes")}
    if used and files["reads"]:  # then these are what it writes, not what it shows
        files["reads"] = ()
    files["reads"] += tuple(Path(data[name]) for name in used)
    shows = bool(parameters.get("committed"))  # such a page computes next to nothing
    torch = entry.get("torch", False) and not shows
    return Page(
        run,
        entry["page"],
        entry["notebook"],
        parameters,
        matched(entry.get("after", []), names, f"{entry['page']} in runs/{run}.yaml"),
        torch,
        **files,
        threads=1 if shows else threads,
        resources=resources({**entry, "torch": torch}, run),
        takes=frozenset(named(entry.get("parameters", {})) | set(entry.get("given", {}))),
    )
