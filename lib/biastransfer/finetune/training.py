"""One epoch of training: a plain loop over batches, the same on CPU and GPU and on any number of ranks."""

import contextlib
import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from biastransfer import distributed
from biastransfer.backbones.batches import to_batch
from biastransfer.finetune.devices import autocast, make_scaler
from biastransfer.finetune.pictures import Pictures, draw_moves, moved
from biastransfer.finetune.settings import Recipe
from biastransfer.prefetch import ahead

_CHECK_EVERY = 25  # steps between looks at the loss, each of which makes a GPU wait


class DivergedError(ArithmeticError):
    """A loss that is not finite; the message names epoch, batch and pictures."""


def masked_loss(logits: torch.Tensor, labels: torch.Tensor, known: int | None = None) -> torch.Tensor:
    """Return the mean binary cross-entropy over the known labels.

    Parameters
    ----------
    logits, labels : tensor, shape (N, K)
        Labels are 1, 0 or NaN = unknown, which gives neither loss nor gradient.
    known : int, optional
        What the sum is divided by, where the labels are a part of a step's: the step's known labels.

    Returns
    -------
    tensor, shape ()
        In nats; 0 when no label is known.

    Examples
    --------
    >>> logits = torch.zeros(1, 2, requires_grad=True)
    >>> masked_loss(logits, torch.tensor([[1.0, float("nan")]])).backward()
    >>> logits.grad.tolist()
    [[-0.5, 0.0]]
    """
    mask = ~labels.isnan()
    truth = torch.where(mask, labels, 0.0)
    losses = functional.binary_cross_entropy_with_logits(logits.float(), truth, mask.float(), reduction="sum")
    return losses / (mask.sum().clamp(min=1) if known is None else max(known, 1))


def epoch_batches(n: int, batch_size: int, rng: np.random.Generator, *, parts: int = 1) -> list[np.ndarray]:
    """Return the rows of every batch of an epoch: all ``n`` in random order, in near-equal batches.

    Parameters
    ----------
    n, batch_size : int
        No batch is larger than ``batch_size``; none is dropped, and none is left so small that batch norm
        would see one picture (unless n or batch_size is 1).
    rng : Generator
    parts : int
        How many parts a batch is divided into, by ranks and accumulation.

    Raises
    ------
    ValueError
        A batch has fewer pictures than parts.

    Examples
    --------
    >>> [len(rows) for rows in epoch_batches(33, 16, np.random.default_rng(0))]
    [11, 11, 11]
    """
    batches = np.array_split(rng.permutation(n), math.ceil(n / batch_size))
    if (fewest := min(map(len, batches))) < parts:
        raise ValueError(
            f"each of the {parts} parts of a step (ranks × accumulate) needs a picture; the smallest step "
            f"has {fewest}. Raise batch_size, lower accumulate or start fewer ranks."
        )
    return batches


