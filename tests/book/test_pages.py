"""The rendered pages, read as files: complete, linked, with numbers, without paths of a machine."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml

from biastransfer import paths

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "audio": "src", "video": "src"}
LOADED_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch"}
ELSEWHERE = re.compile(r"^(https?:)?//")
DATA_URI = re.compile(r"data:[\w/+.-]+;base64,[\w+/=]+")


class Page(HTMLParser):
    """What a page links to, what it loads, the anchors it holds, and the text of its glued numbers."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.anchors, self.glued, self.classes = [], [], set(), [], set()
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = {name: value or "" for name, value in attributes}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        classes = given.get("class", "").split()
        self.classes.update(classes)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADED and LOADED[tag] in given:
            self.loads.append(given[LOADED[tag]])
        if tag == "link" and LOADED_LINKS & set(given.get("rel", "").split()):
            self.loads.append(given["href"])
        if "pasted-text" in classes:
            self.inside = True
            self.glued.append("")

    def handle_data(self, data):
        if self.inside:
            self.glued[-1] += data

    def handle_endtag(self, tag):
        self.inside = False


@pytest.fixture(scope="module")
def read(html, pages):
    """Every page, parsed once."""
    return {page: Page((html / page).read_text(encoding="utf-8")) for page in pages}


def test_every_page_of_the_contents_is_there(html, pages):
    toc = yaml.safe_load((paths.root() / "book" / "_toc.yml").read_text())
    listed = [toc["root"], *re.findall(r"file: (\S+)", (paths.root() / "book" / "_toc.yml").read_text())]
    executed = [
        file.relative_to(paths.book_pages().parent).with_suffix("").as_posix()
        for file in paths.book_pages().rglob("*.ipynb")
    ]
    assert {f"{name}.html" for name in [*listed, *executed]} | {"index.html", "search.html"} <= set(pages)
    assert (html / "searchindex.js").stat().st_size > 0


def test_no_link_inside_the_book_is_broken(html, read):
    broken = []
    for page, content in read.items():
        for link in [*content.links, *content.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (html / page).parent / unquote(parts.path) if parts.path else html / page
            name = target.resolve().relative_to(html.resolve()).as_posix()
            anchor = unquote(parts.fragment)
            lost = anchor and name in read and anchor not in read[name].anchors
            if not target.is_file() or lost:
                broken.append((page, link))
    assert broken == []


def test_pages_load_nothing_from_elsewhere(html, read):
    loaded = [(page, url) for page, content in read.items() for url in content.loads if ELSEWHERE.match(url)]
    for file in html.rglob("*.css"):
        text = file.read_text(encoding="utf-8", errors="replace")
        urls = re.findall(
            r"url\(\s*['\"]?((?:https?:)?//[^)'\"]+)|@import\s+['\"]((?:https?:)?//[^'\"]+)", text
        )
        loaded += [(file.name, url) for url in urls]
    assert loaded == []


def test_numbers_are_there(read):
    """Where its notebooks were executed, the intro shows their numbers; none is empty or undefined."""
    results = paths.book_pages()
    if (results / "04-bias-transfer.ipynb").exists() and (results / "05-association.ipynb").exists():
        assert len(read["intro.html"].glued) >= 8
        assert sum(bool(re.search(r"\d", number)) for number in read["intro.html"].glued) >= 7
    empty = [
        (page, text)
        for page, content in read.items()
        for text in content.glued
        if text.strip() in ("", "nan")
    ]
    assert empty == []


def test_nothing_is_unresolved(html, read):
    wrong = [
        page
        for page, content in read.items()
        if content.classes & {"problematic", "system-message", "traceback"}
    ]
    for page in read:
        text = (html / page).read_text(encoding="utf-8")
        if re.search(r"\{(glue|cite|ref|term|numref)(:\w+)?\}`", text):
            wrong.append(page)
    assert wrong == []


def test_no_path_of_the_machine_is_shown(html):
    """Neither in a page nor in the notebooks offered for download."""
    private = [str(paths.root()), str(Path.home()), "/home/", "/Users/", "/root/", "\\Users\\"]
    private = [text for text in private if len(text) > 1]
    kinds = {".html", ".ipynb", ".md", ".txt"}
    found = []
    for file in html.rglob("*"):
        if file.suffix in kinds or file.name == "searchindex.js":
            text = DATA_URI.sub("", file.read_text(encoding="utf-8", errors="replace"))
            found += [(file.relative_to(html).as_posix(), path) for path in private if path in text]
    assert found == []
