"""The figures of an audit: the book's charts, with the names of the set's own classes."""

import base64
import io
import re
import warnings

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from biastransfer import plots
from biastransfer.audit.measures import Measures
from biastransfer.audit.roles import Roles

LONGEST = 22  # characters of a class name in a figure
STAGES = {"before": "pretrained", "after": "finetuned"}  # as the charts call them
LEGEND = {"pretrained": "before", "finetuned, a marker a seed": "after", "one seed": "score"}


def draw(measures: Measures, roles: Roles, names: dict[str, str]) -> dict[str, Figure]:
    """Draw the figures of an audit.

    Parameters
    ----------
    measures : Measures
    roles : Roles
    names : dict of str to str
        Stage → name of the network; its title.

    Returns
    -------
    dict of str to Figure
        "similarities", "transfer" and "associations", as far as there is something to draw.
    """
    title = _label(" → ".join(names.values()), 60)
    shown = _labels(roles)
    drawn = {}
    with mpl.rc_context():
        plots.set_style()
        similarities = _staged(measures.similarities, title)
        similarities["item"] = similarities["item"].map(lambda item: _item(item, shown))
        drawn["similarities"] = plots.similarities(similarities)
        if measures.transfer.size and measures.transfer["r"].notna().any():
            table = measures.transfer.assign(backbone=" ", seed=0, set="")
            drawn["transfer"] = plots.transfer_scores(table)
        if measures.associations.size:
            table = _staged(measures.associations, title)
            for key in "XYAB":
                table[key] = table[key].map(shown)
            drawn["associations"] = plots.associations(table)
    for text in (text for one in drawn.values() for legend in one.legends for text in legend.get_texts()):
        text.set_text(LEGEND.get(text.get_text(), text.get_text()))
    return drawn


def svg_uri(figure: Figure) -> str:
    """Return a ``figure`` as a data URI of an SVG, the same bytes for the same figure."""
    file = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "audit", "savefig.facecolor": "white"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # names may be in any script
        figure.savefig(file, format="svg", metadata={"Date": None}, bbox_inches="tight", pad_inches=0.1)
    return "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode()


def _staged(frame: pd.DataFrame, title: str) -> pd.DataFrame:
    return frame.assign(backbone=title, stage=frame["stage"].map(STAGES), seed=0)


def _item(item: str, shown: dict[str, str]) -> str:
    return "|".join(shown[name] for name in item.split("|"))


def _labels(roles: Roles) -> dict[str, str]:
    """Return names of measures → labels, no two alike."""
    labels: dict[str, str] = {}
    for known, name in roles.shown.items():
        label = _label(name)
        alike = sum(one.startswith(label) for one in labels.values())
        labels[known] = f"{label} ({alike + 1})" if label in labels.values() else label
    return labels


def _label(name: str, longest: int = LONGEST) -> str:
    """Return a name as a figure can show it: one line, no mathematics, no separators of items."""
    clean = re.sub(r"[\s|]+", " ", "".join(one if one.isprintable() else " " for one in name)).strip() or "?"
    clean = clean if len(clean) <= longest else clean[: longest - 1] + "…"
    return clean.replace("\\", "/").replace("$", r"\$")
