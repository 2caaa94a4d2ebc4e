"""Which class of a network is explained: by number, by name, or the best one of the clean picture."""

import difflib
from collections.abc import Mapping, Sequence

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


def target_of(outputs: np.ndarray, label: str, targets: str | Mapping, classes: Sequence[str] = ()) -> int:
    """Return the class to explain of one picture, fixed from the clean picture or from its label.

    Parameters
    ----------
    outputs : (K,) array
        The network's outputs for the clean picture.
    label : str
        The picture's class, as its source names it.
    targets : str or mapping
        ``"top"``: the best of all classes. ``"label"``: the class that the label names. A mapping from
        labels to a class, or to several of which the best is taken, each a number or a name.
    classes : sequence of str
        Names of the network's classes.

    Returns
    -------
    int
        A column of the outputs.

    Raises
    ------
    ValueError
        A label that names no class or that the mapping lacks, or another word.

    Examples
    --------
    >>> outputs = np.array([0.1, 0.7, 0.2])
    >>> target_of(outputs, "pet", {"pet": ["cat", "dog"]}, ("cat", "car", "dog"))
    2
    >>> target_of(outputs, "", "top")
    1
    """
    if isinstance(targets, Mapping):
        if label not in targets:
            raise ValueError(f"targets must say which class {label!r} is; they name {', '.join(targets)}.")
        named = targets[label]
        several = [named] if isinstance(named, str | int | np.integer) else list(named)
        columns = [column_of(one, classes) for one in several]
        return max(columns, key=lambda column: outputs[column])
    if targets not in ("top", "label"):
        raise ValueError(
            f'targets must be "top", "label" or a mapping from labels to classes; got {targets!r}.'
        )
    return int(np.argmax(outputs)) if targets == "top" else column_of(label, classes)
