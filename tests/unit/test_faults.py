"""Faults of the machine are told in one sentence or mended, and nothing that was there is lost."""

import re

import pandas as pd
import pytest
from faults import FAULTS
from hostile import happened

from biastransfer import paths


@pytest.mark.parametrize("one", FAULTS, ids=lambda one: f"{one.kind}: {one.what}")
def test_a_fault_ends_as_said(one, tmp_path, monkeypatch):
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path / "house" / "given"))
    outcome, sentence = happened(one, tmp_path / "house")
    assert outcome == one.outcome, sentence
    assert re.search(one.says, sentence), sentence


def test_the_books_table_is_of_these_faults():
    table = pd.read_csv(paths.root() / "data" / "results" / "checks" / "faults.csv")
    assert list(table[["kind", "what", "where", "outcome"]].itertuples(index=False, name=None)) == [
        (one.kind, one.what, one.reader, one.outcome) for one in FAULTS
    ]
    for one, sentence in zip(FAULTS, table["what_happened"]):
        assert re.search(one.says, sentence), (one.what, sentence)
