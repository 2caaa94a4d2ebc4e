"""Hostile input is refused in one sentence or handled as said, and leaves nothing where it should not."""

import re

import hostile_files  # noqa: F401
import hostile_texts  # noqa: F401
import pandas as pd
import pytest
from hostile import ATTEMPTS, happened

from biastransfer import paths


@pytest.mark.parametrize("one", ATTEMPTS, ids=lambda one: f"{one.kind}: {one.what}")
def test_what_is_tried_ends_as_said(one, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path / "house" / "given"))
    outcome, sentence = happened(one, tmp_path / "house")
    assert outcome == one.outcome, sentence
    assert re.search(one.says, sentence), sentence
    assert [file.name for file in tmp_path.iterdir()] == ["house"]
    assert [file.name for file in (tmp_path / "house").iterdir()] == ["given"]


def test_the_books_table_is_of_these_attempts():
    table = pd.read_csv(paths.root() / "data" / "results" / "checks" / "hostile.csv")
    assert list(table[["kind", "input", "reader", "outcome"]].itertuples(index=False, name=None)) == [
        (one.kind, one.what, one.reader, one.outcome) for one in ATTEMPTS
    ]
    for one, sentence in zip(ATTEMPTS, table["what_happened"]):
        assert re.search(one.says, sentence), (one.what, sentence)
