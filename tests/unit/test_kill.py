"""Runs that are killed at random moments end as undisturbed ones; `tests/kill.py` does it oftener."""

import io
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from PIL import Image
from serving import serving

from biastransfer.attribution import evaluation_store

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import kill

PAGES = [  # of the smoke run: made in minutes; files, a finetune, and what depends on them
    "00-published",
    "01-analysis-sets-scenes-openimages",
    "02-finetune-squeezenet1_1-scenes-seed0",
    "03-similarity-scenes-openimages",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fetch", "embedding", "finetune", "attribution", "book"])
def test_four_kills_change_no_byte(name, tmp_path):
    with serving() as server:
        row = kill.torment(name, kill.targets(server, PAGES)[name], 4, 1, tmp_path)
    assert row["kills"] == 4
    assert row["files"] > 0
    assert row["same_files"]
    assert row["half_written"] == 0
    assert row["outlived"] == 0


def test_a_file_that_is_half_written_is_seen(tmp_path):
    maps, picture = tmp_path / "data" / "derived" / "attribution", io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 40, 3), np.uint8)).save(picture, "JPEG")
    (tmp_path / "good.json").write_text("{}")
    (tmp_path / "good.csv").write_text("a\n1\n")
    (tmp_path / "good.html").write_text("<html></html>\n")
    (tmp_path / "good.jpg").write_bytes(picture.getvalue())
    (tmp_path / ".x.csv.partial-00").write_text("a")
    evaluation_store.write_map(maps, "aa", np.zeros((2, 2)))
    evaluation_store.write_record(maps, "ab", {"metrics": {}})
    assert kill.half_written(tmp_path) == []
    cut = {
        "a.json": b'{"a"',
        "b.csv": b"a\n1",
        "c.safetensors": b"x" * 20,
        "d.ipynb": b"",
        "e.html": b"<html>",
        "f.jpg": picture.getvalue()[:-200],
        "g.pt": b"PK",
        "data/derived/attribution/aa/aa.npy": (maps / "aa" / "aa.npy").read_bytes()[:-1],
        "data/derived/attribution/ab/ab.json": b'{"metrics": {}}',
        "data/derived/embeddings/0/0.safetensors": b"",
    }
    for name, content in cut.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert sorted(line.partition(":")[0] for line in kill.half_written(tmp_path)) == sorted(cut)


def test_what_outlives_all_runs_is_counted_and_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(kill, "PATIENCE", 0.5)
    code = f"from pathlib import Path; import time; Path({str(tmp_path / 'up')!r}).touch(); time.sleep(60)"
    process = kill.start(kill.Target(["-c", code], ()), tmp_path)
    while not (tmp_path / "up").exists():  # a process just forked is not yet known by its folder
        assert process.poll() is None
        time.sleep(0.01)
    assert kill.outlived(tmp_path) == 1
    assert process.wait(10) == -signal.SIGKILL
    assert kill.outlived(tmp_path) == 0


def test_results_that_differ_or_lack_are_named(tmp_path):
    """A run that ends differently once it was killed."""
    code = (
        "from pathlib import Path; import time\n"
        "again = Path('seen').exists(); Path('seen').touch(); time.sleep(0 if again else 1)\n"
        "Path('r.csv').write_text('a\\n' + ('2' if again and 'killed' in str(Path.cwd()) else '1') + '\\n')"
    )
    row = kill.torment("own", kill.Target(["-c", code], ("*.csv",)), 1, 0, tmp_path)
    assert (row["kills"], row["ends"], row["files"]) == (1, 1, 1)
    assert not row["same_files"]


def test_a_row_that_is_not_asked_for_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path))
    monkeypatch.setattr(kill, "targets", lambda *_: dict.fromkeys(("one", "two", "three")))
    row = dict.fromkeys(kill.COLUMNS, 1) | {"same_files": True, "half_written": 0, "outlived": 0}
    monkeypatch.setattr(kill, "torment", lambda name, _, kills, *__: row | {"target": name, "kills": kills})
    for name, kills in (("two", "4"), ("one", "5"), ("two", "6")):
        assert kill.main(["--kills", kills, name]) == 0
    table = pd.read_csv(tmp_path / "data" / "results" / "checks" / "kills.csv")
    assert table[["target", "kills"]].values.tolist() == [["one", 5], ["two", 6]]


def test_a_book_of_some_pages_is_named_as_such(tmp_path):
    names = ["00-published", "01-analysis-sets-scenes-coco"]
    with serving() as server:
        book = kill.targets(server, names)["book"]
        assert book.pages.startswith("2 of ")
        whole = kill.targets(server)["book"].pages.split(" of ")
        assert whole[0] == whole[1]
        with pytest.raises(ValueError, match=r"pages must be of the smoke run: 00-published, .*\['nope'\]"):
            kill.targets(server, ["nope"])
    book.prepare(tmp_path)
    assert [
        page["page"] for page in yaml.safe_load((tmp_path / "runs" / "smoke.yaml").read_text())["pages"]
    ] == names
