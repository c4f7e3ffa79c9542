"""Moments of a Gaussian times a power of a Student-t density, by Gauss-Legendre quadrature on graded panels.

m, v     mean and variance of the cavity
q(u)     nu sigma^2 + u^2, u = f - y
t(y | f) Gamma((nu + 1) / 2) / (Gamma(nu / 2) sqrt(nu pi) sigma) (1 + u^2 / (nu sigma^2))^(-(nu + 1) / 2)
h(f)     -(f - m)^2 / (2 v) - eta (nu + 1) / 2 log(1 + u^2 / (nu sigma^2))

All stationary points of h are between m and y. Reweighted steps from either end converge to the outermost ones, and h
decreases beyond these. Panels extend from y outwards; their widths follow the local smoothness of the integrand.
Jylanki et al. (2011), section 4.1, propose limits and modes; the panels are ours.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ep_bench.numerics.jit import jit
from ep_bench.types import Array

NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)
DEPTH = 42.0  # nats below the maximum at which the integrand is cut off
FAR = 1e4  # standard deviations of the cavity between the modes, above which a negligible mode is left out
STEPS = 60  # maximum of reweighted steps
SERIES = 1e4  # degrees of freedom above which the series is exact in double precision


@jit()
def log_constant(nu: float, s2: float) -> float:
    """Return log t(y | y), with s2 the squared scale; for large nu by Stirling's series, which loses no digits."""
    if nu > SERIES:
        gammas = 0.5 * math.log(0.5 * nu) - 0.25 / nu + 1.0 / (24.0 * nu**3)
    else:
        gammas = math.lgamma(0.5 * (nu + 1.0)) - math.lgamma(0.5 * nu)
    return gammas - 0.5 * math.log(nu * math.pi * s2)


@jit()
def _height(f: float, m: float, v: float, y: float, nu: float, s2: float, eta: float) -> float:
    """Return h(f); here and below s2 is the squared scale."""
    return -0.5 * (f - m) ** 2 / v - 0.5 * eta * (nu + 1.0) * math.log1p((f - y) ** 2 / (nu * s2))


@jit()
def _find_mode(f: float, m: float, v: float, y: float, nu: float, s2: float, eta: float) -> float:
    """Return the limit of reweighted steps from f."""
    for _ in range(STEPS):
        w = eta * (nu + 1.0) / (nu * s2 + (f - y) ** 2)
        after = (m + v * w * y) / (1.0 + v * w)
        if abs(after - f) < 1e-6 * math.sqrt(v / (1.0 + v * w)):
            return after
        f = after
    return f


@jit()
def _limit(
    f: float, sign: float, level: float, m: float, v: float, y: float, nu: float, s2: float, eta: float
) -> float:
    """Return the point outwards from f at which h falls to ``level``, or f if h is lower there."""
    if _height(f, m, v, y, nu, s2, eta) <= level:
        return f
    inner, outer = 0.0, math.sqrt(v)
    while _height(f + sign * outer, m, v, y, nu, s2, eta) > level:
        inner, outer = outer, 2.0 * outer
    for _ in range(6):
        middle = 0.5 * (inner + outer)
        if _height(f + sign * middle, m, v, y, nu, s2, eta) > level:
            inner = middle
        else:
            outer = middle
    return f + sign * outer


@jit()
def _integrate_outwards(
    low: float, high: float, start: float, sign: float, mode: float, top: float, m: float, v: float, y: float,
    nu: float, s2: float, eta: float, nodes: Any, weights: Any, sums: Any,
) -> None:  # fmt: skip
    """Add integrals from ``start`` to one end to ``sums`` (7,), with d = f - mode and the factor exp(h - top).

    The integrands are 1, d, d^2, log(q / (nu sigma^2)), u^2 / q, d^3 and d^4. nodes and weights are (n,).
    """
    end = high if sign > 0.0 else low
    at = start
    while (end - at) * sign > 0.0:
        q = nu * s2 + (at - y) ** 2
        width = min(2.0 / math.sqrt(1.0 / v + eta * (nu + 1.0) / q), math.sqrt(q), (end - at) * sign)
        after = at + sign * width
        if after == at:
            return
        for i in range(nodes.size):
            f = at + 0.5 * sign * width * (1.0 + nodes[i])
            u2 = (f - y) ** 2
            logarithm = math.log1p(u2 / (nu * s2))
            p = 0.5 * width * weights[i]
            p *= math.exp(-0.5 * (f - m) ** 2 / v - 0.5 * eta * (nu + 1.0) * logarithm - top)
            d = f - mode
            sums[0] += p
            sums[1] += p * d
            sums[2] += p * d * d
            sums[3] += p * logarithm
            sums[4] += p * u2 / (nu * s2 + u2)
            sums[5] += p * d * d * d
            sums[6] += p * d * d * d * d
        at = after


@jit()
def fill(m: Any, v: Any, y: Any, nu: float, s2: float, eta: float, nodes: Any, weights: Any, out: Any) -> None:
    """Write the result of ``moments`` to out (7, n), for m, v and y (n,) and s2 the squared scale."""
    sums = np.empty(7)
    constant = log_constant(nu, s2)
    for i in range(m.size):
        mi, vi, yi = m[i], v[i], y[i]
        by_m, by_y = _find_mode(mi, mi, vi, yi, nu, s2, eta), _find_mode(yi, mi, vi, yi, nu, s2, eta)
        high_m, high_y = _height(by_m, mi, vi, yi, nu, s2, eta), _height(by_y, mi, vi, yi, nu, s2, eta)
        mode, top = (by_m, high_m) if high_m > high_y else (by_y, high_y)
        if abs(by_y - by_m) > FAR * math.sqrt(vi) and min(high_m, high_y) < top - DEPTH:
            by_m = by_y = mode  # panels over the gap would take a time in proportion to its length
        low = _limit(min(by_m, by_y), -1.0, top - DEPTH, mi, vi, yi, nu, s2, eta)
        high = _limit(max(by_m, by_y), 1.0, top - DEPTH, mi, vi, yi, nu, s2, eta)
        start = min(max(yi, low), high)
        sums[:] = 0.0
        for sign in (-1.0, 1.0):
            _integrate_outwards(low, high, start, sign, mode, top, mi, vi, yi, nu, s2, eta, nodes, weights, sums)
        total = sums[0]
        sums /= total
        mean, square = sums[1], sums[2]
        out[0, i] = math.log(total) + top + eta * constant - 0.5 * math.log(2.0 * math.pi * vi)
        out[1, i] = mode + mean
        out[2, i] = square - mean * mean
        out[3, i] = sums[3]
        out[4, i] = sums[4]
        out[5, i] = sums[5] - 3.0 * mean * square + 2.0 * mean**3
        out[6, i] = sums[6] - 4.0 * mean * sums[5] + 6.0 * mean * mean * square - 3.0 * mean**4


def moments(m: Array, v: Array, y: Array, nu: float, scale: float, eta: float) -> Array:
    """Return moments (7, n) of the tilted distributions, for means m and variances v (n,) of cavities, targets y (n,).

    They are log normaliser, mean, variance, the means of log(q / (nu sigma^2)) and of u^2 / q, and the third and fourth
    central moment.
    """
    out = np.empty((7, len(y)))
    fill(m, v, y, nu, scale**2, eta, NODES, WEIGHTS, out)
    return out
