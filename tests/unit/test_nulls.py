"""Nulls: places and bands worked by hand, shuffled labels against exact p, detectable effects by trial."""

import numpy as np
import pandas as pd
import pytest

from biastransfer import nulls
from biastransfer.association import association_test, effect_size
from biastransfer.embed import Condition, Embedded, conditions, embed_classes, read_npz
from biastransfer.embedded_sets import embed_set, lost, set_label, sources_of_each
from biastransfer.similarity import tabulate
from biastransfer.stats import permutation_p
from biastransfer.transfer import bias_transfer_score

NAN = float("nan")
CLASSES = ["man", "woman", "random", "car", "car+man", "car+woman", "sports", "sports+man", "sports+woman"]


def values(d, untrained, thumbnail=None):
    rows = [("net", d)] + [("random", v) for v in untrained]
    rows += [("thumbnail", thumbnail)] if thumbnail is not None else []
    return pd.DataFrame(rows, columns=["backbone", "d"]).assign(A="car", seed=range(len(rows)))


def vectors(seed, n=7, dim=6):
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=(n, dim)) + rng.normal(size=dim) for name in CLASSES}


@pytest.fixture(scope="module")
def embedded():
    found = {Condition("net", "pretrained", "", 0): vectors(1)}
    found |= {Condition("net", "finetuned", "scenes", seed): vectors(10 + seed) for seed in (0, 1)}
    found[Condition("thumbnail", "pretrained", "", 0)] = vectors(2)
    return found | {Condition("random", "pretrained", "", seed): vectors(20 + seed) for seed in range(4)}


def test_place_by_hand():
    row = nulls.place(values(-0.5, [0.1, 0.6, -0.2, -0.5], thumbnail=0.3), ["A"], "d").iloc[0]
    assert row["n_untrained"] == 4
    assert row[["untrained_low", "untrained_median", "untrained_high"]].tolist() == pytest.approx(
        [-0.5, -0.05, 0.6]
    )
    assert row["p_untrained"] == (1 + 2) / 5  # .6 and the tie count
    assert row["added"] == pytest.approx(-0.45)
    assert row["z_untrained"] == pytest.approx(-0.5 / np.std([0.1, 0.6, -0.2, -0.5], ddof=1))
    assert row["thumbnail"] == 0.3


def test_the_rank_p_is_uniform_when_the_network_is_one_of_them():
    draws = np.random.default_rng(0).normal(size=(2000, 20))
    p = [nulls.place(values(d, null), ["A"], "d")["p_untrained"].iloc[0] for d, *null in draws[:300]]
    assert np.mean(np.array(p) <= 0.25) == pytest.approx(0.25, abs=0.08)
    assert min(p) >= 1 / 20


def test_untrained_rows_have_a_band_but_no_place():
    placed = nulls.place(values(0.5, [0.1, 0.2]), ["A"], "d")
    assert placed["p_untrained"].isna().tolist() == [False, True, True]
    assert placed["untrained_high"].tolist() == [0.2] * 3


def test_without_untrained_networks_nothing_is_claimed():
    row = nulls.place(values(0.5, []), ["A"], "d").iloc[0]
    assert row["n_untrained"] == 0
    assert row[["p_untrained", "z_untrained", "added", "untrained_low", "thumbnail"]].isna().all()


def test_collapse_puts_one_row_in_the_place_of_all_untrained():
    frame = values(0.5, [0.1, 0.4, 0.2]).assign(stage="pretrained", low=0.0, high=1.0)
    collapsed = nulls.collapse(frame, ["A"], "d")
    assert collapsed["backbone"].tolist() == ["net", "random"]
    assert collapsed.loc[1, ["stage", "d", "low", "high"]].tolist() == ["untrained", 0.2, 0.1, 0.4]
    assert nulls.collapse(frame[:1], ["A"], "d").equals(frame[:1])


