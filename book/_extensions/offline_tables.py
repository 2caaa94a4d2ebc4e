"""Sortable tables by DataTables, from the pip package ``itables``: one file written, no other host asked.

The package holds DataTables as a JavaScript module. Browsers load no module from a file on disk, so it is
written as a plain script that leaves ``DataTable`` in the window. Only pages with a table of results load it.
"""

import re
from importlib.util import find_spec
from pathlib import Path

from sphinx.util.fileutil import copy_asset

BUNDLE = "datatables.js"
SCRIPT = "tables.js"  # beside this file: Jupyter Book loads whatever lies in _static on every page
EXPORT = re.compile(r"export\{[^}]*?\b(\w+) as default\b[^}]*\};?")


def plain_script(module: str) -> str:
    """Return a JavaScript module as a script that sets ``window.DataTable`` to its default export.

    Raises
    ------
    ValueError
        The module has not one list of exports with a default in it.
    """
    found = EXPORT.findall(module)
    if len(found) != 1:
        raise ValueError(
            f"itables' bundle must end in one export list with a default; got {len(found)}. "
            "Install the version that requirements.lock names: run `make setup`."
        )
    return f'(() => {{"use strict";\n{EXPORT.sub(f"window.DataTable = {found[0]};", module)}\n}})();\n'


def add_scripts(app, pagename, templatename, context, doctree):
    """Load the scripts on pages that show a table of results."""
    if 'class="table-scroll"' in context.get("body", ""):
        app.add_js_file(BUNDLE, loading_method="defer", priority=700)
        app.add_js_file(SCRIPT, loading_method="defer", priority=701)


def write_scripts(app):
    """Write the scripts into ``_static`` before pages are written, which name them with their checksums."""
    if app.builder.format != "html":
        return
    package = find_spec("itables")
    if package is None:
        raise RuntimeError("itables must be installed to make tables sortable; run `make setup`.")
    module = Path(package.origin).parent / "html" / "dt_bundle.js"
    script = plain_script(module.read_text(encoding="utf-8"))
    static = Path(app.outdir) / "_static"
    static.mkdir(parents=True, exist_ok=True)
    (static / BUNDLE).write_text(script, encoding="utf-8")
    copy_asset(str(Path(__file__).with_name(SCRIPT)), str(static))


def setup(app):
    """Write the scripts at the start of a build; pages with tables of results load them."""
    app.connect("html-page-context", add_scripts)
    app.connect("builder-inited", write_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
