"""RISE: the mean of random soft masks, weighted by the score of the picture seen through each."""

from collections.abc import Iterator

import numpy as np
import torch
from torch.nn.functional import interpolate

from biastransfer.attribution.heatmaps import as_image
from biastransfer.attribution.perturbation import needs_hole, remover, score_versions
from biastransfer.attribution.removal import PIXELS, Fill, Space

_CHUNK = 16  # masks made at once where no network sets the pace: 3 MiB at 224 pixels


class RiseMasks:
    """Random soft masks of RISE, kept as small grids and enlarged a few at a time; see `rise`.

    Parameters
    ----------
    size : (H, W)
        Of the picture.
    count : int
        How many masks.
    cells : int
        Cells a side of a grid.
    probability : float
        That a cell is shown.
    seed : int
        Of cells and shifts.
    """

    def __init__(self, size, count: int, cells: int, probability: float, seed: int):
        if count < 1 or not 1 <= cells <= min(size) or not 0 < probability < 1:
            raise ValueError(
                f"RISE needs n_samples ≥ 1, 1 ≤ cells ≤ {min(size)} (the picture's side) and "
                f"0 < probability < 1; got {count}, {cells} and {probability}."
            )
        self.size, self.count, self.probability = tuple(size), count, probability
        rng = np.random.default_rng(seed)
        self.grids = torch.from_numpy(rng.random((count, cells, cells), np.float32) < probability)
        sides = [-(-length // cells) for length in size]  # pixels a cell
        self.shifts = torch.from_numpy(np.stack([rng.integers(0, side, count) for side in sides], 1))
        # enlarging is linear and separable: one matrix a side, of which a mask takes a shifted window
        self.matrices = [_enlarging(cells, (cells + 1) * side) for side in sides]

    def __len__(self) -> int:
        """Return how many masks there are."""
        return self.count

    def __getitem__(self, numbers) -> torch.Tensor:
        """Return masks of those ``numbers``: (n, H, W) float32 in [0, 1], 1 = shown."""
        windows = [
            matrix[shift[:, None] + torch.arange(length)]
            for matrix, shift, length in zip(self.matrices, self.shifts[numbers].T, self.size)
        ]
        return windows[0] @ self.grids[numbers].float() @ windows[1].transpose(1, 2)

    def chunks(self) -> Iterator[tuple[slice, torch.Tensor]]:
        """Yield all masks, a few at a time: their place and (n, H, W)."""
        for start in range(0, self.count, _CHUNK):
            place = slice(start, min(start + _CHUNK, self.count))
            yield place, self[torch.arange(self.count)[place]]

    def weighted_sum(self, weights: np.ndarray) -> np.ndarray:
        """Return Σ weight · mask over all masks, (H, W) float64; ``weights`` (count,)."""
        total = torch.zeros(self.size, dtype=torch.float64)
        found = torch.from_numpy(np.asarray(weights, np.float64))
        for place, masks in self.chunks():
            total += torch.tensordot(found[place].float(), masks, dims=1)
        return total.numpy()


def rise(
    score,
    image: torch.Tensor,
    *,
    n_samples: int = 2000,
    cells: int = 7,
    probability: float = 0.5,
    binary: bool | None = None,
    fill: str | Fill = "mean",
    fill_settings: dict | None = None,
    seed: int = 0,
    batch_size: int = 8,
    space: Space = PIXELS,
) -> np.ndarray:
    """Return the mean score of random views of the picture that show a pixel (RISE).

    Parameters
    ----------
    score : callable (N, 3, H, W) tensor -> (N,) tensor
        As `scores.class_score` makes it.
    image : (3, H, W) tensor
        One picture, in ``space``.
    n_samples : int
        Masks. The source takes 4,000 to 8,000.
    cells : int
        Cells a side of the grid that becomes a mask.
    probability : float
        That a cell is shown.
    binary : bool, optional
        Whether masks are cut at one half before something is filled in. Default: for fills that go by what
        surrounds the hole (in-painters) and for callables, which need a hole.
    fill : str or callable
        What is seen where the mask is 0: a name of `removal.FILLS`, or (images, masks) → images. The source
        multiplies normalised pixels by the mask, which is ``"mean"`` in pixels.
    fill_settings : dict, optional
        Settings of the fill.
    seed : int
        Of masks and fill.
    batch_size : int
        Pictures a forward pass; it changes no value beyond rounding.
    space : Space
        What the picture's values mean.

    Returns
    -------
    (H, W) float32 array
        Σ score · mask / (n · probability), in the score's unit: about the score to be expected when the
        pixel is shown. Only differences within a map count: a score that ignores the picture gives a map
        that shows how often each pixel was drawn.

    Raises
    ------
    ValueError
        If a setting is out of range, or the score gives something else than one finite number a picture.

    Notes
    -----
    A grid is enlarged bilinearly to one cell more a side than the picture has and cut at a random place, so
    that cells do not always begin at the same pixels. Masks are made in batches from the grids: 2,000 of
    them never lie in memory at once.

    Source: Petsiuk et al. 2018 (arXiv:1806.07421).
    """
    image = as_image(image)
    binary = needs_hole(fill) if binary is None else binary
    remove = remover(image, fill, space=space, seed=seed, settings=fill_settings)
    masks = RiseMasks(image.shape[1:], n_samples, cells, probability, seed)
    picture = image[None].contiguous(memory_format=torch.channels_last)
    other = None if binary else remove(torch.ones_like(picture[:, :1], dtype=torch.bool))

    def versions(numbers):
        shown = masks[torch.from_numpy(numbers)][:, None].to(picture)
        return remove(shown < 0.5) if other is None else torch.lerp(other, picture, shown)

    found = score_versions(score, versions, n_samples, batch_size)
    return (masks.weighted_sum(found) / (n_samples * probability)).astype(np.float32)


def _enlarging(cells: int, length: int) -> torch.Tensor:
    """Return the matrix (length, cells) that enlarges a line bilinearly."""
    return interpolate(torch.eye(cells)[None], length, mode="linear", align_corners=False)[0].T.contiguous()
