"""What a heat map explains: any number that a network gives a picture, as a function of its pixels."""

import dataclasses
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from biastransfer.attribution.networks import PixelModule, eval_mode, folded, pixel_module
from biastransfer.attribution.targets import column_of
from biastransfer.backbones import Backbone, forward_layer, layer_path
from biastransfer.cosines import unit_lengths

__all__ = ["Score", "association_score", "check_scores", "checked_classes", "class_score", "pixel_module"]

# how a class's column becomes a score: (N, classes) logits and an index → (N,)
OUTPUTS: dict[str, Callable[[torch.Tensor, int], torch.Tensor]] = {
    "probability": lambda logits, target: logits.softmax(1)[:, target],
    "sigmoid": lambda logits, target: logits[:, target].sigmoid(),
    "logit": lambda logits, target: logits[:, target],
    "given": lambda outputs, target: outputs[:, target],
}
PROBABILITIES = ("probability", "sigmoid", "given")
_SLACK = 1e-4  # half precision and a sum of exponentials may leave [0, 1] by this much


@dataclasses.dataclass(frozen=True)
class Score:
    """A number a picture, differentiable in its pixels: ``score(images)`` (N, 3, H, W) → (N,).

    The network runs in eval mode; its own mode is restored afterwards, also after an error.

    Attributes
    ----------
    module : torch.nn.Module
        The network on pixels, as `pixel_module` makes it.
    read : callable (module, images) -> (N,) tensor
    output : str
        ``"probability"``, ``"sigmoid"``, ``"logit"``, ``"given"`` or ``"association"``.
    target : int, str or None
        The class.
    """

    module: nn.Module
    read: Callable[[nn.Module, torch.Tensor], torch.Tensor]
    output: str
    target: int | str | None = None

    def __call__(self, images: torch.Tensor) -> torch.Tensor:  # noqa: D102
        with eval_mode(self.module):
            values = self.read(self.module, images)
        return check_scores(values, len(images), self.output) if self.output == "given" else values


def class_score(
    backbone: Backbone | nn.Module,
    target: int | str,
    *,
    output: str = "probability",
    transform=None,
    fold: bool = False,
) -> Score:
    """Return the score of one class, as a function of pixels.

    Parameters
    ----------
    backbone : Backbone or torch.nn.Module
        Gives (N, classes).
    target : int or str
        The class: a column, or a name of ``backbone.classes``, or one of its synonyms between commas.
    output : str
        ``"probability"``: softmax over classes. ``"sigmoid"``: of this class's logit, for networks with
        several labels a picture. ``"logit"``. ``"given"``: the network gives probabilities already;
        values outside [0, 1] raise.
    transform, fold
        As for `pixel_module`.

    Returns
    -------
    Score
        (N, 3, H, W) pixels in [0, 1] → (N,); higher means more of the class. Differentiable.

    Raises
    ------
    ValueError
        If the output is unknown or the class is none of the network's; later, if the network does not give
        (N, classes) or a promised probability leaves [0, 1].

    Examples
    --------
    >>> network = nn.Sequential(nn.Flatten(), nn.Linear(12, 2, bias=False))
    >>> _ = nn.init.zeros_(network[1].weight)
    >>> class_score(network, 1)(torch.ones(3, 3, 2, 2)).tolist()
    [0.5, 0.5, 0.5]
    """
    if output not in OUTPUTS:
        raise ValueError(f"unknown output {output!r}; known: {', '.join(OUTPUTS)}")
    column = column_of(target, getattr(backbone, "classes", ()))
    module = pixel_module(backbone, transform=transform, fold=fold)

    def read(network: nn.Module, images: torch.Tensor) -> torch.Tensor:
        return OUTPUTS[output](checked_classes(network(images), len(images), column), column)

    return Score(module, read, output, target)


