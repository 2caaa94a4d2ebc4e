"""Rules that a CI job can hold an audit to: on the bound of an interval, never on a point value."""

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isnan, nan

OPERATORS: dict[str, Callable] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
MEASURES = {
    "association": "size of the effect |d| of the last stage, any pair",
    "association_before": "size of the effect |d| before, any pair",
    "association_change": "size of the change of d, any pair",
    "bts": "bias transfer score, intra-class or inter-class",
    "bts_intra": "bias transfer score over classes",
    "bts_inter": "bias transfer score over pairs of classes",
}
FAILED, PASSED, UNDECIDED = "failed", "passed", "undecided"
_RULE = re.compile(r"\s*(\w+)\s*:\s*(\w+)\s*(<=|>=|<|>)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*", re.I)
HOW = "write MEASURE:low or MEASURE:high, then <, <=, > or >=, then a number, as association:low>0.5"


@dataclass(frozen=True)
class Rule:
    """An audit fails where ``bound`` of ``measure`` is on the wrong side of ``limit``, in any value of it."""

    text: str
    measure: str
    bound: str
    operator: str
    limit: float


def parse_rules(texts: Sequence[str]) -> list[Rule]:
    """Read rules.

    Parameters
    ----------
    texts : sequence of str
        Each ``MEASURE:BOUND OPERATOR NUMBER``.

    Raises
    ------
    ValueError
        Another form, an unknown measure, or a bound that is none.

    Examples
    --------
    >>> parse_rules(["bts:high<0.3"])[0].limit
    0.3
    """
    rules = []
    for text in texts:
        found = _RULE.fullmatch(text)
        if not found:
            raise ValueError(f"a rule must have the form of association:low>0.5; got {text!r}: {HOW}.")
        measure, bound, sign, limit = found.groups()
        if measure not in MEASURES:
            raise ValueError(
                f"a rule must be on one of {', '.join(MEASURES)}; got {measure!r} in {text!r}: {HOW}."
            )
        if bound not in ("low", "high"):
            raise ValueError(
                f"a rule must be on a bound of the 95 % interval, low or high, since a value without its "
                f"uncertainty decides nothing; got {bound!r} in {text!r}: {HOW}."
            )
        rules.append(Rule(text.strip(), measure, bound, sign, float(limit)))
    return rules


def decide(rules: Iterable[Rule], facts: dict) -> list[dict]:
    """Decide rules on an audit.

    Parameters
    ----------
    rules : iterable of Rule
    facts : dict
        Of an audit, with associations, changes and transfer.

    Returns
    -------
    list of dict
        rule, decision ("failed", "passed" or "undecided"), because. Undecided where the measure has no
        interval at all; values without an interval beside others that have one are named and decide nothing.
    """
    return [_decision(rule, *_intervals(rule.measure, facts)) for rule in rules]


def _decision(rule: Rule, intervals: list[tuple[str, float, float]], missing: str) -> dict:
    known = [(what, low, high) for what, low, high in intervals if not (isnan(low) or isnan(high))]
    lost = f"; without an interval: {len(intervals) - len(known)}" if len(known) < len(intervals) else ""
    if not known:
        why = missing or "no value has an interval"
        return {"rule": rule.text, "decision": UNDECIDED, "because": why}
    place = 1 if rule.bound == "low" else 2
    broken = [one for one in known if OPERATORS[rule.operator](one[place], rule.limit)]
    # the one that is furthest on the wrong side, or nearest to it
    worst = (max if rule.operator.startswith(">") else min)(broken or known, key=lambda one: one[place])
    because = f"{worst[0]}: 95 % interval {worst[1]:.3f} to {worst[2]:.3f}"
    because += f"; {len(broken)} of {len(known)} are on that side{lost}"
    return {"rule": rule.text, "decision": FAILED if broken else PASSED, "because": because}


def _intervals(measure: str, facts: dict) -> tuple[list[tuple[str, float, float]], str]:
    """Return (what, low, high) of every value of a measure, and why there is none."""
    if measure.startswith("bts"):
        rows = [row for row in facts["transfer"] if measure in ("bts", f"bts_{row['kind']}")]
        why = "there is no network after" if not facts["networks"]["after"] else ""
        return [(f"{row['kind']}-class", _number(row["low"]), _number(row["high"])) for row in rows], why
    if measure == "association_change":
        rows, why = facts["changes"], "there is no network after, or no pair of objects"
    else:
        last = "after" if facts["networks"]["after"] and measure == "association" else "before"
        rows = [row for row in facts["associations"] if row["stage"] == last]
        why = "no two objects can be compared between two attributes"
    return [(f"{row['A']} against {row['B']}", *_size(row["low"], row["high"])) for row in rows], why


def _size(low, high) -> tuple[float, float]:
    """Return the interval of the size of a value that may have either sign.

    Examples
    --------
    >>> _size(-0.5, -0.2), _size(-0.5, 0.2)
    ((0.2, 0.5), (0.0, 0.5))
    """
    low, high = _number(low), _number(high)
    if isnan(low) or isnan(high):
        return nan, nan
    return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def _number(value) -> float:
    return nan if value is None else float(value)
