"""Which class of a set is what: attributes, objects, reference. Inferred from names, or given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

REFERENCE = "random"  # the class of pictures of anything, by the name it has everywhere here
KEYS = ("attributes", "objects", "random")
SAYS = (
    "Give roles, such as attributes=man,woman objects=car,sports random=random (a key may be repeated, for "
    "names that hold a comma)."
)


@dataclass(frozen=True)
class Roles:
    """What each class of a set is.

    Attributes
    ----------
    attributes : tuple of str
        The two classes that are compared, X and Y; fewer where the set has no more.
    objects : tuple of str
        Classes whose nearness to the attributes is measured.
    reference : str
        The class of anything, "" where there is none.
    names : dict of str to str
        Class → a name that measures can rely on ("X", "Y", "random", "object1", "object1+X", "other1"); a
        class that has no role is not in it.
    given : bool
        Whether they were given rather than inferred.
    """

    attributes: tuple[str, ...]
    objects: tuple[str, ...]
    reference: str
    names: dict[str, str]
    given: bool

    def role(self, name: str) -> str:
        """Return what the class called ``name`` is, in words."""
        known = self.names.get(name, "")
        if "+" in known:
            return "object with attribute"
        words = {"X": "attribute X", "Y": "attribute Y", REFERENCE: "reference", "": "not used"}
        return words.get(known, known.rstrip("0123456789"))

    @property
    def shown(self) -> dict[str, str]:
        """The names of measures → those of the set."""
        return {known: name for name, known in self.names.items()}


def find_roles(classes: Sequence[str], given: Mapping[str, Sequence[str]] | None = None) -> Roles:
    """Find the roles of a set's classes.

    Parameters
    ----------
    classes : sequence of str
        Names, in order; ``"car+man"`` is the object car with the attribute man.
    given : mapping of str to sequence of str, optional
        ``"attributes"``, ``"objects"``, ``"random"`` → names of classes; what is left out is inferred.

    Returns
    -------
    Roles
        Inferred: attributes are what follows the plus sign, objects what stands before it and is a class, the
        reference a class called "random". With attributes given and no name with a plus sign, every other
        class is an object.

    Raises
    ------
    ValueError
        An unknown key, a name that is no class, one name in two roles, more than two attributes.

    Examples
    --------
    >>> roles = find_roles(["old", "young", "car", "car+old", "car+young", "random"])
    >>> roles.attributes, roles.objects, roles.names["car+young"]
    (('old', 'young'), ('car',), 'object1+Y')
    """
    given = {key: tuple(names) for key, names in (given or {}).items()}
    _check(classes, given)
    pairs = _pairs(classes)
    attributes = given.get("attributes")
    if attributes is None:
        found = {attribute for _, attribute in pairs}
        attributes = tuple(one for one in [*classes, *sorted(found - set(classes))] if one in found)
    if len(attributes) > 2:
        raise ValueError(
            f"two attributes are compared; the set has {len(attributes)}: {', '.join(attributes)}. {SAYS}"
        )
    (reference,) = given.get("random", (REFERENCE,) if REFERENCE in classes else ("",))
    plain = [one for one in classes if one not in {*attributes, reference, *map("+".join, pairs)}]
    objects = given.get("objects")
    if objects is None:
        combined = [one for one in plain if any((one, attribute) in pairs for attribute in attributes)]
        objects = tuple(combined or (plain if "attributes" in given else ()))
    twice = [one for one in objects if one in (*attributes, reference)]
    if twice or reference in attributes:
        raise ValueError(f"a class has one role; {(twice or [reference])[0]!r} has two. {SAYS}")
    names = _names(classes, attributes, objects, reference, [one for one in plain if one not in objects])
    return Roles(attributes, objects, reference, names, bool(given))


def parse_roles(words: Sequence[str], classes: Sequence[str]) -> dict[str, list[str]]:
    """Read ``key=name,name`` as typed on a command line.

    Parameters
    ----------
    words : sequence of str
        A key may be repeated; a value that is a class as a whole is not split at its commas.
    classes : sequence of str
        Names that there are.

    Raises
    ------
    ValueError
        A word without a key.
    """
    found: dict[str, list[str]] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in KEYS:
            raise ValueError(f"a role is written KEY=NAME,NAME with KEY {', '.join(KEYS)}; got {word!r}.")
        names = [value] if value in classes else value.split(",")
        found.setdefault(key, []).extend(name for name in names if name)
    return found


def _check(classes: Sequence[str], given: Mapping[str, Sequence[str]]) -> None:
    for key, names in given.items():
        if key not in KEYS:
            raise ValueError(f"roles must be {', '.join(KEYS)}; got {key!r}. {SAYS}")
        for name in names:
            if name not in classes:
                raise ValueError(
                    f"{key} must be classes of the set; got {name!r}. It has {', '.join(classes)}."
                )
    named = [name for names in given.values() for name in names]
    twice = [name for name in named if named.count(name) > 1]
    if twice:
        raise ValueError(f"a class has one role; {twice[0]!r} is named twice. {SAYS}")
    if len(given.get("random", "r")) != 1:
        raise ValueError(f"random must be one class; got {', '.join(given['random']) or 'none'}.")


def _pairs(classes: Sequence[str]) -> list[tuple[str, str]]:
    """Return (object, attribute) of names with a plus sign of which at least one part is a class itself."""
    parts = [name.rpartition("+") for name in classes]
    return [(a, b) for a, plus, b in parts if a and plus and b and (a in classes or b in classes)]


def _names(classes, attributes, objects, reference, others) -> dict[str, str]:
    """Return class → name for measures, in the set's order."""
    names = dict(zip(attributes, "XY")) | ({reference: REFERENCE} if reference else {})
    names |= {one: f"object{place + 1}" for place, one in enumerate(objects)}
    names |= {
        f"{one}+{a}": f"{names[one]}+{letter}" for one in objects for a, letter in zip(attributes, "XY")
    }
    names |= {one: f"other{place + 1}" for place, one in enumerate(others)}
    return {one: names[one] for one in classes if one in names}
