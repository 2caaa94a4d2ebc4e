"""Write data/results/checks/hostile.csv and faults.csv: what was tried, and what happened.

Run from the compendium's root: ``.venv/bin/python tests/hostile_table.py`` (about a minute), as an
administrator, who may mount the small disks of the faults.
"""

import os
import sys
import tempfile
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent / "unit"))

import hostile_files  # noqa: F401
import hostile_texts  # noqa: F401
from faults import FAULTS
from hostile import ATTEMPTS, happened

from biastransfer import paths

TABLES = {
    "hostile": (ATTEMPTS, ["kind", "input", "reader", "outcome", "what_happened"]),
    "faults": (FAULTS, ["kind", "what", "where", "outcome", "what_happened"]),
}


def rows(attempts) -> list[tuple]:
    found = []
    for one in attempts:
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
    here = Path.cwd()
    targets = {name: paths.results("checks", f"{name}.csv") for name in TABLES}
    for name, (attempts, columns) in TABLES.items():
        table = pd.DataFrame(rows(attempts), columns=columns)
        os.chdir(here)
        paths.write_csv(table, targets[name])
        print(f"{len(table)} {name}: {table['outcome'].value_counts().to_dict()}")
