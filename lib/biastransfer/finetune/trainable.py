"""Whether a backbone can be finetuned as a recipe says, asked before any picture is read."""

from pathlib import Path

import torch

from biastransfer import backbones
from biastransfer.backbones import Backbone
from biastransfer.checkpoint_layouts import is_torchscript
from biastransfer.finetune.recipes import find_recipe
from biastransfer.finetune.settings import Recipe


def load_trainable(backbone: str | Backbone, recipe: str | Recipe) -> Backbone:
    """Load a backbone and try whether it can be finetuned as a recipe says.

    Parameters
    ----------
    backbone : str or Backbone
        A name that `backbones.load_backbone` knows, or a loaded one, which is returned as it is.
    recipe : str or Recipe
        As `find_recipe` takes it.

    Returns
    -------
    Backbone

    Raises
    ------
    ValueError
        Unknown backbone or recipe; a TorchScript program, whose weights take no gradient and which no
        checkpoint can rebuild; a network that takes no pictures of ``recipe.size`` pixels, as vision
        transformers with fixed positions do not.

    Notes
    -----
    Where the recipe's size is not the backbone's own, one black picture of it runs through the network.
    """
    if isinstance(backbone, str):
        if Path(backbone).is_file() and is_torchscript(backbone):
            raise ValueError(_scripted(backbone))
        backbone = backbones.load_backbone(backbone)
    if backbone.scripted:
        raise ValueError(_scripted(backbone.name))
    _try_size(backbone, find_recipe(recipe, backbone.name))
    return backbone


def _scripted(name: str) -> str:
    return (
        f"a backbone to finetune must be a network that can be rebuilt; {name} is a TorchScript program, "
        "whose weights take no gradient. Load its weights into a network that has a name "
        "(load_backbone(path, architecture=…)) and finetune that."
    )


def _try_size(backbone: Backbone, recipe: Recipe) -> None:
    own = backbone.transform.size
    if recipe.size in (None, own):
        return
    weight = next(backbone.module.parameters(), torch.zeros(0))
    try:
        with torch.no_grad():  # no inference tensors: a network may keep what it computes for a size
            backbone.module(torch.zeros(1, 3, recipe.size, recipe.size, device=weight.device))
    except Exception as error:  # each network refuses in its own way, timm with an AssertionError
        said = (str(error).strip() or type(error).__name__).splitlines()[-1].rstrip(".")
        raise ValueError(
            f"{backbone.name} must be able to take the recipe's pictures; it takes {own} × {own} pixels and "
            f"recipe {recipe.name!r} has size {recipe.size} ({said}). Use a recipe with size=None, the "
            "network's own (dataclasses.replace(find_recipe(…), size=None)), or another backbone."
        ) from error
