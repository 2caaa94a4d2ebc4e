"""An audit as one HTML file: no script, no request, readable on a phone and in the dark."""

import base64
import html
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from biastransfer.audit.maps import Explained
from biastransfer.audit.words import brief, signed

NONE = "–"
METHODS = {"sliding_patch": "sliding patch", "gradcam": "Grad-CAM"}


def render(facts: dict, figures: dict[str, str], explained: Sequence[Explained]) -> str:
    """Return the HTML of an audit.

    Parameters
    ----------
    facts : dict
        As `audit.json` has it.
    figures : dict of str to str
        Data URIs, from `figures.svg_uri`.
    explained : sequence of Explained
        Maps of the most telling pictures.

    Returns
    -------
    str
        Every name in it is escaped: a class may be called ``<script>``.
    """
    pages = Environment(
        loader=PackageLoader("biastransfer.audit", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    pages.filters |= {"number": _number, "span": _span, "p": _p, "brief": brief}
    template = pages.get_template("report.html.j2")
    style = resources.files("biastransfer.audit").joinpath("report.css").read_text(encoding="utf-8")
    maps = [(one, _by_stage(one)) for one in explained]
    findings = grouped(facts["pictures"]["findings"])
    shown = {"figures": figures, "maps": maps, "findings": findings, "limits": limits(), "style": style}
    return template.render(facts=facts, **shown)


def grouped(findings: Sequence[dict]) -> list[dict]:
    """Return ``findings`` of the linter with one row for those that say the same of several classes.

    Examples
    --------
    >>> one = {"severity": "note", "check": "licence gap", "what": "no licence is stated", "ids": "a", "n": 2}
    >>> grouped([one | {"class": "car"}, one | {"class": "man"}])[0]["class"]
    'car, man'
    """
    rows: dict[tuple, list[dict]] = {}
    for one in findings:
        rows.setdefault((one["severity"], one["check"], one["what"]), []).append(one)
    return [
        {
            **same[0],
            "class": ", ".join(dict.fromkeys(one["class"] for one in same)),
            "n": sum(one["n"] for one in same),
            "ids": ";".join(one["ids"] for one in same if one["ids"]),
        }
        for same in rows.values()
    ]


def limits() -> list[tuple[str, list[str]]]:
    """Return the page on limits and misuse: (heading, paragraphs)."""
    text = resources.files("biastransfer.audit").joinpath("limits.md").read_text(encoding="utf-8")
    sections: list[tuple[str, list[str]]] = []
    for block in text.strip().split("\n\n"):
        if block.startswith("## "):
            sections.append((block.removeprefix("## "), []))
        else:
            sections[-1][1].append(" ".join(block.split()))
    return sections


def download_link(file: Path | str, text: str = "") -> str:
    """Return a link of a web page that saves a copy of ``file``, which it holds itself; ``text`` is shown."""
    path = Path(file)
    kind = {".html": "text/html", ".json": "application/json"}.get(path.suffix, "application/octet-stream")
    data = base64.b64encode(path.read_bytes()).decode()
    name = html.escape(path.name, quote=True)
    return f'<a download="{name}" href="data:{kind};base64,{data}">{html.escape(text or path.name)}</a>'


def _by_stage(one: Explained) -> dict[str, list[tuple[str, str]]]:
    stages: dict[str, list[tuple[str, str]]] = {}
    for stage, method, uri in one.maps:
        stages.setdefault(stage, []).append((METHODS.get(method, method), uri))
    return stages


def _number(value, digits: int = 2) -> str:
    return NONE if value is None else signed(value, digits)


def _span(low, high, digits: int = 2) -> str:
    return NONE if low is None or high is None else f"{_number(low, digits)} to {_number(high, digits)}"


def _p(value) -> str:
    return NONE if value is None else f"{value:.2g}" if value >= 1e-15 else "< 1e-15"
