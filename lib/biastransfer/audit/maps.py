"""The pictures whose association tells most, and the pixels that it rests on before and after."""

import base64
import io
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import colormaps
from PIL import Image

from biastransfer.attribution.methods import heat_map
from biastransfer.attribution.scores import association_score
from biastransfer.audit.networks import STAGES, Networks, Vectors
from biastransfer.cosines import unit_lengths
from biastransfer.images import read_rgb

SHOWN = 192  # side of a picture in a report, pixels
COLOURS = "PRGn"  # green towards X and purple towards Y, as perceived genders are coloured everywhere here
GRID = 8  # a patch is a quarter of the picture's side and moves by an eighth


@dataclass(frozen=True)
class Explained:
    """A picture and what its association rests on.

    Attributes
    ----------
    row : dict
        Of `telling`: id, class, association_before and association_after, telling.
    picture : str
        As a data URI.
    maps : list of (str, str, str)
        Stage, method, and the map over the picture as a data URI; "" where there is none.
    problems : list of str
        Why a method gave no map.
    """

    row: dict
    picture: str
    maps: list[tuple[str, str, str]]
    problems: list[str]


def telling(vectors: Vectors) -> pd.DataFrame:
    """Rank a set's pictures by how much their association changed, or stands out.

    Parameters
    ----------
    vectors : Vectors

    Returns
    -------
    DataFrame
        Columns id, file, class, name, association_before, association_after where there is one, and telling:
        in standard deviations over these pictures, the change of the association, each stage counted from its
        own median; with one stage its distance from the median. Largest first, ties by id. Pictures of the
        attributes themselves are not in it; empty without two attribute classes.

    Notes
    -----
    The association is s = mean cosine to X − mean cosine to Y, the summand of the association test with the
    roles of pictures exchanged: here the attributes are what an object's picture lies nearer to.
    """
    items = vectors.items[~vectors.items["name"].isin(["X", "Y"])].reset_index(drop=True)
    columns = ["id", "file", "class", "name"]
    if not {"X", "Y"} <= set(vectors.items["name"]) or items.empty:
        return pd.DataFrame(columns=[*columns, "telling"])
    found, standing = items[columns], []
    for stage, condition in STAGES.items():
        if condition in vectors.embedded:
            s = _associations(vectors.embedded[condition], items)
            found = found.assign(**{f"association_{stage}": s})
            spread = s.std(ddof=1) if len(s) > 1 else 0.0
            standing.append((s - np.median(s)) / (spread or 1.0))
    found = found.assign(telling=np.abs(standing[-1] - standing[0] if len(standing) > 1 else standing[0]))
    return found.sort_values(["telling", "id"], ascending=[False, True], kind="stable", ignore_index=True)


def explain(
    networks: Networks,
    vectors: Vectors,
    ranked: pd.DataFrame,
    count: int,
    *,
    fill: str = "mean",
    seed: int = 0,
    report: Callable[[str], object] = str,
) -> list[Explained]:
    """Draw association maps of the most telling pictures.

    Parameters
    ----------
    networks : Networks
    vectors : Vectors
        Whose attribute sets the association is with.
    ranked : DataFrame
        From `telling`.
    count : int
        How many pictures.
    fill : str
        What covers a picture's parts, a name of `removal.FILLS`.
    seed : int
        Of fills that draw.
    report : callable
        Told each picture before its maps are drawn.

    Returns
    -------
    list of Explained
        With two maps a stage: the sliding patch, and Grad-CAM with both signs, or the gradient where the
        network has no layer that is laid out like the picture.
    """
    chosen = ranked.head(count)
    if chosen.empty:
        return []
    scores = {}
    for stage, backbone in networks.stages.items():
        z = vectors.embedded[STAGES[stage]]
        scores[stage] = association_score(backbone, z["X"], z["Y"], fold=True)
    explained = []
    for number, row in enumerate(chosen.drop(columns="name").to_dict("records"), 1):
        report(f"maps of picture {number} of {len(chosen)}")
        explained.append(_explained(row, networks, scores, fill, seed))
    return explained


def _associations(vectors: dict, items: pd.DataFrame) -> np.ndarray:
    """Return s of each item, whose rows stand in the order of its class."""
    direction = [np.mean(z / length[:, None], axis=0) for z, length in (_unit(vectors, k) for k in "XY")]
    s = np.empty(len(items))
    for name, rows in items.groupby("name", sort=False).indices.items():
        z, length = _unit(vectors, name)
        s[rows] = z @ (direction[0] - direction[1]) / length
    return s


def _unit(vectors: dict, name: str):
    return unit_lengths(vectors[name], f"class {name!r}")


def _explained(row: dict, networks: Networks, scores: dict, fill: str, seed: int) -> Explained:
    pixels = read_rgb(row.pop("file"))
    maps, problems = [], []
    for stage, backbone in networks.stages.items():
        image = backbone.transform.pixels(pixels)
        for method in ("sliding_patch", "gradcam"):
            try:
                name, found = _map(method, scores[stage], image, fill, seed)
                maps.append((stage, name, over_picture(image.permute(1, 2, 0).numpy(), found)))
            except (ValueError, RuntimeError) as problem:
                maps.append((stage, method, ""))
                problems.append(f"{stage}, {method}: {str(problem).splitlines()[0]}")
    seen = networks.before.transform.resized(pixels)
    return Explained(row, data_uri(seen), maps, problems)


def _map(method: str, score, image, fill: str, seed: int):
    """Return the method that gave a map, and the map."""
    side = min(image.shape[1:])
    if method == "sliding_patch":
        steps = {"patch": max(1, 2 * side // GRID), "stride": max(1, side // GRID)}
        return method, heat_map(method, score, image, fill=fill, seed=seed, **steps)
    try:
        return method, heat_map(method, score, image, relu=False)
    except ValueError:  # no layer is laid out like the picture
        return "gradient", heat_map("gradient", score, image)


def over_picture(rgb: np.ndarray, heat: np.ndarray) -> str:
    """Lay a map over a picture, grey where it is near 0.

    Parameters
    ----------
    rgb : (H, W, 3) array
        Pixels in [0, 1].
    heat : (H, W) array
        Positive towards X.

    Returns
    -------
    str
        A data URI of a JPEG. The map's largest size has full colour: maps are not compared in strength.
    """
    top = float(np.abs(heat).max())
    scaled = heat / top if top > 0 else np.zeros_like(heat)
    colour = colormaps[COLOURS]((1 + scaled) / 2)[..., :3]
    grey = rgb.mean(-1, keepdims=True) * 0.7 + 0.3
    weight = np.abs(scaled)[..., None] ** 0.7 * 0.85
    return data_uri(np.rint(255 * ((1 - weight) * grey + weight * colour)).astype(np.uint8))


def data_uri(rgb: np.ndarray) -> str:
    """Return a picture ``rgb`` (H, W, 3) uint8 as a data URI: a JPEG of at most `SHOWN` pixels a side."""
    picture = Image.fromarray(rgb)
    picture.thumbnail((SHOWN, SHOWN))
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=82)
    return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode()
