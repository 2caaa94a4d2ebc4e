"""Shards and tars merge to the file of a single run, byte for byte; what cannot be read is counted."""

import io
import tarfile

import numpy as np
import pandas as pd
import pytest
from faults import pictures, toy
from PIL import Image

from biastransfer import large
from biastransfer.embed import embed
from biastransfer.embed.shards import embed_shard, merge, shard_files
from biastransfer.embed.tars import embed_tars


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASTRANSFER_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def files(tmp_path):
    """Eleven pictures, the fourth of which is none."""
    made = pictures(tmp_path / "pictures", 11)
    (tmp_path / "pictures" / "3.png").write_bytes(b"<html>404</html>")
    return made


def both(file):
    return file.read_bytes(), file.with_suffix(".csv").read_bytes()


@pytest.mark.parametrize("shards", [2, 3, 11, 20])
def test_any_number_of_shards_merges_to_the_same_bytes(files, tmp_path, shards):
    embed_shard(toy(), files, 0, 1, tmp_path / "one")
    whole = merge(shard_files(tmp_path / "one", 1), tmp_path / "one.npy")
    for k in reversed(range(shards)):
        embed_shard(toy(), files, k, shards, tmp_path / "many", cache=k % 2 == 0)
    merged = merge(shard_files(tmp_path / "many", shards), tmp_path / "many.npy")
    assert both(merged) == both(whole)
    assert np.array_equal(large.vectors(merged), embed(toy(), files).vectors)
    table = pd.read_csv(merged.with_suffix(".csv"), keep_default_na=False)
    assert table["id"].tolist() == files
    assert table["row"].tolist() == ["0", "1", "2", "", "3", "4", "5", "6", "7", "8", "9"]
    assert "web page" in table["reason"][3]


def test_a_missing_shard_is_named(files, tmp_path):
    for k in (0, 1, 3):
        embed_shard(toy(), files, k, 5, tmp_path)
    with pytest.raises(FileNotFoundError, match="must hold 5 shards; 2 are missing, first number 2"):
        shard_files(tmp_path, 5)
    (tmp_path / "00000-of-00005.csv").unlink()  # killed between its two files
    with pytest.raises(FileNotFoundError, match="first number 0"):
        shard_files(tmp_path, 5)
    with pytest.raises(ValueError, match="a shard must be one of 0 to 4; got 5"):
        embed_shard(toy(), files, 5, 5, tmp_path)


def test_shards_of_different_networks_do_not_merge(tmp_path):
    for k, width in enumerate((3, 4)):
        np.save(tmp_path / f"{k}.npy", np.zeros((2, width), np.float32))
    with pytest.raises(ValueError, match=r"all of the same dimensions; got 2 of \[3, 4\]"):
        merge([tmp_path / "0.npy", tmp_path / "1.npy"], tmp_path / "out.npy")


def packed(file, names, folder):
    """Write a tar as WebDataset has them: a picture and its caption, one after the other; and a link."""
    with tarfile.open(file, "w") as archive:
        for name in names:
            archive.add(folder / name, arcname=name)
            caption = tarfile.TarInfo(name.replace("png", "txt"))
            caption.size = 5
            archive.addfile(caption, io.BytesIO(b"a man"))
        link = tarfile.TarInfo("link.png")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return file


def test_tars_give_what_files_give_and_are_computed_once(files, tmp_path, monkeypatch):
    folder = tmp_path / "pictures"
    tars = [
        packed(tmp_path / f"{k}.tar", [f"{n}.png" for n in part], folder)
        for k, part in enumerate([range(7), range(7, 11)])
    ]
    made = embed_tars(toy(), tars, tmp_path / "shards")
    merged = merge(made, tmp_path / "all.npy")
    assert np.array_equal(large.vectors(merged), embed(toy(), files).vectors)
    table = pd.read_csv(merged.with_suffix(".csv"), keep_default_na=False)
    assert table["id"].tolist() == [f"{n}.png" for n in range(11)]
    assert [k for k, reason in enumerate(table["reason"]) if reason] == [3]
    monkeypatch.setattr("biastransfer.embed.tars._embedded", lambda *_: pytest.fail("computed again"))
    assert embed_tars(toy(), tars, tmp_path / "shards") == made
    with pytest.raises(pytest.fail.Exception, match="computed again"):
        embed_tars(toy(1), tars, tmp_path / "shards")
    Image.new("RGB", (9, 9)).save(folder / "0.png")
    packed(tars[0], ["0.png"], folder)
    with pytest.raises(pytest.fail.Exception, match="computed again"):
        embed_tars(toy(), tars, tmp_path / "shards")


def test_a_tar_cut_short_or_given_twice_is_refused(files, tmp_path):
    tar = packed(tmp_path / "a.tar", ["0.png", "1.png"], tmp_path / "pictures")
    with pytest.raises(ValueError, match=r"every tar must be given once; .*a\.tar comes twice"):
        embed_tars(toy(), [tar, tar], tmp_path / "shards")
    tar.write_bytes(tar.read_bytes()[:1500])
    with pytest.raises(ValueError, match=r"a\.tar must be a whole tar file; .*Fetch it again"):
        embed_tars(toy(), [tar], tmp_path / "shards")
