import pytest

from biastransfer.analysis_sets import load_set, schema_classes


@pytest.mark.parametrize("schema", ["coco", "openimages"])
def test_scenes_come_through_the_curation_of_real_data(tmp_path, schema):
    loaded = load_set("scenes", root=tmp_path, schema=schema, scale=0.01, seed=1)
    assert loaded.name == f"scenes-{schema}"
    assert loaded.classes == schema_classes(schema)
    assert set(loaded.report["decision"]) == {"kept"}  # every scene is of the class it was drawn for
    assert loaded.items["file"].nunique() == len(loaded.items)
    assert loaded.items["licence"].str.contains("CC BY 4.0").all()
    again = load_set("scenes", root=tmp_path, schema=schema, scale=0.01, seed=1)
    assert again.items.equals(loaded.items)
    few = load_set("scenes", root=tmp_path, schema=schema, scale=0.01, seed=1, cap=2)
    assert few.counts.max() == 2
    assert len(list(tmp_path.iterdir())) == 1


def test_errors_are_one_sentence(tmp_path):
    with pytest.raises(ValueError, match="schema must be one of coco, openimages; got 'imagenet'"):
        load_set("scenes", root=tmp_path, schema="imagenet")
    with pytest.raises(ValueError, match="scale must be above 0; got 0"):
        load_set("scenes", root=tmp_path, scale=0)
