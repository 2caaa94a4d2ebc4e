"""Write data/results/checks/hostile.csv: what was handed to each reader, and what happened.

Run from the compendium's root: ``.venv/bin/python tests/hostile_table.py`` (about 20 seconds).
"""

import os
import sys
import tempfile
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent / "unit"))

import hostile_files  # noqa: F401
import hostile_texts  # noqa: F401
from hostile import ATTEMPTS, happened

from biastransfer import paths

COLUMNS = ["kind", "input", "reader", "outcome", "what_happened"]


def rows() -> list[tuple]:
    found = []
    for one in ATTEMPTS:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["BIASTRANSFER_ROOT"] = f"{folder}/house/given"
            os.chdir(folder)
            outcome, sentence = happened(one, Path(folder) / "house")
            found.append(
                (
                    one.kind,
                    one.what,
                    one.reader,
                    outcome,
                    sentence if len(sentence) <= 400 else f"{sentence[:400]}…",
                )
            )
    return found


if __name__ == "__main__":
    target = paths.results("checks", "hostile.csv")
    here = Path.cwd()
    table = pd.DataFrame(rows(), columns=COLUMNS)
    os.chdir(here)
    paths.write_csv(table, target)
    print(f"{len(table)} inputs: {table['outcome'].value_counts().to_dict()}")
