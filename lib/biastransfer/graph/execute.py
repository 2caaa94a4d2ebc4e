"""Execute one page, a notebook with parameters; the run graph calls this for each."""

import argparse
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from biastransfer import paths
from biastransfer.graph.locks import locked

# Snakemake sets these to the threads of its rule, 1
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS")

NO_ANSWER = (
    "Kernel didn't respond"  # jupyter_client's words; seen once in some hundred starts of two at a time
)


class PageError(RuntimeError):
    """A cell failed; the message names the page, the error and the notebook that was kept."""


def execute(
    notebook: Path, page: Path, unfinished: Path, parameters: Mapping[str, object], threads: int = 2
) -> float:
    """Execute a notebook with papermill and put the result in its place only when every cell succeeded.

    Parameters
    ----------
    notebook : Path
        The notebook as written.
    page : Path
        Where the executed notebook goes.
    unfinished : Path
        Where it lies meanwhile, and stays when a cell fails.
    parameters : mapping of str to object
        Values for its parameters cell.
    threads : int
        Threads of its kernel's arithmetic: the last bits of trained weights depend on them.

    Returns
    -------
    float
        Seconds it took.

    Raises
    ------
    PageError
        When a cell raises or the kernel dies.
    """
    import papermill

    logging.getLogger("papermill").setLevel(logging.ERROR)
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    os.environ.setdefault("IPYTHONDIR", str(paths.derived("ipython")))  # no one's start-up files or history
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    page.parent.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    try:
        with _own_sockets() as config:
            _with_a_kernel(
                papermill.execute_notebook,
                notebook,
                unfinished,
                dict(parameters),
                kernel_name="python3",
                progress_bar=False,
                cwd=paths.root(),
                config=config,
            )
    except papermill.exceptions.PapermillExecutionError as error:
        raise PageError(f"{page.stem} failed: {error.ename}: {error.evalue}\n{_kept(unfinished)}") from error
    except Exception as error:  # a dead kernel, a full disk: whatever papermill lets through
        raise PageError(
            f"{page.stem} failed: {type(error).__name__}: {error}\n{_kept(unfinished)}"
        ) from error
    _forget_folders(unfinished)
    os.replace(unfinished, page)
    return time.perf_counter() - start


@contextmanager
def _own_sockets() -> Iterator:
    """Let a kernel talk through files of its own: of two that start at once, both may take one TCP port."""
    from traitlets.config import Config

    if os.name == "nt":
        yield Config()
        return
    with tempfile.TemporaryDirectory(prefix="page-") as folder:  # short: names of sockets end at 107 bytes
        yield Config({"KernelManager": {"transport": "ipc", "connection_file": f"{folder}/kernel.json"}})


def _with_a_kernel(run, *arguments, **options):
    """Call ``run``, again with another kernel where one never answered: no cell has been executed by then."""
    for last in (False, False, True):
        try:
            return run(*arguments, **options)
        except RuntimeError as error:
            if last or NO_ANSWER not in str(error):
                raise
            print(f"  {error}; another kernel is started", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Execute the page that the command line names and print one line about it; return the exit status.

    Parameters
    ----------
    arguments : list of str, optional
        Default: those of the process.
    """
    parser = argparse.ArgumentParser(prog="python -m biastransfer.graph.execute", description=__doc__)
    for name in ("notebook", "page", "unfinished"):
        parser.add_argument(name, type=Path)
    parser.add_argument("parameters", type=json.loads, help="as JSON")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args(arguments)
    print(f"  {given.page.stem} …", flush=True)
    with locked(paths.pages_lock(), shared=True):
        try:
            seconds = execute(**vars(given))
        except PageError as error:
            print(f"  {error}", flush=True)
            return 1
    print(f"  {given.page.stem} done in {seconds:.0f} s", flush=True)
    return 0


def _forget_folders(executed: Path) -> None:
    """Write papermill's own record relative to the compendium: a page is published, the machine is not."""
    import nbformat

    page = nbformat.read(executed, as_version=4)
    record, folder = page.metadata.papermill, paths.root()
    for key in ("input_path", "output_path"):
        record[key] = os.path.relpath(record[key], folder)
    given = record.get("parameters", {})
    texts = [text for value in given.values() for text in (value if isinstance(value, list) else [value])]
    for path in {one for text in texts if isinstance(text, str) for one in text.split(os.pathsep)}:
        if os.path.isabs(path):
            for cell in page.cells:  # the injected parameters: which file it was, not where it lay
                cell["source"] = cell["source"].replace(path, Path(path).name)
            given = json.loads(json.dumps(given).replace(json.dumps(path)[1:-1], Path(path).name))
    record["parameters"] = given
    with paths.replacing(executed) as partial:
        nbformat.write(page, partial)


def _kept(unfinished: Path) -> str:
    return f"  What was executed is kept in {unfinished}." if unfinished.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
