"""LIME: superpixels switched off at random, and a linear model of what that does to the score."""

import numpy as np
import torch

from biastransfer.attribution.heatmaps import as_image
from biastransfer.attribution.perturbation import remover, score_removals
from biastransfer.attribution.removal import PIXELS, Fill, Space


def lime(
    score,
    image: torch.Tensor,
    *,
    n_segments: int = 50,
    compactness: float = 30.0,
    sigma: float = 3.0,
    n_samples: int = 500,
    kernel_width: float = 0.25,
    ridge: float = 1.0,
    shift_segments: bool = False,
    segments: np.ndarray | None = None,
    fill: str | Fill = "mean",
    fill_settings: dict | None = None,
    seed: int = 0,
    batch_size: int = 8,
    space: Space = PIXELS,
) -> np.ndarray:
    """Return the weight of each superpixel in a local linear model of the score (LIME; LIME-G in-painted).

    Parameters
    ----------
    score : callable (N, 3, H, W) tensor -> (N,) tensor
        As `scores.class_score` makes it.
    image : (3, H, W) tensor
        One picture, in ``space``.
    n_segments, compactness, sigma
        As for `superpixels`.
    shift_segments : bool
        Whether ``seed`` drives the superpixels too; else SLIC's own grid, which has no chance in it.
    n_samples : int
        Pictures scored; the first is the picture itself, in the others each superpixel is off with
        probability one half.
    kernel_width : float
        Width of the kernel on the cosine distance between a sample and the whole picture.
    ridge : float
        Penalty on the squared weights; the intercept is not penalised.
    segments : (H, W) int array, optional
        Superpixels of your own.
    fill : str or callable
        What replaces superpixels that are off: a name of `removal.FILLS`, or (images, masks) → images.
    fill_settings : dict, optional
        Settings of the fill.
    seed : int
        Of the samples, of fills that draw random numbers, and with ``shift_segments`` of the superpixels.
    batch_size : int
        Pictures a forward pass; it changes no value beyond rounding.
    space : Space
        What the picture's values mean.

    Returns
    -------
    (H, W) float32 array
        Weight of the pixel's superpixel, in the score's unit: what its presence adds.

    Raises
    ------
    ValueError
        If there are fewer than two superpixels, a setting is out of range, or the score gives something
        else than one finite number a picture.

    Notes
    -----
    The weight of a sample with k of m superpixels on is exp(−d² / (2 · width²)), d = 1 − √(k / m): the
    cosine distance, and the exponential kernel after its square root, as the method's reference
    implementation has it.

    Source: Ribeiro et al. 2016; settings of Agarwal and Nguyen 2019 (arXiv:1910.04256).

    Examples
    --------
    >>> halves, first = np.array([[0, 1]]), lambda images: images[:, 0, 0, 0]
    >>> lime(first, torch.ones(3, 1, 2), segments=halves, ridge=1e-9, fill="black").round(3).tolist()
    [[1.0, -0.0]]
    """
    image = as_image(image)
    if n_samples < 2 or not ridge > 0 or not kernel_width > 0:
        raise ValueError(
            "lime needs n_samples ≥ 2, ridge > 0 and kernel_width > 0; "
            f"got {n_samples}, {ridge} and {kernel_width}."
        )
    if segments is None:
        shift = seed if shift_segments else None
        segments = superpixels(space.pixels(image), n_segments, compactness, sigma, seed=shift)
    labels, count = _labels(segments, tuple(image.shape[1:]))
    on = np.random.default_rng(seed).integers(0, 2, (n_samples, count)).astype(bool)
    on[0] = True
    off, of_pixel = torch.from_numpy(~on).to(image.device), torch.from_numpy(labels).to(image.device)

    def draw(number: int, mask: torch.Tensor) -> None:
        torch.index_select(off[number], 0, of_pixel, out=mask.view(-1))

    remove = remover(image, fill, space=space, seed=seed, settings=fill_settings)
    found = score_removals(score, image, draw, n_samples, remove=remove, batch_size=batch_size)
    weights = fit_ridge(on, found, np.exp(-(_distance(on) ** 2) / (2 * kernel_width**2)), ridge)
    return weights[labels].reshape(image.shape[1:]).astype(np.float32)


