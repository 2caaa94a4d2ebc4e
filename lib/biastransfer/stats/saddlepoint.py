"""Permutation null of a two-sample sum by inverting its characteristic function at the saddlepoint."""

from math import lgamma, pi

import numpy as np
from scipy.special import expit

from biastransfer.stats.partitions import tie_width

BLOCK = 32  # frequencies computed before looking whether the characteristic function has died out
MOST_FREQUENCIES = 4096
NEGLIGIBLE = 1e-17
ENOUGH = 1e-9  # relative error at which no further frequencies are computed
GENERIC_VALUES = 30  # with fewer distinct scores the characteristic function comes back after dying out
MOST_STEPS = 100_000  # a lattice with more steps between its ends is taken as none
SAFETY = 2.0  # error bound in units of |cf| at the cut / √frequencies; see the tests for the trials behind it


def fourier(scores, n):
    """One-sided permutation p-values of the sum of the first `n` scores, for any number of pictures.

    Parameters
    ----------
    scores : numpy.ndarray, shape (N,)
        One score a picture, the first `n` those of the first set.
    n : int
        Size of the first set.

    Returns
    -------
    greater, less : float
        p-values; neither is ever 0.
    error : float
        Bound on their numerical error, from the size of the characteristic function where the integral is
        cut; large when scores repeat so much that the sum has few values.

    Notes
    -----
    Among the C(N, n) partitions the sum S has the generating function [zⁿ] Π(1 + z·exp(u·sᵢ)). Both the
    coefficient of zⁿ and the tail of S are contour integrals, taken by the trapezoid rule through the
    saddlepoint, where the integrand is a bell and nothing cancels, so tails far below 1e-12 keep their
    digits. The period in S exceeds its range, hence no aliasing; the pole at u = 0 adds a known term.
    Scores are neither rounded nor binned. Partitions equal to the observed one but for exchanging equal
    scores are counted in full, as ties are.
    """
    unit, width = scores.std(), tie_width(scores) / scores.std()
    centred = (scores - scores.mean()) / unit
    observed = centred[:n].sum()
    sign = 1 if observed >= 0 else -1
    near, far, error = _floored(sign * centred, n, sign * observed, width)
    return (near, far, error) if sign > 0 else (far, near, error)


def _floored(s, n, t, width):
    """P(S ≥ t), P(S ≤ t) and the error, for t at or above the mean 0 of S."""
    values = np.sort(s)
    values = values[np.concatenate([[True], np.diff(values) > width / len(s)])]
    gap = _lattice_gap(values, width)
    share = np.exp(_log_ties(s, n, width) - _log_comb(len(s), n))
    tail, atom, error = _upper_tail(s, n, t, gap, width, generic=len(values) >= GENERIC_VALUES)
    atom = max(atom if gap else 0.0, share)
    tail = min(max(tail if gap else tail + share / 2, share, np.finfo(float).tiny), 1.0)
    return tail, min(max(1 - tail + atom, share), 1.0), error


def _lattice_gap(values, width):
    """Step of the lattice that holds all `values`, or 0 when there is none that matters."""
    gap = 0.0
    for difference in np.diff(values):
        while difference > 100 * width:
            gap, difference = difference, gap - difference * np.rint(gap / difference)
            difference = abs(difference)
        if gap * MOST_STEPS < values[-1] - values[0]:
            return 0.0
    return gap


