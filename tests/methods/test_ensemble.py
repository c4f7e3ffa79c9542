"""Deep ensembles: loss and gradient against the formulas, a plain twin of a fit, and closed forms."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ep_bench.methods import ensemble
from ep_bench.models import mlp
from ep_bench.types import Rows
from tests.methods.support import rows
from tests.twins import plain_networks as plain
from tests.twins.plain_networks import check_gradient

QUICK = {"hidden": [20], "epochs": 150}  # options of the conformance tests

SHAPES = [(), (19,), (4, 3)]
MINIMUM = 1e-3


def variance(raw, minimum=MINIMUM):
    return np.log(1 + np.exp(raw)) + minimum


def loss(X, y, w, sizes, minimum=MINIMUM):
    """The mean negative log-likelihood, as printed."""
    F = plain.all_outputs(X, w, sizes)
    return -np.mean(plain.log_normal(y, F[:, 0], variance(F[:, 1], minimum)))


def slow_gradients(X, y, w, sizes, minimum):
    """Derivatives of the loss by the weights (P,) and the inputs (B, d), by the chain rule in matrices."""
    layers, inputs = plain.matrices(w, sizes), [X]
    for W, b in layers[:-1]:
        inputs.append(np.maximum(inputs[-1] @ W + b, 0.0))
    F = inputs[-1] @ layers[-1][0] + layers[-1][1]
    s = variance(F[:, 1], minimum)
    by_variance = 0.5 / s - 0.5 * (y - F[:, 0]) ** 2 / s**2
    above = np.column_stack([(F[:, 0] - y) / s, by_variance / (1 + np.exp(-F[:, 1]))]) / len(y)
    parts = []
    for index in range(len(layers) - 1, -1, -1):
        z, W = inputs[index], layers[index][0]
        parts.insert(0, (z.T @ above, above.sum(axis=0)))
        above = (above @ W.T) * (z > 0 if index else 1.0)
    return plain.flat(parts), above


class Case:
    """A batch, and a network with two outputs."""

    def __init__(self, hidden, seed, n=9, d=5):
        rng = np.random.default_rng(seed)
        self.sizes, self.layers, self.rng = (d, *hidden, 2), mlp.layout(d, hidden, outputs=2), rng
        self.w = rng.normal(size=mlp.count(self.layers))
        self.X, self.y = rng.normal(size=(n, d)), rng.normal(size=n)

    def step_loss(self, shift, *, adversarial):
        """Loss and gradient, and the inputs that the kernel leaves in the workspace."""
        work = ensemble.workspace(self.layers, len(self.y), adversarial=adversarial)
        work.inputs[:], work.targets[:] = self.X, self.y
        found = ensemble.step_loss(len(self.y), self.w, self.layers, MINIMUM, shift, work)
        return found, work.gradient[0], work.inputs


@pytest.mark.parametrize("hidden", SHAPES)
class TestLoss:
    def test_loss_and_gradient(self, hidden):
        case = Case(hidden, 1)
        found, gradient, _ = case.step_loss(np.zeros(5), adversarial=False)
        assert found == pytest.approx(loss(case.X, case.y, case.w, case.sizes), rel=1e-12)
        check_gradient(lambda w: loss(case.X, case.y, w, case.sizes), case.w, gradient, case.rng, step=1e-6)
        slow, _ = slow_gradients(case.X, case.y, case.w, case.sizes, MINIMUM)
        np.testing.assert_allclose(gradient, slow, rtol=1e-9, atol=1e-12)

    def test_adversarial_inputs_and_their_loss(self, hidden):
        case, shift = Case(hidden, 2), np.array([0.1, 0.2, 0.0, 0.05, 0.3])
        found, gradient, shifted = case.step_loss(shift, adversarial=True)
        _, slopes = slow_gradients(case.X, case.y, case.w, case.sizes, MINIMUM)
        expected = case.X + shift * np.sign(slopes)
        np.testing.assert_allclose(shifted, expected, rtol=1e-12)

        def half_adversarial(w):  # the shifted inputs are constants
            return 0.5 * (loss(case.X, case.y, w, case.sizes) + loss(expected, case.y, w, case.sizes))

        assert found == pytest.approx(half_adversarial(case.w), rel=1e-12)
        check_gradient(half_adversarial, case.w, gradient, case.rng, step=1e-6)

    @pytest.mark.parametrize("adversarial", [False, True])
    def test_a_fit_equals_that_of_the_twin(self, hidden, adversarial):
        """Two networks, three epochs of two batches, initial weights and orders from the same generator."""
        train = rows(30, 3, 4)
        config = ensemble.Config(hidden=hidden, members=2, epochs=3, batch_size=16, adversarial=adversarial)
        state, trace = ensemble.fit(train, config, np.random.default_rng(5))
        rng, sizes = np.random.default_rng(5), (3, *hidden, 2)
        start = [ensemble.initial_weights(state.layers, rng) for _ in range(2)]
        orders = [[rng.permutation(first) for _ in range(2)] for first in (rng.permutation(30) for _ in range(3))]
        shift = 0.01 * (train.X.max(axis=0) - train.X.min(axis=0))
        for k in range(2):
            gradients = []
            for epoch in orders:
                for batch in (epoch[k][:16], epoch[k][16:]):
                    X, y, w = train.X[batch], train.y[batch], plain.adam(start[k], gradients, config.learning_rate)
                    gradient, slopes = slow_gradients(X, y, w, sizes, config.minimum_variance)
                    if adversarial:
                        shifted = X + shift * np.sign(slopes)
                        gradient = (gradient + slow_gradients(shifted, y, w, sizes, config.minimum_variance)[0]) / 2
                    gradients.append(gradient)
            expected = plain.adam(start[k], gradients, config.learning_rate)
            np.testing.assert_allclose(state.weights[k], expected, rtol=1e-7, atol=1e-9)
        assert len(trace["objective"]) == state.n_iterations == 3


@pytest.mark.parametrize("raw", [-800.0, -40.0, 0.0, 40.0, 800.0])
def test_extreme_variances(raw):
    F = np.array([[0.5, raw]])
    found = ensemble.negative_log_likelihood(np.array([0.6]), 1e-6, F)
    assert found == pytest.approx(-plain.log_normal(0.6, 0.5, np.logaddexp(0.0, raw) + 1e-6), rel=1e-12)
    assert np.isfinite(F).all()


def test_initial_weights_are_uniform_with_the_documented_limits():
    layers = mlp.layout(100, (200,), outputs=2)
    parts = plain.matrices(ensemble.initial_weights(layers, np.random.default_rng(0)), (100, 200, 2))
    for W, b in parts:
        scaled = np.append(W.ravel(), b) * np.sqrt(len(W))
        assert 0.9 < np.abs(scaled).max() <= 1.0
        assert np.mean(scaled**2) == pytest.approx(1 / 3, rel=0.15)


def test_one_input_with_two_values_gives_the_moments_of_both_groups():
    """The maximum-likelihood linear model has the mean and variance of the targets at each value of the input."""
    rng = np.random.default_rng(6)
    group = np.repeat([0, 1], [15, 25])
    y = np.where(group == 0, -1.0 + 0.3 * rng.normal(size=40), 0.6 + 0.9 * rng.normal(size=40))
    config = ensemble.Config(hidden=(), members=2, epochs=4000)
    state, _ = ensemble.fit(Rows(group[:, None] - 0.6, y), config, np.random.default_rng(0))
    answer = ensemble.predict(state, np.array([[-0.6], [0.4]]), rng)
    for k in range(2):
        np.testing.assert_allclose(answer.means[k], [y[group == g].mean() for g in (0, 1)], rtol=1e-6)
        np.testing.assert_allclose(answer.variances[k], [y[group == g].var() for g in (0, 1)], rtol=1e-5)


def test_the_prediction_is_the_mixture_of_the_networks():
    train = rows(30, 2, 7)
    state, _ = ensemble.fit(train, ensemble.Config(hidden=(6,), epochs=2, members=3), np.random.default_rng(0))
    answer = ensemble.predict(state, train.X[:4], np.random.default_rng(0))
    np.testing.assert_allclose(answer.weights, 1 / 3)
    for k in range(3):
        F = plain.all_outputs(train.X[:4], state.weights[k], (2, 6, 2))
        np.testing.assert_allclose(answer.means[k], F[:, 0])
        np.testing.assert_allclose(answer.variances[k], variance(F[:, 1], 1e-6))


class TestEpochs:
    @pytest.mark.parametrize(("points", "used"), [(25, 2), (500, 3)])
    def test_cross_validation_decides(self, points, used):
        """The epochs have the highest density of validation points among those that are compared."""
        train, compared = rows(60, 2, 8), 150
        config = ensemble.Config(
            hidden=(8,), members=2, folds=3, validation_points=points, max_epochs=compared, learning_rate=0.05
        )
        state, trace = ensemble.fit(train, config, np.random.default_rng(1))
        rng = np.random.default_rng(1)
        order = rng.permutation(60)
        parts = [order[:20], order[20:40], order[40:]][:used]
        fitted = [np.setdiff1d(np.arange(60), part) for part in parts]
        networks = [ensemble._Ensemble(train.X[rest], train.y[rest], config, rng) for rest in fitted]
        checks = sorted({min(round(2000 ** (k / 79)), compared) for k in range(80)})
        densities, before = [], 0
        for check in checks:
            densities.append(0.0)
            for part, network in zip(parts, networks, strict=True):
                network.train(range(before, check))
                densities[-1] += network.predict(train.X[part]).logpdf(train.y[part]).sum()
            before = check
        assert state.n_iterations == checks[np.argmax(densities)] < compared
        assert len(trace["objective"]) == state.n_iterations

    def test_noise_needs_few_epochs_and_a_function_many(self):
        rng, config = np.random.default_rng(9), ensemble.Config(hidden=(8,), max_epochs=300)
        X = rng.normal(size=(80, 2))
        noise, _ = ensemble.fit(Rows(X, rng.normal(size=80)), config, np.random.default_rng(0))
        function, _ = ensemble.fit(rows(80, 2, 9, noise=0.0), config, np.random.default_rng(0))
        assert noise.n_iterations < 60
        assert function.n_iterations > 200

    def test_a_higher_limit_does_not_change_a_choice_below_it(self):
        train, states = rows(60, 2, 8), []
        for limit in (400, 500):
            config = ensemble.Config(hidden=(8,), members=2, max_epochs=limit, learning_rate=0.05)
            states.append(ensemble.fit(train, config, np.random.default_rng(1))[0])
        assert states[0].n_iterations < 350
        np.testing.assert_array_equal(states[0].weights, states[1].weights)

    @pytest.mark.parametrize(("limit", "warned"), [(60, True), (1000, False)])
    def test_warning_if_the_limit_ends_the_comparison(self, limit, warned):
        train, config = rows(60, 2, 8), ensemble.Config(hidden=(8,), members=2, max_epochs=limit, learning_rate=0.05)
        with warnings.catch_warnings(record=True, action="always") as found:
            state, _ = ensemble.fit(train, config, np.random.default_rng(1))
        assert state.n_iterations == 47
        assert [f"none beyond max_epochs: {limit}" in str(one.message) for one in found] == [True] * warned

    def test_a_network_that_diverges_ends_the_comparison(self, monkeypatch):
        train, config = rows(60, 2, 8), ensemble.Config(hidden=(8,), members=2, max_epochs=300)
        train_for = ensemble._Ensemble.train

        def diverging(self, epochs):
            if epochs.start >= limit:
                raise FloatingPointError("diverged")
            return train_for(self, epochs)

        monkeypatch.setattr(ensemble._Ensemble, "train", diverging)
        limit = 50
        assert ensemble.fit(train, config, np.random.default_rng(1))[0].n_iterations <= 54
        limit = 0
        with pytest.raises(FloatingPointError, match="diverged"):
            ensemble.fit(train, config, np.random.default_rng(1))
