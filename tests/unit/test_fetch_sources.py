"""The list of what can be fetched: as it stands, and with every kind of mistake."""

import pytest

from biastransfer.fetch import load_sources
from biastransfer.fetch.sources import choose


def test_the_list_of_sources_is_read_and_every_address_fits_its_place():
    files, pictures = load_sources()
    assert len(files) > 30
    assert set(pictures) == {"coco", "openimages", "openimages-v4"}
    places = [one.path for one in files.values()]
    assert len(set(places)) == len(places)
    names = {place.rsplit("/", 1)[1] for place in places if not place.startswith("weights/simclr")}
    assert all(any(one.url.endswith(f"/{name}") for one in files.values()) for name in names)
    assert files["clip-vit-b32"].sha256 in files["clip-vit-b32"].url, "OpenAI's addresses hold the hash"
    for name in ("resnet18", "resnet50"):
        assert files[name].path.endswith(f"-{files[name].sha256}.pth"), (
            "torchvision's names hold its first digits"
        )
    for one in pictures.values():
        assert one.url.format(split=one.splits[0], id="7").endswith(f"/{one.splits[0]}/7.jpg")


WHOLE = "[files.a]\nurl='http://b/c'\npath='c'\nlicence='x'\nuse='y'\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[files.a\n", "must be TOML"),
        ("[other.a]\nx=1", r"must hold \[files.…\] and \[pictures.…\] only; got other"),
        ("[files]\na = 1", "source a must be a table of keys; got 1"),
        ("[files.a]\nurl='http://b/c'\nsha1='00'", "source a has unknown keys sha1; known: url, path, "),
        ("[files.a]\nurl='http://b/c'\nlicence='x'\nuse='y'", "it lacks path"),
        (WHOLE.replace("http:", "file:"), "url must be an http or https address"),
        (WHOLE.replace("'c'", "'../c'"), "path must be a path below data/raw"),
        (WHOLE + "md5='00'", "md5 must be 8 to 32 hex"),
        (WHOLE + "bytes=0", "bytes must be a whole number"),
        (WHOLE + "group='g'", "group must be a list of names"),
    ],
)
def test_a_list_of_sources_with_a_mistake_names_it(tmp_path, text, message):
    (tmp_path / "sources.toml").write_text(text)
    with pytest.raises(ValueError, match=message):
        load_sources(tmp_path / "sources.toml")


def test_no_list_of_sources(tmp_path):
    with pytest.raises(FileNotFoundError, match="the list of sources must exist"):
        load_sources(tmp_path / "none.toml")


def test_names_and_groups_stand_for_files_each_once():
    files, _ = load_sources()
    chosen = [one.name for one in choose(["moco-v2-800", "coco", "weights"], files)]
    assert chosen[0] == "coco-annotations"
    assert len(chosen) == len(set(chosen)) == 1 + sum("weights" in one.group for one in files.values())
    with pytest.raises(ValueError, match=r"unknown source 'cocoo'\. Did you mean 'coco'\? Groups: coco, "):
        choose(["cocoo"], files)


def test_what_the_models_ask_for_is_in_the_list_under_that_name():
    from biastransfer.backbones.architectures import REGISTRY

    files, _ = load_sources()
    asked = [one.weights for one in REGISTRY.values() if getattr(one.weights, "get", "")]
    commands = {one.file: one.get.partition("biastransfer fetch ")[2] for one in asked}
    named = {file: name for file, name in commands.items() if name}
    assert len(named) >= 8
    assert {file: files[name].path for file, name in named.items()} == {
        file: f"weights/{file}" for file in named
    }
    for one in asked:
        if name := commands[one.file]:
            kind, _, digits = one.digest.partition(":")
            assert getattr(files[name], kind or "sha256") == digits
