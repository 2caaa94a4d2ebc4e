"""The measures against peers in one run: ratios, so that they carry from machine to machine.

python benchmarks/measures.py
"""

import time
from collections import namedtuple

import numpy as np
import record

from biastransfer.association import association_test, pairs, tabulate
from biastransfer.association.sets import attribute, targets
from biastransfer.similarity import items, similarities
from biastransfer.stats import effect_of_scores, permutation_p, shared_max_t
from biastransfer.transfer import bias_transfer

Condition = namedtuple("Condition", "backbone stage target seed")
OBJECTS = ["car", "sports", "fashion", "mammal"]
COUNTS = [150, 150, 150, 22, 150, 150, 49, 150, 120, 32, 150, 52, 150, 150, 150, 150]  # Table 6
CLASSES = [
    "man",
    "woman",
    "random",
    "stop sign",
    *(f"{o}{a}" for o in OBJECTS for a in ("", "+man", "+woman")),
]


def median_seconds(call, repeats=3):
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return float(np.median(taken))


def reference_loop(scores, n, draws=10_000):
    """The usual loop: shuffle, sum, compare."""
    rng, hits, observed = np.random.default_rng(0), 0, scores[:n].sum()
    for _ in range(draws):
        hits += rng.permutation(scores)[:n].sum() >= observed
    return (1 + hits) / (1 + draws)


def report(name, ours, limit, peer=None, peer_name=""):
    against = f"{ours / peer:8.3f} of {peer_name} ({peer:.3f} s)" if peer else ""
    print(f"{name:58s} {ours:8.4f} s  {ours / limit:6.2f} of the allowed {limit} s  {against}")
    record.keep(f"{name}: time / {limit:g} s", ours / limit, "≤ 1")
    if peer:
        record.keep(f"{name}: time / {peer_name}", ours / peer)


def main():
    rng = np.random.default_rng(0)
    X, Y, A, B = (rng.normal(size=(150, 1280)) + 0.1 * rng.normal(size=1280) for _ in range(4))
    scores = rng.normal(size=300)
    inverted = median_seconds(lambda: permutation_p(scores, 150), 9)
    sampler = median_seconds(lambda: permutation_p(scores, 150, method="sampled", n_samples=10_000), 3)
    report("72 p-values of 150 + 150", 72 * inverted, 1.0, 72 * sampler, "the vectorised sampler at 10,000")
    loop = median_seconds(lambda: reference_loop(scores, 150), 1)
    print(f"{'':69s} {inverted / loop:8.3f} of the reference loop ({72 * loop:.3f} s)")
    record.keep("72 p-values of 150 + 150: time / the reference loop", inverted / loop)
    once = median_seconds(lambda: association_test(X, Y, A, B), 5)
    report("72 whole tests of 150 + 150: d, p and both intervals", 72 * once, 1.0)
    few = median_seconds(lambda: association_test(X[:20], Y[:20], A, B))
    report("one exact test of 20 + 20", few, 0.25)

    people = {c: rng.normal(size=(150, 1280)).astype(np.float32) + 0.1 for c in CLASSES}
    conditions = {Condition("net", "pretrained", "", k): people for k in range(12)}
    shared = median_seconds(lambda: tabulate(conditions, "set", "run"), 3)
    apart = median_seconds(lambda: [whole_tests(vectors) for vectors in conditions.values()], 3)
    report("a table of 72 tests, p corrected", shared, 1.0, apart, "72 whole tests")
    once = median_seconds(lambda: [measured_once(vectors) for vectors in conditions.values()], 3)
    again = median_seconds(lambda: [measured_again(vectors) for vectors in conditions.values()], 3)
    report("its cosines, an object's once a condition", once, 0.5, again, "once a pair")
    family = rng.normal(size=(72, 300))
    largest = median_seconds(lambda: shared_max_t(family, 150), 3)
    loop = median_seconds(lambda: shuffled_family(family, 150, 500), 1) * 20
    report("max-T of 72 tests, 10,000 permutations", largest, 1.0, loop, "shuffling the scores")

    vectors = {c: rng.normal(size=(n, 1280)).astype(np.float32) + 0.1 for c, n in zip(CLASSES, COUNTS)}
    _, inter = items(CLASSES)
    listed = [*CLASSES, *inter]
    exact = median_seconds(lambda: similarities(vectors, listed), 7)
    released = median_seconds(lambda: similarities(vectors, listed, method="released"), 1)
    report("16 intra- and 12 inter-class similarities", exact, 0.010, released, "the released sampler at 50")

    before, after = ({c: rng.normal(size=(15, 2048)) + 0.1 for c in CLASSES[:13]} for _ in range(2))
    chain = median_seconds(lambda: bias_transfer(before, after, items(CLASSES[:13])[1]), 1)
    naive = median_seconds(lambda: [copied_score(before, after, rng) for _ in range(20)], 1) * 500
    report("10,000 resamples of a transfer score, 2,048 dimensions", chain, 10.0, naive, "resampling vectors")
    record.write(__file__)


def whole_tests(vectors):
    """Each pair by itself: an object's cosines are taken again for every pair that it is in."""
    targets = [vectors[name] for name in ("man", "woman")]
    return [association_test(*targets, vectors[a], vectors[b]) for a, b in pairs(vectors)]


def measured_once(vectors):
    people = targets(vectors["man"], vectors["woman"])
    return [attribute(people, vectors[name]) for name in OBJECTS]


def measured_again(vectors):
    targets_of_pair = [targets(vectors["man"], vectors["woman"]) for _ in pairs(vectors)]
    return [
        attribute(people, vectors[name])
        for people, pair in zip(targets_of_pair, pairs(vectors))
        for name in pair
    ]


def shuffled_family(scores, n, draws):
    rng = np.random.default_rng(0)
    return [
        np.abs(effect_of_scores(scores[:, rng.permutation(scores.shape[1])], n)).max() for _ in range(draws)
    ]


def copied_score(before, after, rng):
    chosen = {c: rng.integers(0, len(z), len(z)) for c, z in before.items()}
    inter = items(before)[1]
    return [similarities({c: z[chosen[c]] for c, z in stage.items()}, inter) for stage in (before, after)]


if __name__ == "__main__":
    main()
