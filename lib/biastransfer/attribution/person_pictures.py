"""Pictures of an object with a person: where each is, and what is there without them."""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from biastransfer.analysis_sets import AnalysisSet
from biastransfer.analysis_sets.captions import caption_gender
from biastransfer.analysis_sets.coco_files import read_captions
from biastransfer.analysis_sets.named import MINI, MINI_FILES
from biastransfer.analysis_sets.redrawing import redraw, scene_places
from biastransfer.analysis_sets.scene_rendering import jpeg_bytes
from biastransfer.attribution.boxes import box_mask
from biastransfer.attribution.coco_boxes import coco_pictures
from biastransfer.attribution.pictures import AttributionPicture

ATTRIBUTES = ("man", "woman")
PARTS = ("person", "object", "both")  # what can be left out of a scene, and filled in any picture
# COCO's own groups of its categories, by their ids
GROUPS = {
    "vehicle": range(2, 10), "outdoor": range(10, 16), "animal": range(16, 26), "accessory": range(27, 34),
    "sports": range(34, 44), "kitchen": range(44, 52), "food": range(52, 62), "furniture": range(62, 71),
    "electronic": range(72, 78), "appliance": range(78, 83), "indoor": range(84, 91),
}  # fmt: skip
MOST_HOLE = 0.95  # share of a picture that may be removed: with less left a fill has nothing to go by


@dataclass(frozen=True, eq=False)
class PersonPicture:
    """A picture of one object with people of one perceived gender.

    Attributes
    ----------
    picture : AttributionPicture
        With the masks "person" and, where an object is annotated, "object"; disjoint.
    object, attribute : str
        What it shows ("car"), and "man" or "woman".
    redrawn : mapping of str to (H, W, 3) uint8 array
        The same scene drawn without the person, the object, and both (`PARTS`); empty for photographs.
    pair : str
        What twins share: the same scene with a man and with a woman. "" for a picture without a twin.
    """

    picture: AttributionPicture
    object: str
    attribute: str
    redrawn: Mapping[str, np.ndarray] = field(default_factory=dict)
    pair: str = ""

    def __post_init__(self):  # noqa: D105
        if self.attribute not in ATTRIBUTES:
            raise ValueError(f"{self.name}: attribute must be man or woman; got {self.attribute!r}.")
        if "person" not in self.picture.masks or not np.any(self.picture.masks["person"]):
            raise ValueError(
                f"{self.name}: a picture must have a mask of its person with at least one pixel; it has "
                "none. Leave it out and count it."
            )

    @property
    def name(self) -> str:
        """The picture's id."""
        return self.picture.name


@dataclass(frozen=True, eq=False)
class PersonPictures:
    """Pictures in order, those left out (picture, reason), and how masks are known."""

    pictures: tuple[PersonPicture, ...]
    skipped: pd.DataFrame
    masks: str


def scene_person_pictures(
    analysis_set: AnalysisSet, schema: str, *, scale: float, seed: int, most: int = 10**6, twins: bool = True
) -> PersonPictures:
    """Return a generated set's pictures of objects with a person, redrawn: exact masks and exact removals.

    Parameters
    ----------
    analysis_set : AnalysisSet
        Of ``scenes-<schema>``.
    schema, scale, seed : str, float, int
        What it was generated with.
    most : int
        Scenes an object: with a man and with a woman in turn, by id, whose order is random.
    twins : bool
        Whether each scene comes with a man and with a woman, one of which is the set's own picture: then
        nothing but the person differs between the genders.

    Returns
    -------
    PersonPictures
        The set's own pictures are what its files show; what is redrawn went through the same JPEG.
    """
    places = scene_places(schema, scale=scale, seed=seed)
    items = analysis_set.items
    items = items[(items["object"] != "") & items["attribute"].isin(ATTRIBUTES)]
    turn = items.assign(turn=items.groupby("class").cumcount()).sort_values("turn", kind="stable")
    chosen = set(turn.groupby("object").head(most).index)
    found, skipped = [], []
    for row in items[items.index.isin(chosen)].itertuples():
        try:
            found += _scenes(row, schema, *places[row.id], seed, ATTRIBUTES if twins else (row.attribute,))
        except ValueError as problem:
            skipped.append((row.id, str(problem)))
    return PersonPictures(tuple(found), pd.DataFrame(skipped, columns=["picture", "reason"]), "exact masks")


