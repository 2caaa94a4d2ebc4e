"""Batch normalisation folded into the convolution before it: the same vectors, sooner."""

import copy

import torch
from torch import nn

_TOLERANCE = 1e-4  # of the largest value; folding in double precision stays near 2e-6


def fold_batch_norm(module: nn.Module, run, example: torch.Tensor) -> nn.Module:
    """Return a copy of a network in eval mode with its batch normalisation folded away where that is safe.

    Parameters
    ----------
    module : torch.nn.Module
        Left as it is.
    run : callable (module, x) → tensor
        What will be computed with the copy, for instance one layer's pooled output.
    example : (N, 3, H, W) tensor
        An input that passes through every layer which ``run`` uses.

    Returns
    -------
    torch.nn.Module
        A copy for which ``run`` gives the same values to a relative 1e-4 (in practice 2e-6); an unfolded copy
        where there is nothing to fold or where folding would change a value, for instance because ``run``
        reads the output of a convolution that precedes a batch normalisation.

    Notes
    -----
    Which normalisation follows which convolution is observed while ``example`` passes, not read from names,
    so that any architecture works; the comparison afterwards is what makes it safe.

    Examples
    --------
    >>> net = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.ReLU()).eval()
    >>> folded = fold_batch_norm(net, lambda module, x: module(x), torch.rand(1, 3, 2, 2))
    >>> type(folded[1]).__name__
    'Identity'
    """
    plain = copy.deepcopy(module).eval()
    with torch.inference_mode(False), torch.no_grad():
        pairs, before = _pairs(plain, run, example)
        if not pairs:
            return plain
        folded = copy.deepcopy(plain)
        for conv_name, norm_name in pairs:
            _fold(folded, conv_name, norm_name)
        after = run(folded, example)
    close = (after - before).abs().max() <= _TOLERANCE * before.abs().max()
    return folded if close else plain


def _pairs(module: nn.Module, run, example: torch.Tensor) -> tuple[list[tuple[str, str]], torch.Tensor]:
    """Return names (convolution, normalisation), each called once, the one feeding the other; and output."""
    made, pairs, calls = {}, {}, {}

    def after_conv(name):
        def hook(_module, _inputs, output):
            calls[name] = calls.get(name, 0) + 1
            made[id(output)] = (name, output)  # the tensor is kept, so that its id is not given out again

        return hook

    def before_norm(name):
        def hook(_module, inputs):
            calls[name] = calls.get(name, 0) + 1
            if id(inputs[0]) in made:
                pairs[name] = made[id(inputs[0])][0]

        return hook

    handles = []
    for name, part in module.named_modules():
        if isinstance(part, nn.Conv2d):
            handles.append(part.register_forward_hook(after_conv(name)))
        elif isinstance(part, nn.BatchNorm2d) and part.track_running_stats:
            handles.append(part.register_forward_pre_hook(before_norm(name)))
    try:
        output = run(module, example)
    finally:
        for handle in handles:
            handle.remove()
    return [(conv, norm) for norm, conv in pairs.items() if calls[conv] == calls[norm] == 1], output


def _fold(module: nn.Module, conv_name: str, norm_name: str) -> None:
    """Move a normalisation's scale and shift into the convolution before it, in double precision."""
    conv, norm = module.get_submodule(conv_name), module.get_submodule(norm_name)
    scale = (norm.running_var.double() + norm.eps).rsqrt()
    shift = -norm.running_mean.double() * scale
    if norm.affine:
        scale, shift = scale * norm.weight.double(), shift * norm.weight.double() + norm.bias.double()
    if conv.bias is not None:
        shift = shift + conv.bias.double() * scale
    dtype = conv.weight.dtype
    conv.weight = nn.Parameter((conv.weight.double() * scale[:, None, None, None]).to(dtype))
    conv.bias = nn.Parameter(shift.to(dtype))
    parent, _, leaf = norm_name.rpartition(".")
    # timm's normalisation carries the activation that follows it
    setattr(module.get_submodule(parent), leaf, getattr(norm, "act", nn.Identity()))
