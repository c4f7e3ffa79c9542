"""Values that standardisation or a conversion would change silently are errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ep_bench import ClassProbabilities, Estimator
from ep_bench.adapters import ExternalClassifier, ExternalRegressor
from ep_bench.predictions import DensityPrediction, Predictive, QuantilePrediction

X = np.linspace(-1.0, 1.0, 24).reshape(8, 3) ** 3
y = X @ np.array([1.0, 2.0, -1.0])


def linear() -> Any:
    return Estimator("gp", kernel="linear", optimize=False, weight_variance=1.0, noise_variance=0.1)


@pytest.mark.parametrize("scale", [1e155, 1e300, 1.7e308])
def test_values_that_overflow_are_refused(scale: float) -> None:
    huge = X.copy()
    huge[:, 1] = scale * np.sign(X[:, 1])
    with pytest.raises(ValueError, match="input 1: cannot be standardised"):
        linear().fit(huge, y)
    with pytest.raises(ValueError, match="the values: cannot be standardised"):
        linear().fit(X, scale * np.sign(y))


def test_inputs_that_overflow_at_prediction_are_refused() -> None:
    model = linear().fit(1e-3 * X, y)
    assert np.isfinite(model.predict(X)).all()
    with pytest.raises(ValueError, match="input 2: cannot be"):
        model.predict(np.where([False, False, True], 1.7e308, X))


@pytest.mark.parametrize("scale", [1e-310, 1e-170])
def test_targets_below_double_precision_are_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="cannot be standardised in double precision"):
        linear().fit(X, scale * y)
    assert np.isfinite(linear().fit(X, 1e-150 * y).predict(X)).all()
    assert np.isfinite(linear().fit(X, np.zeros(8)).predict(X)).all()


@pytest.mark.parametrize("scale", [5e-324, 1e-170])
def test_inputs_below_double_precision_are_refused(scale: float) -> None:
    for column in (0, 1):
        small = X.copy()
        small[:, column] = scale * np.ceil(2.0 * X[:, column])
        with pytest.raises(ValueError, match=f"input {column}: cannot be standardised in double precision"):
            linear().fit(small, y)
        with pytest.raises(ValueError, match=f"input {column}: cannot be standardised in double precision"):
            ExternalRegressor(Returns(np.ones(8)), standardize=True).fit(small, y)
    np.testing.assert_allclose(linear().fit(1e-150 * X, y).predict(1e-150 * X), linear().fit(X, y).predict(X))
    assert np.isfinite(linear().fit(np.full_like(X, 5e-324), y).predict(X)).all()


class Returns:
    def __init__(self, mean: Any, std: Any = None) -> None:
        self.mean, self.std = mean, std

    def fit(self, X: Any, y: Any) -> None: ...

    def predict(self, X: Any, return_std: bool = False) -> Any:
        return (self.mean, np.ones(8) if self.std is None else self.std) if return_std else self.mean


COMPLEX, MASKED = np.ones(8) + 1j, np.ma.masked_greater(np.arange(8.0), 5.0)


@pytest.mark.parametrize(("bad", "message"), [(COMPLEX, "complex numbers"), (MASKED, "2 of 8 values are masked")])
def test_complex_and_masked_predictions_are_refused(bad: Any, message: str) -> None:
    for model in (Returns(bad), Returns(np.ones(8), bad)):
        with pytest.raises(ValueError, match=message):
            ExternalRegressor(model).fit(X, y).predict_dist(X)
    with pytest.raises(ValueError, match="is not a class"):
        ExternalClassifier(Returns(bad), 2).fit(X, np.ones(8)).predict_dist(X)
    table = np.ma.column_stack([bad, np.ones(8)]) if bad is MASKED else np.column_stack([bad, bad])
    for build in (
        lambda: Predictive.gaussian(bad, np.ones(8)),
        lambda: ClassProbabilities(table),
        lambda: QuantilePrediction([0.2, 0.8], table.T),
        lambda: DensityPrediction(logpdf=len, cdf=len, mean=np.ones(8), variance=bad),
    ):
        with pytest.raises(ValueError, match=message[-6:]):
            build()
    unmasked = np.ma.masked_greater(np.arange(8.0), 50.0)
    assert np.array_equal(ExternalRegressor(Returns(unmasked)).fit(X, y).predict_dist(X).mean(), np.arange(8.0))
