"""What a loaded backbone is."""

import dataclasses
from collections.abc import Mapping

from torch import nn

from biastransfer.backbones.transforms import Transform
from biastransfer.checkpoints import Coverage


@dataclasses.dataclass(frozen=True)
class Backbone:
    """A network in eval mode with all that is needed to feed and read it.

    Attributes
    ----------
    name : str
        Its name for `load_backbone`; after finetuning still the name of the architecture.
    module : torch.nn.Module
        ``module(x)`` gives logits (N, number of classes) for x (N, 3, H, W) as `transform` makes it, or the
        embedding (N, dim) where the published weights have no classifier and `replace_head` made none.
    transform : Transform
        Its own preprocessing.
    dim : int
        Length of its ``"embedding"``.
    layers : tuple of str
        Names that `forward_layer` knows, by depth; the last is ``"embedding"``.
    source : str
        Where the weights came from.
    classes : tuple of str
        Names of the logits, in order; empty when unknown.
    layer_modules : mapping of str to str
        For each layer the submodule whose output it is; ``input:`` before it means what goes into it.
    head : str
        The submodule that turns the embedding into logits.
    own_head : bool
        Whether that head is the pretrained one; False after `replace_head`.
    tokens, prefix_tokens, maps : str, int, str
        How a layer's output becomes one vector. Tokens (N, L, D): the ``"class"`` token, or the ``"mean"``
        over those behind the first `prefix_tokens` (class and register tokens). Maps: ``"NCHW"``, ``"NHWC"``.
    coverage : Coverage or None
        How much of the network its file filled.
    scripted : bool
        Whether it is a TorchScript program: it runs, but it cannot be initialised anew, finetuned, or rebuilt
        from a checkpoint.
    """

    name: str
    module: nn.Module
    transform: Transform
    dim: int
    layers: tuple[str, ...]
    source: str
    classes: tuple[str, ...] = ()
    layer_modules: Mapping[str, str] = dataclasses.field(default_factory=dict)
    head: str = ""
    own_head: bool = True
    tokens: str = "mean"
    prefix_tokens: int = 0
    maps: str = "NCHW"
    coverage: Coverage | None = None
    scripted: bool = False
