"""A compendium of a few tiny notebooks and run files, for tests of the run graph."""

import json

CELL = """\
run: str = "smoke"  # name
seed: int = 0  # of all, allowed: >= 0
committed: bool = False  # show
root: str = ""  # pictures
"""


def write_notebook(house, name, *cells):
    """Write a notebook whose cells are these; `CELL` is its parameters cell."""
    (house / "notebooks").mkdir(exist_ok=True)
    listed = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "source": cell,
            "metadata": {"tags": ["parameters"]} if cell == CELL else {},
            "outputs": [],
            "execution_count": None,
        }
        for number, cell in enumerate(cells)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    content = {"cells": listed, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (house / "notebooks" / f"{name}.ipynb").write_text(json.dumps(content))


def write_run(house, name, text):
    """Write a run file."""
    (house / "runs").mkdir(exist_ok=True)
    (house / "runs" / f"{name}.yaml").write_text(text)
