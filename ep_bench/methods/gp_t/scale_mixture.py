"""A Student-t density as a mixture of normals, for predictions.

lambda    precision of a normal, Gamma(k, k sigma^2) with k = nu / 2;  x = log(lambda sigma^2)
g(x)      k (x - e^x + 1), log weight of x but for a constant, 0 where it is highest

The integral over x is taken by the trapezoidal rule. At u = (y - f) / sigma the terms are highest at log((nu + 1) /
(nu + u^2)), where the weight alone may be far down: both rules reach from where g is negligible, or from the terms
that u = ``REACH`` needs, whichever lies lower. Weights end at ``LEAST`` nats, beyond which doubles have none: for nu =
1000 that is at 90 sigma.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import lambertw

from ep_bench.types import Array

LEAST = -700.0
FINE, FINE_REACH, FINE_TERMS = 34.0, 1000.0, 11.0  # nats down, sigma, and nats that the terms there fall by
COARSE, COARSE_REACH, COARSE_TERMS = 30.0, 300.0, 8.0
NODES = 32  # of the coarse rule
LOWEST = -20.0  # x of the coarse rule
SPACING = 1.35  # of the coarse rule at most, in units of k^-1/2, where that cuts its reach


def fine(nu: float, scale: float) -> tuple[Array, Array]:
    """Return weights (S,) and variances (S,) of normals that make up a t.

    The log density is off by less than 1e-5 nats within 1,000 sigma of f, or as far as weights go. From nu = 1 on S is
    40 to 200.
    """
    k, step = 0.5 * nu, min(0.4, math.sqrt(2.0 / nu))
    low, high = -FINE / k - 2.0, math.log1p(FINE / k + math.sqrt(2.0 * FINE / k)) + 1.0
    least = min(-_decay_below_mode(k, FINE), _tail(nu, FINE_REACH, FINE_TERMS))
    before = max(0, math.ceil((low - least) / step))
    x = low + step * np.arange(-before, (high - low) / step)
    weights = np.exp(_height(k, x))
    inside = (x >= least) & ((x < 0.0) | (weights > math.exp(-FINE)))
    return weights[inside] / weights[inside].sum(), scale**2 * np.exp(-x[inside])


def coarse(nu: float, scale: float) -> tuple[Array, Array]:
    """Return weights (NODES,) and variances (NODES,) of normals that stand for a t.

    Where the rule ends at ``LOWEST`` its last point stands for what is beyond. From nu = 1 on the log density is off
    by at most 5e-4 nats within 300 sigma of f, within 45 where nu is above 30.
    """
    k = 0.5 * nu
    right = _decay_above_mode(k, COARSE)
    least = max(_tail(nu, COARSE_REACH, COARSE_TERMS), right - (NODES - 1) * SPACING / math.sqrt(k))
    x = np.linspace(max(min(-_decay_below_mode(k, COARSE), least), LOWEST), right, NODES)
    weights = np.exp(_height(k, x))
    weights[0] /= -math.expm1(-k * (x[1] - x[0]))
    return weights / weights.sum(), scale**2 * np.exp(-x)


def missing_variance(nu: float, scale: float, weights: Array, variances: Array) -> float:
    """Return what such a mixture leaves out of the variance of the t, which is infinite up to nu = 2."""
    if nu <= 2.0:
        return math.inf
    return max(scale**2 * nu / (nu - 2.0) - float(weights @ variances), 0.0)


def _height(k: float, x: Array) -> Array:
    return np.asarray(k * (x - np.expm1(x)))


def _decay_below_mode(k: float, depth: float) -> float:
    """Return how far below its highest point a log-gamma density of shape k is ``depth`` nats down."""
    c = 1.0 + depth / k
    return c + float(lambertw(-math.exp(-c), 0).real)


def _decay_above_mode(k: float, depth: float) -> float:
    """Return how far above its highest point it is."""
    c = 1.0 + depth / k
    return -c - float(lambertw(-math.exp(-c), -1).real)


def _tail(nu: float, reach: float, depth: float) -> float:
    """Return the x from which on the terms at u = ``reach`` count, or where weights end."""
    highest = math.log((nu + 1.0) / (nu + reach**2))
    return max(highest - _decay_below_mode(0.5 * (nu + 1.0), depth), -_decay_below_mode(0.5 * nu, -LEAST))
