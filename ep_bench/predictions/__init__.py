"""Predictions of all kinds: mixtures of Gaussians, other densities, quantiles, points and classes."""

from __future__ import annotations

from ep_bench.predictions.classes import ClassLabels, ClassProbabilities
from ep_bench.predictions.density import DensityPrediction
from ep_bench.predictions.mixture import PointPrediction, Predictive, bisect_quantile, real_array
from ep_bench.predictions.quantiles import ASKED_LEVELS, QuantilePrediction

Classification = ClassProbabilities | ClassLabels
Prediction = Predictive | DensityPrediction | QuantilePrediction | PointPrediction
AnyPrediction = Prediction | Classification


def missing_density(prediction: AnyPrediction) -> str:
    """Return why a prediction has no log-likelihood, for the column ``reason``; empty if it has one."""
    if isinstance(prediction, ClassLabels):
        return "no log-likelihood: the method gives classes without probabilities"
    if isinstance(prediction, QuantilePrediction):
        return "no log-likelihood: the method gives quantiles only"
    if isinstance(prediction, PointPrediction):
        return "no log-likelihood: the method gives points only"
    return ""


__all__ = [
    "ASKED_LEVELS",
    "AnyPrediction",
    "ClassLabels",
    "ClassProbabilities",
    "Classification",
    "DensityPrediction",
    "PointPrediction",
    "Prediction",
    "Predictive",
    "QuantilePrediction",
    "bisect_quantile",
    "missing_density",
    "real_array",
]
