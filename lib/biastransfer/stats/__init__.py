"""Statistics that know nothing of networks: families, rank correlation, intervals, permutation nulls."""

from biastransfer.stats.families import benjamini_hochberg, benjamini_yekutieli, holm, max_t, shared_max_t
from biastransfer.stats.intervals import (
    effect_intervals,
    effect_of_scores,
    effects_without,
    jackknife_p,
    jackknife_t,
)
from biastransfer.stats.permutation import permutation_p
from biastransfer.stats.ranks import (
    spearman,
    spearman_permutation_p,
    spearman_t_p,
    within_group_permutation_p,
)
from biastransfer.stats.signs import sign_flip_p

__all__ = [
    "benjamini_hochberg",
    "benjamini_yekutieli",
    "effect_intervals",
    "effect_of_scores",
    "effects_without",
    "holm",
    "jackknife_p",
    "jackknife_t",
    "max_t",
    "permutation_p",
    "shared_max_t",
    "sign_flip_p",
    "spearman",
    "spearman_permutation_p",
    "spearman_t_p",
    "within_group_permutation_p",
]
