"""Scores of predictive distributions: each from its definition, in the target's original units.

Every score is computed from what a ``Predictive`` answers, with no kernel shared with the methods that it judges.
The continuous ranked probability score comes from scoringrules.
"""

from __future__ import annotations

import importlib

import numpy as np

from ep_bench.types import Array, PointPrediction, Predictive

LEVELS = (50, 90, 95)
_OF_DEVIATION = frozenset({"ll_gaussian", "crps", *(f"width{level}" for level in LEVELS)})
_CHUNK = 2**22  # numbers in the largest temporary of a mixture's CRPS


def load() -> None:
    """Import what scoring rests on, which takes seconds, so that no cell is charged with it."""
    importlib.import_module("scoringrules")


def score(prediction: Predictive | PointPrediction, y: Array) -> dict[str, float]:
    """Return the scores of test rows with targets y (N,), named as in results.csv; original units.

    ``rmse`` and ``mae`` judge the mean; ``ll`` is the mean log density of the distribution given, ``ll_gaussian`` that
    of the Gaussian with the same moments; ``pit_error`` is the mean absolute difference between the distribution
    function of the PIT values and the uniform one, 0 (calibrated) to 0.5. A point prediction has only the scores
    that need no density.
    """
    squares = (y - prediction.mean()) ** 2
    scores = {
        "rmse": float(np.sqrt(squares.mean())),
        "mae": float(np.sqrt(squares).mean()),
        "se_std": float(squares.std()),
        "se_prct99": float(np.percentile(squares, 99)),
    }
    if isinstance(prediction, PointPrediction):
        return scores
    scores |= _density_scores(prediction, y) | _interval_scores(prediction, y) | {"crps": crps(prediction, y)}
    if np.all(np.isfinite(prediction.variance())):
        return scores
    # A deviation may be infinite, as a Student-t's; the scores that rest on it are then left out.
    return {key: value for key, value in scores.items() if np.isfinite(value) or key not in _OF_DEVIATION}


def main_scores(prediction: Predictive | PointPrediction, y: Array) -> dict[str, float]:
    """Return ``rmse`` and, where there is a density, ``ll``, of rows with targets y (N,); original units."""
    scores = {"rmse": float(np.sqrt(np.mean((y - prediction.mean()) ** 2)))}
    if isinstance(prediction, Predictive):
        scores["ll"] = float(prediction.logpdf(y).mean())
    return scores


def score_training(prediction: Predictive | PointPrediction, y: Array) -> dict[str, float]:
    """Return ``train_rmse`` and, where there is a density, ``train_ll`` of the training rows."""
    return {f"train_{name}": value for name, value in main_scores(prediction, y).items()}


def crps(prediction: Predictive, y: Array) -> float:
    """Return the mean continuous ranked probability score, in the unit of y."""
    import scoringrules

    deviations = np.sqrt(prediction.variances)
    if len(prediction.weights) == 1:
        return float(np.mean(scoringrules.crps_normal(y, prediction.means[0], deviations[0])))
    components = len(prediction.weights)
    step = max(1, _CHUNK // components**2)
    parts = [
        scoringrules.crps_mixnorm(
            y[start : start + step],
            prediction.means[:, start : start + step].T,
            deviations[:, start : start + step].T,
            np.broadcast_to(prediction.weights, (len(y[start : start + step]), components)),
        )
        for start in range(0, len(y), step)
    ]
    return float(np.concatenate([np.atleast_1d(part) for part in parts]).mean())


def pit_error(pit: Array) -> float:
    """Return the area between the empirical distribution function of PIT values (N,) and the diagonal, exactly.

    Between two neighbouring values the difference is a straight line, whose absolute area is a triangle or two.
    """
    points = np.concatenate([[0.0], np.sort(pit), [1.0]])
    height = np.arange(len(pit) + 1) / len(pit)
    left, right = height - points[:-1], height - points[1:]
    # |line| from u=left to v=right over left - right: (u|u| - v|v|) / 2 is its integral.
    return float(np.sum(left * np.abs(left) - right * np.abs(right)) / 2.0)


def _density_scores(prediction: Predictive, y: Array) -> dict[str, float]:
    densities = prediction.logpdf(y)
    return {
        "ll": float(densities.mean()),
        "ll_gaussian": float(prediction.logpdf_gaussian(y).mean()),
        "ll_median": float(np.median(densities)),
        "ll_std": float(densities.std()),
        "ll_prct1": float(np.percentile(densities, 1)),
    }


def _interval_scores(prediction: Predictive, y: Array) -> dict[str, float]:
    pit = prediction.cdf(y)
    scores = {"pit_error": pit_error(pit)}
    for level in LEVELS:
        tail = (1.0 - level / 100.0) / 2.0
        scores[f"coverage{level}"] = float(np.mean((pit >= tail) & (pit <= 1.0 - tail)))
        width = prediction.quantile(1.0 - tail) - prediction.quantile(tail)
        scores[f"width{level}"] = float(width.mean())
    return scores
