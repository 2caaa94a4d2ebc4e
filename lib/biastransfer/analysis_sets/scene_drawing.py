"""One scene: people and things composed on a background, with exact visible masks and boxes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageChops, ImageDraw, ImageFilter

from .glyph_art import PAINTS, object_art, person_art, raster, rasterise
from .glyphs import ROLES, TONES, glyphs_of
from .scene_backgrounds import BACKDROPS, Backdrop, draw_backdrop
from .scene_layout import Actor, place

GENDERS = ("man", "woman")
_READABLE = ("stop sign", "1f3ce", "23f0")  # letters and digits: never mirrored


@dataclass(frozen=True)
class Scene:
    """A generated picture and what is in it.

    Attributes
    ----------
    image : (size, size, 3) uint8 array
    actors : tuple of Actor
        Who and what was placed, from back to front.
    masks : (k, size, size) bool array
        Visible pixels of each actor: disjoint.
    boxes : (k, 4) int array
        x1, y1, x2, y2 of each mask in pixels, end exclusive; zeros for an empty mask.
    occluded, truncated : (k,) bool arrays
        Whether another actor hides at least 2 % of it; whether the picture's edge cuts it.
    background : str
        One of `BACKDROPS`.
    """

    image: np.ndarray
    actors: tuple[Actor, ...]
    masks: np.ndarray
    boxes: np.ndarray
    occluded: np.ndarray
    truncated: np.ndarray
    background: str


def draw_scene(
    content: Sequence[str], seed: int | Sequence[int], size: int = 256, *, leave_out: Sequence[int] = ()
) -> Scene:
    """Draw a scene that holds what ``content`` names.

    Parameters
    ----------
    content : sequence of str
        "man", "woman", groups ("car", "sports", "fashion", "mammal", "random", "stop sign", "refrigerator",
        "surfboard") or COCO categories ("dog", "chair", …); repeats allowed.
    seed : int or sequence of int, non-negative
        Same content, seed and size give the same bytes, in any process and order.
    size : int
        Side of the picture in pixels, at least 32.
    leave_out : sequence of int
        Actors of the scene, numbered from back to front as in `Scene.actors`, that are not drawn, nor their
        shadows. All else keeps its place and light: it is what a perfect removal would show.

    Returns
    -------
    Scene

    Raises
    ------
    ValueError
        A name without a glyph, nothing to draw, a size below 32, or an actor to leave out that is not there.

    Notes
    -----
    Gender takes part in no random draw: the scenes of ("man", "car") and ("woman", "car") with one seed are
    twins that differ in the person's drawing only: role, tone, garment colour, place, background and light
    agree.

    Examples
    --------
    >>> a, b = draw_scene(("man", "car"), 7), draw_scene(("woman", "car"), 7)
    >>> a.background == b.background and a.actors[0].pose == b.actors[0].pose
    True
    """
    if not content or size < 32:
        raise ValueError(f"a scene needs content and at least 32 pixels a side; got {content!r} and {size}.")
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    backdrop = draw_backdrop(list(BACKDROPS)[rng.integers(len(BACKDROPS))], rng)
    actors = place([_cast(name, rng) for name in content], backdrop.horizon, rng)
    if unknown := sorted(set(leave_out) - set(range(len(actors)))):
        raise ValueError(f"leave_out must name actors 0 to {len(actors) - 1} of the scene; got {unknown}.")
    return _compose(backdrop, [actor for k, actor in enumerate(actors) if k not in leave_out], rng, size)


def _cast(name: str, rng: np.random.Generator) -> Actor:
    """Choose role, tone and garment of a person, or the glyph of a thing; gender decides no draw."""
    flip = bool(rng.integers(2))
    if name in GENDERS:
        poses = {pose: [role for role in ROLES if f" {pose} " in ROLES[role]] for pose in ("bust", "full")}
        pose = "bust" if rng.random() < 0.45 else "full"
        role = poses[pose][rng.integers(len(poses[pose]))]
        tone = TONES[rng.integers(len(TONES))]
        art = person_art(name, role, tone, int(rng.integers(len(PAINTS))))
        return Actor(name, name.capitalize(), "person", pose, art, flip, role=role, tone=tone)
    options = glyphs_of(name)
    labels = sorted(
        {glyph.label for glyph in options}
    )  # kinds first, so that three handbags do not outweigh a hat
    label = labels[rng.integers(len(labels))]
    options = [glyph for glyph in options if glyph.label == label]
    glyph = options[rng.integers(len(options))]
    flip = flip and glyph.code not in _READABLE
    return Actor(name, glyph.label, glyph.coco, glyph.group, object_art(glyph, rng), flip)


def _compose(backdrop: Backdrop, actors: list[Actor], rng: np.random.Generator, size: int) -> Scene:
    canvas = _ground(backdrop, size)
    light = float(rng.uniform(-1, 1))  # where the light comes from: left to right
    dark = float(rng.uniform(0.28, 0.48))
    solid = np.zeros((len(actors), size, size), bool)
    for k, actor in enumerate(actors):
        tile, (x, y) = raster(actor.art, actor.pose, size)
        h, w = tile.shape[:2]
        if not tile.size:
            continue
        stencil = Image.fromarray(np.ascontiguousarray(tile[..., 3]))
        alpha = Image.new("L", (size, size))
        alpha.paste(stencil, (x, y))
        canvas.paste((12, 14, 24), mask=_shadow(alpha, actor, light, dark))
        canvas.paste(Image.fromarray(_shaded(tile, light)), (x, y), stencil)
        solid[k, y : y + h, x : x + w] = tile[..., 3] >= 128
    masks, hidden = np.zeros_like(solid), np.zeros((size, size), bool)
    for k in reversed(range(len(actors))):
        masks[k] = solid[k] & ~hidden
        hidden |= solid[k]
    occluded = masks.sum((1, 2)) < 0.98 * solid.sum((1, 2))
    edges = solid[:, 0].any(1) | solid[:, -1].any(1) | solid[:, :, 0].any(1) | solid[:, :, -1].any(1)
    boxes = np.array([tight_box(mask) for mask in masks], int).reshape(-1, 4)
    image = _photograph(np.asarray(canvas), light, rng)
    return Scene(image, tuple(actors), masks, boxes, occluded, edges, backdrop.name)


def _ground(backdrop: Backdrop, size: int) -> Image.Image:
    """Return the background a little out of focus: drawn at five eighths and enlarged."""
    small = max(size * 5 // 8, 1)
    drawn = rasterise(f'<g transform="scale({small / 256:.6f})">{backdrop.svg}</g>', small, small)
    picture = Image.fromarray(np.ascontiguousarray(drawn[..., :3]))
    return picture.resize((size, size), Image.Resampling.BICUBIC)


def tight_box(mask: np.ndarray) -> tuple[int, int, int, int]:
    """Return x1, y1, x2, y2 (end exclusive) around the true pixels of an (H, W) mask; zeros if none.

    Examples
    --------
    >>> tight_box(np.eye(4, dtype=bool)[:3])
    (0, 0, 3, 3)
    """
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    if not rows.size:
        return 0, 0, 0, 0
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def _shadow(alpha: Image.Image, actor: Actor, light: float, dark: float) -> Image.Image:
    """Return how dark each pixel gets: a cast shadow with a dark foot, or a soft one behind what hangs free.

    Worked out at half the size: shadows are soft.
    """
    half = alpha.reduce(2)
    unit = half.width / 256
    if not actor.grounded:
        shift = (1, 0, 7 * light * unit, 0, 1, -3 * unit)
        moved = half.transform(half.size, Image.Transform.AFFINE, shift)
        shade = moved.filter(ImageFilter.GaussianBlur(4 * unit)).point(lambda v: int(v * dark * 0.8))
        return shade.resize(alpha.size, Image.Resampling.BILINEAR)
    base, squash = actor.pose.base * unit, 0.24
    lean = 0.9 * light / squash
    skew = (1, lean, -lean * base, 0, 1 / squash, base * (1 - 1 / squash))
    flat = half.transform(half.size, Image.Transform.AFFINE, skew, Image.Resampling.BILINEAR)
    shade = flat.filter(ImageFilter.GaussianBlur(3 * unit)).point(lambda v: int(v * dark))
    left, _, right, _ = half.getbbox() or (0, 0, 1, 0)
    inset = 0.08 * (right - left)
    foot = Image.new("L", half.size)
    oval = (left + inset, base - 4 * unit, right - inset, base + 3 * unit)
    ImageDraw.Draw(foot).ellipse(oval, fill=int(255 * dark * 1.3))
    foot = foot.filter(ImageFilter.GaussianBlur(2.2 * unit))
    return ImageChops.lighter(shade, foot).resize(alpha.size, Image.Resampling.BILINEAR)


def _shaded(tile: np.ndarray, light: float) -> np.ndarray:
    """Return a tile's colours, brighter on the lit side and towards the top."""
    h, w = tile.shape[:2]
    across = 1 - 0.13 * light * np.linspace(1, -1, w, dtype=np.float32)
    down = np.linspace(1.05, 0.86, h, dtype=np.float32)
    return np.clip(tile[..., :3] * (across * down[:, None])[..., None], 0, 255).astype(np.uint8)


def _photograph(image: np.ndarray, light: float, rng: np.random.Generator) -> np.ndarray:
    """Return the picture under the scene's light: exposure, warmth, lit side, vignette, grain."""
    size = len(image)
    axis = np.linspace(-1, 1, size, dtype=np.float32)
    field = rng.uniform(0.96, 1.14) * (1 + 0.07 * light * axis) - 0.045 * (axis**2 + axis[:, None] ** 2)
    warmth = rng.uniform(-0.04, 0.06)
    tint = np.array([1 + warmth, 1, 1 - warmth], np.float32)
    lit = field.astype(np.float32)[..., None] * tint
    lit *= image
    grain = rng.standard_normal((size, size, 1), dtype=np.float32)
    grain *= rng.uniform(1.5, 4)
    lit += grain + np.float32(0.5)
    return np.clip(lit, 0, 255, out=lit).astype(np.uint8)
