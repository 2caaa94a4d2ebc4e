"""Methods by fills by metrics: known scores, resuming, what fails is counted, nothing depends on order."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from biastransfer.attribution import evaluate, evaluation_store
from biastransfer.attribution.evaluation import COLUMNS, run_evaluation
from biastransfer.attribution.evaluation_plan import FILLED, metric_jobs, setting_text
from biastransfer.attribution.methods import METHODS, Method
from biastransfer.attribution.metrics import METRICS
from biastransfer.attribution.pictures import AttributionPicture, PictureSet
from biastransfer.backbones import Transform
from biastransfer.graph.dependencies import PACKAGE, imported_modules

SIDE = 12
TRANSFORM = Transform(SIDE, 1.0, "bilinear", (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
OBJECT = np.zeros((SIDE, SIDE), bool)
OBJECT[3:7, 4:9] = True
CLOCKS = ["seconds", "map_seconds"]


class WholeObject(nn.Module):
    """Probability 1 of class 1 while no pixel of the object is black, else 0."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.from_numpy(OBJECT))
        self.images = 0

    def forward(self, x):
        self.images += len(x)
        whole = (x.amax(1)[:, self.mask] > 0).all(1).float()
        return torch.stack([1 - whole, whole], 1)


class Linear(nn.Module):
    """Class 1: Σ w · x."""

    def __init__(self, seed=0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.weights = nn.Parameter(torch.randn(3, SIDE, SIDE, generator=generator, dtype=torch.float64))

    def forward(self, x):
        total = (x.double() * self.weights).sum((1, 2, 3))
        return torch.stack([-total, total], 1)


class Blind(nn.Module):
    def forward(self, x):
        return torch.tensor([[0.25, 0.75]]).expand(len(x), 2)


def picture(k=0, **changes):
    rng = np.random.default_rng(k)
    pixels = rng.integers(30, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    known = {"boxes": [[4, 3, 9, 7]], "masks": {"thing": OBJECT}, "size": (SIDE, SIDE)} | changes
    return AttributionPicture(f"p{k}", pixels, "thing", **known)


@pytest.fixture
def maps(monkeypatch):
    """Controls with known maps: the object, its opposite, nothing, and values that are no numbers."""
    known = {
        "object": OBJECT.astype(np.float32), "elsewhere": -OBJECT.astype(np.float32),
        "zeros": np.zeros((SIDE, SIDE), np.float32), "nan": np.full((SIDE, SIDE), np.nan, np.float32),
    }  # fmt: skip
    for name, heat in known.items():
        monkeypatch.setitem(METHODS, name, Method(lambda image, heat=heat: heat, "control", {}))
    return list(known)


@pytest.fixture
def run(tmp_path):
    def evaluated(network, pictures, methods, fills=("black",), metrics=("deletion",), **options):
        settings = {"transform": TRANSFORM, "output": "given", "store": tmp_path / "store"} | options
        return run_evaluation(network, pictures, methods, fills, metrics, **settings)

    return evaluated


def numbers(frame):
    return frame.drop(columns=CLOCKS)


def value(rows, metric, **keys):
    [found] = rows[(rows["metric"] == metric) & np.all([rows[k] == v for k, v in keys.items()], 0)]["value"]
    return found


def test_known_best_and_worst_maps_get_their_known_scores(run, maps):
    fills = {"deletion": ["black"], "insertion": ["black"]}
    metrics = [
        "deletion",
        "insertion",
        "localisation",
        "pointing_game",
        "mass_inside_boxes",
        "mass_inside_mask",
    ]
    rows = run(WholeObject(), [picture()], maps[:2], metrics=metrics, metric_fills=fills).rows
    step = round(SIDE * SIDE / 28)
    assert value(rows, "deletion", method="object") == pytest.approx(0.5 * step / SIDE**2)
    # the object's 20 pixels go last: the score falls within the step that meets the first of them
    last = (SIDE * SIDE - 20) // step
    assert value(rows, "deletion", method="elsewhere") == pytest.approx((last + 0.5) * step / SIDE**2)
    assert value(rows, "insertion", method="object") == pytest.approx(1 - (4 - 0.5) * step / SIDE**2)
    best = {"localisation": 0, "pointing_game": 1, "mass_inside_boxes": 1, "mass_inside_mask": 1}
    assert {name: value(rows, name, method="object") for name in best} == best
    assert value(rows, "localisation", method="elsewhere") == 1
    assert set(rows["target"]) == {1}
    assert set(rows["clean"]) == {1.0}


def test_a_linear_network_is_explained_by_its_weights_and_deletion_follows_them(run):
    network = Linear()
    done = run(
        network, [picture()], {"sliding_patch": {"patch": 1, "stride": 1}}, metrics={"deletion": {"step": 1}},
        output="logit", targets={"thing": 1}, metric_fills=["black"],
    )  # fmt: skip
    pixels = torch.from_numpy(picture().source).permute(2, 0, 1).double() / 255
    parts = (network.weights.detach() * pixels).sum(0).numpy()
    heat = done.map("p0", "sliding_patch", "black", "patch=1, stride=1")
    np.testing.assert_allclose(heat, parts, atol=1e-5)
    left = parts.sum() - np.append(0, np.cumsum(np.sort(parts.ravel())[::-1]))
    assert done.rows["value"].item() == pytest.approx(np.trapezoid(left) / (len(left) - 1), abs=1e-6)
    curve = done.curves("deletion")
    np.testing.assert_allclose(curve["score"], left, atol=1e-4)
    assert done.rows["map_forwards"].item() == 1 + SIDE * SIDE
    assert done.rows["forwards"].item() == len(left)


def test_a_network_that_ignores_the_picture_gives_every_map_its_constant(run, maps):
    rows = run(Blind(), [picture()], [*maps[:3], "random_map"], metric_fills=["black", "blur"]).rows
    np.testing.assert_allclose(rows["value"], 0.75)
    assert set(rows["metric_fill"]) == {"black", "blur"}


def test_neither_order_nor_batch_size_changes_a_value(run, tmp_path):
    methods = {
        "sliding_patch": {"patch": 5, "stride": 3},
        "lime": {"n_samples": 11, "n_segments": 6},
        "random_map": {},
    }
    pictures = [picture(k) for k in range(3)]
    options = {
        "output": "logit",
        "targets": {"thing": 1},
        "metrics": ["deletion", "insertion", "pointing_game"],
    }
    found = [
        run(
            Linear(),
            order,
            methods,
            ["black", "telea"],
            batch_size=size,
            store=tmp_path / str(size),
            **options,
        ).rows
        for order, size in ((pictures, 4), (pictures[::-1], 1), (pictures, 7))
    ]
    keys = ["picture", "method", "fill", "metric"]
    ordered = [
        numbers(one).drop(columns="map_forwards").sort_values(keys).reset_index(drop=True) for one in found
    ]
    for other in ordered[1:]:
        pd.testing.assert_frame_equal(ordered[0], other, rtol=1e-9, atol=1e-9)
    random = found[0].query("method == 'random_map' and metric == 'deletion'")
    assert random["value"].nunique() == 3, "each picture has random numbers of its own"


@pytest.mark.parametrize("after", [1, 40, 133])
def test_a_run_that_is_stopped_goes_on_and_ends_with_the_same_rows(run, tmp_path, after):
    methods, options = (
        {"sliding_patch": {"patch": 5, "stride": 3}, "gaussian_map": {}},
        {"metric_fills": ["black", "mean"]},
    )
    pictures = [picture(k) for k in range(2)]
    whole = WholeObject()
    undisturbed = run(whole, pictures, methods, store=tmp_path / "other", **options).rows
    stopped = WholeObject()

    def stop(module, inputs):
        if module.images > after:
            raise KeyboardInterrupt

    handle = stopped.register_forward_pre_hook(stop)
    with pytest.raises(KeyboardInterrupt):
        run(stopped, pictures, methods, **options)
    handle.remove()
    stopped.images = 0
    pd.testing.assert_frame_equal(
        numbers(run(stopped, pictures, methods, **options).rows), numbers(undisturbed)
    )
    assert stopped.images <= whole.images - (after > 60) * 29
    stopped.images = 0
    run(stopped, pictures, methods, **options)
    assert stopped.images == 4, "only the clean pictures, for their class and its score"


def test_half_a_file_is_computed_again(run, tmp_path):
    methods = {"sliding_patch": {"patch": 5, "stride": 3}}
    first = run(WholeObject(), [picture()], methods).rows
    for file in (tmp_path / "store").rglob("*.*"):
        file.write_bytes(file.read_bytes()[:40])
    pd.testing.assert_frame_equal(numbers(run(WholeObject(), [picture()], methods).rows), numbers(first))
    for file in (tmp_path / "store").rglob("*.json"):
        file.write_text("[]")
    pd.testing.assert_frame_equal(numbers(run(WholeObject(), [picture()], methods).rows), numbers(first))


def test_what_changes_a_map_changes_its_key(run):
    def key(network=None, drawn=None, methods=("sliding_patch",), fills=("black",), **options):
        settings = {"output": "logit", "targets": {"thing": 1}, "metrics": []} | options
        [found] = run(network or Linear(), [drawn or picture()], methods, fills, **settings).keys.values()
        return found

    changed = [
        key(Linear(1)), key(drawn=picture(1)), key(methods=["random_map"]), key(fills=["blur"]), key(seed=1),
        key(methods={"sliding_patch": {"patch": 3}}), key(targets={"thing": 0}), key(output="probability"),
        key(transform=Transform(SIDE, 0.9, "bilinear", (0.0,) * 3, (1.0,) * 3)),
        key(transform=Transform(SIDE, 1.0, "bilinear", (0.1,) * 3, (1.0,) * 3)),
    ]  # fmt: skip
    assert len({key(), *changed}) == 11
    assert key(batch_size=2) == key()


def test_metrics_are_added_without_making_the_maps_again(run):
    network = WholeObject()
    run(network, [picture()], {"sliding_patch": {"patch": 5, "stride": 3}})
    network.images = 0
    rows = run(
        network,
        [picture()],
        {"sliding_patch": {"patch": 5, "stride": 3}},
        metrics=["deletion", "pointing_game"],
    ).rows
    assert network.images == 2
    assert len(rows) == 2


def test_failures_are_rows_with_reasons_and_are_tried_again(run, maps, tmp_path):
    def broken(images, masks):
        raise RuntimeError("no memory left")

    def holes(images, masks):
        return images * float("nan")

    (tmp_path / "torn.png").write_bytes(b"\x89PNG")
    pictures = [
        picture(),
        picture(1, boxes=[], masks={}),
        AttributionPicture("torn", tmp_path / "torn.png", "thing"),
    ]
    metrics = ["deletion", "localisation", "mass_inside_mask"]
    fills = {"broken": broken, "holes": holes, "black": "black"}
    methods = {"sliding_patch": {"patch": 5, "stride": 3}, "nan": {}}
    metric_fills = {"deletion": {"black": "black", "holes": holes}}
    rows = run(WholeObject(), pictures, methods, fills, metrics, metric_fills=metric_fills).rows
    assert len(rows) == 3 * 4 * 4
    reasons = rows.set_index(["picture", "method", "fill", "metric", "metric_fill"])["reason"]
    assert (
        reasons["p0", "sliding_patch", "broken", "deletion", "black"]
        == "heat map: RuntimeError: no memory left"
    )
    assert (
        "heat map: a fill must return finite values"
        in reasons["p0", "sliding_patch", "holes", "localisation", "none"]
    )
    assert "a fill must return finite values" in reasons["p0", "sliding_patch", "black", "deletion", "holes"]
    assert (
        reasons["p1", "sliding_patch", "black", "localisation", "none"] == "the picture has no box of 'thing'"
    )
    assert (
        reasons["p1", "sliding_patch", "black", "mass_inside_mask", "none"]
        == "the picture has no mask of 'thing'"
    )
    assert (
        reasons["p0", "nan", "none", "deletion", "black"]
        == "the map has 144 of 144 values that are not finite"
    )
    assert reasons["torn"].str.startswith("picture: ").all()
    assert reasons["p0", "sliding_patch", "black", "deletion", "black"] == ""
    assert (rows["value"].isna() <= rows["reason"].ne("")).all(), "no value goes missing without a reason"

    def mended(images, masks):
        return torch.zeros_like(images)

    again = run(
        WholeObject(), pictures[:1], {"sliding_patch": {"patch": 5, "stride": 3}}, {"broken": mended}
    ).rows
    assert again["reason"].item() == ""


def test_a_callable_without_a_name_is_not_kept_and_one_with_a_name_is(run, tmp_path):
    def own(images, masks):
        return torch.zeros_like(images)

    methods = {"sliding_patch": {"patch": 5, "stride": 3}}
    for fills, kept in (([own], 0), ({"own 1": own}, 1)):
        done = run(WholeObject(), [picture()], methods, fills, store=tmp_path / str(kept))
        assert len(list((tmp_path / str(kept)).rglob("*.npy"))) == kept
        assert done.map(
            "p0",
            "sliding_patch",
            fills[0].__name__ if not kept else "own 1",
            setting_text(methods["sliding_patch"]),
        ).shape == (SIDE, SIDE)
    done = run(WholeObject(), [picture()], methods, metric_fills=[own], store=tmp_path / "metric")
    [record] = (tmp_path / "metric").rglob("*.json")
    assert json.loads(record.read_text().splitlines()[0])["metrics"] == {}
    assert len(done.curves("deletion")) == 30


def test_methods_take_fills_of_their_own_and_several_settings(run):
    methods = {
        "sliding_patch": [{"patch": 3, "stride": 3}, {"patch": 5, "stride": 5}],
        "random_map": {},
        "occlusion": {"patch": 4},
    }
    rows = run(WholeObject(), [picture()], methods, {"sliding_patch": ["black", "blur"]}).rows
    found = rows[["method", "fill", "setting"]].to_numpy().tolist()
    assert found == [
        ["sliding_patch", "black", "patch=3, stride=3"], ["sliding_patch", "blur", "patch=3, stride=3"],
        ["sliding_patch", "black", "patch=5, stride=5"], ["sliding_patch", "blur", "patch=5, stride=5"],
        ["random_map", "none", "default"], ["occlusion", "mean", "patch=4"],
    ]  # fmt: skip
    assert "integrated_gradients" not in FILLED
    assert [job.fill for job in metric_jobs(["deletion", "insertion", "saliency"], None)] == [
        "zero",
        "blur",
        "none",
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": ["grad_cam"]}, "unknown method 'grad_cam'; known: sliding_patch, lime"),
        ({"methods": []}, "methods must name at least one; got none"),
        ({"methods": {"lime": {"patch": 3}}}, "lime has no setting patch; known: .*n_samples"),
        (
            {"methods": {"lime": [{}, {}]}},
            "methods must ask for each map once; lime black default stands there twice",
        ),
        ({"fills": ["green"]}, "unknown fill 'green'; known: zero, black"),
        ({"fills": "black"}, r"fills must be a list of fills or a mapping; got 'black'. Write \['black'\]"),
        ({"fills": []}, "fills must name at least one; got none"),
        ({"fills": ["black", "black"]}, "fills must have different names; 'black' stands there twice"),
        ({"metrics": ["accuracy"]}, "unknown metric 'accuracy'; known: deletion"),
        (
            {"metric_fills": {"insertion": ["black"]}},
            "metric_fills names insertion, which is not among the metrics",
        ),
        ({"pictures": []}, "pictures must be there and have different names; got 0"),
        ({"pictures": [picture(), picture()]}, "pictures must be there and have different names; got 2"),
        ({"transform": None}, "a plain module needs transform="),
        ({"fold": True}, "only a Backbone"),
    ],
)
def test_what_cannot_be_meant_stops_at_once(run, changes, message):
    given = {"pictures": [picture()], "methods": ["lime"]} | changes
    with pytest.raises(ValueError, match=message):
        run(WholeObject(), **given)


def test_a_fill_whose_file_lacks_is_told_before_anything_is_computed(run):
    network = WholeObject()
    with pytest.raises(FileNotFoundError, match="lama needs its TorchScript file"):
        run(network, [picture()], ["lime"], ["lama"])
    assert network.images == 0


def test_a_wrong_target_is_a_reason(run):
    rows = run(WholeObject(), [picture()], ["random_map"], targets={"other": 1}).rows
    assert rows["reason"].item() == "picture: targets must say which class 'thing' is; they name other."
    rows = run(WholeObject(), [picture()], ["random_map"], targets="first").rows
    assert '"top", "label" or a mapping' in rows["reason"].item()


def test_rows_are_tidy_and_sets_tell_what_they_left_out(run):
    given = PictureSet((picture(),), pd.DataFrame({"picture": ["q"], "reason": ["no box"]}))
    done = run(WholeObject(), given, ["random_map"], metrics=list(METRICS))
    assert tuple(done.rows.columns) == COLUMNS
    assert done.skipped["picture"].tolist() == ["q"]
    assert dict(zip(done.rows["metric"], done.rows["direction"])) == {
        n: m.direction for n, m in METRICS.items()
    }
    assert not done.rows.duplicated(["picture", "method", "fill", "setting", "metric", "metric_fill"]).any()
    pd.testing.assert_frame_equal(
        numbers(evaluate(WholeObject(), given, ["random_map"], ["black"], list(METRICS), transform=TRANSFORM,
                         output="given", store=done.folders[0])), numbers(done.rows))  # fmt: skip


def test_keys_cover_all_code_that_makes_maps_and_metrics():
    """A change of any module that methods and metrics import makes what was computed before stale."""
    seen, waiting = set(), {"methods", "metrics", "targets"}
    while waiting:
        name = waiting.pop()
        seen.add(name)
        source = (PACKAGE / "attribution" / f"{name}.py").read_text()
        prefix = "biastransfer.attribution."
        names = imported_modules(source, "biastransfer.attribution")
        found = {one.removeprefix(prefix).split(".")[0] for one in names if one.startswith(prefix)}
        waiting |= {one for one in found if (PACKAGE / "attribution" / f"{one}.py").is_file()} - seen
    assert sorted(evaluation_store.CODE) == sorted(seen)
