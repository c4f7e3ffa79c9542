"""The point network against a plain twin of its steps, its noise variance recomputed, and a linear model."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.methods import bp
from ep_bench.models import mlp
from ep_bench.types import Rows
from tests.methods.support import rows
from tests.twins import plain_networks as plain
from tests.twins.plain_networks import check_gradient

SHAPES = [(), (5,), (4, 3), (19,), (9, 17), (8, 16)]


def row_gradient(x, w, sizes):
    """Output at one input and its gradient by the weights, by the chain rule in matrices."""
    layers, inputs = plain.matrices(w, sizes), [x]
    for W, b in layers[:-1]:
        inputs.append(np.maximum(inputs[-1] @ W + b, 0.0))
    output = (inputs[-1] @ layers[-1][0] + layers[-1][1])[0]
    above, parts = np.ones(1), []
    for z, (W, _) in zip(inputs[::-1], layers[::-1], strict=True):
        parts.insert(0, (np.outer(z, above), above))
        above = (W @ above) * (z > 0)
    return output, plain.flat(parts)


class SlowBP:
    """Stochastic gradient descent with momentum as in the docstring, with shortened steps."""

    def __init__(self, w, sizes):
        self.w, self.velocity, self.sizes, self.shortened = w.copy(), np.zeros_like(w), sizes, 0

    def epoch(self, X, y, order, rate, momentum, decay):
        total = 0.0
        for row in order:
            f, slope = row_gradient(X[row], self.w, self.sizes)
            residual = f - y[row]
            step = rate
            if rate / (1 - momentum) * (slope @ slope) > 1:  # overshoots the target
                step = (1 - momentum) / (slope @ slope)
                self.shortened += 1
            self.velocity = momentum * self.velocity - step * residual * slope - rate * decay / len(y) * self.w
            self.w = self.w + self.velocity
            total += 0.5 * residual**2
        return total / len(order)


def slow_descent(train, hidden, config, rng):
    """A whole fit: initial weights, orders and the decreasing step size, from the same generator."""
    sizes = (train.X.shape[1], *hidden, 1)
    slow, losses = SlowBP(mlp.initial_weights(mlp.layout(sizes[0], hidden), rng), sizes), []
    for epoch in range(config.epochs):
        rate = config.learning_rate * (1 - epoch / config.epochs * (config.schedule == "linear"))
        order = rng.permutation(len(train.y))
        losses.append(slow.epoch(train.X, train.y, order, rate, config.momentum, config.weight_decay))
    return slow, losses


@pytest.mark.parametrize("hidden", SHAPES)
class TestSteps:
    def test_gradient_of_the_twin(self, hidden):
        rng = np.random.default_rng(1)
        sizes = (3, *hidden, 1)
        w, x = rng.normal(size=mlp.count(mlp.layout(3, hidden))), rng.normal(size=3)

        output, gradient = row_gradient(x, w, sizes)
        assert output == pytest.approx(plain.outputs(x[None], w, sizes)[0], rel=1e-12)
        check_gradient(lambda at: plain.outputs(x[None], at, sizes)[0], w, gradient, rng, step=1e-6)

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"momentum": 0.0, "weight_decay": 0.0, "learning_rate": 1e-3},
            {"weight_decay": 30.0},
            {"schedule": "constant"},
            {"momentum": 0.3, "learning_rate": 1.0},
        ],
    )
    def test_a_fit_equals_that_of_the_twin(self, hidden, options):
        train = rows(40, 3, 2)
        config = bp.Config(hidden=hidden, epochs=3, **options)
        w, trace = bp._descend(train.X, train.y, mlp.layout(3, hidden), config, np.random.default_rng(3))
        slow, losses = slow_descent(train, hidden, config, np.random.default_rng(3))
        np.testing.assert_allclose(w, slow.w, rtol=1e-8, atol=1e-10)
        assert (slow.shortened > 0) == (config.learning_rate > 1e-3)
        np.testing.assert_allclose(trace["objective"], losses, rtol=1e-10)

    def test_the_variance_is_that_of_validation_points(self, hidden):
        """The twin repeats every step of the fit: validation points, first fit, residuals, second fit."""
        train, config = rows(30, 3, 4), bp.Config(hidden=hidden, epochs=4, validation_fraction=0.3)
        state, _ = bp.fit(train, config, np.random.default_rng(5))
        rng = np.random.default_rng(5)
        order = rng.permutation(30)
        validation, fitted = order[:9], order[9:]
        slow, _ = slow_descent(Rows(train.X[fitted], train.y[fitted]), hidden, config, rng)
        residuals = train.y[validation] - plain.outputs(train.X[validation], slow.w, (3, *hidden, 1))
        assert state.noise_variance == pytest.approx(np.mean(residuals**2), rel=1e-9)
        slow, _ = slow_descent(train, hidden, config, rng)
        np.testing.assert_allclose(state.weights, slow.w, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("hidden", SHAPES)
def test_a_fit_for_the_mean_has_the_same_weights(hidden):
    train, config = rows(30, 3, 4), bp.Config(hidden=hidden, epochs=4)
    whole, trace = bp.fit(train, config, np.random.default_rng(5))
    mean, short = bp.fit_mean(train, config, np.random.default_rng(5))
    np.testing.assert_array_equal(mean.weights, whole.weights)
    assert trace == short
    assert whole.noise_variance != mean.noise_variance == 1.0


def test_weight_decay_is_a_ratio_of_precisions():
    """A linear model converges to ridge regression with this penalty, biases included."""
    train = rows(50, 3, 6)
    config = bp.Config(hidden=(), epochs=3000, learning_rate=0.01, momentum=0.0, weight_decay=20.0)
    w, _ = bp._descend(train.X, train.y, mlp.layout(3, ()), config, np.random.default_rng(0))
    A = np.column_stack([train.X, np.ones(50)])
    np.testing.assert_allclose(w, np.linalg.solve(A.T @ A + 20 * np.eye(4), A.T @ train.y), atol=2e-3)


def test_an_outlier_among_the_inputs_leaves_the_weights_finite():
    train = rows(50, 3, 10)
    train.X[7] = [300.0, -200.0, 100.0]
    state, _ = bp.fit(train, bp.Config(hidden=(10, 10)), np.random.default_rng(0))
    assert np.abs(state.weights).max() < 100


class TestFit:
    def test_the_variance_for_one_data_point_is_that_of_a_standardised_target(self):
        state, _ = bp.fit(Rows(np.ones((1, 2)), np.array([5.0])), bp.Config(epochs=1), np.random.default_rng(0))
        assert state.noise_variance == 1.0

    def test_one_gaussian_per_data_point(self):
        state, _ = bp.fit(rows(30, 2, 9), bp.Config(epochs=2), np.random.default_rng(0))
        answer = bp.predict(state, np.zeros((5, 2)), np.random.default_rng(0))
        assert answer.means.shape == (1, 5)
        np.testing.assert_array_equal(answer.variances, state.noise_variance)
