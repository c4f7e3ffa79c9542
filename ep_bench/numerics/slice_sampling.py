"""Slice sampling along a line and along an ellipse: updates of a point that keep a density.

Line: Neal (2003), stepping out (figure 3) and shrinkage (figure 5). Ellipse: Murray, Adams and MacKay (2010), in the
form for any density (Nishihara, Murray and Adams 2014): a t law near the density, as a normal of random scale s,

    s | x ~ IG((k + P) / 2, (k + q(x)) / 2),  q(x) = (x - m)' (L L')^-1 (x - m),  x' ~ N(m, s L L'),

and a point on the ellipse through x and x' around m, the density divided by the t's held above a random level. An
update along an ellipse moves all entries at once, and refuses few points where the law is near.
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

STEPS_OUT = 20  # of a slice's two ends together
SHRINKS = 200  # after which a point stays, for a density that rounding makes ragged
CORRELATED = 8.0  # draws of a chain that tell as much as one alone, roughly
FREEDOM = 5.0  # k of the t law


class ChainPoint(NamedTuple):
    """Where a chain is, and the log density there, which may lack a constant."""

    x: Array  # (P,)
    log_density: float


class StudentTApproximation(NamedTuple):
    """A t law near the density, with so many degrees of freedom as ``FREEDOM`` says."""

    mean: Array  # (P,)
    factor: Array  # (P, P) lower triangle L

    @classmethod
    def of(cls, draws: Array) -> StudentTApproximation:
        """Return a law like draws (S, P) of a chain, their correlations the weaker the fewer they are."""
        count, entries = draws.shape
        own = np.maximum(draws.var(axis=0), 1e-12)
        centred = draws - draws.mean(axis=0)
        share = count / (count + CORRELATED * entries)
        covariance = share * (centred.T @ centred) / count
        covariance[np.diag_indices(entries)] = own
        return cls(draws.mean(axis=0), np.linalg.cholesky(covariance))


def update_along_line(
    log_density: LogDensity, at: ChainPoint, direction: Array, rng: np.random.Generator
) -> ChainPoint:
    """Return the point after an update along a line, which ``direction`` (P,) is about as wide as."""
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
    log_density: LogDensity, at: ChainPoint, law: StudentTApproximation, rng: np.random.Generator
) -> ChainPoint:
    """Return the point after an update along an ellipse."""
    entries = len(at.x)
    square = _square(law, at.x)
    s = 0.5 * (FREEDOM + square) / rng.standard_gamma(0.5 * (FREEDOM + entries))
    other = math.sqrt(s) * (law.factor @ rng.standard_normal(entries))
    level = at.log_density - _log_t(square, entries) - rng.standard_exponential()
    angle = rng.uniform(0.0, 2.0 * math.pi)
    low, high = angle - 2.0 * math.pi, angle
    for _ in range(SHRINKS):
        x = law.mean + math.cos(angle) * (at.x - law.mean) + math.sin(angle) * other
        value = log_density(x)
        if value - _log_t(_square(law, x), entries) > level:
            return ChainPoint(x, value)
        low, high = (angle, high) if angle < 0.0 else (low, angle)
        angle = rng.uniform(low, high)
    return at


def _square(law: StudentTApproximation, x: Array) -> float:
    z, _ = lapack.dtrtrs(law.factor, x - law.mean, lower=1)
    return float(z @ z)


def _log_t(square: float, entries: int) -> float:
    return -0.5 * (FREEDOM + entries) * math.log1p(square / FREEDOM)
