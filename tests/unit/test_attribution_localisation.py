"""Boxes, peaks and mass against hand values, pixel counting and maps whose score is known."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from biastransfer.attribution.boxes import as_boxes, as_mask, box_mask, iou_with_union, union_area
from biastransfer.attribution.localisation import ALPHAS, localisation_curve, localise
from biastransfer.attribution.pointing import mass_inside, pointing_game
from biastransfer.attribution.saliency import saliency, saliency_metric, tight_box

H, W = 12, 16
OBJECT = [3, 2, 9, 7]  # 6 wide, 5 high


def mask_of(*boxes):
    mask = np.zeros((H, W), bool)
    for x1, y1, x2, y2 in boxes:
        mask[y1:y2, x1:x2] = True
    return mask


def counted_iou(box, boxes):
    """IoU by counting pixels of masks: the second computation."""
    one, truth = mask_of(box), mask_of(*boxes)
    return (one & truth).sum() / (one | truth).sum()


corner = st.tuples(st.integers(0, W - 1), st.integers(0, H - 1), st.integers(1, W), st.integers(1, H))
whole_boxes = corner.map(lambda c: (min(c[0], c[2] - 1), min(c[1], c[3] - 1), c[2], c[3]))


# maps whose score is known


def test_the_true_mask_has_no_localisation_error():
    one = localise(mask_of(OBJECT).astype(float), [OBJECT])
    assert (one.box, one.iou, one.hit, one.value, one.reason) == (tuple(OBJECT), 1.0, True, 0.0, "")


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_true_mask_of_several_objects_has_no_error_where_its_box_is_the_union(alpha):
    boxes = [[2, 2, 6, 8], [6, 2, 9, 8]]
    assert localise(mask_of(*boxes), boxes, alpha=alpha).iou == 1


def test_a_single_pixel_has_a_box_of_area_one():
    heat = np.zeros((H, W))
    heat[4, 5] = 2.0
    one = localise(heat, [[5, 4, 6, 5]])
    assert (one.box, one.iou) == ((5, 4, 6, 5), 1.0)
    assert localise(heat, [OBJECT]).iou == pytest.approx(1 / 30)


def test_a_single_row_is_a_box_one_pixel_high():
    heat = np.zeros((H, W))
    heat[7] = 1.0
    one = localise(heat, [[0, 7, 8, 8]])
    assert (one.box, one.iou, one.hit) == ((0, 7, W, 8), 0.5, False)  # a hit needs more than a half


@pytest.mark.parametrize(
    ("heat", "iou", "reason"),
    [
        (np.zeros((H, W)), 0.0, "no value of the map is above 0"),
        (np.full((H, W), -1.0), 0.0, "no value of the map is above 0"),
        (-np.arange(H * W, dtype=float).reshape(H, W), 0.0, "no value of the map is above 0"),
        (np.full((H, W), np.nan), np.nan, "the map has 192 of 192 values that are not finite"),
    ],
)
def test_an_empty_map_is_a_miss_with_a_reason(heat, iou, reason):
    one = localise(heat, [OBJECT])
    assert (one.box, one.hit, one.value, one.reason) == (None, False, 1.0, reason)
    assert one.iou == iou or np.isnan(iou) == np.isnan(one.iou)


def test_a_constant_map_is_a_miss_even_where_its_box_fits():
    one = localise(np.ones((H, W)), [[0, 0, W, H]])
    assert (one.box, one.iou, one.hit, one.reason) == ((0, 0, W, H), 1.0, False, "the map is constant")


def test_one_nan_spoils_the_map():
    heat = mask_of(OBJECT).astype(float)
    heat[0, 0] = np.nan
    assert localise(heat, [OBJECT]).reason == "the map has 1 of 192 values that are not finite"


def test_negative_values_count_as_nothing():
    heat = mask_of(OBJECT).astype(float)
    heat[0, 0] = -100
    assert localise(heat, [OBJECT]).iou == 1


def test_the_box_holds_all_surviving_pixels_not_the_largest_part():
    heat = mask_of(OBJECT).astype(float)
    heat[11, 15] = 0.3
    assert localise(heat, [OBJECT], alpha=0.3).box == (3, 2, 16, 12)
    assert localise(heat, [OBJECT], alpha=0.31).box == tuple(OBJECT)


def test_scale_of_the_map_does_not_count_but_type_may_be_a_tensor():
    heat = np.random.default_rng(0).random((H, W))
    one = localise(heat, [OBJECT])
    assert localise(1e-9 * heat, [OBJECT]) == one
    assert localise(torch.from_numpy(heat).requires_grad_(), [OBJECT]) == one


# union and best


def test_union_and_best_rule_by_hand():
    heat = mask_of([0, 0, 4, 4]).astype(float)
    boxes = [[0, 0, 4, 2], [10, 0, 12, 4]]  # 8 pixels of which all are in the box of 16, and 8 that are not
    union = localise(heat, boxes, rule="union")
    best = localise(heat, boxes, rule="best")
    assert (union.iou, best.iou) == (8 / 24, 8 / 16)
    assert (union.n_boxes, union.hit, best.hit) == (2, False, False)


def test_overlapping_boxes_count_once_in_the_union():
    heat = mask_of([0, 0, 6, 4]).astype(float)
    assert localise(heat, [[0, 0, 4, 4], [2, 0, 6, 4]]).iou == 1
    assert localise(heat, [[0, 0, 4, 4], [0, 0, 4, 4]]).iou == 16 / 24


def test_twins_of_a_box_change_nothing():
    heat = np.random.default_rng(1).random((H, W)) ** 4
    for rule in ("union", "best"):
        assert localise(heat, [OBJECT], rule=rule).iou == localise(heat, [OBJECT] * 3, rule=rule).iou


@given(whole_boxes, st.lists(whole_boxes, min_size=1, max_size=5))
@settings(max_examples=150, deadline=None)
def test_exact_areas_equal_counting_pixels(box, boxes):
    assert union_area(np.array(boxes, float)) == mask_of(*boxes).sum()
    assert iou_with_union(box, boxes) == pytest.approx(counted_iou(box, boxes), abs=1e-12)
    assert box_mask(np.array(boxes, float), (H, W)).tolist() == mask_of(*boxes).tolist()


def test_boxes_between_pixels_are_measured_exactly():
    assert iou_with_union([0, 0, 1, 1], [[0.5, 0, 1.5, 1]]) == pytest.approx(0.5 / 1.5)
    assert union_area(np.array([[0, 0, 0.25, 4], [0.125, 0, 0.5, 4]])) == 2.0


def test_a_pixel_belongs_to_a_box_by_its_centre():
    assert box_mask(np.array([[0.4, 0, 1.6, 1]]), (1, 3)).tolist() == [[True, True, False]]
    assert box_mask(np.array([[0.6, 0, 1.4, 1]]), (1, 3)).tolist() == [[False, False, False]]
    with pytest.raises(ValueError, match="the region must hold at least one pixel"):
        mass_inside(np.ones((H, W)), [[0.6, 0, 1.4, 1]])


# curves


def test_threshold_and_cutoff_curves_by_hand():
    heat = np.zeros((H, W))
    heat[0:2, 0:8] = 0.2
    heat[0:2, 0:4] = 1.0
    table = localisation_curve(heat, [[0, 0, 8, 2]], cutoffs=(0.4, 0.5))
    assert table["alpha"].unique().tolist() == [0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5]
    at_half = table[table.cutoff == 0.5].set_index("alpha")
    assert at_half.loc[[0.1, 0.15, 0.2], "iou"].tolist() == [1, 1, 1]
    assert at_half.loc[[0.25, 0.5], ["iou", "error"]].to_numpy().tolist() == [[0.5, 1], [0.5, 1]]
    assert table[table.cutoff == 0.4]["hit"].all()


def test_curve_of_an_empty_map_is_all_misses_with_the_reason():
    table = localisation_curve(np.zeros((H, W)), [OBJECT], cutoffs=(0.0, 0.5))
    assert table["error"].eq(1).all()
    assert table["reason"].eq("no value of the map is above 0").all()


# pointing game and mass


def test_pointing_game_by_boxes_and_mask():
    heat = np.zeros((H, W))
    heat[6, 8] = 1  # the last pixel inside
    assert pointing_game(heat, [OBJECT]).point == (8, 6)
    assert pointing_game(heat, [OBJECT]).value == 1
    assert pointing_game(heat, mask_of(OBJECT)).hit
    heat[7, 8] = 2  # one pixel below
    assert not pointing_game(heat, [OBJECT]).hit
    assert pointing_game(heat, [OBJECT], tolerance=1).hit
    hole = mask_of(OBJECT)
    hole[6, 8] = False
    heat[7, 8] = 0
    assert not pointing_game(heat, hole).hit


def test_pointing_game_takes_the_first_of_equal_peaks_and_no_peak_is_a_miss():
    heat = np.zeros((H, W))
    heat[3, 4] = heat[11, 11] = 1
    assert pointing_game(heat, [OBJECT]).point == (4, 3)
    assert pointing_game(np.ones((H, W)), [OBJECT]).reason == "the map is constant"
    assert not pointing_game(np.ones((H, W)), [OBJECT]).hit


def test_mass_inside_by_hand_and_chance_level():
    heat = np.full((H, W), 0.25)
    heat[0, 0] = -50.0
    heat[2, 3] += 4.0
    one = mass_inside(heat, [OBJECT])
    assert one.value == pytest.approx((30 * 0.25 + 4) / (191 * 0.25 + 4))
    assert one.area == 30 / 192
    assert mass_inside(np.ones((H, W)), mask_of(OBJECT)).value == pytest.approx(30 / 192)
    assert mass_inside(mask_of(OBJECT), mask_of(OBJECT)).value == 1
    assert mass_inside(~mask_of(OBJECT), mask_of(OBJECT)).value == 0


def test_mass_of_an_empty_or_spoilt_map_is_nan_with_a_reason():
    empty = mass_inside(np.zeros((H, W)), [OBJECT])
    assert np.isnan(empty.value)
    assert empty.reason == "no value of the map is above 0"
    assert "not finite" in mass_inside(np.full((H, W), np.inf), [OBJECT]).reason


def test_mass_of_a_float32_map_is_summed_in_double():
    heat = np.full((1000, 1000), 0.1, np.float32)
    assert mass_inside(heat, [[0, 0, 500, 1000]]).value == pytest.approx(0.5, abs=1e-12)


# saliency metric


def picture():
    return torch.from_numpy(np.random.default_rng(0).random((3, H, W), dtype=np.float32))


def test_saliency_of_a_sure_model_is_the_log_of_the_area():
    one = saliency(lambda images: torch.ones(len(images)), picture(), mask_of(OBJECT).astype(float))
    assert one.value == pytest.approx(np.log(30 / 192))
    assert (one.box, one.area, one.p) == (tuple(OBJECT), 30 / 192, 1.0)
    assert not one.at_area_floor
    assert not one.at_p_floor


def test_saliency_by_hand_with_probability():
    value = saliency_metric(lambda images: torch.full((len(images),), 0.2), picture(), mask_of(OBJECT))
    assert value == pytest.approx(np.log(30 / 192) - np.log(0.2), abs=1e-6)


def test_floors_are_applied_and_told():
    heat = np.zeros((H, W))
    heat[0, 0] = 1
    one = saliency(lambda images: torch.zeros(len(images)), picture(), heat)
    assert one.value == pytest.approx(np.log(0.05) - np.log(1e-6))
    assert one.at_area_floor
    assert one.at_p_floor
    assert saliency_metric(
        lambda images: torch.zeros(len(images)), picture(), heat, floor=0.2, p_floor=0.5
    ) == pytest.approx(np.log(0.2) - np.log(0.5))


def test_the_crop_is_the_box_enlarged_to_the_pictures_size():
    seen = []
    image = torch.zeros(3, H, W)
    image[:, 2:7, 3:9] = 1.0  # the object alone is white
    saliency(lambda images: seen.append(images) or torch.ones(len(images)), image, mask_of(OBJECT))
    [crop] = seen
    assert crop.shape == (1, 3, H, W)
    assert (crop == 1).all()


def test_saliency_chooses_its_class_on_the_clean_picture():
    image = torch.zeros(3, H, W)
    image[:, 2:7, 3:9] = 1.0

    def classes(images):
        white = images.mean((1, 2, 3))
        return torch.stack([1 - white, white], 1)

    one = saliency(classes, image, mask_of(OBJECT))  # mostly black, so class 0; the crop is white
    assert (one.target, one.p) == (0, 0.0)
    assert saliency(classes, image, mask_of(OBJECT), target=1).p == 1.0


def test_saliency_of_an_empty_map_is_nan_and_of_a_constant_one_the_whole_picture():
    sure = lambda images: torch.full((len(images),), 0.5)  # noqa: E731
    assert np.isnan(saliency_metric(sure, picture(), np.zeros((H, W))))
    assert saliency(sure, picture(), np.zeros((H, W))).reason == "no value of the map is above 0"
    flat = saliency(sure, picture(), np.ones((H, W)))
    assert (flat.value, flat.reason) == (pytest.approx(np.log(2)), "the map is constant")


def test_saliency_refuses_logits():
    with pytest.raises(
        ValueError, match=r"needs a probability in \[0, 1\]; the score gave 3.5. Pass a score"
    ):
        saliency_metric(lambda images: torch.full((len(images),), 3.5), picture(), mask_of(OBJECT))
    with pytest.raises(ValueError, match="the score gave nan"):
        saliency_metric(lambda images: torch.full((len(images),), torch.nan), picture(), mask_of(OBJECT))
    rounded = lambda images: torch.full((len(images),), 1.0000001)  # noqa: E731
    assert saliency_metric(rounded, picture(), np.ones((H, W))) == 0


def test_tight_box_of_the_whole_and_of_a_corner():
    heat = np.zeros((H, W))
    heat[H - 1, W - 1] = 1
    assert tight_box(heat, 1.0)[0] == (W - 1, H - 1, W, H)
    heat[0, 0] = 1
    assert tight_box(heat, 0.5)[0] == (0, 0, W, H)


# mistakes


@pytest.mark.parametrize(
    ("boxes", "message"),
    [
        ([], "localisation needs at least one annotated box; got none. Places365"),
        ([[1, 2, 3]], r"boxes must be \(k, 4\).*got shape \(1, 3\)"),
        ([[1, 2, np.nan, 4]], "boxes must be finite"),
        (
            [[4, 2, 4, 5]],
            r"have x1 < x2 and y1 < y2 \(not width and height\); box 0 is \[4.0, 2.0, 4.0, 5.0\]",
        ),
        ([OBJECT, [9, 2, 3, 7]], "box 1 is"),
        ([[3, 2, 30, 7]], "lie in the picture, 16 wide and 12 high"),
        ([[20, 2, 30, 7]], "lie in the picture"),
        ([[-5, 2, 3, 7]], "lie in the picture"),
        ([[16, 2, 16.5, 7]], "lie in the picture"),
    ],
)
def test_mistaken_boxes_raise(boxes, message):
    with pytest.raises(ValueError, match=message):
        localise(mask_of(OBJECT).astype(float), boxes)


def test_boxes_that_stick_out_by_rounding_are_cut():
    assert as_boxes([[-0.4, 0, 16.6, 12.9]], (H, W)).tolist() == [[0, 0, 16, 12]]
    assert as_boxes(OBJECT).tolist() == [OBJECT]
    assert as_boxes([]).shape == (0, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda heat: localise(heat, [OBJECT], alpha=0), r"alpha must lie in \(0, 1\]; got 0"),
        (lambda heat: localise(heat, [OBJECT], alpha=1.5), r"alpha must lie in \(0, 1\]"),
        (lambda heat: localise(heat, [OBJECT], rule="all"), "rule must be one of union, best; got 'all'"),
        (
            lambda heat: localise(np.stack([heat] * 3), [OBJECT]),
            r"heatmap must be \(H, W\); got shape \(3, 12, 16\)",
        ),
        (lambda heat: pointing_game(heat, [OBJECT], tolerance=-1), "tolerance must be a number of pixels"),
        (lambda heat: pointing_game(heat, []), "the region must hold at least one pixel"),
        (lambda heat: mass_inside(heat, np.zeros((H, W), bool)), "the region must hold at least one pixel"),
        (lambda heat: mass_inside(heat, np.ones((W, H), bool)), r"mask must be \(H, W\) = \(12, 16\)"),
        (lambda heat: as_mask(heat + 0.5), "mask must be bool or hold 0 and 1 only"),
        (lambda heat: saliency(torch.sum, picture(), heat, floor=0), r"floor must lie in \(0, 1\]; got 0"),
        (
            lambda heat: saliency(torch.sum, picture(), heat, p_floor=2),
            r"p_floor must lie in \(0, 1\]; got 2",
        ),
        (lambda heat: saliency(torch.sum, picture().permute(1, 2, 0), heat), "Put the channels first"),
        (lambda heat: saliency(torch.sum, picture(), heat.T), "heatmap must be"),
    ],
)
def test_mistaken_settings_raise(call, message):
    with pytest.raises(ValueError, match=message):
        call(mask_of(OBJECT).astype(float))
