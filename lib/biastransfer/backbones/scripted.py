"""A TorchScript program as a backbone: a black box with one layer, its output."""

import warnings
from pathlib import Path

import torch
from torch import nn

from biastransfer import paths
from biastransfer.backbones.backbone import Backbone
from biastransfer.backbones.entries import IMAGENET
from biastransfer.backbones.reading import pool
from biastransfer.backbones.transforms import Transform

_SIZE = 224


class BlackBox(nn.Module):
    """A program whose output, one vector a picture, is the embedding; then a head that is empty at first."""

    def __init__(self, program: nn.Module, sha256: str):
        super().__init__()
        self.sha256 = sha256
        self.program, self.embedding, self.head = program, nn.Identity(), nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the head's output, the embedding (N, D) while there is none, for x (N, 3, H, W)."""
        return self.head(self.embedding(pool(self.program, self.program(x))))

    def extra_repr(self) -> str:
        """Return the hash of the file: weights and module names do not tell what a program does with them."""
        return f"sha256={self.sha256}"


def load_scripted(path: Path, trust: bool) -> Backbone:
    """Load a TorchScript program as a backbone.

    Parameters
    ----------
    path : path
        What ``torch.jit.save`` wrote.
    trust : bool
        Whether it may run.

    Returns
    -------
    Backbone
        Its dimension was found by running one black picture; its weights take no gradient, pictures do.

    Raises
    ------
    ValueError
        If it is not trusted, damaged, or does not turn a picture (1, 3, 224, 224) into one vector.
    """
    if not trust:
        raise ValueError(
            f"{path} is a TorchScript program, and loading it can run what lies in it: if you trust where it "
            "came from, pass trust=True; if you know its network, pass architecture=NAME, which reads its "
            "weights only."
        )
    try:
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # of TorchScript as such
            program = torch.jit.load(path, map_location="cpu").eval()
    except RuntimeError as error:
        raise ValueError(f"{path} is not a whole TorchScript program ({error}). Fetch it again.") from None
    for value in program.parameters():
        value.requires_grad_(False)
    module = BlackBox(program, paths.sha256(path)).eval()
    try:
        with torch.inference_mode():
            output = module(torch.zeros(1, 3, _SIZE, _SIZE))
        shape = tuple(output.shape)
    except (RuntimeError, AttributeError, IndexError) as error:
        shape = f"an error: {str(error).strip().splitlines()[-1]}"
    if len(shape) != 2 or isinstance(shape, str):
        raise ValueError(
            f"{path} must turn a picture (1, 3, {_SIZE}, {_SIZE}) into one vector, map or row of tokens; it "
            f"gives {shape}. Wrap the network so that it does, and save it again."
        )
    return Backbone(
        name=path.stem,
        module=module,
        transform=Transform(_SIZE, _SIZE / 256, "bilinear", **IMAGENET),
        dim=shape[1],
        layers=("embedding",),
        source=f"TorchScript program {path.name}; pictures prepared as for ImageNet, the file says nothing",
        layer_modules={"embedding": "embedding"},
        head="head",
        scripted=True,
    )
