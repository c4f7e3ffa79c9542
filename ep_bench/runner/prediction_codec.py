"""Predictions as plain values and arrays, for the transfer between processes.

A density is transferred as its mean, its variance and its quantiles at fixed levels; the process that predicted answers
for the rest. Everything that is decoded is checked, because it may come from any code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ep_bench.predictions import (
    AnyPrediction,
    ClassLabels,
    ClassProbabilities,
    DensityPrediction,
    PointPrediction,
    Predictive,
    QuantilePrediction,
)
from ep_bench.types import Array

T = TypeVar("T")
Encoded = tuple[dict[str, Any], list[NDArray[Any]]]
_SAME_SUM = 1e-12  # probabilities of a row whose sum differs by less were divided by their sum already


class Answers(Protocol):
    """The rest of a density: functions of another process, (K, N) or (N,) -> the same shape; p -> (N,)."""

    def logpdf(self, y: Array) -> Array: ...
    def cdf(self, y: Array) -> Array: ...
    def quantile(self, p: float) -> Array: ...


def encode(prediction: AnyPrediction, levels: Sequence[float]) -> Encoded:
    """Return a prediction as plain values and arrays; ``levels`` are the quantiles of a density to include."""
    kind = type(prediction).__name__
    if isinstance(prediction, Predictive):
        return {"kind": kind, "beyond": float(prediction.beyond)}, [
            prediction.weights, prediction.means, prediction.variances
        ]  # fmt: skip
    if isinstance(prediction, DensityPrediction):
        known = np.array([prediction.quantile(level) for level in levels]).reshape(len(levels), len(prediction))
        return {"kind": kind}, [prediction.mean(), prediction.variance(), known]
    if isinstance(prediction, QuantilePrediction):
        points = [] if prediction.points is None else [prediction.points]
        return {"kind": kind}, [prediction.levels, prediction.given, *points]
    if isinstance(prediction, PointPrediction):
        return {"kind": kind}, [np.asarray(prediction.values, dtype=np.float64)]
    if isinstance(prediction, ClassProbabilities):
        return {"kind": kind}, [prediction.probabilities, np.asarray(prediction.classes).astype(np.int64)]
    return {"kind": kind}, [prediction.values, np.asarray(prediction.classes).astype(np.int64)]


def decode(
    header: Mapping[str, Any], arrays: Sequence[NDArray[Any]], n: int, levels: Sequence[float], answers: Answers
) -> AnyPrediction:
    """Return the prediction of n data points. Raises ValueError if the values are not those of a prediction."""
    kind = header.get("kind")
    if kind == "ClassLabels" and len(arrays) == 2:
        labels, classes = (_integers(array) for array in arrays)
        if labels.shape != (n,) or not np.isin(labels, np.arange(len(classes))).all():
            raise ValueError("labels that are no classes")
        return ClassLabels(labels, classes)
    if kind == "ClassProbabilities" and len(arrays) == 2:
        return _probabilities(_numbers(arrays[0]), _integers(arrays[1]), n)
    found = [_numbers(array) for array in arrays]
    if kind == "Predictive" and len(found) == 3:
        beyond = header.get("beyond", 0.0)
        return _of_length(Predictive(found[0], found[1], found[2], float(beyond)), n, found[1].shape[1:])
    if kind == "DensityPrediction" and len(found) == 3:
        return _density(found, n, levels, answers)
    if kind == "QuantilePrediction" and len(found) in {2, 3}:
        return _of_length(
            QuantilePrediction(found[0], found[1], found[2] if len(found) == 3 else None), n, found[1].shape[1:]
        )
    if kind == "PointPrediction" and len(found) == 1:
        return _of_length(PointPrediction(found[0]), n, found[0].shape)
    raise ValueError("values that are no prediction")


def _density(found: Sequence[Array], n: int, levels: Sequence[float], answers: Answers) -> DensityPrediction:
    mean, variance, known = found
    if mean.shape != (n,) or known.shape != (len(levels), n):
        raise ValueError("values that are no density")
    quantiles = dict(zip(levels, known, strict=True))

    def quantile(p: float) -> Array:
        return quantiles[p] if p in quantiles else answers.quantile(p)

    return DensityPrediction(
        logpdf=answers.logpdf, cdf=answers.cdf, mean=mean, variance=variance, quantile=quantile, broadcasts=True
    )


def _probabilities(table: Array, classes: NDArray[np.int64], n: int) -> ClassProbabilities:
    if table.shape != (n, len(classes)):
        raise ValueError(f"probabilities of shape {table.shape}")
    found = ClassProbabilities(table, classes)
    if np.abs(table.sum(axis=1) - 1.0).max(initial=0.0) < _SAME_SUM:
        found.probabilities = table  # a second division would change the last digit
    return found


def _of_length(prediction: T, n: int, shape: tuple[int, ...]) -> T:
    if shape != (n,):
        raise ValueError(f"a prediction of shape {shape} for {n} data points")
    return prediction


def _numbers(array: NDArray[Any]) -> Array:
    if array.dtype != np.float64:
        raise ValueError(f"numbers of type {array.dtype}")
    return array


def _integers(array: NDArray[Any]) -> NDArray[np.int64]:
    if array.dtype != np.int64 or array.ndim != 1:
        raise ValueError(f"integers of type {array.dtype}")
    return array
