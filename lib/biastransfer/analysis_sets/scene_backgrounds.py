"""Procedural backgrounds of scenes, SVG on a canvas 256 units wide: indoor, street, beach, grass, sky."""

import colorsys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

_GRADIENT = (
    '<linearGradient id="{id}" x1="0" y1="0" x2="0" y2="1"><stop offset="0" stop-color="{a}"/>'
    '<stop offset="1" stop-color="{b}"/></linearGradient>'
)


@dataclass(frozen=True)
class Backdrop:
    """A background: its name, its SVG elements, and the y (0–256) where the ground begins."""

    name: str
    svg: str
    horizon: float


def draw_backdrop(name: str, rng: np.random.Generator) -> Backdrop:
    """Draw one of `BACKDROPS`, varied by ``rng``."""
    svg, horizon = BACKDROPS[name](rng)
    return Backdrop(name, svg, horizon)


def colour(hue: float, saturation: float, lightness: float) -> str:
    """Return a colour as a hex code: ``hue`` (1 is a full turn), ``saturation`` and ``lightness`` in [0, 1].

    Examples
    --------
    >>> colour(0, 1, 0.5)
    '#ff0000'
    """
    rgb = colorsys.hls_to_rgb(hue % 1, min(max(lightness, 0), 1), min(max(saturation, 0), 1))
    return "#" + "".join(f"{round(255 * part):02x}" for part in rgb)


def _box(x: float, y: float, w: float, h: float, fill: str, more: str = "") -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" fill="{fill}" {more}/>'


def _fade(name: str, x: float, y: float, w: float, h: float, a: str, b: str) -> str:
    return _GRADIENT.format(id=name, a=a, b=b) + _box(x, y, w, h, f"url(#{name})")


def _ramp(name: str, y: float, h: float, hue: float, saturation: float, far: float, near: float) -> str:
    """Draw a strip across the picture that runs from one lightness to another: walls, ground, sea."""
    return _fade(name, 0, y, 256, h, colour(hue, saturation, far), colour(hue, saturation, near))


def _sky(rng: np.random.Generator, bottom: float, clouds: int) -> str:
    """Draw a sky of some time of day, with clouds and sometimes a sun."""
    hue, low = rng.uniform(0.53, 0.62), rng.uniform(0.8, 0.93)
    top = colour(hue, rng.uniform(0.35, 0.75), rng.uniform(0.5, 0.72))
    warm = rng.random() < 0.3
    foot = colour(rng.uniform(0.05, 0.12), 0.75, low - 0.03) if warm else colour(hue - 0.02, 0.5, low)
    parts = [_fade("sky", 0, 0, 256, bottom + 2, top, foot)]
    if rng.random() < 0.35:
        x, y, r = rng.uniform(20, 236), rng.uniform(14, bottom * 0.4), rng.uniform(9, 15)
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r * k:.1f}" fill="#fff6d5" opacity="{o}"/>'
                  for k, o in ((2.4, 0.12), (1.6, 0.2), (1, 0.9))]  # fmt: skip
    for _ in range(clouds):
        x, y, s = rng.uniform(-10, 266), rng.uniform(6, bottom * 0.75), rng.uniform(9, 26)
        puffs = rng.uniform(-1, 1, (6, 2)) * (1.7, 0.22)
        parts += [
            f'<ellipse cx="{x + s * dx:.1f}" cy="{y + s * dy:.1f}" rx="{s * (1.1 - 0.4 * abs(dx)):.1f}" '
            f'ry="{s * (0.5 - 0.2 * abs(dx) / 1.7):.1f}" fill="#fff" opacity=".5"/>'
            for dx, dy in puffs
        ]
    return "".join(parts)


def _ridge(rng: np.random.Generator, y: float, height: float, fill: str) -> str:
    """Draw a line of hills whose feet are at ``y``."""
    heights = y - height * rng.uniform(0.15, 1, 6)
    xs = np.linspace(-30, 286, 6)
    curve = "".join(
        f"Q{(x + nx) / 2:.1f} {h:.1f} {nx:.1f} {(h + nh) / 2:.1f}"
        for x, nx, h, nh in zip(xs[:-1], xs[1:], heights[:-1], heights[1:])
    )
    return f'<path d="M-30 {y:.1f}V{heights[0]:.1f}{curve}V{y + 2:.1f}H-30z" fill="{fill}"/>'


def _flecks(rng, n: int, top: float, fills: list[str], wide: float, tall: float) -> str:
    """Draw ``n`` ellipses over the ground, larger towards the viewer: tufts, pebbles, ripples."""
    depth = rng.random(n) ** 0.6
    xs, ys = rng.uniform(-5, 261, n), top + (256 - top) * depth
    picks = rng.integers(len(fills), size=n)
    return "".join(
        f'<ellipse cx="{x:.1f}" cy="{y:.1f}" rx="{wide * (0.25 + d):.1f}" ry="{tall * (0.25 + d):.1f}" '
        f'fill="{fills[k]}" opacity=".45"/>'
        for x, y, d, k in zip(xs, ys, depth, picks)
    )


