"""From a name, a file of weights or a checkpoint of ours to a network that can be fed and read."""

import dataclasses
import os
from pathlib import Path

from biastransfer import checkpoints
from biastransfer.backbones import weights as published
from biastransfer.backbones.allocation import keep_freed_memory
from biastransfer.backbones.architectures import REGISTRY
from biastransfer.backbones.architectures import architecture as find_entry
from biastransfer.backbones.backbone import Backbone
from biastransfer.backbones.entries import Architecture, class_names
from biastransfer.backbones.heads import replace_head, without_head
from biastransfer.backbones.scripted import load_scripted
from biastransfer.backbones.transforms import Transform
from biastransfer.checkpoint_layouts import is_torchscript

_FILES = (".safetensors", ".pth", ".pt", ".tar", ".ckpt", ".bin", ".npz", ".torch", ".pkl")


def list_backbones() -> list[str]:
    """Return the names of the registry; `load_backbone` also takes those of timm and open_clip.

    Examples
    --------
    >>> list_backbones()[-1]
    'random'
    """
    return list(REGISTRY)


def load_backbone(
    name: str | os.PathLike,
    *,
    seed: int = 0,
    weights: str | os.PathLike | None = None,
    architecture: str | None = None,
    trust: bool = False,
) -> Backbone:
    """Load a backbone by name, or from a file.

    Parameters
    ----------
    name : str or path
        A name of `list_backbones`; ``timm:NAME`` or timm's bare name; ``open_clip:ARCHITECTURE:TAG``; or a
        file: a checkpoint that `checkpoints.save` wrote, any other with `architecture`, or a TorchScript
        program.
    seed : int
        Seed of the initial weights of ``"random"``; the others do not depend on it.
    weights : path, optional
        A file with the weights; default the published one in ``data/raw/weights`` or in a cache of PyTorch,
        OpenAI's CLIP or the Hugging Face hub. For networks outside the registry the hub is asked too, where
        it can be reached.
    architecture : str, optional
        With a file as `name`: the name of the network that it holds.
    trust : bool
        Whether code in the file may run: a pickle that holds more than tensors, or a TorchScript program.
        Only for files from a source that you trust.

    Returns
    -------
    Backbone
        On the CPU, in eval mode, never with random weights unless they were asked for.

    Raises
    ------
    ValueError
        If the name is unknown (the message lists the names), the file is none of these, needs trust, does not
        have the published hash, or fills less than 95 % of the network, its head left out.
    FileNotFoundError
        If the checkpoint, the published weights, or the pip package with them, are not there.

    Notes
    -----
    A TorchScript program is taken as it is: its output, averaged over space or tokens, is the embedding and
    the only layer, and pictures are prepared as for ImageNet, since the file does not say how.

    On Linux the process keeps freed memory for later passes: see `allocation.keep_freed_memory`.
    """
    keep_freed_memory()
    if not _is_file(name):
        if architecture is not None:
            raise ValueError(
                f"architecture goes with a file; got the name {name!r}. Pass weights=PATH instead."
            )
        return _named(str(name), seed, weights, trust)
    path = Path(name)
    if architecture is not None:
        return _named(architecture, seed, path, trust)
    if path.is_file() and is_torchscript(path):
        return load_scripted(path, trust)
    if path.is_file() and path.suffix != ".safetensors":  # the only kind that says what it holds
        raise ValueError(
            f"{path} does not say which network it holds; name it with load_backbone(path, architecture=…)"
        )
    return _rebuild(path)


def initialise_anew(backbone: Backbone, seed: int) -> Backbone:
    """Return a network of the same architecture with initial weights: what it was before training.

    Parameters
    ----------
    backbone : Backbone
        Left as it is.
    seed : int
        Of the weights.

    Returns
    -------
    Backbone

    Raises
    ------
    ValueError
        If it is a TorchScript program, or has no weights that could be drawn.
    """
    if backbone.scripted:
        raise ValueError(
            f"{backbone.name} is a TorchScript program and cannot be initialised anew: the file tells what "
            "it does, not how it was built."
        )
    below = f"{backbone.head}."
    if all(name.startswith(below) for name, _ in backbone.module.named_parameters()):
        raise ValueError(f"{backbone.name} has no weights below its head, so none can be drawn anew.")
    entry = find_entry(backbone.name)
    said = f"{backbone.name} with initial weights, never trained (seed {seed})"
    return _backbone(backbone.name, entry, entry.build(seed), said, transform=backbone.transform)


def _is_file(name: str | os.PathLike) -> bool:
    if isinstance(name, os.PathLike):
        return True
    return name not in REGISTRY and (name.endswith(_FILES) or os.path.isfile(name))


def _named(name: str, seed: int, weights, trust: bool) -> Backbone:
    """Build a network by name and fill it: from a pip package, or from a file found before it is built."""
    entry = find_entry(name)
    if weights is None and not entry.pretrained and entry.look:
        raise ValueError(f"{name} must have published weights; timm names none. Pass weights=PATH.")
    if weights is None and entry.weights is None:
        return _from_package(name, entry, seed)
    path = Path(weights) if weights is not None else published.find(entry.weights, name)
    backbone = _backbone(name, entry, entry.build(0), "")
    coverage = checkpoints.load_into(backbone, path, trust_pickle=trust, convert=entry.convert)
    said = published.identity(path, entry.weights)
    known = weights is None or said.endswith("as published")
    source = entry.source if known else f"a given file, taken as {name} ({entry.source})"
    source += f"; {path.name} ({said})"
    if coverage.coverage < 1:
        missing = len(coverage.unmatched)
        source += f"; {missing} of {coverage.total} tensors were not in it and are as initialised"
    backbone = dataclasses.replace(backbone, source=source, coverage=coverage)
    if coverage.head.startswith("left"):
        return without_head(backbone)
    return dataclasses.replace(backbone, classes=class_names(entry.label_set))


def _from_package(name: str, entry: Architecture, seed: int) -> Backbone:
    module = entry.build(seed)
    if entry.packaged is None:
        return _backbone(name, entry, module, f"{entry.source} (seed {seed})")
    module.load_state_dict(entry.packaged(module), strict=True)
    return _backbone(name, entry, module, entry.source, class_names(entry.label_set))


def _backbone(name: str, entry: Architecture, module, source: str, classes=(), transform=None) -> Backbone:
    entry = entry.seen_in(module)
    return Backbone(
        name=name,
        module=module.eval(),
        transform=transform or entry.transform,
        dim=entry.dim,
        layers=tuple(entry.layer_modules),
        source=source,
        classes=tuple(classes),
        layer_modules=entry.layer_modules,
        head=entry.head,
        tokens=entry.tokens,
        prefix_tokens=entry.prefix_tokens,
        maps=entry.maps,
    )


def _rebuild(path: Path) -> Backbone:
    """Rebuild the backbone that `checkpoints.save` wrote: architecture, head, transform, weights."""
    meta, state = checkpoints.read(path)
    name = meta["architecture"]
    entry = find_entry(name)
    transform = Transform.from_dict(meta["transform"])
    backbone = _backbone(name, entry, entry.build(0), meta["source"], meta["classes"], transform)
    if not meta["own_head"]:
        backbone = replace_head(backbone, meta["classes"]) if meta["classes"] else without_head(backbone)
    backbone.module.load_state_dict(state, strict=True)
    return backbone
