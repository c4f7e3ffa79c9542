"""What makes the scores of a prediction not finite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ep_bench.predictions import (
    AnyPrediction,
    ClassLabels,
    ClassProbabilities,
    DensityPrediction,
    Predictive,
    QuantilePrediction,
)
from ep_bench.types import Array


def reason(prediction: AnyPrediction, y: Array, names: Sequence[str]) -> str:
    """Return what makes scores at test targets y (N,) not finite, in words; empty if it is something else.

    In classification these are test classes with predicted probability 0, in regression means, standard deviations,
    quantiles, or log densities where the former are finite.
    """
    if isinstance(prediction, ClassProbabilities):
        is_zero = np.isneginf(prediction.logpdf(y))
        if not is_zero.any():
            return ""
        classes = ", ".join(names[index] for index in np.unique(prediction.indices(y)[is_zero]))
        return (
            f"{is_zero.sum()} of {len(is_zero)} test points belong to classes with predicted probability 0: {classes}"
        )
    if isinstance(prediction, ClassLabels):
        return ""
    is_finite = np.isfinite(np.asarray(prediction.mean()))
    found: list[tuple[Any, str]] = [(~is_finite, "predictive means are not finite")]
    if isinstance(prediction, QuantilePrediction):
        found += [(~np.isfinite(prediction.given).all(axis=0), "points have predictive quantiles that are not finite")]
    if isinstance(prediction, Predictive | DensityPrediction):
        deviations = np.asarray(prediction.std())
        # Infinite ones are allowed, as of a Student-t distribution.
        found += [(np.isnan(deviations) & is_finite, "predictive standard deviations are NaN")]
        found += [(deviations == 0.0, "predictive standard deviations are 0")]
        is_known = is_finite & ~np.isnan(deviations) & (deviations != 0.0)
        found += [(~np.isfinite(prediction.logpdf(y)) & is_known, "log densities of test targets are not finite")]
    return ", ".join(f"{wrong.sum()} of {len(y)} {what}" for wrong, what in found if wrong.any())
