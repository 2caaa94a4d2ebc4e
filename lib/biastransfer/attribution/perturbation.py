"""Scores of many altered versions of one picture, of which only one batch is ever held."""

from collections.abc import Callable

import numpy as np
import torch
from torch.nn.functional import interpolate

from biastransfer.attribution.removal import INPAINTERS, Fill, Space, make_fill
from biastransfer.attribution.scores import check_scores
from biastransfer.backbones.allocation import keep_freed_memory


def score_versions(
    score, versions: Callable[[np.ndarray], torch.Tensor], count: int, batch_size: int
) -> np.ndarray:
    """Score many altered versions of a picture, of which only one batch is ever held.

    Parameters
    ----------
    score : callable (N, 3, H, W) tensor -> (N,) tensor
    versions : callable
        Numbers of versions (n,) int → pictures (n, 3, H, W).
    count : int
        How many versions there are.
    batch_size : int
        Pictures a forward pass. It changes no value beyond rounding (relative 1e-5); with 8 the activations
        of usual networks stay where a CPU is fast: the process keeps freed memory, see
        `backbones.allocation.keep_freed_memory`.

    Returns
    -------
    (count,) float64 array

    Raises
    ------
    ValueError
        If the batch size is not a positive integer; as `check_scores` does.
    """
    check_count("batch_size", batch_size)
    keep_freed_memory()
    found = np.empty(count)
    with torch.inference_mode():
        for start in range(0, count, batch_size):
            numbers = np.arange(start, min(start + batch_size, count))
            values = check_scores(score(versions(numbers)), len(numbers), getattr(score, "output", None))
            found[numbers] = values.cpu()
    return found


def remover(
    image: torch.Tensor, fill: str | Fill, *, space: Space, seed: int, settings: dict | None
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a function that removes parts of one picture, as fast as the fill allows.

    Parameters
    ----------
    image : (3, H, W) tensor
    fill : str or callable
        As for `removal.make_fill`.
    space : Space
        What the picture's values mean.
    seed : int
        Of fills that draw random numbers.
    settings : dict or None
        Settings of the fill.

    Returns
    -------
    callable
        Masks (N, 1, H, W) bool, True = removed → pictures (N, 3, H, W). What `removal.make_fill` gives, bit
        for bit; a fill that does not go by the hole is asked once.
    """
    filled = make_fill(fill, space=space, seed=seed, **(settings or {}))
    picture = image[None].contiguous()  # channels first, so that a score may use view()
    if needs_hole(fill):
        return lambda masks: filled(picture, masks)
    other = filled(picture, torch.ones_like(picture[:, :1], dtype=torch.bool))
    return lambda masks: torch.where(masks, other, picture)


def score_removals(
    score,
    image: torch.Tensor,
    draw: Callable[[int, torch.Tensor], None],
    count: int,
    *,
    remove: Callable[[torch.Tensor], torch.Tensor],
    batch_size: int,
) -> np.ndarray:
    """Score a picture with parts removed.

    Parameters
    ----------
    score : callable (N, 3, H, W) tensor -> (N,) tensor
    image : (3, H, W) tensor
    draw : callable (number, (H, W) bool tensor) -> None
        Sets to True what version ``number`` removes; the tensor comes all False.
    count : int
        How many versions there are.
    remove : callable masks -> images
        As `remover` makes it.
    batch_size : int
        As for `score_versions`.

    Returns
    -------
    (count,) float64 array
    """
    check_count("batch_size", batch_size)
    masks = torch.zeros((batch_size, 1, *image.shape[1:]), dtype=torch.bool, device=image.device)

    def versions(numbers):
        masks.zero_()
        for number, mask in zip(numbers.tolist(), masks[:, 0]):
            draw(number, mask)
        return remove(masks[: len(numbers)])

    return score_versions(score, versions, count, batch_size)


def needs_hole(fill: str | Fill) -> bool:
    """Tell whether a ``fill`` goes by what surrounds a hole; callables are taken to.

    The others have one filled-in picture, which a soft mask can blend with the picture.
    """
    return callable(fill) or fill in INPAINTERS


def resized(grid: np.ndarray, size, mode: str = "bilinear") -> np.ndarray:
    """Return a grid (h, w) as a float32 map of ``size`` (H, W); ``mode`` bilinear or nearest."""
    options = {"align_corners": False} if mode == "bilinear" else {}
    values = torch.from_numpy(np.asarray(grid, np.float64))[None, None]
    return interpolate(values, tuple(size), mode=mode, **options)[0, 0].numpy().astype(np.float32)


def check_count(name: str, value) -> None:
    """Raise a ValueError unless ``value``, which the message calls ``name``, is an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1; got {value!r}.")
