"""Roles of classes from their names, and rules on bounds of intervals: worked by hand."""

import pytest

from biastransfer.audit.roles import find_roles, parse_roles
from biastransfer.audit.rules import MEASURES, decide, parse_rules
from biastransfer.audit.words import brief, direction, interval, signed

CLASSES = ["man", "woman", "random", "stop sign", "car", "car+man", "car+woman"]


def test_roles_of_the_papers_names():
    roles = find_roles(CLASSES)
    assert (roles.attributes, roles.objects, roles.reference) == (("man", "woman"), ("car",), "random")
    assert [roles.role(name) for name in CLASSES] == [
        *("attribute X", "attribute Y", "reference", "other", "object"),
        *("object with attribute", "object with attribute"),
    ]
    assert list(roles.names.values()) == ["X", "Y", "random", "other1", "object1", "object1+X", "object1+Y"]
    assert roles.shown["object1+Y"] == "car+woman"
    assert not roles.given


def test_an_attribute_without_a_class_of_its_own_still_combines():
    roles = find_roles(["car", "car+old", "car+new"])
    assert roles.attributes == ("new", "old")
    assert "X" not in roles.names.values()
    assert roles.names["car+old"] == "object1+Y"


def test_a_plus_sign_in_a_name_is_no_combination_by_itself():
    roles = find_roles(["black+white", "colour", "c++"])
    assert roles.attributes == roles.objects == ()
    assert [roles.role(name) for name in ("black+white", "c++")] == ["other", "other"]


def test_given_roles_go_before_names():
    roles = find_roles(CLASSES, {"attributes": ["woman", "man"], "random": ["stop sign"]})
    assert roles.attributes == ("woman", "man")
    assert roles.names["car+woman"] == "object1+X"
    assert roles.reference == "stop sign"
    assert roles.role("random") == "other"
    plain = find_roles(["a", "b", "c", "d"], {"attributes": ["a", "b"]})
    assert plain.objects == ("c", "d")
    assert plain.given


def test_classes_that_combine_with_a_third_attribute_are_not_used():
    roles = find_roles([*CLASSES, "child", "car+child"], {"attributes": ["man", "woman"]})
    assert roles.role("car+child") == "not used"
    assert roles.role("child") == "other"


def test_commas_in_names():
    words = ["attributes=a,b", "objects=x", "objects=one, two"]
    assert parse_roles(words, ["a", "b", "x", "one, two"]) == {
        "attributes": ["a", "b"],
        "objects": ["x", "one, two"],
    }


# ---- rules


def facts(*intervals, stage="after", after=True, transfer=()):
    """An audit with one association an interval, and scores (kind, low, high)."""
    rows = [{"stage": stage, "A": "car", "B": "cat", "low": low, "high": high} for low, high in intervals]
    scores = [{"kind": kind, "low": low, "high": high} for kind, low, high in transfer]
    return {"networks": {"after": after or None}, "associations": rows, "changes": rows, "transfer": scores}


def decision(rule, known):
    [one] = decide(parse_rules([rule]), known)
    return one["decision"]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("association:low>0.5", "failed"),  # |d| of (-0.9, -0.6) is surely beyond .5
        ("association:low>=0.6", "failed"),
        ("association:low>0.6", "passed"),
        ("association:high>1", "passed"),
        ("association:high<0.95", "failed"),
        ("association_change:low>0.5", "failed"),
        ("association_before:low>0.5", "undecided"),
        ("bts:high<0.3", "failed"),  # inter
        ("bts_intra:high<0.3", "passed"),
        ("bts_inter : low < -.05", "failed"),
        ("bts_inter:low<-1e-1", "passed"),
    ],
)
def test_rules_look_at_the_bound_they_name(rule, expected):
    known = facts((-0.9, -0.6), transfer=[("intra", 0.1, 0.8), ("inter", -0.1, 0.2)])
    assert decision(rule, known) == expected


def test_the_size_of_an_interval_around_0_starts_at_0():
    assert decision("association:low>0", facts((-2.0, 0.1))) == "passed"
    assert decision("association:high>1.9", facts((-2.0, 0.1))) == "failed"


def test_the_reason_names_the_value_that_decided_and_those_without_an_interval():
    [one] = decide(parse_rules(["association:low>0.5"]), facts((0.6, 0.9), (0.7, 0.8), (None, None)))
    assert one["because"] == (
        "car against cat: 95 % interval 0.700 to 0.800; 2 of 2 are on that side; without an interval: 1"
    )


def test_a_rule_without_any_interval_is_undecided_not_passed():
    assert decision("association:low>0.5", facts((None, None))) == "undecided"
    assert decision("association:low>0.5", facts()) == "undecided"
    assert decision("bts:high<0.3", facts((0.1, 0.2), after=False)) == "undecided"
    assert decision("association:low>0.05", facts((0.1, 0.2), stage="before", after=False)) == "failed"


def test_every_measure_can_be_ruled_on():
    known = facts((0.1, 0.2), transfer=[("intra", 0.1, 0.8), ("inter", 0.1, 0.2)])
    known["associations"] += [row | {"stage": "before"} for row in known["associations"]]
    assert {decision(f"{measure}:low>0.05", known) for measure in MEASURES} == {"failed"}


# ---- words


def test_numbers_and_names_in_sentences():
    assert signed(-0.004) == "0.00"
    assert signed(-1.5, 1) == "−1.5"
    assert interval(-0.5, 1) == "95 % interval −0.50 to 1.00"
    assert interval(None, 1) == "no interval"
    assert brief("a\n b" + "c" * 200, 10) == "a bcccccc…"


@pytest.mark.parametrize(
    ("low", "high", "p_holm", "expected"),
    [
        (-1.5, -0.1, 0.2, "man lies nearer to car than woman does"),
        (-1.5, 0.1, 0.04, "man lies nearer to car than woman does"),
        (None, None, 0.04, "man lies nearer to car than woman does"),
        (-1.5, 0.1, 0.05, "no direction is shown: the interval spans 0"),
        (-1.5, 0.0, None, "no direction is shown: the interval spans 0"),
        (None, None, None, "no direction is shown: there is no interval"),
    ],
)
def test_a_direction_is_told_only_where_one_is_shown(low, high, p_holm, expected):
    row = {"X": "man", "Y": "woman", "A": "bus", "B": "car", "effect_size": -0.7}
    assert direction(row | {"low": low, "high": high, "p_holm": p_holm}) == expected
