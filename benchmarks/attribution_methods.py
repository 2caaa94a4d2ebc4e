"""Perturbation methods against the bare forward passes in them, and against Captum's, in one run.

    python benchmarks/attribution_methods.py [--backbone efficientnet_lite0] [--grid 12] [--rounds 5]

The bare passes run the untouched network (channels_last, inference mode) on as many normalised tensors that
lie ready, at the best of several batch sizes. Captum's methods get the same patches and superpixels. Cases
are timed in turn and the least of each one's times compared: what disturbs a machine only adds. Prints each
ratio beside what it must be.
"""

import argparse
import copy
import os
import time
from pathlib import Path

import captum.attr
import numpy as np
import record
import torch

from biastransfer.attribution.lime import superpixels
from biastransfer.attribution.methods import lime, occlusion, sliding_patch
from biastransfer.attribution.networks import pixel_module
from biastransfer.attribution.rise import RiseMasks
from biastransfer.attribution.scores import class_score
from biastransfer.backbones import Backbone, load_backbone

BATCH_SIZES = (2, 4, 8)
MIB = 1024**2


def peak_growth(work) -> float:
    """Return by how many MiB resident memory grew at most during a call (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = status("VmRSS")
    work()
    return (status("VmHWM") - before) / 1024


def status(field: str) -> int:
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field)]
    return int(line.split()[1])


def seconds(cases: dict, rounds: int) -> dict[str, float]:
    """Return the least time of each call, taken in turn, after one round to warm up."""
    taken = {name: [] for name in cases}
    for number in range(rounds + 1):
        for name, work in cases.items():
            started = time.perf_counter()
            work()
            if number:
                taken[name].append(time.perf_counter() - started)
    return {name: min(found) for name, found in taken.items()}


def bare(backbone: Backbone, count: int, batch_size: int):
    """Return a call that runs ``count`` pictures that lie ready through the untouched network."""
    module = copy.deepcopy(backbone.module).to(memory_format=torch.channels_last)
    size = backbone.transform.size
    ready = torch.rand(batch_size, 3, size, size).contiguous(memory_format=torch.channels_last)

    def run():
        with torch.inference_mode():
            for start in range(0, count, batch_size):
                module(ready[: count - start]).softmax(1)

    return run


def ours(backbone: Backbone, picture: torch.Tensor, count: int, settings: dict) -> dict:
    plain, folded = (class_score(backbone, 0, fold=fold) for fold in (False, True))
    segments = superpixels(picture)
    return {
        "sliding patch": lambda: sliding_patch(plain, picture, **settings),
        "occlusion": lambda: occlusion(plain, picture, **settings),
        "LIME": lambda: lime(plain, picture, segments=segments, n_samples=count),
        "sliding patch, folded": lambda: sliding_patch(folded, picture, **settings),
        "LIME, folded": lambda: lime(folded, picture, segments=segments, n_samples=count),
    }


def captums(backbone: Backbone, picture: torch.Tensor, count: int, settings: dict) -> dict:
    module = pixel_module(backbone)
    segments, patch, stride = torch.from_numpy(superpixels(picture)), settings["patch"], settings["stride"]

    def occluded(batch_size):
        with torch.inference_mode():
            captum.attr.Occlusion(module).attribute(
                picture[None],
                sliding_window_shapes=(3, patch, patch),
                strides=(3, stride, stride),
                target=0,
                perturbations_per_eval=batch_size,
            )

    def limed(batch_size):
        with torch.inference_mode():
            captum.attr.Lime(module).attribute(
                picture[None],
                target=0,
                feature_mask=segments[None, None],
                n_samples=count,
                perturbations_per_eval=batch_size,
            )

    sizes = (4,)
    return {f"Captum occlusion {size}": lambda size=size: occluded(size) for size in sizes} | {
        f"Captum LIME {size}": lambda size=size: limed(size) for size in sizes
    }


def all_masks() -> None:
    for _place, _masks in RiseMasks((224, 224), 2000, 7, 0.5, 0).chunks():
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backbone", default="efficientnet_lite0")
    parser.add_argument("--grid", type=int, default=12, help="positions of the patch a side")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    backbone = load_backbone(arguments.backbone)
    size, count = backbone.transform.size, arguments.grid**2 + 1
    stride = (size - 77) // (arguments.grid - 1)
    settings = {"patch": size - stride * (arguments.grid - 1), "stride": stride}
    picture = torch.rand(3, size, size, generator=torch.Generator().manual_seed(0))
    own, others = (make(backbone, picture, count, settings) for make in (ours, captums))
    cases = {f"bare {batch}": bare(backbone, count, batch) for batch in BATCH_SIZES} | own | others
    found = seconds(cases, arguments.rounds)
    best = min((name for name in found if name.startswith("bare")), key=found.get)
    machine = f"{torch.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}"
    print(f"{arguments.backbone}, {count} pictures, {machine}; seconds:")
    print("  " + ", ".join(f"{name} {taken:.2f}" for name, taken in found.items()))
    for name, work in own.items():
        limit = 1.10 if "folded" not in name else 1.0
        grown = peak_growth(work)
        record.keep(f"{name} / bare forward", found[name] / found[best], f"≤ {limit:.2f}")
        record.keep(f"{name}, memory grown, MiB", grown, "≤ 50")
        print(
            f"{name} / bare forward ({best}), time: {found[name] / found[best]:.2f} (must be ≤ {limit:.2f}), "
            f"memory: +{grown:.0f} MiB (must be ≤ 50)"
        )
    for name in others:
        record.keep(f"{name} / bare forward", found[name] / found[best])
        print(f"{name} / bare forward, time: {found[name] / found[best]:.2f} (for comparison)")
    once = seconds({"masks": all_masks}, arguments.rounds)["masks"]
    whole = np.float32().nbytes * 2000 * 224**2 / MIB
    print(
        f"2,000 RISE masks: {once:.2f} s (must be ≤ 0.5), +{peak_growth(all_masks):.0f} MiB (must be ≤ 100; "
        f"all at once they take {whole:.0f})"
    )
    record.keep("2,000 RISE masks: time / 0.5 s", once / 0.5, "≤ 1")
    record.write(__file__, backbone=arguments.backbone)


if __name__ == "__main__":
    main()
