"""How well a multi-label model does: macro average precision (mAP), micro-F1, chance and the loss."""

import numpy as np


def _checked(labels, scores) -> tuple[np.ndarray, np.ndarray]:
    labels, scores = np.asarray(labels, dtype=np.float64), np.asarray(scores)
    if labels.ndim != 2 or labels.shape != scores.shape:
        raise ValueError(
            "labels and scores must both be (pictures, classes) and of one shape; "
            f"got {labels.shape} and {scores.shape}. Score every picture for every class."
        )
    if not labels.size:
        raise ValueError(
            f"at least one picture and one class are needed; got {labels.shape}. Check the split."
        )
    known = ~np.isnan(labels)
    if not np.isin(labels[known], (0.0, 1.0)).all():
        raise ValueError("labels must be 0, 1 or NaN (unknown); got other values. Binarise the labels first.")
    if np.isnan(scores).any():
        raise ValueError(
            f"scores must be numbers; got {int(np.isnan(scores).sum())} NaN. Did the model diverge?"
        )
    return labels, scores


def average_precision(labels, scores) -> np.ndarray:
    """Return the average precision of every class, as scikit-learn defines it.

    Parameters
    ----------
    labels : array_like, shape (N, K)
        1 present, 0 absent, NaN unknown (left out of its class, whatever its score).
    scores : array_like, shape (N, K)
        Any increasing function of the probability: logits and sigmoids rank alike.

    Returns
    -------
    ndarray, shape (K,), float64
        Area under the step-wise precision-recall curve, 0..1, higher is better; NaN for a class without a
        known positive.

    Raises
    ------
    ValueError
        Shapes that differ, no picture or class, labels other than 0, 1 and NaN, NaN scores.

    Notes
    -----
    AP = Σ (Rₙ − Rₙ₋₁) Pₙ over the *distinct* scores: pictures with one score enter together, so their
    order never matters. No interpolation (the Pascal VOC and COCO detection variants interpolate). A class
    without positives is NaN here and 0 in scikit-learn, where it drags the mean down.

    Examples
    --------
    >>> average_precision([[1], [0], [1], [0]], [[0.9], [0.8], [0.8], [0.1]])
    array([0.83333333])
    """
    labels, scores = _checked(labels, scores)
    labels, scores = np.ascontiguousarray(labels.T), np.ascontiguousarray(scores.T)
    order = np.argsort(-scores, axis=1)
    ranked = np.take_along_axis(scores, order, axis=1)
    truth = np.take_along_axis(labels, order, axis=1)
    hits = truth == 1
    seen = np.cumsum(~np.isnan(truth), axis=1)
    precision = np.cumsum(hits, axis=1) / np.maximum(seen, 1)
    tied = ranked[:, 1:] == ranked[:, :-1]
    if tied.any():  # everyone in a tie gets the precision at the tie's last place
        last = np.where(np.pad(~tied, ((0, 0), (0, 1)), constant_values=True), np.arange(ranked.shape[1]), -1)
        last[last < 0] = ranked.shape[1]
        last = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
        precision = np.take_along_axis(precision, last, axis=1)
    positives = hits.sum(axis=1)
    total = np.einsum("kn,kn->k", precision, hits)
    return np.divide(total, positives, out=np.full(len(total), np.nan), where=positives > 0)


def mean_average_precision(labels, scores) -> tuple[float, np.ndarray]:
    """Return the mean of the classes' average precisions (mAP) and the classes' own values.

    Parameters
    ----------
    labels, scores : array_like, shape (N, K)
        As for `average_precision`.

    Returns
    -------
    macro : float
        Mean over the classes that have a known positive, 0..1, higher is better; NaN when none has.
    per_class : ndarray, shape (K,)
        NaN for a class without a known positive: stated, not averaged in as 0.

    Notes
    -----
    The measure of Table 7 (COCO); Table 8 (Open Images) uses `micro_f1`.

    Examples
    --------
    >>> macro, per_class = mean_average_precision([[1, 0], [0, 0]], [[2.0, 1.0], [1.0, 2.0]])
    >>> macro, per_class.tolist()
    (1.0, [1.0, nan])
    """
    per_class = average_precision(labels, scores)
    known = per_class[~np.isnan(per_class)]
    return (float(known.mean()) if len(known) else float("nan")), per_class


