"""Predictions through pipelines and transforms of the target, compared with closed forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import BayesianRidge, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)

import ep_bench
from ep_bench import adapters
from ep_bench.adapters.target_transforms import of_target
from ep_bench.predictions import ASKED_LEVELS, DensityPrediction, PointPrediction, Predictive, QuantilePrediction
from tests.adapters.kinds import Deviation

rng = np.random.default_rng(0)
X = rng.normal(5.0, 3.0, (60, 2))
Y = np.exp(0.3 * X[:, 0] + 0.4 * rng.normal(size=60))
LOG = {"func": np.log, "inverse_func": np.exp}
GAUSSIAN = Predictive.gaussian(np.linspace(-1.0, 2.0, 60), np.linspace(0.1, 0.5, 60))


def through(**transform: Any) -> Any:
    """Return the prediction of a pipeline that ends with a transform of the target, and that of its last estimator."""
    model = make_pipeline(StandardScaler(), TransformedTargetRegressor(BayesianRidge(), **transform)).fit(X, Y)
    mean, std = model[-1].regressor_.predict(model[0].transform(X), return_std=True)
    return ep_bench.predict_dist(model, X), mean, std


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler((2.0, 5.0)), None])
def test_an_affine_transform_is_exact(scaler: Any) -> None:
    found, mean, std = through(transformer=scaler)
    low, high = (0.0, 1.0) if scaler is None else scaler.fit(Y[:, None]).inverse_transform([[0.0], [1.0]])[:, 0]
    assert isinstance(found, Predictive)
    np.testing.assert_allclose(found.mean(), low + (high - low) * mean, rtol=1e-12)
    np.testing.assert_allclose(found.std(), (high - low) * std, rtol=1e-12)


def test_the_logarithm_gives_a_log_normal_distribution() -> None:
    found, mean, std = through(**LOG)
    expected = stats.lognorm(std, scale=np.exp(mean))
    np.testing.assert_allclose(found.logpdf(Y), expected.logpdf(Y), rtol=1e-9)
    np.testing.assert_allclose(found.cdf(Y), expected.cdf(Y), rtol=1e-12)
    np.testing.assert_allclose(found.quantile(0.9), expected.ppf(0.9), rtol=1e-12)
    np.testing.assert_allclose(found.mean(), expected.mean(), rtol=1e-9)
    np.testing.assert_allclose(found.variance(), expected.var(), rtol=1e-9)
    np.testing.assert_array_equal(found.logpdf(np.full(60, -1.0)), -np.inf)
    np.testing.assert_array_equal(found.cdf(np.full(60, -1.0)), 0.0)


def test_a_power_transform_keeps_the_probability() -> None:
    skewed = rng.gamma(2.0, size=(200, 1))
    mixture = Predictive([0.5, 0.5], [[-0.5], [1.0]], [[0.1], [0.3]])
    found = of_target(mixture, PowerTransformer().fit(skewed))
    total, _ = integrate.quad(lambda y: np.exp(found.logpdf(np.array([y]))[0]), -3.0, 60.0, limit=500)
    assert total == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(found.cdf(found.quantile(0.3)), 0.3, rtol=1e-9)


def test_quantiles_and_points_are_transformed() -> None:
    log = FunctionTransformer(np.log, np.exp)
    values = np.array([GAUSSIAN.quantile(p) for p in ASKED_LEVELS])
    found = of_target(QuantilePrediction(ASKED_LEVELS, values, GAUSSIAN.mean()), log)
    np.testing.assert_allclose(found.quantile(0.95), np.exp(GAUSSIAN.quantile(0.95)))
    np.testing.assert_allclose(found.mean(), np.exp(GAUSSIAN.mean()))
    model = TransformedTargetRegressor(Ridge(), **LOG).fit(X, Y)
    assert isinstance(ep_bench.predict_dist(model, X), PointPrediction)
    np.testing.assert_allclose(ep_bench.predict_dist(model, X).mean(), model.predict(X))


@pytest.mark.parametrize(
    "transformer",
    [
        FunctionTransformer(np.negative, np.negative),
        FunctionTransformer(np.reciprocal, np.reciprocal),
        QuantileTransformer(n_quantiles=60, output_distribution="normal").fit(Y[:, None]),
    ],
)
def test_a_transform_that_does_not_increase_is_refused(transformer: Any) -> None:
    with pytest.raises(ValueError, match="not strictly increasing"):
        of_target(GAUSSIAN.rescale(3.0, 10.0), transformer).logpdf(Y)


def test_an_entry_with_a_transform_of_the_target_has_its_density() -> None:
    options = {
        "regressor": {"use": "sklearn.linear_model:BayesianRidge"},
        "func": {"object": "numpy:log"},
        "inverse_func": {"object": "numpy:exp"},
    }
    model = adapters.build("sklearn.compose:TransformedTargetRegressor", options, Path("/"))
    assert isinstance(model.fit(X, Y).predict_dist(X), DensityPrediction)


@pytest.mark.parametrize(("inner", "has_density"), [(BayesianRidge(), True), (Deviation(), True), (Ridge(), False)])
def test_a_search_has_the_scores_of_the_estimator_inside(inner: Any, has_density: bool) -> None:
    model = TransformedTargetRegressor(make_pipeline(StandardScaler(), inner), **LOG)
    assert ("ll" in adapters.tuning_scores(model, "regression")) is has_density