def association_score(
    backbone: Backbone | nn.Module, A, B, *, layer: str | None = None, transform=None, fold: bool = False
) -> Score:
    """Return a picture's association with A rather than B, as a function of its pixels.

    Parameters
    ----------
    backbone : Backbone or torch.nn.Module
        Gives the embedding, as `backbones.forward_layer` reads it.
    A, B : (n, D) arrays
        Embeddings of the two attribute sets, made with the same network and layer.
    layer : str, optional
        Default ``"embedding"``; a plain module needs the name of a submodule.
    transform, fold
        As for `pixel_module`.

    Returns
    -------
    Score
        s = mean over A of cos(z, a) − mean over B of cos(z, b), in [−2, 2]: above 0 when the picture's
        embedding z lies nearer to A. The summand of the association test. Differentiable.

    Raises
    ------
    ValueError
        If A or B is not (n, D), has a zero or non-finite row, or the embedding has another D.

    Notes
    -----
    mean cos(z, a) is ẑ · mean(â): each set enters as one vector, however many pictures it has.
    """
    path = layer_path(backbone, layer)
    plain = not isinstance(backbone, Backbone)
    if fold and not plain:
        backbone, fold = folded(backbone, path, whole=False), False
    module = pixel_module(backbone, transform=transform, fold=fold)
    direction = torch.from_numpy(_mean_direction(A, "A") - _mean_direction(B, "B"))

    def read(network: PixelModule, images: torch.Tensor) -> torch.Tensor:
        bare = network.network
        known = dataclasses.replace(backbone, module=bare) if isinstance(backbone, Backbone) else bare
        z = forward_layer(known, network.normalise(images), path)
        if z.ndim != 2 or z.shape[1] != len(direction):
            raise ValueError(
                f"A, B and the embedding must have the same number of columns; got {len(direction)} and "
                f"an embedding of shape {tuple(z.shape)}. Embed all with one backbone and layer."
            )
        return nn.functional.normalize(z, dim=1, eps=1e-30) @ direction.to(z)

    return Score(module, read, "association")


def check_scores(values, count: int, output: str | None = None) -> torch.Tensor:
    """Return a score's values (N,) if they are what they must be.

    Parameters
    ----------
    values : (N,) or (N, 1) tensor
        What a score gave.
    count : int
        N, the number of pictures that it was given.
    output : str, optional
        ``"probability"``, ``"sigmoid"`` or ``"given"``: they must lie in [0, 1].

    Raises
    ------
    ValueError
        If there is not one number a picture, if any is NaN or infinite (the message says how many), or if
        a probability leaves [0, 1].
    """
    if isinstance(values, torch.Tensor) and values.shape == (count, 1):
        values = values[:, 0]
    if not isinstance(values, torch.Tensor) or values.shape != (count,):
        got = f"shape {tuple(values.shape)}" if hasattr(values, "shape") else type(values).__name__
        raise ValueError(
            f"a score must give a tensor with one number a picture, shape ({count},); got {got}. "
            "Choose a class: class_score(network, target)."
        )
    if bad := int((~torch.isfinite(values)).sum()):
        raise ValueError(
            f"scores must be finite; {bad} of {count} are NaN or infinite. Check the picture, the network's "
            "weights and the fill."
        )
    if output in PROBABILITIES and count:
        low, high = float(values.detach().min()), float(values.detach().max())
        if low < -_SLACK or high > 1 + _SLACK:
            raise ValueError(
                f"probabilities must lie in [0, 1]; got {low:.3g} to {high:.3g}. The network gives logits: "
                'use class_score(…, output="probability") or "sigmoid", or output="logit" to explain them.'
            )
    return values


def checked_classes(outputs, count: int, column: int) -> torch.Tensor:
    """Return a network's outputs if they are (N, classes) and have that column.

    Parameters
    ----------
    outputs : (N, classes) tensor
    count, column : int
        N, and the class asked for.

    Raises
    ------
    ValueError
        If the shape is another, or there is no such class.
    """
    if not isinstance(outputs, torch.Tensor) or outputs.ndim != 2 or len(outputs) != count:
        got = f"shape {tuple(outputs.shape)}" if hasattr(outputs, "shape") else type(outputs).__name__
        raise ValueError(f"the network must give (pictures, classes) = ({count}, …); got {got}.")
    if not 0 <= column < outputs.shape[1]:
        raise ValueError(
            f"the target must be a class between 0 and {outputs.shape[1] - 1}, which the network has; "
            f"got {column}."
        )
    return outputs


def _mean_direction(vectors, name: str) -> np.ndarray:
    """Return the mean of the unit rows of (n, D): its product with a unit vector is the mean cosine."""
    z, length = unit_lengths(vectors.detach().cpu() if isinstance(vectors, torch.Tensor) else vectors, name)
    return (z / length[:, None]).mean(0)
