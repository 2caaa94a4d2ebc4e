"""Kill runs with SIGKILL at random moments, run them again, and compare with an undisturbed run, byte for byte.

``.venv/bin/python tests/kill.py [--kills 5] [--seed 0] [fetch embedding finetune attribution book]`` from the
compendium's root writes data/results/checks/kills.csv, one row a target. With five kills each it takes about
three quarters of an hour on two cores, most of it the book. Every other kill takes the whole group of processes, the others
the first process only, so that a kernel outlives it for a while. Rows of targets that are not asked for stay.
``--pages 00-published 02-finetune-squeezenet1_1-scenes-seed0`` makes the book of these pages of the smoke run alone,
where the machine is too slow for all; the table says of how many it was made.
"""

# ruff: noqa: E501

import argparse
import contextlib
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
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
import safetensors
import yaml
from PIL import Image

from biastransfer import paths
from biastransfer.attribution.evaluation_store import read_map, read_record
from biastransfer.graph.runs import load_pages

sys.path.insert(0, str(Path(__file__).resolve().parent / "unit"))
from serving import serving

COLUMNS = [
    "target",
    "pages",  # of the book, and how many the run has; empty elsewhere
    "kills",
    "ends",  # runs let go on to their end after kills, and compared
    "files",  # results of a run
    "same_files",
    "half_written",
    "outlived",  # processes that were there long after all had ended
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
PATIENCE = 15.0  # seconds in which whatever outlived a kill must have ended


@dataclass(frozen=True)
class Target:
    """What is run in a folder, and which files are its results."""

    command: list[str]
    results: tuple[str, ...]
    prepare: Callable[[Path], None] = lambda root: None
    pages: str = ""
    final: bool = True  # a result that is there has its last bytes; a finetune replaces its files each epoch


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


def house(root: Path, pages: Sequence[str] = ()) -> None:
    """Copy what `make book` needs; with ``pages`` the smoke run has these alone."""
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
    if pages:
        file = root / "runs" / "smoke.yaml"
        run = yaml.safe_load(file.read_text())
        run["pages"] = [page for page in run["pages"] if page["page"] in pages]
        file.write_text(yaml.safe_dump(run, sort_keys=False))


def targets(server, pages: Sequence[str] = ()) -> dict[str, Target]:
    """Return what is killed, by name; ``server`` is asked by the fetch, the book has ``pages``, or all."""
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

    known = [page.name for page in load_pages("smoke")]
    if unknown := set(pages) - set(known):
        raise ValueError(f"pages must be of the smoke run: {', '.join(known)}; got {sorted(unknown)}.")
    checkpoints = "data/derived/checkpoints/**/*.safetensors"
    return {
        "fetch": Target(["-c", FETCHING], ("data/raw/in/[abc]",), listed),
        "embedding": Target(["-c", EMBEDDING], ("data/results/**/*.csv",)),
        "finetune": Target(
            ["-m", "biastransfer.cli", "finetune", *FINETUNING],
            ("data/results/**/*.csv", checkpoints),
            final=False,
        ),
        "attribution": Target(["-c", ATTRIBUTION], ("data/results/**/*.csv",)),
        "book": Target(
            ["-m", "biastransfer.graph.build", "--run", "smoke"],
            ("data/results/smoke/**/*.csv", checkpoints, "_build/html/**/*.html"),
            partial(house, pages=pages),
            final=False,
            pages=f"{len(set(pages) & set(known)) or len(known)} of {len(known)}",
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
    """Return the files under their own names that cannot be read whole.

    Passed over: temporary files, notebooks at work (``unfinished``), and a rendered book that is marked as
    unfinished, which the next run renders anew.
    """
    broken = []
    rendering = (root / "_build" / ".unfinished").exists()
    for file in root.rglob("*"):
        inside = file.relative_to(root)
        passed = {"unfinished", "lib", ".snakemake", *(["_build"] if rendering else [])}
        if ".partial-" in inside.as_posix() or passed & set(inside.parts) or not file.is_file():
            continue
        try:
            if problem := _problem(file, inside):
                broken.append(f"{inside}: {problem}")
        except FileNotFoundError:  # replaced meanwhile by what outlived the kill
            continue
        except (ValueError, OSError, zipfile.BadZipFile, safetensors.SafetensorError) as error:
            broken.append(f"{inside}: {error}")
    return broken


def _problem(file: Path, inside: Path) -> str:
    """Return what is wrong with a file, or raise what its reader raises."""
    if inside.is_relative_to("data/derived/attribution"):  # sealed by a hash
        folder, key = file.parent.parent, file.stem
        whole = read_map(folder, key) is not None if file.suffix == ".npy" else read_record(folder, key)
        return "" if whole else "its seal is broken"
    if inside.is_relative_to("data/derived/embeddings") and paths.sha256(file) != file.stem:
        return "its name is not its hash"
    if file.suffix in (".json", ".ipynb"):
        json.loads(file.read_bytes())
    elif file.suffix == ".safetensors":
        with safetensors.safe_open(file, framework="np"):
            pass
    elif file.suffix == ".pt":
        with zipfile.ZipFile(file) as archive:
            return f"{archive.testzip()} in it is damaged" if archive.testzip() else ""
    elif file.suffix in (".jpg", ".png"):
        with Image.open(file) as picture:
            picture.load()
    elif file.suffix == ".csv" and file.stat().st_size and not file.read_bytes().endswith(b"\n"):
        return "its last line is cut"
    elif file.suffix == ".html" and "_static" not in inside.parts:
        return "" if file.read_bytes().rstrip().endswith(b"</html>") else "its end is missing"
    return ""


def unlike(found: dict[str, bytes], expected: dict[str, bytes]) -> list[str]:
    """Return the names of results that are not what the undisturbed run made."""
    return [
        f"{name}: not the undisturbed run's" for name, data in found.items() if expected.get(name) != data
    ]


def outlived(root: Path) -> int:
    """Return how many processes of a folder's runs are there although all had time to end; end them."""
    waited = time.monotonic() + PATIENCE
    while (left := _at_work(root)) and time.monotonic() < waited:
        time.sleep(0.2)
    for process in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return len(left)


def _at_work(root: Path) -> list[int]:
    """Return the processes, by id, that were started with this folder as their root."""
    mark, found = f"BIASTRANSFER_ROOT={root}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended, or is another user's
            if mark in (folder / "environ").read_bytes().split(
                b"\0"
            ):  # empty for one that only waits to be reaped
                found.append(int(folder.name))
    return found


def torment(name: str, target: Target, kills: int, seed: int, folder: Path) -> dict:
    """Run a target undisturbed, then kill it so many times; return its row of the table."""
    draws, root = random.Random(f"{name} {seed}"), folder / name / "undisturbed"
    root.mkdir(parents=True)
    target.prepare(root)
    began = time.monotonic()
    finish(target, root)
    seconds = time.monotonic() - began
    expected, done, ends, broken, wrong = results(target, root), 0, 0, [], []
    outlivers = outlived(root)
    while done < kills or ends == 0:
        root = folder / name / f"killed-{ends}"
        root.mkdir()
        target.prepare(root)
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
                broken += unlike(results(target, root), expected) if target.final else []
        finish(target, root)
        ends += 1
        outlivers += outlived(root)
        broken += half_written(root)
        found = results(target, root)
        wrong += unlike(found, expected) + [f"{one}: missing" for one in set(expected) - set(found)]
    left = {file for file in (folder / name).rglob("*.partial-*") if "lib" not in file.parts}
    for problem in broken + wrong:
        print(f"  {problem}")
    values = [
        name,
        target.pages,
        done,
        ends,
        len(expected),
        not wrong,
        len(set(broken)),
        outlivers,
        len(left),
    ]
    return dict(zip(COLUMNS, [*values, round(seconds, 1)]))


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks; return 1 where a result differs or a file was left half-written."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "targets", nargs="*", default=["fetch", "embedding", "finetune", "attribution", "book"]
    )
    parser.add_argument("--pages", nargs="+", default=[], help="of the smoke run: the book has these alone")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="leave the folders in which it was run")
    given = parser.parse_args(arguments)
    file = paths.results("checks", "kills.csv")
    folder, fine = Path(tempfile.mkdtemp(prefix="killed-")), True
    with serving() as server:
        for name, target in (all_of := targets(server, given.pages)).items():
            if name in given.targets:
                row = torment(name, target, given.kills, given.seed, folder)
                fine &= row["same_files"] and not row["half_written"] and not row["outlived"]
                print(row, flush=True)
                # read only now: another target may have been killed meanwhile
                known = pd.read_csv(file, keep_default_na=False).to_dict("records") if file.exists() else []
                rows = {one["target"]: one for one in [*known, row]}
                ordered = [rows[one] for one in all_of if one in rows]
                paths.write_csv(pd.DataFrame(ordered, columns=COLUMNS), file)
    if not given.keep:
        shutil.rmtree(folder)
    return not fine


if __name__ == "__main__":
    sys.exit(main())
