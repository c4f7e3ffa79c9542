"""Scores of predictions of any kind of `ep_bench.predictions`, for targets y (N,) in the units of the prediction."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ep_bench import crps as _crps
from ep_bench.predictions import (
    ClassLabels,
    ClassProbabilities,
    DensityPrediction,
    PointPrediction,
    Prediction,
    Predictive,
    QuantilePrediction,
)
from ep_bench.types import Array

Distribution = Predictive | DensityPrediction | QuantilePrediction
_T = TypeVar("_T")


def rmse(prediction: Prediction, y: ArrayLike) -> float:
    """Return the root mean squared error of the means, or of the medians of quantiles without means."""
    found = _other_than(prediction, (ClassProbabilities, ClassLabels), "RMSE")
    return float(np.sqrt(np.mean((_targets(y) - found.mean()) ** 2)))


def log_likelihood(prediction: Predictive | DensityPrediction | ClassProbabilities, y: ArrayLike) -> float:
    """Return the mean log density, or log probability of the true classes, in nats. Raises TypeError without one."""
    found = _other_than(prediction, (PointPrediction, QuantilePrediction, ClassLabels), "log-likelihood")
    return float(found.logpdf(np.asarray(y)).mean())


def crps(prediction: Distribution, y: ArrayLike) -> float:
    """Return the mean continuous ranked probability score; of quantiles, twice the weighted mean pinball loss."""
    return _crps.crps(_distribution(prediction, "CRPS"), _targets(y))


def pinball(prediction: Distribution, y: ArrayLike) -> float:
    """Return the mean pinball loss over the levels of the quantiles, or over ``ASKED_LEVELS`` of a density."""
    return _crps.pinball(_distribution(prediction, "pinball loss"), _targets(y))


def interval_score(prediction: Distribution, y: ArrayLike, level: float = 0.9) -> float:
    """Return the mean interval score of the central interval of probability ``level`` (Winkler 1972), lower is better.

    It is the width, plus 2 / (1 - level) times the distance of a target outside the interval.
    """
    low, high = _interval(prediction, level)
    targets = _targets(y)
    outside = np.maximum(low - targets, 0.0) + np.maximum(targets - high, 0.0)
    return float(np.mean(high - low + 2.0 / (1.0 - level) * outside))


def pit(prediction: Distribution, y: ArrayLike) -> Array:
    """Return the probabilities (N,) below the targets, which are uniform if the prediction is calibrated."""
    found = _distribution(prediction, "PIT")
    return found.pit(_targets(y)) if isinstance(found, QuantilePrediction) else found.cdf(_targets(y))


def coverage(prediction: Distribution, y: ArrayLike, level: float = 0.9) -> float:
    """Return the fraction of targets inside the central interval of probability ``level``."""
    low, high = _interval(prediction, level)
    return float(np.mean((low <= _targets(y)) & (_targets(y) <= high)))


def _interval(prediction: Distribution, level: float) -> tuple[Array, Array]:
    found, tail = _distribution(prediction, "interval"), round((1.0 - level) / 2.0, 12)
    return found.quantile(tail), found.quantile(1.0 - tail)


def _targets(y: ArrayLike) -> Array:
    return np.asarray(y, dtype=np.float64)


def _distribution(prediction: Distribution, score: str) -> Distribution:
    return _other_than(prediction, (PointPrediction, ClassProbabilities, ClassLabels), score)


def _other_than(prediction: _T, kinds: tuple[type, ...], score: str) -> _T:
    if isinstance(prediction, kinds):
        raise TypeError(f"{type(prediction).__name__} has no {score}")
    return prediction
