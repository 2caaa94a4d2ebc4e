"""Analysis sets by the one name that notebooks and results use: kind of pictures and schema."""

from pathlib import Path

from .. import paths
from . import coco, generated, openimages, released
from .manifest import OBJECTS, AnalysisSet

KINDS = ("scenes", "released", "curated", "mini")
# Some hundred pictures: a second large object is allowed, and a class that has no picture is left out.
MINI = {"min_area": 0.01, "confounder_area": 1.0, "cap": 20, "empty": "leave out"}
MINI_FILES = {"instances": "annotations/instances.json", "captions": "annotations/captions.json", "images": "images"}


def load_named(
    set_name: str, *, root: Path | str = "", images: Path | str = "", scale: float = 1.0, seed: int = 0
) -> AnalysisSet:
    """Load the analysis set of a name, such as ``scenes-coco``.

    Parameters
    ----------
    set_name : str
        ``<kind>-<schema>``, schema ``coco`` or ``openimages``. Kinds: ``scenes`` (generated), ``released`` (the
        paper's own sets), ``curated`` (from a whole data set by the strict rules), ``mini`` (from a few hundred
        COCO pictures by loose rules, `MINI`).
    root : path-like
        Folder (``released``: also a tar) of the pictures and their annotations; default: the kind's folder below
        ``data/raw``, of ``curated`` and ``mini`` the schema's.
    images : path-like
        Folder of COCO's pictures, for ``released-coco``, which lists addresses only; default as for ``curated``.
    scale, seed : float, int
        Of the generated scenes; ``seed`` also of the choice where a class has more pictures than its cap.

    Returns
    -------
    AnalysisSet
        With ``set_name`` as its name.

    Raises
    ------
    ValueError
        A name of another form.
    FileNotFoundError
        No such folder, or a file in it is missing.

    Examples
    --------
    >>> load_named("coco")
    Traceback (most recent call last):
    ValueError: a set must be named <kind>-<schema>, kind scenes, released, curated or mini; got 'coco'. scenes-coco is one.
    """
    kind, dash, schema = set_name.partition("-")
    if not dash or kind not in KINDS or schema not in OBJECTS or set_name == "mini-openimages":
        raise ValueError(
            f"a set must be named <kind>-<schema>, kind {', '.join(KINDS[:-1])} or {KINDS[-1]}; "
            f"got {set_name!r}. scenes-coco is one."
        )
    if kind == "scenes":
        return generated.load(Path(root or paths.raw(kind)).absolute(), schema=schema, scale=scale, seed=seed)
    folder = Path(root or paths.raw("released" if kind == "released" else schema)).expanduser().absolute()
    if not folder.exists():
        raise FileNotFoundError(
            f"the pictures of {set_name} must be there; {folder} is not. Give their folder as `root`."
        )
    if kind == "released":
        options = {"images": Path(images or paths.raw(schema)).absolute()} if schema == "coco" else {}
        return released.load(folder, schema=schema, **options)
    if kind == "mini":
        return coco.load(folder, name=set_name, seed=seed, **MINI_FILES, **MINI)
    load = coco.load if schema == "coco" else openimages.load
    return load(folder, name=set_name, seed=seed)
