"""Trains the in-painter on scenes: ``python -m biastransfer.attribution.inpainter_training --seed 0``.

Seeded and resumable: every step's pictures and holes follow from (seed, step), the state is kept in
``data/derived/inpainter``, and running the command again goes on where it was stopped.
"""

import argparse
import concurrent.futures
import functools
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from PIL import Image

from biastransfer import paths
from biastransfer.attribution.inpainter_network import InpainterNet, save_weights
from biastransfer.attribution.inpainter_scenes import Removals, cached_removals, draw_hole, widened

_REMOVAL, _AFTER = 0.45, 0.75  # shares: a removal to learn, then any hole in a scene after, then before one
_REPORT = 50  # steps between rows of the training curve
_HELD_OUT = 48


@dataclass(frozen=True)
class Settings:
    """How the in-painter is trained.

    ``scenes`` drawn for training; ``small`` steps at 128 pixels in batches of ``small_batch``, then ``large``
    steps at 224 pixels in batches of ``large_batch``; ``rate`` is AdamW's highest learning rate (cosine to
    0); ``average`` the decay of the running mean of the weights, which is what is kept.
    """

    seed: int = 0
    scenes: int = 1500
    small: int = 700
    large: int = 250
    small_batch: int = 16
    large_batch: int = 8
    rate: float = 6e-4
    average: float = 0.998

    @property
    def steps(self) -> int:
        """All steps."""
        return self.small + self.large


def train(settings: Settings, *, minutes: float = float("inf")) -> bool:
    """Train until the last step or for ``minutes``; return whether it is finished.

    ``settings`` name the training: its state is found again by them. When finished, the weights and the
    training curve are written to where they ship from.
    """
    started, state_file = time.monotonic(), _state_file(settings)
    scenes = cached_removals("train", settings.scenes, seed=settings.seed)
    held_out = held_out_batch(settings.seed)
    torch.manual_seed(settings.seed)
    net, mean = (InpainterNet().to(memory_format=torch.channels_last) for _ in range(2))
    mean.load_state_dict(net.state_dict())
    optimizer = torch.optim.AdamW(net.parameters(), settings.rate, weight_decay=1e-4)
    step, curve = _resume(state_file, net, mean, optimizer)
    losses: list[float] = []
    batches = _batches(scenes, settings, step)
    while step < settings.steps and time.monotonic() - started < 60 * minutes:
        losses.append(_step(net, optimizer, next(batches), settings, step))
        _follow(mean, net, min(settings.average, (step + 1) / (step + 10)))
        step += 1
        if step % _REPORT == 0 or step == settings.steps:
            curve.append([step, float(np.mean(losses)), psnr_in_hole(mean, *held_out)])
            print(
                f"step {step}: loss {curve[-1][1]:.4f}, held-out PSNR in the hole {curve[-1][2]:.2f} dB",
                flush=True,
            )
            losses = []
            _keep(state_file, net, mean, optimizer, step, curve)
    _keep(state_file, net, mean, optimizer, step, curve)
    if step < settings.steps:
        return False
    save_weights(mean, paths.inpainter_weights(), {"trained": json.dumps(asdict(settings))})
    frame = pd.DataFrame(curve, columns=["step", "loss", "held_out_psnr"])
    paths.write_csv(frame, paths.results("inpainter", "training-curve.csv"))
    return True


def _batches(scenes: Removals, settings: Settings, first: int) -> Iterator[tuple[torch.Tensor, ...]]:
    """Yield the batches from step ``first`` on, the next one drawn while the last one is learned from."""

    def draw(step: int):
        small = step < settings.small
        size, count = (128, settings.small_batch) if small else (224, settings.large_batch)
        return training_batch(scenes, size, count, (settings.seed, step))

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        coming = pool.submit(draw, first)
        for step in range(first + 1, settings.steps + 1):
            ready, coming = coming.result(), pool.submit(draw, step)
            yield ready


def _step(net, optimizer, batch, settings: Settings, step: int) -> float:
    pixels, holes, wanted = batch
    ramp = min(1, (step + 1) / 100) * 0.5 * (1 + np.cos(np.pi * step / settings.steps))
    for group in optimizer.param_groups:
        group["lr"] = float(settings.rate * ramp)
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", torch.bfloat16):
        answer = net(pixels.contiguous(memory_format=torch.channels_last), holes)
    loss = _loss(answer.float(), wanted, holes)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def _loss(answer: torch.Tensor, wanted: torch.Tensor, holes: torch.Tensor) -> torch.Tensor:
    """Absolute error in the hole, a tenth of it outside, and the error of the differences between pixels."""
    error = (answer - wanted).abs()
    whole = torch.where(holes > 0, answer, wanted)  # so that seams count too
    edges = sum((torch.diff(whole, dim=d) - torch.diff(wanted, dim=d)).abs().sum() for d in (2, 3))
    area = 3 * holes.sum() + 1
    return (error * holes).sum() / area + 0.1 * error.mean() + 0.5 * edges / area


