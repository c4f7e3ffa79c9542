"""Conformal prediction: quantiles whose coverage holds for any model and any distribution of exchangeable points.

For a density, the residuals of n held-out points are divided by its standard deviations (Lei et al. 2018); with
predicted mean m and standard deviation s, the values m + s r_i have the probability 1 / (n + 1) each, and the rest is
beyond them: a conformal predictive distribution (Vovk et al. 2017). For points, s is 1. For quantiles, each level is
shifted by its own residuals, as in conformalised quantile regression (Romano, Patterson and Candes 2019). Central
intervals of probability 1 - a contain a new target with a probability from 1 - a to 1 - a + 1 / (n + 1). Levels for
which n points do not suffice are left out.

With K models, the values of all their held-out points are pooled (cross-conformal prediction, Vovk 2015). What is then
guaranteed is 1 - 2 a (Barber et al. 2021); it is usually close to 1 - a.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ep_bench.predictions import (
    ASKED_LEVELS,
    DensityPrediction,
    PointPrediction,
    Predictive,
    QuantilePrediction,
)
from ep_bench.types import Array, Indices

_LARGEST = 2**22  # values of a pool that are sorted at once
_ROUNDING = 1e-9  # of a level times the number of points


def evidence(prediction: Any, y: Array) -> Array:
    """Return the residuals of held-out targets y (m,), relative to the scale: (Q, m) for quantiles, else (1, m).

    Raises ValueError if a scale is 0.
    """
    base, scale = _base(prediction), _scale(prediction)
    if np.any(scale <= 0.0):
        raise ValueError("predictive standard deviations are 0, by which conformal residuals are divided")
    return (y - base) / scale


def recalibrate(predictions: Sequence[Any], evidences: Sequence[Array]) -> QuantilePrediction:
    """Return the conformal quantiles of K models with the residuals of their held-out points."""
    first = predictions[0]
    levels = np.array(first.levels if isinstance(first, QuantilePrediction) else ASKED_LEVELS)
    ranks = _ranks(levels, sum(residuals.shape[1] for residuals in evidences))
    known = ranks > 0
    if not known.any():
        raise ValueError("too few held-out points for any of the quantiles")
    parts = [(_base(one), _scale(one), each) for one, each in zip(predictions, evidences, strict=True)]
    rows = np.arange(len(levels)) if len(evidences[0]) > 1 else np.zeros(len(levels), dtype=np.int64)
    values = np.empty((known.sum(), len(first.mean())))
    for row in np.unique(rows[known]):
        here = rows[known] == row
        values[here] = _order_statistics(
            [(base[row], scale, residuals[row]) for base, scale, residuals in parts], ranks[known][here]
        )
    return QuantilePrediction(levels[known], values, _means(predictions))


def _ranks(levels: Array, n: int) -> Indices:
    """Return the ranks among n values of the quantiles at levels (Q,), 0 where n does not suffice.

    The two ends of a central interval are rounded so that at least its probability is between them, but not 1 / (n + 1)
    more: of the 2 p (n + 1) values outside, rounded down, the lower tail has the smaller half.
    """
    tails = np.minimum(levels, 1.0 - levels) * (n + 1) + _ROUNDING
    lower, upper = np.floor(tails), n + 1 - np.floor(tails + 0.5)
    ranks = np.where(levels <= 0.5, lower, upper).astype(np.int64)
    return np.where((ranks >= 1) & (ranks <= n), ranks, 0)


def _order_statistics(parts: Sequence[tuple[Array, Array, Array]], ranks: Indices) -> Array:
    """Return the values of these ranks (R, N) among base (N,) + scale (N,) * residuals (m,) of all parts."""
    if len(parts) == 1:
        ((base, scale, residuals),) = parts
        return np.asarray(base + scale * np.sort(residuals)[ranks - 1, None])
    n, size = sum(len(residuals) for _, _, residuals in parts), len(parts[0][0])
    found = np.empty((len(ranks), size))
    block = max(1, _LARGEST // n)
    for start in range(0, size, block):
        at = slice(start, start + block)
        pool = [base[at] + scale[at] * residuals[:, None] for base, scale, residuals in parts]
        found[:, at] = np.sort(np.concatenate(pool), axis=0)[ranks - 1]
    return found


def _base(prediction: Any) -> Array:
    """Return what residuals are measured from: quantiles (Q, N), or means (1, N), medians if there is no variance."""
    if isinstance(prediction, QuantilePrediction):
        return prediction.values
    if isinstance(prediction, PointPrediction) or np.isfinite(prediction.variance()).all():
        return np.asarray(prediction.mean())[None, :]
    return np.asarray(prediction.quantile(0.5))[None, :]


def _scale(prediction: Any) -> Array:
    """Return the unit (N,) of residuals: 1, standard deviations, or half-widths of the central 68 % interval."""
    if not isinstance(prediction, Predictive | DensityPrediction):
        return np.ones(len(prediction.mean()))
    std: Array = prediction.std()
    if np.isfinite(std).all():
        return std
    return np.asarray(0.5 * (prediction.quantile(0.84) - prediction.quantile(0.16)))


def _means(predictions: Sequence[Any]) -> Array | None:
    """Return the means (N,) of the predicted means of K models; None if quantiles have none."""
    if any(isinstance(one, QuantilePrediction) and one.points is None for one in predictions):
        return None
    return np.asarray(np.mean([one.mean() for one in predictions], axis=0))
