"""The optimiser of a recipe and its learning rate over time."""

import math

import torch
from torch import nn

from biastransfer.finetune.settings import Recipe


def make_optimizer(module: nn.Module, recipe: Recipe, rate: float) -> torch.optim.Optimizer:
    """Return the recipe's optimiser over all weights of ``module`` at the learning rate ``rate``.

    Notes
    -----
    Everything is trained, batch-norm scales and shifts included, and decayed alike. LARS scales every layer's
    step although weight decay is 0 (timm's default would then be plain SGD).
    """
    settings = {"lr": rate, "momentum": recipe.momentum, "weight_decay": recipe.weight_decay}
    if recipe.optimizer == "lars":
        from timm.optim import Lars

        return Lars(module.parameters(), always_adapt=True, **settings)
    return torch.optim.SGD(module.parameters(), fused=True, **settings)


def make_plateau(optimizer: torch.optim.Optimizer, recipe: Recipe):
    """Return the scheduler of a ``plateau`` recipe for ``optimizer`` (a tenth per plateau), else None."""
    if recipe.schedule != "plateau":
        return None
    return torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", 0.1, recipe.patience)


def rate_at(recipe: Recipe, peak: float, step: int, steps: int) -> float:
    """Return the learning rate of a step under ``constant`` or ``cosine``.

    Parameters
    ----------
    recipe : Recipe
    peak : float
    step, steps : int
        From 0; number of steps of the whole training.

    Examples
    --------
    >>> half = Recipe("x", epochs=1, lr=1.0, schedule="cosine")
    >>> rate_at(half, 1.0, 0, 10), round(rate_at(half, 1.0, 5, 10), 3)
    (1.0, 0.5)
    """
    if recipe.schedule != "cosine":
        return peak
    rising = round(recipe.warmup * steps)
    if step < rising:
        return peak * (step + 1) / (rising + 1)
    return peak * (1 + math.cos(math.pi * (step - rising) / max(steps - rising, 1))) / 2
