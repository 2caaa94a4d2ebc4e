"""Hostile tables, run files, lists of sources, annotations and names."""
# ruff: noqa: E501 -- an input, its reader and what has to happen stand on one line

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
from hostile import attempt
from PIL import Image

from biastransfer import paths, report
from biastransfer.analysis_sets import caption_gender, load_set
from biastransfer.analysis_sets.choosing import Choice
from biastransfer.analysis_sets.review import reviewed
from biastransfer.analysis_sets.tables import set_tables
from biastransfer.attribution.picture_sources import imagenet_validation
from biastransfer.fetch.sources import load_sources
from biastransfer.finetune.data import load_target
from biastransfer.graph.runs import load_pages

COLUMNS = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside"
ROW = "{:016x},verification,/m/04yx4,1,0.1,0.9,0.1,0.9,0,0,0,0,0\n"
BOXES = f"{COLUMNS}\n{ROW.format(1)}{ROW.format(2)}"


def picture(file: Path, colour=(200, 30, 30)) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (12, 12), colour).save(file, "PNG")
    return file


def boxes(folder: Path, text: str | bytes) -> str:
    """Curate an Open Images set from that box file."""
    for number in (1, 2):
        picture(folder / "images" / f"{number:016x}.png", (number, 0, 0))
    data = text if isinstance(text, bytes) else text.encode()
    (folder / "oidv6-train-annotations-bbox.csv").write_bytes(data)
    found = load_set("openimages", root=folder, classes=["man"])
    return f"{len(found.items)} pictures of a man"


TABLES = {
    "columns of another table": ("a,b,c\n1,2,3\n", "", "no CSV there has the columns ImageID"),
    "a byte-order mark": ("\ufeff" + BOXES, "^2 pictures of a man$", ""),
    "Windows line ends": (BOXES.replace("\n", "\r\n"), "^2 pictures of a man$", ""),
    "NUL bytes instead of a row": (BOXES + "\0" * 40 + "\n", "^2 pictures of a man$", ""),
    "a word where a number must be": (
        BOXES.replace("0,0,0,0,0", "0,0,often,0,0"),
        "",
        "must be whole CSV files.*`often`",
    ),
    "bytes that are no UTF-8": (BOXES.encode() + b"\xff\xfe,verification\n", "", "must be whole CSV files"),
    "a row of twice the columns, read up to the last known one": (
        BOXES.strip() + "," + ROW.format(4),
        "^2 pictures of a man$",
        "",
    ),
    "a row cut off before its flags, which then count as not set": (BOXES[:-12], "^2 pictures of a man$", ""),
    "a quotation mark that is never closed": (BOXES + '"' + ROW.format(3), "", "must be whole CSV files"),
    "200,000 further columns": (
        BOXES.replace("\n", "," + ",".join(["x"] * 3) + "\n").replace(
            "x,x,x", ",".join(f"c{k}" for k in range(200_000)), 1
        ),
        "^2 pictures of a man$",
        "",
    ),
    "a million columns and no others": (
        ",".join(f"c{k}" for k in range(10**6)),
        "",
        "no CSV there has the columns",
    ),
    "no byte at all": ("", "", "no CSV there has the columns"),
}
for _what, (_text, _handled, _refused) in TABLES.items():

    @attempt("table", f"boxes with {_what}", "load_set", refused=_refused, handled=_handled, argument=_text)
    def table(folder, text):
        return boxes(folder, text)


def review(folder: Path, text: str | bytes) -> str:
    """Read the verdicts that a person wrote into a CSV of candidates."""
    data = text if isinstance(text, bytes) else text.encode()
    (folder / "review.csv").write_bytes(data)
    rows = pd.DataFrame({"class": ["man", "man"], "id": ["a", "b"]})
    found = reviewed(Choice(rows, [], rows.iloc[:0]), folder / "review.csv")
    return f"{len(found.chosen)} accepted"


