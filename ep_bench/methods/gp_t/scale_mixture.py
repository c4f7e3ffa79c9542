"""A Student-t density as a mixture of normals, for predictions.

lambda    precision of a normal, Gamma(k, k sigma^2) with k = nu / 2;  x = log(lambda sigma^2)
g(x)      k (x - e^x + 1), log weight of x up to a constant, with the maximum 0

The integral over x is computed by the trapezoidal rule. At u = (y - f) / sigma the largest terms are at log((nu + 1) /
(nu + u^2)), where the weight may be very small. Both rules therefore start where g is negligible, or at the terms that
u = ``REACH`` needs, whichever is lower. Weights below ``LOWEST_LOG_WEIGHT`` nats underflow: for nu = 1000 this limits u
to 90 sigma.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import lambertw

from ep_bench.types import Array

LOWEST_LOG_WEIGHT = -700.0
FINE, FINE_REACH, FINE_TERMS = 34.0, 1000.0, 11.0  # decay of g (nats), REACH (sigma), decay of the terms there (nats)
COARSE, COARSE_REACH, COARSE_TERMS = 30.0, 300.0, 8.0
NODES = 32  # of the coarse rule
LOWEST = -20.0  # smallest x of the coarse rule
SPACING = 1.35  # largest spacing of the coarse rule, in units of k^-1/2, which may limit its reach


def fine(nu: float, scale: float) -> tuple[Array, Array]:
    """Return weights (S,) and variances (S,) of normals whose mixture is a t.

    The error of the log density is below 1e-5 nats within 1,000 sigma of f, or as far as weights do not underflow. For
    nu >= 1, S is 40 to 200.
    """
    k, step = 0.5 * nu, min(0.4, math.sqrt(2.0 / nu))
    low, high = -FINE / k - 2.0, math.log1p(FINE / k + math.sqrt(2.0 * FINE / k)) + 1.0
    first = min(-_decay_below_mode(k, FINE), _tail(nu, FINE_REACH, FINE_TERMS))
    before = max(0, math.ceil((low - first) / step))
    x = low + step * np.arange(-before, (high - low) / step)
    weights = np.exp(_height(k, x))
    inside = (x >= first) & ((x < 0.0) | (weights > math.exp(-FINE)))
    return weights[inside] / weights[inside].sum(), scale**2 * np.exp(-x[inside])


def coarse(nu: float, scale: float) -> tuple[Array, Array]:
    """Return weights (NODES,) and variances (NODES,) of normals whose mixture approximates a t.

    If the rule ends at ``LOWEST``, its first point has the weight of all smaller x. For nu >= 1 the error of the log
    density is at most 5e-4 nats within 300 sigma of f, or within 45 sigma if nu > 30.
    """
    k = 0.5 * nu
    right = _decay_above_mode(k, COARSE)
    left = max(_tail(nu, COARSE_REACH, COARSE_TERMS), right - (NODES - 1) * SPACING / math.sqrt(k))
    x = np.linspace(max(min(-_decay_below_mode(k, COARSE), left), LOWEST), right, NODES)
    weights = np.exp(_height(k, x))
    weights[0] /= -math.expm1(-k * (x[1] - x[0]))
    return weights / weights.sum(), scale**2 * np.exp(-x)


def missing_variance(nu: float, scale: float, weights: Array, variances: Array) -> float:
    """Return the variance of the t minus that of a mixture (S,), at least 0; it is infinite for nu <= 2."""
    if nu <= 2.0:
        return math.inf
    return max(scale**2 * nu / (nu - 2.0) - float(weights @ variances), 0.0)


def _height(k: float, x: Array) -> Array:
    return np.asarray(k * (x - np.expm1(x)))


def _decay_below_mode(k: float, depth: float) -> float:
    """Return the distance below the mode at which a log-gamma density of shape k has fallen by ``depth`` nats."""
    c = 1.0 + depth / k
    return c + float(lambertw(-math.exp(-c), 0).real)


def _decay_above_mode(k: float, depth: float) -> float:
    """Return the same distance above the mode."""
    c = 1.0 + depth / k
    return -c - float(lambertw(-math.exp(-c), -1).real)


def _tail(nu: float, reach: float, depth: float) -> float:
    """Return the smallest x that the terms at u = ``reach`` need, or the one where weights underflow."""
    highest = math.log((nu + 1.0) / (nu + reach**2))
    return max(highest - _decay_below_mode(0.5 * (nu + 1.0), depth), -_decay_below_mode(0.5 * nu, -LOWEST_LOG_WEIGHT))