def _upper_tail(s, n, t, gap, width, generic):
    """Tail from t on, the probability of t itself (off a lattice: 0, half of it in the tail), error."""
    ordered = np.sort(s)
    lowest, highest = ordered[:n].sum(), ordered[len(s) - n :].sum()
    if t >= highest - width:
        return 0.0, 0.0, 0.0  # only ties of the observed partition are as large; the caller adds them
    eta, tau = _saddlepoint(s, n, t)
    p = expit(eta + tau * s)
    count = 2 * int(np.ceil((highest - lowest) / gap / 2 + 1)) + 1 if gap else 2 * MOST_FREQUENCIES + 1
    period = count * gap if gap else (highest - lowest) * 1.001
    sizes = _sizes((p * (1 - p)).sum(), len(s))
    scale = np.exp(np.logaddexp(0, eta + tau * s).sum() - eta * n - tau * t - _log_comb(len(s), n))
    total = atom = first = cut = 0.0
    last = min(count // 2, MOST_FREQUENCIES)
    for start in range(0, last + 1, BLOCK):
        theta = 2 * pi / period * np.arange(start, min(start + BLOCK, last + 1))
        cf = _cf(s, p, n, t, theta, sizes)
        u = tau + 1j * theta
        terms = (cf * gap / -np.expm1(-u * gap) if gap else cf / u).real
        first = first or cf[0].real
        floor = np.sqrt(np.prod(1 - 2 * p * (1 - p)) / first)  # |cf| far out, by the number of partitions
        total += terms.sum() - (terms[0] / 2 if start == 0 else 0)
        atom += cf.real.sum() - (first / 2 if start == 0 else 0)
        size = np.abs(cf[len(cf) // 2 :]).max() / first
        cut = size if generic or start < last // 2 else max(cut, np.abs(cf).max() / first)
        reach = SAFETY / np.sqrt(start + BLOCK) if generic else 2 / tau
        if generic and cut < NEGLIGIBLE and first * floor * reach < ENOUGH * total * 2 / period:
            break
    complete = gap and theta[-1] >= pi / period * (count - 1.5)
    pole = np.exp(-tau * period) / -np.expm1(-tau * period)
    error = scale * first * ((0 if complete else max(cut, floor) * reach) + 1e-14 / tau) + 1e-16 * pole
    return scale * total * 2 / period - pole, scale * atom * 2 * (gap / period), error


def _cf(s, p, n, t, theta, sizes):
    """∫ over the size angle of Π(1 − pᵢ + pᵢ·e^{i(φ + θ·sᵢ)}) e^{−i(nφ + tθ)}, for every θ."""
    # angles turn about the tilted centre of s, so the bell in φ stays at 0 whatever θ
    weight = p * (1 - p)
    centre = (weight @ s) / weight.sum()
    turned = s - centre
    size_turn = np.exp(1j * sizes)
    product = np.ones((len(theta), len(sizes)), complex)
    turns = np.exp(1j * np.outer(turned, theta))
    for turn, share in zip(turns, p):
        product *= (1 - share) + (share * turn)[:, None] * size_turn
    return (product * np.exp(-1j * n * sizes)).mean(1) * np.exp(-1j * (t - n * centre) * theta)


def _sizes(variance, count):
    """Angles of the sum over set sizes: enough that no other size aliases above rounding."""
    nodes = min(count + 1, int(np.ceil(8.8 * np.sqrt(variance) + 12)))
    return 2 * pi * (np.arange(nodes) - nodes // 2) / nodes


def _saddlepoint(s, n, t):
    """Minimise Σ log(1 + e^{η + τs}) − ηn − τt − log τ over η and τ > 0 by damped Newton steps."""
    point = np.array([np.log(n / (len(s) - n)), 1.0 / np.sqrt(len(s))])

    def height(q):
        return np.logaddexp(0, q[0] + q[1] * s).sum() - q[0] * n - q[1] * t - np.log(q[1])

    for _ in range(200):
        p = expit(point[0] + point[1] * s)
        w = p * (1 - p)
        slope = np.array([p.sum() - n, p @ s - t - 1 / point[1]])
        curve = np.array([[w.sum(), w @ s], [w @ s, w @ (s * s) + 1 / point[1] ** 2]])
        step = -np.linalg.lstsq(curve, slope, rcond=None)[0]
        gain, length, here = -slope @ step, 1.0, height(point)
        while point[1] + length * step[1] <= 0 or height(point + length * step) > here - 1e-4 * length * gain:
            length /= 2
            if length < 1e-10:
                return point
        point = point + length * step
        if gain < 1e-8:
            break
    return point


def _log_comb(total, n):
    return lgamma(total + 1) - lgamma(n + 1) - lgamma(total - n + 1)


def _log_ties(scores, n, width):
    """Log of the number of partitions that only exchange equal scores between the two sets."""
    order = np.argsort(scores, kind="stable")
    group = np.concatenate([[0], np.cumsum(np.diff(scores[order]) > width / len(scores))])
    members = np.bincount(group)
    chosen = np.bincount(group, weights=order < n)
    return sum(_log_comb(int(m), int(k)) for m, k in zip(members, chosen))
