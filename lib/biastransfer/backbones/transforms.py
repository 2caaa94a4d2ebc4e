"""A backbone's own preprocessing: which part of the picture, how resized, how normalised."""

import dataclasses

import numpy as np
import torch
from PIL import Image

_RESAMPLING = {"bicubic": Image.Resampling.BICUBIC, "bilinear": Image.Resampling.BILINEAR}
_FITS = ("crop", "squash")


@dataclasses.dataclass(frozen=True)
class Transform:
    """Deterministic evaluation transform of one backbone.

    The central square whose side is ``crop`` times the picture's shorter side is resized, with anti-aliasing,
    to ``size`` × ``size``; with ``fit="squash"`` it is the central ``crop`` of width and of height, whose
    proportions the resizing gives up. Pixels are then in [0, 1]; normalising multiplies by ``scale``,
    reverses the channels if ``bgr``, subtracts ``mean`` and divides by ``std`` (in scaled units, in the
    network's channel order).

    Examples
    --------
    >>> halves = Transform(size=2, crop=1.0, interpolation="bilinear", mean=(0.5,) * 3, std=(0.5,) * 3)
    >>> halves(np.full((4, 4, 3), 255, np.uint8))[:, 0, 0].tolist()
    [1.0, 1.0, 1.0]
    """

    size: int
    crop: float
    interpolation: str
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    scale: float = 1.0
    bgr: bool = False
    fit: str = "crop"

    def __post_init__(self):  # noqa: D105
        known = self.interpolation in _RESAMPLING and self.fit in _FITS
        if self.size < 1 or not 0 < self.crop <= 1 or not known:
            raise ValueError(
                f"a transform needs size ≥ 1, 0 < crop ≤ 1, interpolation in {sorted(_RESAMPLING)} and fit "
                f"in {sorted(_FITS)}; got {self.size}, {self.crop}, {self.interpolation!r}, {self.fit!r}"
            )

    def crop_box(self, height: int, width: int) -> tuple[float, float, float, float]:
        """Return the part of a picture that the network sees: x1, y1, x2, y2 in pixels of the picture."""
        high, wide = (height, width) if self.fit == "squash" else (min(height, width),) * 2
        high, wide = max(1.0, self.crop * high), max(1.0, self.crop * wide)
        left, top = (width - wide) / 2, (height - high) / 2
        return left, top, left + wide, top + high

    def pixels(self, rgb: np.ndarray) -> torch.Tensor:
        """Crop and resize a picture.

        Parameters
        ----------
        rgb : (H, W, 3) uint8 array

        Returns
        -------
        (3, size, size) float32 tensor
            RGB in [0, 1], not normalised: what attributions perturb.

        Raises
        ------
        ValueError
            If ``rgb`` has another shape or type.
        """
        return torch.from_numpy(self.resized(rgb)).permute(2, 0, 1).to(torch.float32).div_(255)

    def resized(self, rgb: np.ndarray) -> np.ndarray:
        """Crop and resize a picture to (size, size, 3) uint8: `pixels` before the division by 255."""
        if rgb.ndim != 3 or rgb.shape[2] != 3 or rgb.dtype != np.uint8:
            raise ValueError(
                f"a picture must be (H, W, 3) uint8; got {rgb.shape} {rgb.dtype}. "
                "Read it with images.read_rgb."
            )
        box = self.crop_box(*rgb.shape[:2])
        resized = Image.fromarray(rgb).resize(
            (self.size, self.size), _RESAMPLING[self.interpolation], box=box
        )
        return np.array(resized)

    def normalise(self, pixels: torch.Tensor) -> torch.Tensor:
        """Turn pixels in [0, 1] into the network's input; differentiable.

        Parameters
        ----------
        pixels : (3, H, W) or (N, 3, H, W) tensor
            RGB in [0, 1].

        Returns
        -------
        tensor of the same shape
        """
        mean = pixels.new_tensor(self.mean)[:, None, None]
        std = pixels.new_tensor(self.std)[:, None, None]
        if self.bgr:
            pixels = pixels.flip(-3)
        return (pixels * self.scale - mean) / std

    def __call__(self, rgb: np.ndarray) -> torch.Tensor:
        """Return the network's input (3, size, size) for a picture (H, W, 3) uint8."""
        return self.normalise(self.pixels(rgb))

    def with_size(self, size: int) -> "Transform":
        """Return the same transform at another input size (finetuning at 128 pixels)."""
        return dataclasses.replace(self, size=size)

    def to_dict(self) -> dict:
        """Return the fields as plain values that JSON can hold."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, fields: dict) -> "Transform":
        """Return the transform that `to_dict` described."""
        return cls(**{**fields, "mean": tuple(fields["mean"]), "std": tuple(fields["std"])})
