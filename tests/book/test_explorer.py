"""Sorting, filtering and saving tables, and the explorer, as a reader uses them."""

import csv
import re

import pytest

from biastransfer import paths


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    yield page
    page.close()


def executed_pages(pages):
    found = [name for name in pages if name.startswith("results/")]
    if not found:
        pytest.skip("this build holds no executed notebook")
    return found


@pytest.fixture
def explorer(page, site, html):
    """The explorer's page, opened and drawn."""
    if 'id="explorer-data"' not in (html / "explorer.html").read_text(encoding="utf-8"):
        pytest.skip("this build holds nothing to explore")
    page.goto(f"{site}explorer.html", wait_until="load")
    page.wait_for_selector(".explorer-plot")
    return page


def column(table, number):
    return table.evaluate("(t, n) => [...t.tBodies[0].rows].map(r => r.cells[n].textContent)", number)


def test_a_head_sorts_by_the_enter_key_and_by_number(page, site):
    """The status page has a column of seconds: whole numbers of different lengths."""
    page.goto(f"{site}status.html", wait_until="load")
    table = page.locator("table.dataTable").first
    if not table.count():
        pytest.skip("this build holds too few executed notebooks for a table to sort")
    before = column(table, 2)
    head = table.locator("thead th").nth(2)
    button = head.locator("[tabindex='0']").first if head.get_attribute("tabindex") is None else head
    button.focus()
    page.keyboard.press("Enter")
    table.locator("thead th[aria-sort=ascending]").wait_for(timeout=10_000)  # sorted in its own time
    assert head.get_attribute("aria-sort") == "ascending"
    assert column(table, 2) == sorted(before, key=float)
    page.keyboard.press("Enter")
    table.locator("thead th[aria-sort=descending]").wait_for(timeout=10_000)  # sorted in its own time
    assert head.get_attribute("aria-sort") == "descending"
    assert column(table, 2) == sorted(before, key=float, reverse=True)


def test_a_long_table_can_be_filtered(page, site, pages):
    for name in executed_pages(pages):
        page.goto(site + name, wait_until="load")
        if page.locator(".dt-search input").count():
            break
    else:
        pytest.skip("no table of this build is long")
    box = page.locator(".dt-container:has(.dt-search)").first
    wanted = column(box.locator("table").first, 0)[0]
    box.locator(".dt-search input").fill(wanted)
    rows = box.locator("tbody tr").all_text_contents()
    assert rows
    assert [row for row in rows if wanted.lower() not in row.lower()] == []


def test_linked_files_are_the_very_files(html, pages):
    """Byte for byte what the run wrote, wherever a page links to data."""
    linked = 0
    for name in executed_pages(pages):
        text = (html / name).read_text(encoding="utf-8")
        for link, run, file in re.findall(r'href="((?:\.\./)*_data/([\w.-]+)/([^"/]+))"', text):
            copied = (html / name).parent / link
            assert copied.read_bytes() == paths.results(run, file).read_bytes(), f"{name}: {file}"
            linked += 1
    assert linked


def test_explorer_draws_what_the_csv_holds(explorer):
    """Every value of the chosen network, as often as the CSV has it, with its number in the table."""
    chosen = {
        way: explorer.locator(f"#explorer-{way}").input_value()
        for way in ("set", "network", "target", "stage")
    }
    name, _, run = chosen["set"].partition(", run ")
    with open(paths.results(run, f"similarity-{name}.csv"), encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["backbone"] == chosen["network"]]
    rows = [row for row in rows if row["stage"] != "finetuned" or row["target"] == chosen["target"]]
    marks = explorer.locator(".explorer-plot g.before, .explorer-plot g.after").count()
    assert marks == sum(row["value"] != "" for row in rows)
    explorer.locator(".explorer-numbers summary").click()
    shown = column(explorer.locator(".explorer-numbers table"), 3)
    wanted = [f"{float(row['value']):.3f}" for row in rows]
    assert all(abs(float(a.replace("−", "-")) - float(b)) < 2e-3 for a, b in zip(shown, wanted, strict=True))
    changes = paths.results(run, f"association_changes-{name}.csv")
    if changes.is_file():
        with open(changes, encoding="utf-8") as file:
            judged = [row for row in csv.DictReader(file) if row["backbone"] == chosen["network"]]
        shown = column(explorer.locator("h2#association + div table"), 8) if judged else []
        wanted = [row["verdict"] for row in judged if row["target"] == chosen["target"]]
        assert [verdict for verdict in shown if verdict != "–"] == wanted


def test_explorer_is_chosen_by_keyboard_and_kept_in_the_address(explorer):
    select = explorer.locator("#explorer-network")
    names = select.locator("option").all_text_contents()
    select.focus()
    explorer.keyboard.press("ArrowDown")
    assert select.input_value() == names[min(1, len(names) - 1)]
    said = explorer.locator("[role=status]").text_content()
    assert said.startswith(select.input_value())
    explorer.reload(wait_until="load")
    assert explorer.locator("[role=status]").text_content() == said


def test_explorer_says_what_to_do_without_scripts(browser, site, html):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}explorer.html", wait_until="load")
    text = page.locator(".bd-article").text_content()
    context.close()
    assert "Choosing needs JavaScript" in text or "holds no similarities" in text
