import concurrent.futures
import hashlib
import itertools
import multiprocessing

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from biastransfer.analysis_sets import scenes
from biastransfer.analysis_sets.glyph_art import PAINTS, person_art, pixel_bounds, raster
from biastransfer.analysis_sets.glyphs import GROUPS, MIDS, ROLES, TONES, glyphs_of
from biastransfer.analysis_sets.openimages_classes import PARTS, PEOPLE, roles
from biastransfer.analysis_sets.scene_backgrounds import BACKDROPS
from biastransfer.analysis_sets.scene_drawing import draw_scene, tight_box
from biastransfer.analysis_sets.scene_formats import COCO_CATEGORIES

CONTENTS = [
    ("man",), ("car",), ("car", "woman"), ("refrigerator", "man"), ("surfboard", "woman"), ("stop sign",),
    ("sports", "man"), ("fashion", "woman"), ("mammal", "man"), ("random", "random"),
    ("woman", "dog", "chair", "clock", "book"), ("car", "laptop", "umbrella", "bicycle"),
]  # fmt: skip


@pytest.fixture(scope="module")
def gallery():
    """Six scenes of every content."""
    return {content: [draw_scene(content, (11, seed)) for seed in range(6)] for content in CONTENTS}


def digest(task):
    content, seed = task
    return hashlib.sha256(draw_scene(content, seed).image.tobytes()).hexdigest()


def test_same_seed_same_bytes_in_any_order_and_process():
    tasks = [(content, (3, k)) for k, content in enumerate(CONTENTS[::3])]
    here = [digest(task) for task in tasks]
    assert [digest(task) for task in reversed(tasks)] == here[::-1]
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(digest, tasks)) == here
    assert len(set(here)) == len(here)
    assert digest((CONTENTS[0], (4, 0))) != here[0]


def test_masks_are_disjoint_and_boxes_tight(gallery):
    for content, drawn in gallery.items():
        for scene in drawn:
            assert scene.image.shape == (256, 256, 3)
            assert sorted(actor.name for actor in scene.actors) == sorted(content)
            assert scene.masks.sum(0).max() == 1
            for mask, (x1, y1, x2, y2) in zip(scene.masks, scene.boxes):
                assert mask[y1:y2, x1:x2].sum() == mask.sum()
                assert mask[y1].any()
                assert mask[y2 - 1].any()
                assert mask[:, x1].any()
                assert mask[:, x2 - 1].any()


def test_a_mask_is_the_drawing_less_what_stands_before_it(gallery):
    """Second computation: each drawing alone, minus the later ones."""
    occluded = 0
    for scene in itertools.chain(*gallery.values()):
        alone = np.zeros_like(scene.masks)
        for k, actor in enumerate(scene.actors):
            tile, (x, y) = raster(actor.art, actor.pose, 256)
            alone[k, y : y + tile.shape[0], x : x + tile.shape[1]] = tile[..., 3] >= 128
        for k, mask in enumerate(scene.masks):
            np.testing.assert_array_equal(mask, alone[k] & ~alone[k + 1 :].any(0))
            assert scene.occluded[k] == (mask.sum() < 0.98 * alone[k].sum())
        occluded += scene.occluded.sum()
        assert not scene.occluded[-1]
    assert occluded > 5


def test_what_was_asked_for_is_clearly_visible(gallery):
    shares = {}
    for scene in itertools.chain(*gallery.values()):
        for actor, mask in zip(scene.actors, scene.masks):
            shares.setdefault(actor.name, []).append(mask.mean())
    smallest = {name: min(found) for name, found in shares.items()}
    assert {name: low for name, low in smallest.items() if low < 0.003} == {}
    assert {
        name for name in ("car", "refrigerator", "surfboard", "man", "woman") if smallest[name] < 0.02
    } == set()


def test_nothing_is_drawn_outside_the_bounds_of_its_pose(gallery):
    for scene in itertools.chain(*gallery.values()):
        for actor, (x1, y1, x2, y2) in zip(scene.actors, scene.boxes):
            left, top, right, bottom = pixel_bounds(actor.art, actor.pose, 256)
            assert left <= x1
            assert top <= y1
            assert x2 <= right
            assert y2 <= bottom


