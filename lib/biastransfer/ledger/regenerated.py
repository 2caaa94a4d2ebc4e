"""Which page of which named run makes the form of each of the paper's tables and figures."""

from collections.abc import Iterable

import pandas as pd

from biastransfer.published import load

from .models import same_model

# item: (what it shows, the result that holds it, schema, the network of a figure)
_FIGURES = {2: ("COCO", "BiT-M-R50x1"), 3: ("COCO", "BiT-M-R50x1")}
_SHOWN = ("BiT-M-R50x1", "CLIP-ViT-B/32", "MoCo ResNet50", "ResNet18", "ResNet50", "SimCLR ResNet50")
_FIGURES |= {6 + number: ("COCO", model) for number, model in enumerate(_SHOWN)}
_FIGURES |= {12 + number: ("Open Images", model) for number, model in enumerate(_SHOWN)}
_TABLES = {
    1: ("networks", "ledger-models", ""),
    2: ("association tests, two pairs", "association", "Open Images"),
    3: ("bias transfer scores, COCO", "transfer", "COCO"),
    4: ("bias transfer scores, Open Images", "transfer", "Open Images"),
    5: ("pictures per class, COCO", "sets", "COCO"),
    6: ("pictures per class, Open Images", "sets", "Open Images"),
    7: ("finetuning on COCO, mAP", "finetuning", ""),
    8: ("finetuning on Open Images, micro-F1", "finetuning", ""),
    9: ("association tests, six pairs", "association", "Open Images"),
}
_SCHEMAS = {"COCO": "coco", "Open Images": "openimages"}
FINETUNING = "02-finetune"
_OTHER_TARGET = {"Table 7": "openimages", "Table 8": "coco"}  # which is the other table's
_PARTS = {2: "intra-class", 3: "inter-class"}


def regenerated(pages: Iterable) -> pd.DataFrame:
    """Say which run and page makes each of Tables 1 to 9 and Figures 2, 3 and 6 to 17, and by which command.

    Parameters
    ----------
    pages : iterable of runs.Page
        Those of all runs, in the order in which they should be named.

    Returns
    -------
    DataFrame
        Columns `item`, `shows`, `run`, `page`, `command`, and `holds`: whose networks and which pictures. A
        row an item and run that has a page for it; an item without any has one with `run` "none".
    """
    pages = list({(page.run, page.name): page for page in pages}.values())  # one run may include another
    takes: dict[str, set] = {}
    for page in pages:
        takes.setdefault(page.run, set()).update(page.takes)
    rows = []
    for item, shows, result, schema, networks in _items():
        makers: dict[str, list] = {}
        for page in pages:
            made = any(_is_result(file.name, result, schema) for file in (*page.writes, *page.reads))
            if result == "finetuning" and page.notebook == FINETUNING:  # it declares its checkpoint alone
                made = page.parameters.get("target") != _OTHER_TARGET[item]
            if made:
                makers.setdefault(page.run, []).append(page)
        for run, own in makers.items():
            command = " ".join([f"make book RUN={run}", *(f"{name}=<path>" for name in sorted(takes[run]))])
            rows.append(_row(item, shows, run, own, result, schema, networks) | {"command": command})
        if not makers:
            nothing = {"run": "none", "page": "", "command": "", "holds": "no run has it"}
            rows.append({"item": item, "shows": shows} | nothing)
    return pd.DataFrame(rows)


def _items():
    everything = load("table1")["model"].tolist()
    for number, (shows, result, schema) in _TABLES.items():
        yield f"Table {number}", shows, result, schema, everything if result != "sets" else []
    for number, (schema, model) in _FIGURES.items():
        part = _PARTS.get(number, "intra- and inter-class")
        yield f"Figure {number}", f"{part} similarity, {model}, {schema}", "similarity", schema, [model]


def _is_result(name, result, schema):
    if not schema:
        return name == f"{result}.csv"
    return name.startswith(f"{result}-") and name.endswith(f"-{_SCHEMAS[schema]}.csv")


def _row(item, shows, run, pages, result, schema, networks):
    more = f" and {len(pages) - 1} more" if len(pages) > 1 else ""
    return {
        **{"item": item, "shows": shows, "run": run, "page": pages[0].name + more},
        "command": "",
        "holds": _held(pages, result, schema, networks),
    }


def _held(pages, result, schema, networks):
    """Say what the pages hold: whose networks, and which pictures or target."""
    given = [page.parameters for page in pages]
    sets = [name for one in given for name in (*one.get("sets", ()), one.get("set_name", ""))]
    sets = [name for name in sets if schema and name.endswith(_SCHEMAS[schema])]
    pictures = ", ".join(dict.fromkeys(sets)) or (
        "the notebook's defaults" if result != "ledger-models" else ""
    )
    if result == "finetuning":
        pictures = "target " + ", ".join(dict.fromkeys(one.get("target", "scenes") for one in given))
    if result == "ledger-models":
        return "as printed, beside the networks of the runs"
    if not networks:
        return pictures
    own = [name for one in given for name in (*one.get("backbones", ()), one.get("backbone", "")) if name]
    own += [name for one in given for name in one.get("finetuned", ())]
    held = [model for model in networks if any(same_model(name, model) for name in own)]
    whose = "other networks" if not held else "its network" if networks == held else ", ".join(held)
    return f"{whose}; {pictures}"
