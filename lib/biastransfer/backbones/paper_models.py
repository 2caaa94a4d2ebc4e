"""The models of the two papers, each with its published weights and its own transform."""

import functools

from torch import nn

from biastransfer.backbones.entries import IMAGENET, Architecture, seeded
from biastransfer.backbones.transforms import Transform
from biastransfer.backbones.weights import Weights

# the side of 256 pixels that the usual evaluation resizes to, of which the central 224 are seen
_USUAL = Transform(224, 224 / 256, "bilinear", **IMAGENET)
_UNSCALED = Transform(224, 224 / 256, "bilinear", (0.0,) * 3, (1.0,) * 3)
_RESNET_LAYERS = (
    {"stem": "maxpool"} | {f"stage{k}": f"layer{k}" for k in range(1, 5)} | {"embedding": "avgpool"}
)
_IMAGES_ONLY = "ImageNet-1k's training pictures, without their labels"


def _fetch(name: str) -> str:
    return f"fetch it with: biastransfer fetch {name}"


def _build_resnet(variant: str, classes: int, seed: int) -> nn.Module:
    import torchvision.models

    def make():
        module = getattr(torchvision.models, variant)(weights=None, num_classes=max(classes, 1))
        if not classes:  # the published head is no classifier: the network ends with its embedding
            module.fc = nn.Identity()
        return module

    return seeded(make, seed)


def _resnet(
    variant, file, digest, get, source, *, classes=0, label_set="", transform=_USUAL, learned=_IMAGES_ONLY
):
    return Architecture(
        functools.partial(_build_resnet, variant, classes),
        transform,
        source,
        512 if variant == "resnet18" else 2048,
        _RESNET_LAYERS,
        "fc",
        weights=Weights(file, digest, get=get),
        label_set=label_set,
        learned_from=learned,
    )


def _supervised(variant: str, prefix: str) -> Architecture:
    return _resnet(
        variant,
        f"{variant}-{prefix}.pth",
        f"sha256:{prefix}",
        _fetch(variant),
        f"torchvision {variant}, IMAGENET1K_V1",
        classes=1000,
        label_set="imagenet-1k",
        learned="ImageNet-1k, with labels",
    )


def _moco(version: int, epochs: int, prefix: str) -> Architecture:
    return _resnet(
        "resnet50",
        f"moco_v{version}_{epochs}ep_pretrain.pth.tar",
        f"md5:{prefix}",
        _fetch(f"moco-v{version}-{epochs}"),
        f"MoCo v{version} ResNet50, {epochs} epochs, query encoder without its projection",
    )


def _vissl(epochs: int, job: str) -> Architecture:
    return _resnet(
        "resnet50",
        f"simclr_rn50_{epochs}ep.{job}.torch",
        "",  # the eight digits in the file's address name the training job, not the file's content
        _fetch(f"simclr-{epochs}"),
        f"SimCLR ResNet50 as VISSL trained it, {epochs} epochs, without its projection",
    )


def _build_bit(seed: int) -> nn.Module:
    from timm.models import create_model

    return seeded(lambda: create_model("resnetv2_50x1_bit.goog_in21k", pretrained=False), seed)


_BIT = Architecture(
    _build_bit,
    Transform(224, 224 / 256, "bilinear", (0.5,) * 3, (0.5,) * 3),
    "BiT-M-R50x1 (timm resnetv2_50x1_bit.goog_in21k), not fine-tuned on ImageNet-1k",
    2048,
    {"stem": "stem"} | {f"stage{k + 1}": f"stages.{k}" for k in range(4)} | {"embedding": "head.global_pool"},
    "head.fc",
    weights=Weights("BiT-M-R50x1.npz", hub="timm/resnetv2_50x1_bit.goog_in21k", get=_fetch("bit-m-r50x1")),
    label_set="imagenet-21k-goog",
    learned_from="ImageNet-21k, with labels",
)


def _build_clip(seed: int) -> nn.Module:
    from biastransfer.backbones.clip_models import build_tower

    return build_tower("ViT-B-32-quickgelu", True, seed)


_CLIP = Architecture(
    _build_clip,
    Transform(
        224,
        1.0,
        "bicubic",
        (0.48145466, 0.4578275, 0.40821073),
        (0.26862954, 0.26130258, 0.27577711),
    ),
    "CLIP ViT-B/32 (open_clip ViT-B-32-quickgelu, openai), image tower with its projection",
    512,
    {"stem": "visual.ln_pre"}
    | {f"block{k + 1}": f"visual.transformer.resblocks.{k}" for k in range(12)}
    | {"embedding": "embedding"},
    "head",
    weights=Weights(
        "ViT-B-32.pt",
        "sha256:40d365715913c9da98579312b702a82c18be219cc2a73407c4526f58eba950af",
        hub="timm/vit_base_patch32_clip_224.openai",
        hub_files=("open_clip_model.safetensors", "open_clip_pytorch_model.bin"),
        get=_fetch("clip-vit-b32"),
    ),
    tokens="class",
    prefix_tokens=1,
    learned_from="400 million pairs of picture and text from the web, not published; no fixed classes",
)

_SIMCLR = _resnet(
    "resnet50",
    "resnet50-1x.pth",
    "",
    "convert Google's checkpoint ResNet50_1x to a PyTorch state dict with torchvision's names",
    # the usual converter never sets the bias of the supervised head, so that head is not taken
    "SimCLR ResNet50 1x converted from TensorFlow, without any head",
    transform=_UNSCALED,
)

_PLACES = _resnet(
    "resnet50",
    "resnet50_places365.pth.tar",
    "",
    _fetch("places365-resnet50"),
    "ResNet50 of the Places365 authors",
    classes=365,
    learned="Places365, with labels",
)

PAPER_MODELS: dict[str, Architecture] = {
    "resnet18": _supervised("resnet18", "f37072fd"),
    "resnet50": _supervised("resnet50", "0676ba61"),
    "bit_m_r50x1": _BIT,
    "clip_vit_b32": _CLIP,
    "moco_resnet50": _moco(1, 200, "b251726a"),  # the paper cites the first MoCo; its code names v1
    "moco_resnet50_v2_200": _moco(2, 200, "59fd9945"),
    "moco_resnet50_v2_800": _moco(2, 800, "a04e12f8"),
    "simclr_resnet50": _SIMCLR,
    "simclr_resnet50_vissl": _vissl(1000, "afe428c7"),
    "simclr_resnet50_vissl_200": _vissl(200, "a816c0ef"),
    "places365_resnet50": _PLACES,
}
