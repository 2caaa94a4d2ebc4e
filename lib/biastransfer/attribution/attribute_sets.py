"""The two sets that an association is with, as one network embeds them; a picture's own vector left out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from biastransfer.analysis_sets import AnalysisSet
from biastransfer.attribution.person_pictures import ATTRIBUTES, PersonPicture
from biastransfer.backbones import Backbone
from biastransfer.cosines import unit_lengths
from biastransfer.embed import embed


@dataclass(frozen=True, eq=False)
class AttributeSets:
    """Embeddings of pictures of men and of women, in unit length, with their ids.

    Attributes
    ----------
    units : (n, D) float64 array
        The pictures of men, then those of women.
    ids : tuple of str
    men : int
        How many are of men.
    own : str
        What to do about a picture that is itself in a set: ``"refuse"`` or ``"leave out"``, for that picture
        alone.
    """

    units: np.ndarray
    ids: tuple[str, ...]
    men: int
    own: str = "refuse"

    def counted(self, names: Sequence[str]) -> np.ndarray:
        """Return (N, n) bool: which pictures of the sets count for each of the pictures ``names``.

        Raises
        ------
        ValueError
            If one of them is in a set and ``own`` is "refuse", or a set has no other picture.
        """
        counts = np.array([[one != name for one in self.ids] for name in names]).reshape(-1, len(self.ids))
        for name, row in zip(names, counts):
            if not row.all() and self.own == "refuse":
                raise ValueError(
                    f"a picture must not be in the set it is compared with; {name} is. Leave it out of the "
                    'set for itself (own="leave out"), or out of the pictures.'
                )
            if not row[: self.men].any() or not row[self.men :].any():
                raise ValueError(f"{name}: each set must have a picture beside it; one has none.")
        return counts

    def halves(self, name: str, attribute: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the vectors of the set of a picture's own ``attribute`` and of the other, itself left out.

        Raises
        ------
        ValueError
            As for `counted`.
        """
        row = self.counted([name])[0]
        men, women = self.units[: self.men][row[: self.men]], self.units[self.men :][row[self.men :]]
        return (men, women) if attribute == ATTRIBUTES[0] else (women, men)


def attribute_sets(men, women, ids: Sequence[str] = (), *, own: str = "refuse") -> AttributeSets:
    """Return the two sets from their embeddings.

    Parameters
    ----------
    men, women : (n, D) arrays
        Made with one network and layer.
    ids : sequence of str
        Of all pictures, men first; default: names that no picture has.
    own : {"refuse", "leave out"}
        As in `AttributeSets`.

    Returns
    -------
    AttributeSets

    Raises
    ------
    ValueError
        If a set is empty, or as many ids as pictures are not given, a vector is zero or not finite, or
        ``own`` is something else.
    """
    if own not in ("refuse", "leave out"):
        raise ValueError(f'own must be "refuse" or "leave out"; got {own!r}.')
    if not len(men) or not len(women):
        raise ValueError(
            f"an association needs pictures of both, men and women; got {len(men)} and {len(women)}. "
            "Choose a set that has both classes."
        )
    found = []
    for vectors, name in ((men, "men"), (women, "women")):
        z, length = unit_lengths(vectors, name)
        found.append(z / length[:, None])
    ids = tuple(ids) or tuple(f"\0{k}" for k in range(len(men) + len(women)))
    if len(ids) != len(men) + len(women):
        raise ValueError(f"there must be one id a picture; got {len(ids)} for {len(men) + len(women)}.")
    return AttributeSets(np.concatenate(found), ids, len(men), own)


def embedded_attributes(network: Backbone, source: AnalysisSet | Sequence[PersonPicture]) -> AttributeSets:
    """Return pictures of men and of women as a network embeds them; from the cache where they are there.

    Parameters
    ----------
    network : Backbone
    source : AnalysisSet or sequence of PersonPicture
        The set's pictures of men and of women alone; or all pictures given, by their attribute, which are
        photographs with a file.

    Returns
    -------
    AttributeSets
        A picture is left out for itself.

    Raises
    ------
    ValueError
        If there is no picture of one of them that can be embedded.
    """
    vectors, ids = [], []
    for name in ATTRIBUTES:
        if isinstance(source, AnalysisSet):
            rows = source.items[source.items["class"] == name].reset_index(drop=True)
            found = embed(network, replace(source, items=rows))
            ids += found.ids
        else:
            own = [one for one in source if one.attribute == name]
            found = embed(network, [str(one.picture.source) for one in own])
            ids += [own[row].name for row in found.rows]
        vectors.append(found.vectors)
    return attribute_sets(*vectors, ids, own="leave out")
