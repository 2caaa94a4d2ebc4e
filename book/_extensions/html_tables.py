"""Tables that extensions write, in the form of those that notebooks show."""

import html
import re
from collections.abc import Iterable, Sequence

PAGE = re.compile(r'href="page:([^"]+)"')
LONG = 90  # characters beyond which a cell is prose: it may break within a word and keeps its width


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str | tuple[str, str]]], caption: str) -> str:
    """Return a table that scrolls by itself; a cell given as (text, page) links to that page of the book."""
    title = html.escape(caption, quote=True)
    head = "".join(f'<th scope="col">{html.escape(text)}</th>' for text in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f'<p class="table-caption">{title}</p><div class="table-scroll" role="region" tabindex="0" '
        f'aria-label="{title}"><table class="dataframe"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(cell: str | tuple[str, str]) -> str:
    if isinstance(cell, str):
        return f"<td{' class=long' * (len(cell) > LONG)}>{html.escape(cell)}</td>"
    text, page = cell
    return f'<td><a href="page:{html.escape(page, quote=True)}">{html.escape(text)}</a></td>'


def place_links(app, pagename, templatename, context, doctree):
    """Turn links to pages into addresses as seen from the page that they are on."""
    body = context.get("body", "")
    if 'href="page:' in body:
        to = context["pathto"]
        context["body"] = PAGE.sub(lambda link: f'href="{to(link.group(1))}"', body)


def setup(app):
    """Place the links as pages are written."""
    app.connect("html-page-context", place_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
