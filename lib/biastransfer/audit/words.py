"""Numbers and names as an audit's sentences and tables show them."""

from collections import Counter
from collections.abc import Sequence

LONGEST = 80  # characters of a class name in a sentence or table; the JSON file has all

_OWN_WORDS = {  # of the backbones' errors, one after the other
    ", or load a backbone and use load_into": ".",
    "Pass weights=PATH instead.": "Leave {stage}_architecture out.",
    "name it with load_backbone(path, architecture=…)": "pass architecture=NAME",
    "trust_pickle=True (load_backbone: trust=True)": "trust=True",
    "architecture=NAME": "{stage}_architecture=NAME (--{stage}-architecture NAME)",
    "trust=True": "trust=True (--trust)",
}


def interval(low, high, digits: int = 2) -> str:
    """Return a 95 % interval from ``low`` to ``high`` in words, with as many ``digits``."""
    if low is None or high is None:
        return "no interval"
    return f"95 % interval {signed(low, digits)} to {signed(high, digits)}"


def signed(value: float, digits: int = 2) -> str:
    """Return a ``value`` with ``digits`` and a minus sign that is one.

    Examples
    --------
    >>> signed(-0.5), signed(-0.001)
    ('−0.50', '0.00')
    """
    shown = f"{value:.{digits}f}"
    return shown.replace("-", "−") if shown.strip("-0.") else shown.removeprefix("-")


def direction(row: dict, level: float = 0.05) -> str:
    """Return which attribute lies nearer to which object, or that no direction is shown.

    Parameters
    ----------
    row : dict
        An association: X, Y, A, B, effect_size, low, high, p_holm.
    level : float
        A direction is shown where the interval excludes 0, or where p_holm is below this.
    """
    low, high, p = (row[name] for name in ("low", "high", "p_holm"))
    known = low is not None and high is not None
    if not (known and (low > 0 or high < 0)) and not (p is not None and p < level):
        return f"no direction is shown: {'the interval spans 0' if known else 'there is no interval'}"
    nearer = row["A"] if row["effect_size"] > 0 else row["B"]
    return f"{brief(row['X'])} lies nearer to {brief(nearer)} than {brief(row['Y'])} does"


def brief(text: str, longest: int = LONGEST) -> str:
    """Return a text on one line and not longer than ``longest``: names may be anything.

    Examples
    --------
    >>> brief("two\\nlines"), brief("abcdef", 4)
    ('two lines', 'abc…')
    """
    line = " ".join(str(text).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def for_an_audit(problem: Exception, stage: str) -> str:
    """Return a ``problem`` with the network of a ``stage`` in the words of an audit's own parameters."""
    said = str(problem)
    for words, own in _OWN_WORDS.items():
        said = said.replace(words, own.format(stage=stage))
    return said


def verdicts(changes: Sequence[dict]) -> str:
    """Count what became of associations, in words.

    Parameters
    ----------
    changes : sequence of dict
        Rows with a verdict of `association.changes`.

    Examples
    --------
    >>> verdicts([{"verdict": "survives"}, {"verdict": "added"}, {"verdict": "survives, weaker"}])
    '2 survive, 1 added'
    >>> verdicts([{"verdict": "none shown"}])
    '1 shown neither before nor after'
    """
    said = {"survives": "survive", "none shown": "shown neither before nor after"}
    kinds = [row["verdict"].split(",")[0] for row in changes]
    counts = Counter(said.get(kind, kind) for kind in kinds)
    return ", ".join(f"{n} {kind}" for kind, n in counts.most_common())
