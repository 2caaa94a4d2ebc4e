"""An audit in sentences: the answer, and what its pictures and networks cannot show."""

from math import inf, nan

from biastransfer.audit.words import brief, direction, interval, signed, verdicts

MAXIMUM = {"d": "effect_size", "low": "low", "high": "high"}
SMALL = 5  # pictures: below it an interval over pictures says next to nothing


def answer(facts: dict) -> list[str]:
    """Return the answer in three sentences: what the network holds, what finetuning did, what stands behind.

    Parameters
    ----------
    facts : dict
        Of an audit.
    """
    return [_association(facts), _transfer(facts), _ground(facts)]


def cannot_show(facts: dict) -> list[str]:
    """Return what the data of an audit cannot show, a sentence each.

    Parameters
    ----------
    facts : dict
        Of an audit.
    """
    roles = [_sentence(one.rstrip(".")) for one in _of_roles(facts)]
    said = [*roles, *_of_networks(facts), *_of_pictures(facts)]
    detectable = [row["detectable"] for row in facts["associations"] if row["detectable"] is not None]
    if detectable:
        n = facts["associations"][0]
        said.append(
            f"An association smaller than |d| = {max(detectable):.2f} is missed more often than one time in "
            f"five with {n['n_x']} and {n['n_y']} pictures of the attributes, before any correction for the "
            "number of tests: that it was not found does not say that it is not there."
        )
    elif facts["associations"]:
        said.append("So few pictures of the attributes cannot make any association significant.")
    for row in facts["transfer"]:
        if row["r_significant"] is None:
            said.append(
                f"A score over {row['n_items']} {row['kind']}-class items cannot be significant, "
                "whatever it is: there are too few of them."
            )
    return said


def numbers(facts: dict, level: float = 0.05) -> dict[str, float | int | str]:
    """Take from an audit what a chapter's sentences say of it.

    Parameters
    ----------
    facts : dict
        Of an audit.
    level : float
        Of the tests.

    Returns
    -------
    dict
        before, after, n_pictures, n_tests, n_before and n_after (associations that stand after correction),
        max_d, max_low, max_high and max_pair (the largest of the last stage), n_larger and n_untrained,
        detectable, became (verdicts of the changes, in words), and ``bts_intra``, ``bts_inter``, each also
        with ``_low`` and ``_high``. NaN or "" where there is none.
    """
    rows, networks = facts["associations"], facts["networks"]
    last = [r for r in rows if r["stage"] == rows[-1]["stage"] and r["effect_size"] is not None]
    top = max(last, key=lambda row: abs(row["effect_size"]), default={})
    said = {stage: networks[stage]["name"] if networks[stage] else "" for stage in ("before", "after")}
    said |= {
        "n_pictures": facts["pictures"]["n"],
        "n_tests": len(rows),
        "n_untrained": top.get("n_untrained", 0),
    }
    for stage in ("before", "after"):
        own = [row for row in rows if row["stage"] == stage and row["p_holm"] is not None]
        said[f"n_{stage}"] = sum(row["p_holm"] < level for row in own)
    said |= {"n_larger": len(_larger(last)), "became": verdicts(facts["changes"]) or "nothing to compare"}
    said |= {f"max_{name}": _float(top.get(key)) for name, key in MAXIMUM.items()}
    said |= {"max_pair": _pair(top) if top else "", "detectable": _float(top.get("detectable"))}
    for kind in ("intra", "inter"):
        row = next((row for row in facts["transfer"] if row["kind"] == kind), {})
        names = {f"bts_{kind}": "r", f"bts_{kind}_low": "low", f"bts_{kind}_high": "high"}
        said |= {name: _float(row.get(key)) for name, key in names.items()}
    return said


def _float(value) -> float:
    """Return a number for two digits: what rounds to 0 has no sign."""
    return nan if value is None else float(value) if abs(value) >= 0.005 else 0.0


def _larger(rows: list[dict]) -> list[dict]:
    """Return the associations that are larger than those of all untrained networks on their pair."""
    ranked = [row for row in rows if row["p_untrained"] is not None]
    return [row for row in ranked if row["p_untrained"] < 1.5 / (row["n_untrained"] + 1)]


def _association(facts: dict) -> str:
    rows = facts["associations"]
    if not rows:
        return "No association was tested: " + (_of_roles(facts) or ["there is no pair of objects"])[0]
    parts = []
    for stage in ("before", "after"):
        own = [row for row in rows if row["stage"] == stage and row["effect_size"] is not None]
        if not own:
            continue
        top = max(own, key=lambda row: abs(row["effect_size"]))
        found = sum((row["p_holm"] if row["p_holm"] is not None else inf) < 0.05 for row in own)
        size = f"{signed(top['effect_size'])} ({interval(top['low'], top['high'])})"
        stand = "do" if parts else "associations stand after correction"
        when = stage if facts["networks"]["after"] else "in this network"
        parts.append(
            f"{when}, {found} of {len(own)} {stand}, the "
            f"largest d = {size} for {_pair(top)}, where {direction(top)}"
        )
    return (
        _sentence("; ".join(parts)) if parts else "No association could be computed: all of them are equal."
    )


