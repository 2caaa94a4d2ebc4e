"""The sliding patch: what the score loses where a square covers the picture."""

import numpy as np
import torch

from biastransfer.attribution.heatmaps import as_image
from biastransfer.attribution.perturbation import check_count, remover, resized, score_removals
from biastransfer.attribution.removal import PIXELS, Fill, Space

AGGREGATES = ("resize", "mean")
PATCH, STRIDE, SIDE = 77, 3, 224  # the authors', at their pictures' side


def sliding_patch(
    score,
    image: torch.Tensor,
    *,
    patch: int | None = None,
    stride: int | None = None,
    aggregate: str = "resize",
    fill: str | Fill = "mean",
    fill_settings: dict | None = None,
    seed: int = 0,
    batch_size: int = 8,
    space: Space = PIXELS,
) -> np.ndarray:
    """Return how much the score drops where a square patch covers the picture (SP; SP-G with an in-painter).

    Parameters
    ----------
    score : callable (N, 3, H, W) tensor -> (N,) tensor
        As `scores.class_score` makes it.
    image : (3, H, W) tensor
        One picture, in ``space``.
    patch : int, optional
        Side of the patch in pixels. Default: 77 where the picture's shorter side is 224, as the authors have
        it, and in proportion elsewhere.
    stride : int, optional
        Pixels between neighbouring positions. Default: 3 at 224 pixels, which gives 50 × 50 positions, and
        in proportion elsewhere.
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
    side = min(image.shape[1:])
    patch = max(1, round(PATCH * side / SIDE)) if patch is None else patch
    stride = max(1, round(STRIDE * side / SIDE)) if stride is None else stride
    tops, lefts = (_positions(length, patch, stride) for length in image.shape[1:])
    remove = remover(image, fill, space=space, seed=seed, settings=fill_settings)

    def draw(number: int, mask: torch.Tensor) -> None:
        if number:  # 0 is the picture itself
            row, column = divmod(number - 1, len(lefts))
            mask[tops[row] : tops[row] + patch, lefts[column] : lefts[column] + patch] = True

    count = 1 + len(tops) * len(lefts)
    found = score_removals(score, image, draw, count, remove=remove, batch_size=batch_size)
    drops = (found[0] - found[1:]).reshape(len(tops), len(lefts))
    if aggregate == "mean":
        return _mean_of_covering(drops, tops, lefts, patch, image.shape[1:])
    return resized(drops, image.shape[1:])


def _positions(length: int, patch: int, stride: int) -> list[int]:
    """Return where patches begin along one side: every ``stride`` pixels, the last one at the edge."""
    check_count("patch", patch)
    check_count("stride", stride)
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
