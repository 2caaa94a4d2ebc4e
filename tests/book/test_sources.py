"""What can be said of the book before it is built: contents, references, cards, the module list."""

import re

import pytest
import yaml

from biastransfer import paths
from biastransfer.graph.dependencies import code_of, imported_modules

BOOK = paths.root() / "book"
CONTRACT = {
    *("analysis_sets", "images", "backbones", "checkpoints", "embed", "finetune"),
    *("similarity", "transfer", "association", "stats"),
}
WITHOUT_DOI = {"holm1979"}  # the journal's volume of 1979 has none


def entries(node):
    """Return all ``file`` entries of the table of contents, at any depth."""
    if isinstance(node, list):
        return [name for item in node for name in entries(item)]
    if isinstance(node, dict):
        own = [node["file"]] if "file" in node else []
        return own + [name for value in node.values() for name in entries(value)]
    return []


def contents():
    return yaml.safe_load((BOOK / "_toc.yml").read_text())


def test_every_written_page_is_in_the_contents():
    listed = {*entries(contents()), contents()["root"]}
    written = {
        file.relative_to(BOOK).with_suffix("").as_posix()
        for file in BOOK.rglob("*.md")
        if file.relative_to(BOOK).parts[0] not in ("results", "_static")
    }
    assert written == listed


def test_nothing_is_configured_to_come_from_another_host():
    settings = yaml.safe_load((paths.root() / "_config.yml").read_text())
    chosen = settings["sphinx"]["config"]
    assert "sphinx_thebe" not in chosen["extensions"]
    assert "://" not in chosen["mathjax_path"]
    assert chosen["nb_ipywidgets_js"] == {}
    assert settings["execute"]["execute_notebooks"] == "off"


def test_what_notebooks_and_readers_call_is_in_the_reference():
    notebooks = paths.notebook("x").parent.glob("*.ipynb")
    imported = {name for file in notebooks for code in code_of(file) for name in imported_modules(code)}
    called = {name.split(".")[1] for name in imported if name.startswith("biastransfer.")}
    reference = "\n".join(file.read_text() for file in (BOOK / "api").glob("*.md"))
    documented = set(re.findall(r"automodule:: biastransfer\.(\w+)", reference))
    assert called | CONTRACT <= documented


def test_every_reference_has_a_doi_and_every_citation_a_reference():
    bibliography = (BOOK / "references.bib").read_text()
    works = {
        re.match(r"\w+\{(\w+)", work).group(1): work for work in re.split(r"^@", bibliography, flags=re.M)[1:]
    }
    assert {key for key, work in works.items() if "doi = {10." not in work} == WITHOUT_DOI
    pages = "\n".join(file.read_text() for file in BOOK.rglob("*.md"))
    cited = {key for keys in re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", pages) for key in keys.split(",")}
    assert cited <= set(works)


@pytest.mark.parametrize(
    "words", ["Twemoji", "CC BY 4.0", "Twitter, Inc. and other contributors", "Changes were"]
)
def test_data_card_attributes_the_art(words):
    assert words in " ".join((BOOK / "data-card.md").read_text().split())


def test_model_card_names_every_backbone_and_its_licence():
    backbones = pytest.importorskip("biastransfer.backbones").list_backbones()
    card = (BOOK / "model-card.md").read_text()
    rows = {line.split("`")[1]: line for line in card.splitlines() if line.startswith("| `")}
    assert set(backbones) <= set(rows)
    assert all(
        re.search("Apache-2.0|MIT|BSD|CC BY", card.split(f"| `{name}`")[1].split("\n")[0])
        for name in backbones
    )


def test_citation_file_names_no_person_as_author():
    citation = yaml.safe_load((paths.root() / "CITATION.cff").read_text())
    assert citation["authors"] == [{"name": "biastransfer authors"}]
    assert citation["license"] == "MIT"
