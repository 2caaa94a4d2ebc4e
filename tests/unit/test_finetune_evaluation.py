import warnings

import numpy as np
import pytest

from biastransfer.finetune.evaluation import (
    average_precision,
    binary_cross_entropy,
    chance_map,
    chance_micro_f1,
    mean_average_precision,
    micro_f1,
    sigmoid,
)


def _drawn(seed, pictures=300, classes=9, decimals=None, prevalence=0.2):
    rng = np.random.default_rng(seed)
    labels = (rng.random((pictures, classes)) < prevalence).astype(float)
    scores = 1 / (1 + np.exp(-(rng.normal(size=labels.shape) + labels - 1)))
    return labels, scores if decimals is None else scores.round(decimals)


@pytest.mark.parametrize("decimals", [None, 2, 1, 0], ids=["no ties", "few ties", "many ties", "two scores"])
@pytest.mark.parametrize("seed", range(5))
def test_average_precision_equals_scikit_learn(seed, decimals):
    metrics = pytest.importorskip("sklearn.metrics")
    labels, scores = _drawn(seed, decimals=decimals)
    theirs = [metrics.average_precision_score(labels[:, k], scores[:, k]) for k in range(labels.shape[1])]
    macro, ours = mean_average_precision(labels, scores)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
    assert macro == pytest.approx(metrics.average_precision_score(labels, scores, average="macro"), abs=1e-12)


@pytest.mark.parametrize("decimals", [None, 1])
def test_micro_f1_equals_scikit_learn(decimals):
    metrics = pytest.importorskip("sklearn.metrics")
    for seed in range(5):
        labels, scores = _drawn(seed, decimals=decimals)
        assert micro_f1(labels, scores) == metrics.f1_score(labels, scores >= 0.5, average="micro")


def test_loss_equals_scikit_learn_and_torch():
    torch = pytest.importorskip("torch")
    labels, scores = _drawn(0)
    logits = np.log(scores / (1 - scores))
    theirs = torch.nn.functional.binary_cross_entropy_with_logits(torch.tensor(logits), torch.tensor(labels))
    assert binary_cross_entropy(labels, logits) == pytest.approx(float(theirs), abs=1e-14)
    np.testing.assert_allclose(sigmoid(logits), scores, rtol=1e-12)
    assert sigmoid([[-1e4, 1e4]]).tolist() == [[0.0, 1.0]]


def test_average_precision_by_hand():
    # ranked: hit, miss, hit, miss → precision 1 at recall ½ and ⅔ at recall 1
    assert average_precision([[1], [0], [1], [0]], [[4], [3], [2], [1]])[0] == pytest.approx((1 + 2 / 3) / 2)


def test_constant_scores_have_the_prevalence_which_is_chance():
    labels, _ = _drawn(1)
    macro, per_class = mean_average_precision(labels, np.full(labels.shape, 0.3))
    np.testing.assert_allclose(per_class, labels.mean(axis=0), atol=1e-15)
    assert macro == pytest.approx(chance_map(labels), abs=1e-15)


def test_perfect_and_worst_rankings():
    labels, _ = _drawn(2)
    assert mean_average_precision(labels, labels)[0] == 1
    positives = int(labels[:, 0].sum())
    first = len(labels) - positives
    worst = np.mean([k / (first + k) for k in range(1, positives + 1)])
    reverse = -labels[:, :1] + np.arange(len(labels))[:, None] * 1e-9
    assert average_precision(labels[:, :1], reverse)[0] == pytest.approx(worst, abs=1e-12)


def test_order_of_pictures_and_increasing_functions_do_not_matter():
    labels, scores = _drawn(3, decimals=1)
    shuffled = np.random.default_rng(0).permutation(len(labels))
    reference = average_precision(labels, scores)
    np.testing.assert_allclose(
        average_precision(labels[shuffled], scores[shuffled]), reference, rtol=0, atol=1e-15
    )
    np.testing.assert_array_equal(average_precision(labels, np.exp(3 * scores)), reference)


def test_class_without_positives_is_nan_and_not_averaged():
    labels, scores = _drawn(4)
    labels[:, 2] = 0
    macro, per_class = mean_average_precision(labels, scores)
    assert np.isnan(per_class[2])
    assert macro == pytest.approx(np.delete(per_class, 2).mean(), abs=1e-15)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(mean_average_precision(labels[:, 2:3], scores[:, 2:3])[0])
        assert np.isnan(chance_map(labels[:, 2:3]))


def test_chance_micro_f1_is_the_best_of_all_constant_answers():
    """Against every set of classes said of every picture, unknown labels included."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        labels = (rng.random((40, 7)) < rng.random(7) * 0.6).astype(float)
        labels[rng.random(labels.shape) < 0.2 * (seed % 2)] = np.nan
        sets = [np.array([(k >> c) & 1 for c in range(7)], float) for k in range(1, 2**7)]
        values = [micro_f1(labels, np.tile(chosen, (40, 1))) for chosen in sets]
        assert chance_micro_f1(labels) == pytest.approx(np.nanmax(values), abs=1e-12)
    assert np.isnan(chance_micro_f1([[0.0, 0.0]]))


def test_unknown_labels_count_as_absent_from_the_file():
    labels, scores = _drawn(5, decimals=1)
    gone = np.random.default_rng(5).random(len(labels)) < 0.3
    masked = labels.copy()
    masked[gone] = np.nan
    kept = ~gone
    np.testing.assert_allclose(
        average_precision(masked, scores), average_precision(labels[kept], scores[kept]), atol=1e-15
    )
    assert micro_f1(masked, scores) == micro_f1(labels[kept], scores[kept])
    logits = np.log((scores + 0.01) / (1.01 - scores))
    assert binary_cross_entropy(masked, logits) == binary_cross_entropy(labels[kept], logits[kept])
    assert chance_map(masked) == pytest.approx(chance_map(labels[kept]), abs=1e-15)


def test_undefined_values_are_nan():
    assert np.isnan(micro_f1([[0, 0]], [[0.1, 0.2]]))
    assert micro_f1([[1, 0]], [[0.1, 0.2]]) == 0
    assert np.isnan(binary_cross_entropy([[np.nan]], [[1.0]]))


@pytest.mark.parametrize(
    ("labels", "scores", "message"),
    [
        (
            [[1, 0]],
            [[0.1]],
            r"must both be \(pictures, classes\) and of one shape; got \(1, 2\) and \(1, 1\)",
        ),
        (np.zeros((0, 3)), np.zeros((0, 3)), "at least one picture and one class"),
        ([[2]], [[0.5]], "labels must be 0, 1 or NaN"),
        ([[1]], [[np.nan]], "scores must be numbers; got 1 NaN"),
    ],
)
def test_bad_input_is_explained(labels, scores, message):
    with pytest.raises(ValueError, match=message):
        average_precision(labels, scores)


def test_logits_given_for_probabilities_are_refused():
    with pytest.raises(
        ValueError, match=r"micro-F1 needs probabilities in 0..1; got -2..3\. Take the sigmoid"
    ):
        micro_f1([[1, 0]], [[3.0, -2.0]])
