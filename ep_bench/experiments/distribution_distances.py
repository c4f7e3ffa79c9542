"""Distances of predictive distributions of an observation (noise included) from those of a reference.

For distribution functions F of a method and G of the reference, in the unit of the target:

- 1-Wasserstein distance: the integral of |F - G|.
- Expected CRPS of F if observations come from G: the reference's own CRPS, which is the minimum and the integral of
  G (1 - G), plus the excess, the integral of (F - G)^2 (Cramer's distance).

A mixture's distribution function is tabulated once, with its density, at points that follow the components and the
range; between them it is a cubic polynomial. The integrals are those of the polynomials. Their error is at most about
1e-6 of the range. No code is shared with the methods.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ep_bench.predictions import Predictive
from ep_bench.types import Array

if TYPE_CHECKING:
    from scipy.interpolate import PPoly

_TAIL = 8.3  # standard deviations from a component's mean, beyond which the tails have 5e-17
_MARKS = np.linspace(-_TAIL, _TAIL, 67)  # standard deviations from a component's mean
_POINTS = 500  # at most, evenly spaced in the sorted marks of all components, and as many in the range
_NARROWEST = 1e-6  # minimum standard deviation of a component, relative to the range; points are widened to it
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)  # exact to degree 7; squares of cubics have 6


class DistributionDistances(NamedTuple):
    """Distances from the reference at each of N inputs."""

    wasserstein: Array  # (N,)
    excess: Array  # (N,) of the expected CRPS over the reference's own


def tabulate(prediction: Predictive) -> list[PPoly]:
    """Return the distribution functions of N observations as piecewise cubics.

    Raises ValueError if a mean or a variance is not finite.
    """
    if not (np.isfinite(prediction.means).all() and np.isfinite(prediction.variances).all()):
        raise ValueError("a mean or a variance of a predictive distribution is not finite")
    columns = zip(prediction.means.T, np.sqrt(prediction.variances).T, strict=True)
    return [_tabulated(prediction.weights, means, deviations) for means, deviations in columns]


def compare(method: Sequence[PPoly], reference: Sequence[PPoly]) -> DistributionDistances:
    """Return the distances of a method's distributions from the reference's; both are from ``tabulate``."""
    pairs = [_distances(*pair) for pair in zip(method, reference, strict=True)]
    return DistributionDistances(*np.array(pairs, dtype=np.float64).T)


def own_crps(reference: Sequence[PPoly]) -> Array:
    """Return the expected CRPS (N,) of distributions for observations from themselves."""
    return np.array([_own(curve) for curve in reference])


def _tabulated(weights: Array, means: Array, deviations: Array) -> PPoly:
    from scipy.interpolate import CubicHermiteSpline
    from scipy.special import ndtr

    low, high = (means - _TAIL * deviations).min(), (means + _TAIL * deviations).max()
    spread = (high - low) or 1e-6 * max(1.0, abs(low))  # a single point
    deviations = np.maximum(deviations, _NARROWEST * spread)
    marks = np.sort((means + _MARKS[:, None] * deviations).ravel())
    places = np.linspace(0, len(marks) - 1, min(_POINTS, len(marks))).astype(int)
    points = np.union1d(marks[places], np.linspace(marks[0], marks[-1], _POINTS))
    z = (points[:, None] - means) / deviations
    density = np.exp(-0.5 * z * z) @ (weights / (math.sqrt(2.0 * math.pi) * deviations))
    return CubicHermiteSpline(points, ndtr(z) @ weights, density)


def _distances(method: PPoly, reference: PPoly) -> tuple[float, float]:
    """Return the integrals of |F - G| and of (F - G)^2.

    Panels end at the breakpoints of both functions and where F crosses G.
    """
    points = np.union1d(method.x, reference.x)
    gap = _at(method, points) - _at(reference, points)
    crosses = gap[:-1] * gap[1:] < 0.0
    left, right = points[:-1][crosses], points[1:][crosses]
    fraction = gap[:-1][crosses] / (gap[:-1] - gap[1:])[crosses]
    nodes, half = _panels(np.union1d(points, left + fraction * (right - left)))
    gaps = _at(method, nodes) - _at(reference, nodes)
    return float(np.abs(half * (gaps @ _WEIGHTS)).sum()), float(half @ (gaps**2 @ _WEIGHTS))


def _own(curve: PPoly) -> float:
    nodes, half = _panels(curve.x)
    below = _at(curve, nodes)
    return float(half @ ((below * (1.0 - below)) @ _WEIGHTS))


def _panels(points: Array) -> tuple[Array, Array]:
    """Return the nodes (P, 6) of the panels between points (P + 1,), and half of their widths (P,)."""
    half = 0.5 * np.diff(points)
    return points[:-1, None] + half[:, None] * (1.0 + _NODES), half


def _at(curve: PPoly, points: Array) -> Array:
    """Return the distribution function at points: 0 and 1 beyond the outermost breakpoints."""
    return np.asarray(curve(np.clip(points, curve.x[0], curve.x[-1])))
