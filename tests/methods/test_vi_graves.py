"""Graves' variational inference: steps against a plain twin, estimators against their expectations."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.methods import vi_graves
from ep_bench.models import mlp
from ep_bench.models.meanfield import divergence
from ep_bench.numerics.normal_rng import fill_normals, stream
from ep_bench.types import Rows
from tests.methods.support import rows
from tests.twins import plain_networks as plain
from tests.twins.plain_networks import check_gradient

SHAPES = [(), (5,), (4, 3), (19,), (9, 17)]


class Case:
    """A random q over a random network and one data point."""

    def __init__(self, hidden, seed, d=5):
        rng = np.random.default_rng(seed)
        self.sizes, self.layers, self.rng = (d, *hidden, 1), mlp.layout(d, hidden), rng
        self.P = mlp.count(self.layers)
        self.theta = np.concatenate([rng.normal(size=self.P), rng.normal(-1.5, 0.5, size=self.P), [-0.6]])
        self.x, self.y = rng.normal(size=(1, d)), 0.8
        self.work = vi_graves._workspace(self.layers)
        self.work.noise[:] = rng.normal(size=self.P)

    def step(self, prior, residual, square, n, rate, momentum):
        self.work.std[:] = np.exp(self.theta[self.P : -1])
        vi_graves.take_step(self.theta, prior, residual, square, n, (rate, rate), momentum, self.work)

    def row(self, w):
        """Return residual f - y at weights w and the squared gradient of f, which remains in the workspace."""
        work = self.work
        square = mlp.row_gradient(self.x, w, self.layers, work.Z, work.f, work.g, work.D)
        return work.f[0] - self.y, square

    def gradient(self, w):
        """Return the gradient of -log p(y | w) with respect to w."""
        residual, _ = self.row(w)
        return residual * self.work.g / np.exp(self.theta[-1])


@pytest.mark.parametrize("hidden", SHAPES)
class TestSteps:
    def test_gradient_of_a_data_point(self, hidden):
        case = Case(hidden, 1)
        w = case.theta[: case.P] + np.exp(case.theta[case.P : -1]) * case.work.noise

        def loss(at):
            return -plain.log_normal(case.y, plain.outputs(case.x, at, case.sizes)[0], np.exp(case.theta[-1]))

        check_gradient(loss, w, case.gradient(w), case.rng, step=1e-6)

    @pytest.mark.parametrize(("rate", "momentum"), [(1e-3, 0.0), (0.01, 0.7), (0.3, 0.5)])
    def test_steps_agree_with_the_twin(self, hidden, rate, momentum):
        case, n, prior = Case(hidden, 2), 12, np.array([0.2, 0.6])
        theta, velocity, bound = case.theta.copy(), np.zeros(2 * case.P + 1), (1 - momentum) / rate
        for _ in range(5):
            m, s, sigma2 = theta[: case.P], np.exp(theta[case.P : -1]), np.exp(theta[-1])
            w = m + s * case.rng.normal(size=case.P)
            residual, square = case.row(w)
            slope = case.work.g.copy()
            assert square == pytest.approx(slope @ slope, rel=1e-12)
            g = residual * slope / sigma2
            by_variance = g**2 / 2 + (1 / prior[1] - 1 / s**2) / (2 * n)  # of one data point
            # the step on m by the data point does not overshoot its target
            part = min(rate, (1 - momentum) / square) * sigma2 * g
            moves = np.concatenate([
                part + rate * sigma2 * (m - prior[0]) / (n * prior[1]),
                rate * np.minimum(n * 2 * s**2 * by_variance, bound),
                [rate * max(0.5 * (1 - residual**2 / sigma2), -bound)],
            ])  # fmt: skip
            velocity = momentum * velocity - moves
            theta = theta + velocity
            case.step(prior, residual, square, n, rate, momentum)
            np.testing.assert_allclose(case.theta, theta, rtol=1e-11, atol=1e-13)

    def test_gradients_of_the_noise_and_the_divergence(self, hidden):
        """log sigma2: the gradient of the misfit; m and log s, without data: that of the divergence."""
        case, n, prior, rate = Case(hidden, 3), 7, np.array([0.1, 0.5]), 1e-3
        residual = 1.3
        case.work.g[:] = 0.0
        before, h = case.theta.copy(), 1e-5
        case.step(prior, residual, 1.0, n, rate, 0.0)
        found = (before - case.theta) / rate
        up, down = (0.5 * (np.log(2 * np.pi) + t + residual**2 * np.exp(-t)) for t in (before[-1] + h, before[-1] - h))
        assert found[-1] == pytest.approx((up - down) / (2 * h), rel=1e-6)
        v0 = np.full(case.P, prior[1])

        def distance(at):
            return divergence(at[: case.P] - prior[0], np.exp(at[case.P :]), v0)

        by_m = found[: case.P] / np.exp(before[-1]) * n
        check_gradient(distance, before[:-1], np.append(by_m, found[case.P : -1]), case.rng, step=1e-5)

    def test_no_data_point_changes_a_logarithm_by_more_than_one(self, hidden):
        case, rate, momentum = Case(hidden, 4), 0.05, 0.9
        before = case.theta.copy()
        for t in range(300):  # the first target is an outlier; the others have no residual
            residual = 1e6 if t == 0 else 0.0
            if t:
                case.work.g[:] = 0.0
            case.step(np.array([0.0, 1e12]), residual, 1.0, 1, 1e-12 if t else rate, momentum)
            if t == 0:
                case.work.velocity[: case.P] = 0.0
        moved = np.abs(case.theta - before)[case.P :]
        assert moved.max() <= 1 + 1e-6
        assert moved[-1] == pytest.approx(1.0, abs=1e-6)


class TestEstimators:
    def test_squared_gradients_average_to_the_curvature_if_residuals_are_the_noise(self):
        """A linear model, with a target for which the mean squared residual over the draws is sigma2."""
        case = Case((), 4, d=3)
        x, sigma2 = np.append(case.x[0], 1.0), np.exp(case.theta[-1])
        m, s = case.theta[: case.P], np.exp(case.theta[case.P : -1])
        assert 0.05 < s**2 @ x**2 / sigma2 < 0.95
        case.y = x @ m + np.sqrt(sigma2 - s**2 @ x**2)
        K = 20_000
        squares = np.array([case.gradient(m + s * case.rng.normal(size=case.P)) ** 2 for _ in range(K)])
        mean, error = squares.mean(axis=0), squares.std(axis=0) / np.sqrt(K)
        curvature = x**2 / sigma2
        assert np.all(np.abs(mean - curvature) < 4 * error)
        assert np.all(error < 0.02 * curvature)

    def test_on_average_over_targets_too(self):
        """For targets from the model, E g^2 over y is the curvature at any weights, also for a network."""
        case = Case((4,), 5)
        w = case.theta[: case.P].copy()
        f, sigma2 = plain.outputs(case.x, w, case.sizes)[0], np.exp(case.theta[-1])
        K, squares = 20_000, np.zeros(case.P)
        for target in f + np.sqrt(sigma2) * case.rng.normal(size=K):
            case.y = target
            squares += case.gradient(w) ** 2 / K
        case.y = f + 1.0
        jacobian = case.gradient(w) * sigma2
        expected = jacobian**2 / sigma2
        assert np.all(np.abs(squares - expected) <= 4.5 * expected * np.sqrt(2 / K))

    def test_the_prior_maximises_the_bound(self):
        rng = np.random.default_rng(6)
        m, s = rng.normal(0.4, 1.0, size=30), np.exp(rng.normal(-1, 0.5, size=30))
        mean, variance = vi_graves._best_prior(m, np.log(s))
        minimum = divergence(m - mean, s, np.full(30, variance))
        for shift, scale in ((1e-3, 1.0), (-1e-3, 1.0), (0.0, 1.001), (0.0, 0.999)):
            assert minimum < divergence(m - mean - shift, s, np.full(30, variance * scale)) < minimum + 1e-4


class TestFit:
    def test_a_fit_step_by_step(self):
        """Orders and noise from the same generators, with the gradients and steps tested above."""
        train, config = rows(15, 5, 10), vi_graves.Config(hidden=(9,), epochs=2, learning_rate=0.02, momentum=0.3)
        state, trace = vi_graves.fit(train, config, np.random.default_rng(11))
        rng, case = np.random.default_rng(11), Case((9,), 0)
        start = [np.full((a + 1) * b, 0.1 / np.sqrt(a + 1)) for a, b in ((5, 9), (9, 1))]
        case.theta = np.concatenate([mlp.initial_weights(case.layers, rng), np.log(np.concatenate(start)), [0.0]])
        words, noise = stream(rng), np.empty(case.P)
        for epoch in range(2):
            m, s = case.theta[: case.P], np.exp(case.theta[case.P : -1])
            prior = np.array([m.mean(), np.mean((m - m.mean()) ** 2 + s**2)])
            misfits = []
            for row in rng.permutation(15):
                fill_normals(words, noise)
                case.x, case.y = train.X[row : row + 1], train.y[row]
                residual, square = case.row(case.theta[: case.P] + np.exp(case.theta[case.P : -1]) * noise)
                misfits.append(-plain.log_normal(residual, 0.0, np.exp(case.theta[-1])))
                case.step(prior, residual, square, 15, 0.02 * (1 - epoch / 2), 0.3)
            m, s = case.theta[: case.P], np.exp(case.theta[case.P : -1])
            distance = plain.divergence(m - prior[0], s, np.full(case.P, prior[1]))
            assert trace["objective"][epoch] == pytest.approx(np.mean(misfits) + distance / 15, rel=1e-9)
        np.testing.assert_allclose(state.mean, m, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(state.std, s, rtol=1e-9)
        assert state.noise_variance == pytest.approx(np.exp(case.theta[-1]), rel=1e-9)

    def test_standard_deviations_of_a_linear_model_are_close_to_the_mean_field_optimum(self):
        """If the noise model holds, the stationary point is that of the bound; noisy steps require a tolerance."""
        rng = np.random.default_rng(7)
        X = rng.normal(size=(400, 4))
        y = X @ [1.0, -0.5, 0.3, -0.8] + 0.5 * rng.normal(size=400)
        config = vi_graves.Config(hidden=(), epochs=150, learning_rate=2e-3, momentum=0.0)
        state, _ = vi_graves.fit(Rows(X, y), config, np.random.default_rng(0))
        A = np.column_stack([X, np.ones(400)])
        best = 1 / np.sqrt((A**2).sum(axis=0) / 0.25 + 1 / state.mean.var())
        exact = np.linalg.lstsq(A, y, rcond=None)[0]
        assert np.all(np.abs(state.mean - exact) < best)
        np.testing.assert_allclose(state.std, best, rtol=0.2)
        assert state.noise_variance == pytest.approx(0.25, rel=0.15)