def _pictures(n: int, one: str, several: str) -> str:
    return f"1 picture {one}" if n == 1 else f"{n} pictures {several}"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _pair(row: dict) -> str:
    return f"{brief(row['A'])} against {brief(row['B'])}"


def _transfer(facts: dict) -> str:
    if not facts["networks"]["after"]:
        return "One network was audited alone, so nothing is said of what finetuning keeps or adds."
    if facts["networks"]["same_embedding"]:
        return (
            "Before and after give the same embeddings, so every similarity is kept: the bias transfer score "
            "is 1 by construction and nothing was changed."
        )
    scores = [
        f"{signed(row['r'])} over {row['n_items']} {row['kind']}-class items "
        f"({interval(row['low'], row['high'])})"
        for row in facts["transfer"]
        if row["r"] is not None
    ]
    said = (
        f"The order of similarities is kept to a bias transfer score of {' and '.join(scores)}"
        if scores
        else ("No bias transfer score could be computed")
    )
    known = [row for row in facts["changes"] if row["low"] is not None]
    if known:
        top = max(known, key=lambda row: abs(row["change"]))
        said += (
            f"; what became of {len(known)} associations: {verdicts(known)}; the "
            f"largest change is {signed(top['change'])} ({interval(top['low'], top['high'])}): {_pair(top)}"
        )
    return said + "."


def _ground(facts: dict) -> str:
    rows = [row for row in facts["associations"] if row["untrained_low"] is not None]
    if not rows and (n := max((row["n_untrained"] or 0 for row in facts["similarities"]), default=0)):
        return (
            f"{n} untrained network{'s stand' if n > 1 else ' stands'} beside the similarities alone, since "
            "no association was computed."
        )
    if not rows:
        why = next(iter(facts["nulls"]["missing"].values()), "none was asked for")
        why = why.rstrip(".")
        return f"No untrained network stands beside these numbers ({why}), so they may need no learning."
    last = [row for row in rows if row["stage"] == rows[-1]["stage"] and row["effect_size"] is not None]
    if not last:
        return (
            f"No association could be computed {rows[-1]['stage']}, so none stands beside untrained networks."
        )
    n = last[0]["n_untrained"]
    edge = max(max(abs(row["untrained_low"]), abs(row["untrained_high"])) for row in last)
    detectable = [row["detectable"] for row in last if row["detectable"] is not None]
    smallest = (
        f"; below |d| = {max(detectable):.2f} this set would miss one in five or more" if detectable else ""
    )
    when = "After, " if facts["networks"]["after"] else ""
    return (
        f"{when}{len(_larger(last))} of {len(last)} associations are larger than under {n} "
        f"network{'' if n == 1 else 's'} of the same architecture that never learned, on the same pair "
        f"(|d| up to {edge:.2f}){smallest}."
    )


def _of_roles(facts: dict) -> list[str]:
    roles, classes = facts["roles"], {row["name"] for row in facts["pictures"]["classes"]}
    said = []
    if len(roles["attributes"]) < 2:
        found = (
            f"the set has one, {brief(roles['attributes'][0])}"
            if roles["attributes"]
            else "the set shows none"
        )
        said.append(f"an association compares two attributes, and {found}.")
    elif missing := [one for one in roles["attributes"] if one not in classes]:
        said.append(
            f"an association needs pictures of both attributes alone; {brief(missing[0])} has no class."
        )
    if len(roles["objects"]) < 2:
        said.append(f"an association needs two objects to compare; the set has {len(roles['objects'])}.")
    if roles["random"] is None:
        said.append("No class of random pictures tells how near any two pictures are.")
    return said


def _of_networks(facts: dict) -> list[str]:
    networks, said = facts["networks"], []
    if not networks["one_architecture"]:
        names = " and ".join(networks[stage]["architecture"] for stage in ("before", "after"))
        said.append(
            f"The two networks are of different architectures ({names}): what differs between them is not "
            "what finetuning did, but architecture, pretraining and finetuning together."
        )
    for stage, why in facts["nulls"]["missing"].items():
        said.append(f"There are no untrained networks for {stage}: {why}")
    if networks["after"] and not networks["same_embedding"]:
        said.append("One finetuning is one draw: other seeds of the same recipe give other numbers.")
    return said


def _of_pictures(facts: dict) -> list[str]:
    pictures, said = facts["pictures"], []
    small = [
        f"{brief(row['name'])} ({row['used']})" for row in pictures["classes"] if 0 < row["used"] < SMALL
    ]
    if small:
        said.append(f"Classes of fewer than {SMALL} pictures say next to nothing: {', '.join(small)}.")
    unused = [brief(row["name"]) for row in pictures["classes"] if row["role"] == "not used"]
    if unused:
        said.append(f"Classes without a role were left out: {', '.join(unused)}.")
    doubled = [row for row in pictures["findings"] if row["check"] == "in two classes"]
    if doubled:
        said.append(
            f"{_pictures(len(doubled), 'stands', 'stand')} in two classes, which draws these classes "
            "together without the network having any part in it."
        )
    if pictures["lost"]:
        said.append(f"{_pictures(len(pictures['lost']), 'is', 'are')} left out, for want of an embedding.")
    return said
