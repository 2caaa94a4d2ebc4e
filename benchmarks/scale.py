"""Time and memory of the measures on files, from a thousand to a million synthetic pictures.

python benchmarks/scale.py [--most 1000000]

Vectors of 256 dimensions, float32, two stages of sixteen classes, lie in files. Each measure is taken in a
process of its own; its memory is that process's peak less that of one that measures nothing, its seconds are
the processor's. The curves go to data/results/checks/scale.csv.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import record

from biastransfer import large, paths
from biastransfer.similarity import items

SIZES = [1_000, 10_000, 100_000, 300_000, 1_000_000]
WIDTH, RESAMPLES = 256, 20
OBJECTS = ["car", "sports", "fashion", "mammal"]
CLASSES = [
    "man",
    "woman",
    "random",
    "stop sign",
    *(f"{o}{a}" for o in OBJECTS for a in ("", "+man", "+woman")),
]
COLUMNS = ["pictures", "measure", "seconds", "memory_mib", "vectors_mib"]


def write_stage(file: Path, n: int, stage: int) -> None:
    """Write (n, 256) vectors: sixteen centres, of which the second stage moves each a little."""
    rng = np.random.default_rng([1, stage])
    centres = np.random.default_rng(0).normal(size=(16, WIDTH)) + 0.5 * stage * rng.normal(size=(16, WIDTH))
    out = np.lib.format.open_memmap(file, "w+", np.float32, (n, WIDTH))
    for start in range(0, n, 10_000):
        rows = np.arange(start, min(n, start + 10_000))
        out[rows] = centres[rows * 16 // n] + 2 * rng.standard_normal((len(rows), WIDTH), dtype=np.float32)
    out.flush()


def classes(file: Path) -> dict[str, np.ndarray]:
    """Return class → its rows of a file, unread."""
    whole = large.vectors(file)
    edges = [-(-k * len(whole) // 16) for k in range(17)]
    return {name: whole[low:high] for name, low, high in zip(CLASSES, edges, edges[1:])}


def measure(folder: Path, name: str) -> float:
    """Return the processor seconds of one measure."""
    before, after = classes(folder / "before.npy"), classes(folder / "after.npy")
    wanted = [item for part in items(CLASSES) for item in part]
    start = time.process_time()
    if name == "similarity":
        large.similarities({one: large.class_sums(z, one) for one, z in before.items()}, wanted)
    elif name == "bias transfer":
        large.bias_transfer(before, after, wanted)
    elif name == f"bias transfer, {RESAMPLES} resamples":
        large.bias_transfer(before, after, wanted, resamples=RESAMPLES)
    elif name == "association":
        large.association_test(*(before[one] for one in ("man", "woman", "car", "sports")))
    return time.process_time() - start


MEASURES = ["nothing", "similarity", "bias transfer", f"bias transfer, {RESAMPLES} resamples", "association"]


def in_a_process(folder: Path, name: str) -> tuple[float, float]:
    """Return the seconds of a measure in a process of its own, and that process's peak memory in MiB."""
    done = subprocess.run(
        [sys.executable, __file__, "--one", name, str(folder)], capture_output=True, text=True, check=True
    )
    return tuple(json.loads(done.stdout))


def peak_memory() -> float:
    """Return the most memory that this process has held, in MiB (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024


def slope(table: pd.DataFrame) -> float:
    """Return the exponent of seconds over pictures from 100,000 on, where fixed costs are small."""
    rows = table[table["pictures"] >= 100_000]
    return float(np.polyfit(np.log(rows["pictures"]), np.log(rows["seconds"]), 1)[0])


def draw() -> None:
    """Draw the curves of data/results/checks/scale.csv beside it."""
    import matplotlib as mpl

    from biastransfer import plots

    plots.set_style()
    mpl.rcParams["svg.hashsalt"] = "scale"  # the same numbers give the same file
    figure = plots.growth(pd.read_csv(paths.results("checks", "scale.csv")))
    with paths.replacing(paths.results("checks", "scale.svg")) as partial:
        figure.savefig(partial, format="svg", metadata={"Date": None})


def main(most: int) -> None:
    rows = []
    for n in [size for size in SIZES if size <= most]:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            for stage, name in enumerate(("before", "after")):
                write_stage(folder / f"{name}.npy", n, stage)
            base = in_a_process(folder, "nothing")[1]
            for name in MEASURES[1:]:
                seconds, peak = in_a_process(folder, name)
                rows.append(
                    (n, name, round(seconds, 4), round(peak - base, 1), round(n * WIDTH * 4 / 2**20, 1))
                )
                print(*rows[-1], flush=True)
    table = pd.DataFrame(rows, columns=COLUMNS)
    slopes = {name: round(slope(part), 3) for name, part in table.groupby("measure")}
    table["slope"] = table["measure"].map(slopes)
    facts = {"machine": record.machine(), "commit": record.commit()}
    paths.write_csv(table.assign(**facts), paths.results("checks", "scale.csv"))
    draw()
    for name, part in table.groupby("measure", sort=False):
        last = part.iloc[-1]
        note = "1 is linear; 100,000 pictures and more"
        record.ratio(f"{name}: exponent of processor time over pictures", slope(part), "≤ 1.1", note)
        note = f"{last['pictures']:,} pictures"
        record.ratio(
            f"{name}: peak memory / one stage's vectors", last["memory_mib"] / last["vectors_mib"], "", note
        )
    record.write(__file__, clock="processor", dimensions=WIDTH)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=SIZES[-1])
    parser.add_argument("--draw", action="store_true", help="draw what was measured, measure nothing")
    parser.add_argument("--one", nargs=2, metavar=("MEASURE", "FOLDER"))
    given = parser.parse_args()
    if given.one:
        seconds = measure(Path(given.one[1]), given.one[0])
        print(json.dumps([seconds, peak_memory()]))
    elif given.draw:
        draw()
    else:
        main(given.most)
