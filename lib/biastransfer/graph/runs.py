"""What a run consists of: the pages of ``runs/<run>.yaml``, checked before anything is executed.

A page is a notebook with parameters. The main slot of the book holds one run; the pages of ``released`` (real
photographs) stand beside the demo's, from committed numbers unless the released pictures are given.
"""

import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from biastransfer import paths
from biastransfer.graph.dependencies import code_of
from biastransfer.parameters import ParameterError, declared, validate

RELEASED = "released"
MAIN_BESIDE_RELEASED = "demo"
GIVEN = "$RELEASED"  # in with_pictures: the folder or tar that the person gave
THREADS = 2  # of a kernel, unless the run says otherwise: the last bits of trained weights depend on it
KEYS = {"page", "notebook", "parameters", "with_pictures", "after", "torch", "reads", "writes"}


class RunError(ValueError):
    """A run that cannot start; the message is one sentence for the person who typed the command."""


@dataclass(frozen=True)
class Page:
    """One notebook: its parameters, the pages it comes after, its files, the threads of its kernel."""

    run: str
    name: str
    notebook: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    torch: bool = False
    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    threads: int = THREADS

    @property
    def executed(self) -> Path:
        """Return where its executed notebook lies."""
        return paths.executed(self.run, self.name)


def list_runs() -> list[str]:
    """Return the names of all runs, those with a file in ``runs/``."""
    return sorted(file.stem for file in paths.run_file("x").parent.glob("*.yaml"))


def load_pages(run: str, pictures: str = "") -> list[Page]:
    """Return the pages of one run, with every notebook, parameter and predecessor checked.

    Parameters
    ----------
    run : str
        The name of a file in ``runs/`` without ``.yaml``.
    pictures : str
        A folder or tar of pictures for the pages that have ``with_pictures``; empty: from committed numbers.

    Returns
    -------
    list of Page
        In the order of the file.

    Raises
    ------
    RunError
        When the run, a key, a notebook, a parameter or a predecessor is unknown.
    """
    if run not in list_runs():
        raise RunError(f"RUN must be one of {', '.join(list_runs())}; got {run!r}.")
    try:
        contents = yaml.safe_load(paths.run_file(run).read_text(encoding="utf-8"))
        threads = int(contents.get("threads", THREADS))
        pages = [replace(_page(run, entry, pictures), threads=threads) for entry in contents["pages"]]
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise RunError(
            f"runs/{run}.yaml must list pages, each with page and notebook; got {error!r}."
        ) from error
    names = [page.name for page in pages]
    for page in pages:
        if unknown := set(page.after) - set(names):
            raise RunError(
                f"{page.name} in runs/{run}.yaml comes after {sorted(unknown)}, which no page is called."
            )
        if names.count(page.name) > 1:
            raise RunError(f"runs/{run}.yaml must name each page once; {page.name!r} stands there twice.")
    return pages


def plan(run: str, pictures: str = "") -> list[Page]:
    """Return all pages of the book of a run: those of the main slot, then those on real photographs.

    Parameters
    ----------
    run : str
        ``smoke`` | ``demo`` | ``released`` | …; beside ``released`` the main slot holds the demo.
    pictures : str
        The released analysis sets, a folder or tar; empty: committed numbers.

    Returns
    -------
    list of Page

    Raises
    ------
    RunError
        As `load_pages`, or when `pictures` does not exist or comes with a run that does not take it.
    """
    if pictures and run != RELEASED:
        raise RunError(f"RELEASED goes with RUN=released; got RUN={run}.")
    if pictures and not Path(pictures).exists():
        raise RunError(
            f"RELEASED must be the folder or tar of the released analysis sets; {pictures} does not exist."
        )
    if pictures and Path(pictures).is_file() and not tarfile.is_tarfile(pictures):
        raise RunError(
            f"RELEASED must be the folder or tar of the released analysis sets; {pictures} is neither."
        )
    main = load_pages(MAIN_BESIDE_RELEASED if run == RELEASED else run)
    if run not in (RELEASED, MAIN_BESIDE_RELEASED):
        return main
    beside = load_pages(RELEASED, pictures)
    missing = [file for page in beside for file in page.reads if not file.exists()]
    if missing and run == RELEASED:
        raise RunError(
            f"{missing[0].relative_to(paths.root())} must hold the committed numbers, but is not there; "
            "compute it with make book RUN=released RELEASED=<folder or tar>."
        )
    if pictures:  # what shows the committed numbers waits for those that are computed now
        computed = {file: page.executed for page in load_pages(RELEASED) for file in page.reads}
        main = [
            replace(page, reads=(*page.reads, *{computed[file] for file in page.reads if file in computed}))
            for page in main
        ]
    return main + [page for page in beside if not set(page.reads) & set(missing)]


def _page(run: str, entry: Mapping, pictures: str) -> Page:
    if unknown := set(entry) - KEYS:
        raise RunError(
            f"a page of runs/{run}.yaml takes the keys {', '.join(sorted(KEYS))}; got {sorted(unknown)}."
        )
    parameters = {**entry.get("parameters", {})}
    if pictures:
        given = entry.get("with_pictures", {})
        parameters |= {
            name: str(Path(pictures).resolve()) if value == GIVEN else value for name, value in given.items()
        }
    notebook = paths.notebook(entry["notebook"])
    if not notebook.is_file():
        raise RunError(
            f"{entry['page']} in runs/{run}.yaml needs {notebook.name}, which is not in notebooks/."
        )
    _check_parameters(notebook, parameters, f"{notebook.stem} (for {entry['page']} of runs/{run}.yaml)")
    files = {key: tuple(paths.root() / name for name in entry.get(key, ())) for key in ("reads", "writes")}
    if pictures:  # then these are what it writes, not what it shows
        files["reads"] = (Path(pictures).resolve(),)
    listed = entry.get("after", [])  # names, or lists of names that YAML anchors stand for
    after = tuple(name for item in listed for name in ([item] if isinstance(item, str) else item))
    return Page(run, entry["page"], entry["notebook"], parameters, after, entry.get("torch", False), **files)


def _check_parameters(notebook: Path, parameters: Mapping[str, object], where: str) -> None:
    known = next(filter(None, map(declared, code_of(notebook))), ())
    try:
        validate(known, parameters, where=where)
    except ParameterError as error:
        raise RunError(str(error)) from error
