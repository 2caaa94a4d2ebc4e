"""Image towers of open_clip: any ``open_clip:ARCHITECTURE:TAG``."""

import functools
import re

from torch import nn

from biastransfer.backbones import timm_models
from biastransfer.backbones.entries import Architecture, seeded
from biastransfer.backbones.transforms import Transform
from biastransfer.backbones.weights import Weights

_HUB_FILES = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin")


class ImageTower(nn.Module):
    """The image tower of a contrastive model with its projection, then a head that is empty at first.

    Its embedding is the projected vector, since cosines in that space are what the model was trained on.
    Weights are named as in the whole model, ``visual.…``, so that its checkpoints load as they are.
    """

    def __init__(self, visual: nn.Module):
        super().__init__()
        self.visual, self.embedding, self.head = visual, nn.Identity(), nn.Identity()

    def forward(self, x):
        """Return the head's output for x (N, 3, H, W): without a head the projected embedding (N, D)."""
        output = self.visual(x)
        return self.head(self.embedding(output[0] if isinstance(output, tuple) else output))


def build_tower(architecture: str, quick_gelu: bool, seed: int) -> ImageTower:
    """Return an image tower of open_clip with initial weights; its text tower is not built.

    Parameters
    ----------
    architecture : str
        Name of one of open_clip's configurations.
    quick_gelu : bool
        Whether its activation is OpenAI's approximation of GELU: what the weights were trained with.
    seed : int
        Of the initial weights.
    """
    import open_clip
    from open_clip.model import _build_vision_tower

    config = open_clip.get_model_config(architecture)
    vision = {**config["vision_cfg"], "timm_model_pretrained": False}
    tower = seeded(lambda: _build_vision_tower(config["embed_dim"], vision, quick_gelu=quick_gelu), seed)
    return ImageTower(tower)


def clip_architecture(name: str) -> Architecture:
    """Return the entry of ``open_clip:ARCHITECTURE:TAG``.

    Parameters
    ----------
    name : str
        For instance ``open_clip:ViT-B-16:laion2b_s34b_b88k``.

    Returns
    -------
    Architecture
        Layers, dimension and pooling are known once it is built. QuickGELU is used where the tag's weights
        were trained with it, also where the architecture's plain name would build GELU.

    Raises
    ------
    ValueError
        If open_clip has no such architecture or tag; the message lists what is near.
    """
    import open_clip

    _, architecture, tag = (*name.split(":"), "", "")[:3]
    config = open_clip.get_model_config(architecture)
    tags = open_clip.list_pretrained_tags_by_model(architecture)
    published = open_clip.get_pretrained_cfg(architecture, tag)
    if config is None or not published:
        near = timm_models.nearest(architecture, open_clip.list_models()) if config is None else tags
        raise ValueError(
            f"open_clip must have architecture and tag of {name!r}, written open_clip:ARCHITECTURE:TAG; "
            f"{'architectures' if config is None else 'tags'} near it: {', '.join(near) or 'none'}"
        )
    size = config["vision_cfg"].get("image_size", 224)
    transform = Transform(
        size if isinstance(size, int) else size[0],
        1.0,
        published.get("interpolation", "bicubic"),
        tuple(published["mean"]),
        tuple(published["std"]),
        fit="squash" if published.get("resize_mode") == "squash" else "crop",
    )
    quick = bool(published.get("quick_gelu", config.get("quick_gelu", False)))
    repository, _, file = published.get("hf_hub", "").rpartition("/")
    return Architecture(
        functools.partial(build_tower, architecture, quick),
        transform,
        f"open_clip {architecture}, {tag}, image tower with its projection{', QuickGELU' if quick else ''}",
        head="head",
        weights=Weights(
            f"{architecture}-{tag}.safetensors", hub=repository, hub_files=(file,) if file else _HUB_FILES
        ),
        look=_look,
        learned_from=f"pairs of picture and text ({tag}); no fixed classes",
    )


def _look(module: ImageTower) -> dict:
    """Return dimension, layers and pooling of a built tower."""
    visual = module.visual
    if hasattr(visual, "trunk"):  # a network of timm
        found = timm_models.look(visual.trunk)
        layers = {
            layer: f"visual.trunk.{path}"
            for layer, path in found["layer_modules"].items()
            if layer != "embedding"
        }
        pooling = {key: found[key] for key in ("tokens", "prefix_tokens", "maps")}
    elif hasattr(visual, "transformer"):
        blocks = range(len(visual.transformer.resblocks))
        layers = {"stem": "visual.ln_pre"}
        layers |= {f"block{k + 1}": f"visual.transformer.resblocks.{k}" for k in blocks}
        pooling = {"tokens": "class" if visual.pool_type == "tok" else "mean", "prefix_tokens": 1}
    else:  # CLIP's own ResNet
        paths = [path for path, _ in visual.named_children() if re.fullmatch(r"layer\d", path)]
        layers = {f"stage{k + 1}": f"visual.{path}" for k, path in enumerate(paths)}
        pooling = {}
    return {"dim": _width(visual), "layer_modules": layers | {"embedding": "embedding"}, **pooling}


def _width(visual: nn.Module) -> int:
    """Return the length of the projected vector."""
    if hasattr(visual, "output_dim"):
        return int(visual.output_dim)
    linear = [part for part in visual.head.modules() if isinstance(part, nn.Linear)]
    return int(linear[-1].out_features if linear else visual.trunk.num_classes or visual.trunk.num_features)
