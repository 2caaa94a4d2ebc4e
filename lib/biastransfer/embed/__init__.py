"""Embeddings: pictures and a backbone in, one vector a picture out; sets under several networks."""

from biastransfer.embed.conditions import UNTRAINED, Condition, Embedded, by_class, conditions, embed_classes
from biastransfer.embed.own import read_npz
from biastransfer.embed.pictures import Embeddings, embed

__all__ = [
    "UNTRAINED",
    "Condition",
    "Embedded",
    "Embeddings",
    "by_class",
    "conditions",
    "embed",
    "embed_classes",
    "read_npz",
]
