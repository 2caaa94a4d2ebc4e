"""Readers on small folders in the official layouts; boxes and masks carried through crop and resize."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from biastransfer.attribution.boxes import Warp, box_mask, mask_through, through
from biastransfer.attribution.metrics import METRICS, NEEDS
from biastransfer.attribution.picture_sources import (
    coco_pictures,
    folder_pictures,
    imagenet_validation,
    places365_validation,
    scene_pictures,
)
from biastransfer.attribution.pictures import AttributionPicture, choose, prepare
from biastransfer.backbones import Transform

SQUARE = Transform(size=50, crop=1.0, interpolation="bilinear", mean=(0.0,) * 3, std=(1.0,) * 3)


def rgb(height=100, width=200, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def save(path, height=100, width=200):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(rgb(height, width)).save(path)


# boxes through crop and resize


def test_boxes_follow_the_central_square_by_hand():
    # of 200 × 100 the columns 50…150 are seen, then everything is halved
    boxes = [[60, 10, 100, 50], [0, 0, 40, 100], [40, 0, 70, 20], [0, 0, 200, 100]]
    moved = through(SQUARE, boxes, (100, 200))
    assert moved.boxes.tolist() == [[5, 5, 25, 25], [0, 0, 10, 10], [0, 0, 50, 50]]
    assert (moved.kept.tolist(), moved.dropped, moved.cut) == ([0, 2, 3], 1, 2)


def test_a_box_that_only_touches_the_crop_is_dropped():
    moved = through(SQUARE, [[0, 0, 50, 100], [150, 0, 200, 100]], (100, 200))
    assert (len(moved.boxes), moved.dropped, moved.cut) == (0, 2, 0)


def test_boxes_follow_the_papers_warp_by_hand():
    warp = Warp(size=224, resize=256)
    # 512 × 256 is squeezed to 256 × 256, then 16 pixels are cut from every side
    moved = through(warp, [[32, 16, 480, 240], [100, 50, 300, 150]], (256, 512))
    np.testing.assert_allclose(moved.boxes, [[0, 0, 224, 224], [34, 34, 134, 134]])
    assert moved.cut == 0


def test_no_boxes_give_no_boxes():
    assert through(SQUARE, [], (100, 200)).boxes.shape == (0, 4)


@pytest.mark.parametrize("transform", [SQUARE, Warp(size=56, resize=64), Warp(size=64, resize=64)])
def test_a_white_box_is_found_again_in_the_pixels(transform):
    """The picture itself is the oracle: white inside the box only, before and after."""
    boxes = np.array([[70.0, 20.0, 120.0, 60.0]])
    pixels = np.zeros((100, 200, 3), np.uint8)
    pixels[box_mask(boxes, (100, 200))] = 255
    one = prepare(
        AttributionPicture("a", pixels, boxes=boxes, masks={"it": box_mask(boxes, (100, 200))}), transform
    )
    white = one.image[0].numpy() > 0.5
    assert (white != box_mask(one.boxes, white.shape)).mean() < 0.01
    assert (white != one.masks["it"]).mean() < 0.01
    assert one.image.shape == (3, transform.size, transform.size)
    assert float(one.image.max()) <= 1


def test_mask_of_every_other_column_survives_a_pure_crop():
    mask = np.zeros((50, 100), bool)
    mask[:, ::2] = True
    assert (mask_through(SQUARE, mask) == mask[:, 25:75]).all()


def test_warp_pixels_are_resized_whole_then_cropped():
    pixels = rgb(80, 120)
    warp = Warp(size=28, resize=32)
    squeezed = np.asarray(Image.fromarray(pixels).resize((32, 32), Image.Resampling.BILINEAR))
    assert (warp.resized(pixels) == squeezed[2:30, 2:30]).all()
    with pytest.raises(ValueError, match="a warp needs 0 < size ≤ resize; got 40 and 32"):
        Warp(size=40, resize=32)


def test_what_the_crop_removes_is_counted_and_named():
    mask = np.zeros((100, 200), bool)
    mask[:, :20] = True
    one = AttributionPicture(
        "a",
        rgb(),
        boxes=[[0, 0, 20, 100], [60, 10, 100, 50]],
        box_labels=("edge", "centre"),
        masks={"edge": mask},
    )
    seen = prepare(one, SQUARE)
    assert (seen.dropped, seen.box_labels, seen.gone, dict(seen.masks)) == (1, ("centre",), ("edge",), {})
    assert seen.single
    assert (seen.boxes_of("centre").tolist(), len(seen.boxes_of("edge"))) == ([[5, 5, 25, 25]], 0)
    unnamed = prepare(
        AttributionPicture("a", rgb(), "dog", boxes=[[60, 10, 100, 50], [70, 0, 90, 9]]), SQUARE
    )
    assert (len(unnamed.boxes_of("dog")), len(unnamed.boxes_of("cat")), unnamed.single) == (2, 0, False)


# readers


def voc(width, height, objects):
    inside = "".join(
        f"<object><name>{name}</name><bndbox><xmin>{x1}</xmin><ymin>{y1}</ymin><xmax>{x2}</xmax><ymax>{y2}</ymax>"
        "</bndbox></object>"
        for name, (x1, y1, x2, y2) in objects
    )
    return f"<annotation><size><width>{width}</width><height>{height}</height></size>{inside}</annotation>"


def test_imagenet_validation_folder(tmp_path):
    images, notes = tmp_path / "val", tmp_path / "Annotations" / "CLS-LOC" / "val"
    notes.mkdir(parents=True)
    for k in range(1, 6):
        save(images / f"ILSVRC2012_val_0000000{k}.JPEG")
    files = {
        1: voc(200, 100, [("n01440764", (0, 10, 199, 49))]),
        2: voc(200, 100, [("n01443537", (5, 5, 9, 9)), ("n01443537", (20, 20, 29, 29))]),
        3: voc(200, 100, []),
        4: voc(200, 100, [("n01440764", (0, 10, 290, 49))]),
    }
    for k, text in files.items():
        (notes / f"ILSVRC2012_val_0000000{k}.xml").write_text(text)
    found = imagenet_validation(images, notes)
    first, second = found.pictures
    assert first.name == "ILSVRC2012_val_00000001"
    assert first.label == "tench, Tinca tinca"
    assert first.boxes.tolist() == [[0, 10, 200, 50]]  # the last column and row belong to the box
    assert second.boxes.tolist() == [[5, 5, 10, 10], [20, 20, 30, 30]]
    assert found.skipped["picture"].tolist() == [f"ILSVRC2012_val_0000000{k}.JPEG" for k in (3, 4, 5)]
    reasons = found.skipped["reason"].tolist()
    assert (reasons[0], reasons[2]) == ("its XML file lists no object", "no XML file with its boxes")
    assert "lie in the picture, 200 wide and 100 high; box 0 is" in reasons[1]


def test_damaged_xml_is_skipped_with_a_reason(tmp_path):
    save(tmp_path / "val" / "a.JPEG")
    (tmp_path / "a.xml").write_text("<annotation><size>")
    found = imagenet_validation(tmp_path / "val", tmp_path)
    assert found.skipped["reason"].iloc[0].startswith("its XML file must hold a size and boxes")
    (tmp_path / "a.xml").write_text("<annotation/>")
    assert len(imagenet_validation(tmp_path / "val", tmp_path).skipped) == 1


def test_annotation_of_another_size_raises_when_the_picture_is_read(tmp_path):
    save(tmp_path / "val" / "a.JPEG")
    (tmp_path / "a.xml").write_text(voc(400, 200, [("n01440764", (0, 10, 290, 49))]))
    [one] = imagenet_validation(tmp_path / "val", tmp_path).pictures
    with pytest.raises(
        ValueError, match=r"annotation says \(H, W\) = \(200, 400\), the file has \(100, 200\)"
    ):
        prepare(one, SQUARE)


def test_places365_validation_layout(tmp_path):
    for name in ("Places365_val_00000001.jpg", "Places365_val_00000002.jpg"):
        save(tmp_path / "val_256" / name)
    listing, categories = tmp_path / "places365_val.txt", tmp_path / "categories_places365.txt"
    categories.write_text("/a/airfield 0\n/a/airplane_cabin 1\n/b/bow_window/indoor 2\n")
    lines = ["Places365_val_00000001.jpg 2", "Places365_val_00000002.jpg 9", "Places365_val_00000003.jpg 0"]
    listing.write_text("\n".join(lines))
    found = places365_validation(tmp_path / "val_256", listing, categories)
    [one] = found.pictures
    assert (one.label, one.boxes.shape, one.origin) == ("bow_window/indoor", (0, 4), "places365")
    assert found.skipped["reason"].tolist() == [
        "class 9 is not in the list of categories",
        "listed, but not in the folder",
    ]
    listing.write_text("Places365_val_00000001.jpg")
    with pytest.raises(ValueError, match="every line must be a name and a number; line 1"):
        places365_validation(tmp_path / "val_256", listing, categories)


def coco(tmp_path, annotations):
    for k in (1, 2):
        save(tmp_path / "images" / f"{k}.jpg", 10, 20)
    data = {
        "images": [{"id": k, "file_name": f"{k}.jpg", "height": 10, "width": 20} for k in (2, 1, 3)],
        "annotations": [{"id": k, **one} for k, one in enumerate(annotations)],
        "categories": [{"id": 7, "name": "car"}, {"id": 9, "name": "dog"}],
    }
    file = tmp_path / "instances.json"
    file.write_text(json.dumps(data))
    return tmp_path / "images", file


def box(picture, category, x, y, w, h, **more):
    return {"image_id": picture, "category_id": category, "bbox": [x, y, w, h], **more}


def test_coco_boxes_and_labels(tmp_path):
    rows = [
        box(1, 7, 1, 2, 3, 4),
        box(1, 9, 5, 0, 10, 9),
        box(2, 7, 0, 0, 5, 5, iscrowd=1),
        box(3, 7, 0, 0, 5, 5),
    ]
    files = coco(tmp_path, rows)
    found = coco_pictures(*files)
    [one] = found.pictures
    assert one.boxes.tolist() == [[1, 2, 4, 6], [5, 0, 15, 9]]
    assert (one.box_labels, one.label) == (("car", "dog"), "dog")
    assert found.skipped.to_numpy().tolist() == [
        ["2.jpg", "no box but 1 of crowds"], ["3.jpg", "listed, but not in the folder"],
    ]  # fmt: skip
    kept = coco_pictures(*coco(tmp_path, [*rows, box(1, 7, 0, 0, 1, 1, iscrowd=1)]))
    assert kept.skipped.to_numpy().tolist()[0] == ["1.jpg", "1 crowd box left out"]
    assert kept.pictures[0].boxes.tolist() == one.boxes.tolist()
    [car] = coco_pictures(*files, category="car").pictures
    assert (car.label, car.boxes.tolist()) == ("car", [[1, 2, 4, 6]])


def test_coco_masks_from_run_lengths_and_polygons(tmp_path):
    corner = {"size": [10, 20], "counts": [0, 2, 8, 2, 188]}  # the first two rows of two columns
    square = [[4, 1, 8, 1, 8, 6, 4, 6]]
    rows = [
        box(1, 7, 0, 0, 2, 2, segmentation=corner),
        box(1, 9, 4, 1, 4, 5, segmentation=square),
        box(2, 7, 0, 0, 2, 2, segmentation={"size": [10, 20], "counts": "abc"}),
    ]
    found = coco_pictures(*coco(tmp_path, rows), masks=True)
    [one] = found.pictures
    assert np.argwhere(one.masks["car"]).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert (one.masks["dog"] == box_mask(np.array([[4, 1, 8, 6]]), (10, 20))).all()
    assert "polygons or uncompressed run lengths" in found.skipped["reason"].iloc[0]


def test_coco_mistakes_raise(tmp_path):
    images, file = coco(tmp_path, [])
    with pytest.raises(ValueError, match="unknown category 'cow'; known: car, dog"):
        coco_pictures(images, file, category="cow")
    file.write_text('{"images": []}')
    with pytest.raises(ValueError, match="must be COCO instances JSON"):
        coco_pictures(images, file)
    with pytest.raises(FileNotFoundError, match="must be a folder of pictures"):
        coco_pictures(tmp_path / "nowhere", file)


def test_scenes_have_exact_masks_and_boxes_around_them():
    found = scene_pictures([("man", "car"), ("woman", "dog", "dog")], seed=3, size=64)
    for one in found.pictures:
        for label in set(one.box_labels):
            boxes = one.boxes[[k for k, other in enumerate(one.box_labels) if other == label]]
            assert not (one.masks[label] & ~box_mask(boxes, (64, 64))).any()
        assert not np.logical_and.reduce(list(one.masks.values())).any()  # visible pixels are nobody else's
    assert [one.label for one in found.pictures] == ["car", "dog"]
    again = scene_pictures([("man", "car")], seed=3, size=64).pictures[0]
    assert (again.source == found.pictures[0].source).all()


def test_own_folder(tmp_path):
    save(tmp_path / "b.PNG")
    save(tmp_path / "sub" / "ä.jpg")
    (tmp_path / "broken.jpg").write_bytes(b"no picture")
    (tmp_path / "notes.txt").write_text("x")
    found = folder_pictures(tmp_path, labels={"b.PNG": "dog"})
    assert [(one.name, one.label) for one in found.pictures] == [("b.PNG", "dog"), ("sub/ä.jpg", "")]
    assert found.skipped["picture"].tolist() == ["broken.jpg"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="must hold pictures; found none"):
        folder_pictures(tmp_path / "empty")


# choosing and checks


def test_choice_is_seeded_and_blind_to_the_order_given():
    pictures = [AttributionPicture(f"{k:03d}", rgb(4, 4)) for k in range(40)]
    names = [one.name for one in choose(pictures, 10, seed=1)]
    assert names == [one.name for one in choose(pictures[::-1], 10, seed=1)]
    assert names == sorted(names)
    assert len(set(names)) == 10
    assert names != [one.name for one in choose(pictures, 10, seed=2)]
    with pytest.raises(ValueError, match=r"n must lie in 1..40, the pictures there are; got 1000"):
        choose(pictures)
    with pytest.raises(ValueError, match="different names"):
        choose([pictures[0], pictures[0]], 1)


def test_every_picture_is_as_likely_to_be_chosen():
    pictures = [AttributionPicture(str(k), rgb(2, 2)) for k in range(6)]
    counts = np.zeros(6)
    for seed in range(600):
        for one in choose(pictures, 2, seed=seed):
            counts[int(one.name)] += 1
    assert abs(counts - 200).max() < 60  # five standard deviations


def test_mistaken_pictures_raise():
    with pytest.raises(ValueError, match="lie in the picture, 8 wide and 4 high"):
        AttributionPicture("a", rgb(4, 8), boxes=[[0, 0, 20, 4]], size=(4, 8))
    with pytest.raises(ValueError, match="a: every box needs one label; got 1 boxes and 2 labels"):
        AttributionPicture("a", rgb(4, 8), boxes=[[0, 0, 2, 4]], box_labels=("x", "y"))
    with pytest.raises(ValueError, match=r"mask must be \(H, W\) = \(4, 8\)"):
        prepare(AttributionPicture("a", rgb(4, 8), masks={"x": np.ones((8, 4), bool)}), SQUARE)
    with pytest.raises(ValueError, match="lie in the picture"):
        prepare(AttributionPicture("a", rgb(4, 8), boxes=[[0, 0, 20, 4]]), SQUARE)


def test_metrics_say_what_they_need_and_which_way_is_better():
    assert METRICS["deletion"].label == "Deletion AUC ↓"
    heatmap = np.zeros((8, 8))
    heatmap[1:3, 2:5] = 1
    given = {"boxes": ([[2, 1, 5, 3]],), "masks": (heatmap > 0,)}
    best = {"↓": 0.0, "↑": 1.0}
    for name, metric in METRICS.items():
        assert metric.needs in NEEDS
        if metric.needs != "score":
            assert metric.measure(heatmap, *given[metric.needs]).value == best[metric.direction], name


# real annotations


def test_dali_boxes(shared_data):
    folder = shared_data / "dali_boxes"
    found = coco_pictures(folder / "images", folder / "instances.json")
    assert (len(found), sum(len(one.boxes) for one in found.pictures)) == (60, 87)
    assert sorted(found.skipped["reason"]) == [
        "1 crowd box left out", "2 crowd boxes left out", "no box but 1 of crowds",
    ]  # fmt: skip
    for one in found.pictures[:5]:
        seen = prepare(one, Warp())
        assert (seen.image.shape, len(seen.boxes) + seen.dropped) == ((3, 224, 224), len(one.boxes))


def test_polygons_have_the_area_that_coco_states(shared_data):
    folder = shared_data / "coco-mini" / "official-format"
    data = json.loads(Path(folder / "instances_val2017.json").read_text())
    one = coco_pictures(folder / "val2017", folder / "instances_val2017.json", masks=True)
    names = {one["id"]: one["name"] for one in data["categories"]}
    ids = {Path(image["file_name"]).stem: image["id"] for image in data["images"]}
    checked = 0
    for picture in one.pictures:
        of_picture = [
            a for a in data["annotations"] if a["image_id"] == ids[picture.name] and not a["iscrowd"]
        ]
        for label, mask in picture.masks.items():
            areas = [a["area"] for a in of_picture if names[a["category_id"]] == label]
            if len(areas) == 1 and areas[0] > 2000:
                assert mask.sum() == pytest.approx(areas[0], rel=0.02)
                checked += 1
    assert checked > 15
