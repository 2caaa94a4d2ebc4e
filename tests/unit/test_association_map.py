"""Who drives an association: networks that look at one part of a picture only, so the answer is known."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from biastransfer.association import effect_size
from biastransfer.attribution.association_gallery import shown_maps
from biastransfer.attribution.association_map import association_maps, map_shares, similarity_score
from biastransfer.attribution.attribute_sets import attribute_sets
from biastransfer.attribution.elsewhere import elsewhere
from biastransfer.attribution.person_pictures import PersonPicture
from biastransfer.attribution.person_removal import REMOVED, holes, removal_cosines, vector_reader
from biastransfer.attribution.pictures import AttributionPicture
from biastransfer.attribution.removal_effects import associations, effects
from biastransfer.attribution.removal_verdicts import carriers, in_words, leaving, share_summary
from biastransfer.backbones import Backbone, Transform
from biastransfer.embed import Condition

SIDE = 32
PERSON, THING, SKY = (
    (slice(14, 26), slice(3, 10)),
    (slice(16, 26), slice(20, 29)),
    (slice(1, 9), slice(1, 31)),
)
BEFORE, AFTER = Condition("toy", "pretrained", "", 0), Condition("toy", "finetuned", "scenes", 0)
SETS = attribute_sets(np.array([[1.0, 0.0], [1.0, 0.1]]), np.array([[0.0, 1.0], [0.1, 1.0]]))


class Looks(nn.Module):
    """Embeds red minus blue of one part of a picture, as an angle between two axes."""

    def __init__(self, part):
        super().__init__()
        self.register_buffer("window", torch.zeros(1, 1, SIDE, SIDE))
        self.window[(0, 0, *part)] = 1
        self.embedding = nn.Identity()

    def forward(self, x):
        lean = ((x[:, :1] - x[:, 2:]) * self.window).sum((1, 2, 3)) / self.window.sum()
        return self.embedding(torch.stack([1 + lean, 1 - lean], 1))


def looking_at(part, size=SIDE):
    transform = Transform(size, 1.0, "bilinear", (0.0,) * 3, (1.0,) * 3)
    return Backbone(
        "toy", Looks(part), transform, 2, ("embedding",), "", layer_modules={"embedding": "embedding"}
    )


def picture(name, attribute, thing, shade, *, person=None, thing_shade=0.0, sky=0.0):
    """Draw a picture whose parts are red (towards men) or blue by known amounts."""
    image = np.full((SIDE, SIDE, 3), 128.0)
    for part, amount in ((PERSON, shade), (THING, thing_shade), (SKY, sky)):
        image[part] += np.array([1, 0, -1]) * 100 * amount
    masks = {one: np.zeros((SIDE, SIDE), bool) for one in ("person", "object")}
    masks["person"][PERSON if person is None else person] = True
    masks["object"][THING] = True
    found = AttributionPicture(name, image.round().astype(np.uint8), thing, masks=masks, size=(SIDE, SIDE))
    return PersonPicture(found, thing, attribute)


def without_object(one):
    masks = {"person": one.picture.masks["person"]}
    return dataclasses.replace(one, picture=dataclasses.replace(one.picture, masks=masks))


def album(where="person", seed=0, n=8):
    """Return pictures of two objects; gender shows in one place, with some chance in it."""
    rng, found = np.random.default_rng(seed), []
    for thing in ("car", "bag"):
        for attribute, sign in (("man", 1), ("woman", -1)):
            for k in range(n):
                amount = sign * rng.uniform(0.4, 0.9)
                shades = {"person": 0.0, "object": 0.0, "scene": 0.0} | {where: amount}
                found.append(
                    picture(f"{thing}-{attribute}-{k}", attribute, thing, shades["person"],
                            thing_shade=shades["object"], sky=shades["scene"])
                )  # fmt: skip
    return found


def measured(pictures, part, *, fills=("mean",), batch_size=4, resamples=200, sets=SETS):
    networks = {BEFORE: looking_at(part)}
    found = removal_cosines(networks, {BEFORE: sets}, pictures, fills, batch_size=batch_size)
    tables = [
        effects(associations(cosines, found.pictures, sets, resamples=resamples)).assign(fill=fill)
        for (_, fill), cosines in found.cosines.items()
    ]
    return pd.concat(tables, ignore_index=True).assign(stage="pretrained", seed=0)


def row_of(frame, removed, thing="all", kind="difference"):
    chosen = (frame["object"] == thing) & (frame["kind"] == kind) & (frame["removed"] == removed)
    [row] = frame[chosen].to_dict("records")
    return row


class TestControl:
    @pytest.mark.parametrize("seed", range(60))
    def test_as_large_and_apart_wherever_it_lies(self, seed):
        rng = np.random.default_rng(seed)
        person, taken = np.zeros((2, 24, 20), bool)
        y, x, h, w = rng.integers(0, 12), rng.integers(0, 10), rng.integers(2, 12), rng.integers(2, 10)
        person[y : y + h, x : x + w] = rng.random((h, w)) < 0.7
        person[y, x] = True
        taken[rng.integers(0, 24) :, : rng.integers(1, 20)] = True
        found = elsewhere(person, taken, seed=seed)
        assert not (found.mask & (person | taken)).any()
        if found.kind == "no room":
            assert (~(person | taken)).sum() < person.sum()
            assert not found.mask.any()
        else:
            assert found.mask.sum() == person.sum()
        if found.kind in ("moved", "mirrored"):
            assert np.array_equal(tight(found.mask), tight(person)[:, :: 1 if found.kind == "moved" else -1])

    def test_each_way_is_taken_when_it_is_the_only_one(self):
        corner = np.array([[1, 1, 0, 0, 0], [1, 0, 0, 0, 0]], bool)
        assert elsewhere(corner, np.zeros((2, 5), bool)).kind == "moved"
        free = np.array([[0, 0, 0, 1, 1], [0, 0, 0, 0, 1]], bool)
        assert elsewhere(corner, ~free & ~corner).kind == "mirrored"
        free = np.array([[0, 0, 0, 0, 1], [0, 0, 1, 0, 1]], bool)
        assert elsewhere(corner, ~free & ~corner).kind == "blob"
        free[1, 2] = False
        assert elsewhere(corner, ~free & ~corner).kind == "no room"

    def test_an_empty_shape_is_refused(self):
        with pytest.raises(ValueError, match="shape must hold at least one pixel; got none"):
            elsewhere(np.zeros((4, 4), bool), np.zeros((4, 4), bool))

    def test_holes_keep_off_the_other_part(self):
        person, thing = np.zeros((2, SIDE, SIDE), bool)
        person[PERSON], thing[PERSON[0], 9:14] = True, True  # overlaps by a column, and touches
        found, _ = holes(person, thing)
        assert not (found["person"] & thing & ~person).any()
        assert not (found["object"] & person).any()
        assert (found["person"] & person).sum() == person.sum()
        assert np.array_equal(found["both"] & (person | thing), person | thing)
        assert found["elsewhere"].sum() == found["person"].sum()
        assert "object" not in holes(person, None)[0]


def tight(mask):
    return mask[np.ix_(mask.any(1), mask.any(0))]


class TestWhoCarriesIt:
    @pytest.mark.parametrize(
        ("where", "part", "share", "verdict"),
        [("person", PERSON, 1.0, "people"), ("scene", SKY, 0.0, "scene"), ("object", THING, 0.0, "object")],
    )
    def test_what_the_network_looks_at(self, where, part, share, verdict):
        frame = measured(album(where), part)
        row = row_of(frame, "person")
        assert row["share"] == pytest.approx(share, abs=1e-6)
        assert (row["share_low"], row["share_high"]) == pytest.approx((share, share), abs=1e-6)
        assert row["left"] == pytest.approx(share * row_of(frame, "nothing")["value"], abs=1e-7)
        judged = carriers(frame)
        assert set(judged[judged["kind"] == "difference"]["verdict"]) == {verdict}

    def test_a_lean_is_carried_by_the_object_that_has_it(self):
        pictures = [
            picture(f"{thing}{k}{gender}", gender, thing, 0.2 * k - 0.4, thing_shade=0.1 * k + lean)
            for thing, lean in (("car", 0.4), ("bag", -0.4)) for k in range(5) for gender in ("man", "woman")
        ]  # fmt: skip
        judged = carriers(measured(pictures, THING)).set_index(["object", "kind"])["verdict"]
        assert judged[("car", "lean")] == judged[("bag", "lean")] == "object"
        assert judged[("car", "difference")] == "none shown"

    def test_half_and_half_is_undecided(self):
        both = (slice(14, 26), slice(3, 29))
        pictures = [
            picture(one.name, one.attribute, one.object, sign * 0.6, thing_shade=sign * 0.5)
            for one in album() for sign in [1 if one.attribute == "man" else -1]
        ]  # fmt: skip
        judged = carriers(measured(pictures, both), at_least=0.7)
        assert set(judged[judged["kind"] == "difference"]["verdict"]) == {"undecided"}

    def test_the_control_takes_nothing_from_a_network_that_looks_at_people(self):
        frame = measured(album("person"), PERSON)
        control, person = row_of(frame, "elsewhere"), row_of(frame, "person")
        assert control["left"] == pytest.approx(0, abs=1e-7)
        assert person["beyond_control"] == pytest.approx(person["left"], abs=1e-7)

    def test_a_removal_no_better_than_the_control_is_no_verdict(self):
        named = {
            removed: {"value": 0.2, "low": 0.1, "high": 0.3, "share": 0.9,
                      "share_low": 0.7, "share_high": 1.1, "beyond_low": -0.1, "beyond_high": 0.1,
                      "n_man": 5, "n_woman": 5}
            for removed in REMOVED
        }  # fmt: skip
        frame = pd.DataFrame([row | {"removed": name} for name, row in named.items()])
        frame = frame.assign(object="car", kind="difference", fill="mean")
        judged = carriers(frame).iloc[0]
        assert judged["verdict"] == "undecided"
        assert judged["reason"] == "not shown to be more than the control takes"
        assert carriers(frame.assign(fill="redrawn"))["verdict"].tolist() == ["people and object"]


class TestNumbers:
    def test_difference_lean_and_d_by_a_second_computation(self):
        pictures = album("person", n=5)
        network = looking_at(PERSON)
        frame = measured(pictures, PERSON, resamples=5)
        z = vector_reader(network)(
            torch.stack([network.transform.pixels(one.picture.rgb()) for one in pictures])
        )
        z = z / np.linalg.norm(z, axis=1, keepdims=True)
        men, women = SETS.units[:2], SETS.units[2:]
        s = (z @ men.T).mean(1) - (z @ women.T).mean(1)
        cell = {
            key: s[[(one.object, one.attribute) == key for one in pictures]]
            for key in {(one.object, one.attribute) for one in pictures}
        }
        difference = {one: cell[one, "man"].mean() - cell[one, "woman"].mean() for one in ("car", "bag")}
        level = {one: (cell[one, "man"].mean() + cell[one, "woman"].mean()) / 2 for one in ("car", "bag")}
        assert row_of(frame, "nothing", "car")["value"] == pytest.approx(difference["car"])
        assert row_of(frame, "nothing")["value"] == pytest.approx(np.mean(list(difference.values())))
        lean = row_of(frame, "nothing", "car", "lean")["value"]
        assert lean == pytest.approx(level["car"] - level["bag"])
        with_man = [one.attribute == "man" for one in pictures]
        d = effect_size(z[with_man], z[np.invert(with_man)], men, women)
        assert row_of(frame, "nothing", kind="d")["value"] == pytest.approx(d)

    def test_order_and_batch_size_change_nothing(self):
        pictures = album("person", n=4)
        expected = measured(pictures, PERSON).drop(columns=["fill"])
        for other in (measured(pictures[::-1], PERSON), measured(pictures, PERSON, batch_size=1)):
            found = other.drop(columns=["fill"]).set_index(["object", "kind", "removed"]).loc[
                list(expected[["object", "kind", "removed"]].itertuples(index=False, name=None))
            ]  # fmt: skip
            numbers = expected.set_index(["object", "kind", "removed"]).drop(columns=["stage"])
            np.testing.assert_allclose(
                found[numbers.columns].to_numpy(float), numbers.to_numpy(float), atol=1e-5
            )

    def test_twins_are_drawn_together(self):
        """A shade that both twins share cancels in each resample, so the interval has no width."""
        pictures = [
            dataclasses.replace(picture(f"{k}{gender}", gender, "car", 0.1 * k, sky=sign), pair=str(k))
            for k in range(6) for gender, sign in (("man", 0.5), ("woman", -0.5))
        ]  # fmt: skip
        both = (slice(0, 26), slice(1, 31))
        alone = [dataclasses.replace(one, pair="") for one in pictures]
        paired, single = (row_of(measured(one, both), "nothing") for one in (pictures, alone))
        assert paired["value"] == pytest.approx(single["value"])
        assert paired["high"] - paired["low"] < 0.2 * (single["high"] - single["low"])

    def test_a_picture_is_left_out_of_its_own_set(self):
        sets = attribute_sets(np.eye(2), np.array([[1.0, 1.0]]), ["a", "b", "c"], own="leave out")
        assert sets.counted(["b", "z"]).tolist() == [[True, False, True], [True, True, True]]
        own, other = sets.halves("b", "woman")
        np.testing.assert_allclose(own, [[0.5**0.5, 0.5**0.5]])
        np.testing.assert_allclose(other, [[1.0, 0.0]])

    def test_pictures_without_an_object_are_counted_apart(self):
        pictures = album("person", n=4)
        bare = [without_object(one) if one.name.endswith("0") else one for one in pictures]
        frame = measured(bare, PERSON)
        assert (row_of(frame, "person")["n_man"], row_of(frame, "object")["n_man"]) == (8, 6)

    def test_a_share_of_nothing_is_not_given(self):
        row = row_of(measured(album("person"), SKY), "person")
        assert np.isnan(row["share"])
        assert row["left"] == pytest.approx(0, abs=1e-7)
        assert in_words(row) == "0.0000 (0.0000 to 0.0000), where the difference itself may be 0"

    def test_what_leaves_is_told_by_stage(self):
        frame = measured(album("person"), PERSON)
        assert leaving(frame, "mean")["pretrained"]["share"] == pytest.approx(1)
        assert in_words(leaving(frame, "mean")["pretrained"]) == "100 % (100 to 100 %)"


METHODS = {
    "sliding_patch": {"patch": 4, "stride": 4},
    "integrated_gradients": {"n_steps": 4},
    "random_map": {},
}


class TestMaps:
    def maps(self, pictures, part, **options):
        networks = {BEFORE: looking_at(part), AFTER: looking_at(part)}
        sets = dict.fromkeys(networks, SETS)
        return association_maps(
            networks, sets, pictures, METHODS, ["mean"], keys=Condition._fields, **options
        )

    def test_all_of_the_map_lies_on_what_the_network_sees(self):
        shares = self.maps(album("person", n=1)[:2], PERSON).shares.set_index(["method", "score", "region"])
        for score in ("association", "similarity"):
            gradient = shares.loc[("integrated_gradients", score, "person")]
            assert gradient["share"].to_numpy() == pytest.approx(1)
            assert shares.loc[("random_map", score, "person")]["share"].to_numpy() == pytest.approx(
                shares.loc[("random_map", score, "person")]["area"].to_numpy(), abs=0.03
            )

    def test_a_network_of_the_background_puts_nothing_on_the_person(self):
        shares = self.maps(album("scene", n=1)[:2], SKY).shares.set_index(["method", "region"])
        assert shares.loc[("integrated_gradients", "person")]["share"].to_numpy() == pytest.approx(0)
        assert shares.loc[("integrated_gradients", "rest")]["positive"].to_numpy() == pytest.approx(1)

    def test_maps_point_to_the_pictures_own_gender_and_figures_to_men(self):
        pictures = [one for one in album("person", n=1) if one.object == "car"]
        found = self.maps(pictures, PERSON)
        for one in pictures:
            assert found.maps[one.name, BEFORE, "association", "sliding_patch", "mean"][PERSON].mean() > 0
        man, woman = shown_maps(found, "mean")
        key = ("sliding_patch", "finetuned")
        assert man.maps[key][PERSON].mean() > 0 > woman.maps[key][PERSON].mean()
        assert man.label == "car + man"
        explained, stages = ("sliding_patch", "integrated_gradients"), ("pretrained", "finetuned")
        assert set(man.maps) == {(method, stage) for method in explained for stage in stages}
        assert max(np.abs(one.maps[key]).max() for one in (man, woman)) == 1

    def test_a_remembered_score_is_the_differentiable_one(self):
        """Sliding patch runs on remembered vectors: the drop over everything is the score's own."""
        [one] = album("person", n=1)[:1]
        network = looking_at(PERSON)
        whole = {"sliding_patch": {"patch": SIDE, "stride": SIDE}}
        found = association_maps(
            {BEFORE: network}, {BEFORE: SETS}, [one], whole, ["black"], keys=Condition._fields
        )
        score = similarity_score(network, SETS.units[:2])
        image = network.transform.pixels(one.picture.rgb())[None]
        drop = float(score(image) - score(torch.zeros_like(image)))
        heat = found.maps[one.name, BEFORE, "similarity", "sliding_patch", "black"]
        assert heat == pytest.approx(np.full((SIDE, SIDE), drop), abs=1e-6)
        z = vector_reader(network)(image)[0]
        cosines = SETS.units[:2] @ (z / np.linalg.norm(z))
        assert float(score(image)) == pytest.approx(cosines.mean(), abs=1e-6)

    def test_shares_by_hand(self):
        heat = np.array([[4.0, -2.0, 1.0], [0.0, 1.0, -2.0]])
        person, thing = np.zeros((2, 2, 3), bool)
        person[0, :2], thing[:, 1:] = True, True  # what both hold is the person's
        found = map_shares(heat, person, thing).set_index("region")
        assert found["share"].tolist() == [0.6, 0.4, 0.0]
        assert found["positive"].tolist() == pytest.approx([4 / 6, 2 / 6, 0])
        assert found["area"].tolist() == pytest.approx([2 / 6, 3 / 6, 1 / 6])

    def test_no_map_no_share(self):
        found = map_shares(np.zeros((2, 2)), np.eye(2, dtype=bool))
        assert found["share"].isna().all()
        assert (found["reason"] != "").all()
        found = map_shares(-np.ones((2, 2)) - np.eye(2), np.eye(2, dtype=bool))
        assert found["positive"].isna().all()
        assert found["share"].tolist() == pytest.approx([4 / 6, 0, 2 / 6])

    def test_summary_over_pictures(self):
        shares = pd.DataFrame(
            {"score": "association", "method": "lime", "fill": "mean", "region": "person",
             "stage": "pretrained", "share": [0.2, 0.4, np.nan], "positive": [0.1, np.nan, np.nan],
             "area": [0.1, 0.1, 0.1]}
        )  # fmt: skip
        found = share_summary(shares).set_index("measure")
        assert found.loc["share", ["value", "beyond", "n", "undefined"]].tolist() == pytest.approx(
            [0.3, 0.2, 2, 1]
        )
        half = 12.706 * np.std([0.2, 0.4], ddof=1) / np.sqrt(2)
        assert found.loc["share", "high"] == pytest.approx(0.3 + half, abs=1e-3)
        assert np.isnan(found.loc["positive", "low"])
        assert found.loc["positive", "value"] == 0.1


