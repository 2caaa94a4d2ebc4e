"""Files of weights in any usual format, read into one flat mapping without running code that lies in them."""

import argparse
import pickle
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import safetensors
import safetensors.torch
import torch

from biastransfer.checkpoint_layouts import from_bit, is_torchscript, torchscript_tensors

# What trainers leave beside the weights and what cannot do anything: NumPy scalars, parsed arguments
_HARMLESS = [
    argparse.Namespace,
    np.dtype,
    np.ndarray,
    np._core.multiarray.scalar,
    np._core.multiarray._reconstruct,
    (np._core.multiarray.scalar, "numpy.core.multiarray.scalar"),
    (np._core.multiarray._reconstruct, "numpy.core.multiarray._reconstruct"),
    *(type(np.dtype(kind)) for kind in ("?", *"bBhHiIlLefd", "U1", "S1")),
]
_PICKLED = (b"P", b"\x80")  # how a zip archive and a binary pickle begin


def read_tensors(path: Path | str, *, trust_pickle: bool = False) -> dict[str, torch.Tensor]:
    """Return every tensor of a file under its full name, nesting written with dots.

    Parameters
    ----------
    path : path
        safetensors, what ``torch.save`` or ``torch.jit.save`` writes, or ``.npz``; told apart by their
        content. Of a TorchScript archive the tensors are read and no program runs.
    trust_pickle : bool
        Whether code in the file may run.

    Returns
    -------
    dict of str to tensor
        On the CPU. ``{"state_dict": {"module.fc.bias": …}}`` gives ``state_dict.module.fc.bias``. BiT's
        official arrays come under timm's names.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, of another format, or holds more than tensors and is not trusted.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint {path}; correct the path")
    with open(path, "rb") as file:
        head = file.read(9)
    if head[8:] == b"{":
        try:
            return safetensors.torch.load_file(path)
        except safetensors.SafetensorError as error:
            raise ValueError(f"{path} is not a whole safetensors file ({error}). Fetch it again.") from None
    if head[:1] not in _PICKLED and not trust_pickle:  # a web page, say: nothing that trust could help
        raise ValueError(f"{path} is not a checkpoint that torch.save or numpy.savez wrote. Fetch it again.")
    if _is_npz(path):
        return from_bit(dict(_flatten(_numpy(path))))
    content = torchscript_tensors(path) if is_torchscript(path) else _torch(path, trust_pickle)
    return dict(_flatten(content))


def _is_npz(path: Path) -> bool:
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return all(name.endswith(".npy") for name in archive.namelist())


def _numpy(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name.replace("/", "."): arrays[name] for name in arrays.files}
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} is not a whole .npz file of plain arrays ({error}). Fetch it again."
        ) from None


def _torch(path: Path, trust_pickle: bool):
    """Read what torch.save wrote: tensors and plain values, or anything if trusted."""
    try:
        with torch.serialization.safe_globals(_HARMLESS):
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if not trust_pickle:
            # PyTorch's text advises to turn the check off; only the class that it names is of use here
            asks = next((line.strip() for line in str(error).splitlines() if "GLOBAL" in line), "an object")
            raise ValueError(
                f"{path} must hold tensors and plain values only; it holds more ({asks[:200]}). Loading it "
                "can run code that lies in it: if you trust where it came from, pass trust_pickle=True "
                "(load_backbone: trust=True)."
            ) from None
    except (
        Exception
    ) as error:  # damaged archives raise RuntimeError, EOFError, KeyError, UnicodeDecodeError …
        raise ValueError(f"{path} is not a whole checkpoint ({error}). Fetch it again.") from None
    try:
        # text that Python 2 pickled is bytes of no stated encoding; Latin-1 reads any
        return torch.load(path, map_location="cpu", weights_only=False, encoding="latin1")
    except Exception as error:  # an untidy pickle can raise anything, even when trusted
        raise ValueError(f"{path} cannot be read ({type(error).__name__}: {error}).") from None


def _flatten(value, name: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Yield (dotted name, tensor) for the tensors and arrays inside nested mappings and modules."""
    if isinstance(value, torch.nn.Module):
        value = value.state_dict()
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flatten(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, torch.Tensor):
        yield name, value.detach()
    elif isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fiub":
        yield name, torch.from_numpy(np.array(value))
