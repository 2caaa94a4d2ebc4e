"""Two layouts of weights that are no state dict: TorchScript archives and BiT's official arrays."""

import collections
import io
import pickle
import re
import zipfile
from pathlib import Path

import torch

_TYPES = {
    "DoubleStorage": torch.float64,
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}


def is_torchscript(path: Path | str) -> bool:
    """Return whether the file ``path`` is what ``torch.jit.save`` writes: a program with its weights."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.split("/")[1:] == ["constants.pkl"] for name in archive.namelist())


class _Part(dict):
    """A module of the archive, held as its attributes; nothing of its program is loaded."""

    def __init__(self, *_arguments):
        super().__init__()

    def __setstate__(self, state):
        if isinstance(state, dict):
            self.update(state)


class _Tensors(pickle.Unpickler):
    """An unpickler that builds tensors and holds everything else as attributes without meaning."""

    def __init__(self, archive: zipfile.ZipFile, root: str):
        super().__init__(io.BytesIO(archive.read(f"{root}/data.pkl")))
        self._archive, self._root = archive, root

    def find_class(self, module: str, name: str):
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, size, stride, *_rest: storage.as_strided(size, stride, offset)
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        return _TYPES.get(name, _Part) if module == "torch" else _Part

    def persistent_load(self, identity):
        _kind, dtype, key, _device, count = identity
        data = bytearray(self._archive.read(f"{self._root}/data/{key}"))
        return torch.frombuffer(data, dtype=dtype, count=count) if count else torch.empty(0, dtype=dtype)


def torchscript_tensors(path: Path | str) -> dict:
    """Return the parameters and buffers of a TorchScript archive, without running any of its program.

    Parameters
    ----------
    path : path
        What ``torch.jit.save`` wrote.

    Returns
    -------
    dict
        Attribute → tensor, or the same for a submodule; other values beside them.

    Raises
    ------
    ValueError
        If the archive is damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            root = archive.namelist()[0].split("/")[0]
            return dict(_Tensors(archive, root).load())
    except Exception as error:  # a damaged pickle can raise anything
        raise ValueError(f"{path} is not a whole TorchScript archive ({error}). Fetch it again.") from None


_BIT_UNIT = re.compile(r"block(\d+)\.unit(\d+)\.([abc])\.(?:(proj)\.)?(\w+)\.(\w+)$")
_BIT_OUTER = {
    "root_block.standardized_conv2d.kernel": "stem.conv.weight",
    "group_norm.gamma": "norm.weight",
    "group_norm.beta": "norm.bias",
    "head.conv2d.kernel": "head.fc.weight",
    "head.conv2d.bias": "head.fc.bias",
}


def from_bit(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return BiT's official arrays under timm's names for ``resnetv2``; other files as they are.

    Parameters
    ----------
    tensors : dict of str to tensor
        As `checkpoint_files.read_tensors` gives them: ``resnet.block1.unit01.a.standardized_conv2d.kernel``.

    Returns
    -------
    dict of str to tensor
        Kernels (height, width, in, out) turned into (out, in, height, width). Names that are not BiT's stay.
    """
    if not any(name.endswith("root_block.standardized_conv2d.kernel") for name in tensors):
        return tensors
    turned = {}
    for name, value in tensors.items():
        if value.ndim == 4:
            value = value.permute(3, 2, 0, 1).contiguous()
        turned[_bit_name(name.split("resnet.", 1)[-1])] = value
    return turned


def _bit_name(name: str) -> str:
    inside = _BIT_UNIT.match(name)
    if not inside:
        return _BIT_OUTER.get(name, name)
    block, unit, place, projection, part, leaf = inside.groups()
    number = "abc".index(place) + 1
    kind = "downsample.conv" if projection else f"norm{number}" if part == "group_norm" else f"conv{number}"
    leaf = {"kernel": "weight", "gamma": "weight", "beta": "bias"}.get(leaf, leaf)
    return f"stages.{int(block) - 1}.blocks.{int(unit) - 1}.{kind}.{leaf}"
