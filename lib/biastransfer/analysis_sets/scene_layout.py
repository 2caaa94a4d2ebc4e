"""Where the people and things of a scene stand: size, place, turn and order from back to front."""

from dataclasses import dataclass, replace

import numpy as np

from .glyph_art import Art, Pose

# longer side as a share of the picture: an object alone, an object beside a person
_SPANS = {
    "car": ((0.56, 0.78), (0.5, 0.66)),
    "refrigerator": ((0.6, 0.82), (0.55, 0.74)),
    "surfboard": ((0.62, 0.85), (0.58, 0.78)),
    "stop sign": ((0.55, 0.82), (0.5, 0.7)),
    "mammal": ((0.42, 0.66), (0.36, 0.52)),
    "sports": ((0.38, 0.6), (0.24, 0.36)),
    "fashion": ((0.38, 0.6), (0.24, 0.36)),
    "accessory": ((0.4, 0.56), (0.28, 0.4)),
    "cycle": ((0.5, 0.7), (0.44, 0.58)),
    "random": ((0.36, 0.58), (0.3, 0.44)),
}
_PERSON_SPANS = {"bust": ((0.56, 0.8), (0.46, 0.62)), "full": ((0.62, 0.86), (0.56, 0.78))}
_CROWDED = (1.0, 1.0, 1.0, 0.84, 0.74, 0.66)  # by number of actors
_HANDHELD = ("sports", "fashion", "accessory")
_TRIES = 24


@dataclass(frozen=True)
class Actor:
    """Somebody or something in a scene.

    ``name`` as asked for, ``label`` its Open Images class, ``coco`` its COCO category ("" = none), ``kind``
    "bust", "full" or the glyph's group; ``grounded`` says whether it stands on the ground.
    ``pose`` is None until `place` has placed it.
    """

    name: str
    label: str
    coco: str
    kind: str
    art: Art
    flip: bool
    role: str = ""
    tone: str = ""
    pose: Pose | None = None
    grounded: bool = True

    @property
    def is_person(self) -> bool:
        """Whether it is a person."""
        return self.kind in _PERSON_SPANS


def place(actors: list[Actor], horizon: float, rng: np.random.Generator) -> list[Actor]:
    """Return ``actors`` posed on the ground below ``horizon`` (0–256), ordered from back to front.

    Of 24 places drawn by ``rng`` each actor takes the one that hides least of what is there; things
    stay near the person, and small things may be held at hand height.
    """
    order = sorted(range(len(actors)), key=lambda k: (not actors[k].is_person, k))
    crowd, person = len(actors), next((k for k in order if actors[k].is_person), None)
    placed: list[Actor] = []
    for k in order:
        actor = actors[k]
        with_person = person is not None and crowd > 1
        if k == person or person is None or actor.kind not in _HANDHELD or rng.random() < 0.4:
            placed.append(_stand(actor, placed, horizon, crowd, with_person, rng))
        else:
            placed.append(_hold(actor, placed[0], crowd, rng))
    return sorted(placed, key=_nearness)


def _nearness(actor: Actor) -> float:
    return actor.pose.base if actor.grounded or actor.is_person else 1000 + actor.pose.base


def _scale(actor: Actor, crowd: int, with_person: bool, rng: np.random.Generator) -> float:
    low, high = (_PERSON_SPANS if actor.is_person else _SPANS)[actor.kind][int(with_person or crowd > 1)]
    x0, y0, x1, y1 = actor.art.frame
    span = 256 * rng.uniform(low, high) * _CROWDED[min(crowd, len(_CROWDED) - 1)]
    return span / max(x1 - x0, y1 - y0)


def _extent(actor: Actor) -> tuple[float, float]:
    x0, y0, x1, y1 = actor.art.frame
    return (x1 - x0) * actor.pose.scale, (y1 - y0) * actor.pose.scale


def _box(actor: Actor) -> np.ndarray:
    w, h = _extent(actor)
    return np.array([actor.pose.x - w / 2, actor.pose.base - h, actor.pose.x + w / 2, actor.pose.base])


def _stand(actor, placed, horizon: float, crowd: int, with_person: bool, rng: np.random.Generator) -> Actor:
    """Put an actor on the ground (a bust on the lower edge) where it crowds the others least."""
    actor = replace(actor, pose=Pose(128, 0, _scale(actor, crowd, with_person, rng)))
    w, h = _extent(actor)
    angle = float(rng.normal(0, 2.5 if actor.kind not in ("bust", "full") else 1.2))
    if actor.kind == "surfboard":
        angle = float(rng.choice([-1, 1]) * rng.uniform(2, 14))
    low = max(horizon + 14, min(h + 8, 226))
    bases = rng.uniform(low, 244, _TRIES)
    if actor.kind == "bust":
        bases, angle = np.full(_TRIES, 258.0), 0.0
    half = min(w / 2, 124)
    xs = rng.uniform(half + 4, 252 - half, _TRIES) if crowd > 1 else rng.normal(128, 26, _TRIES)
    xs = np.clip(xs, half - 6, 262 - half)
    boxes = np.stack([xs - w / 2, bases - h, xs + w / 2, bases], 1)
    cost = np.zeros(_TRIES)
    for other in placed:
        cost += _hidden(boxes, _box(other))
        if other.is_person:
            cost += 0.0012 * np.maximum(np.abs(xs - other.pose.x) - w / 2 - 20, 0)
    cost += np.maximum(4 - boxes[:, 1], 0) / h * 2
    best = int(np.argmin(cost)) if placed else 0
    pose = Pose(float(xs[best]), float(bases[best]), actor.pose.scale, angle, actor.flip)
    return replace(actor, pose=pose, grounded=actor.kind != "bust")


def _hidden(boxes: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return overlap of each box with another as a share of the smaller one; a tenth costs nothing."""
    wide = np.minimum(boxes[:, 2], other[2]) - np.maximum(boxes[:, 0], other[0])
    tall = np.minimum(boxes[:, 3], other[3]) - np.maximum(boxes[:, 1], other[1])
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    shared = np.maximum(wide, 0) * np.maximum(tall, 0)
    return np.maximum(shared / np.minimum(areas, (other[2:] - other[:2]).prod()) - 0.1, 0)


def _hold(actor: Actor, person: Actor, crowd: int, rng: np.random.Generator) -> Actor:
    """Put a small thing at hand height beside a person, on the side with more room."""
    scale = _scale(actor, crowd, True, rng) * 0.9
    x0, y0, x1, y1 = person.art.frame
    pw, ph = (x1 - x0) * person.pose.scale, (y1 - y0) * person.pose.scale
    side = 1 if person.pose.x < 128 else -1
    posed = replace(actor, pose=Pose(0, 0, scale))
    w, h = _extent(posed)
    x = person.pose.x + side * (pw * (0.42 if person.kind == "full" else 0.4) + w * rng.uniform(0.18, 0.36))
    centre = person.pose.base - ph * (0.4 if person.kind == "full" else 0.22)
    x = float(np.clip(x, w / 2 + 3, 253 - w / 2))
    base = float(min(centre + h / 2, 250))
    return replace(actor, pose=Pose(x, base, scale, float(rng.normal(0, 6)), actor.flip), grounded=False)
