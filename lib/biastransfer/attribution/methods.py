"""All attribution methods by name, with the settings that the paper or the method's source used."""

import inspect
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import torch

from biastransfer.attribution.gradcam import gradcam
from biastransfer.attribution.gradients import gradient, integrated_gradients, smoothgrad
from biastransfer.attribution.heatmaps import as_image
from biastransfer.attribution.lime import lime
from biastransfer.attribution.meaningful_perturbation import meaningful_perturbation
from biastransfer.attribution.occlusion import occlusion
from biastransfer.attribution.removal import PIXELS, Fill, Space
from biastransfer.attribution.rise import rise
from biastransfer.attribution.sliding_patch import sliding_patch

__all__ = [
    "METHODS",
    "Method",
    "gaussian_map",
    "gradcam",
    "gradient",
    "heat_map",
    "integrated_gradients",
    "lime",
    "meaningful_perturbation",
    "occlusion",
    "random_map",
    "rise",
    "sliding_patch",
    "smoothgrad",
]


class Method(NamedTuple):
    """One way to a heat map.

    ``kind`` says how it is called: ``"perturbation"`` (score, image, …), ``"gradient"`` (module, image,
    target, …), ``"control"`` (image, …). ``settings`` are its defaults.
    """

    function: Callable[..., np.ndarray]
    kind: str
    settings: Mapping


def random_map(image: torch.Tensor, *, seed: int = 0) -> np.ndarray:
    """Return uniform noise: the control that knows nothing.

    Parameters
    ----------
    image : (3, H, W) tensor
        For its size.
    seed : int
        Of the noise.

    Returns
    -------
    (H, W) float32 array
        In [0, 1).
    """
    return np.random.default_rng(seed).random(tuple(as_image(image).shape[1:]), np.float32)


def gaussian_map(image: torch.Tensor, *, sigma: float = 0.25, seed: int = 0) -> np.ndarray:
    """Return a centred Gaussian: the control that knows only that photographers centre their objects.

    Parameters
    ----------
    image : (3, H, W) tensor
        For its size.
    sigma : float
        Standard deviation as a share of each side.
    seed : int
        Without effect; here so that both controls are called alike.

    Returns
    -------
    (H, W) float32 array
        In (0, 1], highest in the middle.

    Raises
    ------
    ValueError
        If ``sigma`` is not above 0.
    """
    if not sigma > 0:
        raise ValueError(f"sigma must be above 0; got {sigma}.")
    lines = [
        np.exp(-0.5 * ((np.arange(length) - (length - 1) / 2) / (sigma * length)) ** 2)
        for length in as_image(image).shape[1:]
    ]
    return np.outer(*lines).astype(np.float32)


# Agarwal and Nguyen 2019 for SP (77 and 3 at 224 pixels), LIME and MP; the methods' sources for the others
METHODS: dict[str, Method] = {
    "sliding_patch": Method(
        sliding_patch, "perturbation", {"patch": None, "stride": None, "aggregate": "resize", "fill": "mean"}
    ),
    "lime": Method(
        lime,
        "perturbation",
        {
            "n_segments": 50,
            "compactness": 30.0,
            "sigma": 3.0,
            "n_samples": 500,
            "kernel_width": 0.25,
            "ridge": 1.0,
            "shift_segments": False,
            "fill": "mean",
        },
    ),
    "meaningful_perturbation": Method(
        meaningful_perturbation,
        "perturbation",
        {
            "mask_size": 28,
            "steps": 300,
            "learning_rate": 0.1,
            "l1": 1e-4,
            "tv": 1e-2,
            "tv_beta": 3.0,
            "jitter": 4,
            "fill_kept": False,
            "fill": "blur",
            "blur_radius": 10.0,
        },
    ),
    "rise": Method(rise, "perturbation", {"n_samples": 2000, "cells": 7, "probability": 0.5, "fill": "mean"}),
    "gradient": Method(gradient, "gradient", {"reduce": "sum"}),
    "integrated_gradients": Method(
        integrated_gradients, "gradient", {"n_steps": 50, "reduce": "sum", "fill": "black"}
    ),
    "smoothgrad": Method(smoothgrad, "gradient", {"n_samples": 50, "noise": 0.15, "reduce": "sum"}),
    "occlusion": Method(occlusion, "gradient", {"patch": 15, "stride": 8, "fill": "mean"}),
    "gradcam": Method(gradcam, "gradient", {"relu": True}),
    "random_map": Method(random_map, "control", {}),
    "gaussian_map": Method(gaussian_map, "control", {"sigma": 0.25}),
}


def heat_map(
    name: str,
    score,
    image: torch.Tensor,
    *,
    fill: str | Fill | None = None,
    seed: int = 0,
    batch_size: int = 8,
    space: Space = PIXELS,
    **settings,
) -> np.ndarray:
    """Return the heat map of any method, all called alike.

    Parameters
    ----------
    name : str
        A name of `METHODS`.
    score : Score or callable
        What is explained, one number a picture; Grad-CAM needs a `scores.Score`.
    image : (3, H, W) tensor
        One picture, in ``space``.
    fill : str, callable or None
        For methods that have one; None is the method's own.
    seed, batch_size, space
        As for each method; passed to those that have them.
    **settings
        Of the method, besides its defaults in `METHODS`.

    Returns
    -------
    (H, W) float32 array
        Larger where the picture supports the score.

    Raises
    ------
    ValueError
        If there is no such method or it has no such setting; whatever the method raises.
    """
    if name not in METHODS:
        raise ValueError(f"unknown method {name!r}; known: {', '.join(METHODS)}")
    function, kind, defaults = METHODS[name]
    known = inspect.signature(function).parameters
    if unknown := sorted(set(settings) - set(known)):
        raise ValueError(
            f"{name} has no setting {', '.join(unknown)}; known: {', '.join(defaults) or 'none'}"
        )
    common = {"seed": seed, "batch_size": batch_size, "space": space}
    common |= {} if fill is None else {"fill": fill}
    options = {**defaults, **{key: value for key, value in common.items() if key in known}, **settings}
    return function(image, **options) if kind == "control" else function(score, image, **options)
