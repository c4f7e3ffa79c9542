"""What makes the scores of a prediction not finite."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ep_bench.predictions import AnyPrediction, ClassLabels, ClassProbabilities, DensityPrediction, Predictive
from ep_bench.types import Array


def reason(prediction: AnyPrediction, y: Array, names: Sequence[str]) -> str:
    """Return what makes scores at test targets y (N,) not finite, in words; empty if it is something else.

    In classification these are test classes with predicted probability 0, in regression means or standard deviations.
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
    found = [(~np.isfinite(np.asarray(prediction.mean())), "predictive means are not finite")]
    if isinstance(prediction, Predictive | DensityPrediction):
        deviations = np.asarray(prediction.std())
        found += [(np.isnan(deviations), "predictive standard deviations are NaN")]  # infinite ones are allowed
        found += [(deviations == 0.0, "predictive standard deviations are 0")]
    return ", ".join(f"{wrong.sum()} of {len(y)} {what}" for wrong, what in found if wrong.any())
