"""Graves' variational inference: its steps against a plain twin, its estimators against what they estimate."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench import Estimator, data
from ep_bench.methods import vi_graves
from ep_bench.models import mlp
from ep_bench.models.meanfield import divergence
from ep_bench.types import Rows
from tests import plain_networks as plain
from tests.plain_networks import check_gradient

SHAPES = [(), (5,), (4, 3)]


class Case:
    """A random q over a random network and one row."""

    def __init__(self, hidden, seed, d=3):
        rng = np.random.default_rng(seed)
        self.sizes, self.layers, self.rng = (d, *hidden, 1), mlp.layout(d, hidden), rng
        self.P = mlp.count(self.layers)
        self.theta = np.concatenate([rng.normal(size=self.P), rng.normal(-1.5, 0.5, size=self.P), [-0.6]])
        self.x, self.y = rng.normal(size=(1, d)), 0.8
        self.work = vi_graves._workspace(self.layers)
        self.work.noise[:] = rng.normal(size=self.P)

    def row(self, w):
        """The kernel's -log p(y | w) and gradient by w."""
        self.work.w[:] = w
        value = vi_graves.row_gradient(self.x, self.y, self.theta, self.layers, self.work)
        return value, self.work.g / np.exp(self.theta[-1])


@pytest.mark.parametrize("hidden", SHAPES)
class TestSteps:
    def test_gradient_of_a_row(self, hidden):
        case = Case(hidden, 1)
        w = case.theta[: case.P] + np.exp(case.theta[case.P : -1]) * case.work.noise

        def loss(at):
            return -plain.log_normal(case.y, plain.outputs(case.x, at, case.sizes)[0], np.exp(case.theta[-1]))

        value, gradient = case.row(w)
        assert value == pytest.approx(loss(w), rel=1e-12)
        residual = case.y - plain.outputs(case.x, w, case.sizes)[0]
        assert case.work.f[0] == pytest.approx(residual**2, rel=1e-12)
        check_gradient(loss, w, gradient.copy(), case.rng, step=1e-6)

    def test_steps_are_the_twins(self, hidden):
        case, n, rate, momentum, prior = Case(hidden, 2), 12, 0.01, 0.7, np.array([0.2, 0.6])
        theta, velocity = case.theta.copy(), np.zeros(2 * case.P + 1)
        for _ in range(5):
            e = case.rng.normal(size=case.P)
            m, s, sigma2 = theta[: case.P], np.exp(theta[case.P : -1]), np.exp(theta[-1])
            w = m + s * e
            case.theta[:] = theta
            _, g = case.row(w)
            g, square = g.copy(), case.work.f[0]
            by_mean = g + (m - prior[0]) / (n * prior[1])
            by_variance = g**2 / 2 + (1 / prior[1] - 1 / s**2) / (2 * n)  # one row's share
            gradient = np.concatenate(
                [sigma2 * by_mean, np.minimum(n * 2 * s**2 * by_variance, 10), [max(0.5 * (1 - square / sigma2), -10)]]
            )
            velocity = momentum * velocity - rate * gradient
            theta = theta + velocity
            vi_graves.take_step(case.theta, prior, n, rate, momentum, case.work)
            np.testing.assert_allclose(case.theta, theta, rtol=1e-11, atol=1e-13)

    def test_gradients_of_the_noise_and_the_divergence(self, hidden):
        """By log sigma2 that of a row's misfit; by m and log s, without data, that of the divergence over n."""
        case, n, prior = Case(hidden, 3), 7, np.array([0.1, 0.5])
        case.row(case.theta[: case.P])
        square = case.work.f[0]
        case.work.g[:] = 0.0
        before, h = case.theta.copy(), 1e-5
        vi_graves.take_step(case.theta, prior, n, 1.0, 0.0, case.work)
        found = before - case.theta
        up, down = (0.5 * (np.log(2 * np.pi) + t + square * np.exp(-t)) for t in (before[-1] + h, before[-1] - h))
        assert found[-1] == pytest.approx(max((up - down) / (2 * h), -10.0), rel=1e-6)
        v0 = np.full(case.P, prior[1])

        def distance(at):
            return divergence(at[: case.P] - prior[0], np.exp(at[case.P :]), v0)

        by_m, by_log_s = found[: case.P] / np.exp(before[-1]) * n, found[case.P : -1]
        assert by_log_s.max() < 10
        check_gradient(distance, before[:-1], np.concatenate([by_m, by_log_s]), case.rng, step=1e-5)


