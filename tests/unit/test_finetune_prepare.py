import numpy as np
import pytest

from biastransfer import paths
from biastransfer.finetune import RECIPES, ensure, prepare_target, summary, table, target_folder


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("root")


@pytest.fixture(autouse=True)
def _here(root, monkeypatch):
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(root))


def test_ensure_trains_what_the_smoke_run_lacks_and_nothing_else(root):
    assert ensure("demo", ["squeezenet1_1"], "scenes", [0]) == []
    assert list(root.iterdir()) == []
    trained = ensure("smoke", ["squeezenet1_1"], "scenes", [0])
    assert trained == [paths.checkpoint("smoke", "squeezenet1_1", "scenes", 0)]
    row = summary(table("smoke")).iloc[0]
    recipe = RECIPES["smoke"]
    assert row[["n_train", "n_val", "n_test"]].tolist() == [
        recipe.max_train, recipe.max_val, recipe.max_test,
    ]  # fmt: skip
    assert row["test_map"] > row["test_chance"]
    assert ensure("smoke", ["squeezenet1_1"], "scenes", [0]) == []
    trained[0].unlink()  # the history alone is not enough
    assert ensure("smoke", ["squeezenet1_1"], "scenes", [0]) == trained


def test_scenes_have_the_classes_of_a_target():
    target = prepare_target("smoke")
    assert "person" in target.classes
    assert len(target.classes) >= 13
    assert not any(np.isnan(split.labels).any() for split in target.splits)
    assert target_folder("demo", "scenes") != target_folder("smoke", "scenes")


def test_unknown_target_is_named():
    with pytest.raises(FileNotFoundError, match=r"the target's folder must exist; .*holidays"):
        prepare_target("demo", "holidays")
