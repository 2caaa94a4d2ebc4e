"""Analysis sets of generated scenes: written once in the official formats, read by the same curation code."""

import functools
import hashlib
from pathlib import Path

from . import coco, openimages
from .manifest import OBJECTS, AnalysisSet

_LICENCE = "CC BY 4.0 (art: Twemoji, changed)"


def load(
    root: Path, *, schema: str = "openimages", scale: float = 1.0, seed: int = 0, **options
) -> AnalysisSet:
    """Load the scenes of a schema, generating them below ``root`` where they are not there yet.

    Parameters
    ----------
    root : Path
        Folder of all generated sets, usually ``paths.raw("scenes")``.
    schema : {"coco", "openimages"}
        Whose classes and file formats.
    scale : float
        Share of the paper's picture counts (Tables 5 and 6).
    seed : int
        Seed of the scenes.
    **options
        Passed to the curation of that schema.

    Raises
    ------
    ValueError
        Unknown schema, or a scale that is not positive.

    Notes
    -----
    The folder is named after the code that draws: when that has changed, the set is drawn anew. The
    ``random`` class holds pictures with none of the schema's objects and no person.
    """
    if schema not in OBJECTS:
        raise ValueError(f"schema must be one of {', '.join(OBJECTS)}; got {schema!r}.")
    if not scale > 0:
        raise ValueError(f"scale must be above 0; got {scale!r}.")
    folder = root / f"{schema}-scale{scale:g}-seed{seed}-{drawing_code()}"
    from .scenes import write_analysis_set  # drawing needs resvg; other kinds of sets do not

    write_analysis_set(schema, folder, scale=scale, seed=seed)  # nothing to do where it is complete
    settings = {"name": f"scenes-{schema}", "random": "background", "source": "scenes"} | options
    if schema == "coco":  # its files state the licence of each picture
        return coco.load(folder, **settings)
    return openimages.load(folder, **{"licence": _LICENCE} | settings)


@functools.cache  # the code that this process loaded, whatever is edited meanwhile
def drawing_code() -> str:
    """Return a fingerprint, 8 hex digits, of the modules that draw scenes."""
    digest = hashlib.sha256()
    for module in sorted(Path(__file__).parent.glob("*.py")):
        if module.name.startswith(("scene", "glyph")):
            digest.update(module.read_bytes())
    return digest.hexdigest()[:8]