def test_shuffled_labels_are_the_permutation_null():
    rng = np.random.default_rng(3)
    X, Y, A, B = (rng.normal(size=(n, 5)) for n in (9, 12, 6, 8))
    shuffled = nulls.shuffled_effects(X, Y, A, B, shuffles=20_000, seed=1)
    test = association_test(X, Y, A, B)
    assert np.mean(shuffled >= test.effect_size - 1e-12) == pytest.approx(test.p_greater, abs=0.015)
    assert shuffled.std() == pytest.approx(np.sqrt(21 / (9 * 12)), rel=0.02)  # z = d·√(n_x·n_y / N)
    assert np.allclose(shuffled, nulls.shuffled_effects(X, Y, 3 * A, B, shuffles=20_000, seed=1))


@pytest.mark.parametrize(("n_x", "n_y"), [(8, 8), (6, 18), (13, 12)])
def test_the_detectable_effect_is_found_four_times_in_five(n_x, n_y):
    """Simulated sets whose population d is the one promised, tested by the exact permutation."""
    d, size = nulls.detectable_effect(n_x, n_y), n_x + n_y
    theta = d / np.sqrt(1 - d**2 * n_x * n_y / size**2)
    rng, found = np.random.default_rng(0), []
    for scores in rng.normal(size=(400, size)) + theta * (np.arange(size) < n_x):
        greater, less, *_ = permutation_p(scores, n_x)
        found.append(2 * min(greater, less) <= 0.05)
    assert np.mean(found) == pytest.approx(0.8, abs=0.06)


def test_detectable_effects_at_the_papers_sizes_and_their_limits():
    assert nulls.detectable_effect(150, 150) == pytest.approx(2.8 / np.sqrt(75), rel=0.02)
    assert nulls.detectable_effect(20, 40) == nulls.detectable_effect(40, 20)
    assert np.isnan(nulls.detectable_effect(3, 3))  # two of its twenty splits are .1
    assert nulls.detectable_effect(30, 30, power=0.5) < nulls.detectable_effect(30, 30)
    assert np.isnan(nulls.detectable_effect(0, 5))


def test_significant_correlations_are_those_of_the_exact_null():
    printed = {5: 1.0, 6: 0.886, 7: 0.786, 8: 0.738, 9: 0.7, 10: 0.648, 12: 0.587}  # tables of the exact test
    assert {n: round(nulls.significant_correlation(n), 3) for n in printed} == printed
    assert np.isnan(nulls.significant_correlation(4))
    assert nulls.significant_correlation(40) == pytest.approx(0.312, abs=0.001)


def test_added_intervals_hold_what_is_added_and_shrink_to_nothing_without_spread(embedded):
    pairs = [("sports", "car")]
    bounds = nulls.added_intervals(embedded, pairs, resamples=200)
    assert all(condition.backbone != "random" for condition, *_ in bounds)
    d = {c: effect_size(v["man"], v["woman"], v["sports"], v["car"]) for c, v in embedded.items()}
    middle = np.median([value for c, value in d.items() if c.backbone == "random"])
    for (condition, *_), (low, high) in bounds.items():
        assert low <= d[condition] - middle <= high
    same = {c: embedded[Condition("net", "pretrained", "", 0)] for c in embedded}
    assert nulls.added_intervals(same, pairs, resamples=50)[
        Condition("thumbnail", "pretrained", "", 0), *pairs[0]
    ] == (
        0.0,
        0.0,
    )  # one draw for all networks: what they share cancels
    assert nulls.added_intervals(embedded, pairs, resamples=0) == {}


def test_association_table_corrects_trained_networks_only(embedded):
    table = nulls.association_table(embedded, "set", "run", resamples=100)
    trained = table[~table["backbone"].isin(nulls.NULLS)]
    assert len(table) == 8
    assert set(table["n_tests"]) == {3}
    assert table["p_holm"].notna().tolist() == [True] * 3 + [False] * 5
    assert trained["p_holm"].min() == pytest.approx(min(1, 3 * trained["p"].min()))
    one = trained.iloc[0]
    assert one["added"] == pytest.approx(one["effect_size"] - one["untrained_median"])
    assert one["added_low"] < one["added"] < one["added_high"]
    assert one["shuffled_low"] < 0 < one["shuffled_high"]
    assert one["detectable"] == nulls.detectable_effect(7, 7)
    numbers = nulls.association_numbers(table)
    assert (numbers["n_tests"], numbers["n_untrained"]) == (3, 4)
    assert numbers["random_max_abs_d"] == table.loc[table["backbone"] == "random", "effect_size"].abs().max()


