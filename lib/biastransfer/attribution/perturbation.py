"""Scores of many altered versions of one picture, and the sliding patch: what is lost where it covers."""

from collections.abc import Callable

import numpy as np
import torch
from torch.nn.functional import interpolate

from biastransfer.attribution.heatmaps import as_image
from biastransfer.attribution.removal import INPAINTERS, PIXELS, Fill, Space, make_fill
from biastransfer.attribution.scores import check_scores

AGGREGATES = ("resize", "mean")


def score_versions(
    score, image: torch.Tensor, versions: Callable[[np.ndarray], torch.Tensor], count: int, batch_size: int
) -> np.ndarray:
    """Score many altered versions of a picture, of which only one batch is ever held.

    Parameters
    ----------
    score : callable (N, 3, H, W) tensor -> (N,) tensor
    image : (3, H, W) tensor
        The picture, for the size and the messages only.
    versions : callable
        Numbers of versions (n,) int → pictures (n, 3, H, W).
    count : int
        How many versions there are.
    batch_size : int
        Pictures a forward pass. It changes no value beyond rounding (relative 1e-5); with 4 the activations
        of usual networks stay where a CPU is fast.

    Returns
    -------
    (count,) float64 array

    Raises
    ------
    ValueError
        If the batch size is not a positive integer; as `check_scores` does.
    """
    if isinstance(batch_size, bool) or not isinstance(batch_size, int | np.integer) or batch_size < 1:
        raise ValueError(f"batch_size must be an integer of at least 1; got {batch_size!r}.")
    found = np.empty(count)
    with torch.inference_mode():
        for start in range(0, count, batch_size):
            # always a full batch: kernels are chosen by shape, so the last digits of a value would else
            # depend on how many versions are left
            numbers = np.minimum(np.arange(start, start + batch_size), count - 1)
            values = check_scores(score(versions(numbers)), batch_size, getattr(score, "output", None))
            found[start : start + batch_size] = values[: count - start].cpu()
    return found


def score_removals(
    score,
    image: torch.Tensor,
    draw: Callable[[int, torch.Tensor], None],
    count: int,
    *,
    filled: Fill,
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
    filled : callable (images, masks) -> images
        As `removal.make_fill` makes it.
    batch_size : int
        As for `score_versions`.

    Returns
    -------
    (count,) float64 array
    """
    picture = image[None].contiguous(memory_format=torch.channels_last)
    masks = torch.zeros((int(batch_size), 1, *image.shape[1:]), dtype=torch.bool, device=image.device)

    def versions(numbers):
        masks.zero_()
        for number, mask in zip(numbers.tolist(), masks[:, 0]):
            draw(number, mask)
        return filled(picture, masks)

    return score_versions(score, image, versions, count, batch_size)


def sliding_patch(
    score,
    image: torch.Tensor,
    *,
    patch: int = 77,
    stride: int = 3,
    aggregate: str = "resize",
    fill: str | Fill = "mean",
    fill_settings: dict | None = None,
    seed: int = 0,
    batch_size: int = 4,
    space: Space = PIXELS,
) -> np.ndarray:
    """Return how much the score drops where a square patch covers the picture (SP; SP-G with an in-painter).

    Parameters
    ----------
    score : callable (N, 3, H, W) tensor -> (N,) tensor
        As `scores.class_score` makes it.
    image : (3, H, W) tensor
        One picture, in ``space``.
    patch : int
        Side of the patch in pixels.
    stride : int
        Pixels between neighbouring positions; at 224 pixels the defaults give 50 × 50 of them.
    aggregate : str
        How drops become a map. ``"resize"``, the authors': the grid of drops is resized to the picture,
        bilinear. ``"mean"``: each pixel gets the mean drop of the patches that cover it, as in Captum's
        occlusion; 0 where none does.
    fill : str or callable
        What replaces the patch: a name of `removal.FILLS`, or (images, masks) → images.
    fill_settings : dict, optional
        Settings of the fill.
    seed : int
        Of fills that draw random numbers.
    batch_size : int
        Pictures a forward pass; it changes no value beyond rounding.
    space : Space
        What the picture's values mean.

    Returns
    -------
    (H, W) float32 array
        In the score's unit: score of the picture minus score without the patch. Positive where the picture
        supports the score.

    Raises
    ------
    ValueError
        If the patch does not fit, a setting is out of range, or the score gives something else than one
        finite number a picture.

    Notes
    -----
    A patch always lies inside the picture. Where the stride does not end at the edge, one more position
    does. With ``"resize"`` the grid is stretched: its first column, whose patch is centred ``patch / 2``
    pixels from the edge, is drawn at the edge.

    Source: Agarwal and Nguyen 2019 (arXiv:1910.04256), after Zeiler and Fergus 2014.

    Examples
    --------
    >>> brightness = lambda images: images.sum((1, 2, 3))
    >>> sliding_patch(brightness, torch.ones(3, 2, 2), patch=1, stride=1, fill="black").tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    image = as_image(image)
    if aggregate not in AGGREGATES:
        raise ValueError(f"unknown aggregate {aggregate!r}; known: {', '.join(AGGREGATES)}")
    tops, lefts = (_positions(length, patch, stride) for length in image.shape[1:])
    filled = make_fill(fill, space=space, seed=seed, **(fill_settings or {}))

    def draw(number: int, mask: torch.Tensor) -> None:
        if number:  # 0 is the picture itself
            row, column = divmod(number - 1, len(lefts))
            mask[tops[row] : tops[row] + patch, lefts[column] : lefts[column] + patch] = True

    count = 1 + len(tops) * len(lefts)
    found = score_removals(score, image, draw, count, filled=filled, batch_size=batch_size)
    drops = (found[0] - found[1:]).reshape(len(tops), len(lefts))
    if aggregate == "mean":
        return _mean_of_covering(drops, tops, lefts, patch, image.shape[1:])
    return resized(drops, image.shape[1:])


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


def _positions(length: int, patch: int, stride: int) -> list[int]:
    """Return where patches begin along one side: every ``stride`` pixels, the last one at the edge."""
    for name, value in (("patch", patch), ("stride", stride)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} must be an integer of at least 1 pixel; got {value!r}.")
    if patch > length:
        raise ValueError(f"the patch must fit into the picture; got {patch} and a side of {length} pixels.")
    starts = list(range(0, length - patch + 1, stride))
    return starts if starts[-1] == length - patch else [*starts, length - patch]


def _mean_of_covering(drops: np.ndarray, tops, lefts, patch: int, size) -> np.ndarray:
    """Return for each pixel the mean of the drops of the patches that cover it; 0 where there is none."""
    rows, columns = (
        np.array([(start <= np.arange(length)) & (np.arange(length) < start + patch) for start in starts])
        for starts, length in zip((tops, lefts), size)
    )
    total = rows.T.astype(float) @ drops @ columns
    covering = np.outer(rows.sum(0), columns.sum(0))
    return (total / np.maximum(covering, 1)).astype(np.float32)
