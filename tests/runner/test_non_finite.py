"""Words for what makes scores not finite."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ep_bench.predictions import AnyPrediction, DensityPrediction, Predictive, QuantilePrediction
from ep_bench.runner.cell import why_not_finite as reason

NAN, INF = float("nan"), float("inf")
WIDE = stats.t(1.5, np.zeros(2), np.ones(2))  # its standard deviation is infinite


def of(distribution: stats.rv_continuous) -> DensityPrediction:
    moments = {"mean": distribution.mean(), "variance": distribution.var()}
    return DensityPrediction(logpdf=distribution.logpdf, cdf=distribution.cdf, **moments)


@pytest.mark.parametrize(
    ("prediction", "words"),
    [
        (Predictive.gaussian([NAN, 0.0], [1.0, 1.0]), "1 of 2 predictive means are not finite"),
        (Predictive.gaussian([0.0, 0.0], [1.0, 1.0]), ""),
        (
            QuantilePrediction([0.1, 0.9], [[0.0, NAN], [1.0, 1.0]], [0.0, 0.0]),
            "1 of 2 points have predictive quantiles",
        ),
        (of(WIDE), ""),
        (of(stats.uniform(np.array([0.0, 5.0]), np.ones(2))), "1 of 2 log densities of test targets are not finite"),
    ],
)
def test_reasons(prediction: AnyPrediction, words: str) -> None:
    found = reason(prediction, np.array([0.5, 0.5]), ())
    assert found.startswith(words)
    assert (found == "") == (words == "")
    assert "," not in found
