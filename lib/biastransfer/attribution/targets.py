"""Which class of a network is explained: by number, by name, or the one that it finds in the clean picture."""

import difflib
from collections.abc import Sequence

import numpy as np


def column_of(target: int | str, classes: Sequence[str]) -> int:
    """Return the column of a class given by number or by name.

    Parameters
    ----------
    target : int or str
        A column, or a name of ``classes``, or one of its synonyms between commas.
    classes : sequence of str
        Names of the network's classes; empty where unknown.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If the class is none of the network's, or several have that name.

    Examples
    --------
    >>> column_of("Tinca tinca", ("goldfish", "tench, Tinca tinca"))
    1
    """
    if isinstance(target, str):
        named = [(names, *names.split(", ")) for names in classes]  # ImageNet's classes have synonyms
        columns = [column for column, names in enumerate(named) if target in names]
        if len(columns) == 1:
            return columns[0]
        known = [name for names in named for name in names]
        close = columns or dict.fromkeys(difflib.get_close_matches(target, known, n=3))
        hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
        raise ValueError(
            f"the target must be one of the network's {len(classes)} classes; {target!r} is "
            f"{'none' if not columns else f'the name of {len(columns)}'} of them.{hint}"
        )
    if isinstance(target, bool) or not isinstance(target, int | np.integer):
        raise ValueError(f"the target must be a class's number or name; got {target!r}.")
    if classes and not 0 <= target < len(classes):
        raise ValueError(f"the target must be a class between 0 and {len(classes) - 1}; got {target}.")
    return int(target)
