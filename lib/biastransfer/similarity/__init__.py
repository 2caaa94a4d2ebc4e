"""Intra- and inter-class similarity: how close the pictures of one class, or of two, lie in an embedding."""

from biastransfer.similarity.cosine import inter_class, intra_class
from biastransfer.similarity.tables import items, similarities, tabulate

__all__ = ["inter_class", "intra_class", "items", "similarities", "tabulate"]
