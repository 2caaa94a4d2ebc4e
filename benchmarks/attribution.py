"""Deletion against the bare forward pass and a plain loop, and what the other metrics cost, in one run.

    python benchmarks/attribution.py [--backbone efficientnet_lite0] [--rounds 15] [--busy]

The bare forward pass runs the untouched network (channels_last, inference mode) on 29 pictures that lie
ready, at the best of several batch sizes. The plain loop copies the picture for each of the 29 points,
removes pixels by index and runs them in one NCHW batch. Memory is the growth of the peak of a process
of its own over one deletion. ``--busy`` counts processor seconds of one thread: for a machine that does
other work too. Prints each ratio beside what it must be.
"""

import argparse
import copy
import resource
import statistics
import subprocess
import sys
import time

import numpy as np
import record
import torch

from biastransfer.attribution.faithfulness import deletion, insertion
from biastransfer.attribution.localisation import localisation_curve, mass_inside, pointing_game, saliency
from biastransfer.attribution.robustness import compare_all
from biastransfer.attribution.scores import class_score
from biastransfer.backbones import load_backbone

POINTS, STEP = 29, 1792
BATCH_SIZES = (1, 2, 4, 8, 16, 29)


def pictures(side: int) -> tuple[torch.Tensor, np.ndarray]:
    rng = np.random.default_rng(0)
    coarse = torch.from_numpy(rng.random((1, 3, 14, 14), dtype=np.float32))
    image = torch.nn.functional.interpolate(coarse, size=(side, side), mode="bicubic").clamp(0, 1)[0]
    return image, rng.standard_normal((side, side)).astype(np.float32)


def bare(network: torch.nn.Module, ready: torch.Tensor, size: int) -> None:
    with torch.inference_mode():
        for part in ready.split(size):
            network(part)


def plain_loop(network, transform, image: torch.Tensor, heatmap: np.ndarray, target: int) -> np.ndarray:
    order = np.argsort(-heatmap.ravel(), kind="stable")
    versions = []
    for k in range(POINTS):
        version = image.clone()
        version.flatten(1)[:, order[: k * STEP]] = 0
        versions.append(transform.normalise(version))
    with torch.no_grad():
        return network(torch.stack(versions)).softmax(1)[:, target].numpy()


def medians(cases: dict, rounds: int, clock) -> dict[str, float]:
    """Return the median seconds of calls taken in turn, after one round to warm up."""
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds + 1):
        for name, work in cases.items():
            started = clock()
            work()
            taken[name].append(clock() - started)
    return {name: statistics.median(seconds[1:]) for name, seconds in taken.items()}


def growth(backbone_name: str) -> None:
    """Print by how many MiB this process's peak memory grows over one deletion after one forward pass."""
    backbone = load_backbone(backbone_name)
    backbone.module.to(memory_format=torch.channels_last)
    image, heatmap = pictures(backbone.transform.size)
    ready = backbone.transform.normalise(image)[None].repeat(8, 1, 1, 1)
    bare(backbone.module, ready.contiguous(memory_format=torch.channels_last), 8)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    deletion(class_score(backbone, 0), image, heatmap)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backbone", default="efficientnet_lite0")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--growth", action="store_true", help="only the growth of memory, in MiB")
    parser.add_argument("--busy", action="store_true", help="processor seconds of one thread")
    arguments = parser.parse_args()
    if arguments.busy:
        torch.set_num_threads(1)
    if arguments.growth:
        growth(arguments.backbone)
        return
    backbone = load_backbone(arguments.backbone)
    usual = copy.deepcopy(backbone.module)
    backbone.module.to(memory_format=torch.channels_last)
    image, heatmap = pictures(backbone.transform.size)
    ready = backbone.transform.normalise(image)[None].repeat(POINTS, 1, 1, 1)
    ready = ready.contiguous(memory_format=torch.channels_last)
    with torch.inference_mode():
        target = int(backbone.module(ready[:1]).argmax())
    score, folded = class_score(backbone, target), class_score(backbone, target, fold=True)
    boxes = [[40, 40, 160, 180]]
    maps = {k: heatmap + k for k in range(3)}
    cases = {f"bare {size}": lambda size=size: bare(backbone.module, ready, size) for size in BATCH_SIZES}
    cases |= {
        "deletion": lambda: deletion(score, image, heatmap),
        "insertion": lambda: insertion(score, image, heatmap),
        "deletion, folded": lambda: deletion(folded, image, heatmap),
        "plain loop": lambda: plain_loop(usual, backbone.transform, image, heatmap, target),
        "saliency": lambda: saliency(score, image, heatmap),
        "localisation": lambda: localisation_curve(heatmap, boxes),
        "pointing and mass": lambda: (pointing_game(heatmap, boxes), mass_inside(heatmap, boxes)),
        "similarity of 3 maps": lambda: compare_all(maps),
    }
    found = medians(cases, arguments.rounds, time.process_time if arguments.busy else time.perf_counter)
    ours = deletion(score, image, heatmap).scores
    difference = np.abs(ours - plain_loop(usual, backbone.transform, image, heatmap, target)).max()
    best = min((name for name in found if name.startswith("bare")), key=found.get)
    memory = subprocess.run([sys.executable, __file__, "--backbone", arguments.backbone, "--growth"],
                            capture_output=True, text=True, check=True).stdout.strip()  # fmt: skip
    print(f"{arguments.backbone}, {POINTS} points, {torch.get_num_threads()} threads; milliseconds:")
    print("  " + ", ".join(f"{name} {1000 * seconds:.0f}" for name, seconds in found.items()))
    record.ratio("deletion / bare forward", found["deletion"] / found[best], "≤ 1.10", best)
    record.ratio("insertion / bare forward", found["insertion"] / found[best])
    record.ratio("deletion, folded / bare forward", found["deletion, folded"] / found[best], "≤ 0.95")
    record.ratio("plain loop / deletion", found["plain loop"] / found["deletion"])
    record.ratio("memory beyond a batch of eight, MiB", float(memory), "≤ 50")
    print(f"largest difference of a score from the plain loop's: {difference:.1e}")
    # an evaluation makes three maps of 225 versions each and one deletion and insertion a map
    forward = found[best] / POINTS * 3 * (225 + 2 * POINTS)
    metrics = 3 * (found["localisation"] + found["pointing and mass"]) + found["similarity of 3 maps"]
    record.ratio(
        "metrics without forward passes / an evaluation's forward passes", metrics / forward, "≤ 0.10"
    )
    record.write(__file__, backbone=arguments.backbone, clock="process" if arguments.busy else "wall")


if __name__ == "__main__":
    main()
