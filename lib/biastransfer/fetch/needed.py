"""What it takes to fetch pictures: their places below a folder, and their addresses."""

from collections.abc import Mapping
from dataclasses import dataclass

from .sources import Pictures

_RULE = ("classes", "cap", "seed", "random", "n_random")


@dataclass(frozen=True)
class Needed:
    """Pictures by their path below the data set's folder, each with its addresses; ``notes`` on them."""

    pictures: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...] = ()


def address(place: Pictures, split: str, one: str) -> str:
    """Return the address of picture ``one`` of a ``split`` at ``place``.

    Examples
    --------
    >>> address(Pictures("a", "http://b/{split}/{id}.jpg", ("train",), "a", "", ""), "train", "7")
    'http://b/train/7.jpg'
    """
    return place.url.format(split=split, id=one)


def of_choice(options: dict) -> tuple[dict, dict]:
    """Split a curation's ``options`` into those of `choosing.choose` and those of reading annotations."""
    rule = {name: options[name] for name in _RULE if name in options}
    return rule, {name: value for name, value in options.items() if name not in _RULE}
