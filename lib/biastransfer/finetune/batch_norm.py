"""Batch normalisation over the pictures of all ranks, so that how many ranks there are changes nothing."""

import torch
from torch import distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from biastransfer import distributed


def share(module: nn.Module, device: torch.device) -> nn.Module:
    """Let every batch normalisation of a network see the batches of all ranks; change nothing for one rank.

    Parameters
    ----------
    module : torch.nn.Module
        Changed in place; the names and values of its state stay.
    device : torch.device
        On a GPU PyTorch's ``SyncBatchNorm`` takes over (timm's, where a normalisation carries an activation);
        it knows no CPU, where `SharedBatchNorm` does the same.

    Returns
    -------
    torch.nn.Module
        The module, or what replaces it when it is itself a batch normalisation.
    """
    if distributed.size() == 1:
        return module
    if device.type == "cuda":
        from timm.layers import convert_sync_batchnorm

        return convert_sync_batchnorm(module)
    return _shared(module)


def _shared(module: nn.Module) -> nn.Module:
    if isinstance(module, _BatchNorm):
        return SharedBatchNorm(module) if module.track_running_stats else module
    for name, part in module.named_children():
        setattr(module, name, _shared(part))
    return module


class _Total(torch.autograd.Function):
    """A sum over the ranks, of which each rank's loss is a function: gradients are summed as well."""

    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        dist.all_reduce(gradient)
        return gradient


class SharedBatchNorm(nn.Module):
    """Batch normalisation whose mean and variance in training are those of the batches of all ranks.

    Parameters
    ----------
    norm : torch.nn.BatchNorm1d, torch.nn.BatchNorm2d or timm's with an activation
        Its parameters and running statistics are taken over, not copied, under the same names.
    """

    running_mean: torch.Tensor
    running_var: torch.Tensor
    num_batches_tracked: torch.Tensor

    def __init__(self, norm: _BatchNorm):
        super().__init__()
        self.eps, self.momentum = norm.eps, norm.momentum
        self.weight, self.bias = norm.weight, norm.bias
        for name, buffer in norm.named_buffers(recurse=False):
            self.register_buffer(name, buffer)
        self.after = nn.Sequential(*norm.children())  # timm: dropout and activation
        self.train(norm.training)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise x (N, C, …) by all ranks' pictures in train mode, by the running statistics otherwise."""
        if not self.training:
            x = functional.batch_norm(
                x, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps
            )
            return self.after(x)
        shape = (1, -1) + (1,) * (x.ndim - 2)
        axes = [0, *range(2, x.ndim)]
        count = x.numel() // x.shape[1]
        sums = _Total.apply(torch.cat([x.sum(axes), x.new_tensor([float(count)])]))
        count = sums[-1].detach()
        mean = sums[:-1] / count
        centred = x - mean.view(shape)
        variance = _Total.apply(centred.square().sum(axes)) / count
        self._remember(mean.detach(), variance.detach() * count / (count - 1))
        scale = (variance + self.eps).rsqrt()
        if self.weight is not None:
            scale = scale * self.weight
        x = centred * scale.view(shape)
        return self.after(x if self.bias is None else x + self.bias.view(shape))

    def _remember(self, mean: torch.Tensor, variance: torch.Tensor) -> None:
        self.num_batches_tracked.add_(1)
        share = self.momentum if self.momentum is not None else 1 / float(self.num_batches_tracked)
        self.running_mean.lerp_(mean, share)
        self.running_var.lerp_(variance, share)