def test_twins_differ_in_the_persons_drawing_only():
    for content, seed in itertools.product([(), ("car",), ("fashion",)], range(4)):
        man, woman = (draw_scene((who, *content), (8, seed)) for who in ("man", "woman"))
        assert man.background == woman.background
        for one, other in zip(man.actors, woman.actors):
            traits = [(a.kind, a.role, a.tone, a.pose, a.flip) for a in (one, other)]
            assert traits[0] == traits[1]
        same = (man.image == woman.image).all(-1)
        assert 0.4 < same.mean() < 1


def test_roles_tones_and_backgrounds_do_not_depend_on_gender():
    men = [draw_scene(("man",), (1, k), 32) for k in range(150)]
    women = [draw_scene(("woman",), (2, k), 32) for k in range(150)]
    for trait in (
        lambda scene: scene.background,
        lambda scene: scene.actors[0].tone,
        lambda scene: scene.actors[0].kind,
        lambda scene: scene.actors[0].flip,
    ):
        values = sorted({trait(scene) for scene in men + women})
        table = [
            [sum(trait(scene) == value for scene in drawn) for value in values] for drawn in (men, women)
        ]
        assert np.min(table) > 0
        assert chi2_contingency(table).pvalue > 1e-3
    assert {scene.background for scene in men} == set(BACKDROPS)
    assert {scene.actors[0].tone for scene in men} == set(TONES)
    assert {scene.actors[0].role for scene in men + women} == set(ROLES)


def test_every_role_exists_for_both_genders_in_every_tone_and_shares_one_frame():
    for role, tone in itertools.product(ROLES, TONES):
        man, woman = (person_art(who, role, tone, 0) for who in ("man", "woman"))
        assert man.frame == woman.frame
        assert man.svg != woman.svg


def test_repainted_garments_have_the_same_colour_for_both_genders():
    main, shade = PAINTS[9]
    for role, text in ROLES.items():
        if text.split()[2] == "uniform":
            continue
        man, woman = (person_art(who, role, "medium", 9).svg.upper() for who in ("man", "woman"))
        assert main in man, role
        assert main in woman, role
        assert (shade in man) == (shade in woman), role
        assert not [code for code in ("#9268CA", "#9266CC", "#7450A8", "#744EAA") if code in woman], role


def test_random_things_belong_to_no_class_of_either_schema():
    listed = {mid for mid, _ in roles(None)} | set(PARTS) | set(PEOPLE.values())
    assert {glyph.label for glyph in GROUPS["random"] if MIDS[glyph.label] in listed} == set()
    assert not {"car", "refrigerator", "surfboard", "stop sign", "person"} & {
        g.coco for g in GROUPS["random"]
    }


def test_class_names_are_official(shared_data):
    text = (shared_data / "openimages" / "class-descriptions-boxable.csv").read_text()
    official = dict(line.split(",", 1)[::-1] for line in text.splitlines())
    assert {name: mid for name, mid in MIDS.items() if official.get(name) != mid} == {}


def test_every_glyph_has_known_class_names():
    glyphs = [glyph for group in GROUPS.values() for glyph in group]
    assert {glyph.label for glyph in glyphs} <= set(MIDS)
    assert {glyph.coco for glyph in glyphs if glyph.coco} <= set(COCO_CATEGORIES)


def test_unknown_things_and_impossible_sizes_are_named():
    with pytest.raises(ValueError, match=r"got 'unicorn'. Known: \['accessory', 'airplane'"):
        glyphs_of("unicorn")
    with pytest.raises(ValueError, match=r"at least 32 pixels a side; got \('car',\) and 16"):
        draw_scene(("car",), 0, 16)
    with pytest.raises(ValueError, match="needs content"):
        draw_scene((), 0)


def test_tight_box_by_hand():
    mask = np.zeros((6, 8), bool)
    assert tight_box(mask) == (0, 0, 0, 0)
    mask[2, 5] = True
    assert tight_box(mask) == (5, 2, 6, 3)
    mask[4, 1] = True
    assert tight_box(mask) == (1, 2, 6, 5)


def test_counts_are_the_papers_times_the_scale():
    assert sum(scenes.scene_counts("coco").values()) == 206
    assert sum(scenes.scene_counts("openimages").values()) == 1925
    tenth = scenes.scene_counts("openimages", 0.1)
    assert [tenth[name] for name in ("man", "stop sign", "sports+woman")] == [15, 5, 5]
    with pytest.raises(ValueError, match="schema must be one of coco, openimages; got 'imagenet'"):
        scenes.scene_counts("imagenet")
    with pytest.raises(ValueError, match="scale must be a number above 0; got 0"):
        scenes.scene_counts("coco", 0)