def _floor(rng: np.random.Generator, top: float) -> str:
    """Draw planks, tiles or a plain carpet in perspective."""
    kind = rng.integers(3)
    wood = (rng.uniform(0.06, 0.1), 0.38, rng.uniform(0.4, 0.62))
    hue, saturation, light = wood if kind == 0 else (rng.random(), 0.12, 0.7)
    parts = [_ramp("floor", top, 256 - top, hue, saturation, light - 0.08, light + 0.04)]
    seam, centre = colour(hue, saturation, light - 0.16), rng.uniform(80, 176)
    if kind < 2:
        lines = "".join(
            f"M{centre + dx * 0.32:.1f} {top}L{centre + dx * 1.6:.1f} 256" for dx in range(-600, 601, 40)
        )
        if kind == 1:
            lines += "".join(f"M0 {top + (256 - top) * k**1.7:.1f}h256" for k in (0.15, 0.35, 0.58, 0.8))
        parts.append(f'<path d="{lines}" stroke="{seam}" stroke-width="1" opacity=".7" fill="none"/>')
    return "".join(parts)


def _indoor(rng: np.random.Generator) -> tuple[str, float]:
    top, hue = rng.uniform(150, 182), rng.random()
    light, saturation = rng.uniform(0.74, 0.88), rng.uniform(0.1, 0.35)
    parts = [_ramp("wall", 0, top, hue, saturation, light, light - 0.07)]
    if rng.random() < 0.35:
        stripe = colour(hue, saturation, light - 0.045)
        parts += [_box(x, 0, 7, top, stripe) for x in np.arange(rng.uniform(-8, 8), 256, 18)]
    x, w, h = rng.uniform(12, 170), rng.uniform(52, 84), rng.uniform(56, 80)
    y = rng.uniform(14, 36)
    frame = colour(rng.uniform(0.05, 0.1), rng.uniform(0, 0.35), rng.uniform(0.35, 0.95))
    parts.append(_box(x - 4, y - 4, w + 8, h + 8, frame, 'rx="1.5"'))
    if rng.random() < 0.6:  # a window
        parts += [_fade("pane", x, y, w, h, "#8fc3ea", "#e6f3fa")]
        parts += [_box(x + w / 2 - 1.5, y, 3, h, frame), _box(x, y + h * 0.45, w, 3, frame)]
        parts += [_box(x - 8, y + h + 3, w + 16, 5, frame)]
        if rng.random() < 0.6:
            cloth = colour(rng.random(), 0.35, 0.6)
            parts += [_box(x - 14, y - 9, 17, h + 24, cloth), _box(x + w - 3, y - 9, 17, h + 24, cloth)]
    else:  # a picture
        sky, hills = (
            colour(rng.random(), 0.3, 0.75),
            _ridge(rng, y + h, h * 0.6, colour(rng.random(), 0.3, 0.42)),
        )
        parts.append(f'<clipPath id="p">{_box(x, y, w, h, "#000")}</clipPath><g clip-path="url(#p)">')
        parts += [_fade("pane", x, y, w, h, sky, colour(rng.random(), 0.35, 0.55)), hills, "</g>"]
    skirting = colour(hue, 0.08, rng.choice([0.93, 0.45]))
    return "".join([*parts, _floor(rng, top), _box(0, top - 7, 256, 8, skirting)]), top


def _street(rng: np.random.Generator) -> tuple[str, float]:
    top = rng.uniform(132, 160)
    parts, x = [_sky(rng, top, 2)], -rng.uniform(0, 30)
    while x < 256:
        w, h = rng.uniform(34, 66), rng.uniform(48, top - 6)
        hue, light = rng.uniform(0.02, 0.12), rng.uniform(0.48, 0.78)
        hue = hue if rng.random() < 0.6 else rng.uniform(0.5, 0.65)
        wall = colour(hue, rng.uniform(0.06, 0.32), light)
        parts += [_box(x, top - h, w, h, wall), _box(x, top - h, w, 3, colour(hue, 0.15, light - 0.14))]
        pane = colour(0.57, 0.22, rng.uniform(0.32, 0.72))
        step, wide = rng.uniform(11, 15), rng.uniform(5, 7.5)
        parts += [
            _box(px, py, wide, wide * 1.3, pane)
            for px in np.arange(x + 5, x + w - wide - 2, step)
            for py in np.arange(top - h + 9, top - 24, step * 1.35)
        ]
        parts += [_box(x + 3, top - 17, w - 6, 17, colour(rng.random(), 0.3, 0.42))]
        x += w
    pavement, road = rng.uniform(0.66, 0.78), rng.uniform(0.33, 0.45)
    kerb = top + (256 - top) * rng.uniform(0.16, 0.26)
    parts.append(_ramp("path", top, kerb - top, 0.1, 0.05, pavement - 0.07, pavement))
    parts.append(_box(0, kerb, 256, 3, colour(0, 0, 0.85)))
    parts.append(_ramp("road", kerb + 3, 256 - kerb, 0.6, 0.05, road, road + 0.07))
    y, shift = kerb + (256 - kerb) * rng.uniform(0.4, 0.6), rng.uniform(0, 60)
    parts += [
        f'<path d="M{u:.1f} {y:.1f}h30l4 5h-34z" fill="#f2efe2" opacity=".8"/>'
        for u in np.arange(-shift, 256, 62)
    ]
    return "".join(parts), top + 6


