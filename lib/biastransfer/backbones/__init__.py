"""Named pretrained models: the network, its own transform, its layers and where its weights came from."""

from biastransfer.backbones.architectures import pretraining_classes
from biastransfer.backbones.backbone import Backbone
from biastransfer.backbones.heads import replace_head
from biastransfer.backbones.loading import initialise_anew, list_backbones, load_backbone
from biastransfer.backbones.reading import forward_layer, layer_path
from biastransfer.backbones.transforms import Transform

__all__ = [
    "Backbone",
    "Transform",
    "forward_layer",
    "initialise_anew",
    "layer_path",
    "list_backbones",
    "load_backbone",
    "pretraining_classes",
    "replace_head",
]
