"""Tidy tables of a run, written and read back."""

import pandas as pd
import pytest

from biastransfer import paths, results


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path))


def test_tables_come_back_as_they_were_written():
    first = pd.DataFrame({"seed": ["0", "mean"], "r": [0.5, None], "item": ["none", "NA"]})
    results.write("mine", "a", transfer=first, more=first)
    results.write("mine", "b", transfer=first.assign(r=1.0))
    assert paths.results("mine", "more-a.csv").is_file()
    back = results.read("mine", "transfer", ["a", "b"])
    assert back["r"].isna().tolist() == [False, True, False, False]
    assert back["item"].tolist() == ["none", "NA"] * 2, "words stay words"
    assert back["seed"].tolist() == ["0", "mean"] * 2
    assert back.index.tolist() == [0, 1, 2, 3]


def test_a_table_that_was_not_written_is_named():
    with pytest.raises(FileNotFoundError, match=r"run 'mine' must have written transfer-a\.csv; .*committed"):
        results.read("mine", "transfer", ["a"])