def _scenes(row, schema: str, name: str, k: int, seed: int, genders) -> list[PersonPicture]:
    """Return a scene with a person of each gender; what is there without the person is drawn once."""
    found: list[PersonPicture] = []
    for gender in genders:
        scene = redraw(schema, name, k, seed=seed, gender=gender)
        people = [number for number, actor in enumerate(scene.actors) if actor.is_person]
        things = [number for number in range(len(scene.actors)) if number not in people]
        masks = {"person": scene.masks[people].any(0), "object": scene.masks[things].any(0)}
        masks = {part: mask for part, mask in masks.items() if mask.any()}
        shared = {part: found[0].redrawn[part] for part in ("person", "both")} if found else {}
        gone = {"person": people, "object": things, "both": people + things}
        redrawn = {
            part: shared[part]
            if part in shared
            else _through_jpeg(redraw(schema, name, k, seed=seed, gender=gender, leave_out=numbers).image)
            for part, numbers in gone.items()
        }
        title = row.id if gender == row.attribute else f"{row.id}-{gender}"
        pixels, size = _through_jpeg(scene.image), scene.image.shape[:2]
        picture = AttributionPicture(title, pixels, row.object, masks=masks, size=size, origin="scenes")
        pair = row.id if len(genders) > 1 else ""
        found.append(PersonPicture(picture, row.object, gender, redrawn, pair))
    return found


def _through_jpeg(image: np.ndarray) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(jpeg_bytes(image))).convert("RGB"))


def coco_person_pictures(
    root: Path | str, *, most: int = 10**6, min_area: float = float(MINI["min_area"]), min_captions: int = 1
) -> PersonPictures:
    """Return COCO pictures with people of one perceived gender, as captions say; masks are boxes.

    Parameters
    ----------
    root : path
        Folder with ``annotations/instances.json``, ``annotations/captions.json`` and ``images``.
    most : int
        Pictures an object and attribute, the first by id.
    min_area : float
        Share of the picture that the people's boxes together must cover.
    min_captions : int
        Captions that must name a gender.

    Returns
    -------
    PersonPictures
        ``object`` is the group (`GROUPS`) of the category of the largest box that is no person's, "" without
        one. "person" is the union of people's boxes, "object" that of this category's outside of these.

    Raises
    ------
    FileNotFoundError, ValueError
        As `coco_pictures` raises them.
    """
    folder = Path(root)
    found = coco_pictures(folder / MINI_FILES["images"], folder / MINI_FILES["instances"])
    said = read_captions([folder / MINI_FILES["captions"]])
    groups = _groups(folder / MINI_FILES["instances"])
    read = {one.name for one in found.pictures}  # of these the reader lists crowd boxes that it left out
    skipped = [(name, why) for name, why in found.skipped.to_numpy() if Path(name).stem not in read]
    kept, counts = [], {}
    for picture in found.pictures:
        gender = caption_gender(said.get(int(picture.name), ()), min_captions)
        if gender not in ATTRIBUTES:
            skipped.append((picture.name, f"captions name {gender or 'nobody'}"))
            continue
        try:
            one = _photograph(picture, gender, min_area, groups)
        except ValueError as problem:
            skipped.append((picture.name, str(problem)))
            continue
        counts[one.object, gender] = counts.get((one.object, gender), 0) + 1
        if counts[one.object, gender] <= most:
            kept.append(one)
    return PersonPictures(tuple(kept), pd.DataFrame(skipped, columns=["picture", "reason"]), "boxes")


def _groups(file: Path) -> dict[str, str]:
    """Return category → group of an instances file; a category outside of COCO's is its own group."""
    listed = json.loads(file.read_bytes())["categories"]
    known = {number: name for name, numbers in GROUPS.items() for number in numbers}
    return {one["name"]: known.get(one["id"], one["name"]) for one in listed}


def _photograph(picture: AttributionPicture, gender: str, min_area: float, groups) -> PersonPicture:
    labels, boxes = np.array(picture.box_labels), picture.boxes
    people = labels == "person"
    if not people.any():
        raise ValueError("no box of a person")
    person = box_mask(boxes[people], picture.size)
    if person.mean() < min_area:
        raise ValueError(f"people below {min_area:g} of the picture")
    if person.mean() > MOST_HOLE:
        raise ValueError(f"people's boxes above {MOST_HOLE:g} of the picture")
    sizes = (boxes[:, 2:] - boxes[:, :2]).prod(1) * ~people
    thing = str(labels[sizes.argmax()]) if (~people).any() else ""
    masks = {"person": person}
    if thing and (beside := box_mask(boxes[labels == thing], picture.size) & ~person).any():
        masks["object"] = beside
    size, group = picture.size, groups.get(thing, thing)
    bare = AttributionPicture(picture.name, picture.source, group, masks=masks, size=size, origin="coco")
    return PersonPicture(bare, group, gender)
