"""The pictures of a generated set drawn again: with exact masks, and without some of what is in them."""

from collections.abc import Sequence
from pathlib import Path

from .scene_drawing import GENDERS, Scene, draw_scene
from .scenes import _job, scene_counts


def scene_places(schema: str, *, scale: float = 1.0, seed: int = 0) -> dict[str, tuple[str, int]]:
    """Return where each picture of a generated set comes from: its id → class and number in the class.

    Parameters
    ----------
    schema : {"coco", "openimages"}
    scale, seed : float, int
        Of the set, as for `scenes.write_analysis_set`.

    Returns
    -------
    dict of str to (str, int)
        Ids as the set's ``items`` have them.
    """
    classes = scene_counts(schema, scale).items()
    numbered = [(name, k) for name, n in classes for k in range(n)]
    return {_job(Path(), schema, name, k, seed).file.stem: (name, k) for name, k in numbered}


def redraw(
    schema: str, name: str, k: int, *, seed: int = 0, gender: str = "", leave_out: Sequence[int] = ()
) -> Scene:
    """Draw picture ``k`` of a class of a generated set again: the same scene, before it became a JPEG file.

    Parameters
    ----------
    schema : {"coco", "openimages"}
    name : str
        The class.
    k, seed : int
        Number of the picture in its class, from 0; seed of the set.
    gender : {"", "man", "woman"}
        Of its person: with the other gender it is the scene's twin, in which the person's drawing differs and
        nothing else.
    leave_out : sequence of int
        As for `draw_scene`: actors that are not drawn, nor their shadows, all else staying as it is.

    Returns
    -------
    Scene
        256 pixels a side, with exact masks.
    """
    job = _job(Path(), schema, name, k, seed)
    content = tuple(gender if gender and one in GENDERS else one for one in job.content)
    return draw_scene(content, job.seed, job.size, leave_out=leave_out)
