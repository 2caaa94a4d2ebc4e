"""Simulated error rates of the tests and intervals: what the slow tests hold, at full size the book's table.

python tests/simulations.py    writes coverage.csv, type1.csv and error-rates.svg to data/results/checks
"""

from collections import namedtuple

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from biastransfer.association import association_test, change_of_effect, effect_size
from biastransfer.similarity import inter_class, intra_class, items, tabulate
from biastransfer.stats import shared_max_t
from biastransfer.transfer import bias_transfer, bias_transfer_score

Condition = namedtuple("Condition", "backbone stage target seed")
SIZES = (6, 8, 12, 20, 40)  # pictures a set
CLASSES = ["man", "woman", "random", "stop sign"]
CLASSES += [f"{o}{a}" for o in ("car", "refrigerator", "surfboard") for a in ("", "+man", "+woman")]
SHOWN = [f"association, {p}" for p in ("exact p", "fourier p", "sampled p", "max-T over 12 tests")]
SHOWN += ["transfer score, exact p"]  # in the figure; all are in the table
MANY = 20_000  # pictures a set that stand for the population


def row(measure, n, quantity, hits, seed):
    """Share of trials that hit, with its 95 % Monte Carlo interval (Wilson)."""
    bounds = binomtest(int(np.sum(hits)), len(hits)).proportion_ci(method="wilson")
    rate = {"value": np.mean(hits), "low": bounds.low, "high": bounds.high}
    return {"measure": measure, "n": n, "quantity": quantity, **rate, "trials": len(hits), "seed": seed}


def four_sets(rng, n, centres):
    return [centre + rng.normal(size=(n, 10)) for centre in centres]


def association_p(n, method, trials, seed):
    """Two-sided p of exchangeable X and Y; A and B lie apart. An array, one value a trial."""
    rng = np.random.default_rng(seed)
    centres = [np.zeros(10)] * 2 + list(rng.normal(size=(2, 10)))
    options = {"alternative": "two-sided", "method": method, "n_samples": 999}
    return np.array([association_test(*four_sets(rng, n, centres), **options).p for _ in range(trials)])


def smallest_max_t(n, trials, seed):
    """Smallest max-T p of a family without effects: six pairs of four objects, before and after."""
    rng, smallest = np.random.default_rng(seed), []
    first, second = np.triu_indices(4, 1)
    for _ in range(trials):
        before = rng.normal(size=(4, 2 * n))
        after = 0.7 * before + 0.7 * rng.normal(size=(4, 2 * n))
        scores = np.concatenate([stage[first] - stage[second] for stage in (before, after)])
        smallest.append(shared_max_t(scores, n, draws=999, seed=int(rng.integers(2**31))).min())
    return np.array(smallest)


def transfer_p(n, trials, seed):
    """Exact p, and p of the t approximation, of scores over n items with nothing in common."""
    rng = np.random.default_rng(seed)
    scores = [
        bias_transfer_score(*(dict(enumerate(values)) for values in rng.normal(size=(2, n))))
        for _ in range(trials)
    ]
    return np.array([s.p_exact for s in scores]), np.array([s.p for s in scores])


def network(rng):
    """Centres of the classes in one network: all about one direction, `random` about none."""
    centres = {c: rng.normal(size=16) * rng.uniform(0.2, 0.9) + 0.5 for c in CLASSES}
    return centres | {"random": np.zeros(16)}


def unrelated_networks_p(trials, seed):
    """Exact and within-group p of inter-class scores of two networks that share only a low `random`."""
    rng, listed = np.random.default_rng(seed), items(CLASSES)[1]
    scores = []
    for _ in range(trials):
        stages = [
            {c: centre + rng.normal(size=(20, 16)) for c, centre in network(rng).items()} for _ in range(2)
        ]
        scores.append(bias_transfer(*stages, listed, resamples=0))
    return np.array([s.p_exact for s in scores]), np.array([s.p_within for s in scores])


def effect_covered(n, trials, seed):
    """Whether the interval of d holds the d of the population, all four sets drawn anew in each trial."""
    rng = np.random.default_rng(seed)
    x, a, b = rng.normal(size=(3, 10))
    centres = [0.3 * x, -0.3 * x, 0.5 * x + 0.5 * a, 0.5 * b]
    truth = effect_size(*four_sets(rng, MANY, centres))
    found = (
        association_test(*four_sets(rng, n, centres), method="sampled", n_samples=1) for _ in range(trials)
    )
    return np.array([f.low <= truth <= f.high for f in found])


def two_stages(rng, n, before, after):
    """Four sets of the same pictures in two networks: what makes a picture itself is partly the same."""
    own = [rng.normal(size=(n, 10)) for _ in before]
    other = [0.7 * (z + rng.normal(size=z.shape)) for z in own]
    return [c + z for c, z in zip(before, own)], [c + z for c, z in zip(after, other)]


def change_covered(n, trials, seed):
    """Whether the interval of a change of d holds that of the population, all four sets drawn anew."""
    rng = np.random.default_rng(seed)
    x, a, b = rng.normal(size=(3, 10))
    before = [0.3 * x, -0.3 * x, 0.5 * x + 0.5 * a, 0.5 * b]
    after = [0.6 * x, -0.1 * x, 0.5 * x + 0.8 * a, 0.5 * b]
    many = [effect_size(*sets) for sets in two_stages(rng, MANY, before, after)]
    found = (change_of_effect(*two_stages(rng, n, before, after)) for _ in range(trials))
    return np.array([low <= many[1] - many[0] <= high for _, low, high, _ in found])


