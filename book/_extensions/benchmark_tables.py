"""The tables of the benchmarks page, from the CSVs that ``make bench`` writes: ``benchmark-tables``."""

import html
import re
from pathlib import Path

import pandas as pd
from docutils import nodes
from html_tables import html_table
from page_data import link
from sphinx.util.docutils import SphinxDirective

from biastransfer import paths

HEADS = ["Figure", "Value", "Limit"]
FACTS = ["machine", "threads", "load", "settings", "versions", "commit", "date"]
MISSING = "This build holds no benchmarks: `make bench` measures them on this machine."
LIMIT = re.compile(r"([≤≥]) ([\d.]+)")


def section(file: Path) -> nodes.section:
    """Return one benchmark as a section: its name, the machine, its figures, its file."""
    rows = pd.read_csv(file, keep_default_na=False, dtype=str)
    first = rows.iloc[0]
    named = {"threads": f"{first['threads']} threads", "load": f"load {first['load']}"}
    named["commit"] = f"commit {first['commit']}"
    facts = ", ".join(named.get(name, first[name]) for name in FACTS if first[name])
    cells = [cells_of(row) for _, row in rows.drop_duplicates(["what", "value"]).iterrows()]
    title = file.stem.replace("_", " ").capitalize()
    table = f'{html_table(HEADS, cells, f"{title}: {facts}.")}<p class="table-csv">{link(file)}</p>'
    name = f"benchmark-{html.escape(file.stem.replace('_', '-'))}"
    return nodes.section(
        "", nodes.title("", title), nodes.raw("", table, format="html"), ids=[name], names=[name]
    )


def cells_of(row: pd.Series) -> list[str]:
    """Return the cells of one figure; where it misses what it is held to, that is said."""
    value, limit = float(row["value"]), LIMIT.fullmatch(row["must"])
    missed = limit and (value > float(limit[2]) if limit[1] == "≤" else value < float(limit[2]))
    what = f"{row['what']} ({row['note']})" if row["note"] else row["what"]
    shown = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return [what, shown, f"{row['must'] or '–'}{', missed' if missed else ''}"]


class BenchmarkTables(SphinxDirective):
    """A table for each benchmark that has been measured."""

    def run(self) -> list[nodes.Node]:
        """Read the CSVs; the page is read again with every build."""
        self.env.note_reread()
        files = sorted(paths.results("benchmarks").glob("*.csv"))
        if not files:
            return [nodes.paragraph(MISSING, MISSING, classes=["not-built"])]
        return [*map(section, files)]


def setup(app):
    """Register the directive."""
    app.add_directive("benchmark-tables", BenchmarkTables)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
