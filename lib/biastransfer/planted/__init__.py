"""Planted bias: finetune on scenes whose bias is known, and see which measure finds it."""

from biastransfer.planted.doses import MINUS, PLUS, men, realised
from biastransfer.planted.experiment import CONSTRUCTIONS, Experiment, Network, experiment
from biastransfer.planted.measures import MEASURES
from biastransfer.planted.tables import TABLES, constructions, tables
from biastransfer.planted.verdicts import numbers, shown, verdicts

__all__ = [
    "CONSTRUCTIONS",
    "MEASURES",
    "MINUS",
    "PLUS",
    "TABLES",
    "Experiment",
    "Network",
    "constructions",
    "experiment",
    "men",
    "numbers",
    "realised",
    "shown",
    "tables",
    "verdicts",
]
