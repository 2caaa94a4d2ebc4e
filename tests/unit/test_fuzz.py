"""Parsers under made-up input: they answer, or refuse in their own words, and keep what must not change."""

import re
import string

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from biastransfer.analysis_sets.captions import FEMALE, MALE, caption_gender
from biastransfer.analysis_sets.choosing import Choice
from biastransfer.analysis_sets.openimages_files import descriptions, find, scan_labels, whole_files
from biastransfer.analysis_sets.review import reviewed
from biastransfer.attribution.boxes import Warp, as_boxes, through, union_area
from biastransfer.backbones import Transform
from biastransfer.graph.runs import RunError, load_pages
from biastransfer.parameters import ParameterError, declared, validate

bounded = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
WORDS = st.sampled_from([*sorted(MALE | FEMALE), "car", "man-made", "Woman's", "mankind", "boy.", "“lady”"])
CAPTION = st.one_of(st.text(max_size=40), st.lists(WORDS, max_size=4).map(" ".join))


@bounded
@given(st.lists(CAPTION, max_size=5), st.randoms())
@example(["\ud800", "\0man\0"], None)
def test_captions_name_what_they_name_in_any_order_and_case(captions, random):
    """The order and neutral captions change nothing; capitals do not; a gender more only adds."""
    found = caption_gender(captions)
    assert found in ("man", "woman", "both", None)
    shuffled = list(captions)
    if random is not None:
        random.shuffle(shuffled)
    assert caption_gender([*shuffled, "a car on a road"]) == found
    if all(one.isascii() for one in captions):
        assert caption_gender([one.upper() for one in captions]) == found
    assert caption_gender([*captions, "a man"]) == ("man" if found in (None, "man") else "both")
    alone = [caption_gender(one) for one in captions]
    both = "both" in alone or {"man", "woman"} <= set(alone)
    assert found == ("both" if both else next(filter(None, alone), None))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["page", "notebook", "parameters", "given", "after", "torch", "reads", "writes", "each", "x"]
)
ENTRIES = st.lists(st.dictionaries(KEYS, VALUES, max_size=5), max_size=3)


@pytest.fixture
def house(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path))
    (tmp_path / "runs").mkdir()
    return tmp_path


@bounded
@given(st.one_of(st.binary(max_size=80), st.text(alphabet=string.printable, max_size=80).map(str.encode)))
def test_a_run_file_of_any_bytes_is_refused_in_a_sentence(house, content):
    (house / "runs" / "mine.yaml").write_bytes(content)
    with pytest.raises(RunError, match=r"runs/mine\.yaml"):
        load_pages("mine")


@bounded
@given(ENTRIES, VALUES)
@example([{"page": "a", "notebook": "b", "each": 1}], None)
@example([{"page": "a", "notebook": "b", "each": {"x": 1}}], None)
@example([{"page": "a", "notebook": "b", "reads": 1}], None)
def test_a_run_file_of_any_entries_is_planned_or_refused(house, entries, threads):
    content = {"pages": entries, "threads": threads, "include": threads}
    (house / "runs" / "mine.yaml").write_text(yaml.safe_dump(content))
    try:
        assert load_pages("mine") == []
    except RunError as error:
        said = str(error)
        assert re.search(r"runs/mine\.yaml|RUN must be one of mine", said)


NAME = st.from_regex(r"[a-z_]{1,8}", fullmatch=True).filter(str.isidentifier)
DEFAULTS = st.one_of(
    st.integers(-9, 9), st.booleans(), st.text(max_size=6), st.lists(st.integers(0, 3), max_size=2)
)


@bounded
@given(
    st.text(max_size=60) | st.lists(st.sampled_from(list("a:=#\n \"'[]0|int.()")), max_size=40).map("".join)
)
def test_any_cell_declares_parameters_or_none(source):
    for parameter in declared(source):
        assert declared(str(parameter)) == (parameter,), "a declaration reads as it is written"


@bounded
@given(NAME, DEFAULTS, VALUES)
def test_a_value_is_taken_exactly_where_its_type_is_the_declared_one(name, default, value):
    kind = {int: "int", bool: "bool", str: "str", list: "list[int]"}[type(default)]
    try:
        known = declared(f"{name}: {kind} = {default!r}")
    except SyntaxError:
        return
    if not known:  # a keyword, such as `if`
        return
    validate(known, {name: default})
    fits = type(value) is type(default) and (kind != "list[int]" or all(type(one) is int for one in value))
    if fits:
        validate(known, {name: value})
        return
    with pytest.raises(ParameterError, match=rf"{name} must be of type|Its parameters"):
        validate(known, {name: value})


LINES = st.lists(
    st.text(alphabet="/m0a,\"'\n\r\0;ImageIDLabelNameConfidenceSource1.0é", max_size=40), max_size=6
)
HEAD = st.sampled_from(
    ["", "ImageID,Source,LabelName,Confidence\n", "\ufeffLabelName,DisplayName\n", "class,id,accept\n"]
)


@bounded
@given(HEAD, LINES)
def test_tables_of_any_text_are_read_or_refused_in_a_sentence(tmp_path, head, lines):
    file = tmp_path / "any.csv"
    file.write_bytes((head + "\n".join(lines)).encode())
    files = find(tmp_path, boxes=False)
    assert all(mid.startswith("/") for mid in descriptions(files.descriptions))
    try:
        with whole_files(tmp_path):
            said = scan_labels(files.labels).collect()
        assert said["present"].null_count() == 0
    except ValueError as error:
        refused = str(error)
        assert "must be whole CSV files" in refused
    rows = pd.DataFrame({"class": ["a"], "id": ["0"]})
    try:
        assert len(reviewed(Choice(rows, [], rows.iloc[:0]), file).chosen) <= 1
    except ValueError as error:
        refused = str(error)
        assert str(file) in refused


SIDE = st.integers(1, 400)


@bounded
@given(SIDE, SIDE, st.sampled_from([8, 96, 224]), st.floats(0.3, 1.0), st.data())
def test_boxes_carried_through_a_crop_are_where_their_corners_go(height, width, size, crop, data):
    x = sorted(data.draw(st.tuples(st.floats(0, width), st.floats(0, width))))
    y = sorted(data.draw(st.tuples(st.floats(0, height), st.floats(0, height))))
    if x[1] - x[0] < 1e-3 or y[1] - y[0] < 1e-3:
        return
    transform = data.draw(
        st.sampled_from([Transform(size, crop, "bilinear", (0,) * 3, (1,) * 3), Warp(size, size + 32)])
    )
    carried = through(transform, [x[0], y[0], x[1], y[1]], (height, width))
    assert len(carried.boxes) + carried.dropped == 1
    left, top, right, bottom = transform.crop_box(height, width)
    scale = np.array([size / (right - left), size / (bottom - top)] * 2)
    expected = np.clip((np.array([x[0], y[0], x[1], y[1]]) - [left, top, left, top]) * scale, 0, size)
    if len(carried.boxes):
        np.testing.assert_allclose(carried.boxes[0], expected, atol=1e-6)
    else:
        assert union_area(expected[None]) < 1e-3 * size * size


@bounded
@given(st.lists(st.lists(st.floats() | st.integers(-5, 5), min_size=3, max_size=5), max_size=3))
def test_boxes_of_any_numbers_are_taken_or_refused(boxes):
    try:
        found = as_boxes(boxes)
    except ValueError:
        return
    assert found.shape == (len(boxes), 4)
    assert (found[:, 2:] > found[:, :2]).all()
