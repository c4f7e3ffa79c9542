"""Recalibration of a density by the distribution function R of its PIT values (Kuleshov, Fenner and Ermon 2018).

With the predicted distribution function F and density f, the recalibrated ones are R(F(y)) and R'(F(y)) f(y). R is
fitted to the values F(y) of held-out points. The isotonic regression of their empirical distribution function on
themselves is this function; it is interpolated linearly between some of its points, so that it has a density. Their
number grows as the cube root of the number of held-out points, so that R becomes the identity for a calibrated method.
In the tails, ranks of points double, so that coverage is right there too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ep_bench.predictions import DensityPrediction, Predictive, bisect_quantile
from ep_bench.types import Array

_EDGE = 1e-12  # smallest distance of a PIT value from 0 and 1
_BELOW_ONE = float(np.nextafter(1.0, 0.0))
_NODES = (0.5 - np.sqrt(1.0 / 12.0), 0.5 + np.sqrt(1.0 / 12.0))  # of the Gauss rule with two equal weights on [0, 1]


def evidence(prediction: Any, y: Array) -> Array:
    """Return the PIT values (m,) of held-out targets y (m,). Raises TypeError without a density."""
    if not isinstance(prediction, Predictive | DensityPrediction):
        raise TypeError("isotonic recalibration needs a predictive density; use `recalibrate: conformal`")
    return np.clip(prediction.cdf(y), _EDGE, 1.0 - _EDGE)


def recalibrate(predictions: Sequence[Predictive | DensityPrediction], evidences: Sequence[Array]) -> DensityPrediction:
    """Return the equal mixture of K predictions, each recalibrated by the PIT values of all K models."""
    curve = PitCurve(np.concatenate(evidences))
    parts = [_recalibrated(prediction, curve) for prediction in predictions]
    return parts[0] if len(parts) == 1 else _mixture(parts)


class PitCurve:
    """The distribution function R of PIT values (n,): linear between knots u (K,) with the levels R(u) (K,)."""

    def __init__(self, pit: Array) -> None:
        ranks = _ranks(len(pit))
        knots = np.concatenate([[0.0], np.sort(pit)[ranks - 1], [1.0]])
        levels = np.concatenate([[0.0], ranks / (len(pit) + 1.0), [1.0]])
        self.knots, first = np.unique(knots, return_index=True)
        last = np.append(first[1:], len(knots)) - 1
        # Of equal knots, that with the most probability between it and the nearer end.
        self.levels: Array = levels[np.where(self.knots < 0.5, last, first)]
        self._slopes = np.diff(self.levels) / np.diff(self.knots)

    def __call__(self, u: Array) -> Array:
        """Return R(u), in the shape of u."""
        return np.asarray(np.interp(u, self.knots, self.levels))

    def log_slope(self, u: Array) -> Array:
        """Return log R'(u), in the shape of u."""
        place = np.searchsorted(self.knots, u, side="right") - 1
        return np.asarray(np.log(self._slopes[np.clip(place, 0, len(self._slopes) - 1)]))

    def inverse(self, p: float) -> float:
        """Return the u in (0, 1) with R(u) = p."""
        u = float(np.interp(p, self.levels, self.knots))
        return min(max(u, np.finfo(np.float64).tiny), _BELOW_ONE)


def _ranks(n: int) -> Array:
    """Return the ranks (from 1 to n) of the order statistics at which R is kept: a step, and powers of two below it."""
    step = max(1, round(n ** (2.0 / 3.0)))
    powers = 2 ** np.arange(int(np.log2(step)) + 1)
    lower = np.concatenate([powers[powers < step], np.arange(step, (n + 1) // 2 + 1, step)])
    return np.unique(np.concatenate([lower, n + 1 - lower]))


def _recalibrated(prediction: Predictive | DensityPrediction, curve: PitCurve) -> DensityPrediction:
    def quantile(p: float) -> Array:
        return prediction.quantile(curve.inverse(p))

    mean, variance = _moments(quantile, curve.levels)
    return DensityPrediction(
        logpdf=lambda y: prediction.logpdf(y) + curve.log_slope(prediction.cdf(y)),
        cdf=lambda y: curve(prediction.cdf(y)),
        mean=mean,
        variance=np.where(np.isfinite(prediction.variance()), variance, np.inf),
        quantile=quantile,
    )


def _moments(quantile: Any, levels: Array) -> tuple[Array, Array]:
    """Return means and variances (N,), integrals of the quantiles over the probabilities between the levels (K,)."""
    width = np.diff(levels)
    nodes = np.concatenate([levels[:-1] + node * width for node in _NODES])
    values = np.array([quantile(float(p)) for p in nodes])
    weights = np.tile(width / 2.0, 2)
    mean: Array = weights @ values
    return mean, np.asarray(weights @ (values - mean) ** 2)


def _mixture(parts: Sequence[DensityPrediction]) -> DensityPrediction:
    """Return the equal mixture of K densities."""
    means = np.array([part.mean() for part in parts])
    mean = means.mean(axis=0)

    def cdf(y: Array) -> Array:
        return np.asarray(np.mean([part.cdf(y) for part in parts], axis=0))

    def quantile(p: float) -> Array:
        ends = np.array([part.quantile(p) for part in parts])
        return bisect_quantile(cdf, p, ends.min(axis=0), ends.max(axis=0))

    return DensityPrediction(
        logpdf=lambda y: np.logaddexp.reduce([part.logpdf(y) for part in parts]) - np.log(len(parts)),
        cdf=cdf,
        mean=mean,
        variance=np.mean([part.variance() for part in parts], axis=0) + ((means - mean) ** 2).mean(axis=0),
        quantile=quantile,
    )
