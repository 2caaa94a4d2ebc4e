"""Objects that Twemoji lacks, drawn as SVG in its style on a canvas 36 units wide and high."""

import numpy as np

_BODIES = (
    ("#E1E8ED", "#CCD6DD", "#99AAB5"), ("#F5F8FA", "#DDE4E9", "#AAB8C2"), ("#C1CBD3", "#A5B2BC", "#6E7D88"),
    ("#BE3950", "#A02C41", "#F5F8FA"), ("#8CCFC0", "#73B8A8", "#F5F8FA"), ("#4A5560", "#3A434C", "#CCD6DD"),
    ("#FFE8B6", "#EBCF94", "#A98A4B"), ("#7FB2D9", "#6799C2", "#F5F8FA"),
)  # fmt: skip
_BOARDS = (
    ("#F5F8FA", "#DD2E44"), ("#FFCC4D", "#3B88C3"), ("#55ACEE", "#F5F8FA"), ("#F4900C", "#662113"),
    ("#2AA198", "#FFE8B6"), ("#EA596E", "#FFFFFF"), ("#FFE8B6", "#2A6797"), ("#5C913B", "#FFCC4D"),
)  # fmt: skip


def refrigerator(rng: np.random.Generator) -> str:
    """Draw a refrigerator: freezer on top or below, or two doors side by side; handles, magnets."""
    body, shade, trim = _BODIES[rng.integers(len(_BODIES))]
    width, split = rng.uniform(15, 20), rng.uniform(8.5, 12.5)
    kind, corner = rng.integers(3), rng.uniform(0.6, 2.4)
    x0, x1 = 18 - width / 2, 18 + width / 2
    parts = [
        f'<rect x="{x0 + 1.2}" y="33.5" width="2.6" height="2" fill="#292F33"/>',
        f'<rect x="{x1 - 3.8}" y="33.5" width="2.6" height="2" fill="#292F33"/>',
        f'<rect x="{x0}" y="1" width="{width}" height="33.4" rx="{corner}" fill="{body}"/>',
        f'<path d="M{x1 - 2.2} 1h{2.2 - corner}a{corner} {corner} 0 0 1 {corner} {corner}v{33.4 - 2 * corner}'
        f'a{corner} {corner} 0 0 1-{corner} {corner}h-{2.2 - min(corner, 2.2)}z" fill="{shade}"/>',
    ]
    handle = '<rect x="{x}" y="{y}" width="1" height="{h}" rx=".5" fill="{trim}"/>'
    seam = f'stroke="{trim}" stroke-width=".5"'
    if kind == 2:
        parts += [f'<path d="M18 1v22M{x0} 23h{width}" {seam}/>']
        parts += [handle.format(x=x, y=8, h=10, trim=trim) for x in (16.1, 18.9)]
        parts += [f'<rect x="12" y="25" width="12" height="1" rx=".5" fill="{trim}"/>']
    else:
        y = split if kind == 0 else 35 - split
        parts += [f'<path d="M{x0} {y}h{width}" {seam}/>']
        parts += [handle.format(x=x0 + 1.6, y=y + 1.6, h=6, trim=trim)]
        parts += [handle.format(x=x0 + 1.6, y=y - 6.4, h=4.8, trim=trim)]
    for _ in range(rng.integers(0, 4)):
        colour, w, h = (
            rng.choice(["#DD2E44", "#FFCC4D", "#77B255", "#55ACEE", "#FFFFFF"]),
            *rng.uniform(1, 2.6, 2),
        )
        at = f'x="{rng.uniform(x0 + 4, x1 - 5):.2f}" y="{rng.uniform(3, 20):.2f}"'
        parts.append(f'<rect {at} width="{w:.2f}" height="{h:.2f}" rx=".3" fill="{colour}"/>')
    return "".join(parts)


