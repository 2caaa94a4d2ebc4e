"""Kill runs with SIGKILL at random moments, run them again, and compare with an undisturbed run, byte for byte.

``.venv/bin/python tests/kill.py [--kills 5] [--seed 0] [fetch embedding finetune attribution book]`` from the
compendium's root writes data/results/checks/kills.csv, one row a target. With five kills each it takes about
half an hour on two cores, most of it the book. Every other kill takes the whole group of processes, the others
the first process only, so that a kernel outlives it for a while.
"""

# ruff: noqa: E501

import argparse
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import safetensors

from biastransfer import paths

sys.path.insert(0, str(Path(__file__).resolve().parent / "unit"))
from serving import serving

COLUMNS = [
    "target",
    "kills",
    "restarts",
    "same_files",
    "files",
    "half_written",
    "left_over",
    "seconds_undisturbed",
]
CLOCKS = ["seconds", "map_seconds"]  # columns that no two runs share
HOUSE = (
    "Snakefile",
    "requirements.lock",
    "pyproject.toml",
    "_config.yml",
    "runs",
    "notebooks",
    "profiles",
    "book",
)
SLOW = 400  # requests that the server answers slowly


@dataclass(frozen=True)
class Target:
    """What is run in a folder, and which files are its results."""

    command: list[str]
    results: tuple[str, ...]
    prepare: Callable[[Path], None] = lambda root: None


EMBEDDING = """
import pandas as pd
from biastransfer import paths
from biastransfer.analysis_sets import load_set
from biastransfer.backbones import load_backbone
from biastransfer.embed import embed
pictures = load_set("scenes", root=paths.raw("scenes"), scale=0.3)
found = embed(load_backbone("squeezenet1_1"), pictures)
paths.write_csv(pd.DataFrame(found.vectors).assign(id=found.ids), paths.results("own", "vectors.csv"))
"""
ATTRIBUTION = """
from biastransfer import paths
from biastransfer.attribution import evaluate
from biastransfer.attribution.picture_sources import scene_pictures
from biastransfer.backbones import load_backbone
pictures = scene_pictures([("man", "car"), ("woman", "car"), ("car",)]).pictures
rows = evaluate(load_backbone("squeezenet1_1"), pictures, {"rise": {"n_samples": 40}, "sliding_patch": {"stride": 56}},
                ["black", "blur"], ["deletion", "insertion"])
paths.write_csv(rows, paths.results("own", "attribution.csv"))
"""
FETCHING = """
import sys
from biastransfer import paths
from biastransfer.fetch import fetch
report = fetch(["all"], root=paths.raw(), sources=paths.sources(), backoff=0.01, workers=2)
sys.exit(bool(report.counts["failed"]))
"""
FINETUNING = ["--backbone", "squeezenet1_1", "--target", "scenes", "--recipe", "smoke", "--run", "smoke"]


def house(root: Path) -> None:
    """Copy what `make book` needs."""
    for name in HOUSE:
        source = paths.root() / name
        kept = shutil.ignore_patterns("results")
        (
            shutil.copytree(source, root / name, ignore=kept)
            if source.is_dir()
            else shutil.copy(source, root / name)
        )
    shutil.copytree(paths.published(), root / "data" / "published")
    shutil.copytree(paths.results("released"), root / "data" / "results" / "released")
    shutil.copytree(paths.results("checks"), root / "data" / "results" / "checks")
    shutil.copy(paths.sources(), root / "data" / "sources.toml")
    (root / "lib").symlink_to(paths.root() / "lib")


def targets(server) -> dict[str, Target]:
    """Return what is killed, by name; ``server`` is asked by the fetch."""
    data = random.Random(0).randbytes(300_000)
    entries = []
    for name in ("a", "b", "c"):
        server.files[f"/{name}"] = data
        server.tricks[f"/{name}"] = ["slow"] * SLOW
        entries.append(
            f'[files.{name}]\nurl = "{server.url}/{name}"\npath = "in/{name}"\nlicence = "x"\nuse = "y"\n'
            f'group = ["all"]\nbytes = {len(data)}\n'
        )

    def listed(root: Path) -> None:
        (root / "data").mkdir(parents=True)
        (root / "data" / "sources.toml").write_text("\n".join(entries))

    checkpoints = "data/derived/checkpoints/**/*.safetensors"
    return {
        "fetch": Target(["-c", FETCHING], ("data/raw/in/*",), listed),
        "embedding": Target(["-c", EMBEDDING], ("data/results/**/*.csv",)),
        "finetune": Target(
            ["-m", "biastransfer.cli", "finetune", *FINETUNING], ("data/results/**/*.csv", checkpoints)
        ),
        "attribution": Target(["-c", ATTRIBUTION], ("data/results/**/*.csv",)),
        "book": Target(
            ["-m", "biastransfer.graph.build", "--run", "smoke"],
            ("data/results/smoke/**/*.csv", checkpoints, "_build/html/index.html"),
            house,
        ),
    }


