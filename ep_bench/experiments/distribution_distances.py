"""Distances of predictive distributions of an observation (noise included) from those of a reference.

For distribution functions F of a method and G of the reference, in the unit of the target:

- 1-Wasserstein distance: the integral of |F - G|.
- Expected CRPS of F if observations come from G: the reference's own CRPS, which is the minimum and the integral of
  G (1 - G), plus the excess, the integral of (F - G)^2 (Cramer's distance).

A mixture's distribution function is converted to a piecewise quintic polynomial once, so that mixtures of thousands of
components cost no more in a comparison than one Gaussian. Value and two derivatives are exact at the breakpoints, which
follow the components; panels are halved until the polynomial agrees with the function at their midpoints. The integrals
are those of the polynomials, accurate to 1e-6 of the range of the distributions or better. No code is shared with the
methods.
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

_MARKS = np.array([-8.3, -2.5, 0.0, 2.5, 8.3])  # standard deviations from a component's mean; the tails have 5e-17
_STARTS = 33  # initial breakpoints, evenly spaced in the sorted marks of all components
_MISFIT = 1e-7  # maximum error of a panel, relative to the range
_NARROWEST = 1e-6  # minimum standard deviation of a component, relative to the range; points are widened to it
_CHUNK = 2**15  # numbers per temporary array; fits into the cache of a processor
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)  # exact to degree 11; squares of quintics have 10


class DistributionDistances(NamedTuple):
    """Distances from the reference at each of N inputs."""

    wasserstein: Array  # (N,)
    excess: Array  # (N,) of the expected CRPS over the reference's own


def tabulate(prediction: Predictive) -> list[PPoly]:
    """Return the distribution functions of N observations as piecewise quintics.

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
    from scipy.interpolate import PPoly

    low, high = (means - 8.3 * deviations).min(), (means + 8.3 * deviations).max()
    spread = (high - low) or 1e-6 * max(1.0, abs(low))  # a single point
    deviations = np.maximum(deviations, _NARROWEST * spread)
    marks = np.sort((means + _MARKS[:, None] * deviations).ravel())
    places = np.linspace(0, len(marks) - 1, min(_STARTS, len(marks))).astype(int)
    found = [_values(np.unique(marks[places]), weights, means, deviations)]
    left, right = found[0][:, :-1], found[0][:, 1:]
    while left.size:
        middle = _values(0.5 * (left[0] + right[0]), weights, means, deviations)
        found.append(middle)
        halve = _misfit(left, middle, right) > _MISFIT * spread
        left, right = (np.hstack([a[:, halve], b[:, halve]]) for a, b in ((left, middle), (middle, right)))
    table = np.hstack(found)
    table = table[:, np.argsort(table[0], kind="stable")]
    return PPoly(_quintics(table[:, :-1], table[:, 1:]), table[0])


def _misfit(left: Array, middle: Array, right: Array) -> Array:
    """Return the midpoint errors of panels' polynomials times the width; rows are as in ``_values``.

    The density is included, because halfway up a step the function itself agrees by symmetry.
    """
    width = right[0] - left[0]
    slope = 15.0 / 8.0 * (right[1] - left[1]) / width - 7.0 / 16.0 * (left[2] + right[2])
    slope += width / 32.0 * (right[3] - left[3])
    function = 0.5 * (left[1] + right[1]) + 5.0 / 32.0 * width * (left[2] - right[2])
    function += width**2 / 64.0 * (left[3] + right[3])
    return np.asarray(width * (np.abs(function - middle[1]) + 0.25 * width * np.abs(slope - middle[2])))


def _quintics(left: Array, right: Array) -> Array:
    """Return the coefficients (6, P), highest first, of the quintics that match value and derivatives at both ends."""
    width = right[0] - left[0]
    value = right[1] - left[1] - width * left[2] - 0.5 * width**2 * left[3]
    slope = (right[2] - left[2] - width * left[3]) * width
    bend = (right[3] - left[3]) * width**2
    return np.stack([
        (6.0 * value - 3.0 * slope + 0.5 * bend) / width**5,
        (-15.0 * value + 7.0 * slope - bend) / width**4,
        (10.0 * value - 4.0 * slope + 0.5 * bend) / width**3,
        0.5 * left[3], left[2], left[1],
    ])  # fmt: skip


def _values(points: Array, weights: Array, means: Array, deviations: Array) -> Array:
    """Return (4, K): the points (K,), and the mixture's distribution function, density and its slope there."""
    from scipy.special import ndtr

    found = np.stack([points] * 4)
    heights = weights / (math.sqrt(2.0 * math.pi) * deviations)
    step = max(1, _CHUNK // len(weights))
    for start in range(0, len(points), step):
        rows = slice(start, start + step)
        z = (points[rows, None] - means) / deviations
        found[1, rows] = ndtr(z) @ weights
        bells = np.exp(-0.5 * z * z)
        found[2, rows] = bells @ heights
        found[3, rows] = (z * bells) @ (-heights / deviations)
    return found


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
