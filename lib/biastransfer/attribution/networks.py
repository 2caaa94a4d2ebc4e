"""Networks that take RGB pixels, so that what is perturbed and explained is the picture itself."""

import contextlib
import dataclasses
from collections.abc import Iterator

import torch
from torch import nn

from biastransfer.backbones import Backbone, Transform, forward_layer
from biastransfer.embed.folding import fold_batch_norm


class PixelModule(nn.Module):
    """A network that takes RGB pixels in [0, 1]: normalisation and network in one; see `pixel_module`."""

    def __init__(self, network: nn.Module, transform=None, layer_modules=None):
        super().__init__()
        self.network = network
        self.transform = None if isinstance(transform, Transform) else transform
        self.layer_modules = dict(layer_modules or {})
        self.bgr = isinstance(transform, Transform) and transform.bgr
        self.register_buffer("scale", None)
        self.register_buffer("shift", None)
        if isinstance(transform, Transform):  # one multiplication and addition instead of three passes
            std = torch.tensor(transform.std, dtype=torch.float64)[:, None, None]
            mean = torch.tensor(transform.mean, dtype=torch.float64)[:, None, None]
            self.scale, self.shift = (transform.scale / std).float(), (-mean / std).float()

    def normalise(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return what the network sees of pixels (N, 3, H, W), where it lies and in its precision."""
        like = next(self.network.parameters(), None)
        if like is not None and like.is_floating_point():
            pixels = pixels.to(like.device, like.dtype)
        if self.transform is not None:
            return self.transform(pixels)
        if self.scale is None:
            return pixels
        if self.bgr:
            pixels = pixels.flip(-3)
        return torch.addcmul(self.shift.to(pixels), pixels, self.scale.to(pixels))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return the network's output for pixels (N, 3, H, W)."""
        return self.network(self.normalise(pixels))


def pixel_module(backbone: Backbone | nn.Module, *, transform=None, fold: bool = False) -> PixelModule:
    """Return a network on RGB pixels in [0, 1]: what gradient methods differentiate.

    Parameters
    ----------
    backbone : Backbone or torch.nn.Module
        A backbone brings its transform; its network is not copied unless ``fold``, only its weights are laid
        out channels last, which leaves their values. A plain module stays as it is.
    transform : Transform or callable, optional
        For a plain module: how pixels (N, 3, H, W) are normalised. Default: not at all.
    fold : bool
        Whether to copy the network and fold its batch normalisation away: about 1.15 times as fast, the same
        values to 2e-6; later changes to the network are not seen. For a `Backbone`.

    Returns
    -------
    torch.nn.Module
        ``module(pixels)`` for pixels (N, 3, H, W) at the network's size: logits (N, classes). Nothing is
        resized or cropped: `Transform.pixels` does that.

    Raises
    ------
    ValueError
        If both a backbone and a transform are given, or a plain module is to be folded.
    """
    if not isinstance(backbone, Backbone):
        if fold:
            raise ValueError("only a Backbone is folded, since its transform tells the size; got a module.")
        return PixelModule(backbone, transform)
    if transform is not None:
        raise ValueError("a backbone brings its own transform; got another one. Leave `transform` out.")
    backbone = folded(backbone) if fold else backbone
    network = backbone.module.to(memory_format=torch.channels_last)
    return PixelModule(network, backbone.transform, backbone.layer_modules)


def folded(backbone: Backbone, layer: str | None = None, *, whole: bool = True) -> Backbone:
    """Return a backbone with a copy of its network, batch normalisation folded away where that is safe.

    Parameters
    ----------
    backbone : Backbone
        Left as it is.
    layer : str, optional
        The layer to be read when not the ``whole`` network is run.
    whole : bool
        Whether what is run is the network with its head; else up to ``layer``.
    """

    def run(network: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return network(x) if whole else forward_layer(dataclasses.replace(backbone, module=network), x, layer)

    size, like = backbone.transform.size, next(backbone.module.parameters(), torch.zeros(()))
    example = torch.rand(1, 3, size, size, generator=torch.Generator().manual_seed(0)).to(like)
    network = fold_batch_norm(backbone.module, run, backbone.transform.normalise(example))
    return dataclasses.replace(backbone, module=network.to(memory_format=torch.channels_last))


@contextlib.contextmanager
def eval_mode(model) -> Iterator[None]:
    """Run what follows with every part of ``model`` in eval mode, then restore each part's own mode."""
    parts = model.modules() if isinstance(model, nn.Module) else ()
    training = [part for part in parts if part.training]
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True
