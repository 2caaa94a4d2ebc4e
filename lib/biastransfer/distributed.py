"""Several processes as one: which rank this is, who writes, and how parts become a whole again.

``torchrun --nproc-per-node 2 -m -- biastransfer.cli …`` starts ranks; without it there is one, and nothing
here costs anything. What is written is written by the first rank; what is decided, it decides and tells all.
"""

import atexit
import datetime
import inspect
import os
from collections.abc import Callable

import torch
from torch import distributed as dist

_PATIENCE = datetime.timedelta(hours=1)  # while the first rank writes or computes a metric, the others wait


def start(device: str | None = None) -> None:
    """Join the group that torchrun made, once; do nothing in a process that torchrun did not start.

    Parameters
    ----------
    device : str, optional
        ``"cpu"`` where the work shall not use the GPUs of this node.

    Notes
    -----
    Tensors on a GPU go through NCCL, all else through gloo. Each rank of a node takes the GPU of its number.
    """
    if dist.is_initialized() or int(os.environ.get("WORLD_SIZE", 1)) < 2:
        return
    gpu = torch.cuda.is_available() and torch.device(device or "cuda").type == "cuda"
    if gpu:
        torch.cuda.set_device(local_rank())
    dist.init_process_group("cpu:gloo,cuda:nccl" if gpu else "gloo", timeout=_PATIENCE)
    atexit.register(stop)


def stop() -> None:
    """Leave the group; nothing happens where there is none."""
    if dist.is_initialized():
        dist.destroy_process_group()


def rank() -> int:
    """Return the number of this process among all, from 0."""
    return dist.get_rank() if dist.is_initialized() else 0


def size() -> int:
    """Return the number of processes."""
    return dist.get_world_size() if dist.is_initialized() else 1


def local_rank() -> int:
    """Return the number of this process on its machine, from 0: the GPU that it takes."""
    return int(os.environ.get("LOCAL_RANK", 0))


def cores() -> int:
    """Return how many processor cores this process may use: its share of those of the machine."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, usable // int(os.environ.get("LOCAL_WORLD_SIZE", 1)))


def is_first() -> bool:
    """Return whether this is the rank that writes and speaks."""
    return rank() == 0


def from_first(make: Callable[[], object]):
    """Return what ``make()`` gives on the first rank; the others wait for it and do not call it.

    Examples
    --------
    >>> from_first(lambda: 3)
    3
    """
    if size() == 1:
        return make()
    box = [make() if is_first() else None]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def gathered(value) -> list:
    """Return the ``value`` of every rank, in the order of the ranks, on every rank.

    Examples
    --------
    >>> gathered("a")
    ['a']
    """
    if size() == 1:
        return [value]
    values = [None] * size()
    dist.all_gather_object(values, value)
    return values


def total(tensor: torch.Tensor) -> torch.Tensor:
    """Return the sum of a ``tensor`` over the ranks, on every rank; it is changed in place."""
    if size() > 1:
        dist.all_reduce(tensor)
    return tensor


def wrapped(module: torch.nn.Module, device: torch.device) -> torch.nn.Module:
    """Return a module whose backward pass averages gradients over the ranks; with one rank the module itself.

    Parameters
    ----------
    module : torch.nn.Module
        On ``device``. The first rank's weights are given to all.
    device : torch.device

    Notes
    -----
    Buffers are not broadcast at every step: batch norm's statistics are the same on all ranks, see
    `finetune.batch_norm`.
    """
    if size() == 1:
        return module
    parallel = torch.nn.parallel.DistributedDataParallel
    known = inspect.signature(parallel.__init__).parameters
    newer = "forward_sync_buffers" in known  # what PyTorch 2.14 calls broadcast_buffers
    settings = {"forward_sync_buffers" if newer else "broadcast_buffers": False}
    devices = [device.index or 0] if device.type == "cuda" else None
    return parallel(module, device_ids=devices, **settings)
