"""Deletion, insertion and ROAD against closed forms, oracles and a loop written out by hand."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from biastransfer.attribution.curves import follow
from biastransfer.attribution.faithfulness import deletion, insertion, road
from biastransfer.attribution.removal import Space

SIDE = 12
SPACE = Space((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def rng(seed=0):
    return np.random.default_rng(seed)


def picture(seed=0, side=SIDE):
    return torch.from_numpy(rng(seed).random((3, side, side), dtype=np.float32))


def heat(seed=1, side=SIDE):
    return rng(seed).standard_normal((side, side)).astype(np.float32)


def ones(images):
    return torch.ones(len(images))


def linear(weights):
    """f(x) = Σ w·x, and its exact attribution w·x summed over channels."""
    return lambda images: (images.double() * weights).sum((1, 2, 3))


def by_hand(score, image, heatmap, step, removed_value, insert=False):
    """Deletion written as a loop over single pixels and points: the second computation."""
    order = sorted(range(heatmap.size), key=lambda k: (-heatmap.flat[k], k))
    counts, scores = [], []
    for start in range(0, len(order) + step, step):
        counts.append(min(start, len(order)))
    for count in dict.fromkeys(counts):
        version = removed_value.clone() if insert else image.clone()
        for pixel in order[:count]:
            y, x = divmod(pixel, heatmap.shape[1])
            version[:, y, x] = image[:, y, x] if insert else removed_value[:, y, x]
        scores.append(float(score(version[None])[0]))
    fractions = np.array(list(dict.fromkeys(counts))) / len(order)
    widths = np.diff(fractions)
    return fractions, np.array(scores), float((widths * (np.array(scores)[1:] + scores[:-1]) / 2).sum())


# perfect and worst scores known beforehand


@pytest.mark.parametrize("step", [1, 7, 50, SIDE * SIDE, 10_000])
def test_constant_one_has_auc_one_at_every_step(step):
    curve = deletion(ones, picture(), heat(), step=step)
    assert curve.auc == pytest.approx(1.0, abs=1e-15)
    assert insertion(ones, picture(), heat(), step=step).auc == pytest.approx(1.0, abs=1e-15)
    assert (curve.fractions[0], curve.fractions[-1]) == (0.0, 1.0)


def test_a_picture_of_224_has_29_points_with_both_ends():
    curve = deletion(ones, picture(side=224), heat(side=224), batch_size=29)
    assert len(curve.fractions) == 29
    np.testing.assert_allclose(np.diff(curve.fractions), 1792 / 224**2)


def test_last_step_is_partial_and_its_true_width_is_on_the_axis():
    curve = deletion(ones, picture(side=10), heat(side=10), step=30)
    assert curve.fractions.tolist() == [0, 0.3, 0.6, 0.9, 1.0]


def test_a_model_that_sees_one_pixel_gone_gives_the_first_trapezoid_only():
    """Score 1 until any object pixel is removed: AUC is half a step, the least that a step allows."""
    image = torch.ones(3, SIDE, SIDE)
    score = lambda images: (images[:, :, 4:8, 4:8].amin((1, 2, 3)) == 1).float()  # noqa: E731
    truth = np.zeros((SIDE, SIDE))
    truth[4:8, 4:8] = 1
    assert deletion(score, image, truth, step=1).auc == pytest.approx(0.5 / SIDE**2)
    # the worst map removes everything else first
    worst = deletion(score, image, -truth, step=1)
    assert worst.auc == pytest.approx((SIDE**2 - 16 + 0.5) / SIDE**2)


def test_insertion_of_the_true_object_first_is_the_best_there_is():
    image = torch.ones(3, SIDE, SIDE)
    score = lambda images: (images[:, :, 4:8, 4:8].amin((1, 2, 3)) == 1).float()  # noqa: E731
    truth = np.zeros((SIDE, SIDE))
    truth[4:8, 4:8] = 1
    best = insertion(score, image, truth, step=1, fill="black")
    assert best.auc == pytest.approx((SIDE**2 - 16 + 0.5) / SIDE**2)
    assert insertion(score, image, -truth, step=1, fill="black").auc == pytest.approx(0.5 / SIDE**2)


def test_a_model_that_ignores_the_picture_ranks_all_maps_alike():
    score = lambda images: torch.full((len(images),), 0.25)  # noqa: E731
    found = {deletion(score, picture(), heat(seed)).auc for seed in range(5)}
    found |= {insertion(score, picture(), heat(seed)).auc for seed in range(5)}
    assert found == {0.25}
    imputed = road(score, picture(), heat(), fill="zero")
    assert (imputed.gap, imputed.auc_most, imputed.auc_least) == (0, pytest.approx(0.25), pytest.approx(0.25))


@pytest.mark.parametrize("fill", ["zero", "black", "mean"])
def test_linear_model_has_the_closed_form(fill):
    """With f = Σ w·x and φ = Σ_c w·(x − b) every removed pixel takes exactly its attribution away."""
    image, weights = picture(3).double(), torch.from_numpy(rng(4).standard_normal((3, SIDE, SIDE)))
    colour = {"zero": (0, 0, 0), "black": (0, 0, 0), "mean": (0.485, 0.456, 0.406)}[fill]
    base = torch.tensor(colour, dtype=torch.float64)[:, None, None]
    phi = (weights * (image - base)).sum(0).numpy()
    ordered = np.sort(phi.ravel())[::-1]
    expected = float((weights * image).sum()) - np.concatenate([[0], np.cumsum(ordered)])
    curve = deletion(linear(weights), image, phi, step=1, fill=fill)
    np.testing.assert_allclose(curve.scores, expected, atol=1e-9)
    np.testing.assert_allclose(curve.auc, expected[1:-1].mean() * (1 - 1 / SIDE**2)
                               + (expected[0] + expected[-1]) / 2 / SIDE**2)  # fmt: skip
    put_back = insertion(linear(weights), image, phi, step=1, fill=fill)
    np.testing.assert_allclose(
        put_back.scores, expected[-1] + np.concatenate([[0], np.cumsum(ordered)]), atol=1e-9
    )


def test_no_order_beats_the_exact_attribution_of_a_linear_model():
    image, weights = picture(3).double(), torch.from_numpy(rng(4).standard_normal((3, SIDE, SIDE)))
    phi = (weights * image).sum(0).numpy()
    best = deletion(linear(weights), image, phi, step=5).auc
    assert all(best <= deletion(linear(weights), image, heat(seed), step=5).auc for seed in range(20))
    assert deletion(linear(weights), image, -phi, step=5).auc > best


@given(st.integers(0, 10_000), st.integers(1, 70), st.sampled_from([False, True]))
@settings(max_examples=25, deadline=None)
def test_equal_to_a_loop_over_pixels(seed, step, insert):
    image = picture(seed, side=8)
    heatmap = rng(seed).integers(0, 4, (8, 8)).astype(float)  # many ties
    score = linear(torch.from_numpy(rng(seed + 1).standard_normal((3, 8, 8))))
    metric = insertion if insert else deletion
    curve = metric(score, image, heatmap, step=step, fill="zero", batch_size=3)
    fractions, scores, auc = by_hand(score, image, heatmap, step, torch.zeros_like(image), insert)
    np.testing.assert_allclose(curve.fractions, fractions)
    np.testing.assert_allclose(curve.scores, scores, atol=1e-9)
    assert curve.auc == pytest.approx(auc, abs=1e-9)


# what must not change a value


@pytest.mark.parametrize("metric", [deletion, insertion, road])
@pytest.mark.parametrize("fill", ["zero", "mean", "blur", "noise", "telea"])
def test_batch_size_never_changes_a_value(metric, fill):
    score = linear(torch.from_numpy(rng(4).standard_normal((3, SIDE, SIDE))))
    results = [
        metric(
            score, picture(), heat(), fill=fill, batch_size=size, **({} if metric is road else {"step": 13})
        )
        for size in (1, 3, 5, 100)
    ]
    assert len({one.value for one in results}) == 1


def test_order_of_pictures_and_earlier_calls_never_change_a_value():
    pairs = [(picture(seed), heat(seed + 50)) for seed in range(4)]
    score = linear(torch.from_numpy(rng(4).standard_normal((3, SIDE, SIDE))))
    forwards = [deletion(score, *pair, step=9, fill="noise").auc for pair in pairs]
    backwards = [deletion(score, *pair, step=9, fill="noise").auc for pair in reversed(pairs)]
    assert forwards == backwards[::-1]


def test_only_the_order_of_the_map_counts():
    score = linear(torch.from_numpy(rng(4).standard_normal((3, SIDE, SIDE))))
    values = heat().astype(np.float64)
    one = deletion(score, picture(), values, step=9)
    for same in (3 * values - 7, np.exp(values), torch.from_numpy(values).requires_grad_()):
        assert deletion(score, picture(), same, step=9).auc == one.auc


def test_ties_go_row_by_row_and_their_share_is_told():
    heatmap = np.zeros((2, 2))
    heatmap[1, 1] = 1
    first = lambda images: images[:, 0, 0, 0] * 4 + images[:, 0, 0, 1] * 2 + images[:, 0, 1, 0]  # noqa: E731
    curve = deletion(first, torch.ones(3, 2, 2), heatmap, step=1)
    assert curve.scores.tolist() == [7, 7, 3, 1, 0]
    assert curve.tied == 0.75
    assert deletion(first, torch.ones(3, 2, 2), np.arange(4.0).reshape(2, 2), step=1).tied == 0


def test_normalised_tensors_give_what_pixels_give():
    """The same curve whichever space the picture is in, for every fill that is a colour of pixels."""
    weights = torch.from_numpy(rng(4).standard_normal((3, SIDE, SIDE)))
    pixels, normalised = picture().double(), SPACE.values(picture().double())
    on_pixels = linear(weights)
    on_values = lambda values: on_pixels(SPACE.pixels(values))  # noqa: E731
    for fill in ("black", "mean", "blur"):
        a = deletion(on_pixels, pixels, heat(), step=20, fill=fill)
        b = deletion(on_values, normalised, heat(), step=20, fill=fill, space=SPACE)
        np.testing.assert_allclose(a.scores, b.scores, atol=1e-6)
    zero = deletion(on_values, normalised, heat(), step=20)  # the tensor value 0 is mean grey there
    grey = deletion(on_pixels, pixels, heat(), step=20, fill="mean")
    np.testing.assert_allclose(zero.scores, grey.scores, atol=1e-6)


def test_what_the_score_does_to_its_batch_harms_nothing():
    image = picture()
    before = image.clone()

    def careless(images):
        values = images.sum((1, 2, 3))
        images.sub_(5).mul_(100)
        return values

    curve = deletion(careless, image, heat(), step=11)
    clean = deletion(lambda images: images.sum((1, 2, 3)), image, heat(), step=11)
    assert torch.equal(image, before)
    assert curve.scores.tolist() == clean.scores.tolist()


def test_a_score_may_use_view_and_keep_its_batch():
    kept = []
    score = lambda images: kept.append(images) or images.view(len(images), -1).sum(1)  # noqa: E731
    curve = deletion(score, picture(), heat(), step=36, batch_size=2)
    assert torch.cat(kept).sum((1, 2, 3)).double().tolist() == pytest.approx(curve.scores.tolist(), rel=1e-5)


def test_all_channels_of_a_pixel_go_together():
    seen = []
    deletion(
        lambda images: seen.append(images.clone()) or ones(images), torch.ones(3, 4, 4), heat(side=4), step=3
    )
    versions = torch.cat(seen)
    assert (versions.amax(1) == versions.amin(1)).all()
    assert (versions[:, 0] == 0).sum((1, 2)).tolist() == [0, 3, 6, 9, 12, 15, 16]


def test_no_graph_is_kept():
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * SIDE * SIDE, 1))
    tracked = []
    deletion(lambda images: tracked.append(network(images).requires_grad) or ones(images), picture(), heat())
    assert tracked
    assert not any(tracked)


# in-painters see the hole grow


def test_a_callable_is_asked_at_every_step_with_the_growing_hole():
    holes = []

    def filler(images, masks):
        holes.append(masks.clone())
        return torch.zeros_like(images)

    deletion(ones, picture(), heat(), step=40, fill=filler, batch_size=2)
    assert torch.cat(holes).sum((1, 2, 3)).tolist() == [0, 40, 80, 120, 144]
    holes.clear()
    insertion(ones, picture(), heat(), step=40, fill=filler, batch_size=2)
    assert torch.cat(holes).sum((1, 2, 3)).tolist() == [144, 104, 64, 24, 0]


def test_a_callable_colour_gives_what_the_named_colour_gives():
    score = linear(torch.from_numpy(rng(4).standard_normal((3, SIDE, SIDE))))

    def black(images, masks):
        return torch.zeros_like(images)

    named = deletion(score, picture(), heat(), step=10, fill="black")
    asked = deletion(score, picture(), heat(), step=10, fill=black)
    assert named.scores.tolist() == asked.scores.tolist()
    assert (named.fill, asked.fill) == ("black", "black")


def test_fill_settings_reach_the_fill():
    score = linear(torch.from_numpy(rng(4).standard_normal((3, SIDE, SIDE))))
    mild = insertion(score, picture(), heat(), fill_settings={"kernel": 3, "sigma": 0.5})
    assert mild.scores[0] != insertion(score, picture(), heat()).scores[0]


# the target is fixed from the clean picture


def test_target_is_the_best_class_of_the_clean_picture_for_both_curves():
    image = torch.zeros(3, SIDE, SIDE)
    image[0] = 1.0
    # class 1 wins on the clean picture, class 0 on the emptied one
    classes = lambda images: torch.stack([torch.full((len(images),), 0.4), images[:, 0].mean((1, 2))], 1)  # noqa: E731
    removed = deletion(classes, image, heat(), step=36)
    assert removed.target == 1
    np.testing.assert_allclose(removed.scores, [1, 0.75, 0.5, 0.25, 0])
    inserted = insertion(classes, image, heat(), step=36, fill="black")
    assert inserted.target == 1
    np.testing.assert_allclose(inserted.scores, [0, 0.25, 0.5, 0.75, 1])
    assert deletion(classes, image, heat(), target=0).auc == pytest.approx(0.4)
    assert road(classes, image, heat(), fill="zero").target == 1


def test_a_column_counts_as_one_value_a_picture():
    one = deletion(lambda images: images.mean((1, 2, 3)), picture(), heat(), step=20)
    column = deletion(lambda images: images.mean((1, 2, 3))[:, None], picture(), heat(), step=20)
    assert one.auc == column.auc
    assert column.target is None


# ROAD


def test_road_of_a_linear_model_has_the_closed_form():
    image, weights = picture(3).double(), torch.from_numpy(rng(4).standard_normal((3, 10, 10)))
    image = picture(3, side=10).double()
    phi = (weights * image).sum(0).numpy()
    one = road(linear(weights), image, phi, fill="zero")
    total, ordered = float((weights * image).sum()), np.sort(phi.ravel())[::-1]
    taken = np.arange(0, 100, 10)
    expected_most = [total - ordered[:k].sum() for k in taken]
    expected_least = [total - ordered[::-1][:k].sum() for k in taken]
    np.testing.assert_allclose(one.most, expected_most, atol=1e-9)
    np.testing.assert_allclose(one.least, expected_least, atol=1e-9)
    assert one.gap == pytest.approx(one.auc_least - one.auc_most)
    assert one.gap > 0
    assert road(linear(weights), image, -phi, fill="zero").gap == pytest.approx(-one.gap)
    np.testing.assert_allclose(one.fractions, taken / 100)


def test_road_imputes_from_neighbours_by_default():
    flat = torch.full((3, SIDE, SIDE), 0.5)
    one = road(lambda images: images.amin((1, 2, 3)), flat, heat(), fill_settings={"noise": 0.0})
    np.testing.assert_allclose(one.most, 0.5, atol=1e-4)
    assert one.fill == "road"


# maps and scores that are no ranking


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("metric", [deletion, insertion, road])
def test_a_map_that_is_not_finite_gives_nan_and_says_how_many(metric, bad):
    heatmap = heat()
    heatmap[2, 3:6] = bad
    one = metric(ones, picture(), heatmap)
    assert np.isnan(one.value)
    assert one.reason == f"the map has 3 of {SIDE * SIDE} values that are not finite"
    assert not one.probability


def test_a_constant_map_goes_by_rows_and_says_so():
    top = lambda images: images[:, :, :6].mean((1, 2, 3)) * 2  # noqa: E731
    one = deletion(
        lambda images: top(images) / 2, torch.ones(3, SIDE, SIDE), np.full((SIDE, SIDE), 3.0), step=72
    )
    assert one.scores.tolist() == [1.0, 0.0, 0.0]
    assert one.reason == "the map is constant: pixels go row by row"
    assert one.tied == 1


def test_a_score_that_is_not_finite_gives_nan_and_says_where():
    score = lambda images: images.mean((1, 2, 3)) / images.mean((1, 2, 3)).ceil()  # noqa: E731
    one = deletion(score, torch.ones(3, 4, 4), heat(side=4), step=4)
    assert np.isnan(one.auc)
    assert one.reason == "the score is not finite at 1 of 5 points"


def test_logits_are_followed_and_marked():
    score = lambda images: 10 * images.mean((1, 2, 3))  # noqa: E731
    one = deletion(score, torch.ones(3, 4, 4), heat(side=4), step=4)
    assert (one.auc, one.probability, one.reason) == (pytest.approx(5.0), False, "")
    assert deletion(lambda images: score(images) / 10, torch.ones(3, 4, 4), heat(side=4)).probability


# mistakes


@pytest.mark.parametrize(
    ("image", "heatmap", "message"),
    [
        (
            torch.rand(SIDE, SIDE, 3),
            heat(),
            r"image must be one picture \(3, H, W\); got shape \(12, 12, 3\)",
        ),
        (torch.rand(1, 3, SIDE, SIDE), heat(), r"image must be one picture.*\(1, 3, 12, 12\)"),
        (torch.zeros(3, SIDE, SIDE, dtype=torch.uint8), heat(), "floating point; got torch.uint8. Divide"),
        (torch.full((3, SIDE, SIDE), torch.nan), heat(), "image must be finite"),
        (picture(), heat(side=11), r"heatmap must be \(H, W\) = \(12, 12\).*got shape \(11, 11\)"),
        (picture(), heat()[None], r"heatmap must be .* got shape \(1, 12, 12\). Sum over channels"),
        (picture(), heat().astype(complex), "heatmap must hold real numbers; got complex"),
    ],
)
def test_mistaken_pictures_and_maps_raise(image, heatmap, message):
    for metric in (deletion, insertion, road):
        with pytest.raises(ValueError, match=message):
            metric(ones, image, heatmap)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"step": 0}, "step must be a whole number of pixels, at least 1; got 0"),
        ({"step": 2.5}, "step must be a whole number"),
        ({"step": True}, "step must be a whole number"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1; got 0"),
        ({"fill": "purple"}, "unknown fill 'purple'; known: zero"),
        ({"target": 3}, "target chooses a column.*Leave target out"),
        ({"fill": lambda images, masks: images[..., :-1]}, "fill must return images of shape"),
        ({"fill": lambda images, masks: images * torch.nan}, "fill must return finite values"),
    ],
)
def test_mistaken_settings_raise(settings, message):
    with pytest.raises(ValueError, match=message):
        deletion(ones, picture(), heat(), **settings)


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (lambda images: images, r"score must return one value a picture.*got shape \(2, 3, 12, 12\)"),
        (lambda images: images.mean(), r"score must return one value a picture.*got shape \(\)"),
        (lambda images: torch.ones(7), r"with N = 2; got shape \(7,\)"),
        (lambda images: torch.ones(len(images), 0), "score must return"),
    ],
)
def test_mistaken_scores_raise(score, message):
    with pytest.raises(ValueError, match=message):
        deletion(score, picture(), heat())


def test_a_target_beyond_the_classes_raises():
    with pytest.raises(ValueError, match=r"target must lie in 0..3, the score's classes; got 4"):
        deletion(lambda images: torch.ones(len(images), 4), picture(), heat(), target=4)


@pytest.mark.parametrize("fractions", [(0.1, 0.2), (0, 0.5, 0.5), (0, 1.2), (0,)])
def test_road_fractions_must_start_at_zero_and_increase(fractions):
    with pytest.raises(ValueError, match=r"fractions must start at 0 and increase within \[0, 1\]"):
        road(ones, picture(), heat(), fractions=fractions)


# any order


def test_follow_scores_any_order():
    image, order = torch.ones(3, 2, 2), np.array([3, 2, 1, 0])
    corner = lambda images: images[:, 0, 1, 1]  # noqa: E731
    assert follow(corner, image, order, np.array([0, 1, 4])).tolist() == [1, 0, 0]
    assert follow(corner, image, order, np.array([0, 1, 4]), keep=True).tolist() == [0, 1, 1]
