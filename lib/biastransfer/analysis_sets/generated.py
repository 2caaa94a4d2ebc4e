"""Analysis sets of generated scenes: written once in the official formats, read by the same curation code."""

import hashlib
import json
import shutil
from pathlib import Path

from .. import paths
from . import coco, openimages
from .manifest import OBJECTS, AnalysisSet

_MARKER = "complete.json"
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
    The set is generated anew when the code that draws it has changed. Its ``random`` class holds pictures
    with none of the schema's objects and no person.
    """
    if schema not in OBJECTS:
        raise ValueError(f"schema must be one of {', '.join(OBJECTS)}; got {schema!r}.")
    if not scale > 0:
        raise ValueError(f"scale must be above 0; got {scale!r}.")
    folder = write(root, schema, scale, seed)
    loader = {"coco": coco.load, "openimages": openimages.load}[schema]
    return loader(
        folder, **{"name": f"scenes-{schema}", "random": "background", "source": "scenes", **options}
    )


def write(root: Path, schema: str, scale: float, seed: int) -> Path:
    """Return the folder below root of one schema, scale and seed; draw it where it is not there."""
    folder = root / f"{schema}-scale{scale:g}-seed{seed}"
    wanted = {"schema": schema, "scale": scale, "seed": seed, "code": _code()}
    marker = folder / _MARKER
    if marker.is_file() and json.loads(marker.read_text(encoding="utf-8")) == wanted:
        return folder
    from .scenes import write_analysis_set  # drawing needs resvg; reading a set that is there does not

    if marker.is_file():  # ours, made by other code; a folder of anything else is left to `scenes` to refuse
        shutil.rmtree(folder)
    write_analysis_set(schema, folder, scale=scale, seed=seed)
    with paths.replacing(marker) as partial:
        partial.write_text(json.dumps(wanted), encoding="utf-8")
    return folder


def _code() -> str:
    """Return a fingerprint of the modules that draw scenes."""
    digest = hashlib.sha256()
    for module in sorted(Path(__file__).parent.glob("*.py")):
        if module.name.startswith(("scene", "glyph")):
            digest.update(module.read_bytes())
    return digest.hexdigest()[:16]