def test_association_table_without_nulls_has_no_places(embedded):
    only = {c: v for c, v in embedded.items() if c.backbone == "net"}
    table = nulls.association_table(only, "set", "run", resamples=10)
    assert table[["p_untrained", "added_low"]].isna().all(axis=None)
    assert nulls.association_numbers(table)["n_outside"] == 0


def test_a_set_without_two_objects_to_compare_is_refused(embedded):
    few = {
        condition: {k: v for k, v in classes.items() if "+" not in k}
        for condition, classes in embedded.items()
    }
    with pytest.raises(ValueError, match="needs two objects that also stand with people"):
        nulls.association_table(few, "own", "x", resamples=5)


def test_numbers_of_a_table_without_a_trained_network_say_what_to_add(embedded):
    nulls_only = {c: v for c, v in embedded.items() if c.backbone == "random"}
    table = nulls.association_table(nulls_only, "set", "run", resamples=20)
    with pytest.raises(ValueError, match=r"effect size of a trained network; it holds random\. Name one"):
        nulls.association_numbers(table)


def test_similarity_differences_are_relative_to_the_networks_spread(embedded):
    frame = tabulate(embedded, "set", "run")
    found = nulls.similarity_differences(frame)
    own = frame[(frame["stage"] == "pretrained") & (frame["backbone"] == "net") & (frame["kind"] == "inter")]
    value = own.set_index("item")["value"]
    row = found[
        (found["backbone"] == "net") & (found["stage"] == "pretrained") & (found["object"] == "car")
    ].iloc[0]
    assert row["difference"] == pytest.approx(value["car+man|car"] - value["car+woman|car"])
    assert row["relative"] == pytest.approx(row["difference"] / value.std())
    assert row["n_untrained"] == 4
    trained = found["backbone"] == "net"
    assert found["p_holm"].notna().tolist() == trained.tolist(), "nulls are not tested"
    low = found.loc[trained, "p_untrained"].idxmin()
    assert found["p_holm"][low] == pytest.approx(min(1, trained.sum() * found["p_untrained"][low]))
    assert len(nulls.similarity_differences(frame[~frame["item"].str.contains("woman")])) == 0


def test_transfer_tables_hold_each_score_against_untrained_networks(embedded):
    tables = nulls.transfer_tables(embedded, "set", "run", resamples=20)
    scores, references = tables["transfer"], tables["transfer_references"]
    assert scores["seed"].tolist() == [0, 0, 1, 1, "mean", "mean"]
    assert set(scores["n_untrained"]) == {4}
    row = scores.iloc[1]
    assert row["r_significant"] == nulls.significant_correlation(6)
    smallest = scores["p_exact"].idxmin()
    assert scores["p_holm"][smallest] == pytest.approx(min(1, 6 * scores["p_exact"][smallest])), "of 6 scores"
    net, untrained = Condition("net", "finetuned", "scenes", 0), Condition("random", "pretrained", "", 2)
    by_item = [tabulate({c: embedded[c]}, "set", "run").query("kind == 'inter'") for c in (untrained, net)]
    expected = bias_transfer_score(*(dict(zip(t["item"], t["value"])) for t in by_item)).r
    one = references[
        (references["reference_seed"] == 2) & (references["seed"] == 0) & (references["kind"] == "inter")
    ]
    assert one["r"].tolist() == pytest.approx([expected])
    assert row["untrained_low"] <= expected <= row["untrained_high"]
    with pytest.raises(ValueError, match="after finetuning; own has none after"):
        nulls.transfer_tables({c: v for c, v in embedded.items() if c.stage == "pretrained"}, "own", "run")


