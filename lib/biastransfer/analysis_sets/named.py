"""Analysis sets by the one name that notebooks and results use: kind of pictures and schema."""

import os
from pathlib import Path

from .. import paths
from . import coco, generated, openimages, released
from .manifest import OBJECTS, AnalysisSet

KINDS = ("scenes", "released", "curated", "mini")
# Some hundred pictures: a second large object is allowed, and a class that has no picture is left out.
MINI = {"min_area": 0.01, "confounder_area": 1.0, "cap": 20, "empty": "leave out"}
MINI_FILES = {
    "instances": "annotations/instances.json",
    "captions": "annotations/captions.json",
    "images": "images",
}
CAPS = {"coco": 20, "openimages": 150}  # pictures a class, as most classes of the paper's Tables 5 and 6 have


def load_named(set_name: str, *, root: Path | str = "", scale: float = 1.0, seed: int = 0) -> AnalysisSet:
    """Load the analysis set of a name, such as ``scenes-coco``.

    Parameters
    ----------
    set_name : str
        ``<kind>-<schema>``, schema ``coco`` or ``openimages``. Kinds: ``scenes`` (generated), ``released``
        (the paper's own sets), ``curated`` (from a whole data set by the strict rules), ``mini`` (from a few
        hundred COCO pictures by loose rules, `MINI`).
    root : path-like
        Folder (``released``: also a tar) of the pictures and their annotations; default: the kind's folder
        below ``data/raw``, of ``curated`` and ``mini`` the schema's. The released COCO lists hold addresses
        only: there it may be two paths, that of the lists and, after a colon (`os.pathsep`), the folder of
        COCO's pictures.
    scale, seed : float, int
        Of the generated scenes; ``seed`` also of the choice where a class has more pictures than its cap.

    Returns
    -------
    AnalysisSet
        With ``set_name`` as its name. Of ``curated`` and ``mini`` sets, ``reviewed-<set_name>.csv`` in the
        folder is followed where it is there: the set's candidates, gone through by a person.

    Raises
    ------
    ValueError
        A name of another form.
    FileNotFoundError
        No such folder, or a file in it is missing.

    """
    kind, dash, schema = set_name.partition("-")
    if not dash or kind not in KINDS or schema not in OBJECTS or set_name == "mini-openimages":
        raise ValueError(
            f"a set must be named <kind>-<schema>, kind {', '.join(KINDS[:-1])} or {KINDS[-1]}; "
            f"got {set_name!r}. scenes-coco is one."
        )
    if kind == "scenes":
        return generated.load(Path(root or paths.raw(kind)).absolute(), schema=schema, scale=scale, seed=seed)
    first, _, second = str(root).partition(os.pathsep)
    folder = _there(first or paths.raw("released" if kind == "released" else schema), set_name)
    if kind == "released":
        images = {"images": _there(second or paths.raw(schema), set_name)} if schema == "coco" else {}
        return released.load(folder, schema=schema, **images)
    file = folder / f"reviewed-{set_name}.csv"
    options = {"name": set_name, "seed": seed, "review": file if file.is_file() else None}
    if kind == "mini":
        return coco.load(folder, **options, **MINI_FILES, **MINI)
    load = coco.load if schema == "coco" else openimages.load
    return load(folder, cap=CAPS[schema], **options)


def _there(folder: Path | str, set_name: str) -> Path:
    path = Path(folder).expanduser().absolute()
    if not path.exists():
        raise FileNotFoundError(
            f"the pictures of {set_name} must be there; {path} is not. Give their folder as `root`."
        )
    return path
