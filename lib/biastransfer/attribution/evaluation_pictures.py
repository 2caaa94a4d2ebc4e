"""The pictures that the attribution chapter explains, and which class of each."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from biastransfer.attribution.picture_sources import coco_pictures, scene_pictures
from biastransfer.attribution.pictures import AttributionPicture, PictureSet, choose, require_folder

SCENES = "scenes"
SOURCES = (SCENES, "photographs")
# one object and a person each; in the last of four the object is there twice
_CONTENTS = (
    ("woman", "car"), ("man", "umbrella"), ("man", "dog"), ("woman", "bicycle", "bicycle"),
    ("man", "refrigerator"), ("woman", "laptop"), ("woman", "horse"), ("man", "handbag", "handbag"),
)  # fmt: skip
# scikit-image's own photographs that are CC0 or in the public domain and show no person: class, licence
SKIMAGE = {
    "chelsea": ("Cat", "CC0, Stefan van der Walt"),
    "coffee": ("Cup", "CC0, Rachel Michetti"),
    "rocket": ("Rocket", "public domain, SpaceX"),
}
_DOGS = tuple(range(151, 269))  # ImageNet's 118 breeds
# categories of the boxes and what ImageNet calls them; Cow and Kite have no class of theirs there
IMAGENET_CLASSES: dict[str, tuple] = {
    "Apple": ("Granny Smith",),
    "Bag": ("purse", "backpack", "mailbag"),
    "Banan": ("banana",),
    "Bicycle": ("bicycle-built-for-two", "mountain bike"),
    "Bottle": ("beer bottle", "pop bottle", "water bottle", "wine bottle"),
    "Car": ("beach wagon", "cab", "convertible", "jeep", "limousine", "minivan", "racer", "sports car"),
    "Cat": ("tabby", "tiger cat", "Persian cat", "Siamese cat", "Egyptian cat"),
    "Clock": ("analog clock", "digital clock", "wall clock"),
    "Cup": ("cup", "coffee mug", "espresso"),
    "Dog": _DOGS,
    "Handbag": ("purse", "backpack", "mailbag"),
    "Horse": ("sorrel",),
    "Laptop": ("laptop", "notebook"),
    "Motorcycle": ("moped", "motor scooter"),
    "Pizza": ("pizza",),
    "Rocket": (657, 744),  # two classes have the name missile
    "Tie": ("bow tie", "Windsor tie"),
}


def chapter_pictures(
    source: str, n: int, *, seed: int = 0, root: Path | str = ""
) -> tuple[PictureSet, str | Mapping]:
    """Return pictures and the rule for the class that is explained.

    Parameters
    ----------
    source : {"scenes", "photographs"}
        Scenes with exact masks, drawn here; or photographs with boxes below ``root``, and scikit-image's own,
        which have none.
    n : int
        Scenes; or photographs with boxes, drawn from those whose object ImageNet knows.
    seed : int
        Of the scenes, or of the draw.
    root : path
        Folder with ``images`` and ``instances.json``; "" takes scikit-image's photographs alone.

    Returns
    -------
    pictures : PictureSet
        ``skipped`` lists those whose object ImageNet does not know.
    targets : str or mapping
        As for `evaluation.run_evaluation`.

    Raises
    ------
    ValueError
        Another source, or more photographs than there are.
    FileNotFoundError
        No such folder.
    """
    if source not in SOURCES:
        raise ValueError(f"the pictures must come from {' or '.join(SOURCES)}; got {source!r}.")
    if source == SCENES:
        return scene_pictures([_CONTENTS[k % len(_CONTENTS)] for k in range(n)], seed=seed), "label"
    own = tuple(_own(name, label) for name, (label, _) in SKIMAGE.items())
    if not root:
        return PictureSet(own, pd.DataFrame(columns=["picture", "reason"])), IMAGENET_CLASSES
    folder = require_folder(root)
    found = coco_pictures(folder / "images", folder / "instances.json")
    known = [one for one in found.pictures if one.label in IMAGENET_CLASSES]
    unknown = [(one.name, f"ImageNet has no class for {one.label}")
               for one in found.pictures if one.label not in IMAGENET_CLASSES]  # fmt: skip
    skipped = pd.concat([found.skipped, pd.DataFrame(unknown, columns=found.skipped.columns)])
    return PictureSet((*own, *choose(known, n, seed=seed)), skipped), IMAGENET_CLASSES


def _own(name: str, label: str) -> AttributionPicture:
    from skimage import data

    pixels = np.asarray(getattr(data, name)())
    return AttributionPicture(name, pixels, label, size=pixels.shape[:2], origin="scikit-image")