def surfboard(rng: np.random.Generator) -> str:
    """Draw a surfboard that stands upright: outline, stringer, stripe or band, and a fin."""
    board, mark = _BOARDS[rng.integers(len(_BOARDS))]
    half, tail = rng.uniform(4, 5.6), rng.uniform(1, 2.6)
    wide, tip, low = half, half * 0.75, half * 0.7
    shape = (
        f"M18 .6C{18 + tip} 5 {18 + wide} 12 {18 + wide} 19C{18 + wide} 26 {18 + low} 32 {18 + tail} 35.2"
        f"h-{2 * tail}C{18 - low} 32 {18 - wide} 26 {18 - wide} 19C{18 - wide} 12 {18 - tip} 5 18 .6z"
    )
    pattern = rng.integers(4)
    y = rng.uniform(8, 22)
    marks = (
        f'<path d="M10 {y}h16v3.4H10z" fill="{mark}"/><path d="M10 {y + 4.4}h16v1H10z" fill="{mark}"/>',
        f'<path d="M{18 - half * 0.55} 0h{half * 0.36}v36h-{half * 0.36}z" fill="{mark}"/>'
        f'<path d="M{18 + half * 0.2} 0h{half * 0.36}v36h-{half * 0.36}z" fill="{mark}"/>',
        f'<path d="M8 {y + 8}L28 {y - 2}V36H8z" fill="{mark}"/>',
        f'<path d="M8 0h20v{y * 0.6}Q18 {y * 0.6 + 5} 8 {y * 0.6}z" fill="{mark}"/>',
    )
    return (
        f'<clipPath id="b"><path d="{shape}"/></clipPath><path d="{shape}" fill="{board}"/>'
        f'<g clip-path="url(#b)">{marks[pattern]}'
        f'<path d="M{18 + half * 0.62} 0h6v36h-6z" fill="#000" opacity=".12"/></g>'
        f'<path d="M17.8 1.5h.4v33h-.4z" fill="#662113" opacity=".55"/>'
        f'<path d="M17.4 28.5l-1.2 4.3h3.2z" fill="#292F33" opacity=".8"/>'
        f'<path d="{shape}" fill="none" stroke="#292F33" stroke-opacity=".35" stroke-width=".35"/>'
    )


def stop_sign(rng: np.random.Generator) -> str:
    """Draw a stop sign: red octagon with white rim and the word, on a post of varying length."""
    post = rng.uniform(9, 13)
    scale = (35.5 - post) / 36
    half = rng.uniform(0.7, 1.0)
    letters = (
        "M10.6 14.6q-.6-1-2-1-2 0-2 1.9 0 1.6 2.1 2.1 2.3.5 2.3 2.5 0 2.1-2.3 2.1-1.8 0-2.4-1.4"
        "M12.9 13.8h5.2M15.5 13.8v8.6M22 13.6q2.3 0 2.3 4.4t-2.3 4.4-2.3-4.4 2.3-4.4z"
        "M26.8 22.4v-8.6h1.6q2.1 0 2.1 2.3t-2.1 2.3h-1.6"
    )
    return (
        f'<path d="M{18 - half} {34 - post}h{2 * half}V36h-{2 * half}z" fill="#8899A6"/>'
        f'<path d="M{18 + half * 0.3} {34 - post}h{half * 0.7}V36h-{half * 0.7}z" fill="#66757F"/>'
        f'<g transform="translate({18 - 18 * scale} 0) scale({scale})">'
        '<path fill="#F5F8FA" d="M24.8 1H11.2L1 11.2v13.6L11.2 35h13.6L35 24.8V11.2z"/>'
        '<path fill="#C8202F" d="M24.2 2.4H11.8L2.4 11.8v12.4l9.4 9.4h12.4l9.4-9.4V11.8z"/>'
        f'<path d="{letters}" fill="none" stroke="#F5F8FA" stroke-width="1.7" stroke-linejoin="round"/></g>'
    )


DRAWINGS = {"refrigerator": refrigerator, "surfboard": surfboard, "stop sign": stop_sign}
