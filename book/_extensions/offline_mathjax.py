"""MathJax from the pip package ``sphinx-mathjax-offline``: one file copied, no other host asked.

That package's own extension copies every font and script, for the variant that needs them; the SVG variant
is one file that holds all it draws with.
"""

from importlib.util import find_spec
from pathlib import Path

from sphinx.util.fileutil import copy_asset

SCRIPT = "tex-svg-full.js"


def copy_script(app, error):
    """Copy the script into ``_static`` once the pages are written."""
    if error is not None or app.builder.format != "html":
        return
    package = find_spec("sphinx-mathjax-offline")
    if package is None:
        raise RuntimeError("sphinx-mathjax-offline must be installed to draw formulas; run `make setup`.")
    script = Path(package.origin).parent / "static" / "mathjax" / SCRIPT
    copy_asset(str(script), str(Path(app.outdir) / "_static" / "mathjax"))


def setup(app):
    """Copy the script at the end of a build; `mathjax_path` in _config.yml points to it."""
    app.connect("build-finished", copy_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
