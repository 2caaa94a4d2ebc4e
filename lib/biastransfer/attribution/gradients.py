"""Heat maps from gradients: plain, integrated from a baseline, averaged over noise."""

from collections.abc import Callable

import numpy as np
import torch

from biastransfer.attribution.heatmaps import as_image
from biastransfer.attribution.networks import eval_mode, pixel_module
from biastransfer.attribution.perturbation import check_count
from biastransfer.attribution.removal import PIXELS, Fill, Space, make_fill
from biastransfer.attribution.scores import check_scores, checked_classes
from biastransfer.backbones import Backbone

# how three channels become one: (3, H, W) → (H, W)
REDUCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sum": lambda values: values.sum(0),
    "abs_sum": lambda values: values.abs().sum(0),
    "abs_max": lambda values: values.abs().amax(0),
}


def gradient(
    module, image: torch.Tensor, target: int | None = None, *, reduce: str = "sum", batch_size: int = 4
) -> np.ndarray:
    """Return the gradient of the score in the pixels (Captum's Saliency).

    Parameters
    ----------
    module : Backbone, torch.nn.Module or callable
        A backbone is used on pixels; a module or callable gets the image as it is: (N, 3, H, W) →
        (N, classes), or (N,) when ``target`` is None. Its mode and parameters' gradients are left as they
        were.
    image : (3, H, W) tensor
    target : int or None
        The class; None for a `Score`.
    reduce : str
        How channels become one number: ``"sum"``, signed, positive where more of the value raises the score;
        ``"abs_max"``, the largest absolute value, as in the source; ``"abs_sum"``.
    batch_size : int
        Without effect, one picture; here so that all gradient methods are called alike.

    Returns
    -------
    (H, W) float32 array
        Score per unit of the image's values.

    Raises
    ------
    ValueError
        If there is no such class, the output has another shape, or the gradient is not finite.

    Notes
    -----
    Source: Simonyan et al. 2014.

    Examples
    --------
    >>> weights = torch.tensor([1.0, 2.0, -1.0])[:, None, None]
    >>> gradient(lambda x: (x * weights).sum((1, 2, 3)), torch.ones(3, 1, 2)).tolist()
    [[2.0, 2.0]]
    """
    from captum.attr import Saliency

    def explain(forward, picture):
        return Saliency(forward).attribute(picture, abs=False)

    return _explained(explain, module, image, target, reduce)


def integrated_gradients(
    module,
    image: torch.Tensor,
    target: int | None = None,
    *,
    n_steps: int = 50,
    reduce: str = "sum",
    fill: str | Fill = "black",
    fill_settings: dict | None = None,
    seed: int = 0,
    batch_size: int = 4,
    space: Space = PIXELS,
) -> np.ndarray:
    """Return the gradient integrated from a baseline to the picture, times their difference (Captum's).

    Parameters
    ----------
    module, image, target, reduce
        As for `gradient`.
    n_steps : int
        Points of the Gauss–Legendre rule.
    fill : str or callable
        Makes the baseline: a name of `removal.FILLS`, or (images, masks) → images, asked to fill the whole
        picture.
    fill_settings : dict, optional
        Settings of the fill.
    seed : int
        Of fills that draw random numbers.
    batch_size : int
        Pictures a forward and backward pass; it changes no value beyond rounding.
    space : Space
        What the image's values mean.

    Returns
    -------
    (H, W) float32 array
        In the score's unit; its sum is about score(picture) − score(baseline).

    Raises
    ------
    ValueError
        As for `gradient`; if ``n_steps`` is below 1.

    Notes
    -----
    Source: Sundararajan et al. 2017.
    """
    from captum.attr import IntegratedGradients

    check_count("batch_size", batch_size)
    if n_steps < 1:
        raise ValueError(f"n_steps must be at least 1; got {n_steps}.")
    image = as_image(image)
    everything = torch.ones_like(image[:1], dtype=torch.bool)
    baseline = make_fill(fill, space=space, seed=seed, **(fill_settings or {}))(image, everything)

    def explain(forward, picture):
        return IntegratedGradients(forward).attribute(
            picture, baseline[None].clone(), n_steps=n_steps, internal_batch_size=batch_size
        )

    return _explained(explain, module, image, target, reduce)


