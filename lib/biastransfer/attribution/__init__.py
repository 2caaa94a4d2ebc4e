"""Attribution: heat maps, what they remove pixels with, and how far they can be believed."""

__all__ = ["evaluate"]


def __getattr__(name: str):
    """Return ``name``, `evaluation.evaluate`: imported when asked for, since it imports every method."""
    if name != "evaluate":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from biastransfer.attribution.evaluation import evaluate

    return evaluate
