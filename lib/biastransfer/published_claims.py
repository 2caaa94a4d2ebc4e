"""What the gender paper's text says, held against what its own tables carry."""

import itertools

import numpy as np
import pandas as pd
from scipy import stats as scipy_stats

from biastransfer.published import SAMPLED_FLOOR, association_tests, load, transfer_scores
from biastransfer.stats import holm
from biastransfer.stats.ranks import spearman_null

SELF_SUPERVISED = ("SimCLR ResNet50", "MoCo ResNet50")


def pairs_apart(correlation=0.0, level=0.95):
    """Count the pairs of models whose printed transfer scores can be told apart.

    Parameters
    ----------
    correlation : float
        Correlation assumed between the two scores' errors, in [0, 1). All models share their items, so the
        true one lies above 0; the printed r do not identify it.
    level : float
        One minus the level of each pair's two-sided test, before and after Holm's correction over 15 pairs.

    Returns
    -------
    pandas.DataFrame
        A row a table and kind: `pairs`, `apart` (uncorrected), `apart_holm`, `largest_z`.

    Raises
    ------
    ValueError
        If `correlation` is outside [0, 1).
    """
    if not 0 <= correlation < 1:
        raise ValueError(f"correlation must lie in [0, 1); got {correlation}. 0 is the cautious reading.")
    rows = []
    for (table, target, kind), part in transfer_scores().groupby(["table", "target", "kind"], sort=False):
        z = np.arctanh(part["r_attainable"].to_numpy())
        error = np.sqrt((1 + part["r_attainable"].to_numpy() ** 2 / 2) / (part["n_items"].to_numpy() - 3))
        gaps = [
            abs(z[i] - z[j]) / np.sqrt(error[i] ** 2 + error[j] ** 2 - 2 * correlation * error[i] * error[j])
            for i, j in itertools.combinations(range(len(z)), 2)
        ]
        p = 2 * scipy_stats.norm.sf(gaps)
        alpha = 1 - level
        rows.append(
            (table, target, kind, len(p), int((p < alpha).sum()), int((holm(p) < alpha).sum()), max(gaps))
        )
    return pd.DataFrame(
        rows, columns=["table", "target", "kind", "pairs", "apart", "apart_holm", "largest_z"]
    )


def claims():
    """Hold sentences of the paper against its own tables.

    Returns
    -------
    pandas.DataFrame
        Columns `where` (section), `claim` (in our words), `tables_say` (computed from the printed tables) and
        `carried`: yes, no, or in part.
    """
    tests = association_tests()
    rows = [_no_effect(tests), _surfboard(), _sampled_floor(tests), _figure_3(), _one_p(), _size_claim()]
    return pd.DataFrame(rows, columns=["where", "claim", "tables_say", "carried"])


def _no_effect(tests):
    ours = tests[tests["model"].isin(SELF_SUPERVISED)]
    raw, kept = int((ours["p"] < 0.05).sum()), int((ours["holm"] < 0.05).sum())
    return (
        "§12",
        "SimCLR and MoCo show no statistically significant effect for any pair of concepts",
        f"Table 9: {raw} of their {len(ours)} tests have a printed p < .05, "
        f"{kept} after Holm over all {len(tests)}",
        "no" if kept else "in part",
    )


def _surfboard():
    classes = set(load("table6")["class"])
    tested = sorted({*load("table9")["concept_a"], *load("table9")["concept_b"]} - classes)
    return (
        "Tables 2, 9",
        "Association tests on the Open Images set use a class Surfboard",
        f"Table 6 has no class {', '.join(tested)}; its Sports set stands in",
        "no" if tested else "yes",
    )


def _sampled_floor(tests):
    below = int((tests["p"] < SAMPLED_FLOOR).sum())
    return (
        "Tables 2, 9",
        "p = 10⁻⁵ for the strongest associations",
        f"{below} printed p lie below 10⁻⁴, the least that 10,000 random partitions can give",
        "no" if below else "yes",
    )


def _figure_3():
    printed = load("text").set_index("id").loc["T14", "value"]
    row = load("table3").query("model == 'BiT-M-R50x1' and kind == 'inter'").iloc[0]
    values, _ = spearman_null(int(row["n_items"]))
    near = np.sort(values[np.argsort(np.abs(values - printed))[:2]])
    return (
        "Figure 3",
        f"The inter-class score of BiT-M-R50x1 on COCO is {printed}",
        f"Table 3 prints {row['r_printed']}; with {row['n_items']} items r can be {near[0]:.3f} "
        f"or {near[1]:.3f}, nothing between",
        "no",
    )


def _one_p():
    wrong = transfer_scores().query("not agrees")
    row = wrong.iloc[0]
    return (
        "Tables 3, 4",
        "The p printed beside each score is that of its r",
        f"{24 - len(wrong)} of 24 follow from r and n; {row['model']} {row['kind']}-class on {row['target']} "
        f"(r {row['r']}) gives {row['p_t']:.2g} where {row['p_printed'].replace('10^-4', '10⁻⁴')} is printed",
        "in part",
    )


def _size_claim():
    scores = transfer_scores().pivot_table("r", ["model", "kind"], "target")
    lower = int((scores["Open Images"] < scores["COCO"]).sum())
    wide = transfer_scores().set_index(["model", "kind", "target"])
    apart = sum(
        wide.loc[(*key, "Open Images"), "high"] < wide.loc[(*key, "COCO"), "low"] for key in scores.index
    )
    return (
        "§8, 1",
        "Models keep their associations more strongly on COCO than on the larger Open Images",
        f"{lower} of {len(scores)} scores are lower on Open Images; in {apart} the 95 % intervals are apart. "
        "The two targets also differ in classes, items and pictures",
        "in part",
    )
