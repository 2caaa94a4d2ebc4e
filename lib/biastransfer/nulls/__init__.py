"""What nothing looks like: untrained networks, colour and layout, shuffled labels, and what could be seen."""

from biastransfer.nulls.added import added_intervals
from biastransfer.nulls.detectable import detectable_effect, significant_correlation
from biastransfer.nulls.place import BASELINE, NULLS, UNTRAINED, collapse, place, without_learning
from biastransfer.nulls.shuffled import shuffled_effects
from biastransfer.nulls.tables import (
    TRANSFER_TABLES,
    association_numbers,
    association_table,
    similarity_differences,
    transfer_numbers,
    transfer_tables,
)

__all__ = [
    "BASELINE",
    "NULLS",
    "TRANSFER_TABLES",
    "UNTRAINED",
    "added_intervals",
    "association_numbers",
    "association_table",
    "collapse",
    "detectable_effect",
    "place",
    "shuffled_effects",
    "significant_correlation",
    "similarity_differences",
    "transfer_numbers",
    "transfer_tables",
    "without_learning",
]