class TestRefusals:
    def test_a_picture_in_its_own_set(self):
        pictures = album(n=3)
        sets = attribute_sets(np.eye(2), np.eye(2), ["a", "b", "c", pictures[0].name])
        with pytest.raises(ValueError, match="must not be in the set it is compared with; car-man-0 is"):
            measured(pictures, PERSON, sets=sets)
        with pytest.raises(ValueError, match=r"car-man-0 is\. Leave it out"):
            association_maps(
                {BEFORE: looking_at(PERSON)}, {BEFORE: sets}, pictures[:1], {"random_map": {}}, ["mean"]
            )

    def test_no_person(self):
        bare = AttributionPicture("a", np.zeros((4, 4, 3), np.uint8), masks={"object": np.ones((4, 4), bool)})
        with pytest.raises(ValueError, match="a: a picture must have a mask of its person"):
            PersonPicture(bare, "car", "man")
        with pytest.raises(ValueError, match="attribute must be man or woman; got 'boy'"):
            PersonPicture(album(n=1)[0].picture, "car", "boy")

    def test_sets_and_pictures_of_one_gender(self):
        with pytest.raises(ValueError, match="needs pictures of both, men and women; got 2 and 0"):
            attribute_sets(np.eye(2), np.zeros((0, 2)))
        with pytest.raises(ValueError, match="there is none with a woman"):
            measured([one for one in album() if one.attribute == "man"], PERSON)
        lonely = attribute_sets(np.eye(2), np.eye(2)[:1], ["a", "b", "c"], own="leave out")
        with pytest.raises(ValueError, match="c: each set must have a picture beside it"):
            lonely.counted(["c"])

    def test_the_rest(self):
        pictures = album(n=3)
        with pytest.raises(ValueError, match='own must be "refuse" or "leave out"'):
            attribute_sets(np.eye(2), np.eye(2), own="keep")
        with pytest.raises(ValueError, match="one id a picture; got 1 for 4"):
            attribute_sets(np.eye(2), np.eye(2), ["a"])
        with pytest.raises(ValueError, match="got 0 networks, 0 sets and 12 pictures"):
            removal_cosines({}, {}, pictures)
        networks = {"a": looking_at(PERSON), "b": looking_at(PERSON, 16)}
        with pytest.raises(ValueError, match="same part of a picture at one size"):
            removal_cosines(networks, dict.fromkeys(networks, SETS), pictures)
        with pytest.raises(ValueError, match="unknown 'magic'; methods: sliding_patch"):
            association_maps({BEFORE: looking_at(PERSON)}, {BEFORE: SETS}, pictures, {"magic": {}})
        found = removal_cosines({BEFORE: looking_at(PERSON)}, {BEFORE: SETS}, pictures, ["mean"])
        one = associations(found.cosines[BEFORE, "mean"], pictures, SETS, resamples=2)
        with pytest.raises(ValueError, match="pooled must be objects or pictures; got 'both'"):
            effects(one, pooled="both")
