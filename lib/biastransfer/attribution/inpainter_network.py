"""The small in-painter trained on scenes: a gated-convolution U-Net on a quarter of the resolution."""

from pathlib import Path

import safetensors.torch
import torch
from torch import nn
from torch.nn.functional import avg_pool2d, interpolate, pixel_shuffle, pixel_unshuffle, silu

from biastransfer import paths
from biastransfer.checkpoint_files import read_tensors

GRID = 32  # sides are padded to multiples of it: quarter resolution, then halved three times
_MIDDLE = 0.5
_GAIN = 3.35  # keeps the variance of a layer's input at the start: silu of normal numbers, half let through


class Gated(nn.Module):
    """Convolution whose output is let through by a gate that a 1 × 1 convolution of its input decides."""

    def __init__(self, inside: int, outside: int, *, stride: int = 1, dilation: int = 1):
        super().__init__()
        self.features = nn.Conv2d(inside, outside, 3, stride, dilation, dilation)
        self.gate = nn.Conv2d(inside, outside, 1, stride)
        for layer, share in ((self.features, 1.0), (self.gate, 0.1)):
            nn.init.normal_(layer.weight, std=share / layer.weight[0].numel() ** 0.5)
            nn.init.zeros_(layer.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return 3.35 · silu(features) · sigmoid(gate) of ``x`` (N, C, H, W)."""
        return _GAIN * silu(self.features(x)) * torch.sigmoid(self.gate(x))


class Surroundings(nn.Module):
    """Adds to every place what the whole picture is like: the mean of the features, through two layers."""

    def __init__(self, channels: int):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(channels, channels), nn.SiLU(), nn.Linear(channels, channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return ``x`` (N, C, H, W) with its mean over places, transformed, added."""
        return x + self.layers(x.mean((2, 3)))[:, :, None, None]


class InpainterNet(nn.Module):
    """From a picture with a hole to a whole picture.

    What is learned is, at every pixel, how to mix three plain fills (`smooth_fill`, and `bridged` along rows
    and along columns) and a correction to the mix. Encoder at 1/4, 1/8, 1/16 and 1/32 of the resolution,
    dilated convolutions and the picture's mean at 1/32, decoder with added skip connections; mix and
    correction are pixel-shuffled to full size. Before training there is no correction, and rows count e times
    what the others count.
    """

    def __init__(self, widths: tuple[int, int, int, int] = (48, 96, 128, 160)):
        super().__init__()
        a, b, c, d = widths
        self.stem = nn.Sequential(Gated(64 + 6, a), Gated(a, a))
        self.down1 = nn.Sequential(Gated(a, b, stride=2), Gated(b, b))
        self.down2 = nn.Sequential(Gated(b, c, stride=2), Gated(c, c, dilation=2))
        self.down3 = nn.Sequential(
            Gated(c, d, stride=2), Gated(d, d), Surroundings(d), Gated(d, d, dilation=2)
        )
        self.reduce3, self.up3 = nn.Conv2d(d, c, 1), Gated(c, c)
        self.reduce2, self.up2 = nn.Conv2d(c, b, 1), Gated(b, b)
        self.reduce1, self.up1 = nn.Conv2d(b, a, 1), nn.Sequential(Gated(a, a), Gated(a, a))
        self.out = nn.Conv2d(a, 6 * 16, 3, padding=1)
        nn.init.zeros_(self.out.weight)
        self.out.bias = nn.Parameter((torch.arange(6 * 16) // 16 == 4).float())  # the rows' share of the mix

    def forward(self, pixels: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
        """Return whole pictures.

        Parameters
        ----------
        pixels : (N, 3, H, W) tensor
            RGB in [0, 1]; sides are multiples of 32. What is under the mask is not looked at.
        masks : (N, 1, H, W) tensor
            1 = hole.

        Returns
        -------
        (N, 3, H, W) tensor
            Not clipped, and meant for the hole only.
        """
        smooth = smooth_fill(pixels, masks)
        rows, columns = bridged(pixels, masks, smooth), _turn(bridged(*map(_turn, (pixels, masks, smooth))))
        seen = torch.where(masks > 0, smooth, pixels)
        x = pixel_unshuffle(torch.cat([4 * (seen - _MIDDLE), masks], 1), 4)
        x = torch.cat([x, *(4 * avg_pool2d(fill - smooth, 4) for fill in (rows, columns))], 1)
        e1 = self.stem(x)
        e2 = self.down1(e1)
        e3 = self.down2(e2)
        x = self.down3(e3)
        x = self.up3(_twice(self.reduce3(x)) + e3)
        x = self.up2(_twice(self.reduce2(x)) + e2)
        x = self.up1(_twice(self.reduce1(x)) + e1)
        correction, mix = pixel_shuffle(self.out(x), 4).float().split(3, 1)
        mix = mix.softmax(1)[:, :, None]
        return correction + (mix * torch.stack([smooth, rows, columns], 1)).sum(1)


def smooth_fill(pixels: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Return pictures that are smooth in the hole: means of what is known, from far where nothing is near.

    Parameters
    ----------
    pixels : (N, 3, H, W) tensor
        Sides are multiples of 32.
    masks : (N, 1, H, W) tensor
        1 = hole.

    Returns
    -------
    (N, 3, H, W) tensor
        Known pixels are averaged over 4 × 4, 8 × 8, 16 × 16 and 32 × 32 squares and over the picture; each
        square takes its own mean as far as it is known and the next larger ones' for the rest.
    """
    known = 1 - masks
    levels = [(avg_pool2d(pixels * known, 4), avg_pool2d(known, 4))]
    for _ in range(3):
        levels.append(tuple(avg_pool2d(part, 2) for part in levels[-1]))
    total, share = (part.mean((2, 3), keepdim=True) for part in levels[-1])
    value = (total / share.clamp(min=1e-6)).expand_as(levels[-1][0])
    for total, share in reversed(levels):
        if value.shape != total.shape:
            value = _twice(value)
        value = torch.lerp(value, total / share.clamp(min=1e-6), (4 * share).clamp(max=1))
    return interpolate(value, scale_factor=4, mode="bilinear", align_corners=False)


def bridged(pixels: torch.Tensor, masks: torch.Tensor, otherwise: torch.Tensor) -> torch.Tensor:
    """Return pictures whose holes are bridged along rows: linear between the nearest known pixels.

    Parameters
    ----------
    pixels, otherwise : (N, 3, H, W) tensors
        The pictures, and what stands where a whole row is missing.
    masks : (N, 1, H, W) tensor
        1 = hole.

    Returns
    -------
    (N, 3, H, W) tensor
        At either side the mean of what is known within four pixels along the row is taken; a hole that
        reaches the picture's edge goes on with its one side.
    """
    known, width = 1 - masks, pixels.shape[-1]
    window = {"kernel_size": (1, 9), "stride": 1, "padding": (0, 4)}
    means = avg_pool2d(pixels * known, **window) / avg_pool2d(known, **window).clamp(min=1e-6)
    at = torch.arange(width, device=pixels.device).expand_as(masks)
    left = torch.where(known > 0, at, -1).cummax(-1).values
    right = torch.where(known > 0, at, width).flip(-1).cummin(-1).values.flip(-1)
    no_left, no_right = left < 0, right == width
    share = torch.where(no_left, 1.0, torch.where(no_right, 0.0, (at - left) / (right - left).clamp(min=1)))
    sides = (side.clamp(0, width - 1).expand_as(pixels) for side in (left, right))
    found = torch.lerp(*(means.gather(-1, side) for side in sides), share.to(pixels).expand_as(pixels))
    return torch.where(no_left & no_right, otherwise, found)


def _turn(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(2, 3)


def _twice(x: torch.Tensor) -> torch.Tensor:
    return interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)


def continued(x: torch.Tensor, grid: int) -> torch.Tensor:
    """Return ``x`` (N, C, H, W) continued at the right and the bottom to multiples of ``grid``.

    By mirroring with the edge repeated; a side shorter than what is missing goes on with its first pixels.

    Examples
    --------
    >>> continued(torch.tensor([[[[1.0, 2.0, 3.0]]]]), 4)[0, 0, 0].tolist()
    [1.0, 2.0, 3.0, 3.0]
    """
    h, w = x.shape[-2:]
    if h % grid == 0 and w % grid == 0:
        return x
    ys, xs = (torch.arange(side + -side % grid, device=x.device) for side in (h, w))
    ys, xs = (torch.where(at < side, at, (2 * side - 1 - at).clamp(min=0)) for at, side in ((ys, h), (xs, w)))
    return x[..., ys[:, None], xs]


def save_weights(net: InpainterNet, path: Path | str, notes: dict[str, str]) -> None:
    """Write the weights of ``net`` in half precision as safetensors to ``path``, ``notes`` in its header."""
    halves = {name: value.detach().half().contiguous() for name, value in net.state_dict().items()}
    with paths.replacing(path) as partial:
        safetensors.torch.save_file(halves, partial, notes)


def load_weights(path: Path | str) -> InpainterNet:
    """Return the network whose weights lie at ``path``, ready to fill.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file holds other weights.
    """
    tensors = {name: value.float() for name, value in read_tensors(path).items()}
    net = InpainterNet()
    try:
        net.load_state_dict(tensors)
    except RuntimeError:
        raise ValueError(
            f"{path} must hold the weights of InpainterNet; got {len(tensors)} tensors that do not fit it. "
            "Train it again: python -m biastransfer.attribution.inpainter_training"
        ) from None
    return net.eval().requires_grad_(False).to(memory_format=torch.channels_last)
