"""A fixed embedding of colour and layout: what a picture gives before anything is learned or random."""

import torch
from torch import nn
from torch.nn import functional

SIDE = 16  # of the thumbnail, pixels
LEVELS = 4  # of each colour in the histogram
DIM = 3 * SIDE**2 + LEVELS**3


class Thumbnail(nn.Module):
    """A 16 × 16 thumbnail and a colour histogram, each of unit length, as one vector of 832 numbers.

    Notes
    -----
    The cosine of two such vectors is the mean of the cosine of their thumbnails, counted from mid grey, and
    of the Bhattacharyya coefficient of their histograms (64 bins). Nothing is fitted. The classifier on top
    exists because every backbone has one; its weights are as initialised.
    """

    def __init__(self):
        super().__init__()
        self.thumbnail, self.histogram, self.features = _Small(), _Histogram(), nn.Identity()
        self.classifier = nn.Linear(DIM, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logit (N, 1) for pixels x (N, 3, H, W) in [0, 1]."""
        both = torch.cat([self.thumbnail(x), self.histogram(x)], dim=1)
        return self.classifier(self.features(both))


class _Small(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        small = functional.adaptive_avg_pool2d(x - 0.5, SIDE).flatten(1)
        return functional.normalize(small, dim=1)


class _Histogram(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bins = (x * LEVELS).floor().clamp(0, LEVELS - 1)
        index = ((bins[:, 0] * LEVELS + bins[:, 1]) * LEVELS + bins[:, 2]).flatten(1).long()
        counts = x.new_zeros(len(x), LEVELS**3)
        counts.scatter_add_(1, index, torch.ones_like(index, dtype=x.dtype))
        return (counts / index.shape[1]).sqrt()
