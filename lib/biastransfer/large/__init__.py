"""The measures on vectors that do not fit into memory: read in blocks from files, in one pass or two.

Similarities and associations need sums of unit rows and one number a picture, and no matrix of cosines.
What `similarity`, `transfer` and `association` give on arrays in memory is what these give, but for rounding.
"""

from biastransfer.large.blocks import vectors
from biastransfer.large.partitions import LargeAssociation, association_test
from biastransfer.large.sums import ClassSums, bias_transfer, class_sums, similarities

__all__ = [
    "ClassSums",
    "LargeAssociation",
    "association_test",
    "bias_transfer",
    "class_sums",
    "similarities",
    "vectors",
]
