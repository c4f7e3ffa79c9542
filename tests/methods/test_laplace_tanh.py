"""Fits and predictions of the Laplace approximation of networks of tanh units."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.methods import laplace
from ep_bench.types import Rows
from tests.methods.laplace_support import fitted, wave
from tests.twins import plain_networks as plain


def test_a_fit_predicts_a_wave():
    rows = wave(n=60, noise=0.1)
    state, _ = fitted(rows, starts=3, hidden=(10,), activation="tanh")
    X = np.linspace(-1.8, 1.8, 40)[:, None]
    predicted = laplace.predict(state, X, np.random.default_rng(0))
    assert np.sqrt(np.mean((predicted.mean() - np.sin(2 * X[:, 0])) ** 2)) < 0.1
    assert state.noise_variance == pytest.approx(0.01, rel=0.6)


def test_sampled_predictions_are_those_of_the_drawn_networks():
    rows = wave(n=30)
    options = {"hidden": (4,), "activation": "tanh", "predictive": "sampled", "test_samples": 7}
    state, _ = fitted(rows, **options)
    predicted = laplace.predict(state, rows.X, np.random.default_rng(5)).mean()
    draws = state.weights + state.posterior.draw(7, np.random.default_rng(5))
    expected = [plain.outputs(rows.X, w, (1, 4, 1), activation="tanh") for w in draws]
    np.testing.assert_allclose(predicted, np.mean(expected, axis=0), rtol=1e-10)


def test_predictions_are_smooth_where_rectified_units_have_kinks():
    """Linearised standard deviations of tanh units have no jumps between neighbouring inputs."""
    rows = Rows(np.linspace(-2, 2, 30)[:, None], np.abs(np.linspace(-2, 2, 30)))
    X = np.linspace(-2, 2, 4001)[:, None]
    jumps = {}
    for activation in ("tanh", "relu"):
        state, _ = fitted(rows, hidden=(6,), activation=activation, noise_variance=0.01)
        deviation = np.sqrt(laplace.predict(state, X, np.random.default_rng(0)).variance())
        jumps[activation] = np.abs(np.diff(deviation)).max() / deviation.mean()
    assert jumps["tanh"] < 0.01 < jumps["relu"]


@pytest.mark.parametrize(("function", "chosen"), [(np.abs, "relu"), (lambda x: np.sin(2 * x), "tanh")])
def test_the_activation_of_the_higher_evidence_is_kept(function, chosen):
    """The fit is that of the activation alone, with the same initial weights."""
    X = np.linspace(-2, 2, 60)[:, None]
    rows = Rows(X, function(X[:, 0]) + 0.05 * np.random.default_rng(0).normal(size=60))
    either, relu, tanh = (
        fitted(rows, starts=3, hidden=(8,), activation=name)[0] for name in ("evidence", "relu", "tanh")
    )
    assert either.start_evidences == relu.start_evidences + tanh.start_evidences
    better = {"relu": relu, "tanh": tanh}[chosen]
    assert either.log_evidence == better.log_evidence == max(either.start_evidences)
    assert either.kind == better.kind
    assert np.array_equal(either.weights, better.weights)
