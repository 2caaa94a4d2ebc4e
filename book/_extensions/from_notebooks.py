"""What the book takes from executed notebooks: ``when-built``, ``notebook-figure``, titles told apart, minus.

Which notebooks a build holds varies with the run. A page says with ``when-built`` which sentences need which
notebooks; in a build without them it shows one line that names what is missing instead of a broken reference.
"""

import hashlib
import json
import os
import re
from base64 import b64decode
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

_HYPHEN = re.compile(r"(?<![\w-])-(?=\.?\d)")  # before a number, where a minus is meant


def notebook_path(directive: SphinxDirective, name: str) -> Path:
    """Return a notebook's file and let the page be read again whenever that file changes or appears."""
    relative, absolute = directive.env.relfn2path(name)
    directive.env.note_dependency(relative)
    return Path(absolute)


class WhenBuilt(SphinxDirective):
    """Show the content if every notebook named exists, else one line that names the missing ones.

    With ``:otherwise:`` that text is shown in place of the line; an empty text shows nothing.
    """

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar = {"otherwise": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """Parse the content or say what is missing."""
        missing = [name for name in self.arguments[0].split() if not notebook_path(self, name).is_file()]
        if not missing:
            return self.parse_content_to_nodes(allow_section_headings=False)
        text = self.options.get("otherwise")
        if text is None:
            text = f"This build holds no {', '.join(missing)}: these numbers belong to another run."
        return [nodes.paragraph(text, text, classes=["not-built"])] if text else []


def glued_png(notebook: Path, key: str) -> bytes:
    """Return the PNG that a cell of an executed notebook glued under ``key``.

    Raises
    ------
    KeyError
        No output of the notebook carries that name as a picture.
    """
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            if output.get("metadata", {}).get("scrapbook", {}).get("name") != key:
                continue
            data = output["data"]
            picture = next((data[kind] for kind in data if kind.endswith("image/png")), None)
            if picture is not None:
                return b64decode("".join(picture))
    raise KeyError(f"{notebook.name} glues no picture named {key!r}")


class NotebookFigure(SphinxDirective):
    """A numbered figure whose picture a notebook glued: ``path.ipynb::key``; the content is the caption."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"name": directives.unchanged, "alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Write the picture beside myst-nb's own and return the figure."""
        path, _, key = self.arguments[0].partition("::")
        try:
            png = glued_png(notebook_path(self, path), key)
        except (OSError, KeyError) as error:
            return [self.state.document.reporter.warning(f"notebook-figure: {error}", line=self.lineno)]
        folder = Path(self.env.mystnb_config.output_folder)
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{hashlib.sha256(png).hexdigest()}.png"
        file.write_bytes(png)
        page = Path(self.env.doc2path(self.env.docname)).parent
        image = nodes.image(uri=Path(os.path.relpath(file, page)).as_posix(), alt=self.options.get("alt", ""))
        figure = nodes.figure("", image, classes=["main-figure"])
        self.set_source_info(figure)
        self.add_name(figure)
        parsed = self.parse_content_to_nodes()
        if parsed and isinstance(parsed[0], nodes.paragraph):
            figure += nodes.caption(parsed[0].rawsource, "", *parsed[0].children)
        return [figure]


def tell_pages_apart(app, docname: str, source: list[str]) -> None:
    """Add to the title of an executed notebook what sets it apart from the other pages of that notebook.

    A page is called as its notebook and what it was executed for: of ``03-similarity-scenes-coco`` the
    title gets "scenes-coco". Pages on the released photographs say so.
    """
    path = Path(app.env.doc2path(docname))
    if path.suffix != ".ipynb":
        return
    notebook = json.loads(source[0])
    made_from = Path(notebook["metadata"].get("papermill", {}).get("input_path") or path).stem
    apart = path.stem.removeprefix(made_from).strip("-")
    if path.parent.name == "released":
        apart = f"photographs, {apart}" if apart else "photographs"
    first = notebook["cells"][0]
    title, newline, rest = "".join(first["source"]).partition("\n")
    if apart and title.startswith("# "):
        first["source"] = f"{title} · {apart}{newline}{rest}"
        source[0] = json.dumps(notebook)


def minus_signs(app, doctree, docname: str) -> None:
    """Print numbers that a notebook glued with a minus where they have a hyphen."""
    for node in doctree.findall(nodes.Element):
        if "pasted-text" in node.get("classes", ()):
            for text in list(node.findall(nodes.Text)):
                text.parent.replace(text, nodes.Text(_HYPHEN.sub("−", text)))


def setup(app):
    """Register the directives and the titles with Sphinx."""
    app.connect("source-read", tell_pages_apart)
    app.connect("doctree-resolved", minus_signs)
    app.add_directive("when-built", WhenBuilt)
    app.add_directive("notebook-figure", NotebookFigure)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
