"""Faults of a machine, one attempt a function, as `hostile` has them: what failed, and what came of it.

Full and read-only disks are real ones, small file systems in memory; they take an administrator's rights.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import hostile
import numpy as np
import pytest
import torch
from house import CELL, write_notebook, write_run
from PIL import Image

from biastransfer import checkpoints, paths
from biastransfer.attribution.evaluation_store import read_map, read_record, write_map, write_record
from biastransfer.embed import cache, embed
from biastransfer.fetch.archives import unpack
from biastransfer.graph import build, execute
from biastransfer.graph.runs import RunError

FAULTS: list[hostile.Attempt] = []


def fault(kind: str, what: str, where: str, *, refused: str = "", handled: str = ""):
    """Register a function as a fault that must be told with these words, or mended as they say."""
    known = len(hostile.ATTEMPTS)
    register = hostile.attempt(kind, what, where, refused=refused, handled=handled)

    def moved(act):
        register(act)
        FAULTS.extend(hostile.ATTEMPTS[known:])
        del hostile.ATTEMPTS[known:]
        return act

    return moved


@contextlib.contextmanager
def disk(folder: Path, options: str):
    """Mount a small file system on a folder for the length of a block."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system takes an administrator's rights")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def nearly_full(folder: Path) -> None:
    """Leave 8 kB of a disk of 1 MiB."""
    (folder / "filling").write_bytes(bytes(2**20 - 12 * 4096))
    with contextlib.suppress(OSError), open(folder / "filling", "ab") as file:
        while True:
            file.write(bytes(4096))
            file.flush()
    with open(folder / "filling", "ab") as file:
        file.truncate(file.tell() - 8192)


def only(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir() if file.name != "filling")


@fault(
    "full disk",
    "a table is written",
    "paths.write_csv",
    refused="No space left on device; the table of before is whole",
)
def full_table(folder):
    import pandas as pd

    with disk(folder / "disk", "size=1m") as place:
        paths.write_csv(pd.DataFrame({"a": [1]}), place / "t.csv")
        nearly_full(place)
        try:
            paths.write_csv(pd.DataFrame({"a": np.arange(50_000)}), place / "t.csv")
        except OSError as error:
            assert (place / "t.csv").read_text() == "a\n1\n"
            assert only(place) == ["t.csv"]
            raise OSError(f"{error.strerror}; the table of before is whole") from error
        return "written"


def toy(seed: int = 0):
    """Return a small network as a backbone."""
    from biastransfer.backbones import Backbone, Transform

    torch.manual_seed(seed)
    layers = [
        torch.nn.Conv2d(3, 6, 3),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(6, 2),
    ]
    transform = Transform(16, 1.0, "bilinear", (0.5,) * 3, (0.5,) * 3)
    named = {"embedding": "2"}
    return Backbone(
        "toy", torch.nn.Sequential(*layers).eval(), transform, 6, tuple(named), "", (), named, "3"
    )


def pictures(folder: Path, n: int = 5) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    files = [folder / f"{k}.png" for k in range(n)]
    for file in files:
        Image.fromarray(rng.integers(0, 256, (20, 20, 3), dtype=np.uint8)).save(file)
    return list(map(str, files))


