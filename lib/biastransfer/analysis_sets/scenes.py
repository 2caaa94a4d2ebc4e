"""Generated scenes in the papers' schemas and official formats: the pictures that need no download."""

from pathlib import Path

import numpy as np

from .scene_drawing import Scene, draw_scene
from .scene_formats import COCO_CATEGORIES, whole_folder, write_coco, write_openimages
from .scene_records import coco_id, picture_id
from .scene_rendering import Job, render
from .scene_target import write_target

__all__ = ["COUNTS", "Scene", "draw_scene", "scene_counts", "write_analysis_set", "write_target"]

# Tables 5 and 6 of Ranjit et al.
COUNTS = {
    "coco": {
        "man": 12, "woman": 15, "random": 20, "stop sign": 44, "car": 12, "car+man": 9, "car+woman": 6,
        "refrigerator": 18, "refrigerator+man": 8, "refrigerator+woman": 9,
        "surfboard": 14, "surfboard+man": 23, "surfboard+woman": 16,
    },
    "openimages": {
        "man": 150, "woman": 150, "random": 150, "stop sign": 22, "car": 150, "car+man": 150, "car+woman": 49,
        "sports": 150, "sports+man": 120, "sports+woman": 32, "fashion": 150, "fashion+man": 52,
        "fashion+woman": 150, "mammal": 150, "mammal+man": 150, "mammal+woman": 150,
    },
}  # fmt: skip
_LEAST = 5
_STREAM = 1  # targets draw from stream 2


def scene_counts(schema: str, scale: float = 1.0) -> dict[str, int]:
    """Return pictures a class: the paper's counts times ``scale``, rounded, at least five.

    Raises
    ------
    ValueError
        An unknown schema, or a scale that is not a positive number.

    Examples
    --------
    >>> sum(scene_counts("coco").values()), scene_counts("openimages", 0.1)["car+woman"]
    (206, 5)
    """
    if schema not in COUNTS:
        raise ValueError(f"schema must be one of {', '.join(COUNTS)}; got {schema!r}.")
    if isinstance(scale, bool) or not 0 < scale < float("inf"):
        raise ValueError(f"scale must be a number above 0; got {scale!r}.")
    return {name: max(_LEAST, int(n * scale + 0.5)) for name, n in COUNTS[schema].items()}


def write_analysis_set(schema: str, root: Path | str, *, scale: float = 1.0, seed: int = 0) -> Path:
    """Write the scenes of a schema with annotations in its official format, and return their folder.

    Parameters
    ----------
    schema : {"coco", "openimages"}
        COCO: ``annotations/instances.json`` and ``captions.json``. Open Images: class descriptions, box
        CSV and image-label CSV. Pictures are in ``images/``, 256 pixels a side.
    root : path
        The set's own folder. Written whole or not at all; nothing is done where it is there with the same
        parameters.
    scale : float
        Share of the paper's counts (Tables 5 and 6), see `scene_counts`.
    seed : int
        Non-negative. Picture k of a class depends on schema, class, k and seed only.

    Raises
    ------
    ValueError
        An unknown schema, a scale that is not positive, a negative seed.
    FileExistsError
        ``root`` holds something else, or scenes of other parameters.

    Notes
    -----
    Which class a picture belongs to is written nowhere: it follows from boxes, labels and captions.
    Pictures of the class "random" are those that hold none of the schema's objects and no person.
    """
    root, counts = Path(root), scene_counts(schema, scale)
    if seed < 0:
        raise ValueError(f"seed must not be negative; got {seed}.")
    with whole_folder(
        root, {"kind": "analysis set", "schema": schema, "scale": scale, "seed": seed}
    ) as folder:
        if folder is None:
            return root
        (folder / "images").mkdir()
        jobs = [_job(folder, schema, name, k, seed) for name, n in counts.items() for k in range(n)]
        records = sorted(
            render(jobs), key=lambda one: picture_id(one.key)
        )  # file order tells nothing of classes
        if schema == "coco":
            write_coco(folder, records, list(COCO_CATEGORIES))
        else:
            write_openimages(folder, records)
    return root


def _job(folder: Path, schema: str, name: str, k: int, seed: int) -> Job:
    key = (schema, name, seed, k)
    place = (list(COUNTS).index(schema), list(COUNTS[schema]).index(name), k)
    content = tuple(name.split("+"))
    if name == "random" and np.random.default_rng((seed, _STREAM, *place, 1)).random() < 0.5:
        content = ("random", "random")
    stem = f"{coco_id(key):012d}" if schema == "coco" else picture_id(key)
    return Job(key, content, (seed, _STREAM, *place), 256, folder / "images" / f"{stem}.jpg")
