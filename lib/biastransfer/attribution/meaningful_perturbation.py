"""Meaningful perturbation: a small mask, learnt by gradient descent, that hides what the score needs."""

import numpy as np
import torch
from torch.nn.functional import interpolate, pad

from biastransfer.attribution.heatmaps import as_image
from biastransfer.attribution.perturbation import needs_hole, resized
from biastransfer.attribution.removal import PIXELS, Fill, Space, make_fill
from biastransfer.attribution.scores import check_scores


def meaningful_perturbation(
    score,
    image: torch.Tensor,
    *,
    mask_size: int = 28,
    steps: int = 300,
    learning_rate: float = 0.1,
    l1: float = 1e-4,
    tv: float = 1e-2,
    tv_beta: float = 3.0,
    jitter: int = 4,
    binary: bool | None = None,
    fill_kept: bool = False,
    fill: str | Fill = "blur",
    blur_radius: float = 10.0,
    fill_settings: dict | None = None,
    seed: int = 0,
    batch_size: int = 4,
    space: Space = PIXELS,
) -> np.ndarray:
    """Return one minus the mask that lowers the score most while hiding little (MP; MP-G with an in-painter).

    Parameters
    ----------
    score : callable (N, 3, H, W) tensor -> (N,) tensor
        Differentiable, as `scores.class_score` makes it.
    image : (3, H, W) tensor
        One picture, in ``space``.
    mask_size : int
        Cells a side of the mask, which is enlarged to the picture by nearest neighbour.
    steps : int
        Steps of Adam.
    learning_rate : float
        Of Adam.
    l1 : float
        Weight of the sum of 1 − mask over the cells: hide little.
    tv : float
        Weight of the sum, over neighbouring cells, of their absolute difference to the power ``tv_beta``:
        hide in one piece.
    tv_beta : float
        That exponent.
    jitter : int
        At every step the picture, edges reflected, lies shifted by up to half as many pixels each way.
    binary : bool, optional
        Whether the network sees a mask of 0 and 1: a cell is kept above max(½, ½ (largest + smallest)). Only
        in the forward pass; the gradient passes as if it were not. Default: for fills that go by what
        surrounds the hole (in-painters) and for callables, which need a hole.
    fill_kept : bool
        With a binary mask: whether the gradient at a kept cell goes by what the fill would put there, asked
        about all kept cells together. Twice the fills a step.
    fill : str or callable
        What is seen where the mask is 0: a name of `removal.FILLS`, or (images, masks) → images.
    blur_radius : float
        Deviation σ in pixels of ``fill="blur"``.
    fill_settings : dict, optional
        Settings of the fill.
    seed : int
        Of the mask's first values, uniform in [0, 1], of the jitter and of the fill.
    batch_size : int
        Without effect, one picture a step; here so that all perturbation methods are called alike.
    space : Space
        What the picture's values mean.

    Returns
    -------
    (H, W) float32 array
        In [0, 1]: 1 where the picture had to be hidden.

    Raises
    ------
    ValueError
        If a setting is out of range, the score has no gradient or gives something else than one finite
        number a picture.

    Notes
    -----
    The mask starts at random, as in the authors' code, and sums, not means, are penalised. With a binary
    mask the gradient at a kept cell is that of the penalties alone, for nothing was put there: such a cell
    is hidden only when total variation draws it after its neighbours, so much hangs on the seed.
    ``fill_kept`` lifts that.

    Source: Fong and Vedaldi 2017; settings of Agarwal and Nguyen 2019 (arXiv:1910.04256).
    """
    image = as_image(image)
    _check_settings(mask_size, steps, jitter, min(image.shape[1:]))
    binary = needs_hole(fill) if binary is None else binary
    if fill == "blur":
        half = min(int(np.ceil(3 * blur_radius)), min(image.shape[1:]) - 1)
        fill_settings = {"kernel": 2 * half + 1, "sigma": float(blur_radius), **(fill_settings or {})}
    filled = make_fill(fill, space=space, seed=seed, **(fill_settings or {}))
    rng = np.random.default_rng(seed)
    first = torch.from_numpy(rng.random((1, 1, mask_size, mask_size))).to(image)
    shifts = rng.integers(0, jitter + 1, (steps, 2)).tolist()
    with torch.inference_mode(False), torch.enable_grad():
        picture = pad(image.clone()[None], (jitter // 2, jitter - jitter // 2) * 2, mode="reflect")
        size = tuple(image.shape[1:])
        seen = (
            _shown_binary(picture, filled, size, fill_kept) if binary else _shown_soft(picture, filled, size)
        )
        mask = _descend(score, seen, first, shifts, learning_rate, lambda m: _penalty(m, l1, tv, tv_beta))
    return resized(1 - mask[0, 0].cpu().numpy(), image.shape[1:], mode="nearest")


def _descend(score, seen, mask, shifts, learning_rate: float, penalty) -> torch.Tensor:
    """Return the mask after one step of Adam a shift, kept in [0, 1]."""
    mask = mask.clone().requires_grad_()
    optimiser = torch.optim.Adam([mask], lr=learning_rate)
    output = getattr(score, "output", None)
    for top, left in shifts:
        values = check_scores(score(seen(mask, top, left)), 1, output)
        if not values.requires_grad:  # a score that ignores the picture
            values = values.detach()
        # of the mask alone: the network's parameters keep their own gradients
        mask.grad = torch.autograd.grad(values[0] + penalty(mask), mask)[0]
        if not torch.isfinite(mask.grad).all():
            raise ValueError("the score's gradient must be finite; it is NaN or infinite. Check the network.")
        optimiser.step()
        with torch.no_grad():
            mask.clamp_(0, 1)
    return mask.detach()


def _shown_soft(picture: torch.Tensor, filled: Fill, size):
    """Return what is seen through a soft mask: picture and filled-in picture blended."""
    height, width = size
    with torch.no_grad():
        other = filled(picture, torch.ones_like(picture[:, :1], dtype=torch.bool))

    def seen(mask, top, left):
        part = (..., slice(top, top + height), slice(left, left + width))
        return torch.lerp(other[part], picture[part], interpolate(mask, size, mode="nearest"))

    return seen


def _shown_binary(picture: torch.Tensor, filled: Fill, size, fill_kept: bool):
    """Return what is seen through a mask made binary in the forward pass only."""
    height, width = size

    def seen(mask, top, left):
        part = picture[..., top : top + height, left : left + width]
        soft = interpolate(mask, size, mode="nearest")
        with torch.no_grad():
            low, high = float(mask.min()), float(mask.max())
            # where all cells are alike their mean tells nothing apart
            kept = soft > (max(0.5, 0.5 * (low + high)) if low < high else 0.5)
            other = filled(part, ~kept)
            if fill_kept:  # its weight in what is seen is 0, but not in the gradient
                other = torch.where(kept, filled(part, kept), other)
        straight = soft + (kept.to(soft) - soft).detach()
        return torch.lerp(other, part, straight)

    return seen


def _penalty(mask: torch.Tensor, l1: float, tv: float, beta: float) -> torch.Tensor:
    down, right = mask.diff(dim=2).abs(), mask.diff(dim=3).abs()
    return l1 * (1 - mask).abs().sum() + tv * (down.pow(beta).sum() + right.pow(beta).sum())


def _check_settings(mask_size: int, steps: int, jitter: int, side: int) -> None:
    if not 1 <= mask_size <= side:
        raise ValueError(f"mask_size must lie between 1 and the picture's {side} pixels; got {mask_size}.")
    if steps < 1:
        raise ValueError(f"steps must be at least 1; got {steps}.")
    if not 0 <= jitter < side:
        raise ValueError(f"jitter must lie between 0 and the picture's {side} pixels; got {jitter}.")
