"""The probe of what is left: against scikit-learn, against what must be found and what cannot be."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score

from biastransfer.attribution import ridge_probe
from biastransfer.attribution.removal_probe import COLUMNS, draw_pairs, removal_signal
from biastransfer.attribution.ridge_probe import probe_auc
from biastransfer.backbones import load_backbone


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    vectors = rng.normal(size=(60, 90))
    vectors[:, :5] += 0.6 * labels[:, None]
    return vectors, labels


def test_scores_are_scikit_learns_ridge(data):
    vectors, labels = data
    train, test = np.arange(60) < 45, np.arange(60) >= 45
    found = ridge_probe._ridge_scores(vectors[train], labels[train], vectors[test], 0.1)
    centre, spread = vectors[train].mean(0), vectors[train].std(0)
    scaled = (vectors - centre) / spread
    alpha = 0.1 * (scaled[train] ** 2).sum(1).mean()
    ridge = Ridge(alpha=alpha).fit(scaled[train], np.where(labels[train] == 1, 1, -1))
    np.testing.assert_allclose(found, ridge.predict(scaled[test]) - ridge.intercept_, atol=1e-10)


def test_auc_is_the_mean_over_folds_of_equal_size(data):
    vectors, labels = data
    fold = ridge_probe._folds(labels, np.arange(60), 5, 3)
    assert [np.bincount(labels[fold == k]).tolist() for k in range(5)] == [[6, 6]] * 5
    expected = []
    for k in range(5):
        test = fold == k
        scores = ridge_probe._ridge_scores(vectors[~test], labels[~test], vectors[test], 0.1)
        expected.append(roc_auc_score(labels[test], scores))
    found = probe_auc(vectors, labels, seed=3)
    assert found.auc == pytest.approx(np.mean(expected), abs=1e-12)
    assert found.low < found.auc < found.high
    assert found.n == 60


def test_nothing_to_find_and_everything_to_find():
    labels, rng = np.arange(80) % 2, np.random.default_rng(1)
    nothing = [probe_auc(rng.normal(size=(80, 200)), labels, seed=k).auc for k in range(20)]
    assert abs(np.mean(nothing) - 0.5) < 4 * np.std(nothing) / np.sqrt(20)
    assert probe_auc(np.ones((80, 3)), labels).auc == 0.5  # all alike: every comparison is a tie
    perfect = probe_auc(np.outer(labels, np.ones(4)), labels)
    assert (perfect.auc, perfect.low, perfect.high) == (1.0, 1.0, 1.0)


def test_groups_are_never_on_both_sides():
    """Each group has a code of its own and both labels at random: only a leak could tell them apart."""
    rng = np.random.default_rng(2)
    codes, labels = (
        np.repeat(rng.normal(size=(40, 300)), 3, 0),
        np.repeat(rng.permutation(np.arange(40) % 2), 3),
    )
    codes += 0.01 * rng.normal(size=codes.shape)
    groups = np.repeat(np.arange(40), 3)
    assert probe_auc(codes, labels).auc > 0.95  # without groups the codes give the labels away
    assert 0.2 < probe_auc(codes, labels, groups).auc < 0.8


def test_scale_shift_and_relabelled_groups_change_nothing(data):
    vectors, labels = data
    found = probe_auc(vectors, labels)
    moved = probe_auc(vectors * 7 + np.arange(90), labels, np.arange(60) + 100)
    assert moved.auc == pytest.approx(found.auc, abs=1e-12)
    swapped = probe_auc(vectors, 1 - labels, seed=0)
    assert 0.5 < swapped.auc <= 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"vectors": np.zeros((59, 3))},
            r"one label and one group a row; got \(59, 3\), \(60,\) and \(60,\)",
        ),
        ({"vectors": np.full((60, 2), np.nan)}, "vectors must be finite"),
        ({"labels": np.arange(60) % 3}, "got 20 zeros and 20 ones of 60, folds 5"),
        ({"labels": (np.arange(60) < 4).astype(int)}, "got 56 zeros and 4 ones of 60"),
        ({"folds": 1}, "folds at least 2"),
        ({"groups": np.arange(60) % 2}, "each class must be in two folds or more"),
    ],
)
def test_wrong_input_is_an_error(data, change, message):
    vectors, labels = data
    given = {"vectors": vectors, "labels": labels, **change}
    with pytest.raises(ValueError, match=message):
        probe_auc(**given)


def test_pairs_are_twins_and_empty_scenes_of_twins_are_the_same_picture():
    pairs = draw_pairs("gender", 3, seed=1)
    assert pairs.labels.tolist() == [0, 1] * 3
    assert pairs.groups.tolist() == [0, 0, 1, 1, 2, 2]
    for k in range(0, 6, 2):
        assert np.array_equal(pairs.absent[k], pairs.absent[k + 1])
        assert not np.array_equal(pairs.present[k], pairs.present[k + 1])
    changed = (pairs.present != pairs.absent).any(-1)
    assert changed[pairs.masks].mean() > 0.9
    assert np.array_equal(draw_pairs("gender", 1, seed=1).present, pairs.present[:2])
    with pytest.raises(ValueError, match="what must be one of object, gender; got 'age'"):
        draw_pairs("age", 2)


def test_removal_signal_finds_nothing_where_nothing_is():
    backbone = load_backbone("thumbnail")
    perfect = make_perfect(draw_pairs("gender", 10, seed=0), backbone)
    table = removal_signal(backbone, ["black", perfect], what="gender", n=10)
    assert tuple(table.columns) == COLUMNS
    value = table.set_index(["fill", "pictures"])["auc"]
    assert value["nothing", "absent"] == 0.5  # twins without the person are one picture
    assert value["perfect", "mask only"] == 0.5
    assert value["nothing", "present"] > 0.5
    assert table["n"].tolist() == [20] * 6
    with pytest.raises(ValueError, match="at least 10 pairs of scenes; got 9"):
        removal_signal(backbone, ["black"], n=9)


def make_perfect(pairs, backbone):
    """Return a fill that looks up what is behind: for a picture without the person, the picture itself."""
    import torch

    known = torch.stack([backbone.transform.pixels(image) for image in pairs.absent])

    def perfect(images, masks):
        distance = ((images[:, None] - known) ** 2 * ~masks[:, None]).sum((2, 3, 4))
        return known[distance.argmin(1)]

    return perfect
