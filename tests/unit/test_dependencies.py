"""What a notebook or module needs of the library, on a library made up for the test."""

import json

import pytest

from biastransfer.graph.dependencies import code_of, imported_modules, library_files


@pytest.fixture
def library(tmp_path):
    """Return a package folder: report → stats, sets.folder → images; sets chooses at run time."""
    files = {
        "__init__.py": "",
        "stats.py": "import numpy",
        "images.py": "",
        "report.py": "from . import stats",
        "late.py": "def f():\n    from biastransfer.stats import holm\n    return holm",
        "sets/__init__.py": "import importlib",
        "sets/folder.py": "from ..images import read_rgb",
        "sets/scenes.py": "",
    }
    for name, code in files.items():
        path = tmp_path / "biastransfer" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    return tmp_path / "biastransfer"


def write_notebook(path, *cells):
    content = {"cells": [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]}
    path.write_text(json.dumps(content))
    return path


def needed(source, library):
    return [file.relative_to(library).as_posix() for file in library_files(source, library)]


def test_a_module_reaches_through_others_and_into_functions(library):
    assert needed(library / "report.py", library) == ["__init__.py", "stats.py"]
    assert needed(library / "late.py", library) == ["__init__.py", "stats.py"]
    assert needed(library / "stats.py", library) == []


def test_a_notebook_that_imports_a_package_needs_all_of_it(library, tmp_path):
    notebook = write_notebook(
        tmp_path / "n.ipynb", "%matplotlib inline\n!ls", "from biastransfer.sets import load_set"
    )
    assert needed(notebook, library) == [
        "__init__.py", "images.py", "sets/__init__.py", "sets/folder.py", "sets/scenes.py",
    ]  # fmt: skip


def test_a_notebook_without_the_library_needs_nothing_of_it(library, tmp_path):
    assert needed(write_notebook(tmp_path / "n.ipynb", "import numpy as np"), library) == []


def test_magics_are_blanked_and_nothing_else(tmp_path):
    notebook = write_notebook(tmp_path / "n.ipynb", "%matplotlib inline\nx = 7 % 2\n  !ls")
    assert code_of(notebook) == ["\nx = 7 % 2\n"]


def test_relative_imports_climb():
    assert imported_modules("from .. import stats", "biastransfer.sets") == {
        "biastransfer",
        "biastransfer.stats",
    }
    assert imported_modules("from .folder import read", "biastransfer.sets") == {
        "biastransfer.sets.folder",
        "biastransfer.sets.folder.read",
    }
