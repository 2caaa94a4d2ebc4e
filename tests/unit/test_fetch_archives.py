"""Archives: whole or not at all, below their folder, no links, no bombs."""

import io
import stat
import tarfile
import zipfile

import pytest

from biastransfer.fetch import fetch
from biastransfer.fetch.archives import unpack

QUICK = {"backoff": 0.01, "timeout": 0.6, "retries": 3}


def left(root):
    return sorted(file.relative_to(root).as_posix() for file in root.rglob("*") if not file.is_dir())


def written(file, members, kind):
    """Write an archive: members maps names to bytes, or to what `tarfile` calls a type."""
    if kind == "zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                info = zipfile.ZipInfo(name)
                if content == tarfile.SYMTYPE:
                    info.external_attr = (stat.S_IFLNK | 0o777) << 16
                    content = b"/etc"
                archive.writestr(info, content, zipfile.ZIP_DEFLATED)
        return file
    with tarfile.open(file, f"w:{kind.partition('.')[2]}") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            if content in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE):
                info.type, info.linkname, content = content, "/etc/passwd", b""
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file


KINDS = ["zip", "tar.", "tar.gz", "tar.xz"]


@pytest.mark.parametrize("kind", KINDS)
def test_members_go_below_the_folder_and_others_stay_in(tmp_path, kind):
    members = {"a/x.json": b"x" * 70_000, "a/y.json": b"y", "z": b"z", "./b/w": b"w"}
    file = written(tmp_path / "packed", members, kind)
    (tmp_path / "out" / "a").mkdir(parents=True)
    (tmp_path / "out" / "a" / "y.json").write_bytes(b"old")
    assert unpack(file, tmp_path / "out", ["a/y.json", "b/w"]) == [
        tmp_path / "out/a/y.json",
        tmp_path / "out/b/w",
    ]
    assert left(tmp_path / "out") == ["a/y.json", "b/w"]
    assert (tmp_path / "out/a/y.json").read_bytes() == b"y"
    unpack(file, tmp_path / "out")
    assert left(tmp_path / "out") == ["a/x.json", "a/y.json", "b/w", "z"]
    assert (tmp_path / "out/a/x.json").read_bytes() == b"x" * 70_000


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["../out2/x", "/tmp/x", "a/../../x"])
def test_a_name_that_leads_outside_stops_all_of_it(tmp_path, kind, name):
    file = written(tmp_path / "packed", {"fine": b"fine", name: b"not"}, kind)
    with pytest.raises(ValueError, match=r"must hold only paths below its own folder; got .*Do not use it"):
        unpack(file, tmp_path / "out")
    with pytest.raises(ValueError, match="below its own folder"):
        unpack(file, tmp_path / "out", ["fine"])
    assert left(tmp_path / "out") == []
    assert left(tmp_path) == ["packed"]


@pytest.mark.parametrize("kind", KINDS)
def test_links_and_devices_are_not_unpacked_and_lead_nowhere(tmp_path, kind):
    odd = {"out": tarfile.SYMTYPE} if kind == "zip" else {}
    if kind != "zip":
        odd = {"out": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE, "dev": tarfile.CHRTYPE, "./": tarfile.DIRTYPE}
    file = written(tmp_path / "packed", odd | {"out/passwd": b"fine"}, kind)
    assert unpack(file, tmp_path / "here") == [tmp_path / "here/out/passwd"]
    assert left(tmp_path / "here") == ["out/passwd"]
    assert not (tmp_path / "here/out").is_symlink()


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.xz"])
def test_a_bomb_is_refused_before_it_fills_the_disk(tmp_path, kind):
    file = written(tmp_path / "packed", {"a": b"fine", "bomb": bytes(3_000_000)}, kind)
    with pytest.raises(ValueError, match=r"must unpack to 100 times its size at most; 'bomb' goes beyond"):
        unpack(file, tmp_path / "out")
    assert left(tmp_path / "out") == []
    assert unpack(file, tmp_path / "out", ["a"]) == [tmp_path / "out/a"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_archive_leaves_what_was_there(tmp_path, kind):
    content = {f"{number}": bytes([number]) * 5000 + bytes(range(256)) * 40 for number in range(5)}
    file = written(tmp_path / "packed", content, kind)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "0").write_bytes(b"old")
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(ValueError, match=r"packed must be a whole zip or tar; .*Fetch it again"):
        unpack(file, tmp_path / "out")
    assert left(tmp_path / "out") == ["0"]
    assert (tmp_path / "out" / "0").read_bytes() == b"old"


def test_a_zip_of_wrong_bytes_inside_is_damaged(tmp_path):
    file = written(tmp_path / "packed", {"a": bytes(range(256)) * 20}, "zip")
    data = bytearray(file.read_bytes())
    data[60] ^= 255
    file.write_bytes(data)
    with pytest.raises(ValueError, match="must be a whole zip or tar"):
        unpack(file, tmp_path / "out")


def test_a_member_that_is_wanted_and_missing_is_named(tmp_path):
    file = written(tmp_path / "packed", {"a": b"fine"}, "zip")
    with pytest.raises(ValueError, match=r"packed must hold b, c; it does not"):
        unpack(file, tmp_path / "out", ["c", "a", "b"])
    assert left(tmp_path / "out") == []


def test_a_disk_too_small_for_a_member(tmp_path, monkeypatch):
    file = written(tmp_path / "packed", {"a": b"12"}, "zip")
    monkeypatch.setattr("shutil.disk_usage", lambda place: type("Usage", (), {"free": 1}))
    with pytest.raises(OSError, match=r"the disk must have 2 bytes free to unpack 'a'; it has 1"):
        unpack(file, tmp_path / "out")


def test_an_archive_is_unpacked_removed_and_known_to_be_there(server, listed, tmp_path):
    members = {"annotations/x.json": b"[1]", "annotations/y.json": b"[2]", "readme": b"no"}
    keys = {"into": "coco", "unpack": ["annotations/x.json", "annotations/y.json"]}
    file = written(tmp_path / "packed", members, "zip")
    where = listed(a=(file.read_bytes(), keys))
    assert fetch(["a"], **where, **QUICK).outcomes[0].status == "fetched"
    assert left(where["root"]) == [
        "coco/annotations/x.json",
        "coco/annotations/y.json",
        "in/a.unpacked",
    ]
    assert (where["root"] / "coco/annotations/y.json").read_bytes() == b"[2]"
    assert fetch(["a"], **where, **QUICK).outcomes[0].status == "present"
    assert len(server.asked) == 1
    (where["root"] / "coco/annotations/y.json").write_bytes(b"[")
    assert fetch(["a"], **where, **QUICK).outcomes[0].status == "fetched"
    assert (where["root"] / "coco/annotations/y.json").read_bytes() == b"[2]"


def test_an_archive_that_cannot_be_unpacked_is_not_kept(server, listed):
    where = listed(a=(b"<html>sorry</html>", {"into": "coco", "unpack": []}))
    ended = fetch(["a"], **where, **QUICK).outcomes[0]
    assert ended.status == "failed"
    assert "must be a whole zip or tar" in ended.reason
    assert left(where["root"]) == []
