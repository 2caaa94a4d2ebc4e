"""What an executed notebook tells about itself: its run, its parameters, its run line, the CSVs it wrote."""

import ast
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from biastransfer import paths
from biastransfer.parameters import declared

WRITES = re.compile(r"\*Writes\*(.*?)below\s+`data/results/<run>/`", re.S)
RUN_LINE = re.compile(
    r"(?P<committed>committed · )?run (?P<run>\S+) · commit (?P<commit>.+?) · seed (?P<seed>\S+) · "
    r"(?P<seconds>[\d.]+) s\n(?P<versions>.+?) · (?P<device>.+?)(?: · shown at commit .+)?$",
    re.M,
)


@dataclass(frozen=True)
class Executed:
    """One executed notebook; fields of the run line are empty where it has none."""

    path: Path
    title: str
    parameters: dict
    given: tuple[str, ...]  # names of parameters that the run gave, the others are the notebook's own
    seconds: float | None  # of the whole page, the start of its kernel included
    line: dict[str, str]
    writes: tuple[str, ...]  # names of CSVs below the run's results, as patterns

    @property
    def run(self) -> str:
        """The run that its results are in."""
        return str(self.parameters.get("run", ""))


def read(path: Path) -> Executed:
    """Read an executed notebook; anything that it lacks is left empty."""
    return parse(json.loads(path.read_text(encoding="utf-8")), path)


def parse(notebook: dict, path: Path) -> Executed:
    """Return what the content of an executed notebook tells; `path` is where it lies."""
    cells = notebook["cells"]
    first = "".join(cells[0]["source"]) if cells else ""
    papermill = notebook["metadata"].get("papermill", {})
    sources = ["".join(cell["source"]) for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    parameters = {p.name: ast.literal_eval(p.default) for text in sources for p in declared(text)}
    given = papermill.get("parameters", {})
    printed = "\n".join(_printed(cells))
    found = RUN_LINE.search(printed)
    stated = WRITES.search(first)
    parameters |= given
    return Executed(
        path=path,
        title=first.partition("\n")[0].removeprefix("# ").strip(),
        parameters=parameters,
        given=tuple(given),
        seconds=papermill.get("duration"),
        line={name: value or "" for name, value in found.groupdict().items()} if found else {},
        writes=tuple(_patterns(stated.group(1) if stated else "", parameters)),
    )


def results_of(page: Executed) -> list[Path]:
    """Return the CSVs of a page that lie below ``data/results/<run>``, sorted."""
    if not page.run:
        return []
    there = sorted(paths.results(page.run).glob("*.csv"))
    return [file for file in there if any(re.fullmatch(pattern, file.name) for pattern in page.writes)]


def _printed(cells: Iterable[dict]) -> Iterable[str]:
    outputs = chain.from_iterable(cell.get("outputs", []) for cell in cells)
    return ("".join(output["text"]) for output in outputs if output["output_type"] == "stream")


def _patterns(stated: str, parameters: dict) -> Iterable[str]:
    """Return ``transfer-<set>.csv`` as a regular expression.

    <seed> stands for the value of that parameter, and <set>, where there is none of the name, for any value.
    """
    lists = {name: value if isinstance(value, list) else [value] for name, value in parameters.items()}
    every = list(chain.from_iterable(lists.values()))
    for name in re.findall(r"`([^`]+\.csv)`", stated):
        parts = re.split(r"(<\w+>|\*)", name)
        yield "".join(
            ".*"
            if part == "*"
            else _any_of(lists.get(part[1:-1], every))
            if part.startswith("<")
            else re.escape(part)
            for part in parts
        )


def _any_of(values: Iterable) -> str:
    return f"(?:{'|'.join(sorted({re.escape(str(value)) for value in values} - {''}))})"
