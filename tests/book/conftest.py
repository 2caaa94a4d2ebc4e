"""The built book, a server on this machine and a browser; each skips with the reason where it is missing."""

import functools
import http.server
import shutil
import threading

import pytest

from biastransfer import paths

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="session")
def html():
    """Folder of the rendered book."""
    folder = paths.built_book("html")
    if not (folder / "intro.html").is_file():
        pytest.skip("the book is not built; run `make book`, then `make test`")
    return folder


@pytest.fixture(scope="session")
def pages(html):
    """Addresses of all pages below the book's folder, sorted."""
    found = (file.relative_to(html) for file in html.rglob("*.html"))
    return sorted(page.as_posix() for page in found if page.parts[0] not in ("_static", "_sources"))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="session")
def site(html):
    """Address of a server that hands out the book."""
    handler = functools.partial(Quiet, directory=str(html))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="session")
def browser(html):
    """The system's Chromium, driven by Playwright."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed; run `make setup`"
    )
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(
            f"no browser here (looked for {', '.join(BROWSERS)}); install one, then `make test` runs this"
        )
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=FLAGS)
        yield started
        started.close()