def _beach(rng: np.random.Generator) -> tuple[str, float]:
    sea, shore = rng.uniform(92, 118), rng.uniform(142, 166)
    hue = rng.uniform(0.5, 0.57)
    parts = [_sky(rng, sea, 3)]
    if rng.random() < 0.4:
        parts.append(_ridge(rng, sea, 22, colour(rng.uniform(0.35, 0.58), 0.22, 0.55)))
    parts.append(_fade("sea", 0, sea, 256, 110, colour(hue, 0.55, 0.4), colour(hue - 0.03, 0.5, 0.68)))
    for k in range(6):
        y = sea + (shore - sea) * (k + 0.5) / 6
        wave = f"M{rng.uniform(-40, 200):.1f} {y:.1f}q20 {-1 - k * 0.4:.1f} 40 0t40 0"
        foam = f'fill="none" stroke="#fff" stroke-width="{0.6 + k * 0.25:.2f}" opacity=".5"'
        parts.append(f'<path d="{wave}" {foam}/>')
    light, tilt, bow = rng.uniform(0.72, 0.82), rng.uniform(-12, 12), rng.uniform(-10, 10)
    edge = f"M-5 {shore - tilt:.1f}Q80 {shore + bow:.1f} 140 {shore:.1f}T261 {shore + tilt:.1f}"
    sand = colour(rng.uniform(0.095, 0.125), 0.48, light)
    parts += [f'<path d="{edge}" fill="none" stroke="#fff" stroke-width="6" opacity=".85"/>']
    parts += [_GRADIENT.format(id="sand", a=colour(0.1, 0.35, light - 0.14), b=sand)]
    parts += [f'<path d="{edge}V256H-5z" fill="url(#sand)"/>']
    grains = [colour(0.1, 0.35, light - 0.12), colour(0.12, 0.5, light + 0.07)]
    return "".join([*parts, _flecks(rng, 60, shore + 14, grains, 7, 1.6)]), shore + 12


def _grass(rng: np.random.Generator) -> tuple[str, float]:
    top, hue = rng.uniform(112, 146), rng.uniform(0.22, 0.33)
    light = rng.uniform(0.4, 0.54)
    parts = [_sky(rng, top, 3), _ridge(rng, top, 46, colour(hue + 0.1, 0.2, light + 0.2))]
    for x in rng.uniform(0, 256, rng.integers(0, 7)):
        r, leaf = (
            rng.uniform(9, 20),
            colour(hue + rng.uniform(-0.02, 0.06), 0.35, light - rng.uniform(0.06, 0.16)),
        )
        crown = f'cx="{x:.1f}" cy="{top - 1.3 * r:.1f}" rx="{r * 0.8:.1f}" ry="{r:.1f}"'
        parts += [_box(x - 1.5, top - r, 3, r + 3, "#6b4f35"), f'<ellipse {crown} fill="{leaf}"/>']
    parts.append(_ramp("lawn", top, 256 - top, hue, 0.46, light + 0.06, light - 0.07))
    blades = [colour(hue + 0.02, 0.5, light - 0.11), colour(hue - 0.02, 0.5, light + 0.11)]
    parts.append(_flecks(rng, 110, top + 3, blades, 3.6, 3.2))
    if rng.random() < 0.5:
        parts.append(_flecks(rng, 22, top + 20, ["#fff", colour(rng.random(), 0.8, 0.7)], 1.5, 1.4))
    return "".join(parts), top + 14


def _wide_sky(rng: np.random.Generator) -> tuple[str, float]:
    top = rng.uniform(196, 212)
    hue, saturation, light = [(0.28, 0.35, 0.42), (0.1, 0.3, 0.6), (0.08, 0.12, 0.52)][rng.integers(3)]
    ground = [colour(hue, saturation, light - 0.1), colour(hue, saturation, light + 0.08)]
    parts = [_sky(rng, top, int(rng.integers(5, 10))), _ridge(rng, top, 20, colour(0.58, 0.18, 0.66))]
    parts.append(_ramp("rise", top, 60, hue, saturation, light + 0.05, light - 0.07))
    return "".join([*parts, _flecks(rng, 50, top + 3, ground, 6, 1.6)]), top + 6


BACKDROPS: dict[str, Callable[[np.random.Generator], tuple[str, float]]] = {
    "indoor": _indoor,
    "street": _street,
    "beach": _beach,
    "grass": _grass,
    "sky": _wide_sky,
}
