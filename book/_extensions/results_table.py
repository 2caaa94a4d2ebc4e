"""A committed CSV of results as a table, its text shown as it is: ``results-table``."""

from typing import ClassVar

import pandas as pd
from docutils import nodes
from docutils.parsers.rst import directives
from html_tables import html_table
from page_data import link
from sphinx.util.docutils import SphinxDirective

from biastransfer import paths


def grouped(text: str) -> str:
    """Return a whole number of four digits or more with its thousands apart, other text as it is."""
    return f"{int(text):,}" if text.isascii() and text.isdigit() and len(text) > 3 else text


class ResultsTable(SphinxDirective):
    """The rows of a CSV below ``data/results``; cells are text, never markup."""

    required_arguments = 1
    option_spec: ClassVar = {"caption": directives.unchanged_required, "columns": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """Read the CSV; the page is read again when the file has changed."""
        file = paths.results(*self.arguments[0].split("/", 1))
        self.env.note_dependency(str(file))
        if not file.is_file():
            text = f"This build has no {self.arguments[0]}."
            return [nodes.paragraph(text, text, classes=["not-built"])]
        table = pd.read_csv(file, dtype=str, keep_default_na=False)
        shown = [name.strip() for name in self.options.get("columns", ",".join(table.columns)).split(",")]
        heads = [name.replace("_", " ").capitalize().replace(" mib", ", MiB") for name in shown]
        table = table.map(grouped)
        caption = self.options["caption"].replace("{n}", str(len(table)))
        body = html_table(heads, table[shown].itertuples(index=False, name=None), caption)
        return [nodes.raw("", f'{body}<p class="table-csv">{link(file)}</p>', format="html")]


def setup(app):
    """Register the directive."""
    app.add_directive("results-table", ResultsTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