class TestEstimators:
    def test_squared_gradients_have_the_mean_of_the_curvature_where_residuals_are_the_noise(self):
        """A linear model; the target so far off that the residual's mean square over the draws is sigma2."""
        case = Case((), 4)
        x, sigma2 = np.append(case.x[0], 1.0), np.exp(case.theta[-1])
        m, s = case.theta[: case.P], np.exp(case.theta[case.P : -1])
        assert 0.05 < s**2 @ x**2 / sigma2 < 0.95
        case.y = x @ m + np.sqrt(sigma2 - s**2 @ x**2)
        K = 20_000
        squares = np.array([case.row(m + s * case.rng.normal(size=case.P))[1] ** 2 for _ in range(K)])
        mean, error = squares.mean(axis=0), squares.std(axis=0) / np.sqrt(K)
        curvature = x**2 / sigma2
        assert np.all(np.abs(mean - curvature) < 4 * error)
        assert np.all(error < 0.02 * curvature)

    def test_on_average_over_targets_too(self):
        """Targets from the model itself: E g^2 over y is the curvature at any weights, for a network as well."""
        case = Case((4,), 5)
        w = case.theta[: case.P].copy()
        f, sigma2 = plain.outputs(case.x, w, case.sizes)[0], np.exp(case.theta[-1])
        K, squares = 20_000, np.zeros(case.P)
        for target in f + np.sqrt(sigma2) * case.rng.normal(size=K):
            case.y = target
            squares += case.row(w)[1] ** 2 / K
        case.y = f + 1.0
        jacobian = case.row(w)[1] * sigma2
        expected = jacobian**2 / sigma2
        assert np.all(np.abs(squares - expected) <= 4.5 * expected * np.sqrt(2 / K))

    def test_the_prior_maximises_the_bound(self):
        rng = np.random.default_rng(6)
        m, s = rng.normal(0.4, 1.0, size=30), np.exp(rng.normal(-1, 0.5, size=30))
        mean, variance = vi_graves._best_prior(m, np.log(s))
        least = divergence(m - mean, s, np.full(30, variance))
        for shift, scale in ((1e-3, 1.0), (-1e-3, 1.0), (0.0, 1.001), (0.0, 0.999)):
            assert least < divergence(m - mean - shift, s, np.full(30, variance * scale)) < least + 1e-4


def rows(n, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n)
    return Rows(X, (y - y.mean()) / y.std())


class TestFit:
    def test_deviations_of_a_linear_model_come_near_those_of_the_mean_field_optimum(self):
        """Where the noise model holds, the stationary point is the bound's; steps are noisy, hence the width."""
        rng = np.random.default_rng(7)
        X = rng.normal(size=(400, 4))
        y = X @ [1.0, -0.5, 0.3, -0.8] + 0.5 * rng.normal(size=400)
        config = vi_graves.Config(hidden=(), epochs=150, learning_rate=2e-3, momentum=0.0)
        state, _ = vi_graves.fit(Rows(X, y), config, np.random.default_rng(0))
        A = np.column_stack([X, np.ones(400)])
        best = 1 / np.sqrt((A**2).sum(axis=0) / 0.25 + 1 / state.mean.var())
        exact = np.linalg.lstsq(A, y, rcond=None)[0]
        assert np.all(np.abs(state.mean - exact) < best)
        np.testing.assert_allclose(state.deviation, best, rtol=0.2)
        assert state.noise_variance == pytest.approx(0.25, rel=0.15)

    @pytest.mark.slow
    def test_it_learns_where_a_line_does_not(self):
        """With ten times the paper's passes: at 40 it is as good as a line."""
        friedman = data.load_dataset("friedman1")
        X, y = friedman.X, friedman.y
        model = Estimator("vi_graves", random_state=0, epochs=400).fit(X[:450], y[:450])
        dist = model.predict_dist(X[450:])
        A = np.column_stack([X, np.ones(len(y))])
        line = A[450:] @ np.linalg.lstsq(A[:450], y[:450], rcond=None)[0]
        rmse = np.sqrt(np.mean((dist.mean() - y[450:]) ** 2))
        assert rmse < 0.9 * np.sqrt(np.mean((line - y[450:]) ** 2))
        assert dist.std().mean() == pytest.approx(rmse, rel=0.5)

    def test_the_trace(self):
        state, trace = vi_graves.fit(rows(80, 2, 8), vi_graves.Config(hidden=(10,)), np.random.default_rng(0))
        assert {len(curve) for curve in trace.values()} == {40}
        assert trace["objective"][-1] < trace["objective"][0]
        assert trace["noise_deviation"][-1] == pytest.approx(np.sqrt(state.noise_variance))

    def test_the_generator_decides_everything(self):
        train, config = rows(50, 3, 9), vi_graves.Config(hidden=(6,), epochs=3)
        first, again, other = (vi_graves.fit(train, config, np.random.default_rng(seed))[0] for seed in (1, 1, 2))
        for a, b, c in zip(first[1:3], again[1:3], other[1:3], strict=True):
            np.testing.assert_array_equal(a, b)
            assert not np.array_equal(a, c)

    def test_columns_of_the_papers_tables(self):
        assert vi_graves.METHOD.published(vi_graves.Config()) == ("VI", "VI(G)-1")
        assert vi_graves.METHOD.published(vi_graves.Config(hidden=(50, 50))) == ()
