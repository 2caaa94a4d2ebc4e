"""The figures of an audit as data URIs: the book's charts, with the names of the set's own classes."""

import base64
import io
import re
import warnings

import matplotlib as mpl
import pandas as pd

from biastransfer import plots
from biastransfer.audit.measures import Measures
from biastransfer.audit.roles import Roles

LONGEST = 22  # characters of a class name in a figure
STAGES = {"before": "pretrained", "after": "finetuned"}  # as the charts call them
LEGEND = {"pretrained": "before", "finetuned, a marker a seed": "after", "one seed": "score"}


def figures(measures: Measures, roles: Roles, names: dict[str, str]) -> dict[str, str]:
    """Draw the figures of an audit.

    Parameters
    ----------
    measures : Measures
    roles : Roles
    names : dict of str to str
        Stage → name of the network; its title.

    Returns
    -------
    dict of str to str
        "similarities", "transfer" and "associations", as far as there is something to draw → a data URI.
    """
    title = _label(" → ".join(names.values()), 60)
    shown = {known: _label(name) for known, name in roles.shown.items()}
    drawn = {}
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # names may be in any script
        plots.set_style()
        mpl.rcParams["svg.hashsalt"] = "audit"
        similarities = _staged(measures.similarities, title)
        similarities["item"] = similarities["item"].map(lambda item: _item(item, shown))
        drawn["similarities"] = _uri(plots.similarities(similarities))
        if measures.transfer.size and measures.transfer["r"].notna().any():
            table = measures.transfer.assign(backbone=title, seed=0, set="")
            drawn["transfer"] = _uri(plots.transfer_scores(table))
        if measures.associations.size:
            table = _staged(measures.associations, title)
            for key in "XYAB":
                table[key] = table[key].map(shown)
            drawn["associations"] = _uri(plots.associations(table))
    return drawn


def _staged(frame: pd.DataFrame, title: str) -> pd.DataFrame:
    return frame.assign(backbone=title, stage=frame["stage"].map(STAGES), seed=0)


def _item(item: str, shown: dict[str, str]) -> str:
    return "|".join(shown[name] for name in item.split("|"))


def _label(name: str, longest: int = LONGEST) -> str:
    """Return a name as a figure can show it: one line, no mathematics, no separators of items."""
    clean = re.sub(r"[\s|]+", " ", "".join(one if one.isprintable() else " " for one in name)).strip() or "?"
    clean = clean if len(clean) <= longest else clean[: longest - 1] + "…"
    return clean.replace("\\", "/").replace("$", r"\$")


def _uri(figure) -> str:
    for text in (text for legend in figure.legends for text in legend.get_texts()):
        text.set_text(LEGEND.get(text.get_text(), text.get_text()))
    file = io.BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None}, bbox_inches="tight", pad_inches=0.1)
    return "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode()
