"""Every kind of set has one manifest."""

import pytest
from test_analysis_sets import picture
from test_analysis_sets_coco import PICTURES
from test_analysis_sets_coco import write as write_coco
from test_analysis_sets_openimages import BOXES
from test_analysis_sets_openimages import write as write_open_images

from biastransfer import paths
from biastransfer.analysis_sets import LOADERS, load_set
from biastransfer.analysis_sets.manifest import ITEM_COLUMNS, split_class

LICENCES = {
    "coco": {"Attribution License"},
    "openimages": {"CC BY 2.0"},
    "released": {"CC BY 2.0"},
    "folder": {"CC0"},
    "scenes": {"CC BY 4.0 (art: Twemoji, changed)"},
}
COLOURS = {"man": "blue", "car": "red", "car_man": "lime"}
SOURCES = {"coco": "COCO 2017", "openimages": "Open Images", "folder": "own", "scenes": "scenes"}


def loaded(kind, root):
    """Load a small set of a kind."""
    if kind == "coco":
        return load_set(kind, root=write_coco(root, PICTURES), random="background")
    if kind == "openimages":
        return load_set(kind, root=write_open_images(root, BOXES), random="background")
    if kind == "scenes":
        return load_set(kind, root=root, scale=0.01)
    for name in ("man", "car", "car_man"):
        picture(root / "oi_png" / name / f"{name}.png", COLOURS[name])
    if kind == "folder":
        return load_set(kind, root=root / "oi_png", source="own", licence="CC0")
    (root / "openimages_test").mkdir()
    for name in ("man", "car", "car_man"):
        (root / "openimages_test" / f"{name}.txt").write_text(f"{name}\n")
    return load_set(kind, root=root, classes=["man", "car", "car+man"])


@pytest.mark.parametrize("kind", LOADERS)
def test_each_picture_has_file_hash_class_object_attribute_source_and_licence(tmp_path, kind):
    items = loaded(kind, tmp_path).items
    assert list(items.columns) == ITEM_COLUMNS
    assert not items.isna().any().any()
    assert [paths.sha256(file) for file in items["file"]] == items["sha256"].tolist()
    assert [split_class(name) for name in items["class"]] == list(zip(items["object"], items["attribute"]))
    assert {"man", "car", "car+man"} <= set(items["class"])
    assert set(items["licence"]) == LICENCES[kind]
    assert set(items["source"]) == {SOURCES.get(kind, "released analysis sets (openimages_test)")}
    assert items["id"].is_unique
