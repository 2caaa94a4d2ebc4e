"""Bias transfer scores of a whole run as tidy tables, with the reference points they are read against."""

from itertools import product

import pandas as pd

from biastransfer.similarity import items
from biastransfer.transfer.pictures import item_values, transfer_of_seeds
from biastransfer.transfer.score import bias_transfer_score, leave_one_out

KEYS = ["run", "backbone", "target", "seed", "set"]
VALUES = [
    *("r", "p", "p_exact", "low", "high", "ceiling", "n", "reason", "method", "cross_half"),
    *("reliability_before", "reliability_after", "p_within", "r_objects", "pictures"),
]


def tabulate(embedded, set_name, run, *, resamples=10_000, seed=0):
    """Transfer scores of every finetuned condition, and of its mean over seeds, as a tidy table.

    Parameters
    ----------
    embedded : mapping
        Condition (with .backbone, .stage, .target and .seed) → mapping of class → (n, D) array, the same
        pictures in the same rows throughout.
    set_name, run : str
        Name of the analysis set and of the run.
    resamples, seed : int
        As in :func:`bias_transfer`.

    Returns
    -------
    pandas.DataFrame
        Columns run, backbone, target, seed (or ``"mean"``: similarities averaged over two or more seeds),
        set, kind (intra | inter), r, p, p_exact, low, high, ceiling, n, reason, method, cross_half,
        reliability_before, reliability_after, p_within, r_objects, pictures.

    Raises
    ------
    ValueError
        If a finetuned backbone has no pretrained condition, or classes do not fit together.
    """
    rows = []
    for (backbone, target), after in _finetuned(embedded).items():
        before = _pretrained(embedded, backbone)
        for number, stages in _with_mean(after).items():
            keys = {"run": run, "backbone": backbone, "target": target, "seed": number, "set": set_name}
            for kind, listed in zip(("intra", "inter"), items(before)):
                rows.append(
                    {**keys, "kind": kind, **vars(transfer_of_seeds(before, stages, listed, resamples, seed))}
                )
    return pd.DataFrame(rows).reindex(columns=[*KEYS, "kind", *VALUES])


def by_layer(layered, set_name, run, *, resamples=10_000, seed=0):
    """Transfer scores at several layers of the networks: where along the network the order is kept.

    Parameters
    ----------
    layered : mapping
        Layer → embeddings as in :func:`tabulate`, of the same pictures; in the order to be shown.
    set_name, run : str
        Name of the analysis set and of the run.
    resamples, seed : int
        As in :func:`bias_transfer`; every layer sees the same draws of the pictures.

    Returns
    -------
    pandas.DataFrame
        The columns of :func:`tabulate` with layer after set; layers in the order of `layered`.

    Raises
    ------
    ValueError
        As :func:`tabulate`; if there is no layer.
    """
    if not layered:
        raise ValueError("scores by layer need at least one layer; got none. Name some, such as 'embedding'.")
    tables = {
        layer: tabulate(embedded, set_name, run, resamples=resamples, seed=seed)
        for layer, embedded in layered.items()
    }
    table = pd.concat(tables, names=["layer"]).reset_index("layer").reset_index(drop=True)
    return table[[*KEYS, "layer", "kind", *VALUES]]


def reference_scores(embedded, set_name, run):
    """Reference points of transfer scores: another pretrained or untrained network against the finetuned.

    Parameters
    ----------
    embedded : mapping
        As in :func:`tabulate`.
    set_name, run : str
        Name of the analysis set and of the run.

    Returns
    -------
    pandas.DataFrame
        Columns run, backbone, target, seed (or ``"mean"``), set, reference (the other network),
        reference_seed (several untrained networks differ in it), kind, r, p, p_exact, n, reason.
    """
    rows = []
    columns = ["reference", "reference_seed", "kind", "r", "p", "p_exact", "n", "reason"]
    for (backbone, target), after in _finetuned(embedded).items():
        others = {c: v for c, v in embedded.items() if c.stage == "pretrained" and c.backbone != backbone}
        for (number, stages), (other, before) in product(_with_mean(after).items(), others.items()):
            keys = {"run": run, "backbone": backbone, "target": target, "seed": number, "set": set_name}
            keys |= {"reference": other.backbone, "reference_seed": other.seed}
            for kind, listed in zip(("intra", "inter"), items(before)):
                rows.append({**keys, "kind": kind, **vars(transfer_of_seeds(before, stages, listed, 0, 0))})
    return pd.DataFrame(rows).reindex(columns=[*KEYS, *columns])


