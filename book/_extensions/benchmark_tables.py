"""The tables of the benchmarks page, from the CSVs that ``make bench`` writes: ``benchmark-tables``."""

import html
from pathlib import Path

import pandas as pd
from docutils import nodes
from html_tables import html_table
from page_data import link
from sphinx.util.docutils import SphinxDirective

from biastransfer import paths

HEADS = ["Figure", "Value", "Must be", "Note"]
FACTS = ["machine", "threads", "load", "settings", "versions", "commit", "date"]
MISSING = "This build holds no benchmarks: `make bench` measures them on this machine."


def section(file: Path) -> str:
    """Return one benchmark as HTML: its name, the machine, its figures, its file."""
    rows = pd.read_csv(file, keep_default_na=False, dtype=str)
    first = rows.iloc[0]
    named = {"threads": f"{first['threads']} threads", "load": f"load {first['load']}"}
    named["commit"] = f"commit {first['commit']}"
    facts = ", ".join(named.get(name, first[name]) for name in FACTS if first[name])
    cells = [
        [row["what"], f"{float(row['value']):g}", row["must"] or "–", row["note"]]
        for _, row in rows.iterrows()
    ]
    title = html.escape(file.stem.replace("_", " "))
    return (
        f'<h2 id="benchmark-{title.replace(" ", "-")}">{title.capitalize()}</h2>'
        f'{html_table(HEADS, cells, f"{title.capitalize()}: {facts}.")}<p class="table-csv">{link(file)}</p>'
    )


class BenchmarkTables(SphinxDirective):
    """A table for each benchmark that has been measured."""

    def run(self) -> list[nodes.Node]:
        """Read the CSVs; the page is read again with every build."""
        self.env.note_reread()
        files = sorted(paths.results("benchmarks").glob("*.csv"))
        if not files:
            return [nodes.paragraph(MISSING, MISSING, classes=["not-built"])]
        return [nodes.raw("", "".join(map(section, files)), format="html")]


def setup(app):
    """Register the directive."""
    app.add_directive("benchmark-tables", BenchmarkTables)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