def test_transfer_numbers_are_those_of_the_mean_over_seeds(embedded):
    tables = nulls.transfer_tables(embedded, "set", "run", resamples=20)
    scores, items, others = (tables[name] for name in ("transfer", "transfer_items", "transfer_references"))
    elsewhere = scores.assign(set="other", r=-1.0)
    numbers = nulls.transfer_numbers(pd.concat([scores, elsewhere]), items, others)
    assert (numbers["main"], numbers["main_set"]) == ("net", "set")
    mean = scores[scores["seed"] == "mean"].set_index("kind")
    assert numbers["bts_inter_r"] == mean.loc["inter", "r"]
    assert [numbers[f"bts_intra_{k}"] for k in ("low", "high")] == mean.loc["intra", ["low", "high"]].tolist()
    kept = items[(items["seed"] == "mean") & (items["kind"] == "inter")].set_index("item")
    assert numbers["bts_inter_without"] == kept.loc[numbers["bts_inter_item"], "r_without"]
    assert (numbers["bts_inter_lowest"], numbers["bts_inter_highest"]) == (
        kept["r_without"].min(),
        kept["r_without"].max(),
    )
    assert numbers["bts_scores"] == 8  # two sets, two seeds, two kinds
    above = (scores[scores["seed"] != "mean"]["r"] > scores[scores["seed"] != "mean"]["untrained_high"]).sum()
    assert numbers["bts_within"] == 8 - above  # those of the other set are −1
    alone = nulls.transfer_numbers(scores[scores["seed"] == 0], items[items["seed"] == 0], others)
    assert alone["bts_intra_r"] == scores["r"].iloc[0]
    undefined = nulls.transfer_numbers(scores.assign(r=NAN), items.assign(contribution=NAN), others)
    assert numbers["bts_other"] == "no other pretrained network was run", "nulls are none"
    renamed = others.assign(reference=others["reference"].replace("thumbnail", "net2"))
    medians = renamed[renamed["reference"] == "net2"].groupby("kind")["r"].median()
    said = nulls.transfer_numbers(scores, items, renamed)["bts_other"]
    assert (
        said == f"net2 scores {medians['intra']:.2f} within classes and {medians['inter']:.2f} between them"
    )
    assert (undefined["bts_inter_item"], undefined["bts_scores"]) == ("none", 0)


def test_item_contributions_are_scores_without_the_item(embedded):
    items = nulls.transfer_tables(embedded, "set", "run", resamples=0)["transfer_items"]
    net = [
        Condition("net", stage, target, 0) for stage, target in (("pretrained", ""), ("finetuned", "scenes"))
    ]
    by_item = [tabulate({c: embedded[c]}, "set", "run").query("kind == 'intra'") for c in net]
    values = [dict(zip(t["item"], t["value"])) for t in by_item]
    row = items.query("seed == 0 and kind == 'intra' and item == 'car'").iloc[0]
    assert row["r"] == bias_transfer_score(*values).r
    without = bias_transfer_score(*({k: v for k, v in one.items() if k != "car"} for one in values)).r
    assert (row["r_without"], row["contribution"]) == (without, row["r"] - without)


def test_random_stands_for_as_many_networks_as_asked():
    found = conditions("run", ["net", "random"], ["net"], "scenes", [0, 1], untrained=3)
    assert [c.seed for c in found if c.backbone == "random"] == [0, 1, 2]
    assert len(found) == 6


def test_unknown_batch_statistics():
    with pytest.raises(ValueError, match="must be one of estimated, initial; got 'none'"):
        embed_classes(None, [], run="x", batch_statistics="none")


def save(tmp_path, **arrays):
    n = 3
    whole = {
        "vectors": np.eye(n),
        "classes": np.array(["man", "car", "man"]),
        "names": np.array(["x", "y", "z"]),
    }
    np.savez(tmp_path / "mine.npz", **{k: v for k, v in (whole | arrays).items() if v is not None})
    return tmp_path / "mine.npz"


def test_own_vectors_become_conditions(tmp_path):
    found = embed_set(
        "mine", run="x", backbones=[], embeddings=str(save(tmp_path, vectors_after=np.ones((3, 2))))
    )
    before, after = Condition("mine", "pretrained", "", 0), Condition("mine", "finetuned", "own", 0)
    assert list(found) == [before, after]
    assert {name: z.tolist() for name, z in found[before].items()} == {
        "man": [[1, 0, 0], [0, 0, 1]],
        "car": [[0, 1, 0]],
    }
    assert found[after]["man"].shape == (2, 2)
    with pytest.raises(ValueError, match="own vectors have no layers; got layer='stem'"):
        embed_set("mine", run="x", backbones=[], embeddings="mine.npz", layer="stem")
    assert set_label("scenes-coco", "some/mine.npz") == "mine"
    assert sources_of_each(["a", "b"], [1.0], [], "some/mine.npz") == {
        "mine": {"embeddings": "some/mine.npz"}
    }


