"""Paired differences whose signs are exchanged: is their mean further from 0 than chance puts it?"""

import numpy as np

_EXACT = 14  # differences up to which all sign patterns, 2 to their number, are counted
_TIE = 1e-12  # relative: sums that agree to this are one value


def sign_flip_p(differences, *, n_samples=20_000, seed=0):
    """Return the two-sided p of a mean of paired differences, from exchanging their signs.

    Parameters
    ----------
    differences : array_like, shape (n,)
        One a unit (a picture); NaN is left out.
    n_samples : int
        Sign patterns drawn where there are too many to count.
    seed : int
        Of that draw.

    Returns
    -------
    float
        Share of sign patterns whose absolute mean reaches the observed one; all of them up to 14
        differences, so p is at least 2 / 2ⁿ, above that (1 + count) / (1 + `n_samples`). NaN without a
        difference.

    Notes
    -----
    Exact where, under the null, a difference and its negative are equally likely.

    Examples
    --------
    >>> sign_flip_p([1, 2, 3])
    0.25
    """
    d = np.asarray(differences, float)
    d = d[np.isfinite(d)]
    if not len(d):
        return float("nan")
    limit = abs(d.sum()) - _TIE * np.abs(d).sum()
    if len(d) <= _EXACT:
        signs = 1 - 2 * ((np.arange(2 ** len(d))[:, None] >> np.arange(len(d))) & 1)
        return float((np.abs(signs @ d) >= limit).mean())
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(n_samples, len(d)))
    return float((1 + (np.abs(signs @ d) >= limit).sum()) / (1 + n_samples))
