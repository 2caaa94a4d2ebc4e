"""The command line: what it calls, what it prints, with which exit status it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from biastransfer import finetune as finetune_package
from biastransfer.cli import COMMANDS, main
from biastransfer.finetune import DivergedError


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASTRANSFER_ROOT", str(tmp_path / "compendium"))
    (tmp_path / "compendium" / "data").mkdir(parents=True)
    return tmp_path / "compendium"


def called(capsys, *words):
    status = main([str(word) for word in words])
    said = capsys.readouterr()
    return status, said.out, said.err


# ---- help and wrong calls


@pytest.mark.parametrize("words", [[], ["fetch"], ["lint"], ["finetune"], ["audit"]])
def test_help_says_what_it_does_with_examples_and_exit_statuses(capsys, words):
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert "exit status: 0 fine; 1 " in said
    if words:
        assert f"biastransfer {words[0]} --" in said
        assert said.count("\n  ") > 8
    else:
        assert all(name in said for name in COMMANDS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: command"),
        (["lint"], "one of the arguments --set --folder is required"),
        (["finetune"], "the following arguments are required: --backbone"),
        (["audit", "--before", "x"], "the following arguments are required: --pictures, --out"),
        (["fetch", "--workers", "many"], "argument --workers: invalid int value: 'many'"),
    ],
)
def test_a_call_that_cannot_be_read(capsys, words, message):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


# ---- fetch


@pytest.fixture
def sources(own_folder, listed):
    def write(**entries):
        where = listed(**entries)
        where["sources"].rename(own_folder / "data" / "sources.toml")
        return own_folder / "data" / "raw"

    return write


def test_fetch_ends_with_0_where_all_came_and_with_1_where_not(capsys, server, sources, tmp_path):
    raw = sources(a=(b"aa", {"group": ["both"]}), b=(b"bb", {"group": ["both"]}))
    assert called(capsys, "fetch", "both") == (0, "2 fetched\n", "")
    assert (raw / "in" / "a").read_bytes() == b"aa"
    assert called(capsys, "fetch", "a", "b") == (0, "2 present\n", "")
    (raw / "in" / "b").unlink()
    server.tricks["/b"] = [404]
    status, out, err = called(capsys, "fetch", "both", "--csv", tmp_path / "ends.csv")
    assert (status, err) == (1, "")
    assert out == "1 present, 1 failed\nin/b: the server answers 404 Not Found.\n"
    ends = pd.read_csv(tmp_path / "ends.csv", keep_default_na=False)
    assert ends["status"].tolist() == ["present", "failed"]


def test_an_interrupted_fetch_ends_at_once_and_keeps_what_came(server, sources, own_folder):
    raw = sources(a=(bytes(400_000), {}))
    server.tricks["/a"] = ["slow"]
    environment = os.environ | {"BIASTRANSFER_ROOT": str(own_folder)}
    words = [sys.executable, "-m", "biastransfer.cli", "fetch", "a"]
    running = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
    part = raw / "in" / "a.part"
    deadline = time.monotonic() + 30
    while not (part.is_file() and part.stat().st_size > 20_000):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    running.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert running.communicate()[1] == "stopped; what came so far is kept\n"
    assert running.returncode == 130
    assert time.monotonic() - began < 1.5
    assert part.stat().st_size > 20_000


def test_fetch_passes_root_mirror_and_patience_on(capsys, server, sources, tmp_path):
    sources(a=(b"aa", {"url": "http://published.invalid/a"}))
    words = [
        "fetch",
        "a",
        "--root",
        tmp_path / "else",
        "--mirror",
        server.url,
        "--retries",
        "0",
        "--workers",
        "1",
    ]
    server.tricks["/a"] = [500]
    status, out, _ = called(capsys, *words)
    assert (status, out) == (1, "1 failed\nin/a: the server answers 500 Internal Server Error.\n")
    assert called(capsys, *words)[0] == 0
    assert (tmp_path / "else" / "in" / "a").read_bytes() == b"aa"


def test_fetch_lists_what_there_is(capsys, sources):
    sources(a=(b"aa", {"group": ["both"], "bytes": 12_000_000}))
    status, out, _ = called(capsys, "fetch", "--list")
    assert status == 0
    assert out == "a  [both]  12 MB\n    y; licence: x\n"


def test_a_reader_that_goes_away_ends_a_list_quietly(sources, own_folder):
    sources(**{f"file{number}": (b"a", {}) for number in range(2000)})
    environment = os.environ | {"BIASTRANSFER_ROOT": str(own_folder)}
    words = [sys.executable, "-m", "biastransfer.cli", "fetch", "--list"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = subprocess.Popen(words, env=environment, text=True, **pipes)
    assert running.stdout.readline().startswith("file0  ")
    running.stdout.close()
    assert running.stderr.read() == ""
    assert running.wait() == 141


def test_a_table_that_cannot_be_written_stops_before_the_work(capsys, server, sources, tmp_path):
    raw = sources(a=(b"aa", {}))
    (tmp_path / "file").touch()
    for words in (["fetch", "a"], ["lint", "--folder", tmp_path / "gone"]):
        status, out, err = called(capsys, *words, "--csv", tmp_path / "file" / "ends.csv")
        assert (status, out) == (2, "")
        assert (
            f"{words[0]}: --csv must be a file that can be written; {tmp_path / 'file' / 'ends.csv'}" in err
        )
    assert not (raw / "in" / "a").exists()


def test_fetch_gets_a_set_by_its_name(capsys, server, sources, own_folder, tmp_path):
    sources(a=(b"aa", {"group": ["coco"]}))
    place = {"url": f"{server.url}/{{split}}/{{id}}.jpg", "splits": ["val2017"], "path": "coco"}
    lines = [f"{key} = {json.dumps(value)}" for key, value in (place | {"licence": "x", "use": "y"}).items()]
    with open(own_folder / "data" / "sources.toml", "a") as file:
        file.write("\n[pictures.coco]\n" + "\n".join(lines))
    Image.new("RGB", (4, 4)).save(tmp_path / "a.jpg")
    server.files["/val2017/000000000001.jpg"] = (tmp_path / "a.jpg").read_bytes()
    (tmp_path / "coco_test").mkdir()
    (tmp_path / "coco_test" / "man.txt").write_text(
        "http://images.cocodataset.org/val2017/000000000001.jpg\n"
    )
    words = ["fetch", "--set", "released-coco", "--released", tmp_path]
    assert called(capsys, *words) == (0, "1 fetched\n", "")
    assert (own_folder / "data/raw/coco/val2017/000000000001.jpg").is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name what to fetch: files or groups, --set or --target; --list prints all names."),
        (["b"], "unknown source 'b'."),
        (
            ["--set", "scenes-coco"],
            "a set to fetch must be one of curated-coco, curated-openimages, released-coco; ",
        ),
        (["--target", "coco", "val2017"], "pictures must be of"),
        (["a", "--mirror", "here"], "a mirror must be an address as https://host/path; got 'here'."),
    ],
)
def test_fetch_of_what_cannot_be(capsys, sources, words, message):
    sources(a=(b"aa", {}))
    status, out, err = called(capsys, "fetch", *words)
    assert (status, out) == (2, "")
    assert err.startswith(f"biastransfer fetch: {message}")


# ---- lint


@pytest.fixture
def pictures(tmp_path):
    """12 different pictures in each of two classes."""
    rng = np.random.default_rng(0)
    for name in ("man", "woman"):
        (tmp_path / "set" / name).mkdir(parents=True)
        for number in range(12):
            rough = Image.fromarray(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8))
            rough.resize((48, 36), Image.Resampling.BICUBIC).save(
                tmp_path / "set" / name / f"{number:02d}.png"
            )
    return tmp_path / "set"


def test_lint_ends_with_1_where_there_is_an_error_and_says_which(capsys, pictures, tmp_path):
    status, out, err = called(capsys, "lint", "--folder", pictures)
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "set: 24 pictures in 2 classes"
    assert out.splitlines()[-1] == "0 errors, 0 warnings, 2 notes", "no licence is stated for either class"
    (pictures / "woman" / "copy.png").write_bytes((pictures / "man" / "00.png").read_bytes())
    status, out, err = called(
        capsys, "lint", "--folder", pictures, "--csv", tmp_path / "found.csv", "--headers-only"
    )
    assert status == 1
    assert out.splitlines()[-1] == "1 error, 0 warnings, 2 notes"
    [line] = [line for line in out.splitlines() if "error" in line and "in two classes" in line]
    assert "man | woman" in line
    assert pd.read_csv(tmp_path / "found.csv")["severity"].tolist().count("error") == 1


def test_lint_counts_one_class_as_one_and_takes_no_root_beside_a_folder(capsys, pictures):
    for file in (pictures / "woman").iterdir():
        file.unlink()
    (pictures / "woman").rmdir()
    words = ["lint", "--folder", pictures, "--headers-only"]
    assert called(capsys, *words)[1].splitlines()[0] == "set: 12 pictures in 1 class"
    status, out, err = called(capsys, *words, "--root", "sets")
    assert (status, out) == (2, "")
    assert err.startswith("biastransfer lint: --root must be left out beside --folder")


def test_lint_of_a_set_against_what_a_model_is_trained_on(capsys, pictures, tmp_path):
    (tmp_path / "training").mkdir()
    copy = tmp_path / "training" / "x.png"
    copy.write_bytes((pictures / "man" / "03.png").read_bytes())
    words = ["lint", "--folder", pictures, "--headers-only", "--training"]
    status, out, _ = called(capsys, *words, copy.parent)
    assert status == 1
    assert "in the training split" in out
    status, _, err = called(capsys, *words, tmp_path / "nothing")
    assert (status, err) == (
        2,
        f"biastransfer lint: --training must be a folder with pictures; {tmp_path / 'nothing'} holds none.\n",
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--folder", "nowhere"], "the folder of analysis set 'folder' must exist; "),
        (["--set", "scenes"], "a set must be named <kind>-<schema>"),
        (["--set", "curated-coco"], "the pictures of curated-coco must be there; "),
    ],
)
def test_lint_of_what_is_not_there(capsys, words, message):
    status, _, err = called(capsys, "lint", *words)
    assert status == 2
    assert err.startswith(f"biastransfer lint: {message}")


# ---- finetune

SUMMARY = {"best_epoch": 3, "epochs": 4, "val_map": 0.6, "test_map": 0.55, "test_chance": 0.125}


@pytest.fixture
def asked(monkeypatch):
    """Stand in for preparing and training; keep what each was asked."""
    calls = []

    def load_trainable(*args):
        calls.append((args, {}))
        return "network"

    def prepare_target(*args, **kwargs):
        calls.append((args, kwargs))
        return "target"

    def finetune(*args, report, **kwargs):
        calls.append((args, kwargs))
        report("epoch 1 of 1")
        fields = {"device": "cpu", "why": "no GPU", "seconds": 3.2, "best": "best.safetensors"}
        return SimpleNamespace(history="history", notes=("a note",), **fields)

    def summary(history):
        assert history == "history"
        return pd.DataFrame([SUMMARY])

    monkeypatch.setattr(finetune_package, "summary", summary)
    monkeypatch.setattr(finetune_package, "load_trainable", load_trainable)
    monkeypatch.setattr(finetune_package, "prepare_target", prepare_target)
    monkeypatch.setattr(finetune_package, "finetune", finetune)
    return calls


def test_finetune_calls_what_notebook_02_calls(capsys, asked):
    words = "--backbone resnet18 --target coco --recipe coco --seed 2 --run paper "
    words += "--root there --max-train 50 --device cpu"
    status, out, err = called(capsys, "finetune", *words.split(), "--restart")
    assert (status, err) == (0, "")
    loaded, prepared, trained = asked
    assert loaded == (("resnet18", "coco"), {}), "before the target is read"
    assert prepared == (("paper", "coco"), {"root": "there", "max_train": 50, "exclude": [], "near": True})
    assert trained[0] == ("network", "target")
    named = {"run": "paper", "target_name": "coco", "recipe": "coco", "seed": 2}
    assert trained[1] == named | {"device": "cpu", "resume": False}
    assert out.splitlines() == [
        "epoch 1 of 1",
        "a note",
        "resnet18, seed 2: best epoch 3 of 4",
        "validation mAP 0.600, test mAP 0.550, chance 0.125",
        "cpu (no GPU), 3 s: best.safetensors",
    ]


def test_finetune_has_the_defaults_of_a_run_of_ones_own(capsys, asked):
    assert called(capsys, "finetune", "--backbone", "squeezenet1_1")[0] == 0
    _, prepared, trained = asked
    assert prepared == (("own", "scenes"), {"root": "", "exclude": [], "near": True})
    named = {"run": "own", "target_name": "scenes", "recipe": "demo", "seed": 0}
    assert trained[1] == named | {"device": None, "resume": True}


def test_training_that_diverges_ends_with_1(capsys, asked, monkeypatch):
    def diverge(*_args, **_kwargs):
        raise DivergedError("the loss must be finite; it is nan in batch 3")

    monkeypatch.setattr(finetune_package, "finetune", diverge)
    status, _, err = called(capsys, "finetune", "--backbone", "squeezenet1_1")
    assert (status, err) == (1, "biastransfer finetune: the loss must be finite; it is nan in batch 3\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target", "nowhere"], "the target's folder must exist; "),
        (["--run", "a/b"], "the name of a run must be letters, digits, "),
        (["--recipe", "demoo"], "unknown recipe 'demoo'"),
    ],
)
def test_finetune_of_what_is_not_there(capsys, words, message, tmp_path):
    status, _, err = called(
        capsys, "finetune", "--backbone", "squeezenet1_1", "--root", tmp_path / "x", *words
    )
    assert status == 2
    assert err.startswith(f"biastransfer finetune: {message}")


def target(folder, n=12):
    """A target in COCO's format: bright pictures are of one class, dark ones of another."""
    rng = np.random.default_rng(0)
    categories = [{"id": 1, "name": "bright"}, {"id": 2, "name": "dark"}]
    (folder / "annotations").mkdir(parents=True)
    (folder / "images").mkdir()
    at = 0
    for split in ("train", "val", "test"):
        images, annotations = [], []
        for _ in range(n):
            at += 1
            bright = at % 2
            pixels = rng.integers(128 * bright, 128 * bright + 100, (32, 32, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / "images" / f"{at}.png")
            images.append({"id": at, "file_name": f"{at}.png", "width": 32, "height": 32})
            annotations.append({"image_id": at, "category_id": 2 - bright, "bbox": [0, 0, 9, 9]})
        whole = {"images": images, "annotations": annotations, "categories": categories}
        (folder / "annotations" / f"instances_{split}.json").write_text(json.dumps(whole))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
def test_finetune_from_the_command_line_and_under_torchrun(tmp_path, ranks, own_folder):
    words = [
        "finetune",
        "--backbone",
        "squeezenet1_1",
        "--target",
        "tiny",
        "--root",
        str(target(tmp_path / "tiny")),
    ]
    words += ["--recipe", "smoke", "--device", "cpu"]
    start = [sys.executable, "-m"]
    if ranks > 1:
        start += ["torch.distributed.run", "--nproc-per-node", str(ranks), "-m"]
    environment = os.environ | {"BIASTRANSFER_ROOT": str(own_folder), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        [*start, "biastransfer.cli", *words], env=environment, capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("squeezenet1_1, seed 0: best epoch") == 1, "one rank speaks"
    assert list(own_folder.rglob("best.safetensors"))
