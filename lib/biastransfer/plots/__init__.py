"""Tidy frame in, Figure out: every chart and contact sheet of the book; nothing is computed here."""

from .attribution import faithfulness_curves, map_ranks, map_scores, remaining_signal, sanity, stability
from .changes import association_changes
from .charts import associations, finetuning_curves, similarities, transfer_scores
from .contact_sheets import contact_sheet, set_sizes
from .error_rates import error_rates
from .growth import growth
from .heat_maps import WORDS, heat_maps, removals
from .layers import transfer_by_layer
from .overview import similarity_overview
from .pixels import association_gallery, region_shares, removal_effects
from .planted import alarm_rates, constructions, dose_response
from .printed import items_for_power, printed_associations, printed_p_against_z, printed_scores
from .style import set_style
from .verdicts import verdicts

__all__ = [
    "WORDS",
    "alarm_rates",
    "association_changes",
    "association_gallery",
    "associations",
    "constructions",
    "contact_sheet",
    "dose_response",
    "error_rates",
    "faithfulness_curves",
    "finetuning_curves",
    "growth",
    "heat_maps",
    "items_for_power",
    "map_ranks",
    "map_scores",
    "printed_associations",
    "printed_p_against_z",
    "printed_scores",
    "region_shares",
    "remaining_signal",
    "removal_effects",
    "removals",
    "sanity",
    "set_sizes",
    "set_style",
    "similarities",
    "similarity_overview",
    "stability",
    "transfer_by_layer",
    "transfer_scores",
    "verdicts",
]
