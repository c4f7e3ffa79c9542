"""Slice sampling along a line and along an ellipse: updates of a point that leave a density invariant.

Line: Neal (2003), stepping out (figure 3) and shrinkage (figure 5). Ellipse: Murray, Adams and MacKay (2010), in the
form for any density (Nishihara, Murray and Adams 2014). The density is approximated by a t distribution with mean m and
scale matrix L L', written as a normal of random scale s:

    s | x ~ IG((k + P) / 2, (k + q(x)) / 2),  q(x) = (x - m)' (L L')^-1 (x - m),  x' ~ N(m, s L L'),

The next point is on the ellipse around m through x and x', where the density divided by that of the t exceeds a random
level. Such an update moves all entries at once, and rejects few points if the approximation is good.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Array = NDArray[np.float64]
LogDensity = Callable[[Array], float]

STEPS_OUT = 20  # of both ends of a slice together
SHRINKS = 200  # after which the point does not move; needed if rounding errors make the density rough
CORRELATED = 8.0  # rough number of draws of a chain per effective draw
FREEDOM = 5.0  # k, the degrees of freedom of the t


class ChainPoint(NamedTuple):
    """The current point of a chain and its log density up to a constant."""

    x: Array  # (P,)
    log_density: float


class StudentTApproximation(NamedTuple):
    """A t distribution close to the density, with ``FREEDOM`` degrees of freedom."""

    mean: Array  # (P,) m
    factor: Array  # (P, P) lower triangle L

    @classmethod
    def of(cls, draws: Array) -> StudentTApproximation:
        """Return the approximation fitted to draws (S, P) of a chain; correlations are shrunk if draws are few."""
        count, entries = draws.shape
        own = np.maximum(draws.var(axis=0), 1e-12)
        centred = draws - draws.mean(axis=0)
        shrinkage = count / (count + CORRELATED * entries)
        covariance = shrinkage * (centred.T @ centred) / count
        covariance[np.diag_indices(entries)] = own
        return cls(draws.mean(axis=0), np.linalg.cholesky(covariance))


def update_along_line(
    log_density: LogDensity, at: ChainPoint, direction: Array, rng: np.random.Generator
) -> ChainPoint:
    """Return the point after an update along a line; the length of ``direction`` (P,) is the width of the slice."""
    level = at.log_density - rng.standard_exponential()
    low = -rng.random()
    high = low + 1.0
    left = int(rng.integers(STEPS_OUT + 1))
    right = STEPS_OUT - left
    while left > 0 and log_density(at.x + low * direction) > level:
        low, left = low - 1.0, left - 1
    while right > 0 and log_density(at.x + high * direction) > level:
        high, right = high + 1.0, right - 1
    for _ in range(SHRINKS):
        step = rng.uniform(low, high)
        x = at.x + step * direction
        value = log_density(x)
        if value > level:
            return ChainPoint(x, value)
        low, high = (step, high) if step < 0.0 else (low, step)
    return at


def update_on_ellipse(
    log_density: LogDensity, at: ChainPoint, t: StudentTApproximation, rng: np.random.Generator
) -> ChainPoint:
    """Return the point after an update along an ellipse of the approximation t."""
    entries = len(at.x)
    square = _square(t, at.x)
    s = 0.5 * (FREEDOM + square) / rng.standard_gamma(0.5 * (FREEDOM + entries))
    other = math.sqrt(s) * (t.factor @ rng.standard_normal(entries))
    level = at.log_density - _log_t(square, entries) - rng.standard_exponential()
    angle = rng.uniform(0.0, 2.0 * math.pi)
    low, high = angle - 2.0 * math.pi, angle
    for _ in range(SHRINKS):
        x = t.mean + math.cos(angle) * (at.x - t.mean) + math.sin(angle) * other
        value = log_density(x)
        if value - _log_t(_square(t, x), entries) > level:
            return ChainPoint(x, value)
        low, high = (angle, high) if angle < 0.0 else (low, angle)
        angle = rng.uniform(low, high)
    return at


def _square(t: StudentTApproximation, x: Array) -> float:
    """Return q(x)."""
    z, _ = lapack.dtrtrs(t.factor, x - t.mean, lower=1)
    return float(z @ z)


def _log_t(square: float, entries: int) -> float:
    """Return the log density of the t up to a constant, from q(x)."""
    return -0.5 * (FREEDOM + entries) * math.log1p(square / FREEDOM)
