"""Occlusion: what each pixel's covering takes from the score, on average over the patches that cover it."""

import numpy as np
import torch

from biastransfer.attribution.gradients import scores_of
from biastransfer.attribution.networks import eval_mode, pixel_module
from biastransfer.attribution.removal import PIXELS, Fill, Space
from biastransfer.attribution.sliding_patch import sliding_patch
from biastransfer.backbones import Backbone


def occlusion(
    module,
    image: torch.Tensor,
    target: int | None = None,
    *,
    patch: int = 15,
    stride: int = 8,
    fill: str | Fill = "mean",
    fill_settings: dict | None = None,
    seed: int = 0,
    batch_size: int = 8,
    space: Space = PIXELS,
) -> np.ndarray:
    """Return for each pixel the mean drop of the score over the patches that cover it.

    Parameters
    ----------
    module, image, target
        As for `gradients.gradient`.
    patch, stride, fill, fill_settings, seed, batch_size, space
        As for `sliding_patch.sliding_patch`.

    Returns
    -------
    (H, W) float32 array
        In the score's unit.

    Raises
    ------
    ValueError
        As for `sliding_patch.sliding_patch`.

    Notes
    -----
    The map of Captum's Occlusion where the stride ends at the edge (a test compares), computed by
    `sliding_patch.sliding_patch` with ``aggregate="mean"`` because Captum's passes take about twice the time
    of the forward passes in them. Elsewhere the last patch here is whole and ends at the edge.
    """
    model = pixel_module(module) if isinstance(module, Backbone) else module
    with eval_mode(model):
        return sliding_patch(
            scores_of(model, target),
            image,
            patch=patch,
            stride=stride,
            aggregate="mean",
            fill=fill,
            fill_settings=fill_settings,
            seed=seed,
            batch_size=batch_size,
            space=space,
        )
