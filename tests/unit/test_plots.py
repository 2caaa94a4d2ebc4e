"""Figures show the numbers of the frame, each where and as the style says."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from biastransfer import plots
from biastransfer.plots import style

NAN = float("nan")


def similarity_rows(backbone="lite0", seeds=(0, 1)):
    rows = []
    for kind, items in {"intra": ["man", "car"], "inter": ["car+woman|car", "car|random"]}.items():
        for number, item in enumerate(items):
            rows.append((backbone, "pretrained", 0, kind, item, 0.5 + 0.1 * number, 0.4, 0.7))
            rows += [(backbone, "finetuned", s, kind, item, 0.2 + 0.1 * s, NAN, NAN) for s in seeds]
    columns = ["backbone", "stage", "seed", "kind", "item", "value", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def association_rows():
    columns = ["backbone", "stage", "seed", "X", "Y", "A", "B", "effect_size", "low", "high", "p", "p_holm"]
    return pd.DataFrame(
        [
            ("lite0", "pretrained", 0, "man", "woman", "car", "mammal", 0.7, 0.2, 1.1, 0.001, 0.004),
            ("lite0", "finetuned", 1, "man", "woman", "car", "mammal", -0.1, -0.5, 0.3, 0.6, 1.0),
            ("random", "pretrained", 0, "man", "woman", "car", "mammal", 0.3, 0.0, 0.6, 0.04, 0.2),
        ],
        columns=columns,
    )


def markers(ax, kind):
    """Return (x, colour, face) of every marker of a kind."""
    found = [line for line in ax.lines if line.get_marker() == kind and len(line.get_xdata()) == 1]
    return [
        (round(float(line.get_xdata()[0]), 6), to_hex(line.get_color()), to_hex(line.get_markerfacecolor()))
        for line in found
    ]


def test_similarities_show_each_value_and_each_seed():
    figure = plots.similarities(similarity_rows())
    intra, inter = figure.axes
    blue, orange = style.STAGES["pretrained"]["color"].lower(), style.STAGES["finetuned"]["color"].lower()
    assert markers(intra, "o") == [(0.5, blue, blue), (0.6, blue, blue)]
    assert sorted(markers(inter, "D")) == [(0.2, orange, orange)] * 2 + [(0.3, orange, orange)] * 2
    assert [text.get_text() for text in inter.get_yticklabels()] == ["car + woman vs car", "car vs random"]


def test_intervals_are_drawn_only_where_there_are_any():
    [intra, _] = plots.similarities(similarity_rows()).axes
    spans = [tuple(line.get_xdata()) for line in intra.lines if len(line.get_xdata()) == 2]
    assert spans == [(0.4, 0.7), (0.4, 0.7)]


def test_labels_carry_the_colour_of_the_perceived_gender_they_name():
    intra, inter = plots.similarities(similarity_rows()).axes
    assert [to_hex(text.get_color()) for text in intra.get_yticklabels()] == ["#00664e", "#262626"]
    assert [to_hex(text.get_color()) for text in inter.get_yticklabels()] == ["#8f3a84", "#262626"]


def test_an_untrained_network_is_grey_and_named():
    frame = pd.concat([similarity_rows(), similarity_rows("random", seeds=())])
    figure = plots.similarities(frame)
    assert markers(figure.axes[2], "o")[0] == (0.5, "#6b6b6b", "#6b6b6b")
    assert figure.axes[2].get_title().startswith("untrained (random weights)")
    assert [text.get_text() for text in figure.legends[0].get_texts()][-1] == "untrained"


def test_objects_are_set_apart_in_inter_class_panels():
    frame = pd.DataFrame(
        [
            ("a", "pretrained", 0, "inter", item, 0.5, NAN, NAN)
            for item in ("car+man|car", "car|random", "dog|random")
        ],
        columns=["backbone", "stage", "seed", "kind", "item", "value", "low", "high"],
    )
    [ax] = plots.similarities(frame, kinds=["inter"]).axes
    assert list(ax.get_yticks()) == pytest.approx([0, 1, 2.45])


def test_associations_are_filled_where_the_adjusted_p_is_small():
    figure = plots.associations(association_rows())
    lite, random = figure.axes
    blue = style.STAGES["pretrained"]["color"].lower()
    assert markers(lite, "o") == [(0.7, blue, blue)]
    assert markers(lite, "D")[0][::2] == (-0.1, "#ffffff")
    assert markers(random, "o")[0][::2] == (0.3, "#ffffff")
    filled = plots.associations(association_rows(), p="p").axes[1]
    assert markers(filled, "o")[0][::2] == (0.3, "#6b6b6b")


def test_associations_have_a_zero_line_and_say_what_the_sign_means():
    figure = plots.associations(association_rows())
    for ax in figure.axes:
        assert [line for line in ax.lines if list(line.get_xdata()) == [0, 0]]
    assert "woman closer to the first" in figure.get_supxlabel()
    assert figure.get_supxlabel().index("woman") < figure.get_supxlabel().index("man closer to the first →")


def transfer_rows():
    columns = ["set", "backbone", "seed", "kind", "r", "low", "high", "ceiling", "cross_half"]
    rows = [
        ("scenes", "lite0", 0, "intra", 0.8, 0.5, 0.9, NAN, NAN),
        ("scenes", "lite0", "mean", "intra", 0.85, NAN, NAN, 0.6, 0.55),
    ]
    return pd.DataFrame(rows, columns=columns)


def test_transfer_scores_show_seeds_mean_and_interval():
    [ax] = plots.transfer_scores(transfer_rows().drop(columns=["ceiling", "cross_half"])).axes
    assert markers(ax, "D")[0][0] == 0.8
    assert markers(ax, "s")[0][:2] == (0.85, "#262626")
    spans = [list(line.get_xdata()) for line in ax.lines if len(line.get_xdata()) == 2]
    assert spans == [[0.5, 0.9], [0, 0]]


def test_a_ceiling_stands_only_beside_the_half_sample_score_that_it_bounds():
    figure = plots.transfer_scores(transfer_rows())
    [ax] = figure.axes
    assert markers(ax, "d")[0][::2] == (0.55, "#ffffff")
    assert [0.6, 0.6] in [list(line.get_xdata()) for line in ax.lines]
    alone = plots.transfer_scores(transfer_rows().drop(columns="cross_half"))
    assert markers(alone.axes[0], "d") == []
    names = [[text.get_text() for text in shown.legends[0].get_texts()] for shown in (figure, alone)]
    assert "ceiling of that" in names[0]
    assert names[1] == ["one seed", "mean over seeds"]


def test_transfer_by_layer_keeps_the_order_of_layers_and_shows_what_bounds_the_score():
    rows = [("stem", 0.9, 0.8, 0.95, 0.97, 0.88), ("embedding", 0.4, 0.1, 0.6, 0.9, 0.35)]
    frame = pd.DataFrame(rows, columns=["layer", "r", "low", "high", "ceiling", "cross_half"])
    figure = plots.transfer_by_layer(frame.assign(backbone="lite0", seed=0, kind="inter"))
    [ax] = figure.axes
    assert [text.get_text() for text in ax.get_xticklabels()] == ["stem", "embedding"]
    score, halves = ax.lines[:2]
    assert (list(score.get_xdata()), list(score.get_ydata())) == ([0, 1], [0.9, 0.4])
    assert list(halves.get_ydata()) == [0.88, 0.35]
    spans = [[end[1] for end in span] for span in ax.collections[0].get_segments()]
    assert spans == [[0.8, 0.95], [0.1, 0.6]]
    assert [span[0][1] for span in ax.collections[1].get_segments()] == [0.97, 0.9]
    assert "inter-class" in [ax.get_title(loc="left"), ax.get_title()]


def test_error_rates_show_what_is_promised_and_each_measure_over_n():
    frame = pd.DataFrame(
        {"measure": ["d", "d", "intra"], "n": [20, 6, 6], "value": [0.96, 0.9, 0.95],
         "low": [0.95, 0.88, 0.94], "high": [0.97, 0.92, 0.96]}
    )  # fmt: skip
    left, right = plots.error_rates(frame, frame.assign(value=0.04)).axes
    for ax, promised in ((left, 0.95), (right, 0.05)):
        line, first, second = ax.lines
        assert list(line.get_ydata()) == pytest.approx([promised] * 2)
        assert (first.get_label(), second.get_label()) == ("d", "intra")
    assert list(left.lines[1].get_ydata()) == [0.9, 0.96]
    assert [[end[1] for end in bar] for bar in left.collections[0].get_segments()] == [
        [0.88, 0.92],
        [0.95, 0.97],
    ]
    assert [text.get_text() for text in left.get_xticklabels()] == ["6", "20"]


def test_finetuning_curves_show_both_losses_and_chance():
    history = pd.DataFrame(
        {"seed": [0, 0], "epoch": [1, 2], "train_loss": [0.6, 0.4], "val_loss": [0.7, 0.5],
         "val_map": [0.3, 0.6], "val_micro_f1": [0.2, 0.5]}
    )  # fmt: skip
    loss, score, _ = plots.finetuning_curves(history, {"val_map": 0.15}).axes
    assert [list(line.get_ydata()) for line in loss.lines] == [[0.6, 0.4], [0.7, 0.5]]
    assert [text.get_text() for text in loss.get_legend().get_texts()] == ["training", "validation"]
    assert [0.15, 0.15] in [list(line.get_ydata()) for line in score.lines]
    assert [text.get_text() for text in score.texts] == ["chance"]
    high = plots.finetuning_curves(history, {"val_micro_f1": 0.4}).axes[2]
    assert high.texts[0].xyann[1] < 0 < score.texts[0].xyann[1]  # below a high line: the curve ends above


def test_contact_sheet_shows_at_most_what_fits_and_names_the_whole():
    picture = np.full((40, 60, 3), 200, np.uint8)
    pictures = {"man": [picture] * 10, "woman": [picture] * 2, "random": [picture] * 7}
    figure = plots.contact_sheet(pictures, {"man": 150, "woman": 2, "random": 7})
    assert len(figure.axes) == 6 + 2 + 6
    assert [text.get_text() for text in figure.texts] == ["man (n = 150)", "woman (n = 2)", "random (n = 7)"]
    assert figure.axes[0].images[0].get_array().shape == (40, 40, 3)


def test_set_sizes_writes_the_numbers():
    [ax] = plots.set_sizes(pd.DataFrame({"class": ["man", "car"], "kept": [12, 9], "left_out": [0, 3]})).axes
    assert [bar.get_width() for bar in ax.patches] == [12, 9, 3]
    assert [text.get_text() for text in ax.texts] == ["12", "9 (3 left out)"]


def test_figures_are_opaque_and_none_stays_open():
    before = plt.get_fignums()
    plots.set_style()
    figure = plots.similarities(similarity_rows())
    assert to_hex(figure.get_facecolor(), keep_alpha=True) == "#ffffffff"
    assert plt.get_fignums() == before


def test_long_items_take_two_lines():
    assert (
        style.readable("very long object+woman|very long object")
        == "very long object + woman\nvs very long object"
    )


def test_nulls_lie_behind_each_association_and_score():
    columns = {"untrained_low": -0.2, "untrained_median": 0.1, "untrained_high": 0.4, "thumbnail": 0.25}
    figure = plots.associations(association_rows()[:2].assign(**columns))
    [ax] = figure.axes
    spans = [tuple(line.get_xdata()) for line in ax.lines if len(line.get_xdata()) == 2]
    assert (-0.2, 0.4) in spans
    assert (0.1, 0.1) in spans
    assert markers(ax, "x") == [(0.25, "#6b6b6b", "#6b6b6b")]
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {"untrained networks: range and median", "colour and layout alone"} <= set(named)
    del columns["thumbnail"]
    [ax] = plots.transfer_scores(transfer_rows().assign(**columns)).axes
    assert [tuple(line.get_xdata()) for line in ax.lines].count((-0.2, 0.4)) == 2


def lying(ax, x):
    """Return how high each line between the ends ``x`` lies."""
    return [line.get_ydata()[0] for line in ax.lines if tuple(line.get_xdata()) == x]


def test_nulls_lie_behind_each_similarity_that_the_legend_promises_them_for():
    columns = {"untrained_low": 0.8, "untrained_median": 0.85, "untrained_high": 0.9, "thumbnail": 0.3}
    figure = plots.similarities(similarity_rows().assign(**columns))
    for ax in figure.axes:
        assert lying(ax, (0.8, 0.9)) == [0, 1]
        assert [x for x, *_ in markers(ax, "x")] == [0.3, 0.3]
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {"untrained networks: range and median", "colour and layout alone"} <= set(named)


@pytest.mark.parametrize("after", [(0.1, 0.2, 0.3), (NAN, NAN, NAN)])
def test_networks_of_two_architectures_have_a_band_each_beside_their_marker(after):
    names = ["untrained_low", "untrained_median", "untrained_high"]
    frame = association_rows()[:2].assign(thumbnail=0.25)
    frame[names] = [(-0.2, 0.1, 0.4), after]
    [ax] = plots.associations(frame).axes
    [before] = [line.get_ydata()[0] for line in ax.lines if line.get_marker() == "o"]
    [finetuned] = [line.get_ydata()[0] for line in ax.lines if line.get_marker() == "D"]
    assert lying(ax, (-0.2, 0.4)) == [before]
    assert lying(ax, (0.1, 0.3)) == ([finetuned] if after[0] == 0.1 else [])
    assert len(markers(ax, "x")) == 1


def test_several_untrained_networks_are_one_grey_row_from_smallest_to_largest():
    rows = similarity_rows("random", seeds=()).assign(stage="untrained")
    figure = plots.similarities(rows)
    assert markers(figure.axes[0], "s")[0] == (0.5, "#6b6b6b", "#6b6b6b")
    assert figure.legends[0].get_texts()[0].get_text() == "untrained: median, range"


def test_networks_stand_beside_each_other_in_the_same_rows():
    frame = pd.concat([similarity_rows(name, seeds=()) for name in ("a", "b", "c", "d")])
    figure = plots.similarity_overview(frame)
    panels = [ax for ax in figure.axes if ax.axison]
    titles = [ax.get_title("left") or ax.get_title() for ax in panels]
    assert titles == ["a", "b", "c", "d"]
    items = list(frame["item"].unique())
    ticks = panels[0].get_yticks().tolist()
    intra = frame.loc[frame["kind"] == "intra", "item"].nunique()
    assert len(ticks) == len(items)
    assert ticks[intra] - ticks[intra - 1] == pytest.approx(1.8), "the kinds stand apart"
    assert all(ax.get_yticks().tolist() == ticks for ax in panels)
    assert [len(markers(ax, "o")) for ax in panels] == [len(frame) // 4] * 4
    named = [ax for ax in panels if any(label.get_visible() for label in ax.get_yticklabels())]
    assert named == [panels[0], panels[3]], "once a row of panels"
