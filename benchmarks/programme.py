"""What each step of the paper's programme costs before anybody starts it: pictures, GPU hours, disk.

    python benchmarks/programme.py [--teraflops 30] [--pictures FOLDER] [--runs coco openimages]

Pages and recipes come from `runs/*.yaml` and `RECIPES`. Operations of one picture are counted by PyTorch's
`FlopCounterMode` on each network: a multiplication and an addition are two, and training is the forward pass
three times, since the counter takes grouped convolutions for dense ones on the way back. GPU hours divide it
by what is *assumed* that a GPU sustains; none was measured. With `--pictures`, the decoding of that folder's
JPEGs on one core is measured, and their size.
"""

import argparse
import time
from collections import defaultdict
from pathlib import Path

import torch
from torch.utils.flop_counter import FlopCounterMode

from biastransfer.backbones.architectures import REGISTRY
from biastransfer.finetune import find_recipe
from biastransfer.graph.runs import load_pages
from biastransfer.images import read_rgb

# pictures of the official splits: COCO 2017 without a test file (half of val), Open Images with boxes
SPLITS = {"coco": (118_287, 2_500, 2_500), "openimages": (1_743_042, 41_620, 125_436)}
ANALYSED = {"released-coco": 206, "released-openimages": 1_925}
SIX = ("resnet18", "resnet50", "bit_m_r50x1", "clip_vit_b32", "moco_resnet50", "simclr_resnet50")


def forward_operations(name: str) -> tuple[float, float]:
    """Return operations of one picture's forward pass, and millions of weights."""
    module = REGISTRY[name].build(0).train()  # in eval mode attention is fused and not counted
    side = REGISTRY[name].transform.size
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module(torch.zeros(2, 3, side, side))
    return counter.get_total_flops() / 2, sum(p.numel() for p in module.parameters()) / 1e6


def finetunings(run: str):
    """Yield (group, backbone, pictures trained on, pictures scored) for each finetuning of a run."""
    for page in load_pages(run):
        p = page.parameters
        if page.notebook == "02-finetune":
            train, val, test = SPLITS[p["target"]]
            train = min(train, p.get("max_train") or train)
            epochs = find_recipe(p["recipe"], p["backbone"]).epochs
            yield (p["target"], train), p["backbone"], train * epochs, val * (epochs + 1) + test


def embeddings(run: str):
    """Yield (backbone, pictures) for each network that a run embeds its set with, once each."""
    for page in load_pages(run):
        p = page.parameters
        if page.notebook == "03-similarity":
            n = ANALYSED[p["set_name"]]
            for name in p["finetuned"]:
                yield name, n * len(p["seeds"])


def decoding(folder: str) -> tuple[float, float, float]:
    """Return JPEGs decoded a second on one core, and their mean size in megapixels and in kB."""
    torch.set_num_threads(1)
    files = sorted(Path(folder).glob("*.jpg"))
    started, pixels = time.perf_counter(), 0
    for _ in range(3):
        pixels = sum(read_rgb(file)[..., 0].size for file in files)
    seconds = time.perf_counter() - started
    size = sum(file.stat().st_size for file in files)
    return 3 * len(files) / seconds, pixels / len(files) / 1e6, size / len(files) / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--teraflops", type=float, default=30.0, help="assumed, sustained by one GPU")
    parser.add_argument("--pictures", default="", help="folder of JPEGs")
    parser.add_argument("--runs", nargs="*", default=["coco", "openimages"])
    given = parser.parse_args()
    per_hour = given.teraflops * 1e12 * 3600
    counted = {name: forward_operations(name) for name in SIX}
    print(f"{'network':18} forward, GFLOP  weights, M  trains, pictures/s (at {given.teraflops:g} TFLOP/s)")
    for name, (forward, weights) in counted.items():
        print(f"{name:18} {forward / 1e9:14.2f} {weights:11.1f} {given.teraflops * 1e12 / forward / 3:12.0f}")
    heads = f"{'pictures':>10} {'finetunings':>12} {'pictures seen, M':>17} {'GPU hours':>10} {'disk, GB':>9}"
    print(f"\n{'target':11} {heads}")
    for run in given.runs:
        groups: dict = defaultdict(lambda: [0, 0.0, 0.0, 0.0])
        for group, name, trained, scored in finetunings(run):
            forward, weights = counted[name]
            row = groups[group]
            row[0] += 1
            row[1] += trained + scored
            row[2] += (3 * trained + scored) * forward
            row[3] += 2 * 4e-3 * weights  # best and last, in single precision
        for (target, train), (n, seen, operations, disk) in groups.items():
            hours = operations / per_hour
            print(f"{target:11} {train:10,} {n:12} {seen / 1e6:17.1f} {hours:10.1f} {disk:9.1f}")
        pictures = sum(n for _, n in embeddings(run))
        hours = sum(counted[name][0] * n for name, n in embeddings(run)) / per_hour
        print(f"{run}: embeddings of finetuned networks, {pictures:,} pictures: {hours * 60:.1f} GPU minutes")
    if given.pictures:
        rate, pixels, size = decoding(given.pictures)
        print(
            f"\ndecoding on one core here: {rate:.0f} JPEGs/s of {pixels:.2f} megapixels, {size:.0f} kB each"
        )


if __name__ == "__main__":
    main()