def start(target: Target, root: Path) -> subprocess.Popen:
    environment = {
        **os.environ,
        "BIASTRANSFER_ROOT": str(root),
        "OMP_NUM_THREADS": "1",
        "NO_PROXY": "*",
        "no_proxy": "*",
    }
    environment.pop("BIASTRANSFER_CACHE", None)
    with open(root / "said.txt", "ab") as said:
        command = [sys.executable, *target.command]
        return subprocess.Popen(
            command, cwd=root, env=environment, stdout=said, stderr=said, start_new_session=True
        )


def finish(target: Target, root: Path) -> None:
    if start(target, root).wait():
        raise RuntimeError(
            f"{target.command} failed; the last it said:\n{(root / 'said.txt').read_text()[-2000:]}"
        )


def results(target: Target, root: Path) -> dict[str, bytes]:
    """Return the bytes of the results by name: of CSVs without the columns of clocks, of pages their being there."""
    files = sorted({file for pattern in target.results for file in root.glob(pattern) if file.is_file()})
    return {
        file.relative_to(root).as_posix(): _bytes(file) for file in files if not file.name.startswith(".")
    }


def _bytes(file: Path) -> bytes:
    data = file.read_bytes()
    if file.suffix == ".html":
        return b"a page"
    if file.suffix == ".csv" and any(clock.encode() in data.partition(b"\n")[0] for clock in CLOCKS):
        table = pd.read_csv(io.BytesIO(data), dtype=str, keep_default_na=False)
        return table.drop(columns=[name for name in CLOCKS if name in table]).to_csv(index=False).encode()
    return data


def half_written(root: Path) -> list[str]:
    """Return the files under their own names that cannot be read whole."""
    broken = []
    for file in root.rglob("*"):
        if (
            not file.is_file()
            or ".partial-" in file.as_posix()
            or {"unfinished", "lib", ".snakemake"} & set(file.parts)
        ):
            continue
        try:
            if file.suffix in (".json", ".ipynb"):
                json.loads(
                    file.read_bytes().splitlines()[0] if "attribution" in file.parts else file.read_bytes()
                )
            elif file.suffix == ".safetensors":
                with safetensors.safe_open(file, framework="np"):
                    pass
            elif file.suffix == ".csv" and file.stat().st_size and not file.read_bytes().endswith(b"\n"):
                raise ValueError("its last line is cut")
        except (ValueError, OSError, IndexError, safetensors.SafetensorError) as error:
            broken.append(f"{file.relative_to(root)}: {error}")
    return broken


def torment(name: str, target: Target, kills: int, seed: int, folder: Path) -> dict:
    """Run a target undisturbed, then kill it so many times; return its row of the table."""
    draws, root = random.Random(f"{name} {seed}"), folder / name / "undisturbed"
    root.mkdir(parents=True)
    target.prepare(root)
    began = time.monotonic()
    finish(target, root)
    seconds = time.monotonic() - began
    expected, done, restarts, broken, same = results(target, root), 0, 0, [], True
    while done < kills or restarts == 0:
        root = folder / name / f"killed-{restarts}"
        root.mkdir()
        target.prepare(root)
        restarts += 1
        while done < kills:
            process = start(target, root)
            try:
                process.wait(draws.uniform(0.05, 1.0) * seconds)
                break  # it was done before: another folder
            except subprocess.TimeoutExpired:
                (os.killpg if done % 2 else os.kill)(process.pid, signal.SIGKILL)
                process.wait()
                done += 1
                broken += half_written(root)
        finish(target, root)
        broken += half_written(root)
        same &= results(target, root) == expected
    left = len({file for file in root.rglob("*.partial-*") if "/lib/" not in file.as_posix()})
    for problem in broken:
        print(f"  {problem}")
    values = [name, done, restarts, same, len(expected), len(set(broken)), left, round(seconds, 1)]
    return dict(zip(COLUMNS, values))


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks; return 1 where a result differs or a file was left half-written."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "targets", nargs="*", default=["fetch", "embedding", "finetune", "attribution", "book"]
    )
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="leave the folders in which it was run")
    given = parser.parse_args(arguments)
    file = paths.results("checks", "kills.csv")
    known = pd.read_csv(file).set_index("target", drop=False).to_dict("index") if file.exists() else {}
    folder, fine = Path(tempfile.mkdtemp(prefix="killed-")), True
    with serving() as server:
        for name, target in targets(server).items():
            if name in given.targets:
                row = torment(name, target, given.kills, given.seed, folder)
                known[name] = row
                fine &= row["same_files"] and not row["half_written"]
                print(row, flush=True)
                paths.write_csv(pd.DataFrame([known[one] for one in targets(server) if one in known]), file)
    if not given.keep:
        shutil.rmtree(folder)
    return not fine


if __name__ == "__main__":
    sys.exit(main())
