"""The attribution chapter's figures: every value that they are given is drawn where it belongs."""

import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from biastransfer import plots
from biastransfer.plots.heat_maps import _overlay, titled

MAPS = [("lime", "mean"), ("gradcam", "none"), ("random_map", "none")]


def markers(ax):
    """Return where markers are."""
    drawn = [line for line in ax.lines if line.get_marker() not in ("None", None)]
    return [(line.get_xdata()[0], line.get_ydata()[0]) for line in drawn]


def titles(figure):
    return [title for ax in figure.axes if (title := ax.get_title(loc="left") or ax.get_title())]


def labels(ax):
    return [text.get_text() for text in ax.get_yticklabels()]


def inside(ax):
    """Say whether everything that the axes hold lies within their limits."""
    (left, right), (bottom, top) = ax.get_xlim(), sorted(ax.get_ylim())
    box = ax.dataLim
    return left <= box.x0 and box.x1 <= right and bottom <= box.y0 and box.y1 <= top


def scores():
    rows = []
    for k, (method, fill) in enumerate(MAPS):
        bounds = {"value": 0.1 * k, "low": 0.1 * k - 0.05, "high": 0.1 * k + 0.05}
        ranks = {"rank": k + 1.0, "rank_low": 1.0, "rank_high": 3.0}
        for by in ("mean", "blur"):
            keys = {"method": method, "fill": fill, "metric_fill": by, "label": "Deletion AUC ↓"}
            rows.append(keys | bounds | ranks)
    return pd.DataFrame(rows)


def test_a_map_of_zero_shows_the_grey_picture_and_the_colours_tell_the_sign():
    pixels = np.full((1, 3, 3), 0.5)
    left, middle, right = _overlay(pixels, np.array([[-1.0, 0.0, 1.0]]))[0]
    assert middle[0] == middle[1] == middle[2]
    assert left[2] > left[0], "blue speaks against the class"
    assert right[0] > right[2], "red for it"


def test_the_gallery_shows_every_map_of_every_picture_on_one_scale():
    heat = np.linspace(-1, 1, 64).reshape(8, 8)
    one = SimpleNamespace(
        label="car", clean=0.913, pixels=np.full((8, 8, 3), 0.4), outline=heat > 0.5,
        maps={("lime", "mean"): heat, ("lime", "telea"): heat, ("gradcam", "none"): heat},
    )  # fmt: skip
    figure = plots.heat_maps([one, one])
    shown = [ax for ax in figure.axes if ax.images]
    assert [ax.get_title() for ax in shown] == ["car, 0.91", "LIME\ngrey", "LIME\ntelea", "Grad-CAM"] * 2
    assert sum(ax.get_xlabel() != "" for ax in figure.axes) == 0
    assert titled("integrated_gradients", "black") == "integrated gradients"


def test_removals_have_a_column_a_fill_with_the_score_below():
    scored = [("nothing", 0.9), ("mean", 0.25)]
    black = np.zeros((4, 4, 3))
    several = [SimpleNamespace(name=n, fill=fill, pixels=black, score=p) for n in "ab" for fill, p in scored]
    figure = plots.removals(several)
    assert [ax.get_xlabel() for ax in figure.axes] == ["0.90", "0.25"] * 2
    assert [ax.get_title() for ax in figure.axes] == ["as it is", "grey", "", ""]


def test_scores_and_ranks_are_drawn_in_the_frames_order():
    figure = plots.map_scores(scores())
    assert titles(figure) == ["Deletion AUC ↓\ngrey", "Deletion AUC ↓\nblur"]
    assert labels(figure.axes[0]) == ["LIME, grey", "Grad-CAM", "random map"]
    assert [markers(ax) for ax in figure.axes] == [[(0.0, 0), (0.1, 1), (0.2, 2)]] * 2
    [ax] = plots.map_ranks(scores()).axes
    assert sorted(x for x, _ in markers(ax)) == [1, 1, 2, 2, 3, 3]
    assert ax.get_xlabel() == "rank by deletion AUC, 1 is best"


def test_curves_have_a_panel_a_metric_and_fill():
    points = [
        {"method": "lime", "fraction": x, "mean": 1 - x, "low": 0.9 - x, "high": 1 - x}
        for x in (0.0, 0.5, 1.0)
    ]
    keys = [("deletion", "mean"), ("deletion", "blur"), ("insertion", "blur")]
    rows = [{"metric": metric, "metric_fill": fill, **point} for metric, fill in keys for point in points]
    figure = plots.faithfulness_curves(pd.DataFrame(rows))
    assert titles(figure) == ["deletion, grey", "deletion, blur", "insertion, blur"]
    assert figure.axes[2].get_xlabel() == "share of pixels inserted"


def test_nothing_is_cut_off():
    """A later panel may be higher, a similarity far below 0, and an interval of the probe below chance."""
    part = pd.DataFrame({"method": "lime", "fraction": [0.0, 1.0], "mean": 0.4, "low": 0.3, "high": 0.5})
    panels = [part.assign(metric="deletion", metric_fill=fill) for fill in ("mean", "blur")]
    panels[1]["high"] = 0.9
    assert all(map(inside, plots.faithfulness_curves(pd.concat(panels)).axes[:2]))
    row = {"method": "lime", "setting": "head", "metric": "ssim", "value": -0.6, "low": -0.8, "high": -0.4}
    assert inside(plots.sanity(pd.DataFrame([row])).axes[0])
    kinds = [("nothing", "present"), ("nothing", "absent"), ("mean", "removed"), ("mean", "mask only")]
    frame = pd.DataFrame(kinds, columns=["fill", "pictures"])
    assert inside(plots.remaining_signal(frame.assign(what="object", auc=0.5, low=0.1, high=0.9)).axes[0])


def test_similarities_are_drawn_by_sweep_and_by_method():
    keys = itertools.product(("LIME seed", "SP patch, wide"), ("mean", "telea"), ("ssim", "hog"))
    frame = pd.DataFrame(keys, columns=["setting", "fill", "metric"])
    frame = frame.assign(method="lime", value=0.5, low=0.4, high=0.6)
    figure = plots.stability(frame)
    assert titles(figure) == ["SSIM", "HOG"]
    assert labels(figure.axes[0]) == ["LIME seed", "SP patch, wide"]
    assert [len(markers(ax)) for ax in figure.axes] == [4, 4]
    figure = plots.sanity(
        frame.query("fill == 'mean'").replace({"LIME seed": "head", "SP patch, wide": "all weights"})
    )
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "random: head",
        "random: all weights",
    ]
    assert labels(figure.axes[0]) == ["LIME"]


def test_the_probe_shows_what_is_left_and_what_the_hole_tells():
    rows = [
        ("nothing", "present", 1.0),
        ("nothing", "absent", 0.5),
        ("mean", "removed", 0.8),
        ("mean", "mask only", 0.7),
    ]
    frame = pd.DataFrame(rows, columns=["fill", "pictures", "auc"]).assign(what="object", low=0.4, high=0.9)
    [ax] = plots.remaining_signal(frame).axes
    assert sorted(x for x, _ in markers(ax)) == pytest.approx([0.5, 0.7, 0.8, 1.0])
    assert labels(ax) == ["nothing removed", "grey", "never there"]
