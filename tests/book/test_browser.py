"""The book in a real browser: no request leaves, no script error, no sideways scroll, search finds."""

import itertools

import pytest

WIDTHS = (390, 1280)
MODES = ("light", "dark")


@pytest.fixture(scope="module")
def content(pages):
    """All pages but the one that only leads to the intro."""
    return [page for page in pages if page != "index.html"]


def watch(page, site):
    """Return a list that fills with what a reader should never meet on ``page``."""
    complaints = []

    def left(request):
        if not request.url.startswith((site, "data:", "blob:")):
            complaints.append(f"request to {request.url}")

    def answered(response):
        if response.status >= 400:
            complaints.append(f"{response.status} for {response.url}")

    page.on("request", left)
    page.on("response", answered)
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return complaints


@pytest.mark.parametrize(("width", "mode"), [*itertools.product(WIDTHS, MODES)])
def test_every_page_reads_without_complaint(browser, site, content, width, mode):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=mode)
    page = context.new_page()
    complaints = watch(page, site)
    wide, wrong_mode = [], []
    for name in content:
        page.goto(site + name, wait_until="load")
        page.evaluate("window.MathJax && MathJax.startup ? MathJax.startup.promise : null")
        beyond = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        wide += [f"{name}: {beyond} px"] * (beyond > 0)
        if page.evaluate("document.documentElement.dataset.theme") != mode:
            wrong_mode.append(name)
    context.close()
    assert complaints == []
    assert wide == []
    assert wrong_mode == []


def test_the_first_address_leads_to_the_intro(browser, site):
    page = browser.new_page()
    complaints = watch(page, site)
    page.goto(site, wait_until="load")
    page.wait_for_url("**/intro.html", wait_until="load")
    page.close()
    assert complaints == []


def test_search_finds(browser, site):
    page = browser.new_page()
    complaints = watch(page, site)
    page.goto(f"{site}search.html?q=similarity", wait_until="load")
    page.wait_for_selector("#search-results li a", timeout=10_000)
    found = page.eval_on_selector_all("#search-results li a", "links => links.map(link => link.href)")
    page.close()
    assert any("how-to-read.html" in link for link in found)
    assert complaints == []


def test_figures_keep_an_opaque_ground_in_the_dark(browser, site, content):
    page = browser.new_page(color_scheme="dark")
    transparent = []
    for name in content:
        page.goto(site + name, wait_until="load")
        transparent += page.eval_on_selector_all(
            ".bd-article figure img, .cell_output img",
            """images => images.filter(i => getComputedStyle(i).backgroundColor !== 'rgb(255, 255, 255)')
                 .map(i => i.src)""",
        )
    page.close()
    assert transparent == []


def test_tables_and_figures_are_named_for_everyone(browser, site, content):
    """Every picture has words in its place; what scrolls can be reached by key; figures can be read.

    A figure is drawn 930 pixels wide with letters of 21: at 500 pixels they are as large as the page's.
    """
    page = browser.new_page(viewport={"width": 390, "height": 900})
    silent, unreachable, small, figures = [], [], [], 0
    for name in content:
        page.goto(site + name, wait_until="load")
        silent += page.eval_on_selector_all(
            ".bd-article img", "images => images.filter(i => !i.alt.trim()).map(i => i.src)"
        )
        unreachable += page.evaluate(
            """() => [...document.querySelectorAll('.bd-article :is(table, figure img)')].filter(held => {
                 for (let box = held; box && !box.matches('.bd-article'); box = box.parentElement)
                   if (box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX === 'auto')
                     return box.tabIndex !== 0;
                 return false;
               }).map(held => location.pathname + ': ' + (held.alt ?? held.textContent).slice(0, 40))"""
        )
        shown = page.eval_on_selector_all(
            ".bd-article figure img", "images => images.map(i => [i.src, i.naturalWidth, i.clientWidth])"
        )
        figures += len(shown)
        small += [
            (source, width)
            for source, natural, width in shown
            if natural > (500 if source.endswith(".svg") else 800) and width < 500
        ]
    page.close()
    assert silent == []
    assert unreachable == []
    assert figures
    assert small == []
