"""What a notebook hands to the book: glued numbers and figures, tables and the run line."""

import base64
import html
import importlib.metadata
import json
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

import pandas as pd
from IPython.display import HTML
from matplotlib.figure import Figure
from myst_nb import glue as _glue

from biastransfer import paths

STARTED = time.perf_counter()  # notebooks import this module in their first cell
NONE = "–"  # a value that does not exist
CHANGES = ["status", "--porcelain", "--untracked-files=no", "--", ".", ":!data/results"]  # of code


def glue(**values: float | int | str) -> None:
    """Hand numbers and words to the pages of the book, by name; nothing is shown here.

    Parameters
    ----------
    **values : float, int or str
        Whole numbers stay whole; others become floats of six decimals, so that two runs compare equal.
    """
    for name, value in values.items():
        if not isinstance(value, str):
            value = int(value) if float(value).is_integer() else round(float(value), 6)
        _glue(name, value, display=False)


def glue_figure(name: str, figure: Figure) -> None:
    """Show a figure here and hand it to the pages of the book under ``name``."""
    _glue(name, figure, display=True)


def table(
    frame: pd.DataFrame,
    caption: str,
    *,
    names: Mapping[str, str] | None = None,
    formats: Mapping[str, str] | None = None,
    csv: str = "",
) -> HTML:
    """Return a small rounded table that scrolls by itself where the page is narrow.

    Parameters
    ----------
    frame : DataFrame
        Shown without its index, "None." without rows. Names and formats go by the last level of its columns.
    caption : str
        Stands above the table; says n, unit and what the intervals are over.
    names : mapping of str to str
        Headings of columns, by their names in `frame`.
    formats : mapping of str to str
        By names in `frame`: a specification such as ".2g", or "p", never 0; ``""`` stands for all others.
    csv : str
        File name; with it a link below the table saves what is shown.

    Returns
    -------
    IPython.display.HTML
    """
    title = html.escape(caption, quote=True)
    if frame.empty:
        return HTML(f'<p class="table-caption">{title} <em>None.</em></p>')
    columns = {name: _format(name, formats) for name in frame.columns}
    shown = pd.DataFrame(
        {name: [_cell(value, spec) for value in frame[name]] for name, spec in columns.items()}
    )
    if isinstance(frame.columns, pd.MultiIndex):
        shown.columns = frame.columns
    shown = shown.rename(columns=names or {}, level=frame.columns.nlevels - 1)
    body = shown.to_html(index=False, border=0, classes="dataframe")
    body = re.sub("<th([^>]*)></th>", r"<td\1></td>", body)  # heads nothing
    return HTML(
        f'<p class="table-caption">{title}</p><div class="table-scroll" role="region" tabindex="0" '
        f'aria-label="{title}" style="overflow-x:auto">{body}</div>{_link(shown, csv)}'
    )


def side_by_side(
    frame: pd.DataFrame, rows: Sequence[str], columns: Sequence[str], values: Sequence[str]
) -> pd.DataFrame:
    """Put networks, kinds or sets beside each other: a group of columns each, a row for what they share.

    Parameters
    ----------
    frame : DataFrame
        Tidy. With stage and seed in it, ``network`` may be a column: the stage, or "finetuned, seed 0";
        where it has low and high, ``95 % interval``.
    rows, columns : sequence of str
        Columns of `frame` whose values make the rows and the groups, in the order in which they occur;
        groups that share their first value stand together. None: no groups.
    values : sequence of str
        What each group shows; with one value the groups have no third heading.

    Returns
    -------
    DataFrame
        Columns in levels, for `table`; a combination that `frame` lacks is missing.

    Examples
    --------
    >>> tidy = pd.DataFrame({"item": ["a", "a"], "kind": ["x", "y"], "r": [1, 2]})
    >>> side_by_side(tidy, ["item"], ["kind"], ["r"]).to_numpy().tolist()
    [['a', 1, 2]]
    """
    if {"stage", "seed"} <= set(frame):
        named = "finetuned, seed " + frame["seed"].astype(str)
        frame = frame.assign(network=named.mask(frame["stage"].ne("finetuned"), frame["stage"]))
    if {"low", "high"} <= set(frame):
        ends = frame[["low", "high"]]
        digits = 2 if ends.abs().max(axis=None) >= 0.5 else 3  # small bounds show their sign
        digits += bool(ends.abs()[ends != 0].min(axis=None) < 0.5 / 10**digits)
        spec = f".{digits}f"
        shown = [NONE if pd.isna(a) else f"{_cell(a, spec)} to {_cell(b, spec)}" for a, b in ends.to_numpy()]
        frame = frame.assign(**{"95 % interval": shown})
    if frame.empty or not columns:
        return frame.reindex(columns=[*rows, *values])
    groups = frame.groupby(list(columns), sort=False)
    parts = {
        key if len(key) > 1 else key[0]: part.set_index(list(rows))[list(values)] for key, part in groups
    }
    wide = pd.concat(parts, axis=1, sort=False)
    wide = wide[list(dict.fromkeys(wide.columns.get_level_values(0)))]
    if len(values) == 1:
        wide.columns = wide.columns.droplevel(-1)
    named = {"col_level": wide.columns.nlevels - 1} if wide.columns.nlevels > 1 else {}
    return wide.rename_axis(columns=[None] * wide.columns.nlevels).reset_index(**named)