GOOD = "class,id,accept\nman,a,yes\nman,b,no\n"
REVIEWS = {
    "without a column": ("class,id\nman,a\n", "", "must have the columns class, id, accept; it lacks accept"),
    "a byte-order mark, as Excel writes it": ("\ufeff" + GOOD, "^1 accepted$", ""),
    "a verdict that is neither yes nor no": (
        GOOD.replace("no", "=cmd()"),
        "",
        "accept must be yes or no; line 3",
    ),
    "NUL in a verdict": (
        GOOD.replace("yes", "y\0es"),
        "",
        "accept must be yes or no; line 2|must be a whole CSV",
    ),
    "bytes that are no UTF-8": (GOOD.encode() + b"\xff,\xfe,no\n", "", "must be a whole CSV file in UTF-8"),
    "a row of more columns": (GOOD + "man,c,yes,,,,,,\n", "", "man c is no candidate|must be a whole CSV"),
    "a million columns": (",".join(f"c{k}" for k in range(10**6)), "", "lacks class, id, accept"),
    "no byte at all": ("", "", "must be a whole CSV file in UTF-8"),
}
for _what, (_text, _handled, _refused) in REVIEWS.items():

    @attempt(
        "table",
        f"reviewed candidates: {_what}",
        "load_set",
        refused=_refused,
        handled=_handled,
        argument=_text,
    )
    def verdicts(folder, text):
        return review(folder, text)


def run_file(folder: Path, text: str | bytes) -> str:
    """Plan a run of one notebook from that file."""
    cell = {
        "cell_type": "code",
        "source": "seed: int = 0  # of all, allowed: >= 0\nroot: str = ''",
        "outputs": [],
    }
    notebook = {"cells": [cell | {"metadata": {"tags": ["parameters"]}}], "metadata": {}, "nbformat": 4}
    for place, content in {
        "notebooks/01-a.ipynb": json.dumps(notebook).encode(),
        "runs/mine.yaml": text,
    }.items():
        (folder / place).parent.mkdir(exist_ok=True)
        (folder / place).write_bytes(content if isinstance(content, bytes) else content.encode())
    return f"{len(load_pages('mine'))} page planned"


PAGE = "pages:\n  - {page: 01-a, notebook: 01-a, parameters: {seed: 1}}\n"
ALIASES = "".join(f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9) if k else 'lol'}]\n" for k in range(10))
RUN_FILES = {
    "a tag that runs a command": (
        "pages: !!python/object/apply:os.mkdir [EVIL]\n",
        "must list pages, each with page and notebook",
    ),
    "a tag that makes an object": (PAGE + "x: !!python/name:os.system\n", "must list pages"),
    "aliases that stand for 9⁹ values": (
        ALIASES + "pages:\n  - {page: 01-a, notebook: 01-a, parameters: {root: *a9}}\n",
        "100,000 values at most",
    ),
    "an alias that holds itself": (
        "pages: &a\n  - {page: 01-a, notebook: 01-a, parameters: *a}\n",
        "must list pages|values at most",
    ),
    "brackets 20,000 deep": ("pages: " + "[" * 20_000, "must list pages"),
    "NUL": (PAGE + "x: \0\n", "must list pages"),
    "bytes that are no UTF-8": (b"pages: \xff\xfe", "must list pages"),
    "one word": ("pages", "must list pages"),
    "no byte at all": ("", "must list pages"),
    "a page called ../../evil": (
        PAGE.replace("page: 01-a", "page: ../../evil"),
        "name of a page must be letters",
    ),
    "a page with markup in its name": (
        PAGE.replace("page: 01-a", "page: '<b>a'"),
        "name of a page must be letters",
    ),
    "a notebook outside notebooks/": (
        PAGE.replace("notebook: 01-a", "notebook: ../x"),
        "must name a notebook by its name in notebooks/",
    ),
    "a file to write outside": (
        PAGE.replace("seed: 1}", "seed: 1}, writes: [../evil.csv]"),
        "must be a path below",
    ),
    "a parameter that the notebook lacks": (
        PAGE.replace("seed", "sead"),
        "has no parameter 'sead'; did you mean",
    ),
    "text where a number must be": (
        PAGE.replace("seed: 1", "seed: one"),
        "seed must be of type int; got 'one'",
    ),
}
for _what, (_text, _refused) in RUN_FILES.items():

    @attempt("run file", _what, "make book", refused=_refused, argument=_text)
    def run(folder, text):
        return run_file(folder, text)


