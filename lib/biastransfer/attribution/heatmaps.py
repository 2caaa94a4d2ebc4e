"""What every metric is given, checked once: one picture, one heat map of its size, one score."""

from collections.abc import Callable

import numpy as np
import torch

ScoreFunction = Callable[[torch.Tensor], torch.Tensor]


def as_image(image) -> torch.Tensor:
    """Return one picture as a floating point tensor (3, H, W).

    Parameters
    ----------
    image : (3, H, W) tensor or array
        Floating point, finite.

    Returns
    -------
    (3, H, W) tensor
        Detached; the caller's memory, never written to.

    Raises
    ------
    ValueError
        Channels last, a batch, 8-bit pixels, or values that are not finite.
    """
    picture = torch.as_tensor(image).detach()
    if picture.ndim != 3 or picture.shape[0] != 3 or not picture.numel():
        raise ValueError(
            f"image must be one picture (3, H, W); got shape {tuple(picture.shape)}. "
            "Put the channels first, and give one picture at a time."
        )
    if not picture.is_floating_point():
        raise ValueError(f"image must be floating point; got {picture.dtype}. Divide 8-bit pixels by 255.")
    if not torch.isfinite(picture).all():
        raise ValueError("image must be finite; got NaN or infinity.")
    return picture


def as_heatmap(heatmap, size: tuple[int, int] | None = None) -> np.ndarray:
    """Return a heat map as an array (H, W), its values as they came.

    Parameters
    ----------
    heatmap : (H, W) array or tensor
        Real numbers; NaN and infinity pass, for metrics count them as misses (see `defect`).
    size : (H, W), optional
        The size it must have.

    Returns
    -------
    (H, W) float array

    Raises
    ------
    ValueError
        Another number of dimensions, another size, no pixel, or values that are no real numbers.
    """
    if isinstance(heatmap, torch.Tensor):
        heatmap = heatmap.detach().cpu().numpy()
    found = np.asarray(heatmap)
    if found.dtype.kind not in "fiub":
        raise ValueError(f"heatmap must hold real numbers; got {found.dtype}.")
    if found.ndim != 2 or not found.size or (size is not None and found.shape != tuple(size)):
        wanted = "(H, W)" if size is None else f"(H, W) = {tuple(size)}, the picture's size"
        raise ValueError(
            f"heatmap must be {wanted}; got shape {found.shape}. Sum over channels and resize it first."
        )
    return found if found.dtype.kind == "f" else found.astype(np.float64)


def defect(heatmap: np.ndarray) -> str:
    """Say what keeps a heat map (H, W) from ranking pixels: values not finite, or constant; "" if nothing.

    Examples
    --------
    >>> defect(np.array([[0.0, np.nan]]))
    'the map has 1 of 2 values that are not finite'
    >>> defect(np.ones((2, 2)))
    'the map is constant'
    """
    bad = int(heatmap.size - np.isfinite(heatmap).sum())
    if bad:
        return f"the map has {bad} of {heatmap.size} values that are not finite"
    return "the map is constant" if heatmap.max() == heatmap.min() else ""


def unusable(heatmap: np.ndarray) -> bool:
    """Tell whether a heat map (H, W) has values that are not finite: no number can come of it."""
    return not np.isfinite(heatmap).all()


def removal_order(heatmap: np.ndarray) -> np.ndarray:
    """Return the flat indices of a heat map's pixels, highest value first, ties row by row from the top left.

    Parameters
    ----------
    heatmap : (H, W) float array
        Finite.

    Returns
    -------
    (H·W,) int array

    Examples
    --------
    >>> removal_order(np.array([[0.0, 2.0], [2.0, 1.0]])).tolist()
    [1, 2, 3, 0]
    """
    return np.argsort(-heatmap, axis=None, kind="stable")


def score_pictures(score: ScoreFunction, images: torch.Tensor) -> np.ndarray:
    """Return what a score gives for a batch, checked: one value a picture, or one row of classes.

    Parameters
    ----------
    score : callable
        (N, 3, H, W) tensor → (N,), (N, 1) or (N, K).
    images : (N, 3, H, W) tensor

    Returns
    -------
    (N,) or (N, K) float64 array

    Raises
    ------
    ValueError
        Anything else came back.
    """
    with torch.inference_mode():
        found = score(images)
    values = torch.as_tensor(found).detach().to("cpu", torch.float64).numpy()
    if values.ndim not in (1, 2) or len(values) != len(images) or not values.size:
        raise ValueError(
            f"score must return one value a picture, (N,), or one row of classes, (N, K), with N = "
            f"{len(images)}; got shape {values.shape}."
        )
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def choose_target(values: np.ndarray, clean: int, target: int | None) -> tuple[np.ndarray, int | None]:
    """Return one value a picture, and the class it is for: fixed once, never chosen anew.

    Parameters
    ----------
    values : (N,) or (N, K) array
        From `score_pictures`.
    clean : int
        Row of the picture of which nothing was removed; its best class is the target where none is given.
    target : int, optional
        Column to take of (N, K).

    Returns
    -------
    values : (N,) array
    target : int or None
        None for a score that gives one value a picture.

    Raises
    ------
    ValueError
        A target for a score that has no classes, or beyond them.
    """
    if values.ndim == 1:
        if target is not None:
            raise ValueError(
                f"target chooses a column of a score (N, K); this score gives one value a picture and target "
                f"is {target}. Leave target out."
            )
        return values, None
    if target is None:
        target = int(np.argmax(values[clean]))
    if not 0 <= target < values.shape[1]:
        raise ValueError(f"target must lie in 0..{values.shape[1] - 1}, the score's classes; got {target}.")
    return values[:, target], int(target)
