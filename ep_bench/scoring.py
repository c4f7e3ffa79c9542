"""Scores of predictions, computed from their definitions in the original units of the target.

The scores use the public methods of a prediction only, and share no kernel with the methods that are scored. The
continuous ranked probability score is in module ``crps``.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ep_bench.crps import crps, is_dense, pinball
from ep_bench.predictions import (
    AnyPrediction,
    Classification,
    ClassLabels,
    ClassProbabilities,
    DensityPrediction,
    PointPrediction,
    Predictive,
    QuantilePrediction,
)
from ep_bench.types import Array

LEVELS = (50, 90, 95)
_NEED_FINITE_STD = frozenset({"ll_gaussian", "crps", *(f"width{level}" for level in LEVELS)})
_INTERVAL_TAILS = tuple((1.0 - level / 100.0) / 2.0 for level in LEVELS)


def load() -> None:
    """Import the modules that scoring uses, so that the import is not part of a cell's time."""
    importlib.import_module("scipy.special")


def score(prediction: AnyPrediction, y: Array) -> dict[str, float]:
    """Return the scores of a prediction for test targets y (N,), by their column in results.csv.

    - ``rmse`` and ``mae`` score the mean.
    - ``ll`` is the mean test log-likelihood (nats per data point, original units of the target). ``ll_gaussian`` is
      that of the Gaussian with the same mean and variance.
    - ``pit_error`` is the mean absolute difference between the empirical distribution function of the PIT values and
      the uniform one, from 0 (calibrated) to 0.5.

    Point predictions have only the scores that need no density. Quantiles also have the coverage and width of the
    central intervals whose ends are available, and the CRPS and ``pit_error`` if they are dense. The CRPS of a
    density is omitted if its numerical error is too large (`crps`). Predictions of classes have the scores of
    `class_scores`.
    """
    if isinstance(prediction, ClassProbabilities | ClassLabels):
        return class_scores(prediction, y)
    squares = (y - prediction.mean()) ** 2
    scores = {
        "rmse": float(np.sqrt(squares.mean())),
        "mae": float(np.sqrt(squares).mean()),
        "se_std": float(squares.std()),
        "se_prct99": float(np.percentile(squares, 99)),
    }
    if isinstance(prediction, PointPrediction):
        return scores
    if isinstance(prediction, QuantilePrediction):
        dense = {"crps": crps(prediction, y), "pit_error": pit_error(prediction.pit(y))} if is_dense(prediction) else {}
        return scores | _quantile_interval_scores(prediction, y) | dense
    scores |= _density_scores(prediction, y) | _interval_scores(prediction, y)
    integral = crps(prediction, y)
    if not np.isnan(integral):
        scores["crps"] = integral
    if np.all(np.isfinite(prediction.variance())):
        return scores
    # The variance may be infinite, as for a Student-t; scores that need a finite one are then omitted.
    return {key: value for key, value in scores.items() if np.isfinite(value) or key not in _NEED_FINITE_STD}


def class_scores(prediction: Classification, y: Array) -> dict[str, float]:
    """Return the scores of predicted classes for test classes y (N,).

    - ``error_rate`` is the fraction of data points whose most probable class, the first one in a tie, is wrong.
    - ``ll`` is the mean log probability of the true class (nats); -inf if a true class has probability 0.
    - ``brier`` is the mean of sum_c (p_c - 1[y = c])^2 over all C classes (Brier 1950), from 0 to 2. For two classes it
      is twice the squared error of one class's probability, which is often called by the same name.

    Without probabilities there is only ``error_rate``.
    """
    scores = {"error_rate": float(_is_wrong(prediction, y).mean())}
    if isinstance(prediction, ClassLabels):
        return scores
    errors = prediction.probabilities.copy()
    errors[np.arange(len(errors)), prediction.indices(y)] -= 1.0
    return scores | {"ll": float(prediction.logpdf(y).mean()), "brier": float((errors**2).sum(axis=1).mean())}


def _is_wrong(prediction: Classification, y: Array) -> NDArray[np.bool_]:
    """Return which most probable classes (N,) differ from the classes y (N,)."""
    return np.asarray(prediction.mode() != prediction.classes[prediction.indices(y)])


def by_row(prediction: AnyPrediction, y: Array) -> dict[str, Array]:
    """Return scores (N,) per test point, for test targets y (N,) in original units.

    These are the absolute error ``ae``, whose mean is ``mae``, and the log density ``ll`` if there is one. In
    classification ``error`` replaces ``ae``: 1 if the most probable class is wrong, else 0. Its mean is ``error_rate``.
    """
    scores: dict[str, Array] = {}
    if isinstance(prediction, ClassProbabilities | ClassLabels):
        scores["error"] = _is_wrong(prediction, y).astype(np.float64)
    else:
        scores["ae"] = np.abs(y - prediction.mean())
    if isinstance(prediction, Predictive | DensityPrediction | ClassProbabilities):
        scores["ll"] = prediction.logpdf(y)
    return scores


