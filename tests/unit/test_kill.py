"""Runs that are killed at random moments end as undisturbed ones; `tests/kill.py` does it oftener."""

import sys
from pathlib import Path

import pytest
from serving import serving

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import kill


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fetch", "embedding", "finetune", "attribution", "book"])
def test_four_kills_change_no_byte(name, tmp_path):
    with serving() as server:
        row = kill.torment(name, kill.targets(server)[name], 4, 1, tmp_path)
    assert row["kills"] == 4
    assert row["files"] > 0
    assert row["same_files"]
    assert row["half_written"] == 0


def test_a_file_that_is_half_written_is_seen(tmp_path):
    (tmp_path / "good.json").write_text("{}")
    (tmp_path / "good.csv").write_text("a\n1\n")
    (tmp_path / ".x.csv.partial-00").write_text("a")
    assert kill.half_written(tmp_path) == []
    for name, content in {
        "a.json": '{"a"',
        "b.csv": "a\n1",
        "c.safetensors": "x" * 20,
        "d.ipynb": "",
    }.items():
        (tmp_path / name).write_text(content)
    assert sorted(line.partition(":")[0] for line in kill.half_written(tmp_path)) == [
        "a.json",
        "b.csv",
        "c.safetensors",
        "d.ipynb",
    ]