def origin(run: str, page: str, committed: bool) -> str:
    """Say where a page's numbers come from: computed here, or committed in an earlier run.

    Parameters
    ----------
    run, page : str
        Run and page, as given to `run_line`.
    committed : bool
        Whether the page reads committed results.
    """
    if not committed:
        return f"computed, run {run}"
    return f"committed, run {run}, commit {_recorded(run, page).get('commit', 'not recorded')}"


def run_line(run: str, page: str, *, seed: int, device: str = "", committed: bool = False) -> str:
    """Return the run line of a page's foot, and keep its facts beside the run's results.

    Parameters
    ----------
    run, page : str
        Run and page, such as "demo" and "03-similarity-scenes-coco".
    seed : int
        The page's seed.
    device : str
        Device and why; default: the CPU, and whether a network ran at all.
    committed : bool
        The page shows committed results: the line tells of the run that made them, and nothing is written.

    Returns
    -------
    str
        Run, commit ("-dirty" with changes), seed, seconds; on a second line versions and device.
    """
    if committed:
        if not (facts := _recorded(run, page)):
            return f"run {run} · committed; the run that made these results kept no facts"
        return f"committed · {_sentence(facts)} · shown at commit {_commit()}"
    facts = {
        "run": run,
        "commit": _commit(),
        "versions": _versions(),
        "device": device or ("cpu" if "torch" in sys.modules else "cpu (no network was run)"),
        "seed": seed,
        "seconds": round(time.perf_counter() - STARTED, 1),
    }
    with paths.replacing(_facts_file(run, page)) as partial:
        partial.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    return _sentence(facts)


def _sentence(facts: Mapping) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    return (
        f"run {facts['run']} · commit {facts['commit']} · seed {facts['seed']} · {facts['seconds']} s\n"
        f"{versions} · {facts['device']}"
    )


def _facts_file(run: str, page: str):
    return paths.results(run, f"provenance-{page}.json")  # one a page: pages of a run are made in parallel


def _recorded(run: str, page: str) -> dict:
    file = _facts_file(run, page)
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def _versions() -> dict[str, str]:
    loaded = [name for name in ("torch", "numpy") if name in sys.modules]
    found = {name: sys.modules[name].__version__ for name in loaded}
    return {"biastransfer": importlib.metadata.version("biastransfer"), **found}


def _commit() -> str:
    """Return the checkout's short commit, "-dirty" with uncommitted changes, or "no git"."""
    head = _git("rev-parse", "--short", "HEAD")
    return "no git" if head is None else head + ("-dirty" if _git(*CHANGES) else "")


def _git(*arguments: str) -> str | None:
    try:
        return subprocess.run(
            ["git", *arguments], cwd=paths.root(), capture_output=True, text=True, timeout=20, check=True
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def _format(name, formats: Mapping[str, str] | None) -> str:
    formats = {"": ".3f"} | dict(formats or {})
    return formats.get(str(name[-1] if isinstance(name, tuple) else name), formats[""])


def _cell(value, spec: str) -> str:
    if pd.isna(value):
        return NONE
    if spec == "p":  # below 1e-15 is rounding, and 0 where a t approximation meets r = 1
        return format(value, ".2g") if value >= 1e-15 else "< 1e-15"
    shown = format(value, spec) if isinstance(value, float) else str(value)
    return "0" + shown[2:] if shown.startswith("-0") and not shown.strip("-0.") else shown  # no "-0.000"


def _link(shown: pd.DataFrame, csv: str) -> str:
    if not csv:
        return ""
    flat = [" ".join(filter(None, map(str, c))) if isinstance(c, tuple) else c for c in shown.columns]
    data = base64.b64encode(shown.set_axis(flat, axis=1).to_csv(index=False).encode()).decode()
    name = html.escape(csv, quote=True)
    link = f'<a download="{name}" href="data:text/csv;base64,{data}">{name}</a>'
    return f'<p class="table-csv" style="margin-top:0.5rem">{link}</p>'
