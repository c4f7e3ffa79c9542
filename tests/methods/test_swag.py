"""Weight averaging Gaussian: moments by the formulas of the paper, the descent epoch by epoch, moments of draws."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.methods import swag
from ep_bench.models import mlp, momentum
from ep_bench.models.held_out_noise import most_likely_precision
from ep_bench.numerics.minibatch import hold_out
from ep_bench.types import Rows
from tests.methods.support import rows
from tests.twins import plain_networks as plain

QUICK = {"hidden": [20], "swag_epochs": 30}  # options of the conformance tests


def slow_moments(weights, rank):
    """Algorithm 1, one collected vector of weights after the other."""
    mean, second, deviations = np.zeros(len(weights[0])), np.zeros(len(weights[0])), []
    for t, w in enumerate(weights):
        mean = (t * mean + w) / (t + 1)
        second = (t * second + w**2) / (t + 1)
        deviations = [*deviations, w - mean][-rank:]
    return mean, np.maximum(second - mean**2, 1e-30), np.array(deviations)


def test_a_fit_collects_the_weights_of_the_descent():
    train = rows(40, 3, 1)
    config = swag.Config(hidden=(5,), epochs=3, swag_epochs=7, rank=4, swag_learning_rate=0.01)
    layers = mlp.layout(3, (5,))
    found, trace = swag.weight_gaussian(train.X, train.y, layers, config, np.random.default_rng(0))
    rng = np.random.default_rng(0)
    net, weights = momentum.start(layers, mlp.initial_weights(layers, rng)), []
    for rate in (0.02, 0.02 * 2 / 3, *[0.01] * 8):  # the last step size of the first descent is below 0.01
        momentum.run_epoch(train.X, train.y, rng.permutation(40), net, rate, 0.9, 0.1 / 40)
        weights.append(net.w[net.places])
    mean, variances, deviations = slow_moments(weights[3:], 4)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.variances, variances, rtol=1e-8, atol=1e-14)
    np.testing.assert_allclose(found.deviations, deviations, rtol=1e-10, atol=1e-13)
    assert len(trace["objective"]) == 10


def test_draws_have_the_covariance_of_the_paper():
    rng = np.random.default_rng(2)
    q = swag.moments(rng.normal(size=(9, 4)) * [1.0, 0.1, 2.0, 0.5] + [0.0, 1.0, 2.0, 3.0], 5)
    W = q.draw(200_000, rng)
    covariance = np.diag(q.variances) / 2 + q.deviations.T @ q.deviations / (2 * 4)
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((W.mean(axis=0) - q.mean) / scale, 0.0, atol=0.01)
    np.testing.assert_allclose(np.cov(W.T) / np.outer(scale, scale), covariance / np.outer(scale, scale), atol=0.02)


def test_the_noise_is_that_of_validation_points_and_predictions_are_mixtures():
    train = rows(30, 2, 3)
    config = swag.Config(hidden=(4,), epochs=2, swag_epochs=4, rank=3, samples=6)
    state, _ = swag.fit(train, config, np.random.default_rng(4))
    rng = np.random.default_rng(4)
    fitted, validation = hold_out(30, 0.2, rng)
    q, _ = swag.weight_gaussian(train.X[fitted], train.y[fitted], state.layers, config, rng)
    networks = q.draw(6, rng)
    outputs = np.array([plain.outputs(train.X[validation], w, (2, 4, 1)) for w in networks])
    precision = most_likely_precision((train.y[validation] - outputs) ** 2)
    assert state.noise_variance == pytest.approx(1 / precision, rel=1e-9)
    answer = swag.predict(state, train.X[:3], np.random.default_rng(5))
    networks = state.q.draw(6, np.random.default_rng(5))
    expected = [plain.outputs(train.X[:3], w, (2, 4, 1)) for w in networks]
    np.testing.assert_allclose(answer.means, expected, rtol=1e-9)
    np.testing.assert_allclose(answer.variances, state.noise_variance)


def test_the_most_likely_precision_of_one_component_is_that_of_the_mean_square():
    squares = np.random.default_rng(6).normal(size=(1, 50)) ** 2
    assert most_likely_precision(squares) == pytest.approx(1 / squares.mean(), rel=1e-4)


def test_a_single_data_point_has_the_variance_of_a_standardised_target():
    state, _ = swag.fit(
        Rows(np.ones((1, 2)), np.zeros(1)), swag.Config(epochs=1, swag_epochs=20), np.random.default_rng(0)
    )
    assert state.noise_variance == 1.0
