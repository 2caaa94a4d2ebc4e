"""In-painters: fills that continue what surrounds the hole, on RGB pictures in [0, 1]."""

from collections.abc import Callable

# name: (seed and settings → (pixels, masks) → pixels, settings with their defaults)
INPAINTERS: dict[str, tuple[Callable, dict]] = {}
