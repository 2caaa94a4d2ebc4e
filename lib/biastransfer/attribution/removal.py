"""Removing part of a picture: one interface for plain colours, blur, noise and in-painters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch.nn.functional import conv2d, pad

from biastransfer.attribution import inpainters

Fill = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Space:
    """What a tensor's values mean: value = (pixel − ``mean``) / ``std``, pixel RGB in [0, 1].

    Examples
    --------
    >>> halves = Space((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    >>> halves.pixels(torch.full((3, 1, 1), -1.0)).flatten().tolist()
    [0.0, 0.0, 0.0]
    """

    mean: tuple[float, float, float]
    std: tuple[float, float, float]

    def __post_init__(self):  # noqa: D105
        if len(self.mean) != 3 or len(self.std) != 3 or not min(self.std) > 0:
            raise ValueError(
                f"a space needs three means and three positive std; got {self.mean}, {self.std}."
            )

    def pixels(self, values: torch.Tensor) -> torch.Tensor:
        """Return the pixels in [0, 1] of ``values`` (…, 3, H, W); the same tensor where they are pixels."""
        if self == PIXELS:
            return values
        return values * _column(self.std, values) + _column(self.mean, values)

    def values(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return the values of ``pixels`` (…, 3, H, W) in this space: the inverse of `Space.pixels`."""
        if self == PIXELS:
            return pixels
        return (pixels - _column(self.mean, pixels)) / _column(self.std, pixels)


PIXELS = Space((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
IMAGENET = Space(IMAGENET_MEAN, IMAGENET_STD)


def make_fill(fill: str | Fill, *, space: Space = PIXELS, seed: int = 0, **settings) -> Fill:
    """Return a function that replaces what is masked in pictures.

    Parameters
    ----------
    fill : str or callable
        A name of `FILLS`, or a callable (images, masks) → images that works in the caller's ``space``; its
        answers are checked, and what it changed outside the mask is undone.
    space : Space
        What the values of the images mean. Default: RGB in [0, 1].
    seed : int
        For the fills that draw random numbers (noise, road).
    **settings
        Of the named fill: ``blur`` kernel, sigma · ``noise`` mean, std · ``telea`` radius · ``road`` noise ·
        ``lama`` path · ``scenes-inpainter`` path.

    Returns
    -------
    callable (images, masks) -> images
        ``images`` (N, 3, H, W) or (3, H, W) floating point. ``masks`` (N, 1, H, W), (1, H, W) or (H, W), bool
        or holding 0 and 1 only; 1 is removed. One picture takes many masks and one mask many pictures. The
        answer has the images' type; what is outside the mask is bit-identical; an empty mask gives the
        picture. A picture's answer depends on nothing else in the batch.

    Raises
    ------
    ValueError
        An unknown fill or setting; images or masks of another shape or kind; values that are not finite;
        pixels outside [0, 1] given to an in-painter; an answer that has another size or is not finite.

    Notes
    -----
    "zero" is the tensor value 0: mean grey in ImageNet-normalised space, black in pixels. "black" is the
    pixel 0 and "mean" the ImageNet mean colour (.485, .456, .406) in every space. "blur" is RISE's insertion
    baseline (kernel 11, σ 5, edges reflected): the whole picture is blurred, the mask shows it. "noise" is
    normal with ImageNet's mean and deviation, clipped to [0, 1], one field for all pictures of a size.
    With nothing left to go by (a full mask) in-painters give the mean colour.

    Examples
    --------
    >>> picture, hole = torch.ones(3, 2, 2), torch.tensor([[True, False], [False, False]])
    >>> make_fill("black")(picture, hole)[0].tolist()
    [[0.0, 1.0], [1.0, 1.0]]
    """
    if callable(fill):
        if settings:
            raise ValueError(f"settings belong to named fills; got a callable and {', '.join(settings)}.")
        return _checked(fill, "the fill given", own=False)
    if fill not in FILLS:
        raise ValueError(f"unknown fill {fill!r}; known: {', '.join(FILLS)}")
    if fill == "zero":
        return _checked(_zero(**_known("zero", {}, settings)), "zero")
    make, defaults = FILLS[fill]
    pixel_fill = make(seed=seed, **_known(fill, defaults, settings))

    def filled(images: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
        pixels = space.pixels(images)
        if fill in INPAINTERS:
            _require_unit_range(pixels, fill)
        return space.values(pixel_fill(pixels, masks))

    return _checked(filled, fill)


def _known(fill: str, defaults: Mapping, settings: Mapping) -> dict:
    if unknown := sorted(set(settings) - set(defaults)):
        known = ", ".join(defaults) or "none"
        raise ValueError(f"fill {fill!r} has no setting {', '.join(unknown)}; known: {known}")
    return {**defaults, **settings}


def _checked(fill: Fill, name: str, *, own: bool = True) -> Fill:
    """Return ``fill`` with its inputs and answers checked, and the picture kept outside the mask.

    Our ``own`` fills get one picture once, however many masks it has; others get as many of both.
    """

    def filled(images: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
        pictures, holes, alone = _as_batches(images, masks)
        shape = torch.broadcast_shapes(pictures.shape, (len(holes), 1, 1, 1))
        if not own:
            pictures, holes = pictures.expand(shape), holes.expand(shape[0], -1, -1, -1)
        elif pictures.stride(0) == 0:
            pictures = pictures[:1]
        result = fill(pictures, holes)
        if not isinstance(result, torch.Tensor) or result.shape not in (shape, pictures.shape):
            got = tuple(result.shape) if isinstance(result, torch.Tensor) else type(result).__name__
            raise ValueError(f"a fill must return images of shape {tuple(shape)}; got {got} from {name}.")
        result = torch.where(holes.expand(shape[0], -1, -1, -1), result.to(pictures), pictures)
        if not torch.isfinite(result).all():
            raise ValueError(f"a fill must return finite values; got NaN or infinity from {name}.")
        return result[0] if alone else result

    return filled


def _as_batches(images, masks) -> tuple[torch.Tensor, torch.Tensor, bool]:
    """Return images (N, 3, H, W), masks (M, 1, H, W) bool, N = M or either 1, and whether one came alone."""
    if not isinstance(images, torch.Tensor) or not images.is_floating_point():
        kind = images.dtype if isinstance(images, torch.Tensor) else type(images).__name__
        raise ValueError(f"images must be a floating point tensor; got {kind}. Divide 8-bit pixels by 255.")
    if images.ndim not in (3, 4) or images.shape[-3] != 3 or not images.numel():
        raise ValueError(
            f"images must be (N, 3, H, W) or (3, H, W); got {tuple(images.shape)}. Put the channels first."
        )
    if not torch.isfinite(images).all():
        raise ValueError("images must be finite; got NaN or infinity.")
    masks = torch.as_tensor(masks, device=images.device)
    size = images.shape[-2:]
    wanted = (size,) if masks.ndim == 2 else ((1, *size),)
    if masks.ndim not in (2, 3, 4) or not len(masks) or masks.shape[-len(wanted[0]) :] != wanted[0]:
        raise ValueError(
            f"masks must be (N, 1, H, W), (1, H, W) or (H, W) with H, W = {tuple(size)}; "
            f"got {tuple(masks.shape)}."
        )
    if masks.dtype != torch.bool:
        if not ((masks == 0) | (masks == 1)).all():
            raise ValueError("masks must hold 0 (kept) and 1 (removed) only. Threshold soft masks first.")
        masks = masks != 0
    pictures, holes = images.reshape(-1, 3, *size), masks.reshape(-1, 1, *size)
    if len(pictures) != len(holes) and 1 not in (len(pictures), len(holes)):
        raise ValueError(
            f"there must be one mask a picture, or one of either; got {len(pictures)} and {len(holes)}."
        )
    return pictures, holes, images.ndim == 3 and masks.ndim < 4


def _require_unit_range(pixels: torch.Tensor, fill: str) -> None:
    low, high = float(pixels.min()), float(pixels.max())
    if low < -1e-3 or high > 1 + 1e-3:
        raise ValueError(
            f"{fill} needs pixels in [0, 1]; got {low:.3g} to {high:.3g}. For normalised tensors give their "
            "space: make_fill(…, space=Space(mean, std))."
        )


def _column(numbers, like: torch.Tensor) -> torch.Tensor:
    return like.new_tensor(numbers)[:, None, None]


def _zero() -> Fill:
    return lambda values, masks: torch.zeros_like(values)


def _constant(*, seed: int, colour: tuple[float, float, float]) -> Fill:
    return lambda pixels, masks: _column(colour, pixels).expand_as(pixels)


def _blur(*, seed: int, kernel: int, sigma: float) -> Fill:
    if kernel < 1 or kernel % 2 == 0 or not sigma > 0:
        raise ValueError(f"blur needs an odd kernel and a sigma above 0; got {kernel} and {sigma}.")
    half = kernel // 2
    weights = torch.exp(-0.5 * (torch.arange(-half, half + 1, dtype=torch.float64) / sigma) ** 2)
    weights /= weights.sum()

    def blurred(pixels: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
        if half >= min(pixels.shape[-2:]):
            raise ValueError(
                f"blur with kernel {kernel} needs pictures of at least {half + 1} pixels a side; "
                f"got {tuple(pixels.shape[-2:])}."
            )
        line = weights.to(pixels).expand(3, 1, 1, kernel)
        padded = pad(pixels, (half,) * 4, mode="reflect")
        return torch.cat([  # one by one: the batch must not change a value
            conv2d(conv2d(one[None], line, groups=3), line.transpose(2, 3), groups=3) for one in padded
        ])  # fmt: skip

    return blurred


def _noise(*, seed: int, mean: tuple[float, float, float], std: tuple[float, float, float]) -> Fill:
    def noisy(pixels: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
        field = inpainters.normal_field(seed, *pixels.shape[-2:]).to(pixels)
        field = field * _column(std, pixels) + _column(mean, pixels)
        return field.clamp(0, 1).expand_as(pixels)

    return noisy


# name: (pictures in [0, 1] and seed → fill, settings with their defaults)
FILLS: dict[str, tuple[Callable[..., Fill] | None, dict]] = {
    "zero": (None, {}),
    "black": (_constant, {"colour": (0.0, 0.0, 0.0)}),
    "mean": (_constant, {"colour": IMAGENET_MEAN}),
    "blur": (_blur, {"kernel": 11, "sigma": 5.0}),
    "noise": (_noise, {"mean": IMAGENET_MEAN, "std": IMAGENET_STD}),
    **inpainters.INPAINTERS,
}
INPAINTERS = tuple(inpainters.INPAINTERS)
