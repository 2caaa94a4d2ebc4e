"""Bias transfer score: rank correlation of a network's similarities before and after finetuning."""

from biastransfer.transfer.pictures import bias_transfer
from biastransfer.transfer.score import ItemError, TransferScore, bias_transfer_score, leave_one_out
from biastransfer.transfer.tables import (
    by_layer,
    decisive_items,
    item_contributions,
    reference_ranges,
    reference_scores,
    tabulate,
)

__all__ = [
    "ItemError",
    "TransferScore",
    "bias_transfer",
    "bias_transfer_score",
    "by_layer",
    "decisive_items",
    "item_contributions",
    "leave_one_out",
    "reference_ranges",
    "reference_scores",
    "tabulate",
]
