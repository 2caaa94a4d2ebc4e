"""Finetuning against bare limits, in one run; prints each ratio beside what it must be.

The training loop against forward, backward and step on the same tensors; mAP against scikit-learn.

    python benchmarks/finetuning.py [--backbone efficientnet_lite0] [--rounds 5]
"""

import argparse
import dataclasses
import os
import statistics
import time

import numpy as np
import record
import torch
from sklearn.metrics import average_precision_score

from biastransfer import backbones
from biastransfer.backbones.batches import to_batch
from biastransfer.finetune.devices import choose_device
from biastransfer.finetune.evaluation import mean_average_precision
from biastransfer.finetune.pictures import Pictures
from biastransfer.finetune.recipes import RECIPES
from biastransfer.finetune.schedules import make_optimizer
from biastransfer.finetune.training import epoch_batches, train_epoch

PICTURES, CLASSES = 64, 16


clock = time.perf_counter


def seconds(work) -> float:
    """Return how long a call takes, GPU work included."""
    started = clock()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return clock() - started


def interleaved(first, second, rounds: int) -> tuple[float, float]:
    """Return the median seconds of two calls taken in turn, after one round to warm up."""
    pairs = [(seconds(first), seconds(second)) for _ in range(rounds + 1)][1:]
    return tuple(statistics.median(column) for column in zip(*pairs))


def training_loop(name: str, rounds: int) -> tuple[str, float, float, float]:
    """Time an epoch of the loop (from 8-bit pixels, with augmentation and checks) against bare steps."""
    device, _ = choose_device()
    recipe = dataclasses.replace(RECIPES["demo"], batch_size=16)
    backbone = backbones.replace_head(backbones.load_backbone(name), [str(k) for k in range(CLASSES)])
    module = backbone.module.to(device=device, memory_format=torch.channels_last)
    transform = backbone.transform.with_size(recipe.size)
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (PICTURES, recipe.size, recipe.size, 3)).astype(np.uint8)
    labels = (rng.random((PICTURES, CLASSES)) < 0.2).astype(np.float32)
    pictures = Pictures(tuple(map(str, range(PICTURES))), transform, pixels)
    optimizer = make_optimizer(module, recipe, 1e-4)
    batches = [
        (to_batch(pixels[rows], transform, device), torch.from_numpy(labels[rows]).to(device))
        for rows in epoch_batches(PICTURES, recipe.batch_size, rng)
    ]

    def bare() -> None:
        module.train()
        for x, y in batches:
            optimizer.zero_grad(set_to_none=True)
            torch.nn.functional.binary_cross_entropy_with_logits(module(x), y).backward()
            optimizer.step()

    def loop() -> None:
        train_epoch(module, optimizer, pictures, labels, recipe, epoch=1, seed=0, device=device)

    ours, limit = interleaved(loop, bare, rounds)
    return f"loop, {name}: share of the bare speed", limit / ours, 0.95, PICTURES / ours


def average_precision(rounds: int) -> tuple[str, float, float, float]:
    """Time mAP of 5,000 pictures and 80 classes, COCO's validation, against scikit-learn."""
    rng = np.random.default_rng(0)
    labels = (rng.random((5000, 80)) < 0.04).astype(float)
    scores = rng.normal(size=labels.shape) + labels
    ours, theirs = interleaved(
        lambda: mean_average_precision(labels, scores),
        lambda: average_precision_score(labels, scores, average="macro"),
        rounds,
    )
    difference = abs(
        mean_average_precision(labels, scores)[0] - average_precision_score(labels, scores, average="macro")
    )
    print(f"mAP, difference to scikit-learn: {difference:.1e} (must be below 1e-12)")
    return "mAP: share of scikit-learn's time", ours / theirs, 0.5, 1 / ours


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backbone", nargs="*", default=["efficientnet_lite0", "squeezenet1_1"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--processor-time", action="store_true", help="on a busy machine: no overlap is credited"
    )
    chosen = parser.parse_args()
    if chosen.processor_time:
        global clock
        clock = time.process_time
    print(f"{torch.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}, {clock.__name__}")
    name, ratio, limit, rate = average_precision(chosen.rounds)
    record.ratio(name, ratio, f"≤ {limit}", f"{rate:.1f} a second")
    for backbone in chosen.backbone:
        name, ratio, limit, rate = training_loop(backbone, chosen.rounds)
        record.ratio(name, ratio, f"≥ {limit}", f"{rate:.1f} pictures a second")
    record.write(__file__, clock=clock.__name__)


if __name__ == "__main__":
    main()
