"""Parameters of a notebook: what a cell declares, what `check` refuses and what it says."""

import linecache

import pytest

from biastransfer import parameters
from biastransfer.parameters import ParameterError, check, declared, validate

CELL = """\
run: str = "smoke"  # name of the run
seed: int = 0  # of all sampling, allowed: >= 0
scale: float = 0.5  # share of the counts, allowed: 0..1
backbones: list[str] = ["random"]  # pretrained, allowed: random | squeezenet1_1
cap: int | None = None  # pictures a class, allowed: >= 1
committed: bool = False  # show committed numbers
"""
DEFAULTS = {
    "run": "smoke", "seed": 0, "scale": 0.5, "backbones": ["random"], "cap": None, "committed": False,
}  # fmt: skip


def notebook(*injected, **values):
    """Return the namespace of a notebook that ran the cell, then the injected cells."""
    return {**DEFAULTS, **values, "In": ["", CELL, *injected, "check(globals())"]}


def test_declarations_are_read_as_written():
    names = [parameter.name for parameter in declared(CELL)]
    assert names == list(DEFAULTS)
    assert str(declared(CELL)[3]) == CELL.splitlines()[3].replace('"', "'").replace(", allowed", "; allowed")


@pytest.mark.parametrize(
    "cell", ["seed = 0", "seed: int", "seed: int = 0\nprint(seed)", "import os", "!ls", ""]
)
def test_other_cells_declare_nothing(cell):
    assert declared(cell) == ()


def test_defaults_and_injected_values_pass():
    check(notebook())
    check(notebook("# Parameters\nseed = 3\nscale = 1\ncap = 5\n", seed=3, scale=1, cap=5))


def test_unknown_name_lists_the_valid_ones():
    with pytest.raises(ParameterError) as error:
        check(notebook("# Parameters\nsead = 1\n", sead=1))
    message = str(error.value)
    assert message.startswith(
        "this notebook has no parameter 'sead'; did you mean 'seed'?\nIts parameters:\n"
    )
    assert "  seed: int = 0  # of all sampling; allowed: >= 0" in message
    assert all(f"  {name}: " in message for name in DEFAULTS)


def test_unknown_name_far_from_all_gets_no_suggestion():
    with pytest.raises(ParameterError, match=r"has no parameter 'zzz'\.\nIts parameters"):
        check(notebook("# Parameters\nzzz = 1\n", zzz=1))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("seed", "1", r"seed must be of type int; got '1' \(str\)"),
        ("seed", True, r"seed must be of type int; got True \(bool\)"),
        ("seed", 1.0, r"seed must be of type int; got 1.0 \(float\)"),
        ("scale", True, r"scale must be of type float; got True \(bool\)"),
        ("scale", float("nan"), r"scale must be of type float; got nan \(float\)"),
        ("committed", 0, r"committed must be of type bool; got 0 \(int\)"),
        ("run", None, r"run must be of type str; got None \(NoneType\)"),
        ("backbones", "random", r"backbones must be of type list\[str\]; got 'random' \(str\)"),
        ("backbones", [1], r"backbones must be of type list\[str\]; got \[1\] \(list\)"),
        ("seed", -1, r"seed must be >= 0; got -1"),
        ("cap", 0, r"cap must be >= 1; got 0"),
        ("scale", 1.5, r"scale must be between 0 and 1; got 1.5"),
        (
            "backbones",
            ["random", "resnet51"],
            r"each element of backbones must be one of random, squeezenet1_1; got 'resnet51'",
        ),
    ],
)
def test_wrong_type_or_value(name, value, message):
    with pytest.raises(ParameterError, match=message):
        check(notebook(f"# Parameters\n{name} = {value!r}\n", **{name: value}))


@pytest.mark.parametrize(
    ("allowed", "good", "bad"),
    [("> 0", 0.1, 0.0), ("<= 2", 2, 3), ("< 2", 1, 2), ("0 | 0.5 | 1", 1.0, 0.2), ('"a" | "b"', "a", "c")],
)
def test_every_form_of_allowed(allowed, good, bad):
    kind = type(good).__name__
    validate(declared(f"x: {kind} = {good!r}  # allowed: {allowed}"), {"x": good})
    with pytest.raises(ParameterError, match="x must be"):
        validate(declared(f"x: {kind} = {good!r}  # allowed: {allowed}"), {"x": type(good)(bad)})


def test_all_complaints_come_at_once():
    with pytest.raises(ParameterError, match=r"seed must be >= 0; got -1.*; scale must be between"):
        validate(declared(CELL), {"seed": -1, "scale": 2.0})


def test_an_edited_parameters_cell_counts_as_it_now_stands():
    edited = CELL + "extra: int = 4  # new\n"
    namespace = {
        **DEFAULTS,
        "extra": 4,
        "In": ["", CELL, "# Parameters\nold = 1", "check(globals())", edited],
    }
    check(namespace)
    with pytest.raises(ParameterError, match="extra must be of type int"):
        check({**namespace, "extra": "4"})


def test_names_of_other_cells_are_none_of_its_business():
    check(notebook("anything = 1\n", anything=1))


def test_no_parameters_cell():
    with pytest.raises(
        ParameterError, match=r"needs a parameters cell run before it.*Run the notebook from its top"
    ):
        check({"In": ["", "seed = 1"]})


def test_unknown_annotation():
    with pytest.raises(ParameterError, match=r"type must be one of int, float, str, bool, None.*got complex"):
        validate(declared("z: complex = 0"), {"z": 0})


def test_what_is_declared_is_named_as_the_caller_says():
    with pytest.raises(ParameterError, match="03-similarity has no parameter 'b'"):
        validate(declared("a: int = 1"), {"b": 1}, where="03-similarity")
    assert parameters.INJECTED == "# Parameters"


def test_cells_are_found_where_a_client_keeps_no_history(monkeypatch):
    """nbval executes without history: `In` stays empty, what IPython compiled is in linecache."""
    sources = [CELL, "# Parameters\nsead = 1"]
    for number, source in enumerate(sources):
        entry = (len(source), None, source.splitlines(keepends=True), "cell")
        monkeypatch.setitem(linecache.cache, f"/tmp/ipykernel_1/{number}.py", entry)
    with pytest.raises(ParameterError, match="no parameter 'sead'"):
        check({**DEFAULTS, "sead": 1, "In": [""]})
