"""Any network of timm: ``timm:NAME``, or the bare name where it is not one of the registry."""

import difflib
import functools
import math
import re
import sys
from collections.abc import Iterable

from torch import nn

from biastransfer.backbones.entries import Architecture, seeded
from biastransfer.backbones.transforms import Transform
from biastransfer.backbones.weights import Weights

_ROWS = ("layer", "stage", "block", "level", "group", "feature", "network", "encoder")
_STEM = re.compile("stem|conv|act|bn|norm|relu")
_WRAPPINGS = {"state_dict", "model", "module", "model_state", "model_state_dict"}


def is_timm(name: str) -> bool:
    """Return whether timm has a network called ``name``, with or without a tag of weights."""
    from timm.models import is_model

    return bool(re.fullmatch(r"[\w.-]+", name)) and is_model(name.split(".")[0])


def nearest(name: str, known: Iterable[str], count: int = 3, likeness: float = 0.5) -> list[str]:
    """Return up to ``count`` of the ``known`` names that look like ``name``, by a ``likeness`` of 0 to 1."""
    return difflib.get_close_matches(name, list(known), n=count, cutoff=likeness)


def timm_architecture(name: str) -> Architecture:
    """Return the entry of a network of timm.

    Parameters
    ----------
    name : str
        timm's name with or without its tag; without one it is timm's default weights.

    Returns
    -------
    Architecture
        With timm's own data configuration as transform; layers and dimension are known once it is built.

    Raises
    ------
    ValueError
        If timm has no such network or weights, or the network takes no square colour pictures.
    """
    from timm.data import infer_imagenet_subset, resolve_data_config
    from timm.models import get_pretrained_cfg, list_models, list_pretrained

    config = get_pretrained_cfg(name, allow_unregistered=False) if is_timm(name) else None
    if config is None:
        near = nearest(name, [*list_models(), *list_pretrained()])
        raise ValueError(
            f"timm must have a network {name!r}; it has not. Near it: {', '.join(near) or 'none'}"
        )
    whole = f"{config.architecture}.{config.tag}" if config.tag else str(config.architecture)
    fields = config.to_dict()
    data = resolve_data_config({}, pretrained_cfg=fields)
    channels, high, wide = data["input_size"]
    if channels != 3 or high != wide:
        raise ValueError(
            f"a backbone must take square colour pictures; {whole} takes {data['input_size']}. Name another."
        )
    squash = data["crop_mode"] == "squash"
    crop = high / math.floor(high / data["crop_pct"])
    transform = Transform(
        high, crop, data["interpolation"], data["mean"], data["std"], fit="squash" if squash else "crop"
    )
    return Architecture(
        functools.partial(_build, whole),
        transform,
        f"timm {whole}",
        weights=_weights(whole, config),
        look=look,
        convert=converted,
        label_set=(infer_imagenet_subset(fields) or "") if config.num_classes else "",
        learned_from=f"what timm calls {config.tag or 'its default'}",
    )


def _build(name: str, seed: int) -> nn.Module:
    from timm.models import create_model

    return seeded(lambda: create_model(name, pretrained=False), seed)


def _weights(name: str, config) -> Weights | None:
    if not (config.hf_hub_id or config.url):
        return None
    files = (config.hf_hub_filename,) if config.hf_hub_filename else Weights.hub_files
    address = config.url if isinstance(config.url, str) else ""
    file = f"{name}.safetensors" if config.hf_hub_id else address.rpartition("/")[2]
    get = "" if config.hf_hub_id else f"get it from {address}"
    return Weights(file, hub=config.hf_hub_id or "", hub_files=files, get=get)


def look(module: nn.Module) -> dict:
    """Return dimension, layers, head and pooling of a built network of timm.

    Parameters
    ----------
    module : torch.nn.Module

    Returns
    -------
    dict
        Fields of an `Architecture`. Layers are the stages or blocks that timm lists as features; the
        embedding is what goes into the classifier. A token network's layers are read at its class token where
        its own classifier reads that, else at the mean of its patch tokens.

    Raises
    ------
    ValueError
        A network with several classifiers of different embeddings.
    """
    classifier = module.get_classifier()
    first = classifier[0] if isinstance(classifier, tuple | list) else classifier
    if hasattr(first, "fc") and hasattr(first, "global_pool"):  # the pooling belongs to the network
        first = first.fc
    if isinstance(first, nn.ModuleList):
        raise ValueError(
            f"a backbone must classify one embedding; {type(module).__name__} classifies {len(first)} at "
            "once. Name another."
        )
    head = next(path for path, part in module.named_modules() if part is first)
    width = getattr(first, "in_features", None) or getattr(first, "in_channels", None)
    prefix = int(getattr(module, "num_prefix_tokens", 0) or 0)
    own = getattr(module, "global_pool", "")
    by_class = prefix > 0 and (own in ("token", "tok") or getattr(module, "cls_token", None) is not None)
    return {
        "dim": int(width or getattr(module, "head_hidden_size", 0) or module.num_features),
        "layer_modules": _depth(module) | {"embedding": f"input:{head}"},
        "head": head,
        "tokens": "class" if by_class and own in ("token", "tok", "") else "mean",
        "prefix_tokens": prefix,
        "maps": "NHWC" if getattr(module, "output_fmt", "") == "NHWC" else "NCHW",
    }


def _depth(module: nn.Module) -> dict[str, str]:
    """Return names of stages or blocks, by depth, and their submodules."""
    info = getattr(module, "feature_info", None) or []
    entries = info.info if hasattr(info, "info") else info
    known = dict(module.named_modules())
    listed = [entry["module"] for entry in entries if isinstance(entry, dict) and entry.get("module")]
    # a bare list of blocks is not run as such: its last block is
    paths = [_members(known, path)[-1] for path in listed if path in known]
    if not paths:
        rows = [name for name, _ in module.named_children() if name.startswith(_ROWS)]
        parts = [f"{name}.{k}" for name in rows for k, _ in known[name].named_children()]
        paths = [path for part in parts for path in _members(known, part)]
    blocks = all(re.fullmatch(r"blocks\.\d+", path) for path in paths) and hasattr(module, "patch_embed")
    kind = "block" if blocks else "stage"
    distinct = list(dict.fromkeys(paths))
    stem = bool(distinct) and not distinct[0].startswith(_ROWS) and bool(_STEM.search(distinct[0]))
    names = ["stem"] * stem + [f"{kind}{k}" for k in range(1, len(distinct) + 1)]
    return dict(zip(names, distinct))


def _members(known: dict[str, nn.Module], path: str) -> list[str]:
    """Return what is run of a submodule: itself, or the members of a list."""
    part = known[path]
    return [f"{path}.{k}" for k in range(len(part))] if isinstance(part, nn.ModuleList) else [path]


def converted(module: nn.Module, found: dict) -> dict:
    """Return a file's tensors renamed by timm's own rule for that network, or nothing if it has none.

    Parameters
    ----------
    module : torch.nn.Module
        A network of timm.
    found : dict of str to tensor
        As read from the file.
    """
    rule = getattr(sys.modules.get(type(module).__module__), "checkpoint_filter_fn", None)
    if rule is None:
        return {}
    while found and {name.split(".")[0] for name in found} <= _WRAPPINGS:
        found = {name.split(".", 1)[1]: value for name, value in found.items() if "." in name}
    try:
        return dict(rule(dict(found), module))
    except Exception:  # the rule is written for one layout and may stumble over any other
        return {}
