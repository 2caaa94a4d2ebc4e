"""The explorer's data, gathered from the CSVs of the runs that a build shows: ``explorer``."""

import json
import math
from collections.abc import Iterable
from pathlib import Path

import executed
import pandas as pd
from docutils import nodes
from page_data import link
from sphinx.util.docutils import SphinxDirective
from sphinx.util.fileutil import copy_asset

from biastransfer import paths

NETWORK = ["backbone", "stage", "target", "seed"]
SIMILARITY = ["kind", "item", "value", "low", "high", "n"]
NULLS = ["untrained_low", "untrained_median", "untrained_high", "thumbnail"]
ASSOCIATION = [
    "X",
    "Y",
    "A",
    "B",
    "effect_size",
    "low",
    "high",
    "p",
    "p_holm",
    "n_x",
    "n_y",
    "n_a",
    "n_b",
    *NULLS,
    "verdict",
]
PAIR = ["backbone", "target", "seed", "A", "B"]
SCRIPT = "explorer.js"  # beside this file: Jupyter Book loads whatever lies in _static on every page
UNTRAINED = "random"  # the backbone whose seeds are networks that were never trained
MISSING = "This build holds no similarities or associations to explore: they belong to another run."


def gathered(runs: Iterable[str]) -> list[dict]:
    """Return what there is of each run and set: rows of networks, and the untrained ones as a range.

    Returns
    -------
    list of dict
        run, set, files (names), similarity and association (rows as mappings), untrained (item → smallest,
        median, largest, number of networks); numbers to four digits, None where there is none.
    """
    found = []
    for run in runs:
        for file in sorted(paths.results(run).glob("similarity-*.csv")):
            name = file.stem.removeprefix("similarity-")
            beside, changed = (
                paths.results(run, f"{table}-{name}.csv") for table in ("association", "association_changes")
            )
            rows = _read(file)
            untrained = rows[rows["backbone"] == UNTRAINED].groupby("item")["value"]
            entry = {
                "run": run,
                "set": name,
                "files": [one.name for one in (file, beside, changed) if one.is_file()],
                "similarity": _records(rows[rows["backbone"] != UNTRAINED], [*NETWORK, *SIMILARITY]),
                "untrained": {
                    item: [*map(_short, (part.min(), part.median(), part.max())), len(part)]
                    for item, part in untrained
                },
                "association": [],
            }
            if beside.is_file():
                tests = _read(beside)
                tests = tests[tests["backbone"] != UNTRAINED]
                if changed.is_file():
                    tests = _judged(tests, _read(changed))
                entry["association"] = _records(tests, [*NETWORK, *ASSOCIATION])
            found.append(entry)
    return found


def _judged(tests: pd.DataFrame, changes: pd.DataFrame) -> pd.DataFrame:
    """Add to finetuned networks what finetuning did to each association."""
    verdicts = dict(zip(changes[PAIR].itertuples(index=False, name=None), changes["verdict"]))
    keys = tests[PAIR].itertuples(index=False, name=None)
    found = [verdicts.get(key) for key in keys]
    return tests.assign(verdict=pd.Series(found, tests.index, object).where(tests["stage"] == "finetuned"))


def _read(file: Path) -> pd.DataFrame:
    return pd.read_csv(file, keep_default_na=False, na_values=[""])


def _records(frame: pd.DataFrame, columns: list[str]) -> list[dict]:
    shown = frame[[column for column in columns if column in frame]].to_dict("records")
    return [{name: _short(value) for name, value in row.items()} for row in shown]


def _short(value):
    if isinstance(value, str):
        return value
    if value is None or not math.isfinite(value):
        return None
    return int(value) if float(value).is_integer() else float(f"{value:.4g}")


class Explorer(SphinxDirective):
    """What the script draws with, inside the page; without data one line that says so."""

    def run(self) -> list[nodes.Node]:
        """Gather the CSVs of this build's runs; the page is read again with every build."""
        self.env.note_reread()
        files = [Path(self.env.doc2path(doc)) for doc in self.env.found_docs]
        runs = sorted({executed.read(file).run for file in files if file.suffix == ".ipynb"} - {""})
        data = gathered(runs)
        if not data:
            return [nodes.paragraph(MISSING, MISSING, classes=["not-built"])]
        text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
        sets = (paths.results(entry["run"], name) for entry in data for name in entry["files"])
        content = (
            f'<script type="application/json" id="explorer-data">{text}</script>'
            '<div id="explorer-box"><noscript><p class="not-built">Choosing needs JavaScript, which is off '
            "here. The same numbers are in the chapters on similarity and association and in these files."
            '</p></noscript><div class="table-scroll" hidden></div></div>'
            f'<p class="page-data">The files: {", ".join(link(file, with_run=True) for file in sets)}</p>'
        )
        return [nodes.raw("", content, format="html")]


def add_script(app, pagename, templatename, context, doctree):
    """Load the script on the page that has something to explore."""
    if 'id="explorer-box"' in context.get("body", ""):
        app.add_js_file(SCRIPT, loading_method="defer", priority=702)


def copy_script(app):
    """Copy the script into ``_static`` before pages are written, which name it with its checksum."""
    if app.builder.format == "html":
        copy_asset(str(Path(__file__).with_name(SCRIPT)), str(Path(app.outdir) / "_static"))


def setup(app):
    """Register the directive and its script."""
    app.add_directive("explorer", Explorer)
    app.connect("html-page-context", add_script)
    app.connect("builder-inited", copy_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