def training_batch(scenes: Removals, size: int, count: int, key: tuple) -> tuple[torch.Tensor, ...]:
    """Return pixels (n, 3, s, s), holes (n, 1, s, s) and the pixels wanted, drawn by ``key``.

    Parameters
    ----------
    scenes : Removals
    size, count : int
        Side in pixels s and number of pictures n.
    key : tuple of int
        Same key, same batch.
    """
    parts = [_example(scenes, size, np.random.default_rng((*key, k))) for k in range(count)]
    return tuple(torch.stack(column) for column in zip(*parts))


def _example(scenes: Removals, size: int, rng: np.random.Generator):
    i, kind = rng.integers(len(scenes.before)), rng.random()
    side = int(rng.integers(size, 257))
    x, y = rng.integers(0, 257 - side, 2).tolist()
    cut = functools.partial(_cut, box=(x, y, x + side, y + side), size=size, flip=bool(rng.integers(2)))
    hole = cut(widened(scenes.removed[i], int(rng.integers(0, 5)))) > 127
    if kind < _REMOVAL and hole.any() and not hole.all():
        both = [cut(scenes.before[i]), cut(scenes.after[i])]
    else:
        both = [cut((scenes.after if kind < _AFTER else scenes.before)[i])] * 2
        hole = draw_hole(rng, size, scenes.removed)
    order = rng.permutation(3) if rng.random() < 0.5 else np.arange(3)
    colours = (order, rng.uniform(0.6, 1.15), rng.uniform(-0.12, 0.12))
    seen, wanted = (_coloured(part, *colours) for part in both)
    return seen, torch.from_numpy(hole)[None].float(), wanted


def _cut(part: np.ndarray, box: tuple, size: int, flip: bool) -> np.ndarray:
    """Return the ``box`` of an (H, W, 3) uint8 or (H, W) bool array as uint8, resized, mirrored if asked."""
    picture = Image.fromarray(part)
    picture = picture.convert("L") if part.dtype == bool else picture
    resized = np.asarray(picture.resize((size, size), Image.Resampling.BILINEAR, box=box))
    return resized[:, ::-1] if flip else resized


def _coloured(part: np.ndarray, order: np.ndarray, gain: float, shift: float) -> torch.Tensor:
    pixels = torch.from_numpy(part[..., order].transpose(2, 0, 1).astype(np.float32)).div_(255)
    return ((pixels - 0.5) * gain + 0.5 + shift).clamp_(0, 1)


def held_out_batch(seed: int) -> tuple[torch.Tensor, ...]:
    """Return pixels, holes and pixels wanted of removals in scenes of the split "val", 224 pixels a side.

    The hole is the removed actors grown by two pixels; the picture is the scene's central square.
    """
    scenes = cached_removals("val", _HELD_OUT, seed=seed)
    holes = np.stack([widened(one, 2) for one in scenes.removed])[:, None]
    centre = slice(16, 240)
    pixels, wanted = (
        torch.from_numpy(part[:, centre, centre]).permute(0, 3, 1, 2).float() / 255
        for part in (scenes.before, scenes.after)
    )
    return pixels, torch.from_numpy(holes[:, :, centre, centre]).float(), wanted


@torch.inference_mode()
def psnr_in_hole(net: InpainterNet, pixels, holes, wanted) -> float:
    """Return the mean over pictures of the peak signal-to-noise ratio, dB, over the pixels of the hole only.

    ``net`` fills ``holes`` of ``pixels``; ``wanted`` is what should be there. Pictures without a hole are
    left out.
    """
    values = []
    for seen, hole, want in zip(pixels, holes, wanted):
        if hole.any():
            error = (net(seen[None], hole[None])[0].clamp(0, 1) - want).square() * hole
            values.append(-10 * float(torch.log10(error.sum() / (3 * hole.sum()) + 1e-10)))
    return float(np.mean(values))


@torch.no_grad()
def _follow(mean, net, decay: float) -> None:
    for old, new in zip(mean.parameters(), net.parameters()):
        old.lerp_(new, 1 - decay)


def _state_file(settings: Settings) -> Path:
    named = "-".join(f"{key}{value}" for key, value in asdict(settings).items())
    return paths.derived("inpainter", f"training-{named}.pt")


def _resume(file: Path, net, mean, optimizer) -> tuple[int, list]:
    if not file.is_file():
        return 0, []
    state = torch.load(file, map_location="cpu", weights_only=True)
    net.load_state_dict(state["net"])
    mean.load_state_dict(state["mean"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"], state["curve"]


def _keep(file: Path, net, mean, optimizer, step: int, curve: list) -> None:
    state = {"net": net.state_dict(), "mean": mean.state_dict(), "optimizer": optimizer.state_dict()}
    with paths.replacing(file) as partial:
        torch.save({**state, "step": step, "curve": curve}, partial)


def main(arguments: list[str] | None = None) -> None:
    """Train from the command line; ``arguments`` as in ``--help``."""
    parser = argparse.ArgumentParser(description="Train the in-painter on scenes.")
    for name, value in asdict(Settings()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="then stop; run again to go on")
    parser.add_argument("--threads", type=int, default=1, help="another number gives other last digits")
    given = vars(parser.parse_args(arguments))
    minutes, threads = given.pop("minutes"), given.pop("threads")
    torch.set_num_threads(threads)
    done = train(Settings(**given), minutes=minutes)
    print("finished" if done else "stopped; run the same command again to go on")


if __name__ == "__main__":
    main()
