"""Association maps as a figure shows them: on one scale a method, towards men or towards women."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter

from biastransfer.attribution.association_map import AssociationMaps
from biastransfer.attribution.person_pictures import ATTRIBUTES

_LARGEST = 0.995  # quantile of a method's absolute values, over pictures and stages, that gets full colour
_SMOOTHED = {"integrated_gradients": 4.0, "gradient": 4.0, "smoothgrad": 4.0}  # pixels, for display alone


@dataclass(frozen=True, eq=False)
class ShownMaps:
    """One picture and its maps.

    Attributes
    ----------
    name, label, attribute : str
        Of the picture; ``label`` is what it shows ("car + man").
    pixels : (S, S, 3) float array
        RGB in [0, 1].
    person : (S, S) bool array
    maps : mapping of (method, stage) to (S, S) array
        In [−1, 1], above 0 where pixels bring the picture closer to men; scaled once a method, so that
        pictures and stages compare. Integrated gradients are smoothed, for their pixels alternate.
    """

    name: str
    label: str
    attribute: str
    pixels: np.ndarray
    person: np.ndarray
    maps: Mapping[tuple[str, str], np.ndarray]


def shown_maps(
    found: AssociationMaps, fill: str, *, methods: int = 3, score: str = "association"
) -> list[ShownMaps]:
    """Return the maps of a score with one fill, methods in their order and before next to after.

    Parameters
    ----------
    found : AssociationMaps
        Its networks are conditions: their ``stage`` tells before from after.
    fill : str
        Of methods that were run with several; others come as they are. Controls are left out.
    methods : int
        How many methods at most.
    score : {"association", "similarity"}
        The similarity's maps are those with the set of the picture's own gender.

    Returns
    -------
    list of ShownMaps
        In the order in which pictures were explained.
    """
    shares = found.shares.drop_duplicates("picture").set_index("picture")
    scales: dict[str, float] = {}
    chosen: dict[str, dict[tuple[str, str], np.ndarray]] = {}
    for (name, network, explained, method, made), heat in found.maps.items():
        several = {key[4] for key in found.maps if key[3] == method}
        if explained != score or (made != fill and fill in several) or made == "":
            continue
        towards_men = 1 if shares["attribute"][name] == ATTRIBUTES[0] else -1
        heat = gaussian_filter(heat, _SMOOTHED.get(method, 0.0))
        chosen.setdefault(name, {})[method, network.stage] = towards_men * heat
        largest = float(np.quantile(np.abs(heat), _LARGEST))
        scales[method] = max(scales.get(method, 0.0), largest)
    kept = list(scales)[:methods]
    order = [(method, stage) for method in kept for stage in ("pretrained", "finetuned")]
    return [
        ShownMaps(
            name,
            " + ".join(filter(None, (shares["object"][name], shares["attribute"][name]))),
            shares["attribute"][name],
            found.images[name],
            found.people[name],
            {key: _scaled(maps[key], scales[key[0]]) for key in order if key in maps},
        )
        for name, maps in chosen.items()
    ]


def _scaled(heat: np.ndarray, largest: float) -> np.ndarray:
    return np.clip(heat / largest, -1, 1) if largest > 0 else np.zeros_like(heat)
