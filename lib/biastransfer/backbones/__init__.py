"""Named pretrained models: the network, its own transform, its layers and where its weights came from."""

from biastransfer.backbones.loading import (
    Backbone,
    forward_layer,
    layer_path,
    list_backbones,
    load_backbone,
    replace_head,
)
from biastransfer.backbones.transforms import Transform

__all__ = [
    "Backbone",
    "Transform",
    "forward_layer",
    "layer_path",
    "list_backbones",
    "load_backbone",
    "replace_head",
]