def test_sources_go_to_their_sets_in_order():
    assert sources_of_each(["a", "b"], [1.0, 0.5]) == {"a": {"scale": 1.0}, "b": {"scale": 0.5}}
    assert sources_of_each(["a", "b"], [], ["x", "y"]) == {"a": {"root": "x"}, "b": {"root": "y"}}
    assert sources_of_each(["a"]) == {"a": {}}
    with pytest.raises(ValueError, match=r"scales must have one value a set, or none; got \[1.0\] for a, b"):
        sources_of_each(["a", "b"], [1.0])
    with pytest.raises(ValueError, match="roots must have one value a set"):
        sources_of_each(["a"], [], ["x", "y"])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"names": None}, "must hold the arrays vectors, classes, names .* got vectors, classes"),
        ({"extra": np.ones(3)}, "got vectors, classes, names, extra"),
        ({"classes": np.array(["a", "b", "c"], dtype=object)}, "`classes` must be a plain array"),
        ({"classes": np.arange(3)}, "`classes` must be a list of text"),
        ({"names": np.array(["x", "", "z"])}, "`names` must not be empty in any row; row 1 is"),
        ({"names": np.array(["x", "y", "x"])}, "'x' stands twice"),
        ({"vectors": np.ones((2, 3))}, "one row a picture; got vectors 2, classes 3, names 3"),
        ({"vectors": np.ones(3)}, r"`vectors` must be numbers of shape .* got shape \(3,\)"),
        ({"vectors": np.array([[1.0], [NAN], [2.0]])}, "`vectors` must be finite; row 1 is not"),
        ({"vectors_after": np.full((3, 1), np.inf)}, "`vectors_after` must be finite; row 0"),
    ],
)
def test_errors_of_own_vectors_name_file_and_array(tmp_path, arrays, message):
    with pytest.raises(ValueError, match=message) as error:
        read_npz(save(tmp_path, **arrays))
    assert "mine.npz" in str(error.value)


@pytest.mark.parametrize("name", ["random", "thumbnail"])
def test_own_vectors_are_never_taken_for_a_null(tmp_path, name):
    file = save(tmp_path).rename(tmp_path / f"{name}.npz")
    with pytest.raises(ValueError, match="must not be called random or thumbnail"):
        read_npz(file)


@pytest.mark.parametrize("name", ["coco", "folder-own", "demo-coco"])
def test_a_set_is_named_by_kind_and_schema(name):
    with pytest.raises(ValueError, match=f"kind scenes, released, curated or mini; got '{name}'"):
        embed_set(name, run="x", backbones=[])


def test_pictures_that_are_lost_are_named_without_their_folder():
    embedded = Embedded()
    failed = [("a", "/home/me/x.png", "/home/me/x.png: it has 0 bytes")] * 2
    failed += [("b", "/home/me/y.png", "its embedding is not finite")]
    embedded.failed = pd.DataFrame(failed, columns=["backbone", "file", "reason"])
    assert lost(embedded) == [
        "pictures that could not be embedded and are left out: 2",
        "  x.png: it has 0 bytes",
        "  y.png, b: its embedding is not finite",
    ]
    embedded.failed = embedded.failed[:0]
    assert lost(embedded) == []


def test_files_that_are_no_npz(tmp_path):
    text = tmp_path / "text.npz"
    text.write_text("hello")
    with pytest.raises(ValueError, match=r"text\.npz must be an \.npz"):
        read_npz(text)
    np.save(tmp_path / "one.npy", np.ones(3))
    with pytest.raises(ValueError, match="one array without a name"):
        read_npz((tmp_path / "one.npy").rename(tmp_path / "one.npz"))
    with pytest.raises(FileNotFoundError, match=r"none\.npz"):
        read_npz(tmp_path / "none.npz")
