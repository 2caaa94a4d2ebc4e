"""In-painters: fills that continue what surrounds the hole, on RGB pictures in [0, 1]."""

import functools
import hashlib
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from biastransfer import paths
from biastransfer.attribution.imputation import impute_linearly
from biastransfer.attribution.inpainter_network import GRID, continued, load_weights

PixelFill = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
MEAN_COLOUR = (0.485, 0.456, 0.406)  # ImageNet's
LAMA_FILE, LAMA_MD5, _LAMA_GRID = "big-lama.pt", "e3aa4aaa15225a33ec84f9f4bc47e500", 8


def one_by_one(fill_one: PixelFill) -> PixelFill:
    """Return a fill of batches from one of single pictures, so that no picture's answer depends on others.

    Parameters
    ----------
    fill_one : callable (pixels (1, 3, H, W), mask (1, 1, H, W) bool) -> (1, 3, H, W)
        Called only where some pixels are masked and some are not: an empty mask gives the picture, a full
        one the mean colour. No gradient goes through it.
    """

    @torch.no_grad()
    def filled(pixels: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
        count = max(len(pixels), len(masks))
        answers = pixels.expand(count, -1, -1, -1).clone()
        for k, mask in enumerate(masks.expand(count, -1, -1, -1)):
            if mask.all():
                answers[k] = answers.new_tensor(MEAN_COLOUR)[:, None, None]
            elif mask.any():
                answers[k : k + 1] = fill_one(answers[k : k + 1], mask[None])
        return answers

    return filled


def telea(*, seed: int, radius: float) -> PixelFill:
    """Telea's fast marching (OpenCV), on 8-bit colours; ``radius`` in pixels; ``seed`` plays no part."""
    try:
        import cv2
    except ImportError:
        raise ImportError("telea needs OpenCV; install biastransfer[attribution].") from None
    if not 1 <= radius <= 100:  # what OpenCV takes without changing it
        raise ValueError(f"telea's radius must be from 1 to 100 pixels; got {radius}.")

    def fill_one(pixels: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        eight_bit = (pixels[0] * 255).round().clamp(0, 255).byte().permute(1, 2, 0)
        hole = mask[0, 0].byte().cpu().numpy()
        result = cv2.inpaint(np.ascontiguousarray(eight_bit.cpu().numpy()), hole, radius, cv2.INPAINT_TELEA)
        return (torch.from_numpy(result).permute(2, 0, 1)[None] / 255).to(pixels)

    return one_by_one(fill_one)


def road(*, seed: int, noise: float) -> PixelFill:
    """ROAD's linear imputation, then normal noise of deviation ``noise`` in the hole, not clipped.

    One field of noise a ``seed`` and size, the same for every picture.
    """
    if not noise >= 0:
        raise ValueError(f"road's noise must be at least 0; got {noise}.")

    def fill_one(pixels: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        imputed = impute_linearly(pixels[0].cpu().numpy(), mask[0, 0].cpu().numpy())
        imputed += noise * normal_field(seed, *imputed.shape[1:]).numpy()
        return torch.from_numpy(imputed)[None].to(pixels)

    return one_by_one(fill_one)


@functools.lru_cache(maxsize=8)
def normal_field(seed: int, height: int, width: int) -> torch.Tensor:
    """Return (3, ``height``, ``width``) standard normal numbers, float32, the same for the same ``seed``."""
    field = np.random.default_rng(seed).standard_normal((3, height, width), dtype=np.float32)
    return torch.from_numpy(field)


def lama(*, seed: int, path: str | Path | None) -> PixelFill:
    """LaMa as TorchScript: (pixels in [0, 1], mask 1 = hole) → pixels in [0, 1]; ``seed`` plays no part.

    ``path`` None is ``data/raw/weights/big-lama.pt``, whose MD5 is checked; a file given is taken as it is.
    Sides are continued at the right and the bottom to multiples of 8, mirrored with the edge repeated.
    """
    file = paths.weights(LAMA_FILE) if path is None else Path(path)
    if not file.is_file():
        raise FileNotFoundError(
            f"lama needs its TorchScript file; there is none at {file}. Run "
            f"`biastransfer fetch big-lama` (MD5 {LAMA_MD5}), or give path=."
        )
    module = _script(file, file.stat().st_mtime_ns, path is None)

    def fill_one(pixels: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        h, w = pixels.shape[-2:]
        seen, hole = continued(pixels.float(), _LAMA_GRID), continued(mask.float(), _LAMA_GRID)
        result = module(seen, hole)
        if not isinstance(result, torch.Tensor) or result.shape != seen.shape:
            got = tuple(result.shape) if isinstance(result, torch.Tensor) else type(result).__name__
            raise ValueError(
                f"lama must return the size it was given, {tuple(seen.shape)}; got {got} from {file}."
            )
        if not torch.isfinite(result).all():
            raise ValueError(f"lama must return finite pixels; got NaN or infinity from {file}.")
        low, high = float(result.min()), float(result.max())
        if low < -0.05 or high > 1.05:
            raise ValueError(
                f"lama must return pixels in [0, 1]; got {low:.3g} to {high:.3g} from {file}. "
                "Use a script that divides by 255."
            )
        return result[..., :h, :w].clamp(0, 1).to(pixels)

    return one_by_one(fill_one)


@functools.lru_cache(maxsize=2)
def _script(file: Path, changed: int, published: bool) -> torch.jit.ScriptModule:
    if published:
        with open(file, "rb") as opened:
            found = hashlib.file_digest(opened, "md5").hexdigest()
        if found != LAMA_MD5:
            raise ValueError(f"{file} must have MD5 {LAMA_MD5}; got {found}. Fetch it again, or give path=.")
    try:
        with warnings.catch_warnings():  # LaMa is published as TorchScript, however old that is
            warnings.simplefilter("ignore", FutureWarning)
            return torch.jit.load(str(file), map_location="cpu").eval()
    except RuntimeError as error:
        first = str(error).splitlines()[0]
        raise ValueError(f"{file} must be a TorchScript file; torch says: {first}") from None


def scenes_inpainter(*, seed: int, path: str | Path | None) -> PixelFill:
    """The network trained on this project's scenes; ``seed`` plays no part.

    ``path`` None is the file that ships with the package.
    """
    file = paths.inpainter_weights() if path is None else Path(path)
    net = _network(file, file.stat().st_mtime_ns if file.is_file() else 0)

    def fill_one(pixels: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        h, w = pixels.shape[-2:]
        seen, hole = continued(pixels.float(), GRID), continued(mask.float(), GRID)
        seen = seen.to(memory_format=torch.channels_last)
        return net(seen, hole)[..., :h, :w].clamp(0, 1).to(pixels)

    return one_by_one(fill_one)


@functools.lru_cache(maxsize=4)
def _network(file: Path, changed: int):
    return load_weights(file)


# name: (seed and settings → (pixels, masks) → pixels, settings with their defaults)
INPAINTERS: dict[str, tuple[Callable[..., PixelFill], dict]] = {
    "telea": (telea, {"radius": 3}),
    "road": (road, {"noise": 0.01}),
    "lama": (lama, {"path": None}),
    "scenes-inpainter": (scenes_inpainter, {"path": None}),
}
