"""Monte Carlo dropout: loss and gradient for fixed masks, the distribution of the masks, and predictive mixtures."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.methods import dropout
from ep_bench.models import mlp
from ep_bench.numerics.minibatch import hold_out
from ep_bench.numerics.normal_rng import fill_masks, stream
from ep_bench.predictions import Predictive
from ep_bench.types import Rows
from tests.methods.support import rows
from tests.twins import plain_networks as plain
from tests.twins.plain_networks import check_gradient

QUICK = {"hidden": [20], "epochs": 150, "passes": 100}  # options of the conformance tests

SHAPES = [(5,), (4, 3), (3, 4, 5), (19,), (9, 17)]
RATE = 0.4


class Case:
    """A network, a batch with masked inputs, and masks of the hidden units."""

    def __init__(self, hidden, seed, rate=RATE, rows=9, d=5):
        rng = np.random.default_rng(seed)
        self.sizes, self.layers, self.rng, self.rate = (d, *hidden, 1), mlp.layout(d, hidden), rng, rate
        self.w = rng.normal(size=mlp.count(self.layers))
        self.X, self.y = rng.normal(size=(rows, d)), rng.normal(size=rows)
        self.masks = [(rng.random((rows, units)) >= rate) / (1 - rate) for units in hidden]
        self.penalty = dropout._penalty(self.layers, 0.03)

    def loss(self, w):
        work, gradient = dropout._workspace(self.layers, len(self.y)), np.full(len(w), np.nan)
        work.masks[: self.X.size] = np.nan  # masks of the inputs are already applied
        work.masks[self.X.size :] = np.concatenate([mask.ravel() for mask in self.masks])
        value = dropout.penalised_loss(
            self.X, self.y, w, self.layers, self.penalty, self.rate, work, gradient
        )  # fmt: skip
        return value, gradient

    def twin(self, w):
        f = plain.outputs(self.X, w, self.sizes, self.masks)
        penalties = sum((W**2).sum() for W, _ in plain.matrices(w, self.sizes))
        return np.mean((f - self.y) ** 2) + 0.03 * penalties


@pytest.mark.parametrize("hidden", SHAPES)
class TestLoss:
    def test_loss_equals_that_of_the_twin_without_penalty_on_biases(self, hidden):
        case = Case(hidden, 1)
        assert case.loss(case.w)[0] == pytest.approx(case.twin(case.w), rel=1e-12)

    def test_gradient(self, hidden):
        for seed in (2, 3):
            case = Case(hidden, seed)
            check_gradient(case.twin, case.w, case.loss(case.w)[1], case.rng, step=1e-6)

    def test_gradient_for_one_data_point(self, hidden):
        case = Case(hidden, 4, rows=1, d=1)
        check_gradient(case.twin, case.w, case.loss(case.w)[1], case.rng, step=1e-6)

    def test_rate_zero_is_the_network_without_dropout(self, hidden):
        case = Case(hidden, 5, rate=0.0)
        n = len(case.y)
        Z, f = np.empty(n * mlp.units(case.layers)), np.empty(n)
        mlp.forward(case.X, case.w, case.layers, Z, f)
        value, gradient = case.loss(case.w)
        D, expected = np.empty((2, n * mlp.widest(case.layers))), np.empty_like(case.w)
        mlp.backward(case.X, case.w, case.layers, Z, 2 * (f - case.y) / n, 1.0, expected, D)
        np.testing.assert_allclose(gradient, expected + 2 * case.penalty * case.w, rtol=1e-12, atol=1e-13)
        assert value == pytest.approx(np.mean((f - case.y) ** 2) + case.penalty @ case.w**2, rel=1e-12)


class TestMasks:
    def test_masked_networks_equal_masked_passes(self):
        """The zero rows of each network determine the masks; the twin gives the same outputs with them."""
        rng = np.random.default_rng(7)
        sizes, layers = (3, 5, 4, 1), mlp.layout(3, (5, 4))
        w, X = rng.normal(size=mlp.count(layers)), rng.normal(size=(6, 3))
        state = dropout.State(layers, w, RATE, 0.1, 20)
        networks = dropout._masked_networks(state, np.random.default_rng(8))
        found = dropout.predict(state, X, np.random.default_rng(8)).means
        plains = plain.matrices(w, sizes)
        for network, f in zip(networks, found, strict=True):
            kept = []
            for (W, b), (W_0, b_0) in zip(plain.matrices(network, sizes), plains, strict=True):
                ratio = W / W_0
                assert np.all(np.isclose(ratio, 0.0) | np.isclose(ratio, 1 / (1 - RATE)))
                np.testing.assert_allclose(ratio, ratio[:, :1].repeat(W.shape[1], axis=1), rtol=1e-12)  # whole rows
                np.testing.assert_array_equal(b, b_0)
                kept.append(ratio[:, 0])
            masks = [np.tile(one, (6, 1)) for one in kept[1:]]
            np.testing.assert_allclose(f, plain.outputs(X * kept[0], w, sizes, masks), rtol=1e-10, atol=1e-12)

    def test_masked_networks_have_the_dropout_rate(self):
        layers = mlp.layout(10, (20,))
        state = dropout.State(layers, np.ones(mlp.count(layers)), RATE, 0.1, 5000)
        networks = dropout._masked_networks(state, np.random.default_rng(9))
        inputs, units = networks[:, :200:20] == 0.0, networks[:, 220:240] == 0.0
        for dropped in (inputs, units):
            assert abs(dropped.mean() - RATE) < 4 * np.sqrt(RATE * (1 - RATE) / dropped.size)
            assert np.all(np.abs(dropped.mean(axis=0) - RATE) < 4.5 * np.sqrt(RATE * (1 - RATE) / 5000))


class TestPredictions:
    def test_moments_of_passes_with_active_units(self):
        """If units are always active, the mean is the network without dropout and the variance has a closed form."""
        rng = np.random.default_rng(10)
        sizes, layers, T = (3, 4, 1), mlp.layout(3, (4,)), 40_000
        w, X = rng.normal(size=mlp.count(layers)), 0.1 * rng.normal(size=(5, 3))
        w[12:16] = 50.0  # biases
        state = dropout.State(layers, w, RATE, 0.1, T)
        answer = dropout.predict(state, X, np.random.default_rng(11))
        assert answer.means.shape == (T, 5)
        (W, b), (v, _) = plain.matrices(w, sizes)
        odds = RATE / (1 - RATE)
        # f = sum_j k_j v_j (sum_i k_i x_i W_ij + b_j) + c, with E k = 1, Var k = odds
        a, spread = X @ W + b, odds * (X**2 @ W**2)
        v = v[:, 0]
        total = odds * ((a * v) ** 2).sum(axis=1) + odds * ((X[:, :, None] * (W * v)[None]).sum(axis=2) ** 2).sum(
            axis=1
        )
        total += odds * (spread * v**2).sum(axis=1)
        mean = plain.outputs(X, w, sizes)
        assert np.all(np.abs(answer.mean() - mean) < 4.5 * np.sqrt(total / T))
        np.testing.assert_allclose(answer.means.var(axis=0), total, rtol=0.05)
        np.testing.assert_allclose(answer.variances, 0.1)

    def test_at_rate_zero_all_passes_are_equal(self):
        case = Case((5,), 12)
        state = dropout.State(case.layers, case.w, 0.0, 0.1, 3)
        means = dropout.predict(state, case.X, case.rng).means
        np.testing.assert_allclose(means, np.tile(plain.outputs(case.X, case.w, case.sizes), (3, 1)), rtol=1e-12)


class TestFit:
    @pytest.mark.parametrize("rate", [0.0, 0.3])
    def test_a_fit_step_by_step(self, rate):
        """Orders and masks from the same generators, losses and gradients as above, Adam by its twin."""
        train = rows(20, 3, 13)
        config = dropout.Config(hidden=(5,), rate=rate, epochs=2, batch_size=8, lengthscale=3.0, tau=2.0)
        state, trace = dropout.fit(train, config, np.random.default_rng(14))
        rng, case = np.random.default_rng(14), Case((5,), 0, rate=rate, d=3)
        start = mlp.initial_weights(case.layers, rng)
        words, masks = stream(rng), np.empty(8 * (3 + 5))
        case.penalty = dropout._penalty(case.layers, 9.0 * (1 - rate) / (2 * 20 * 2.0))
        w, gradients = start, []
        for loss in trace["objective"]:
            order, found = rng.permutation(20), []
            for at in (0, 8, 16):
                batch = order[at : at + 8]
                fill_masks(words, rate, masks)
                taken = masks[: 8 * len(batch)]
                case.X = train.X[batch] * taken[: 3 * len(batch)].reshape(-1, 3)
                case.y, case.masks = train.y[batch], [taken[3 * len(batch) :].reshape(-1, 5)]
                value, gradient = case.loss(w)
                found.append(value)
                gradients.append(gradient)
                w = plain.adam(start, gradients, config.learning_rate)
            assert loss == pytest.approx(np.mean(found), rel=1e-10)
        np.testing.assert_allclose(state.weights, w, rtol=1e-9, atol=1e-12)

    def test_weights_that_the_data_do_not_need_become_zero_and_not_subnormal(self):
        """Arithmetic with subnormal numbers made fits ten times slower; the penalty alone shrinks these weights."""
        train = rows(20, 3, 13)
        config = dropout.Config(hidden=(20,), rate=0.1, epochs=10_000, batch_size=10, tau=10.0)
        state, _ = dropout.fit(Rows(train.X * [0.0, 1.0, 1.0], train.y), config, np.random.default_rng(0))
        sizes = np.abs(state.weights)
        assert (sizes[:20] == 0.0).all()
        assert not ((sizes > 0.0) & (sizes < np.finfo(float).tiny)).any()

    def test_tau_maximises_the_density_of_validation_points(self):
        """Repeat every step of the fit: validation points, first fit with tau = 1, densities on a grid, second fit."""
        train = rows(60, 2, 18)
        config = dropout.Config(hidden=(8,), rate=0.1, epochs=60, passes=50, lengthscale=2.0, validation_fraction=0.3)
        state, trace = dropout.fit(train, config, np.random.default_rng(19))
        rng, layers = np.random.default_rng(19), state.layers
        fitted, validation = hold_out(60, 0.3, rng)
        assert len(validation) == 18
        first, _ = dropout._descend(train.X[fitted], train.y[fitted], layers, config, 1.0, rng)
        networks = dropout._masked_networks(dropout.State(layers, first, 0.1, 1.0, 50), rng)
        outputs = mlp.evaluate(train.X[validation], networks, layers)

        def density(tau):
            return Predictive.equal_mixture(outputs, 1 / tau).logpdf(train.y[validation]).mean()

        found, grid = 1 / state.noise_variance, np.exp(np.linspace(-5, 15, 2001))
        values = [density(tau) for tau in grid]
        assert found == pytest.approx(grid[np.argmax(values)], rel=0.0101)  # the grid's step
        assert max(values) <= density(found) + 1e-8
        weights, losses = dropout._descend(train.X, train.y, layers, config, found, rng)
        np.testing.assert_allclose(state.weights, weights, rtol=1e-9)
        np.testing.assert_allclose(trace["objective"], losses["objective"], rtol=1e-9)

    def test_a_fixed_tau_is_kept_and_one_data_point_has_tau_one(self):
        config = dropout.Config(hidden=(4,), epochs=2, tau=7.0)
        state, _ = dropout.fit(rows(20, 2, 20), config, np.random.default_rng(0))
        assert state.noise_variance == pytest.approx(1 / 7, rel=1e-15)
        single = Rows(np.ones((1, 2)), np.array([0.5]))
        state, _ = dropout.fit(single, dropout.Config(hidden=(4,), epochs=2), np.random.default_rng(0))
        assert state.noise_variance == 1.0

    def test_the_penalty_is_that_of_the_paper(self):
        config = dropout.Config(rate=0.1, tau=5.0, lengthscale=2.0)
        layers = mlp.layout(2, (3,))
        penalty = dropout._penalty(layers, config.lengthscale**2 * (1 - config.rate) / (2 * 40 * config.tau))
        np.testing.assert_allclose(penalty, [0.009] * 6 + [0] * 3 + [0.009] * 3 + [0])

    def test_a_strong_penalty_shrinks_the_weights_but_not_the_biases(self):
        train = rows(40, 2, 15)
        y = train.y + 2.0
        config = dropout.Config(hidden=(6,), lengthscale=1e3, epochs=800, learning_rate=0.01)
        state, _ = dropout.fit(Rows(train.X, y), config, np.random.default_rng(0))
        np.testing.assert_allclose(mlp.evaluate(train.X, state.weights[None], state.layers)[0], y.mean(), atol=0.1)
        assert np.abs(state.weights[:12]).max() < 0.05