@contextlib.contextmanager
def _own_randomness(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's generators (dropout) for a block and give the caller's state back."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def train_epoch(
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    pictures: Pictures,
    labels: np.ndarray,
    recipe: Recipe,
    *,
    epoch: int,
    seed: int,
    device: torch.device,
    set_rate: Callable[[int], None] | None = None,
    scaler: torch.amp.GradScaler | None = None,
) -> float:
    """Train over all pictures once.

    Parameters
    ----------
    module : torch.nn.Module
        Put into train mode: batch norm normalises by the batch and updates its running statistics. On
        several ranks what `distributed.wrapped` gave.
    optimizer : torch.optim.Optimizer
    pictures, labels : Pictures, ndarray of shape (N, K)
    recipe : Recipe
    epoch, seed : int
        Decide order, augmentation and dropout, together and alone: an epoch repeated is the same epoch.
    device : torch.device
    set_rate : callable, optional
        Called with the batch's number in the epoch before each step.
    scaler : torch.amp.GradScaler, optional
        From `devices.make_scaler`; default a fresh one.

    Returns
    -------
    float
        Mean loss over the pictures, each in the state of the weights that met it.

    Raises
    ------
    DivergedError
        The loss is not finite.

    Notes
    -----
    A step's batch is divided into ``recipe.accumulate`` parts and each part among the ranks, so the gradient
    is that of the whole batch however it is divided, up to the order of sums; dropout alone is drawn by
    each rank for itself. A thread makes the next parts ready while the network computes.
    """
    rng = np.random.default_rng([seed, epoch])
    dropout_seed = int(rng.integers(2**62)) + distributed.rank()
    batches = epoch_batches(len(labels), recipe.batch_size, rng, parts=distributed.size() * recipe.accumulate)
    scaler = scaler or make_scaler(device, recipe.precision)
    waiting: list[torch.Tensor] = []
    losses: list[torch.Tensor] = []
    module.train()
    with (
        _own_randomness(dropout_seed, device),
        ahead(_parts(batches, pictures, labels, recipe, rng, device)) as parts,
    ):
        for number in range(len(batches)):
            if set_rate:
                set_rate(number)
            waiting.append(_step(module, optimizer, parts, recipe, scaler))
            if (number + 1) % _CHECK_EVERY == 0 or number + 1 == len(batches):
                losses += distributed.total(torch.stack(waiting)).cpu()
                waiting = []
                _check_finite(losses, batches, pictures, epoch)
    weights = torch.tensor([len(rows) for rows in batches], dtype=torch.float64)
    return float((torch.stack(losses).double() * weights).sum() / weights.sum())


def _parts(batches, pictures: Pictures, labels, recipe: Recipe, rng, device) -> Iterator[tuple]:
    """Yield this rank's parts of every batch: input, labels, and the known labels of the whole batch."""
    for rows in batches:
        moves = draw_moves(len(rows), rng, flip=recipe.flip, shift=recipe.shift)
        known = int((~np.isnan(labels[rows])).sum())
        for part in np.array_split(np.arange(len(rows)), recipe.accumulate):
            mine = np.array_split(part, distributed.size())[distributed.rank()]
            pixels = moved(pictures.take(rows[mine]), moves.of(mine))
            truth = torch.from_numpy(labels[rows[mine]]).to(device, non_blocking=True)
            yield to_batch(pixels, pictures.transform, device), truth, known


def _step(module, optimizer, parts: Iterator[tuple], recipe: Recipe, scaler) -> torch.Tensor:
    """Take one step over the next parts; return this rank's share of the loss."""
    optimizer.zero_grad(set_to_none=True)
    losses = []
    for number in range(1, recipe.accumulate + 1):
        batch, labels, known = next(parts)
        with _unsent(module, number < recipe.accumulate):
            with autocast(batch.device, recipe.precision):
                logits = module(batch)
            loss = masked_loss(logits, labels, known)
            # gradients are averaged over the ranks, but a step's loss is the sum of its parts
            scaler.scale(loss * distributed.size()).backward()
        losses.append(loss.detach())
    scaler.step(optimizer)
    scaler.update()
    return torch.stack(losses).sum() if len(losses) > 1 else losses[0]


def _unsent(module: nn.Module, more: bool):
    """Keep gradients on this rank while more parts of the step follow: one exchange a step."""
    if more and isinstance(module, nn.parallel.DistributedDataParallel):
        return module.no_sync()
    return contextlib.nullcontext()


def _check_finite(losses, batches, pictures: Pictures, epoch: int) -> None:
    finite = torch.isfinite(torch.stack(losses))
    if finite.all():
        return
    number = int((~finite).nonzero()[0])
    names = ", ".join(pictures.files[row] for row in batches[number])
    raise DivergedError(
        f"the loss must stay finite; it became {float(losses[number])} in epoch {epoch}, batch {number + 1} "
        f"of {len(batches)}, pictures: {names}. Lower the learning rate or look at these pictures."
    )
