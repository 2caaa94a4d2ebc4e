"""What is annotated of a scene: things with boxes and run-length masks, its id, its captions."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .scene_drawing import Scene

_PLACES = {
    "indoor": "in a room", "street": "on a street", "beach": "on a beach",
    "grass": "in a meadow", "sky": "under a wide sky",
}  # fmt: skip
_CAPTIONS = (
    "{A} {place}.", "There is {a} {place}.", "{A} can be seen {place}.", "A picture of {a} {place}.",
    "{A}, {place}, in daylight.",
)  # fmt: skip
_PLAIN_ROLES = (
    "presenter",
    "greeter",
    "dancer",
    "passer-by",
    "bystander",
    "walker",
    "runner",
    "yogi",
    "gardener",
)


@dataclass(frozen=True)
class Thing:
    """A visible actor as annotation files tell of it.

    ``name`` as asked for, ``kind`` as `Actor.kind`, ``label`` Open Images class, ``coco`` COCO category,
    ``box`` x1, y1, x2, y2 in pixels (end exclusive), ``area`` in pixels, ``rle`` COCO run lengths.
    """

    name: str
    kind: str
    label: str
    coco: str
    role: str
    box: tuple[int, int, int, int]
    area: int
    rle: list[int]
    occluded: bool
    truncated: bool


@dataclass(frozen=True)
class Record:
    """What annotation files say about one scene; ``key`` tells scenes apart, ``size`` is in pixels."""

    key: tuple
    size: int
    background: str
    things: tuple[Thing, ...]

    @property
    def people(self) -> list[Thing]:
        """The people among the things."""
        return [thing for thing in self.things if thing.coco == "person"]


def record(key: tuple, scene: Scene) -> Record:
    """Return what is annotated of a scene: every actor of which at least one pixel is visible."""
    things = tuple(
        Thing(
            actor.name, actor.kind, actor.label, actor.coco, actor.role,
            tuple(int(edge) for edge in scene.boxes[k]), int(mask.sum()), rle_counts(mask),
            bool(scene.occluded[k]), bool(scene.truncated[k]),
        )
        for k, (actor, mask) in enumerate(zip(scene.actors, scene.masks)) if mask.any()
    )  # fmt: skip
    return Record(key, len(scene.image), scene.background, things)


def rle_counts(mask: np.ndarray) -> list[int]:
    """Return COCO's uncompressed run lengths of an (H, W) mask: columns first, zeros first.

    Examples
    --------
    >>> rle_counts(np.array([[0, 1], [1, 1]], dtype=bool))
    [1, 3]
    >>> rle_counts(np.array([[1, 0]], dtype=bool))
    [0, 1, 1]
    """
    flat = np.concatenate([[False], mask.ravel(order="F"), [True]])
    edges = np.flatnonzero(flat[1:] != flat[:-1])
    edges = edges[edges < mask.size]
    return np.diff(np.concatenate([[0], edges, [mask.size]])).tolist()


def rle_mask(counts: Sequence[int], height: int, width: int) -> np.ndarray:
    """Return the (``height``, ``width``) bool mask of COCO's uncompressed run lengths ``counts``.

    Examples
    --------
    >>> rle_mask([1, 3], 2, 2).astype(int).tolist()
    [[0, 1], [1, 1]]
    """
    values = np.arange(len(counts)) % 2 == 1
    return np.repeat(values, counts).reshape((height, width), order="F")


def picture_id(key: tuple, digits: int = 16) -> str:
    """Return a picture's id: hex digits that depend on the scene only and tell nothing about its class."""
    return hashlib.blake2b(repr(key).encode(), digest_size=8).hexdigest()[:digits]


def coco_id(key: tuple) -> int:
    """Return a picture's COCO id, below 10¹² so that file names have COCO's twelve digits."""
    return int(picture_id(key), 16) % 10**12


def captions(one: Record) -> list[str]:
    """Return five captions; all but the last name the perceived gender of each person.

    No other word of a caption is a gender word, so `captions.caption_gender` reads "man", "woman", "both" or,
    without people, None.
    """
    objects = [_article(thing.coco or thing.label.lower()) for thing in one.things if thing.coco != "person"]
    lines = []
    for number, template in enumerate(_CAPTIONS):
        people = [_described(person, number) for person in one.people]
        words = " and ".join(people) + (" with " if people and objects else "") + " and ".join(objects)
        lines.append(template.format(A=words[0].upper() + words[1:], a=words, place=_PLACES[one.background]))
    return lines


def _described(person: Thing, number: int) -> str:
    if number == len(_CAPTIONS) - 1:
        return "a person"
    if number % 2 and person.role not in _PLAIN_ROLES:
        return f"a {person.name} who looks like {_article(person.role)}"
    return f"a {person.name}"


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