SOURCE = '[files.x]\nurl = "https://a.org/x"\npath = "x/y.csv"\nlicence = "l"\nuse = "u"\n'
SOURCES = {
    "a path ../../evil": (SOURCE.replace("x/y.csv", "../../evil"), "must be a path below data/raw"),
    "an absolute path": (SOURCE.replace("x/y.csv", "/etc/x"), "must be a path below data/raw"),
    "an address file:///etc/passwd": (
        SOURCE.replace("https://a.org/x", "file:///etc/passwd"),
        "http or https",
    ),
    "a hash that is none": (SOURCE + 'sha256 = "zz"\n', "hex digits"),
    "a key that is unknown": (SOURCE + 'run = "rm"\n', "unknown keys run"),
    "text that is no TOML": ("[files", "must be TOML"),
    "bytes that are no UTF-8": (b"\xff\xfe", "must be TOML"),
}
for _what, (_text, _refused) in SOURCES.items():

    @attempt("list of sources", _what, "fetch", refused=_refused, argument=_text)
    def sources(folder, text):
        (folder / "sources.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
        return f"{len(load_sources(folder / 'sources.toml')[0])} sources"


def target(folder: Path, text: str | bytes) -> str:
    """Load a finetuning target whose training annotations are that text."""
    for name in ("a", "b", "c"):
        picture(folder / "target" / "images" / f"{name}.png")
    (folder / "target" / "annotations").mkdir()
    for split in ("train", "val", "test"):
        content = instances(dict(zip(("train", "val", "test"), "abc"))[split] + ".png")
        data = text if split == "train" else content
        file = folder / "target" / "annotations" / f"instances_{split}.json"
        file.write_bytes(data if isinstance(data, bytes) else data.encode())
    return f"{len(load_target(folder / 'target').train)} training picture"


def instances(name: str, **more) -> str:
    content = {
        "images": [{"id": 1, "file_name": name}],
        "annotations": [{"image_id": 1, "category_id": 1}],
        "categories": [{"id": 1, "name": "car"}],
    }
    return json.dumps(content | more)


TARGETS = {
    "a picture ../../../etc/passwd": (instances("../../../../../../etc/passwd"), "must be a path below"),
    "a picture /etc/passwd": (instances("/etc/passwd"), "must be a path below"),
    "a picture that is not there": (instances("gone.png"), "'gone.png' of instances_train.json must lie in"),
    "an annotation of no listed picture": (
        instances("a.png", annotations=[{"image_id": 9, "category_id": 1}]),
        "must name a listed picture",
    ),
    "a category called twice": (
        instances("a.png", categories=[{"id": 1, "name": "car"}, {"id": 2, "name": "car"}]),
        "same categories|unique",
    ),
    "text where a number must be": (
        instances("a.png").replace('"id": 1', '"id": "x"', 1),
        "must be COCO instances JSON",
    ),
    "brackets 100,000 deep": ('{"images": ' + "[" * 100_000, "must be COCO instances JSON"),
    "a file cut in half": (instances("a.png")[:60], "must be COCO instances JSON"),
    "bytes that are no UTF-8": (b'{"images": "\xff"}', "must be COCO instances JSON"),
}
for _what, (_text, _refused) in TARGETS.items():

    @attempt("annotations", _what, "load_target", refused=_refused, argument=_text)
    def annotations(folder, text):
        return target(folder, text)


BILLION = '<!DOCTYPE a [<!ENTITY x0 "lol">{}]><annotation><size>&x9;</size></annotation>'.format(
    "".join(f'<!ENTITY x{k} "{f"&x{k - 1};" * 10}">' for k in range(1, 10))
)
OUTSIDE = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><annotation><size>&x;</size></annotation>'
for _what, _text in {
    "XML entities that stand for 10⁹ words": BILLION,
    "an XML entity that reads /etc/passwd": OUTSIDE,
    "XML cut in half": "<annotation><size>",
}.items():

    @attempt(
        "annotations",
        _what,
        "imagenet_validation",
        handled="^left out: its XML file must hold",
        argument=_text,
    )
    def boxes_of_imagenet(folder, text):
        picture(folder / "images" / "a.png")
        (folder / "xml").mkdir()
        (folder / "xml" / "a.xml").write_text(text)
        found = imagenet_validation(folder / "images", folder / "xml")
        return f"left out: {found.skipped['reason'].iloc[0]}"


NAMES = {
    "a newline in its name": "a\nb.png",
    "markup in its name": "<img src=x onerror=alert(1)>.png",
    "a leading dash": "-rf.png",
    "a name of 255 bytes": "a" * 251 + ".png",
    "a name of 255 bytes in four-byte letters": "𝔞" * 62 + "abc.png",
    "a comma and quotation marks in its name": 'a,"b".png',
    "a formula in its name": "=1+1.png",
    "a right-to-left override in its name": "a\u202egnp.png",
}
for _what, _name in NAMES.items():

    @attempt(
        "name",
        f"a picture with {_what}",
        "load_set",
        handled="^read, and its id comes back from the CSV",
        argument=_name,
    )
    def named(folder, name):
        picture(folder / "set" / "man" / name)
        found = load_set("folder", root=folder / "set")
        file = paths.write_csv(found.items, folder / "items" / name)
        back = pd.read_csv(file, keep_default_na=False)
        if back["id"].tolist() != [f"man/{name}"]:
            raise AssertionError(back["id"].tolist())
        return "read, and its id comes back from the CSV as it was"


@attempt(
    "name",
    "a picture whose name is no UTF-8",
    "load_set",
    handled="^1 kept, 1 left out: its name is no UTF-8",
)
def bytes_as_name(folder):
    picture(folder / "set" / "man" / "a.png")
    os.link(folder / "set/man/a.png", os.fsencode(folder / "set/man") + b"/\xff.png")
    found = load_set("folder", root=folder / "set")
    for table in set_tables(found, {}, run="x", set_name="s").values():
        paths.write_csv(table, folder / "table.csv")
    gone = found.report[found.report["decision"] == "excluded"]
    return f"{len(found.items)} kept, {gone['n'].sum()} left out: {gone['reason'].iloc[0]}"


@attempt(
    "name", "a class called <script>alert(1)</script>", "report", handled="^shown as text: &lt;script&gt;"
)
def markup_as_class(folder):
    picture(folder / "set" / "<script>alert(1)<" / "script>" / "a.png")
    found = load_set("folder", root=folder / "set")
    frame = found.items[["class"]].assign(text="<script>alert(1)</script>")
    page = report.table(frame, "<script>x</script>", csv='"><script>.csv').data
    if "<script" in page:
        raise AssertionError(page)
    return "shown as text: &lt;script&gt;"


@attempt("name", "a run called ../../evil", "make book", refused="RUN must be one of|must be letters")
def run_name(folder):
    run_file(folder, PAGE)
    return str(load_pages("../../evil"))


CAPTIONS = {
    "a caption of ten million letters": "a" * 10**7,
    "a caption of a million hyphens": "-" * 10**6 + "'" * 10**6,
    "a caption with NUL and controls": "\0\x1b[31m\u202e\ud800",
    "a caption of combining marks": "w" + "\u0301" * 100_000,
}
for _what, _text in CAPTIONS.items():

    @attempt("caption", _what, "caption_gender", handled="^man: the other caption counts$", argument=_text)
    def caption(folder, text):
        return f"{caption_gender([text, 'A man.'])}: the other caption counts"


@attempt("vectors", "class names with markup and newlines", "report", handled="^shown as text$")
def markup_as_vectors(folder):
    from biastransfer.embed import read_npz

    classes = np.array(["<b>\n", "woman"])
    np.savez(folder / "own.npz", vectors=np.eye(2), classes=classes, names=np.array(["a", "b"]))
    [found] = read_npz(folder / "own.npz").values()
    page = report.table(pd.DataFrame({"class": list(found)}), "classes").data
    return "shown as text" if "<b>" not in page else page
