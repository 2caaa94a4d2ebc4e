"""Analysis sets: pictures by class, from COCO, Open Images, released lists, a folder, or generated scenes."""

from collections.abc import Callable
from pathlib import Path

from . import coco, folder, generated, openimages, released
from .captions import caption_gender
from .manifest import AnalysisSet, schema_classes

__all__ = ["AnalysisSet", "caption_gender", "load_set", "schema_classes"]

LOADERS: dict[str, Callable[..., AnalysisSet]] = {
    "coco": coco.load,
    "openimages": openimages.load,
    "released": released.load,
    "folder": folder.load,
    "scenes": generated.load,
}


def load_set(kind: str, *, root: Path | str, **options) -> AnalysisSet:
    """Load an analysis set: curate or read the pictures below ``root`` into one manifest.

    Parameters
    ----------
    kind : {"coco", "openimages", "released", "folder", "scenes"}
        Where the pictures come from.
    root : path-like
        The folder that holds them (``released``: also a tar file; ``scenes``: where they are generated).
    **options
        What the kind takes: see ``load`` in the module of that name.

    Returns
    -------
    AnalysisSet
        Manifest, report of every decision, notes.

    Raises
    ------
    ValueError
        Unknown kind, or a class without a picture.
    FileNotFoundError
        ``root`` or a file in it is missing.
    """
    if kind not in LOADERS:
        raise ValueError(f"kind of analysis set must be one of {', '.join(LOADERS)}; got {kind!r}.")
    root = Path(root).expanduser().absolute()
    if kind != "scenes" and not root.exists():
        raise FileNotFoundError(f"the folder of analysis set {kind!r} must exist; {root} does not.")
    return LOADERS[kind](root, **options)
