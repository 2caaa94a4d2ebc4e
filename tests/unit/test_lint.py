import numpy as np
import pytest
from PIL import Image, ImageEnhance

from biastransfer.analysis_sets import load_set
from biastransfer.analysis_sets.likeness import near_pairs, sketch
from biastransfer.analysis_sets.lint import COLUMNS, lint


def scene(seed, size=(96, 64)):
    """A smooth random picture: unlike every other seed's, like its own copies."""
    rough = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    return Image.fromarray(rough).resize(size, Image.Resampling.BICUBIC)


@pytest.fixture
def root(tmp_path):
    seed = 0
    for name, n in (("man", 12), ("woman", 12), ("car", 12)):
        (tmp_path / "set" / name).mkdir(parents=True)
        for number in range(n):
            scene(seed).save(tmp_path / "set" / name / f"{number:02d}.png")
            seed += 1
    return tmp_path / "set"


def found(table, check):
    rows = table[table["check"] == check]
    return list(zip(rows["class"], rows["n"], rows["ids"]))


def checked(root, **options):
    table = lint(load_set("folder", root=root, licence="CC BY 4.0"), **options)
    assert list(table.columns) == COLUMNS
    return table


def test_a_sound_set_has_no_finding(root):
    assert checked(root).empty


def test_the_same_bytes_in_two_classes_and_twice_in_one(root):
    (root / "car" / "copy.png").write_bytes((root / "man" / "03.png").read_bytes())
    (root / "woman" / "copy.png").write_bytes((root / "woman" / "05.png").read_bytes())
    table = checked(root)
    assert found(table, "in two classes") == [("man | car", 2, "man/03.png;car/copy.png")]
    assert found(table, "twice") == [("woman", 2, "woman/05.png;woman/copy.png")]
    assert set(table["severity"]) == {"error"}
    assert set(table["check"]) == {"in two classes", "twice"}  # not said again as near-duplicates


@pytest.mark.parametrize(
    "altered",
    [
        lambda image: image.resize((48, 32)),
        lambda image: image.crop((1, 1, 95, 63)),
        lambda image: ImageEnhance.Brightness(image).enhance(1.04),
        lambda image: image,
    ],
)
def test_altered_copies_are_near_duplicates(root, altered):
    altered(Image.open(root / "man" / "03.png")).save(root / "car" / "copy.jpg", quality=70)
    altered(Image.open(root / "car" / "00.png")).save(root / "car" / "other.jpg", quality=70)
    table = checked(root)
    assert found(table, "near-duplicate in two classes") == [("man | car", 2, "man/03.png;car/copy.jpg")]
    assert found(table, "near-duplicate") == [("car", 2, "car/00.png;car/other.jpg")]
    assert checked(root, near=False).empty


def test_pictures_of_the_training_split_by_bytes_and_by_likeness(root, tmp_path):
    (tmp_path / "a.png").write_bytes((root / "man" / "03.png").read_bytes())
    Image.open(root / "woman" / "01.png").save(tmp_path / "b.jpg", quality=70)
    scene(999).save(tmp_path / "c.png")
    table = checked(root, training=[tmp_path / name for name in ("a.png", "b.jpg", "c.png")])
    assert found(table, "in the training split") == [("man", 1, "man/03.png")]
    assert found(table, "near-duplicate in the training split") == [("woman", 1, "woman/01.png")]
    assert len(table) == 2
    whole = checked(root, training=load_set("folder", root=root), near=False)
    assert whole["n"].tolist() == [12, 12, 12]


def test_a_training_picture_of_the_same_id_is_found_whatever_its_bytes(tmp_path):
    for folder, seed in (("set/man", 1), ("training", 2)):
        (tmp_path / folder).mkdir(parents=True)
        scene(seed).save(tmp_path / folder / "000000000139.png")
    (tmp_path / "training" / "000000000139.png").rename(
        tmp_path / "training" / "COCO_val2014_000000000139.png"
    )
    table = checked(tmp_path / "set", training=sorted((tmp_path / "training").iterdir()))
    row = table[table["check"] == "in the training split"].iloc[0]
    assert row[["severity", "ids", "what"]].tolist() == [
        *("error", "man/000000000139.png", "a training picture has the same id"),
    ]


def test_small_and_unequal_classes(root):
    (root / "stop_sign").mkdir()
    for number in range(2):
        scene(500 + number).save(root / "stop_sign" / f"{number}.png")
    table = checked(root, near=False)
    assert found(table, "small class") == [("stop sign", 2, "")]
    assert found(table, "size imbalance") == [("stop sign | man", 2, "")]
    assert "6.0 times" in table.loc[table["check"] == "size imbalance", "what"].item()


def test_files_that_are_empty_or_do_not_decode(root):
    (root / "man" / "empty.png").write_bytes(b"")
    (root / "man" / "page.png").write_text("<html>")
    whole = (root / "car" / "03.png").read_bytes()
    (root / "car" / "03.png").write_bytes(whole[: len(whole) // 2])  # its header is intact
    table = checked(root)
    assert found(table, "empty file") == [("man", 1, "man/empty.png")]
    assert found(table, "unreadable") == [("man", 1, "man/page.png"), ("car", 1, "car/03.png")]
    assert table.loc[table["check"] == "empty file", "share"].item() == pytest.approx(1 / 13)


def test_licence_gaps(root):
    table = lint(load_set("folder", root=root), near=False)
    assert found(table, "licence gap") == [("man", 12, ""), ("woman", 12, ""), ("car", 12, "")]
    assert table["share"].tolist() == [1.0, 1.0, 1.0]


def test_near_pairs_agree_with_a_plain_loop():
    rng = np.random.default_rng(0)
    pictures = [np.asarray(scene(seed)) for seed in range(600)]
    pictures += [
        np.clip(one.astype(int) + rng.integers(-3, 4, one.shape), 0, 255).astype(np.uint8)
        for one in pictures[:20]
    ]
    sketches = [sketch(one) for one in pictures]

    def alike(one, other):
        bits = bin(int(one[0]) ^ int(other[0])).count("1")
        return bits <= 6 and np.sqrt(np.mean((one[1] - other[1]) ** 2)) <= 12

    plain = [(i, j) for i in range(620) for j in range(i + 1, 620) if alike(sketches[i], sketches[j])]
    assert near_pairs(sketches) == plain
    assert {(k, 600 + k) for k in range(20)} <= set(plain)
    assert near_pairs([]) == []
    assert near_pairs(sketches[:3], []) == []
    assert near_pairs(sketches[600:603], sketches[:3]) == [(0, 0), (1, 1), (2, 2)]


def test_two_plain_surfaces_of_other_colours_are_not_alike():
    one, other = (np.full((8, 8, 3), value, dtype=np.uint8) for value in (10, 200))
    assert near_pairs([sketch(one), sketch(other)]) == []


def test_the_real_released_sets(released_set):
    counts = lint(released_set)["check"].value_counts()
    assert counts.to_dict() == {"in two classes": 9, "empty file": 3, "size imbalance": 1}
