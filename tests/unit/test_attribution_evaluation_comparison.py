"""Means, paired differences, ranks and their agreement: by hand, and what must not matter."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau, wilcoxon

from biastransfer.attribution.comparison import against, between_fills, paired_differences, summarise
from biastransfer.attribution.comparison_ranks import rank_agreement, ranks
from biastransfer.attribution.evaluation_numbers import by_objects, effect_table, ranking
from biastransfer.attribution.evaluation_study import mean_curves
from biastransfer.stats import holm, sign_flip_p


def frame(values, metric="deletion", direction="↓", metric_fill="mean", **columns):
    """Return rows of {(method, fill): values, one a picture}."""
    rows = [
        {"picture": f"p{k}", "method": method, "fill": fill, "setting": "default", "metric": metric,
         "metric_fill": metric_fill, "direction": direction, "value": value, "at_floor": None, "objects": 1}
        for (method, fill), several in values.items() for k, value in enumerate(several)
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(**columns)


def noisy(n=8, shift=0.1, seed=0):
    rng = np.random.default_rng(seed)
    base = rng.random(n)
    return {
        ("lime", "mean"): base, ("lime", "telea"): base - shift + rng.normal(0, 0.01, n),
        ("gradcam", "none"): rng.random(n), ("random_map", "none"): base + 0.5,
    }  # fmt: skip


def test_signs_are_exchanged_exactly_where_they_can_be_counted():
    assert sign_flip_p([1, 2, 3]) == 2 / 8
    assert sign_flip_p([0, 0, 0]) == 1
    assert sign_flip_p([1, -1, np.nan]) == 1
    assert np.isnan(sign_flip_p([np.nan]))
    d = np.array([0.3, -0.1, 0.7, 0.2, 0.4, -0.05])
    by_hand = np.mean(
        [abs(np.dot(s, d)) >= abs(d.sum()) - 1e-12 for s in itertools.product([1, -1], repeat=6)]
    )
    assert sign_flip_p(d) == pytest.approx(by_hand)
    ranked = np.sign(d) * np.argsort(np.argsort(np.abs(d))) + np.sign(
        d
    )  # Wilcoxon's statistic is its special case
    assert sign_flip_p(ranked) == pytest.approx(wilcoxon(d, method="exact").pvalue)
    many = np.random.default_rng(0).normal(0.3, 1, 15)
    assert sign_flip_p(many) == pytest.approx(sign_flip_p(many, seed=1), abs=0.02)
    assert sign_flip_p(many) == sign_flip_p(many)


def test_means_count_what_is_undefined_and_rows_may_come_in_any_order():
    rows = frame(
        {("lime", "mean"): [1.0, 2.0, np.nan, 6.0], ("gradcam", "none"): [5.0, np.nan, np.nan, np.nan]}
    )
    found = summarise(rows).set_index("method")
    assert found.loc["lime", ["value", "n", "undefined"]].tolist() == [3, 3, 1]
    assert found.loc["lime", "low"] < 3 < found.loc["lime", "high"]
    assert found.loc["gradcam", ["value", "n", "undefined"]].tolist() == [5, 1, 3]
    assert np.isnan(found.loc["gradcam", "low"])
    shuffled = rows.sample(frac=1, random_state=0)
    pd.testing.assert_frame_equal(summarise(shuffled).set_index("method").loc[found.index], found)


def test_the_share_at_the_saliency_metrics_floor_is_of_the_values_there_are():
    rows = frame(
        {("lime", "mean"): [1.0, 2.0, 3.0, np.nan]}, metric="saliency", at_floor=[True, False, True, None]
    )
    assert summarise(rows)["at_floor"].item() == pytest.approx(2 / 3)


def test_paired_differences_are_means_of_differences_with_their_direction():
    values = noisy()
    down, up = frame(values), frame(values, metric="insertion", direction="↑", metric_fill="blur")
    rows = pd.concat([down, up])
    found = paired_differences(rows, between_fills(rows, "telea"))
    assert found[["method", "fill", "than_fill"]].drop_duplicates().to_numpy().tolist() == [
        ["lime", "telea", "mean"]
    ]
    differences = values["lime", "telea"] - values["lime", "mean"]
    np.testing.assert_allclose(found["difference"], differences.mean())
    assert found["better"].tolist() == [True, False]
    assert (found["high"] < 0).all()
    np.testing.assert_allclose(found["p"], 2 / 2**8)
    swapped = paired_differences(rows, [(b, a) for a, b in between_fills(rows, "telea")])
    np.testing.assert_allclose(swapped["difference"], -found["difference"])
    np.testing.assert_allclose(swapped["low"], -found["high"], atol=2e-3)


def test_holm_corrects_within_a_metric_over_fills_and_pairs():
    parts = [frame(noisy(seed=k), metric_fill=fill) for k, fill in enumerate(("mean", "blur"))]
    rows = pd.concat([*parts, frame(noisy(seed=3), metric="insertion", direction="↑", metric_fill="blur")])
    found = paired_differences(rows, against(rows))
    assert len(found) == 9
    for _, part in found.groupby("metric"):
        np.testing.assert_allclose(part["p_holm"], holm(part["p"].to_numpy()))
    assert paired_differences(rows, []).empty


def test_ranks_are_of_means_and_ties_are_shared():
    rows = frame(
        {("a", "none"): [1, 3.0], ("b", "none"): [2, 2.0], ("c", "none"): [0, 1.0], ("d", "none"): [9, 9.0]}
    )
    found = ranks(rows).set_index("method")
    assert found["rank"].tolist() == [2.5, 2.5, 1, 4]
    up = ranks(rows.assign(direction="↑")).set_index("method")
    assert up["rank"].tolist() == [2.5, 2.5, 4, 1]
    assert (found["low"] <= found["rank"]).all()
    assert (found["rank"] <= found["high"]).all()
    assert found["best"].sum() == pytest.approx(1)
    assert found.loc["d", ["low", "high", "best"]].tolist() == [4, 4, 0]


def test_ranks_leave_out_maps_without_values_and_pictures_that_lack_one():
    rows = frame({("a", "none"): [1, 2, np.nan], ("b", "none"): [2, 3, 0.0], ("c", "none"): [np.nan] * 3})
    found = ranks(rows).set_index("method")
    assert found.loc["a", ["rank", "n", "undefined"]].tolist() == [1, 2, 1]
    assert found.loc["b", "rank"] == 2
    assert np.isnan(found.loc["c", "rank"])
    assert ranks(frame({("a", "none"): [np.nan]}))["n"].item() == 0


def test_rankings_agree_with_themselves_and_not_with_their_reverse():
    values = {
        (name, "none"): k + np.random.default_rng(k).normal(0, 0.01, 9) for k, name in enumerate("abcd")
    }
    turned = {key: -several for key, several in values.items()}
    rows = pd.concat([frame(values), frame(values, metric_fill="blur"), frame(turned, metric_fill="telea")])
    found = rank_agreement(rows).set_index(["first", "second"])
    assert found.loc[
        ("mean", "blur"), ["tau", "low", "high", "itself", "same_best", "reversed"]
    ].tolist() == [1, 1, 1, 1, True, 0]
    assert found.loc[("mean", "telea"), ["tau", "same_best", "reversed", "pairs"]].tolist() == [
        -1,
        False,
        6,
        6,
    ]


def test_agreement_is_kendalls_and_noise_reverses_nothing():
    rng = np.random.default_rng(1)
    one, other = ({(name, "none"): rng.random(8) for name in "abcde"} for _ in range(2))
    rows = pd.concat([frame(one), frame(other, metric_fill="blur")])
    [found] = rank_agreement(rows).to_dict("records")
    means = [[several.mean() for several in table.values()] for table in (one, other)]
    assert found["tau"] == pytest.approx(kendalltau(*means).statistic)
    assert found["low"] < found["tau"] < found["high"]
    assert found["itself"] < 0.9, "rankings of noise do not agree with themselves"
    assert found["reversed"] <= 1


def test_the_chapters_ranking_lists_all_metrics_in_the_order_of_deletion():
    values = {
        ("lime", "mean"): [0.3, 0.4],
        ("gradcam", "none"): [0.1, 0.2],
        ("random_map", "none"): [0.9, 0.8],
    }
    points = {key: [1.0, 0.0] for key in values}
    rows = pd.concat([frame(values), frame(values, metric_fill="blur"),
                      frame(points, metric="pointing_game", direction="↑", metric_fill="none")])  # fmt: skip
    found = ranking(rows, "pointing_game", "deletion")
    assert found["method"].drop_duplicates().tolist() == ["gradcam", "lime", "random_map"]
    assert found["label"].drop_duplicates().tolist() == ["Pointing game ↑", "Deletion AUC ↓"]
    assert found.query("label == 'Pointing game ↑'")["rank"].tolist() == [2, 2, 2]
    assert len(found) == 9


def test_objects_are_reported_apart_and_pictures_without_boxes_left_out():
    values = {("lime", "mean"): [1.0, 0.0, 0.0, np.nan]}
    rows = frame(values, metric="localisation", metric_fill="none").assign(objects=[1, 1, 3, 0])
    found = by_objects(rows[::-1]).set_index("objects")
    assert list(found.index) == ["one object, n = 2", "several, n = 1"]
    assert found["value"].to_dict() == {"one object, n = 2": 0.5, "several, n = 1": 0.0}
    assert found["n"].to_dict() == {"one object, n = 2": 2, "several, n = 1": 1}


def test_the_effect_table_shows_what_was_compared():
    table = effect_table(frame(noisy()), "telea")
    assert table["metric"].tolist() == ["Deletion AUC ↓"]
    assert table["difference"].item() == pytest.approx(-0.1, abs=0.01)
    assert table["95 % interval"].item().startswith("-0.1")


def test_mean_curves_stay_within_what_probabilities_can_be():
    keys = {
        "method": "lime",
        "fill": "mean",
        "setting": "default",
        "metric": "deletion",
        "metric_fill": "mean",
    }
    points = [
        {**keys, "picture": k, "fraction": x, "score": y} for k in (0, 1) for x, y in ((0, 1), (1, 0.5 * k))
    ]
    found = mean_curves(pd.DataFrame(points))
    assert found["mean"].tolist() == [1, 0.25]
    assert found["n"].tolist() == [2, 2]
    assert found.loc[1, ["low", "high"]].tolist() == [0, 1]
