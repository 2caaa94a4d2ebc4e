"""Where a finetuning computes and how exactly: the device, single or mixed precision, TF32."""

import contextlib
import re
from collections.abc import Iterator

import torch

from biastransfer import distributed

_AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
_GPU_ONLY = ("tf32", "fp16")


def choose_device(device: str | None = None, precision: str = "fp32") -> tuple[torch.device, str]:
    """Return the device and why it is taken: a CUDA device, else the CPU, unless ``device`` says.

    Parameters
    ----------
    device : str, optional
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``; under torchrun ``"cuda"`` is the rank's own.
    precision : str
        As a `Recipe` has it.

    Raises
    ------
    ValueError
        The precision needs a GPU and the device is none, or a device is asked for that is not there or none
        of these.
    """
    if device not in (None, "auto"):
        if not re.fullmatch(r"cpu|cuda(:\d+)?", str(device)):
            raise ValueError(f"device must be cpu, cuda or cuda:NUMBER; got {str(device)!r}.")
        found, why = torch.device(device), "asked for"
        if found.type == "cuda" and not torch.cuda.is_available():
            raise ValueError(f"device {device!r} needs a CUDA device; none was found. Use device='cpu'.")
        if (found.index or 0) >= max(1, torch.cuda.device_count()):
            raise ValueError(
                f"device {device!r} must be one of this machine's {torch.cuda.device_count()} CUDA devices, "
                "counted from 0. Name another."
            )
        if found.type == "cuda" and found.index is None and distributed.size() > 1:
            found = torch.device("cuda", distributed.local_rank())
    elif torch.cuda.is_available():
        found = torch.device("cuda", distributed.local_rank())
        why = f"the first CUDA device, {torch.cuda.get_device_name(found)}"
        if distributed.size() > 1:
            why = f"one of {distributed.size()} CUDA devices, {torch.cuda.get_device_name(found)}"
    else:
        found, why = torch.device("cpu"), "no CUDA device was found"
    if found.type != "cuda" and precision in _GPU_ONLY:
        raise ValueError(
            f"precision {precision!r} needs a CUDA device; the device is {found}. Use fp32, or bf16."
        )
    return found, why


def autocast(device: torch.device, precision: str):
    """Return the context in which a forward pass runs on a ``device`` in a recipe's ``precision``."""
    return torch.autocast(device.type, _AUTOCAST.get(precision), enabled=precision in _AUTOCAST)


def make_scaler(device: torch.device, precision: str) -> torch.amp.GradScaler:
    """Return what keeps fp16's gradients on a ``device`` from vanishing; at any other ``precision`` inert."""
    return torch.amp.GradScaler(device.type, enabled=precision == "fp16")


@contextlib.contextmanager
def stated_precision(precision: str) -> Iterator[None]:
    """Forbid TF32 for a block, or allow it at ``precision`` tf32; the caller's settings come back.

    Notes
    -----
    PyTorch lets convolutions on a GPU use TF32 unless told otherwise, with 10 bits of mantissa instead of 23.
    Convolutions are also chosen to give the same bits every time.
    """
    matrices = torch.get_float32_matmul_precision()
    allowed = precision == "tf32"
    torch.set_float32_matmul_precision("high" if allowed else "highest")
    try:
        with torch.backends.cudnn.flags(
            enabled=True, benchmark=False, deterministic=True, allow_tf32=allowed
        ):
            yield
    finally:
        torch.set_float32_matmul_precision(matrices)
