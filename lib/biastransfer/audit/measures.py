"""All numbers of an audit as tidy tables, under the names that measures rely on (see `roles.Roles`)."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from biastransfer import association, nulls, similarity, transfer
from biastransfer.audit.networks import AFTER, BEFORE, STAGES, Vectors
from biastransfer.audit.roles import REFERENCE, Roles
from biastransfer.nulls import UNTRAINED, significant_correlation
from biastransfer.stats import benjamini_hochberg, benjamini_yekutieli, holm, spearman
from biastransfer.transfer.pictures import item_values

SET, RUN = "audited", "audit"  # every table has these columns; an audit has one set and one run
TRANSFER = ["r", "low", "high", "p_exact", "ceiling", "cross_half", "n", "pictures", "reason"]


@dataclass(frozen=True)
class Measures:
    """The tables of an audit; one without rows where the roles or the networks do not allow it.

    Attributes
    ----------
    similarities : DataFrame
        stage ("before", "after"), kind, item, value, low, high, n, reason, and the columns of `nulls.place`.
    transfer : DataFrame
        kind, those of `TRANSFER`, p_holm, r_significant, and n_untrained and untrained_low, untrained_median,
        untrained_high: scores of untrained networks in the place of the one before.
    associations : DataFrame
        stage, and the columns of `nulls.association_table`; Holm over all tests of both stages.
    changes : DataFrame
        The columns of `association.changes`; empty without a network after.
    """

    similarities: pd.DataFrame
    transfer: pd.DataFrame
    associations: pd.DataFrame
    changes: pd.DataFrame


def measure(vectors: Vectors, roles: Roles, *, resamples: int = 2000, seed: int = 0) -> Measures:
    """Compute every number of an audit.

    Parameters
    ----------
    vectors : Vectors
    roles : Roles
    resamples : int
        Draws of the pictures for intervals.
    seed : int
        Of all draws.

    Returns
    -------
    Measures
    """
    stages = [stage for stage, condition in STAGES.items() if condition in vectors.embedded]
    return Measures(
        _similarities(vectors, stages),
        _transfer(vectors, resamples, seed) if "after" in stages else pd.DataFrame(),
        *_associations(vectors, roles, stages, resamples, seed),
    )


def pairs_of(roles: Roles) -> list[tuple[str, str]]:
    """Return the pairs of objects (A, B) that ``roles`` let be tested; none without two attribute classes."""
    if not {"X", "Y"} <= set(roles.shown):
        return []
    return list(combinations([roles.names[one] for one in roles.objects], 2))


def _similarities(vectors: Vectors, stages: list[str]) -> pd.DataFrame:
    tables = []
    for stage in stages:
        table = similarity.tabulate(
            vectors.family(stage), SET, RUN, attributes=("X", "Y"), reference=REFERENCE
        )
        table = nulls.place(table, ["item"], "value")
        tables.append(table[table["backbone"] == STAGES[stage].backbone].assign(stage=stage))
    return pd.concat(tables, ignore_index=True)


def _transfer(vectors: Vectors, resamples: int, seed: int) -> pd.DataFrame:
    before, after = vectors.embedded[BEFORE], vectors.embedded[AFTER]
    others = [found for c, found in vectors.family("before").items() if c.backbone == UNTRAINED]
    rows = []
    for kind, items in zip(("intra", "inter"), similarity.items(before, ("X", "Y"), REFERENCE)):
        score = transfer.bias_transfer(before, after, items, resamples=resamples, seed=seed)
        null = np.array([_order_kept(other, after, items) for other in others])
        null = null[np.isfinite(null)]
        low, median, high = np.quantile(null, [0, 0.5, 1]) if len(null) else [np.nan] * 3
        rows.append(
            {
                "kind": kind,
                **{name: getattr(score, name) for name in TRANSFER},
                "r_significant": significant_correlation(score.n),
                "n_untrained": len(null),
                **{"untrained_low": low, "untrained_median": median, "untrained_high": high},
            }
        )
    table = pd.DataFrame(rows)
    return table.assign(p_holm=holm(table["p_exact"]))


def _order_kept(before: dict, after: dict, items: list[str]) -> float:
    """Return the bias transfer score alone: its p-values cost more than all else, and a null needs none."""
    x, y = (list(found.values()) for found in item_values(before, [after], items))
    whole = len(x) > 2 and np.isfinite([*x, *y]).all() and np.ptp(x) > 0 and np.ptp(y) > 0
    return float(spearman(x, y)) if whole else float("nan")


def _associations(
    vectors: Vectors, roles: Roles, stages: list[str], resamples: int, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    pairs = pairs_of(roles)
    if not pairs:
        return pd.DataFrame(), pd.DataFrame()
    options = {"X": "X", "Y": "Y", "pairs": pairs, "resamples": min(resamples, 2000), "seed": seed}
    tables = []
    for stage in stages:
        table = nulls.association_table(vectors.family(stage), SET, RUN, **options)
        tables.append(table[table["backbone"] == STAGES[stage].backbone].assign(stage=stage))
    found = pd.concat(tables, ignore_index=True)
    adjusted = {"p_holm": holm, "p_bh": benjamini_hochberg, "p_by": benjamini_yekutieli}
    found = found.assign(**{name: adjust(found["p"]) for name, adjust in adjusted.items()})
    found = found.drop(columns="p_maxt").assign(n_tests=int(found["p"].notna().sum()))
    if "after" not in stages:
        return found, pd.DataFrame()
    tests = found.assign(stage=found["stage"].map({name: one.stage for name, one in STAGES.items()}))
    return found, association.changes({one: vectors.embedded[one] for one in (BEFORE, AFTER)}, tests)
