"""Measures of a planted bias: worlds whose answer is known, every number computed a second way."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from biastransfer import planted, plots
from biastransfer.association import association_test, effect_size
from biastransfer.planted.experiment import FIRST, PRETRAINED
from biastransfer.planted.measures import draw, look, measure, whole
from biastransfer.planted.rates import alarm_rates, outside, rate, trend_rates
from biastransfer.planted.response import isotonic_share, response, slope
from biastransfer.planted.verdicts import NOT_FOUND
from biastransfer.similarity import inter_class, items, similarities
from biastransfer.stats import jackknife_t
from biastransfer.transfer import bias_transfer_score

OBJECTS = {"car": 1, "cat": 1, "handbag": -1, "dog": -1}


def world(bias, n=12, noise=0.05, seed=0):
    """Embeddings in which objects of one group lie ``bias`` along the axis from women to men."""
    rng, axes = np.random.default_rng(seed), np.eye(8)
    gender, centres = axes[0], {"man": axes[0] + axes[1], "woman": axes[1] - axes[0], "random": axes[2]}
    for k, (name, sign) in enumerate(OBJECTS.items()):
        thing = axes[3 + k] + 0.1 * k * axes[1]
        centres[name] = thing + sign * bias * gender
        for who, side in (("man", 1), ("woman", -1)):
            centres[f"{name}+{who}"] = thing + axes[1] + side * gender + sign * bias * gender
    return {name: centre + noise * rng.standard_normal((n, 8)) for name, centre in centres.items()}


def measured(before, after, weights=None):
    return measure(look(before), look(after), weights or whole(after))


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [("none", 0, 0), ("kept", 0.4, 0.4), ("added", 0, 0.4), ("flipped", 0.4, -0.4), ("removed", 0.4, 0)],
)
def test_measures_tell_what_became_of_a_bias(name, before, after):
    """Directions for association, difference and probe; a score of 1 where nothing changed."""
    a, b = world(before, noise=1e-3), world(after, noise=1e-3)  # the same pictures
    got = measured(a, b)
    sign = np.sign(after)
    if sign:
        assert np.sign(got["association"].value[0]) == sign
        assert got["association"].alarm[0]
        assert got["leakage"].value[0] == (1 + sign) / 2
    assert got["difference"].value[0] == pytest.approx(after * got_per_bias(abs(after)), abs=5e-3)
    assert got["difference"].alarm[0] == bool(sign)
    score = got["transfer_inter"].value[0]
    assert score == 1 if before == after else score < 1


def test_a_transfer_score_is_blind_to_the_direction_of_what_was_added():
    """Exchanging men and women leaves a world without bias as it is, and turns one bias into the other."""
    none, plus, minus = (world(bias, noise=0) for bias in (0, 0.3, -0.3))
    scores = [measured(none, after)["transfer_inter"].value[0] for after in (plus, minus)]
    assert scores[0] == pytest.approx(scores[1])
    signs = [np.sign(measured(none, after)["difference"].value[0]) for after in (plus, minus)]
    assert signs == [1, -1]


def got_per_bias(bias):
    """Similarity with a man minus with a woman per unit of bias, from the centres by hand."""
    if not bias:
        return 1.0
    differences = []
    for k in range(4):
        thing = np.array([bias, 0.1 * k, 1.0])
        man, woman = (np.array([side + bias, 1 + 0.1 * k, 1.0]) for side in (1, -1))
        unit = [v / np.linalg.norm(v) for v in (thing, man, woman)]
        differences.append(unit[0] @ unit[1] - unit[0] @ unit[2])
    return np.mean(differences) / bias


def test_every_measure_agrees_with_the_book_s_functions():
    a, b = world(0.1, seed=2, noise=0.4), world(0.2, seed=3, noise=0.4)
    got = measured(a, b)
    plus, minus = (np.concatenate([b[o] for o, s in OBJECTS.items() if s == sign]) for sign in (1, -1))
    test = association_test(b["man"], b["woman"], plus, minus, alternative="two-sided")
    assert got["association"].value[0] == pytest.approx(test.effect_size)
    assert got["association"].p[0] == pytest.approx(test.p, abs=0.005)
    by_hand = [
        sign / 4 * (inter_class(b[f"{o}+man"], b[o]) - inter_class(b[f"{o}+woman"], b[o]))
        for o, sign in OBJECTS.items()
    ]
    assert got["difference"].value[0] == pytest.approx(sum(by_hand))
    intra, inter = items(b)
    for name, chosen in (("transfer_inter", inter), ("transfer_intra", intra)):
        r = bias_transfer_score(similarities(a, chosen), similarities(b, chosen)).r
        assert got[name].value[0] == pytest.approx(r)


def test_the_interval_of_the_difference_is_the_jackknife():
    b = world(0.2, n=7, seed=5, noise=0.5)

    def contrast(z):
        return sum(
            sign / 4 * (inter_class(z[f"{o}+man"], z[o]) - inter_class(z[f"{o}+woman"], z[o]))
            for o, sign in OBJECTS.items()
        )

    sets = [name for o in OBJECTS for name in (o, f"{o}+man", f"{o}+woman")]
    without = [[contrast(b | {name: np.delete(b[name], k, 0)}) for k in range(7)] for name in sets]
    got = measured(b, b)["difference"]
    assert (got.low[0], got.high[0]) == pytest.approx(jackknife_t(contrast(b), *without))


def test_the_probe_s_area_and_interval_by_counting():
    b = world(0.15, n=9, seed=6, noise=0.5)
    got = measured(b, b)["leakage"]
    pooled = np.concatenate([b[name] for name in ("man", "woman", *OBJECTS)])
    centre, spread = pooled.mean(0), pooled.std(0)
    train = (np.concatenate([b["man"], b["woman"]]) - centre) / spread
    strength = 0.1 * (train**2).sum(1).mean()
    truth = np.repeat([1.0, -1.0], 9)
    beta = np.linalg.solve(train.T @ train + strength * np.eye(8), train.T @ truth)  # the primal solution
    scores = {o: (b[o] - centre) / spread @ beta for o in OBJECTS}
    plus, minus = (np.concatenate([scores[o] for o, s in OBJECTS.items() if s == sign]) for sign in (1, -1))
    right = np.array([[float(p > m) for m in minus] for p in plus])
    assert got.value[0] == pytest.approx(right.mean())
    variance = right.mean(1).var(ddof=1) / 18 + right.mean(0).var(ddof=1) / 18
    half = stats.t.ppf(0.975, 17) * np.sqrt(variance)
    assert (got.low[0], got.high[0]) == pytest.approx((right.mean() - half, right.mean() + half))


def test_a_draw_is_the_pictures_repeated():
    b = world(0.2, seed=7, noise=0.5)
    weights = draw({name: 12 for name in b}, 6, 3, seed=1)
    assert all((w.sum(1) == 6).all() for w in weights.values())
    assert any((weights["car+man"] != weights["car+woman"]).ravel())  # twins are drawn apart
    got = measured(b, b, weights)
    for k in range(3):
        z = {name: np.repeat(b[name], weights[name][k].astype(int), axis=0) for name in b}
        plus, minus = (np.concatenate([z[o] for o, s in OBJECTS.items() if s == sign]) for sign in (1, -1))
        assert got["association"].value[k] == pytest.approx(effect_size(z["man"], z["woman"], plus, minus))
        again = measured(z, z)
        for end in ("value", "low", "high"):
            one, other = (getattr(x["difference"], end) for x in (got, again))
            assert one[k] == pytest.approx(other[0])


def test_what_cannot_be_measured_is_refused():
    b = world(0)
    with pytest.raises(ValueError, match=r"every class needs pictures; cat has none. Draw some."):
        look(b | {"cat": np.empty((0, 8))})
    with pytest.raises(ValueError, match="needs an object of each planted group; got car, cat"):
        look({name: z for name, z in b.items() if "handbag" not in name and "dog" not in name})
    with pytest.raises(ValueError, match="at least 2 pictures a class; got 1"):
        draw({"man": 4}, 1, 3)


def test_false_alarms_against_other_networks_come_as_often_as_promised():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((6, 20_000)) * 3 + 7
    alarms = outside(values, np.ones(6, bool))
    assert alarms.mean() == pytest.approx(0.05, abs=0.004)
    planted_one = np.vstack([values, values[:1] + 1000])
    assert outside(planted_one, np.arange(7) < 6)[6].all()
    assert not outside(values[:2], np.ones(2, bool)).any()  # one other network shows no spread


def test_outside_by_hand():
    """Others 0, 1, 2: mean 1, sd 1, reach 4.303 · √(4/3) = 4.968."""
    values = np.array([[0.0] * 2, [1.0] * 2, [2.0] * 2, [5.96, 5.97]])
    assert outside(values, np.array([True, True, True, False]))[3].tolist() == [False, True]


def test_rates_are_over_networks_not_draws():
    few, many = (np.repeat([[True, False], [False, False], [True, True]], k, axis=1) for k in (1, 500))
    assert rate(few) == pytest.approx(rate(many))
    assert rate(few)[0] == 0.5
    assert np.isnan(rate(np.ones((3, 4), bool))[1:]).all()


def test_alarms_are_counted_by_the_size_of_the_dose():
    networks = pd.DataFrame({"dose": [0, 1, -1, 1], "shuffled": [False, False, False, True]})
    networks["null"] = networks["dose"].eq(0) | networks["shuffled"]
    alarms = np.array([[1, 0], [1, 1], [1, 0], [0, 0]], bool)
    got = alarm_rates(networks, {"association": np.zeros((4, 2))}, {"association": alarms}, 6)
    own = got[got["rule"] == "pictures"].set_index("size")
    assert own["rate"].to_dict() == {0.0: 0.25, 1.0: 0.75}
    assert own["networks"].to_dict() == {0.0: 2, 1.0: 2}


def test_slope_is_least_squares_within_seeds():
    x, y = np.array([-1, -0.5, 0, 0.5, 1]), np.array([1.0, 0.2, 0.5, 2, 2.2])
    plain = stats.linregress(x, y)
    half = stats.t.ppf(0.975, 3) * plain.stderr
    assert slope(x, [0] * 5, y) == pytest.approx(
        (plain.slope, plain.slope - half, plain.slope + half, plain.pvalue)
    )
    shifted = np.concatenate([y, y + 100])  # another level of the second seed changes nothing but n
    assert slope(np.tile(x, 2), np.repeat([0, 1], 5), shifted)[0] == pytest.approx(plain.slope)
    assert np.isnan(slope([1, 1], [0, 0], [1.0, 2.0])).all()
    assert np.isnan(slope([0, 1], [0, 0], [1.0, 2.0])[1:]).all()


def test_isotonic_share_by_hand():
    assert isotonic_share([0, 1, 2], [1, 5, 6]) == 1
    assert isotonic_share([0, 1, 2], [6, 5, 1]) == 1  # falling is monotone too
    # rising fit of 0, 3, 1 is 0, 2, 2: residual 2 of a total of 14/3
    assert isotonic_share([0, 1, 2], [0, 3, 1]) == pytest.approx(1 - 2 / (14 / 3))


def frame_of(values, measures=("association",)):
    doses = [-1.0, 0.0, 1.0] * 2
    rows = [
        {"measure": m, "dose": d, "seed": k // 3, "shuffled": False, "null": d == 0, "value": v}
        for m in measures
        for k, (d, v) in enumerate(zip(doses, values))
    ]
    return pd.DataFrame(rows)


def test_response_reads_scores_against_the_size_of_the_dose():
    values = [0.5, 0.9, 0.5, 0.6, 1.0, 0.6]
    found = {m: np.array(values)[:, None] * [1.0, 2.0] for m in ("association", "transfer_inter")}
    got = response(frame_of(values, found), found).set_index("measure")
    assert got.loc["association", "slope"] == pytest.approx(0)
    assert got.loc["transfer_inter", "slope"] == pytest.approx(-0.4)
    assert got.loc["transfer_inter", "picture_low"] == pytest.approx(-0.8, abs=0.1)
    assert got.loc["transfer_inter", "at_zero"] == pytest.approx(0.95)
    assert got.loc["transfer_inter", "steps"] == pytest.approx(-0.4 / np.std([0.9, 1.0], ddof=1))


def test_a_trend_is_found_where_there_is_one():
    rng = np.random.default_rng(1)
    doses = np.linspace(-1, 1, 7)
    networks = pd.DataFrame({"dose": np.tile(doses, 2), "seed": np.repeat([0, 1], 7), "shuffled": False})
    noise = rng.standard_normal((14, 2000))
    values = {"flat": noise, "steep": noise + 8 * networks["dose"].to_numpy()[:, None]}
    got = trend_rates(networks, values, 12, {"all": doses}).set_index(["measure", "seeds"])
    assert got.loc[("steep", 2), "power"] == 1
    assert got.loc[("flat", 2), ["power", "false_alarm"]].tolist() == pytest.approx([0.05, 0.05], abs=0.015)
    assert got.loc[("steep", 2), "false_alarm"] < 0.1


def verdict_tables(false_alarm, power):
    rates = [
        {"pictures": n, "measure": m, "rule": rule, "size": size, "rate": value, "low": 0, "high": 1}
        for n in (6, 12, 150)
        for m in ("association", "transfer_inter")
        for rule in ("pictures", "networks")
        for size, value in ((0.0, false_alarm[rule]), (1.0, power))
    ]
    ends = {"low": 0.1, "high": 0.5, "steps": 3.0, "p_spearman": 0.01}
    return {
        "planted_rates": pd.DataFrame(rates),
        "planted_response": pd.DataFrame(
            [{"measure": m, "slope": 0.3, **ends} for m in ("association", "transfer_inter")]
        ),
        "planted_trend": pd.DataFrame(
            [{"pictures": 150, "measure": "association", "grid": "all", "power": power}]
        ),
    }


def test_verdicts_follow_from_the_numbers():
    loud = {"pictures": 0.5, "networks": 0.04}
    got = planted.verdicts(verdict_tables(loud, 0.9)).set_index("measure")
    assert got.loc["association", "use"] == "networks trained alike, few pictures; a trend over doses"
    assert got.loc["association", ["few", "many"]].tolist() == [12, 150]
    assert got.loc["transfer_inter", "use"].endswith("how much of an order is kept, not which bias")
    assert planted.verdicts(verdict_tables(loud, 0.3)).loc[0, "use"] == NOT_FOUND


@pytest.mark.parametrize(("counts", "few"), [([6, 12], 6), ([12], 12), ([6, 9, 12, 150], 12), ([20, 50], 20)])
def test_few_and_many_pictures_are_told_apart(counts, few):
    made = verdict_tables({"pictures": 0.5, "networks": 0.04}, 0.9)
    parts = [made["planted_rates"].query("pictures == 6").assign(pictures=n) for n in counts]
    rates = pd.concat(parts)
    trend = made["planted_trend"].assign(pictures=counts[-1])
    got = planted.verdicts(made | {"planted_rates": rates, "planted_trend": trend}).iloc[0]
    assert (got["few"], got["many"]) == (few, counts[-1])


def test_constructions_take_before_from_the_network_they_went_on_from():
    keys = {"run": "x", "backbone": "b", "labels": "gender", "how": "stage", "shuffled": False, "seed": 3}
    scores = dict.fromkeys(("difference", "leakage", "transfer_inter", "transfer_intra"), 0.9)
    plan = [("first", "pretrained", 1.0, 0.7, False), ("first", "pretrained", 0.0, 0.1, False),
            ("flipped", 1.0, -1.0, -0.6, True)]  # fmt: skip
    rows = [
        {**keys, "construction": c, "start": s, "dose": d, "measure": m, "value": v, "low": 0, "high": 1,
         "alarm": alarm}
        for c, s, d, value, alarm in plan
        for m, v in {"association": value, **scores}.items()
    ]  # fmt: skip
    got = planted.constructions(pd.DataFrame(rows))
    assert got[["construction", "d_before", "d_after"]].to_numpy().tolist() == [["flipped", 0.7, -0.6]]
    assert got["read_as"].tolist() == ["adopted"]


def test_the_change_of_d_finds_what_a_second_finetuning_did_and_nothing_where_it_did_nothing():
    """The same pictures in worlds of known bias; another draw of pictures' noise is no change of bias."""
    doses, bias = (-1.0, 0.0, 1.0), 0.3
    plan = [(PRETRAINED, dose, FIRST, dose) for dose in doses]
    plan += [(1.0 * a, 1.0 * b, name, 1.0 * b) for name, (a, b) in planted.CONSTRUCTIONS.items()]
    networks = [
        planted.Network(start, dose, 0, False, name, "stage", dose, 0.0) for start, dose, name, _ in plan
    ]
    vectors = [world(bias * held, noise=0.02, n=20) for *_, held in plan]
    seen = [look(one) for one in vectors]
    sizes = {name: len(z) for name, z in vectors[0].items()}
    notes = {"backbone": "none", "labels": "gender"}
    found = planted.Experiment(networks, seen, [seen[1]] * len(seen), sizes, vectors, notes)
    made = planted.tables(found, "known", counts=[4], draws=4)
    second = made["planted_constructions"].set_index("construction")
    assert second["change"].to_numpy() == pytest.approx((second["d_after"] - second["d_before"]).to_numpy())
    assert second.loc["flipped", "change_high"] < 0
    assert second.loc["removed", "change_high"] < 0
    assert second.loc["added", "change_low"] > 0
    assert second.loc[["kept", "none"], ["change", "change_low", "change_high"]].eq(0).all(axis=None)
    told = planted.numbers(made)
    assert (told["changed_found"], told["changed"]) == (3, 3)
    assert (told["unchanged_found"], told["unchanged"]) == (0, 2)
    told = planted.shown(made)["constructions"]
    assert told["construction"].tolist() == ["none", "kept", "added", "flipped", "removed"]
    low, high = second.loc["added", ["change_low", "change_high"]]
    assert told["95 % interval"].iloc[2] == f"{low:.3f} to {high:.3f}"
    assert "p of no change" in told


