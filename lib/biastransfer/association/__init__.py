"""Image embedding association test (iEAT): do two sets of pictures differ in what they lie closer to?"""

from biastransfer.association.changes import change_numbers, change_of_effect, changes
from biastransfer.association.effect import Association, association_test, effect_size
from biastransfer.association.tables import pairs, tabulate

__all__ = [
    "Association",
    "association_test",
    "change_numbers",
    "change_of_effect",
    "changes",
    "effect_size",
    "pairs",
    "tabulate",
]
