"""Doses of a planted bias: who is with which object, counted, not drawn."""

from collections.abc import Sequence

import numpy as np

from biastransfer.analysis_sets.scene_target import FOCAL

# Objects that a positive dose gives to men, and those that it gives to women: six each, so that both genders
# stay equally many, and not along a stereotype, so that a pretrained network's own order plays no part.
PLUS = ("car", "bicycle", "cat", "laptop", "horse", "surfboard")
MINUS = ("handbag", "umbrella", "skateboard", "dog", "sports ball", "refrigerator")
SIGNS = {name: 1 for name in PLUS} | {name: -1 for name in MINUS}


def checked_dose(dose: float) -> float:
    """Return a ``dose`` as a float; a ValueError unless it is a number from -1 to 1."""
    if isinstance(dose, bool) or not isinstance(dose, int | float | np.number) or not -1 <= dose <= 1:
        raise ValueError(
            f"a dose must be a number from -1 to 1; got {dose!r}. 1 puts a man beside every object of the "
            "first group and a woman beside every object of the second, -1 the reverse."
        )
    return float(dose)


def men(objects: Sequence[str], dose: float, *, seed: int = 0, shuffled: bool = False) -> np.ndarray:
    """Decide for each picture of an object and a person whether the person is a man.

    Parameters
    ----------
    objects : sequence of str, length n
        The object of each picture, of `PLUS` or `MINUS`.
    dose : float
        In [-1, 1]: men are (1 + dose) / 2 of the people beside `PLUS`, (1 − dose) / 2 beside `MINUS`.
    seed : int
        Which pictures.
    shuffled : bool
        Exchange the people at random over all pictures: as many men, in relation to no object.

    Returns
    -------
    (n,) bool array
        Shares hold by count, to half a picture an object. Of two doses of one seed the higher one has the
        men of the lower one and more (beside `PLUS`; fewer beside `MINUS`): they share all other pictures.

    Raises
    ------
    ValueError
        A dose outside [-1, 1], an object of neither group, or a group's object without a picture.

    Examples
    --------
    >>> who = men([*PLUS, *MINUS] * 4, 0.5)
    >>> int(who.sum()), realised([*PLUS, *MINUS] * 4, who)
    (24, 0.5)
    """
    dose, objects = checked_dose(dose), np.asarray(objects)
    _check_objects(objects)
    rng, chosen = np.random.default_rng([seed, 1]), np.zeros(len(objects), bool)
    for name in FOCAL:  # one order of draws whatever the order of the pictures
        rows = np.flatnonzero(objects == name)
        count = int(np.floor(len(rows) * (1 + SIGNS[name] * dose) / 2 + 0.5))
        chosen[rng.permutation(rows)[:count]] = True
    return np.random.default_rng([seed, 2]).permutation(chosen) if shuffled else chosen


def realised(objects: Sequence[str], who: np.ndarray) -> float:
    """Return the dose that is there: the mean over objects of sign · (share of men − share of women).

    Parameters
    ----------
    objects : sequence of str, length n
        The object of each picture.
    who : (n,) bool array
        Whether its person is a man.
    """
    objects = np.asarray(objects)
    shares = [sign * (2 * who[objects == name].mean() - 1) for name, sign in SIGNS.items()]
    return float(np.mean(shares))


def _check_objects(objects: np.ndarray) -> None:
    if unknown := sorted(set(objects.tolist()) - set(SIGNS)):
        raise ValueError(
            f"every picture needs an object of a planted group; got {', '.join(unknown)}. Known: "
            f"{', '.join(SIGNS)}."
        )
    if empty := [name for name in SIGNS if not (objects == name).any()]:
        raise ValueError(
            f"every planted object needs a picture with a person; none of {len(objects)} holds "
            f"{', '.join(empty)}. Draw more pairs."
        )
