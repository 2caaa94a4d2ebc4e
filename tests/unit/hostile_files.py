"""Hostile archives, checkpoints, pictures and vectors."""

import io
import os
import pickle
import stat
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
import torch
from hostile import attempt
from PIL import Image

from biastransfer.analysis_sets import load_set
from biastransfer.backbones import Transform
from biastransfer.checkpoints import load_into, read
from biastransfer.embed import read_npz
from biastransfer.fetch.archives import unpack
from biastransfer.images import read_rgb

TAR, ZIP = "a tar", "a zip"


def packed(folder: Path, kind: str, members: dict) -> Path:
    """Write an archive of names and bytes; a tar's member may also be the type of a link or device."""
    file = folder / ("archive.zip" if kind == ZIP else "archive.tar.gz")
    if kind == ZIP:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                info = zipfile.ZipInfo(name)
                if content == tarfile.SYMTYPE:
                    info.external_attr, content = (stat.S_IFLNK | 0o777) << 16, b"/etc/passwd"
                archive.writestr(info, content, zipfile.ZIP_DEFLATED)
        return file
    with tarfile.open(file, "w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            if content in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE):
                info.type, info.linkname, content = content, "/etc/passwd", b""
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file


def unpacked(file: Path) -> str:
    out = file.parent / "out"
    unpack(file, out)
    left = sorted(one.relative_to(out).as_posix() for one in out.rglob("*") if not one.is_dir())
    if any(one.is_symlink() for one in out.rglob("*")):
        raise AssertionError("a link was unpacked")
    return f"unpacked: {', '.join(left)}"


for _kind in (TAR, ZIP):

    @attempt(
        "archive",
        f"{_kind} with a member ../evil",
        "fetch",
        refused="only paths below its own folder.*Do not use it",
        argument=_kind,
    )
    def leads_up(folder, kind):
        return unpacked(packed(folder, kind, {"fine": b"fine", "../evil": b"evil"}))

    @attempt(
        "archive",
        f"{_kind} with an absolute member /tmp/evil",
        "fetch",
        refused="only paths below its own folder",
        argument=_kind,
    )
    def absolute(folder, kind):
        return unpacked(packed(folder, kind, {"fine": b"fine", "/tmp/evil": b"evil"}))

    @attempt(
        "archive",
        f"{_kind} with a symbolic link to /etc/passwd",
        "fetch",
        handled="^unpacked: fine$",
        argument=_kind,
    )
    def link(folder, kind):
        return unpacked(packed(folder, kind, {"fine": b"fine", "link": tarfile.SYMTYPE}))

    @attempt(
        "archive",
        f"{_kind} that unpacks to a thousand times its size",
        "fetch",
        refused="100 times its size at most",
        argument=_kind,
    )
    def bomb(folder, kind):
        return unpacked(packed(folder, kind, {"fine": b"fine", "bomb": bytes(4_000_000)}))

    @attempt(
        "archive",
        f"{_kind} cut in half",
        "fetch",
        refused="must be a whole zip or tar.*Fetch it again",
        argument=_kind,
    )
    def cut(folder, kind):
        file = packed(folder, kind, {"a": os.urandom(9000)})
        file.write_bytes(file.read_bytes()[:4500])
        return unpacked(file)


@attempt("archive", "a tar with a hard link and a device", "fetch", handled="^unpacked: fine$")
def devices(folder):
    return unpacked(packed(folder, TAR, {"hard": tarfile.LNKTYPE, "null": tarfile.CHRTYPE, "fine": b"fine"}))


@attempt("archive", "a tar with a link and a file that goes through it", "fetch", handled="^unpacked: out/x$")
def through_a_link(folder):
    return unpacked(packed(folder, TAR, {"out": tarfile.SYMTYPE, "out/x": b"fine"}))


@attempt("archive", "a web page called archive.zip", "fetch", refused="must be a whole zip or tar")
def page_as_archive(folder):
    (folder / "archive.zip").write_bytes(b"<html>404</html>")
    return unpacked(folder / "archive.zip")


@attempt("archive", "a zip whose one member states 4 GB", "fetch", refused="100 times its size at most")
def overstated(folder):
    file = packed(folder, ZIP, {"a": b"x" * 50})
    data = bytearray(file.read_bytes())
    at = data.rfind(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<I", 2**32 - 2)
    file.write_bytes(data)
    return unpacked(file)


class Runs:
    """What a hostile pickle does when it is loaded."""

    def __reduce__(self):
        return (os.mkdir, ("EVIL",))


def weights() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Linear(3, 2)


def loaded(file: Path) -> str:
    report = load_into(weights(), file)
    if Path("EVIL").exists():
        raise AssertionError("the file's code ran")
    return f"{report.matched} of {report.total} tensors matched"


@attempt("checkpoint", "a pickle that runs a command", "load_into", refused="Loading it can run code.*trust")
def pickled(folder):
    torch.save({"state_dict": weights().state_dict(), "more": Runs()}, folder / "weights.pth")
    return loaded(folder / "weights.pth")


@attempt("checkpoint", "a bare pickle, no archive", "load_into", refused="run code|not a whole checkpoint")
def bare_pickle(folder):
    (folder / "weights.pkl").write_bytes(pickle.dumps(Runs()))
    return loaded(folder / "weights.pkl")


@attempt(
    "checkpoint",
    "a whole module instead of its tensors",
    "load_into",
    refused="tensors and plain values only",
)
def module(folder):
    torch.save(weights(), folder / "weights.pth")
    return loaded(folder / "weights.pth")


@attempt("checkpoint", "a file cut in half", "load_into", refused="is not a whole checkpoint.*Fetch it again")
def half(folder):
    torch.save(torch.nn.Linear(200, 200).state_dict(), folder / "weights.pth")
    data = (folder / "weights.pth").read_bytes()
    (folder / "weights.pth").write_bytes(data[: len(data) // 2])
    return loaded(folder / "weights.pth")


@attempt(
    "checkpoint", "a web page called weights.pth", "load_into", refused="is not a checkpoint.*Fetch it again"
)
def page_as_weights(folder):
    (folder / "weights.pth").write_bytes(b"<!DOCTYPE html><html>not found</html>")
    return loaded(folder / "weights.pth")


@attempt(
    "checkpoint",
    "safetensors that state a header of 2⁶⁰ bytes",
    "load_into",
    refused="not a whole safetensors",
)
def long_header(folder):
    (folder / "weights.safetensors").write_bytes(struct.pack("<Q", 2**60) + b'{"a":1}' + bytes(50))
    return loaded(folder / "weights.safetensors")


@attempt(
    "checkpoint", "tensors of another network", "load_into", refused="must hold at least 95% of the network"
)
def another(folder):
    torch.save({"conv.weight": torch.zeros(3, 3)}, folder / "weights.pth")
    return loaded(folder / "weights.pth")


@attempt("checkpoint", "weights with NaN", "load_into", refused="weights must be finite")
def not_finite(folder):
    state = weights().state_dict()
    state["bias"][0] = float("nan")
    torch.save(state, folder / "weights.pth")
    return loaded(folder / "weights.pth")


@attempt("checkpoint", "an .npz of pickled arrays", "load_into", refused="plain arrays|run code")
def pickled_npz(folder):
    np.savez(folder / "weights.npz", weight=np.array([Runs()], dtype=object))
    return loaded(folder / "weights.npz")


@attempt(
    "checkpoint",
    "random bytes as this book's own checkpoint",
    "load_backbone",
    refused="not a whole safetensors file",
)
def noise_as_own(folder):
    (folder / "best.safetensors").write_bytes(np.random.default_rng(0).bytes(4000))
    return str(read(folder / "best.safetensors"))


def png(width: int, height: int) -> bytes:
    """Return a PNG header of that size over the pixels of a small picture."""
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(
        buffer, "PNG"
    )
    good = buffer.getvalue()
    chunk = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return good[:12] + chunk + struct.pack(">I", zlib.crc32(chunk)) + good[33:]


def seen(file: Path) -> str:
    """Read a picture and bring it to a network's input: both must work on any shape."""
    pixels = read_rgb(file)
    shown = Transform(224, 0.875, "bicubic", (0.5,) * 3, (0.5,) * 3)(pixels)
    if not torch.isfinite(shown).all():
        raise AssertionError("its input is not finite")
    return f"read as {pixels.shape[1]} × {pixels.shape[0]}, network input 224 × 224"


@attempt("picture", "1 × 1", "read_rgb", handled="read as 1 × 1, network input 224 × 224", argument=(1, 1))
@attempt("picture", "1 × 20,000", "read_rgb", handled="read as 1 × 20000, network", argument=(1, 20_000))
@attempt("picture", "20,000 × 1", "read_rgb", handled="read as 20000 × 1, network", argument=(20_000, 1))
def thin(folder, size):
    Image.new("RGB", size, (200, 30, 30)).save(folder / "picture.png")
    return seen(folder / "picture.png")


@attempt("picture", "400 megapixels", "read_rgb", refused="at most 100,000,000 pixels; got")
def large(folder):
    (folder / "picture.png").write_bytes(png(20_000, 20_000))
    return seen(folder / "picture.png")


@attempt("picture", "a header of 99 megapixels over no pixels", "read_rgb", refused="truncated or damaged")
def hollow(folder):
    (folder / "picture.png").write_bytes(png(9_900, 10_000))
    return seen(folder / "picture.png")


@attempt("picture", "truncated JPEG", "read_rgb", refused="must decode whole; it is truncated or damaged")
def truncated(folder):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(folder / "picture.jpg", quality=95)
    data = (folder / "picture.jpg").read_bytes()
    (folder / "picture.jpg").write_bytes(data[: len(data) // 2])
    return seen(folder / "picture.jpg")


@attempt("picture", "a JPEG called .png", "read_rgb", handled="read as 8 × 8")
def mislabelled(folder):
    Image.new("RGB", (8, 8)).save(folder / "picture.png", "JPEG")
    return seen(folder / "picture.png")


PRETENDERS = {
    "SVG posing as PNG": (
        b'<svg xmlns="http://www.w3.org/2000/svg"><script/></svg>',
        "SVG drawing. Export it",
    ),
    "HTML posing as PNG": (b"<!DOCTYPE html><html><body>Sign in</body></html>", "this is a web page"),
    "PostScript posing as PNG": (
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n",
        "PostScript",
    ),
    "a pickle posing as PNG": (pickle.dumps({"a": 1}), "must have a format that Pillow reads"),
    "no bytes at all": (b"", "must not be empty; it has 0 bytes"),
}
for _what, (_content, _says) in PRETENDERS.items():

    @attempt("picture", _what, "read_rgb", refused=_says, argument=_content)
    def pretender(folder, content):
        (folder / "picture.png").write_bytes(content)
        return seen(folder / "picture.png")


@attempt(
    "picture",
    "a good, a truncated and an HTML file in one set",
    "load_set",
    handled="1 kept, 1 unreadable; embedding names the other",
)
def mixed(folder):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    (folder / "set" / "man").mkdir(parents=True)
    Image.fromarray(noise).save(folder / "set/man/a.png")
    data = (folder / "set/man/a.png").read_bytes()
    (folder / "set/man/b.png").write_bytes(data[:5000])
    (folder / "set/man/c.png").write_bytes(b"<html>404</html>")
    found = load_set("folder", root=folder / "set")
    counts = found.report.groupby("decision")["n"].sum()
    bad = [file for file in found.items["file"] if not _decodes(file)]
    return f"{counts['kept'] - len(bad)} kept, {counts['unreadable']} unreadable; embedding names the other"


def _decodes(file: str) -> bool:
    try:
        read_rgb(file)
    except ValueError:
        return False
    return True


def vectors(folder: Path, **arrays) -> str:
    np.savez(folder / "own.npz", **arrays)
    return str(read_npz(folder / "own.npz"))


TEXT = {"names": np.array(["a", "b"]), "classes": np.array(["man", "woman"])}


@attempt("vectors", "an .npz with pickled names", "read_npz", refused="it is pickled or damaged")
def pickled_names(folder):
    return vectors(
        folder, vectors=np.eye(2), classes=TEXT["classes"], names=np.array([Runs(), "b"], dtype=object)
    )


@attempt(
    "vectors", "an .npz whose array states 8 TB", "read_npz", refused="it is pickled or damaged|states more"
)
def overstated_array(folder):
    header = io.BytesIO()
    shape = (10**9, 1000)
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    np.savez(folder / "own.npz", **TEXT)
    with zipfile.ZipFile(folder / "own.npz", "a") as archive:
        archive.writestr("vectors.npy", header.getvalue() + bytes(80))
    return str(read_npz(folder / "own.npz"))


@attempt(
    "vectors", "an .npz that unpacks to a thousand times its size", "read_npz", refused="100 times its size"
)
def vector_bomb(folder):
    np.savez_compressed(folder / "own.npz", vectors=np.zeros((30_000, 100)), **TEXT)
    return str(read_npz(folder / "own.npz"))


@attempt("vectors", "one row that is not finite", "read_npz", refused="must be finite; row 1 is not")
def infinite(folder):
    return vectors(folder, vectors=np.array([[1, 2], [np.inf, 0]]), **TEXT)


@attempt(
    "vectors", "more names than vectors", "read_npz", refused="all arrays must have one row a picture; got"
)
def uneven(folder):
    return vectors(folder, vectors=np.eye(3), **TEXT)