def test_without_second_finetunings_there_is_no_change_to_tell():
    vectors = [world(0.3 * dose) for dose in (-1.0, 0.0, 1.0)]
    networks = [
        planted.Network(PRETRAINED, dose, 0, False, FIRST, "stage", dose, 0.0) for dose in (-1.0, 0.0, 1.0)
    ]
    seen = [look(one) for one in vectors]
    sizes = {name: len(z) for name, z in vectors[0].items()}
    notes = {"backbone": "none", "labels": "gender"}
    made = planted.tables(
        planted.Experiment(networks, seen, seen, sizes, vectors, notes), "x", counts=[4], draws=4
    )
    assert made["planted_constructions"].empty
    assert planted.numbers(made)["changed"] == 0


def test_figures_show_every_network():
    frame = frame_of([1.0, 2, 3, 4, 5, 6]).assign(low=0.0, high=7.0, realised=0.0)
    figure = plots.dose_response(frame)
    points = [line for line in figure.axes[0].lines if line.get_marker() == "D"]
    assert [line.get_ydata().tolist() for line in points] == [[1, 2, 3], [4, 5, 6]]
    rates = verdict_tables({"pictures": 0.5, "networks": 0.04}, 0.9)["planted_rates"]
    drawn = plots.alarm_rates(rates).axes[0].lines
    assert [0.5] * 3 in [list(line.get_ydata()) for line in drawn]
    second = pd.DataFrame(
        {"construction": ["flipped"], "seed": [0], "d_before": [0.7], "d_after": [-0.6],
         "transfer_inter": [0.8], "transfer_inter_low": [0.5], "transfer_inter_high": [0.9]}
    )  # fmt: skip
    left, right = plots.constructions(second, {"flipped": "flipped: 1 → −1"}, 0.587).axes
    assert [0.7, -0.6] in [list(line.get_xdata()) for line in left.lines]
    assert [0.587, 0.587] in [list(line.get_xdata()) for line in right.lines]
