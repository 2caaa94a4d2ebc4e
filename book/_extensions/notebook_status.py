"""The table of all executed notebooks of a build: ``notebook-status``."""

from pathlib import Path

import executed
from docutils import nodes
from html_tables import html_table
from sphinx.util.docutils import SphinxDirective

NONE = "–"
HEADS = ["Page", "Run", "Seconds", "Numbers", "Commit", "Device", "Versions", "Parameters given"]


def facts(page: executed.Executed) -> list[str]:
    """Return the cells of one page, but for its title."""
    line = page.line
    seconds = f"{page.seconds:.0f}" if page.seconds is not None else line.get("seconds", NONE)
    given = [f"{name}: {_shown(page.parameters[name])}" for name in page.given if name != "run"]
    return [
        page.run or NONE,
        seconds,
        "committed" if line.get("committed") else "computed",
        line.get("commit", NONE),
        line.get("device", NONE),
        line.get("versions", NONE),
        "; ".join(given) or "the notebook's own",
    ]


def _shown(value) -> str:
    """Return a parameter's value as a reader would write it: a list without brackets and quotes."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


class NotebookStatus(SphinxDirective):
    """A row for each executed notebook that the book shows."""

    def run(self) -> list[nodes.Node]:
        """Read the notebooks of this build; the page is read again with every build."""
        self.env.note_reread()
        docs = sorted(doc for doc in self.env.found_docs if self.env.doc2path(doc).endswith(".ipynb"))
        pages = {doc: executed.read(Path(self.env.doc2path(doc))) for doc in docs}
        if not pages:
            text = "This build holds no executed notebook."
            return [nodes.paragraph(text, text, classes=["not-built"])]
        rows = [[(doc.removeprefix("results/"), doc), *facts(page)] for doc, page in pages.items()]
        seconds = sum(page.seconds or 0 for page in pages.values())
        caption = (
            f"{len(pages)} notebooks, executed in {seconds:.0f} seconds together, kernels' starts included."
        )
        return [nodes.raw("", html_table(HEADS, rows, caption), format="html")]


def setup(app):
    """Register the directive."""
    app.add_directive("notebook-status", NotebookStatus)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
