"""Fetching what runs read and pip does not bring: annotations, pictures, weights; resumed and checked."""

from .fetching import fetch, fetch_pictures
from .network import FetchError, Settings
from .outcomes import FetchReport, Outcome
from .sets import fetch_set, fetch_splits
from .sources import Pictures, Source, load_sources

__all__ = [
    "FetchError",
    "FetchReport",
    "Outcome",
    "Pictures",
    "Settings",
    "Source",
    "fetch",
    "fetch_pictures",
    "fetch_set",
    "fetch_splits",
    "load_sources",
]