def main_scores(prediction: AnyPrediction, y: Array) -> dict[str, float]:
    """Return ``rmse``, in classification ``error_rate``, and ``ll`` if there is a density.

    The targets y (N,) are in original units.
    """
    if isinstance(prediction, ClassProbabilities | ClassLabels):
        return {name: value for name, value in class_scores(prediction, y).items() if name != "brier"}
    scores = {"rmse": float(np.sqrt(np.mean((y - prediction.mean()) ** 2)))}
    if isinstance(prediction, Predictive | DensityPrediction):
        scores["ll"] = float(prediction.logpdf(y).mean())
    return scores


def tuning_score(prediction: AnyPrediction, y: Array, name: str) -> float | None:
    """Return the score ``name`` of a search for targets y (N,); None if this kind of prediction does not have it."""
    if name not in {"crps", "pinball"}:
        return main_scores(prediction, y).get(name)
    if isinstance(prediction, PointPrediction | ClassProbabilities | ClassLabels):
        return None
    if name == "pinball":
        return pinball(prediction, y)
    return None if isinstance(prediction, QuantilePrediction) and not is_dense(prediction) else crps(prediction, y)


def score_training(prediction: AnyPrediction, y: Array) -> dict[str, float]:
    """Return ``train_rmse``, except in classification, and ``train_ll`` if there is a density, for targets y (N,)."""
    scores = main_scores(prediction, y)
    return {f"train_{name}": value for name, value in scores.items() if name != "error_rate"}


def joined(parts: Sequence[Mapping[str, float]], fractions: Array) -> dict[str, float]:
    """Return the training scores of all data points from those of K blocks; ``fractions`` (K,) are the block sizes."""
    scores = {name: float(fractions @ np.array([part[name] for part in parts])) for name in parts[0]}
    if "train_rmse" in scores:
        scores["train_rmse"] = float(np.sqrt(fractions @ np.array([part["train_rmse"] ** 2 for part in parts])))
    return scores


def pit_error(pit: Array) -> float:
    """Return the area between the empirical distribution function of PIT values (N,) and the diagonal.

    The difference is linear between two neighbouring values, so the area is exact.
    """
    points = np.concatenate([[0.0], np.sort(pit), [1.0]])
    height = np.arange(len(pit) + 1) / len(pit)
    left, right = height - points[:-1], height - points[1:]
    # |line| from u=left to v=right over left - right: (u|u| - v|v|) / 2 is its integral.
    return float(np.sum(left * np.abs(left) - right * np.abs(right)) / 2.0)


def pit_histogram(prediction: AnyPrediction, y: Array) -> list[int]:
    """Return the numbers of PIT values in ten equal bins, for test targets y (N,).

    Empty without a density and without dense quantiles.
    """
    if isinstance(prediction, QuantilePrediction) and is_dense(prediction):
        pit = prediction.pit(y)
    elif isinstance(prediction, Predictive | DensityPrediction):
        pit = prediction.cdf(y)
    else:
        return []
    return [int(count) for count in np.histogram(pit, bins=10, range=(0.0, 1.0))[0]]


def _density_scores(prediction: Predictive | DensityPrediction, y: Array) -> dict[str, float]:
    densities = prediction.logpdf(y)
    return {
        "ll": float(densities.mean()),
        "ll_gaussian": float(prediction.logpdf_gaussian(y).mean()),
        "ll_median": float(np.median(densities)),
        "ll_std": float(densities.std()),
        "ll_prct1": float(np.percentile(densities, 1)),
    }


def _interval_scores(prediction: Predictive | DensityPrediction, y: Array) -> dict[str, float]:
    pit = prediction.cdf(y)
    scores = {"pit_error": pit_error(pit)}
    for level, tail in zip(LEVELS, _INTERVAL_TAILS, strict=True):
        scores[f"coverage{level}"] = float(np.mean((pit >= tail) & (pit <= 1.0 - tail)))
        width = prediction.quantile(1.0 - tail) - prediction.quantile(tail)
        scores[f"width{level}"] = float(width.mean())
    return scores


def _quantile_interval_scores(prediction: QuantilePrediction, y: Array) -> dict[str, float]:
    scores = {}
    for level in LEVELS:
        tail = round((1.0 - level / 100.0) / 2.0, 12)
        if prediction.answers(tail) and prediction.answers(1.0 - tail):
            low, high = prediction.quantile(tail), prediction.quantile(1.0 - tail)
            scores[f"coverage{level}"] = float(np.mean((low <= y) & (y <= high)))
            scores[f"width{level}"] = float((high - low).mean())
    return scores
