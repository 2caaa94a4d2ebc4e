"""Who carries an association: the stated rule on intervals, and the numbers that a page prints."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from biastransfer.attribution.person_removal import REDRAWN
from biastransfer.attribution.removal_effects import ALL
from biastransfer.stats import jackknife_t

HALF = 0.5
NETWORK = ("run", "set", "backbone", "stage", "target", "seed")
VERDICTS = ("people", "object", "people and object", "scene", "undecided", "none shown")


def carriers(frame: pd.DataFrame, *, at_least: float = HALF) -> pd.DataFrame:
    """Say of every object's association what carries it.

    Parameters
    ----------
    frame : DataFrame
        As `who_drives.remove` returns it; of one or several networks and fills.
    at_least : float
        Share of the association, from 0 to 1, that what carries it must account for.

    Returns
    -------
    DataFrame
        The network's keys, object, kind ("difference", "lean"), fill, association with low and high, person,
        object_share, remaining (what stays without person and object: the scene), n_man, n_woman, and verdict
        with reason.

    Notes
    -----
    The rule. An association whose 95 % interval holds 0 is "none shown". Otherwise people carry it when the
    lower bound of the share that leaves with them is at least ``at_least`` and more leaves, by the lower
    bound of the difference, than with as large an area elsewhere; the object likewise. The scene carries it
    when at least so much stays, by the upper bound of what left, once both are gone. Else "undecided".
    Redrawn scenes need no control: drawing a scene again without changing it changes nothing.
    """
    rows = []
    keys = [*(name for name in NETWORK if name in frame), "object", "kind", "fill"]
    for values, part in frame[frame["kind"] != "d"].groupby(keys, sort=False, dropna=False):
        named = part.set_index("removed").to_dict("index")
        rows.append(dict(zip(keys, values)) | _judged(named, values[-1] == REDRAWN, at_least))
    return pd.DataFrame(rows)


def _judged(named: Mapping[str, Mapping], redrawn: bool, at_least: float) -> dict:
    whole = named["nothing"]
    found = {
        "association": whole["value"], "low": whole["low"], "high": whole["high"],
        "person": named["person"]["share"], "object_share": named["object"]["share"],
        "remaining": 1 - named["both"]["share"], "n_man": whole["n_man"], "n_woman": whole["n_woman"],
    }  # fmt: skip
    if not (whole["low"] > 0 or whole["high"] < 0):
        return found | {"verdict": "none shown", "reason": "its interval holds 0"}
    sign = np.sign(whole["value"])

    def carries(part: str) -> bool:
        row = named[part]
        beyond = row["beyond_low"] if sign > 0 else -row["beyond_high"]
        return bool(row["share_low"] >= at_least and (redrawn or beyond > 0))

    names = [word for word, part in (("people", "person"), ("object", "object")) if carries(part)]
    if 1 - named["both"]["share_high"] >= at_least:
        names.append("scene")
    if not names:
        clear = [part for part in ("person", "object") if named[part]["share_low"] >= at_least]
        reason = "not shown to be more than the control takes" if clear else "no share is clear of the rest"
        return found | {"verdict": "undecided", "reason": reason}
    return found | {"verdict": " and ".join(names), "reason": ""}


def leaving(frame: pd.DataFrame, fill: str, *, removed: str = "person", seed: int = 0) -> dict[str, dict]:
    """Return what leaves of the difference over all objects when a part is removed, before and after.

    Parameters
    ----------
    frame : DataFrame
        As `who_drives.remove` returns it.
    fill, removed : str
        How it was removed, and what.
    seed : int
        Which finetuning.

    Returns
    -------
    dict
        Stage → the row: value, left, share with bounds.
    """
    chosen = (frame["object"] == ALL) & (frame["kind"] == "difference") & (frame["seed"] == seed)
    part = frame[chosen & (frame["fill"] == fill) & (frame["removed"] == removed)]
    return part.drop_duplicates("stage").set_index("stage").to_dict("index")


def in_words(row: Mapping[str, float]) -> str:
    """Return a share with its interval, or what there is to say without one, for a sentence.

    Parameters
    ----------
    row : mapping
        left, share and their bounds.

    Examples
    --------
    >>> in_words({"share": 0.5, "share_low": 0.25, "share_high": 0.75})
    '50 % (25 to 75 %)'
    """
    if np.isfinite(row["share"]):
        return f"{100 * row['share']:.0f} % ({100 * row['share_low']:.0f} to {100 * row['share_high']:.0f} %)"
    taken = f"{row['left']:.4f} ({row['left_low']:.4f} to {row['left_high']:.4f})"
    return f"{taken}, where the difference itself may be 0"


def share_summary(shares: pd.DataFrame) -> pd.DataFrame:
    """Return the mean share of a map on each region, over pictures, and how it compares with the area.

    Parameters
    ----------
    shares : DataFrame
        As `association_map.AssociationMaps` has them.

    Returns
    -------
    DataFrame
        The network's keys, score, method, fill, region, measure ("share", of the absolute map, or
        "positive"), value, low, high, area, beyond (value minus area, paired) with bounds, n, undefined.
        Intervals are 95 %, Student's t over pictures.
    """
    keys = [*(name for name in NETWORK if name in shares), "score", "method", "fill", "region"]
    rows = []
    for values, part in shares.fillna({"fill": ""}).groupby(keys, sort=False, dropna=False):
        for measure in ("share", "positive"):
            known = part[part[measure].notna()]
            found = known[measure].to_numpy()
            row = dict(zip(keys, values)) | {"measure": measure}
            row |= dict(zip(("value", "low", "high"), _mean(found))) | {"area": known["area"].mean()}
            row |= dict(zip(("beyond", "beyond_low", "beyond_high"), _mean(found - known["area"].to_numpy())))
            rows.append(row | {"n": len(found), "undefined": len(part) - len(found)})
    return pd.DataFrame(rows)


def _mean(values: np.ndarray) -> tuple[float, float, float]:
    if not len(values):
        return (float("nan"),) * 3
    mean, n = float(values.mean()), len(values)
    return mean, *jackknife_t(mean, (mean * n - values) / max(n - 1, 1))
