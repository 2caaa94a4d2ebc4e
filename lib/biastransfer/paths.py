"""Where everything lies: the only module with path literals, and the one way to write a file whole."""

import contextlib
import hashlib
import os
import re
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path


def root() -> Path:
    """Return the folder of the compendium: ``$BIASTRANSFER_ROOT``, else the checkout that holds this file.

    Outside a checkout (an installed wheel) it is the current folder.
    """
    if chosen := os.environ.get("BIASTRANSFER_ROOT"):
        return Path(chosen).resolve()
    checkout = Path(__file__).resolve().parents[2]
    return checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()


def raw(*parts: str) -> Path:
    """Return a path below ``data/raw``: pictures and annotations as they came or were generated."""
    return root().joinpath("data", "raw", *parts)


def derived(*parts: str) -> Path:
    """Return a path below ``data/derived``: what can be computed again (checkpoints, caches)."""
    return root().joinpath("data", "derived", *parts)


def sources() -> Path:
    """Return the file that says where what is not in the repository is published, and on what terms."""
    return root().joinpath("data", "sources.toml")


def published(*parts: str) -> Path:
    """Return a path below ``data/published``: the papers' tables as CSV."""
    return root().joinpath("data", "published", *parts)


def _run_name(run: str) -> str:
    """Return the name of a run, which becomes a folder; refuse one that would lead elsewhere."""
    if not re.fullmatch(r"\w[\w.-]*", run):
        raise ValueError(
            f"the name of a run must be letters, digits, '.', '_' and '-', no path; got {run!r}. Rename it."
        )
    return run


def weights(*parts: str) -> Path:
    """Return a path below ``data/raw/weights``: published checkpoints under their published names."""
    return raw("weights", *parts)


def results(run: str, *parts: str) -> Path:
    """Return a path below ``data/results/<run>``: the tidy CSVs of one run."""
    return root().joinpath("data", "results", _run_name(run), *parts)


def checkpoint(run: str, backbone: str, target: str, seed: int, which: str = "best") -> Path:
    """Return the checkpoint of one finetuning in a run: ``which`` is ``best`` or ``last``.

    ``backbone``, ``target`` and ``seed`` name the finetuning.
    """
    return derived("checkpoints", _run_name(run), f"{backbone}-{target}-seed{seed}", f"{which}.safetensors")


def notebook(name: str) -> Path:
    """Return the notebook ``name`` as written, without outputs."""
    return root().joinpath("notebooks", f"{name}.ipynb")


def run_file(run: str) -> Path:
    """Return the file that says which pages a run has and with which parameters."""
    return root().joinpath("runs", f"{run}.yaml")


def executed(run: str, page: str) -> Path:
    """Return the executed notebook of one page of a run."""
    return derived("executed", _run_name(run), f"{page}.ipynb")


def failed(run: str, page: str) -> Path:
    """Return where a page's notebook lies while it is executed, and stays when a cell fails."""
    return derived("executed", run, "unfinished", f"{page}.ipynb")


def book_pages(*parts: str) -> Path:
    """Return a path below ``book/results``: the executed notebooks that the book shows."""
    return root().joinpath("book", "results", *parts)


def built_book(*parts: str) -> Path:
    """Return a path below ``_build``: the rendered book."""
    return root().joinpath("_build", *parts)


def profile(name: str) -> Path:
    """Return the folder that says how a run is executed here: ``local`` | ``slurm``."""
    return root().joinpath("profiles", name)


def run_lock() -> Path:
    """Return the file whose lock one run holds while it works in this folder."""
    return derived("run.lock")


def pages_lock() -> Path:
    """Return the file whose shared lock each page holds while it is executed."""
    return derived("pages.lock")


def inpainter_weights() -> Path:
    """Return the weights of the in-painter trained on scenes, which ship inside the package."""
    return Path(__file__).resolve().parent / "attribution" / "weights" / "scenes-inpainter.safetensors"


def embedding_cache() -> Path:
    """Return the folder of cached embeddings: ``$BIASTRANSFER_CACHE``, else ``data/derived/embeddings``."""
    chosen = os.environ.get("BIASTRANSFER_CACHE")
    return Path(chosen).resolve() if chosen else derived("embeddings")


def attribution_store() -> Path:
    """Return the folder of computed heat maps: beside the embeddings where ``$BIASTRANSFER_CACHE`` is set."""
    chosen = os.environ.get("BIASTRANSFER_CACHE")
    return Path(chosen).resolve() / "attribution" if chosen else derived("attribution")


@contextlib.contextmanager
def replacing(path: Path | str) -> Iterator[Path]:
    """Give a temporary path beside ``path`` that becomes ``path`` only when the block ends without an error.

    A reader sees the old file or the new one, never half of either; a block that raises leaves the old file.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "numbers.csv"
    >>> with replacing(target) as partial:
    ...     _ = partial.write_text("a,b")
    >>> target.read_text()
    'a,b'
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = os.fsencode(path.name)[:200].decode(errors="ignore")  # a name may have 255 bytes
    partial = path.with_name(f".{kept}.partial-{secrets.token_hex(4)}")
    try:
        yield partial
        with open(partial, "rb") as written:
            os.fsync(written.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def check_writable(path: Path | str | None, name: str) -> None:
    """Refuse a ``path`` that cannot be written, before the work that goes there; ``name`` says whose it is.

    Parameters
    ----------
    path : path-like or None
        None where nothing is to be written.
    name : str
        Of the option or parameter.

    Raises
    ------
    ValueError
        A folder, a place that nothing can be written to, or a name that no file can have.
    """
    if path is None:
        return
    if os.path.isdir(path):
        raise ValueError(f"{name} must be a file to write; {path} is a folder. Name a file in it.")
    place = Path(path).absolute().parent
    try:
        with contextlib.suppress(FileNotFoundError):
            os.stat(path)  # says of a name that it is too long, and of a parent that it is a file
        while not place.exists():  # `replacing` makes what is missing
            place = place.parent
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as problem:
        raise ValueError(
            f"{name} must be a file that can be written; {path} cannot be ({problem.strerror}). "
            "Name a file in a folder of your own."
        ) from None


def write_csv(frame, path: Path | str) -> Path:
    """Write a data frame as CSV without its index, whole or not at all; return the path."""
    with replacing(path) as partial:
        frame.to_csv(partial, index=False, lineterminator="\n")
    return Path(path)


def sha256(path: Path | str) -> str:
    """Return the SHA-256 of a file's bytes as 64 hex digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
