"""Similarities against hand-worked values, a plain double loop, and the papers' item lists."""

from collections import namedtuple
from itertools import permutations

import numpy as np
import pytest

import simulations
from biastransfer.similarity import inter_class, intra_class, items, similarities, tabulate

Condition = namedtuple("Condition", "backbone stage target seed")
COCO = ["man", "woman", "random", "stop sign"]
COCO += [f"{o}{a}" for o in ("car", "refrigerator", "surfboard") for a in ("", "+man", "+woman")]


def cosine(a, b):
    return a @ b / np.sqrt((a @ a) * (b @ b))


@pytest.fixture
def z():
    return np.random.default_rng(0).normal(size=(9, 6)) + 0.4


def test_intra_class_by_hand():
    assert intra_class([[1, 0], [0, 1], [2, 0]]) == pytest.approx(1 / 3)
    assert intra_class([[1, 0], [-3, 0]]) == pytest.approx(-1)


def test_similarities_are_the_mean_of_all_pairs(z):
    other = np.random.default_rng(1).normal(size=(4, 6))
    assert intra_class(z) == pytest.approx(np.mean([cosine(a, b) for a, b in permutations(z, 2)]), abs=1e-12)
    assert inter_class(z, other) == pytest.approx(
        np.mean([cosine(a, b) for a in z for b in other]), abs=1e-12
    )


@pytest.mark.parametrize("method", ["algorithm", "released"])
def test_samplers_converge_to_the_exact_value(z, method):
    other = np.random.default_rng(1).normal(size=(7, 6)) + 0.2
    many = {"method": method, "iterations": 20_000, "seed": 3}
    assert intra_class(z, **many) == pytest.approx(intra_class(z), abs=0.01)
    assert inter_class(z, other, **many) == pytest.approx(inter_class(z, other), abs=0.01)
    assert intra_class(z, method=method, seed=1) == intra_class(z, method=method, seed=1)
    assert intra_class(z, method=method, seed=1) != intra_class(z, method=method, seed=2)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_released_sampler_takes_small_classes(z, n):
    assert inter_class(z[:n], z, method="released") == pytest.approx(inter_class(z[:n], z), abs=0.2)
    assert np.isfinite(intra_class(z[:n], method="released"))


def test_rotation_scale_and_order_change_nothing(z):
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(6, 6)))[0]
    moved = (z @ turn * np.random.default_rng(3).uniform(0.1, 9, (9, 1)))[::-1]
    assert intra_class(moved) == pytest.approx(intra_class(z), abs=1e-12)
    assert inter_class(moved, moved[:3]) == pytest.approx(inter_class(z, z[-3:]), abs=1e-12)
    assert inter_class(z * 1e-190, z[:3] * 1e190) == pytest.approx(inter_class(z, z[:3]), abs=1e-12)


def test_one_picture_has_no_intra_class_similarity(z):
    assert np.isnan(intra_class(z[:1]))
    assert inter_class(z[:1], z[1:2]) == pytest.approx(cosine(z[0], z[1]))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.empty((0, 4)), r"z must hold at least one picture; got shape \(0, 4\)"),
        ([], r"z must hold at least one picture"),
        ([1.0, 2.0], r"z must be a 2-D array \(pictures, dimensions\); got shape \(2,\)"),
        ([[1, 0], [np.nan, 1]], "row 1 has a NaN or infinite embedding"),
        ([[1, 0], [np.inf, 1]], "row 1 has a NaN or infinite embedding"),
        ([[0, 0], [1, 1]], "row 0 has an embedding of zero length"),
    ],
)
def test_unusable_embeddings_are_named(bad, message):
    with pytest.raises(ValueError, match=message):
        intra_class(bad)


def test_options_and_columns_are_checked(z):
    with pytest.raises(ValueError, match="unknown method 'fast'; known: exact, algorithm, released"):
        intra_class(z, method="fast")
    with pytest.raises(ValueError, match="iterations must be a whole number of at least 1; got 0"):
        inter_class(z, z, method="algorithm", iterations=0)
    with pytest.raises(
        ValueError, match=r"z1 and z2 must have the same number of columns; got \(9, 6\) and \(9, 5\)"
    ):
        inter_class(z, z[:, :5])


def test_items_are_the_papers():
    intra, inter = items(COCO)
    assert intra == ["man", "woman", "random", "stop sign", "car", "refrigerator", "surfboard"]
    objects = ["car", "refrigerator", "surfboard"]
    assert inter == [i for o in objects for i in (f"{o}+man|{o}", f"{o}+woman|{o}", f"{o}|random")]
    open_images = COCO[:4] + [
        f"{o}{a}" for o in ("car", "sports", "fashion", "mammal") for a in ("", "+man", "+woman")
    ]
    assert [len(part) for part in items(open_images)] == [8, 12]


def test_similarities_name_a_missing_class_and_the_pictures(z):
    assert similarities({"a": z, "b": z[:4]}, ["b", "a|b"]) == {
        "b": pytest.approx(intra_class(z[:4])),
        "a|b": pytest.approx(inter_class(z, z[:4])),
    }
    with pytest.raises(ValueError, match=r"'c' is not among \['a'\]"):
        similarities({"a": z}, ["a|c"])
    with pytest.raises(ValueError, match="class 'a' must hold at least one picture"):
        similarities({"a": z[:0]}, ["a"])
    with pytest.raises(ValueError, match=r"class 'a'.*row 2 has an embedding of zero length"):
        similarities({"a": z * (np.arange(9) != 2)[:, None]}, ["a"])


def test_tables_carry_value_interval_and_reason(z):
    vectors = {"car": z, "car+man": z[:1] + 1, "random": z[:3] - 1}
    table = tabulate({Condition("net", "pretrained", "", 0): vectors}, "set", "run").set_index("item")
    assert list(table.index) == ["car", "random", "car+man|car", "car|random"]
    assert table.loc["car", "value"] == pytest.approx(intra_class(z))
    deleted = [intra_class(np.delete(z, i, axis=0)) for i in range(9)]
    half = 2.306004 * np.sqrt(8 / 9 * np.sum((deleted - np.mean(deleted)) ** 2))  # t(.975, 8)
    assert table.loc["car", "high"] - table.loc["car", "value"] == pytest.approx(half, rel=1e-6)
    assert table.loc["car|random", "low"] < table.loc["car|random", "value"] < table.loc["car|random", "high"]
    assert np.isnan(table.loc["car+man|car", "low"])
    assert table.loc["car+man|car", "reason"] == "an interval needs 2 pictures a class; got 1"
    assert table.loc["car|random", "n"] == 12


@pytest.mark.slow
@pytest.mark.parametrize("n", [6, 12, 20])
def test_intervals_cover(n):
    """Jackknife-t covers the similarities of the population in about 95 % of simulated classes."""
    for hits in simulations.similarities_covered(n, 600, seed=n):
        assert 0.925 <= np.mean(hits) <= 0.99


@pytest.mark.parametrize("z", [np.ones((3, 2)) + 1j, np.array([["a", "b"], ["c", "d"]])])
def test_only_real_numbers_are_embeddings(z):
    with pytest.raises(ValueError, match="z must hold real numbers; got an array of"):
        intra_class(z)