def smoothgrad(
    module,
    image: torch.Tensor,
    target: int | None = None,
    *,
    n_samples: int = 50,
    noise: float = 0.15,
    reduce: str = "sum",
    seed: int = 0,
    batch_size: int = 4,
) -> np.ndarray:
    """Return the mean gradient over noisy copies of the picture (SmoothGrad).

    Parameters
    ----------
    module, image, target, reduce
        As for `gradient`; channels are reduced after averaging.
    n_samples : int
        Copies.
    noise : float
        Standard deviation of the noise as a share of the picture's range, largest minus smallest value.
    seed : int
        Of the noise.
    batch_size : int
        Pictures a forward and backward pass; it changes no value beyond rounding.

    Returns
    -------
    (H, W) float32 array
        Score per unit of the image's values.

    Raises
    ------
    ValueError
        As for `gradient`; if ``n_samples`` is below 1 or ``noise`` negative.

    Notes
    -----
    Captum's NoiseTunnel draws from the global generator and so that the noise hangs on the batch size. Here
    each copy's noise is drawn by itself from the seed, and Captum's Saliency differentiates.

    Source: Smilkov et al. 2017.
    """
    from captum.attr import Saliency

    check_count("batch_size", batch_size)
    if n_samples < 1 or not noise >= 0:
        raise ValueError(f"smoothgrad needs n_samples ≥ 1 and noise ≥ 0; got {n_samples} and {noise}.")
    rng = np.random.default_rng(seed)

    def explain(forward, picture):
        deviation = noise * float(picture.detach().max() - picture.detach().min())
        total, saliency = torch.zeros_like(picture), Saliency(forward)
        for start in range(0, n_samples, batch_size):
            shape = (min(batch_size, n_samples - start), *picture.shape[1:])
            drawn = torch.from_numpy(rng.standard_normal(shape, np.float32)).to(picture)
            noisy = (picture.detach() + deviation * drawn).requires_grad_()
            total += saliency.attribute(noisy, abs=False).sum(0)
        return total / n_samples

    return _explained(explain, module, image, target, reduce)


def scores_of(model: Callable, target: int | None) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a function from images (N, 3, H, W) to checked scores (N,), always with a gradient.

    Parameters
    ----------
    model : callable
        Gives (N, classes), or (N,) when ``target`` is None.
    target : int or None
        The class.
    """

    def forward(images: torch.Tensor) -> torch.Tensor:
        values = model(images)
        if target is not None:
            values = checked_classes(values, len(images), target)[:, target]
        values = check_scores(values, len(images), getattr(model, "output", None))
        # a model that ignores the picture has the gradient 0, not none
        return values if values.requires_grad else values + 0 * images.flatten(1).sum(1)

    return forward


def _explained(explain, module, image, target: int | None, reduce: str) -> np.ndarray:
    """Run ``explain(forward, picture)`` → (1, 3, H, W) in eval mode and reduce its channels."""
    if reduce not in REDUCTIONS:
        raise ValueError(f"unknown reduce {reduce!r}; known: {', '.join(REDUCTIONS)}")
    model = pixel_module(module) if isinstance(module, Backbone) else module
    with eval_mode(model), torch.inference_mode(False), torch.enable_grad():
        picture = as_image(image)[None].clone().requires_grad_()
        found = explain(scores_of(model, target), picture)
    return finite_map(REDUCTIONS[reduce](found.detach()[0]))


def finite_map(values: torch.Tensor) -> np.ndarray:
    """Return a map (H, W) as float32; a ValueError says how many ``values`` are not finite."""
    if bad := int((~torch.isfinite(values)).sum()):
        raise ValueError(
            f"a heat map must be finite; {bad} of {values.numel()} values are NaN or infinite. Check the "
            "picture and the network's gradient."
        )
    return values.to("cpu", torch.float32).numpy()