def no_change_p(n, trials, seed):
    """p of the change of d between two networks in both of which X and Y do not differ."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 10))
    before, after = ([np.zeros(10), np.zeros(10), share * a, b] for share in (1.0, 0.5))
    return np.array([change_of_effect(*two_stages(rng, n, before, after))[3] for _ in range(trials)])


def similarities_covered(n, trials, seed):
    """Whether the intervals of an intra- and an inter-class similarity hold those of the population."""
    rng = np.random.default_rng(seed)
    centres = dict(zip(["car", "car+man"], np.full(8, 0.5) + 0.3 * rng.normal(size=(2, 8))))

    def draw(size):
        return {name: centre + rng.normal(size=(size, 8)) for name, centre in centres.items()}

    many = draw(MANY)
    truth = [intra_class(many["car"]), inter_class(many["car+man"], many["car"])]
    hits = []
    for _ in range(trials):
        table = tabulate({Condition("net", "pretrained", "", 0): draw(n)}, "set", "run")
        hits.append((table["low"] <= truth) & (truth <= table["high"]))
    return np.array(hits).T


def transfer_covered(n, trials, seed):
    """Whether the interval of an inter-class score holds that of the population; new networks each trial."""
    rng, listed, hits = np.random.default_rng(seed), items(CLASSES)[1], []
    for _ in range(trials):
        mean = {c: rng.normal(size=16) * rng.uniform(0.2, 0.9) for c in CLASSES}
        moved = {c: m + rng.choice([0.2, 0.6]) * rng.normal(size=16) for c, m in mean.items()}

        def draw(size, mean=mean, moved=moved):
            noise = {c: rng.normal(size=(size, 16)) for c in CLASSES}
            own = {c: 0.7 * (noise[c] + rng.normal(size=(size, 16))) for c in CLASSES}
            return {c: mean[c] + noise[c] for c in CLASSES}, {c: moved[c] + own[c] for c in CLASSES}

        truth = bias_transfer(*draw(3000), listed, resamples=0).r
        score = bias_transfer(*draw(n), listed, resamples=500)
        hits.append(score.low - 1e-9 <= truth <= score.high + 1e-9)
    return np.array(hits)


def type_one(trials=2000, seed=0):
    """Shares of trials without any effect that are significant at .05 and .01, as a tidy table."""
    found = []
    for method, sizes in {"exact": (6, 8, 12, 20), "fourier": (8, 12, 20, 40), "sampled": SIZES}.items():
        for n in sizes:
            few = trials // 5 if method == "exact" and n == 20 else trials
            found.append((f"association, {method} p", n, association_p(n, method, few, seed)))
    for n in (8, 20):
        found.append(("association, max-T over 12 tests", n, smallest_max_t(n, trials, seed)))
    for n in SIZES:
        found.append(("change of d, p", n, no_change_p(n, trials, seed)))
    for n in (7, 8, 9, 12):  # items
        exact, approximate = transfer_p(n, trials // 5 if n == 12 else trials, seed)
        found.append(("transfer score, exact p", n, exact))
        found.append(("transfer score, p of t", n, approximate))
    exact, within = unrelated_networks_p(trials, seed)
    found.append(("transfer score, exact p, random low in both", 9, exact))
    found.append(("transfer score, within-group p, random low in both", 9, within))
    return pd.DataFrame(
        row(measure, n, f"p ≤ {level}", p <= level + 1e-12, seed)
        for measure, n, p in found
        for level in (0.05, 0.01)
    )


def coverage(trials=2000, seed=0):
    """Shares of trials whose 95 % interval holds the value of the population, as a tidy table."""
    found = []
    for n in SIZES:
        intra, inter = similarities_covered(n, trials, seed)
        found += [("effect size d", n, effect_covered(n, trials, seed))]
        found += [("change of d", n, change_covered(n, trials, seed))]
        found += [("intra-class similarity", n, intra), ("inter-class similarity", n, inter)]
        found += [("transfer score", n, transfer_covered(n, trials // 4, seed))]
    table = pd.DataFrame(row(measure, n, "95 % interval", hits, seed) for measure, n, hits in found)
    return table.sort_values("measure", kind="stable", ignore_index=True)


def draw(folder):
    """Draw the book's figure from the two CSVs in `folder`."""
    import matplotlib as mpl

    from biastransfer import paths, plots

    plots.set_style()
    mpl.rcParams["svg.hashsalt"] = "error rates"  # the same numbers give the same file
    rates, errors = (pd.read_csv(folder / f"{name}.csv") for name in ("coverage", "type1"))
    shown = errors["measure"].isin(SHOWN) & (errors["quantity"] == "p ≤ 0.05")
    figure = plots.error_rates(rates, errors[shown])
    with paths.replacing(folder / "error-rates.svg") as partial:
        figure.savefig(partial, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    from biastransfer import paths, report

    for name, table in {"coverage": coverage(), "type1": type_one()}.items():
        numbers = {column: table[column].round(4) for column in ("value", "low", "high")}
        paths.write_csv(table.assign(**numbers), paths.results("checks", f"{name}.csv"))
    draw(paths.results("checks"))
    print(report.run_line("checks", "simulations", seed=0))
