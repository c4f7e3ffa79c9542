"""How far predictive distributions are from one that is taken for the truth, of an observation, noise included.

For distribution functions F of a method and G of the reference, in the unit of the target:

- 1-Wasserstein distance: the integral of |F - G|.
- Expected CRPS of F where observations come from G: the integral of G (1 - G), which is the reference's own and the
  least that there is, plus its excess, the integral of (F - G)^2 (Cramer's distance).

A mixture's distribution function becomes piecewise quintic once, exact with two derivatives at points that follow the
components, so that thousands of them cost no more in a comparison than one; panels are halved until the polynomial
meets the function midway. All integrals are then those of the polynomials, to 1e-6 or better of the range over which
the distributions spread. Nothing here is shared with the methods that are judged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ep_bench.types import Array, Predictive

if TYPE_CHECKING:
    from scipy.interpolate import PPoly

_MARKS = np.array([-8.3, -2.5, 0.0, 2.5, 8.3])  # deviations from a component's mean; 5e-17 lies beyond the ends
_STARTS = 33  # points to begin with, evenly among the marks of all components
_MISFIT = 1e-7  # the most that a panel's error may matter, relative to the range
_NARROWEST = 1e-6  # a component's deviation, relative to the range: what is narrower, a point too, is as wide as that
_CHUNK = 2**15  # numbers in a temporary; small enough for a processor's cache
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)  # exact to degree 11; squares of quintics have 10


class DistributionDistances(NamedTuple):
    """Distances from the reference at each of N inputs."""

    wasserstein: Array  # (N,)
    excess: Array  # (N,) of the expected CRPS over the reference's own


def tabulate(prediction: Predictive) -> list[PPoly]:
    """Return the distribution functions of N observations as piecewise quintics between their outermost points.

    Raises ValueError where a mean or a variance is not finite.
    """
    if not (np.isfinite(prediction.means).all() and np.isfinite(prediction.variances).all()):
        raise ValueError("a mean or a variance of a predictive distribution is not finite")
    columns = zip(prediction.means.T, np.sqrt(prediction.variances).T, strict=True)
    return [_tabulated(prediction.weights, means, deviations) for means, deviations in columns]


def compare(method: Sequence[PPoly], reference: Sequence[PPoly]) -> DistributionDistances:
    """Return the distances of a method's distributions from the reference's, both as ``tabulate`` returns them."""
    pairs = [_distances(*pair) for pair in zip(method, reference, strict=True)]
    return DistributionDistances(*np.array(pairs, dtype=np.float64).T)


def own_crps(reference: Sequence[PPoly]) -> Array:
    """Return the expected CRPS (N,) of distributions where observations come from themselves."""
    return np.array([_own(curve) for curve in reference])


def _tabulated(weights: Array, means: Array, deviations: Array) -> PPoly:
    from scipy.interpolate import PPoly

    low, high = (means - 8.3 * deviations).min(), (means + 8.3 * deviations).max()
    spread = (high - low) or 1e-6 * max(1.0, abs(low))  # one point alone
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
    """Return how far panels' polynomials miss the function midway, times the width; rows as those of ``_values``.

    The density too, since halfway up a step the function itself is met by symmetry.
    """
    width = right[0] - left[0]
    slope = 15.0 / 8.0 * (right[1] - left[1]) / width - 7.0 / 16.0 * (left[2] + right[2])
    slope += width / 32.0 * (right[3] - left[3])
    function = 0.5 * (left[1] + right[1]) + 5.0 / 32.0 * width * (left[2] - right[2])
    function += width**2 / 64.0 * (left[3] + right[3])
    return np.asarray(width * (np.abs(function - middle[1]) + 0.25 * width * np.abs(slope - middle[2])))


def _quintics(left: Array, right: Array) -> Array:
    """Return the coefficients (6, P), highest first, of the quintics with the values and derivatives of both ends."""
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
    """Return the integrals of |F - G| and of (F - G)^2, on panels that end where either's do and where F crosses G."""
    points = np.union1d(method.x, reference.x)
    gap = _at(method, points) - _at(reference, points)
    crosses = gap[:-1] * gap[1:] < 0.0
    left, right = points[:-1][crosses], points[1:][crosses]
    share = gap[:-1][crosses] / (gap[:-1] - gap[1:])[crosses]
    nodes, half = _panels(np.union1d(points, left + share * (right - left)))
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
    """Return the distribution function at points, beyond the outermost ones that of these: 0 and 1."""
    return np.asarray(curve(np.clip(points, curve.x[0], curve.x[-1])))
