"""What of the library a module or notebook imports, read from its syntax tree; nothing is executed.

The run graph re-executes a notebook when one of these files changed, and a test holds the layers with them.
"""

import ast
import functools
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]  # the folder of biastransfer


def code_of(notebook: Path | str) -> list[str]:
    """Return the code cells of a notebook, with magics and shell lines blanked so that the rest parses.

    Parameters
    ----------
    notebook : path
        An ``.ipynb`` file.

    Returns
    -------
    list of str
        One string a code cell, in order.
    """
    cells = json.loads(Path(notebook).read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return ["\n".join("" if _is_magic(line) else line for line in source.split("\n")) for source in sources]


def imported_modules(source: str, package: str = "") -> set[str]:
    """Return the dotted names that code imports, at its top or inside functions.

    ``from a import b`` counts as ``a`` and ``a.b``, since ``b`` may be a module.

    Parameters
    ----------
    source : str
        Python code.
    package : str
        The package that relative imports start from, such as ``biastransfer.finetune``.

    Examples
    --------
    >>> sorted(imported_modules("import numpy as np\\nfrom biastransfer import stats"))
    ['biastransfer', 'biastransfer.stats', 'numpy']
    >>> sorted(imported_modules("from ..stats import holm", "biastransfer.finetune"))
    ['biastransfer.stats', 'biastransfer.stats.holm']
    """
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            kept = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*kept, *([node.module] if node.module else [])])
            found.add(base)
            found.update(f"{base}.{alias.name}" for alias in node.names)
    return found


def library_files(source: str | Path, package_folder: Path = PACKAGE) -> list[Path]:
    """Return every file of the library that a notebook or module needs, directly or through others.

    Importing a package counts all its modules, since packages may choose among them at run time.

    Parameters
    ----------
    source : path
        An ``.ipynb`` or ``.py`` file.
    package_folder : path
        The folder of ``biastransfer``.

    Returns
    -------
    list of Path
        Sorted; without `source` itself.
    """
    source = Path(source).resolve()
    seen: set[Path] = set()
    waiting = list(_imported_files(source, package_folder))
    while waiting:
        file = waiting.pop()
        if file not in seen:
            seen.add(file)
            waiting.extend(_imported_files(file, package_folder))
    return sorted(seen - {source})


def content_hash(files: Iterable[Path]) -> str:
    """Return the hash, 16 hex digits, of the bytes of some ``files``, each read once in a process."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(_file_hash(file, file.stat().st_mtime_ns, file.stat().st_size))
    return digest.hexdigest()[:16]


@functools.cache
def _file_hash(file: Path, _time: int, _size: int) -> bytes:
    return hashlib.sha256(file.read_bytes()).digest()


def _imported_files(file: Path, package_folder: Path) -> Iterator[Path]:
    if file.suffix == ".ipynb":
        names = imported_modules("\n".join(code_of(file)))
    else:
        names = imported_modules(file.read_text(encoding="utf-8"), _package_of(file, package_folder))
    for name in names:
        yield from _files_of(name, package_folder)


def _files_of(name: str, package_folder: Path) -> Iterable[Path]:
    first, *rest = name.split(".")
    if first != package_folder.name:
        return []
    chain = [package_folder.joinpath(*rest[:depth], "__init__.py") for depth in range(max(1, len(rest)))]
    target = package_folder.joinpath(*rest)
    if (module := target.with_suffix(".py")).is_file():
        chain.append(module)
    elif rest and target.is_dir():
        chain.extend(sorted(target.rglob("*.py")))
    return [file for file in chain if file.is_file()]


def _package_of(file: Path, package_folder: Path) -> str:
    return ".".join(file.parent.relative_to(package_folder.parent).parts)


def _is_magic(line: str) -> bool:
    return line.lstrip().startswith(("%", "!"))
