"""The book by keyboard and for screen readers: axe-core on every page in both modes, and the Tab key."""

import pytest

GRAVE = {"serious", "critical"}
EVERY_RULE = {}
# What colours and width can change; the rest of a page is the same in both modes.
LOOKS = {"runOnly": ["color-contrast", "scrollable-region-focusable", "target-size"]}
HERE = """() => {
  const at = document.activeElement;
  if (!at || at === document.body) return null;
  at.dataset.visited ??= "yes";
  const outline = getComputedStyle(at);
  return {
    text: (at.ariaLabel || at.textContent || at.title || "").trim().slice(0, 60),
    inside: [".bd-sidebar-primary", ".bd-header-article", ".bd-article", ".bd-sidebar-secondary"]
      .find(part => at.closest(part)) ?? "",
    marked: outline.outlineStyle !== "none" || outline.boxShadow !== "none",
  };
}"""


@pytest.fixture(scope="module")
def axe():
    module = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-core is not installed; run `make setup`"
    )
    return module.Axe()


def settled(page, address):
    """Open a page and wait for the scripts that change it."""
    page.goto(address, wait_until="load")
    page.evaluate("window.MathJax && MathJax.startup ? MathJax.startup.promise : null")


@pytest.mark.parametrize(
    ("width", "mode", "rules"),
    [(1280, "light", EVERY_RULE), (1280, "dark", LOOKS), (390, "dark", LOOKS)],
    ids=["wide-light", "wide-dark", "phone-dark"],
)
def test_axe_finds_nothing_grave(browser, site, pages, axe, width, mode, rules):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=mode)
    found = []
    for name in pages:
        if name == "index.html":  # leads on at once
            continue
        settled(page, site + name)
        response = axe.run(page, options={"resultTypes": ["violations"], "preload": False, **rules}).response
        found += [
            f"{name}: {rule['id']} ({rule['impact']}) at {node['html'][:120]}"
            for rule in response["violations"]
            if rule["impact"] in GRAVE
            for node in rule["nodes"]
        ]
    page.close()
    assert found == []


def walk(page, most=400):
    """Press Tab from the top until the focus leaves the page or comes round; return where it was."""
    steps = []
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.visited === 'yes'"):
            break
        here = page.evaluate(HERE)
        if here is None:
            break
        steps.append(here)
    return steps


REACHED = """() => [...document.querySelectorAll(
    'a[href], button, summary, select, input:not([type=hidden]), textarea, [tabindex="0"]')]
  .filter(one => one.checkVisibility({visibilityProperty: true}) && !one.disabled && one.tabIndex >= 0
    && one.getClientRects().length && one.dataset.visited !== 'yes')
  .map(one => one.outerHTML.slice(0, 120))"""


def some_pages(pages):
    """Return the pages whose parts differ: written, executed with tables, the explorer, the status."""
    executed = [name for name in pages if name.startswith("results/0")]
    return [name for name in ("intro.html", "explorer.html", "status.html") if name in pages] + executed[-2:]


def test_tab_reaches_everything_that_can_be_used(browser, site, pages):
    """What can be clicked can be reached with the Tab key, and shows where the focus is."""
    missed, unmarked = [], []
    for name in some_pages(pages):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        settled(page, site + name)
        steps = walk(page)
        missed += [f"{name}: {one}" for one in page.evaluate(REACHED)]
        unmarked += [f"{name}: {step['text']}" for step in steps if not step["marked"]]
        assert {".bd-sidebar-primary", ".bd-header-article", ".bd-article"} <= {s["inside"] for s in steps}
        page.close()
    assert missed == []
    assert unmarked == []


def test_search_opens_by_keyboard_and_finds(browser, site):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    settled(page, site + "intro.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("bias transfer score")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=bias**")
    page.wait_for_selector("#search-results li a", timeout=10_000)
    page.close()


def test_folded_code_opens_by_keyboard(browser, site, pages):
    name = next((name for name in pages if name.startswith("results/0")), None)
    if name is None:
        pytest.skip("this build holds no executed notebook")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    settled(page, site + name)
    fold = page.locator(".bd-article details summary").first
    fold.focus()
    page.keyboard.press("Enter")
    assert fold.evaluate("summary => summary.parentElement.open")
    page.close()
