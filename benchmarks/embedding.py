"""Embeddings from picture files against the bare forward pass and against the usual script, in one run.

    python benchmarks/embedding.py [--backbone efficientnet_lite0] [--pictures FOLDER] [--rounds 5]

The bare forward pass runs the untouched network (channels_last, inference mode, no head) on tensors that lie
ready, at the best of several batch sizes. The usual script decodes one picture after another and runs NCHW
batches of 32, in a process of its own with the C library's allocator as it comes. Prints each ratio beside
what it must be.
"""

import argparse
import copy
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import record
import torch
from PIL import Image

from biastransfer.backbones import Backbone, forward_layer, load_backbone
from biastransfer.embed import embed
from biastransfer.images import read_rgb

BATCH_SIZES = (1, 2, 4, 8, 16)


def bare(backbone: Backbone, x: torch.Tensor, batch_size: int) -> torch.Tensor:
    with torch.inference_mode():
        return torch.cat([forward_layer(backbone, part) for part in x.split(batch_size)])


def usual_script(backbone: Backbone, files: list[str]) -> torch.Tensor:
    found = []
    with torch.inference_mode():
        for start in range(0, len(files), 32):
            batch = torch.stack([backbone.transform(read_rgb(file)) for file in files[start : start + 32]])
            found.append(forward_layer(backbone, batch.contiguous()))
    return torch.cat(found)


class UsualProcess:
    """The usual script in a process that loads the network once and waits for the word to go."""

    def __init__(self, name: str, files: list[str], clock: str):
        command = [sys.executable, __file__, "--usual", name, clock, *files]
        # glibc's own default: a variable that is set keeps load_backbone from changing the allocator
        environment = os.environ | {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=7"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, env=environment, text=True, **pipes)

    def seconds(self) -> float:
        """Run it once."""
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self) -> None:
        self.process.communicate()


def usual(name: str, clock: str, *files: str) -> None:
    """Run the usual script for each line that comes in, and print its seconds."""
    backbone = load_backbone(name)
    for _ in sys.stdin:
        started = getattr(time, clock)()
        usual_script(backbone, list(files))
        print(getattr(time, clock)() - started, flush=True)


def rates(cases: dict, count: int, rounds: int, clock) -> dict[str, float]:
    """Return the median pictures a second of calls taken in turn, after one round to warm up.

    A call that returns seconds has measured itself.
    """
    taken = {name: [] for name in cases}
    for _ in range(rounds + 1):
        for name, work in cases.items():
            started = clock()
            told = work()
            taken[name].append(told if isinstance(told, float) else clock() - started)
    return {name: count / statistics.median(seconds[1:]) for name, seconds in taken.items()}


def photographs(folder: str | None, made: Path, count: int) -> list[str]:
    """Return picture files: of a folder, or JPEGs of 340 × 256 pixels made here."""
    if folder:
        return sorted(map(str, Path(folder).iterdir()))[:count]
    rng = np.random.default_rng(0)
    for index in range(count):
        coarse = Image.fromarray(rng.integers(0, 256, (24, 32, 3), dtype=np.uint8))
        coarse.resize((340, 256), Image.Resampling.BICUBIC).save(made / f"{index:04d}.jpg", quality=90)
    return sorted(map(str, made.iterdir()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backbone", default="efficientnet_lite0")
    parser.add_argument("--pictures", help="folder of picture files; default: made here")
    parser.add_argument("--count", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--processor-time", action="store_true", help="on a busy machine: no overlap is credited"
    )
    parser.add_argument("--usual", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.usual:
        usual(*arguments.usual)
        return
    clock = time.process_time if arguments.processor_time else time.perf_counter
    plain = load_backbone(arguments.backbone)
    fast = copy.deepcopy(plain)
    fast.module.to(memory_format=torch.channels_last)
    with tempfile.TemporaryDirectory() as made:
        files = photographs(arguments.pictures, Path(made), arguments.count)
        x = torch.stack([plain.transform(read_rgb(file)) for file in files])
        x = x.contiguous(memory_format=torch.channels_last)
        cases = {f"bare {size}": lambda size=size: bare(fast, x, size) for size in BATCH_SIZES}
        cases["embed"] = lambda: embed(plain, files, cache=False)
        other = UsualProcess(arguments.backbone, files, clock.__name__)
        cases["usual"] = other.seconds
        found = rates(cases, len(files), arguments.rounds, clock)
        other.close()
        difference = np.abs(
            embed(plain, files, cache=False).vectors - usual_script(plain, files).numpy()
        ).max()
    best = max((name for name in found if name.startswith("bare")), key=found.get)
    print(
        f"{arguments.backbone}, {len(files)} pictures, {torch.get_num_threads()} threads, "
        f"load {os.getloadavg()[0]:.1f}, {clock.__name__}; pictures a second:"
    )
    print("  " + ", ".join(f"{name} {rate:.0f}" for name, rate in found.items()))
    record.ratio("embed from files / bare forward, time", found[best] / found["embed"], "≤ 1.35", best)
    record.ratio("usual script / embed from files, time", found["embed"] / found["usual"], "≥ 3")
    record.write(__file__, backbone=arguments.backbone, clock=clock.__name__)
    print(f"largest difference of a value between the two: {difference:.1e}")


if __name__ == "__main__":
    main()
