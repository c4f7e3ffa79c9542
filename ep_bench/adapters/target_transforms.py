"""Predictions for a target y from those for a transformed target z, as in scikit-learn's TransformedTargetRegressor.

===========  ==============================================================================
symbol       meaning
===========  ==============================================================================
z = t(y)     transform, strictly increasing
y = h(z)     its inverse
F, f, Q      distribution function, density and quantiles of z
===========  ==============================================================================

An affine inverse rescales the prediction. With any other, y has the distribution function F(t(y)), the quantiles
h(Q(p)) and the density f(z) / h'(z). h' is a difference quotient of five points, with a relative error of about 1e-11.
Mean and variance are integrals of h(Q(Phi(x))) over a standard Gaussian x, by Gauss-Hermite quadrature.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ep_bench.predictions import DensityPrediction, PointPrediction, Prediction, QuantilePrediction
from ep_bench.types import Array

_PROBES = np.array([-1000.0, -1.0, 0.0, 1.0, 1000.0])  # values of z that show whether the inverse is affine
_STEP = 1e-3  # of the difference quotient, in standard deviations of z
_NODES, _TAIL = 32, 1e-15  # of the quadrature; smallest probability of a quantile
_TAIL_WEIGHT = 1e-6  # weight of a node in the tails, where an inverse may end or be constant

Function = Callable[[Array], Array]


def of_target(prediction: Prediction, transformer: Any) -> Prediction:
    """Return the prediction (N,) for y from that for z. Raises ValueError unless the inverse is strictly increasing."""
    inverse, forward = _by_element(transformer.inverse_transform), _by_element(transformer.transform)
    if isinstance(prediction, PointPrediction):
        return PointPrediction(inverse(prediction.values))
    shift, scale = _affine(inverse)
    if scale is not None:
        _require(scale > 0.0)
        return prediction.rescale(shift, scale)
    if isinstance(prediction, QuantilePrediction):
        _require(np.all(np.diff(inverse(prediction.values), axis=0) >= 0.0))
        points = None if prediction.points is None else inverse(prediction.points)
        return QuantilePrediction(prediction.levels, inverse(prediction.given), points)
    return _density(prediction, inverse, forward)


def _by_element(transform: Callable[[Array], Any]) -> Function:
    """Return a transform of columns as a function of arrays of any shape."""

    def function(values: Array) -> Array:
        with (
            np.errstate(all="ignore"),
            warnings.catch_warnings(action="ignore"),
        ):  # of values that the transform does not reach, which become NaN
            return np.asarray(transform(values.reshape(-1, 1)), dtype=np.float64).reshape(values.shape)

    return function


def _affine(inverse: Function) -> tuple[float, float | None]:
    """Return shift and scale of an affine inverse; the scale is None for any other."""
    found = inverse(_PROBES)
    shift, scale = float(found[2]), float(found[-1] - found[0]) / float(_PROBES[-1] - _PROBES[0])
    with np.errstate(invalid="ignore"):
        is_affine = np.allclose(found, shift + scale * _PROBES, rtol=1e-12, atol=1e-12 * (abs(shift) + abs(scale)))
    return shift, scale if is_affine else None


def _density(prediction: Any, inverse: Function, forward: Function) -> DensityPrediction:
    """Return the density of y from a mixture or another density of z."""
    from scipy.special import ndtr

    std = prediction.std()
    step = _STEP * np.where(np.isfinite(std) & (std > 0.0), std, 1.0)

    def logpdf(y: Array) -> Array:
        z = forward(y)
        inside = np.isfinite(z)  # outside, y is no value of the inverse
        z = np.where(inside, z, prediction.mean())
        one, two = (inverse(z + k * step) - inverse(z - k * step) for k in (1.0, 2.0))
        slope = (8.0 * one - two) / (12.0 * step)
        _require(np.all(slope > 0.0))
        return np.where(inside, prediction.logpdf(z) - np.log(slope), -np.inf)

    def cdf(y: Array) -> Array:
        z = forward(y)
        return np.where(np.isnan(z), 0.0, prediction.cdf(np.where(np.isnan(z), 0.0, z)))

    def quantile(p: float) -> Array:
        return inverse(prediction.quantile(p))

    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    values = np.array([quantile(float(p)) for p in np.clip(ndtr(nodes), _TAIL, 1.0 - _TAIL)])
    weights /= weights.sum()
    _require(np.all(np.diff(values[weights > _TAIL_WEIGHT], axis=0) > 0.0))
    values = np.where(np.isfinite(values), values, values[_NODES // 2])
    mean = weights @ values
    variance = weights @ (values - mean) ** 2
    return DensityPrediction(logpdf=logpdf, cdf=cdf, mean=mean, variance=variance, quantile=quantile)


def _require(increasing: Any) -> None:
    if not increasing:
        raise ValueError(
            "the inverse transform of the target is not strictly increasing and finite where the prediction has its "
            "probability, so that its density cannot be transformed back; scalers, the logarithm and roots can be"
        )