@contextlib.contextmanager
def cached_in(folder: Path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BIASTRANSFER_CACHE", str(folder))
        yield folder


@fault(
    "full disk",
    "embeddings are cached",
    "embed",
    handled="^all 40 vectors are there; embeddings were not cached: No space left",
)
def full_cache(folder):
    files = pictures(folder / "pictures", 40)
    with disk(folder / "disk", "size=1m") as place, cached_in(place):
        nearly_full(place)
        with open(place / "filling", "ab") as file:
            file.write(bytes(8192))
        found = embed(toy(), files)
        assert only(place) in ([], [only(place)[0]] if only(place) else [])
        return f"all {len(found.vectors)} vectors are there; {'; '.join(found.notes)}"


@fault(
    "full disk",
    "a checkpoint is saved",
    "checkpoints.save",
    refused="could not be written.*what was there stays whole|No space left",
)
def full_checkpoint(folder):
    with disk(folder / "disk", "size=1m") as place:
        checkpoints.save(toy(0), place / "best.safetensors")
        before = (place / "best.safetensors").read_bytes()
        nearly_full(place)
        with open(place / "filling", "ab") as file, contextlib.suppress(OSError):
            file.write(bytes(8192))
            file.flush()
        try:
            checkpoints.save(toy(1), place / "best.safetensors")
        finally:
            assert (place / "best.safetensors").read_bytes() == before
            assert only(place) == ["best.safetensors"]
        return "saved"


@fault(
    "full disk",
    "an archive is unpacked",
    "fetch",
    refused="the disk must have 3,000,000 bytes free to unpack 'a'",
)
def full_archive(folder):
    import zipfile

    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.writestr("a", os.urandom(3_000_000))
    with disk(folder / "disk", "size=1m") as place:
        try:
            unpack(folder / "a.zip", place)
        finally:
            assert only(place) == []
        return "unpacked"


def executed(folder: Path, cell: str, unfinished: Path) -> str:
    """Execute a page of one cell and return what is said of its failure."""
    write_notebook(folder, "01-a", CELL, cell)
    try:
        execute.execute(folder / "notebooks" / "01-a.ipynb", folder / "page.ipynb", unfinished, {"seed": 1})
    except execute.PageError as error:
        assert not (folder / "page.ipynb").exists()
        raise OSError(str(error).replace(str(folder) + "/", "")) from error
    return "executed"


@fault(
    "full disk", "a page is executed", "make book", refused="page failed: OSError: .*No space left on device"
)
def full_page(folder):
    with disk(folder / "disk", "size=1m") as place:
        return executed(folder, "for k in range(3): print('x' * 900_000)", place / "page.ipynb")


@fault(
    "full memory",
    "the kernel of a page is killed, as Linux does then",
    "make book",
    refused="page failed: DeadKernelError.*What was executed is kept in unfinished",
)
def killed_kernel(folder):
    return executed(folder, "import os; os.kill(os.getpid(), 9)", folder / "unfinished" / "page.ipynb")


@fault(
    "full memory",
    "a cell asks for more than there is",
    "make book",
    refused="page failed: .*MemoryError.*What was executed is kept",
)
def too_much(folder):
    cell = "import numpy as np; np.ones(2**50)"
    return executed(folder, cell, folder / "unfinished" / "page.ipynb")


SMALL = """
import resource, sys
from biastransfer.images import read_rgb
resource.setrlimit(resource.RLIMIT_AS, (resource.getrlimit(resource.RLIMIT_AS)[0],) * 2)
used = int(open('/proc/self/statm').read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + 60_000_000,) * 2)
try:
    read_rgb(sys.argv[1])
except Exception as error:
    print(type(error).__name__)
"""


@fault(
    "full memory",
    "a picture is decoded with too little left",
    "read_rgb",
    handled="^MemoryError, and not a damaged picture that would be left out",
)
def small_memory(folder):
    Image.new("RGB", (9000, 9000)).save(folder / "large.png")
    command = [sys.executable, "-c", SMALL, str(folder / "large.png")]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"{said.stdout.strip()}, and not a damaged picture that would be left out"


@fault(
    "read-only disk",
    "a run is to write its results",
    "make book",
    refused="results/mine must be a folder that can be written; Read-only file system",
)
def read_only_results(folder):
    write_notebook(folder, "01-a", CELL)
    write_run(folder, "mine", "pages:\n  - {page: 01-a, notebook: 01-a}\n")
    (folder / "profiles" / "local").mkdir(parents=True)
    (folder / "profiles" / "local" / "config.yaml").touch()
    with disk(folder / "data" / "results" / "mine", "ro"):
        return str(build.execute_pages("mine"))


@fault(
    "read-only disk",
    "embeddings are to be cached",
    "embed",
    handled="^all 5 vectors are there; embeddings were not cached: Read-only",
)
def read_only_cache(folder):
    files = pictures(folder / "pictures")
    with disk(folder / "disk", "ro") as place, cached_in(place):
        found = embed(toy(), files)
        return f"all {len(found.vectors)} vectors are there; {'; '.join(found.notes)}"


def flip(file: Path, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at % len(data)] ^= 1
    file.write_bytes(data)


@fault(
    "flipped bit",
    "in cached embeddings, each of 64 places",
    "embed",
    handled="^64 of 64 noticed and computed again with the same bits",
)
def flipped_embedding(folder):
    vectors = {f"{k:064x}": np.full(6, k, np.float32) for k in range(4)}
    noticed = 0
    with cached_in(folder / "cache"):
        for place in range(64):
            cache.store("key", vectors)
            [file] = (folder / "cache" / "key").glob("*.safetensors")
            flip(file, place * 131)
            found, notes = cache.load("key", vectors)
            noticed += found == {} and "were damaged; removed and computed again" in notes[0]
    with cached_in(folder / "other"):
        files = pictures(folder / "pictures")
        first = embed(toy(), files)
        [file] = (folder / "other").rglob("*.safetensors")
        flip(file, -5)
        again = embed(toy(), files)
        same = again.vectors.tobytes() == first.vectors.tobytes() and again.computed == 5
    return f"{noticed} of 64 noticed and computed again with {'the same' if same else 'other'} bits"


@fault(
    "flipped bit", "in the store of heat maps, each of 64 places", "evaluate", handled="^128 of 128 noticed"
)
def flipped_map(folder):
    noticed = 0
    for place in range(64):
        write_map(folder, "aa", np.arange(12.0).reshape(3, 4))
        write_record(folder, "aa", {"metrics": {"a": 0.25}})
        flip(folder / "aa" / "aa.npy", place * 7)
        flip(folder / "aa" / "aa.json", place * 5)
        noticed += (read_map(folder, "aa") is None) + (read_record(folder, "aa") == {})
    return f"{noticed} of 128 noticed"


@fault(
    "flipped bit",
    "in weights and description of a checkpoint, each of 64 places",
    "load_backbone",
    handled="^64 of 64 refused",
)
def flipped_checkpoint(folder):
    refused = 0
    for place in range(64):
        file = checkpoints.save(toy(), folder / "best.safetensors")
        flip(file, 8 + place * (file.stat().st_size - 9) // 63)
        try:
            checkpoints.read(file)
        except ValueError:
            refused += 1
    return f"{refused} of 64 refused"


HOLDER = """
import sys, time
from pathlib import Path
from biastransfer.graph.locks import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


@fault(
    "two at once",
    "two runs in one folder",
    "make book",
    handled="^the second says that it waits, waits, and then runs",
)
def two_runs(folder):
    write_notebook(folder, "01-a", CELL)
    write_run(folder, "mine", "pages:\n  - {page: 01-a, notebook: 01-a}\n")
    said = []
    command = [sys.executable, "-c", HOLDER, str(paths.run_lock()), "0.5"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first,
        pytest.MonkeyPatch.context() as patch,
    ):
        assert first.stdout.readline() == "held\n"
        patch.setattr(build, "_say_waiting", lambda: said.append(time.monotonic()))

        def at_work(*_):
            said.append(time.monotonic())
            raise RunError("reached")

        patch.setattr(build, "execute_pages", at_work)
        build.main(["--run", "mine"])
    assert len(said) == 2, said
    assert first.returncode == 0
    return "the second says that it waits, waits, and then runs"


@fault(
    "two at once",
    "the first is killed while it holds the folder",
    "make book",
    handled="^the second goes on at once",
)
def killed_holder(folder):
    from biastransfer.graph.locks import locked

    command = [sys.executable, "-c", HOLDER, str(folder / "lock"), "60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout.readline() == "held\n"
        first.send_signal(signal.SIGKILL)
        first.wait()
        with locked(folder / "lock", on_wait=lambda: pytest.fail("the lock outlived its holder")):
            return "the second goes on at once"


@fault(
    "clock",
    "files of the cache are from the future, then from 1980",
    "embed",
    handled="^nothing is computed twice: 5, 0 and 0 pictures",
)
def cache_times(folder):
    files, found = pictures(folder / "pictures"), []
    with cached_in(folder / "cache"):
        for moment in (None, time.time() + 10**8, 315_532_800):
            if moment:
                for file in (folder / "cache").rglob("*"):
                    os.utime(file, (moment, moment))
            found.append(embed(toy(), files).computed)
    return f"nothing is computed twice: {found[0]}, {found[1]} and {found[2]} pictures"
