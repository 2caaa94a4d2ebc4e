"""Measures on files: what the measures in memory give, in blocks, whatever the blocks' size."""

import numpy as np
import pytest

from biastransfer import association, large, similarity, transfer
from biastransfer.large.sums import _resampled

CLASSES = ["man", "woman", "random", *(f"{o}{a}" for o in ("car", "sports") for a in ("", "+man", "+woman"))]


@pytest.fixture
def stages(tmp_path):
    """Return two stages as memory maps: class → (n, 12) float32, alike in both."""
    rng = np.random.default_rng(0)
    made = []
    for stage in range(2):
        found = {}
        for k, name in enumerate(CLASSES):
            centre = np.random.default_rng(k).normal(size=12) + 0.3 * stage * rng.normal(size=12)
            file = tmp_path / f"{stage}-{k}.npy"
            np.save(file, (centre + rng.normal(size=(40 + k, 12))).astype(np.float32))
            found[name] = large.vectors(file)
        made.append(found)
    return made


ITEMS = [item for part in similarity.items(CLASSES) for item in part]


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_similarities_are_those_of_whole_arrays_at_any_block(stages, rows):
    sums = {name: large.class_sums(z, name, rows=rows) for name, z in stages[0].items()}
    expected = similarity.similarities({k: np.array(v) for k, v in stages[0].items()}, ITEMS)
    assert large.similarities(sums, ITEMS) == pytest.approx(expected, abs=1e-12)


def test_transfer_is_that_of_whole_arrays_and_its_interval_near(stages):
    whole = [{k: np.array(v) for k, v in stage.items()} for stage in stages]
    ours = large.bias_transfer(*stages, ITEMS, resamples=400)
    theirs = transfer.bias_transfer(*whole, ITEMS, resamples=2000)
    assert ours.r == theirs.r
    assert ours.p == theirs.p
    assert ours.p_exact == theirs.p_exact
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.06)
    again = large.bias_transfer(*stages, ITEMS, resamples=400)
    assert (again.low, again.high) == (ours.low, ours.high), "the same draws"


def test_resampled_sums_are_those_of_the_weights_written_out(stages):
    z = np.array(stages[0]["man"], dtype=float)
    unit = z / np.linalg.norm(z, axis=1)[:, None]
    sums = large.class_sums(stages[0]["man"], "man", resamples=3, seed=5)
    w = np.random.default_rng([5, *b"man"]).poisson(1.0, (len(z), 3)).astype(float)
    gram = unit @ unit.T
    expected = [
        sum(w[i, k] * w[j, k] * gram[i, j] for i in range(len(z)) for j in range(len(z)) if i != j)
        / (w[:, k].sum() ** 2 - (w[:, k] ** 2).sum())
        for k in range(3)
    ]
    np.testing.assert_allclose(_resampled({"man": sums}, "man"), expected, atol=1e-12)


@pytest.mark.parametrize("rows", [5, 1000])
def test_association_is_that_of_whole_arrays(stages, rows):
    sets = [stages[0][name] for name in ("man", "woman", "car", "sports")]
    theirs = association.association_test(*map(np.array, sets))
    ours = large.association_test(*sets, rows=rows)
    assert ours.effect_size == pytest.approx(theirs.effect_size, abs=1e-12)
    assert ours.p == pytest.approx(theirs.p, rel=1e-8)
    assert ours.method == theirs.method


@pytest.mark.parametrize("shift", [0.0, 0.02, -0.05])
def test_beyond_the_counted_the_null_is_normal_and_near_the_inverted_one(monkeypatch, shift):
    rng = np.random.default_rng(3)
    sets = [rng.normal(size=(n, 6)) for n in (1500, 1500, 30, 30)]
    sets[0] = sets[0] + shift * sets[2].mean(0)
    inverted = large.association_test(*sets)
    monkeypatch.setattr("biastransfer.large.partitions.COUNTED", 100)
    normal = large.association_test(*sets)
    assert (inverted.method, normal.method) == ("fourier", "normal")
    assert normal.effect_size == inverted.effect_size
    assert normal.p == pytest.approx(inverted.p, rel=2e-3)


def test_equal_scores_have_no_effect_size():
    same = np.ones((3, 2))
    found = large.association_test(same, same, np.eye(2), np.eye(2))
    assert np.isnan(found.effect_size)
    assert found.method == "none"


def test_what_cannot_be_measured_is_named_by_its_row_in_the_whole(tmp_path):
    z = np.ones((50, 3))
    z[37, 1] = np.nan
    with pytest.raises(ValueError, match=r"man: every picture needs a finite embedding.*row 37 has a NaN"):
        large.class_sums(z, "man", rows=10)
    with pytest.raises(ValueError, match="man must hold at least one picture; got none"):
        large.class_sums(np.ones((0, 3)), "man")
    with pytest.raises(
        ValueError, match=r"class 'man' must hold the same pictures.*got 50 before and 49 after"
    ):
        large.bias_transfer({"man": z}, {"man": z[1:]}, ["man"])
    with pytest.raises(ValueError, match="same number of columns"):
        large.association_test(z[:5], z[:5], z[:5], z[:5, :2])
    with pytest.raises(FileNotFoundError, match=r"there is no file .*gone\.npy"):
        large.vectors(tmp_path / "gone.npy")


@pytest.mark.parametrize(
    "content", [b"", b"hello", np.array(["a"]), np.ones(3), np.array([{}], dtype=object)]
)
def test_what_is_no_array_of_vectors_is_refused(tmp_path, content):
    file = tmp_path / "x.npy"
    file.write_bytes(content) if isinstance(content, bytes) else np.save(file, content)
    with pytest.raises(ValueError, match=r"x\.npy must be a(n array| whole \.npy) of numbers"):
        large.vectors(file)