def micro_f1(labels, scores, threshold: float = 0.5) -> float:
    """Return the F1 score of all (picture, class) decisions pooled.

    Parameters
    ----------
    labels : array_like, shape (N, K)
        1 present, 0 absent, NaN unknown (left out).
    scores : array_like, shape (N, K)
        Probabilities 0..1 (sigmoids, not logits).
    threshold : float
        A score of at least this says "present".

    Returns
    -------
    float
        2 TP / (2 TP + FP + FN), 0..1, higher is better; NaN when nothing is present and nothing predicted.

    Raises
    ------
    ValueError
        As `average_precision`; scores outside 0..1.

    Examples
    --------
    >>> micro_f1([[1, 0], [1, 1]], [[0.9, 0.6], [0.2, 0.5]])
    0.6666666666666666
    """
    labels, scores = _checked(labels, scores)
    if scores.min() < 0 or scores.max() > 1:
        raise ValueError(
            "micro-F1 needs probabilities in 0..1; "
            f"got {scores.min():.3g}..{scores.max():.3g}. Take the sigmoid of the logits first."
        )
    predicted = scores >= threshold
    hits = int((predicted & (labels == 1)).sum())
    errors = int((predicted & (labels == 0)).sum() + (~predicted & (labels == 1)).sum())
    return 2 * hits / (2 * hits + errors) if hits + errors else float("nan")


def chance_map(labels) -> float:
    """Return the mAP that scores without information tend to: the mean share of positives over the classes.

    Parameters
    ----------
    labels : array_like, shape (N, K)
        1 present, 0 absent, NaN unknown.

    Returns
    -------
    float
        0..1; classes without a known positive are left out, as in the mAP; NaN when none has one.

    Notes
    -----
    The exact value when all scores of a class are equal. A random *order* of a few pictures lies a little
    above it on average: 200 pictures with 20 positives give about .12 instead of .10.

    Examples
    --------
    >>> chance_map([[1, 0], [0, 0], [0, 0], [1, 0]])
    0.5
    """
    labels = np.asarray(labels, dtype=np.float64)
    positives, known = (labels == 1).sum(axis=0), (~np.isnan(labels)).sum(axis=0)
    share = positives[positives > 0] / known[positives > 0]
    return float(share.mean()) if len(share) else float("nan")


def chance_micro_f1(labels) -> float:
    """Return the best micro-F1 that needs no look at the picture: the same classes are said of every one.

    Parameters
    ----------
    labels : array_like, shape (N, K)
        1 present, 0 absent, NaN unknown.

    Returns
    -------
    float
        0..1; NaN when no label is 1.

    Notes
    -----
    For a set of classes F1 is 2 Σ positives in it / (Σ known in it + all positives), largest for the classes
    whose share of positives exceeds half that F1: some first ones in the order of the shares. The shares are
    those of ``labels`` themselves, so no such rule found on other pictures does better here.

    Examples
    --------
    >>> chance_micro_f1([[1, 0], [1, 0], [1, 1], [0, 0]])  # "the first class" of all: 3 hits, 1 miss, 1 more
    0.75
    """
    labels = np.asarray(labels, dtype=np.float64)
    positives, known = (labels == 1).sum(axis=0), (~np.isnan(labels)).sum(axis=0)
    if not positives.any():
        return float("nan")
    order = np.argsort(-positives / np.maximum(known, 1), kind="stable")
    hits, said = np.cumsum(positives[order]), np.cumsum(known[order])
    return float((2 * hits / (said + positives.sum())).max())


def binary_cross_entropy(labels, logits) -> float:
    """Return the mean loss over the known labels, in nats: what the training minimises.

    Parameters
    ----------
    labels, logits : array_like, shape (N, K)
        Labels as above; raw scores before the sigmoid.

    Returns
    -------
    float
        ≥ 0, lower is better; log 2 = .693 for a model that always says .5; NaN when no label is known.

    Examples
    --------
    >>> round(binary_cross_entropy([[1, float("nan")]], [[0.0, 9.0]]), 4)
    0.6931
    """
    labels, logits = np.asarray(labels, dtype=np.float64), np.asarray(logits, dtype=np.float64)
    known = ~np.isnan(labels)
    if not known.any():
        return float("nan")
    losses = np.logaddexp(0, logits[known]) - labels[known] * logits[known]
    return float(losses.mean())


def sigmoid(logits) -> np.ndarray:
    """Return the probabilities of logits, without overflow for large ones."""
    logits = np.asarray(logits, dtype=np.float64)
    return np.exp(-np.logaddexp(0, -logits))
