"""Public scores: those of the study cells, for densities and quantiles; kinds without a score are refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ep_bench import scores, scoring
from ep_bench.predictions import ASKED_LEVELS, PointPrediction, Predictive, QuantilePrediction

Y = np.random.default_rng(0).normal(size=200)
GAUSSIAN = Predictive.gaussian(np.zeros(200), np.ones(200))
QUANTILES = QuantilePrediction(ASKED_LEVELS, np.tile(stats.norm.ppf(ASKED_LEVELS)[:, None], (1, 200)))


@pytest.mark.parametrize("prediction", [GAUSSIAN, QUANTILES])
def test_scores_are_those_of_cells(prediction: Predictive | QuantilePrediction) -> None:
    known = scoring.score(prediction, Y)
    assert scores.rmse(prediction, Y) == pytest.approx(known["rmse"])
    assert scores.crps(prediction, Y) == pytest.approx(known["crps"])
    assert scores.coverage(prediction, Y, 0.5) == pytest.approx(known["coverage50"])
    assert scoring.pit_error(scores.pit(prediction, Y)) == pytest.approx(known["pit_error"])
    assert 2.0 * scores.pinball(prediction, Y) == pytest.approx(known["crps"], rel=0.05)


def test_interval_score_is_the_pinball_loss_of_both_ends() -> None:
    ends = QuantilePrediction([0.05, 0.95], np.tile(stats.norm.ppf([0.05, 0.95])[:, None], (1, 200)))
    assert scores.interval_score(GAUSSIAN, Y, 0.9) == pytest.approx(2 * 2 / 0.1 * scores.pinball(ends, Y))


def test_a_missing_score_is_refused() -> None:
    assert scores.log_likelihood(GAUSSIAN, Y) == pytest.approx(stats.norm.logpdf(Y).mean())
    with pytest.raises(TypeError, match="QuantilePrediction has no log-likelihood"):
        scores.log_likelihood(QUANTILES, Y)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="PointPrediction has no CRPS"):
        scores.crps(PointPrediction(Y), Y)  # type: ignore[arg-type]
