"""The ledger: each number that the gender paper prints, what runs and recomputation give, and a verdict."""

from .claims import claims
from .measured import measured
from .models import models, same_model
from .printed import Tolerances, numbers
from .reanalysis import reanalysis
from .regenerated import regenerated
from .verdicts import VERDICTS, build, counts, hold, reasons

__all__ = [
    "VERDICTS",
    "Tolerances",
    "build",
    "claims",
    "counts",
    "hold",
    "measured",
    "models",
    "numbers",
    "reanalysis",
    "reasons",
    "regenerated",
    "same_model",
]