def reference_ranges(references):
    """Median, smallest and largest score over seeds and untrained networks, for every reference.

    Parameters
    ----------
    references : pandas.DataFrame
        From :func:`reference_scores`.

    Returns
    -------
    pandas.DataFrame
        Columns set, backbone, reference, kind, median, min, max.
    """
    scores = references.groupby(["set", "backbone", "reference", "kind"], sort=False)["r"]
    return scores.agg(["median", "min", "max"]).reset_index()


def item_contributions(embedded, set_name, run):
    """Transfer scores without each item in turn: which class or pair carries a score, which lowers it.

    Parameters
    ----------
    embedded : mapping
        As in :func:`tabulate`.
    set_name, run : str
        Name of the analysis set and of the run.

    Returns
    -------
    pandas.DataFrame
        Columns run, backbone, target, seed (or ``"mean"``), set, kind, r (of all items), item, r_without,
        contribution (r − r_without: above 0 where the item raises the score).
    """
    parts, columns = [], ["kind", "r", "item", "r_without", "contribution"]
    for (backbone, target), after in _finetuned(embedded).items():
        before = _pretrained(embedded, backbone)
        for number, stages in _with_mean(after).items():
            keys = {"run": run, "backbone": backbone, "target": target, "seed": number, "set": set_name}
            for kind, listed in zip(("intra", "inter"), items(before)):
                x, y = item_values(before, stages, listed)
                rows = leave_one_out(x, y)
                parts.append(rows.assign(**keys, kind=kind, r=bias_transfer_score(x, y).r))
    found = [part for part in parts if len(part)]
    return pd.concat(found or [pd.DataFrame()], ignore_index=True).reindex(columns=[*KEYS, *columns])


def decisive_items(contributions):
    """Say for every score which item raises it most, and what is left without that one.

    Parameters
    ----------
    contributions : pandas.DataFrame
        From :func:`item_contributions`.

    Returns
    -------
    pandas.DataFrame
        Columns run, backbone, target, seed, set, kind, r, item, r_without, lowest and highest (the range of
        r_without over all items); a score without a finite contribution has no row.
    """
    keys = [*KEYS, "kind"]
    known = contributions.dropna(subset="contribution").reset_index(drop=True)
    groups = known.groupby(keys, sort=False)
    top = known.loc[groups["contribution"].idxmax()]
    ends = groups["r_without"].agg(lowest="min", highest="max").reset_index()
    return top[[*keys, "r", "item", "r_without"]].merge(ends, on=keys)


def _with_mean(after):
    """Seed → embeddings to average over: each seed's own and, of two or more, all of them as ``"mean"``."""
    networks = {number: [vectors] for number, vectors in after.items()}
    return networks | ({"mean": list(after.values())} if len(after) > 1 else {})


def _finetuned(embedded):
    """(backbone, target) → seed → embeddings."""
    found = {}
    for condition, vectors in embedded.items():
        if condition.stage == "finetuned":
            found.setdefault((condition.backbone, condition.target), {})[condition.seed] = vectors
    return found


def _pretrained(embedded, backbone):
    for condition, vectors in embedded.items():
        if condition.stage == "pretrained" and condition.backbone == backbone:
            return vectors
    raise ValueError(
        f"a transfer score needs the pretrained {backbone!r}; embed it too (parameter `backbones`)."
    )