def superpixels(
    pixels: torch.Tensor,
    n_segments: int = 50,
    compactness: float = 30.0,
    sigma: float = 3.0,
    *,
    seed: int | None = None,
) -> np.ndarray:
    """Cut a picture into superpixels with SLIC.

    Parameters
    ----------
    pixels : (3, H, W) tensor
        RGB in [0, 1]; a picture that leaves this range is first scaled to it.
    n_segments : int
        About how many.
    compactness : float
        Balance of closeness in space against closeness in colour.
    sigma : float
        Width of the smoothing before, in pixels.
    seed : int, optional
        Moves SLIC's starting grid by a random part of its step, the edges continued: how far does a map hang
        on where superpixels happened to begin? Some at the edges are narrow then. None: the grid as it is.

    Returns
    -------
    (H, W) int array
        Numbers of superpixels, 0 to m − 1.

    Raises
    ------
    ValueError
        If fewer than two superpixels are asked for.

    Examples
    --------
    >>> int(superpixels(torch.rand(3, 32, 32, generator=torch.Generator().manual_seed(0)), 4, sigma=1).max())
    3
    """
    from skimage.segmentation import slic  # a second of imports that other methods need not wait for

    if n_segments < 2:
        raise ValueError(f"n_segments must be at least 2; got {n_segments}.")
    picture = pixels.detach().cpu().double().permute(1, 2, 0).numpy()
    low, high = min(0.0, picture.min()), max(1.0, picture.max())
    picture = (picture - low) / (high - low)
    height, width = picture.shape[:2]
    top = left = 0
    if seed is not None:
        step = max(1, round((height * width / n_segments) ** 0.5))
        top, left = np.random.default_rng(seed).integers(0, step, 2)
        n_segments = round(n_segments * (1 + step / height) * (1 + step / width))
        picture = np.pad(picture, ((top, step - top), (left, step - left), (0, 0)), mode="edge")
    found = slic(picture, n_segments, compactness, sigma=sigma, start_label=0, channel_axis=-1)
    return np.unique(found[top : top + height, left : left + width], return_inverse=True)[1].reshape(
        height, width
    )


def fit_ridge(on: np.ndarray, values: np.ndarray, sample_weights: np.ndarray, ridge: float) -> np.ndarray:
    """Return the weights of a linear model with a free intercept, by weighted least squares with a penalty.

    Parameters
    ----------
    on : (n, m) bool array
        Which superpixels each sample shows.
    values : (n,) array
        Scores.
    sample_weights : (n,) array
        Not negative.
    ridge : float
        Penalty on the sum of squared weights.

    Returns
    -------
    (m,) float64 array
        Closed form: (X'WX + ridge · I)⁻¹ X'Wy on values centred with the sample weights.
    """
    share = sample_weights / sample_weights.sum()
    x, y = on - share @ on, values - share @ values
    weighted = x.T * sample_weights
    return np.linalg.solve(weighted @ x + ridge * np.eye(on.shape[1]), weighted @ y)


def _labels(segments, size: tuple[int, int]) -> tuple[np.ndarray, int]:
    """Return the superpixel number of every pixel, flat and without gaps, and how many there are."""
    segments = np.asarray(segments)
    if segments.shape != size or segments.dtype.kind not in "iu":
        raise ValueError(f"segments must be (H, W) = {size} integers; got {segments.shape} {segments.dtype}.")
    names, labels = np.unique(segments, return_inverse=True)
    if len(names) < 2:
        raise ValueError(
            "lime needs at least two superpixels; got one. Ask for more segments or a smaller compactness."
        )
    return labels.ravel(), len(names)


def _distance(on: np.ndarray) -> np.ndarray:
    """Return the cosine distance of each sample from the whole picture; 1 where nothing is left."""
    return 1 - np.sqrt(on.mean(1))
