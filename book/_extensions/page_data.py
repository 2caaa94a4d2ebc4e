"""The CSVs behind a page: copied into the book, linked beside the table that shows them and at the foot.

A table that ``report.table`` was given the name of such a file for links to the very file; other tables keep
the link that saves what they show.
"""

import html
import json
import re
import shutil
from pathlib import Path

import executed

from biastransfer import paths

FOLDER = "_data"  # below the book's own folder
PLACE = re.compile(r'href="page-data:([^"]+)"')
PLACED = re.compile(rf'href="(?:\.\./)*{FOLDER}/([\w.-]+)/([^"/]+)"')
SHOWN = re.compile(
    r'<p class="table-csv"[^>]*><a download="([^"]+)" href="data:text/csv;base64,[^"]*">.*?</a></p>'
)


def link(file: Path, with_run: bool = False) -> str:
    """Return the link to a CSV of a run, named by its run too where asked for."""
    run, name = (html.escape(part, quote=True) for part in (file.parent.name, file.name))
    shown = f"{run}/{name}" if with_run else name
    return f'<a class="data-file" download="{name}" href="page-data:{run}/{name}">{shown}</a>'


def link_files(app, docname: str, source: list[str]) -> None:
    """Put links to the page's files into an executed notebook before it is read."""
    path = Path(app.env.doc2path(docname))
    if path.suffix != ".ipynb":
        return
    notebook = json.loads(source[0])
    page = executed.parse(notebook, path)
    files = {file.name: file for file in executed.results_of(page)}
    if not files:
        return

    def to_file(match):
        name = html.unescape(match.group(1))
        if name not in files:
            return match.group(0)
        return f'<p class="table-csv">{link(files[name])} (every column, unrounded)</p>'

    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            shown = output.get("data", {}).get("text/html")
            if shown:
                output["data"]["text/html"] = SHOWN.sub(to_file, "".join(shown))
    links = ", ".join(link(file) for file in files.values())
    text = f'<p class="page-data">Data of this page, as computed: {links}</p>'
    foot = {"cell_type": "markdown", "metadata": {}, "source": text, "id": "page-data"}
    notebook["cells"].insert(len(notebook["cells"]) - 1, foot)
    source[0] = json.dumps(notebook)


def place_links(app, pagename, templatename, context, doctree):
    """Turn the links into addresses as seen from the page that they are on."""
    body = context.get("body", "")
    if "page-data:" in body:
        to = context["pathto"]
        context["body"] = PLACE.sub(lambda link: f'href="{to(f"{FOLDER}/{link.group(1)}", 1)}"', body)


def copy_files(app, error):
    """Copy every file that a page links to, once the pages are written."""
    if error is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    texts = (file.read_text(encoding="utf-8") for file in out.rglob("*.html"))
    for run, name in sorted({found for text in texts for found in PLACED.findall(text)}):
        folder = out / FOLDER / run
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(paths.results(run, html.unescape(name)), folder / html.unescape(name))


def setup(app):
    """Link the files as pages are read and copy them at the end of a build."""
    app.connect("source-read", link_files)
    app.connect("html-page-context", place_links)
    app.connect("build-finished", copy_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
