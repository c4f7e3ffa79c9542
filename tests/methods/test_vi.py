"""Variational inference: both forms of the bound against loops, differences, evidences and each other; the fits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from ep_bench.methods import vi
from ep_bench.methods.vi import local_reparameterisation as local_form
from ep_bench.models import mlp
from ep_bench.models import variational_bound as weights_form
from ep_bench.numerics.normal_rng import stream
from ep_bench.types import Rows
from tests.methods.support import rows
from tests.twins import plain_networks as plain
from tests.twins.plain_networks import check_gradient

QUICK = {"hidden": [10], "samples": 2, "epochs": 150}  # options of the conformance tests

SHAPES = [(), (5,), (4, 3), (19,), (9, 17)]


class Case:
    """A random q over a random network, random prior variances, a batch and noise for both forms."""

    def __init__(self, hidden, seed, d=5, rows=9, K=3, total=40):
        rng = np.random.default_rng(seed)
        self.sizes, self.layers, self.rng = (d, *hidden, 1), mlp.layout(d, hidden), rng
        self.P = mlp.count(self.layers)
        self.theta = np.concatenate([rng.normal(size=self.P), rng.normal(-1.0, 0.7, size=self.P), [-0.4]])
        self.prior = np.exp(rng.normal(size=self.P))
        self.X, self.y = rng.normal(size=(rows, d)), rng.normal(size=rows)
        self.noise = rng.normal(size=(K, self.P))
        self.copies = [rng.normal(size=(K * rows, units)) for units in self.sizes[1:]]
        self.K, self.total = K, total  # data points of the training set that the batch represents

    def weights(self, theta=None, draw=None):
        """Return negative bound and gradient of the form that draws weights; ``draw`` is a stream for new noise."""
        theta = self.theta if theta is None else theta
        work = weights_form.workspace(
            len(self.noise), len(self.y), self.P, mlp.units(self.layers), mlp.widest(self.layers)
        )
        if draw is None:
            work.noise[:] = self.noise
            work.std[:] = np.exp(theta[self.P : -1])
            work.W[:] = theta[: self.P] + work.std * self.noise
        else:
            weights_form.draw(theta, draw, work)
        gradient = np.full(len(theta), np.nan)
        value = weights_form.bound(theta, self.X, self.y, self.layers, self.total, self.prior, work, gradient)
        return value, gradient

    def local(self, theta=None, draw=None):
        """Return the same for the form that draws the inputs of the units."""
        theta = self.theta if theta is None else theta
        X, y = np.tile(self.X, (self.K, 1)), np.tile(self.y, self.K)
        work = local_form.workspace(len(y), self.P, sum(self.sizes[1:]), mlp.widest(self.layers), self.sizes[0])
        if draw is None:
            work.noise[:] = np.concatenate([one.ravel() for one in self.copies])
            local_form.fill_variances(theta, work)
        else:
            local_form.draw(theta, draw, work)
        gradient = np.full(len(theta), np.nan)
        return local_form.bound(theta, X, y, self.layers, self.total, self.prior, work, gradient), gradient


@pytest.mark.parametrize("hidden", SHAPES)
class TestKernels:
    def test_the_bound_agrees_with_the_twin(self, hidden):
        case = Case(hidden, 1)
        args = (case.theta, case.X, case.y, case.sizes, case.total, case.prior, case.noise)
        assert case.weights()[0] == pytest.approx(plain.negative_bound(*args), rel=1e-12)
        X, y = np.tile(case.X, (case.K, 1)), np.tile(case.y, case.K)
        args = (case.theta, X, y, case.sizes, case.total, case.prior, case.copies)
        assert case.local()[0] == pytest.approx(plain.local_negative_bound(*args), rel=1e-12)

    @pytest.mark.parametrize("form", ["weights", "local"])
    def test_gradient(self, hidden, form):
        for seed in (2, 3):
            case = Case(hidden, seed)
            of = getattr(case, form)
            check_gradient(lambda at, of=of: of(at)[0], case.theta, of()[1], case.rng, step=1e-6)

    @pytest.mark.parametrize("form", ["weights", "local"])
    def test_gradient_of_a_single_data_point_and_a_single_draw(self, hidden, form):
        case = Case(hidden, 4, d=1, rows=1, K=1)
        of = getattr(case, form)
        check_gradient(lambda at: of(at)[0], case.theta, of()[1], case.rng, step=1e-6)

    def test_both_forms_have_the_same_expectation(self, hidden):
        """Values and gradients, over many draws, within Monte Carlo errors."""
        case, times = Case(hidden, 5), 6000
        found = []
        for seed, form in ((6, case.weights), (7, case.local)):
            words = stream(np.random.default_rng(seed))
            drawn = [form(draw=words) for _ in range(times)]
            found.append(np.array([np.append(gradient, value) for value, gradient in drawn]))
        gap = found[0].mean(axis=0) - found[1].mean(axis=0)
        error = np.sqrt(sum(one.var(axis=0) for one in found) / times)
        assert np.all(np.abs(gap) <= 4.5 * error + 1e-9)
        assert np.mean(np.abs(gap) <= 2 * error + 1e-9) > 0.7


class LinearCase(Case):
    """The linear model with a constant; noise whose first two moments are exact makes the estimate exact."""

    def __init__(self, seed, rows=12, d=3):
        super().__init__((), seed, d=d, rows=rows, K=2, total=rows)
        self.A = np.column_stack([self.X, np.ones(rows)])
        self.noise = np.sqrt(self.P) * np.vstack([np.eye(self.P), -np.eye(self.P)])
        self.copies = [np.repeat([[1.0], [-1.0]], rows, axis=0)]

    def posterior(self, sigma2):
        precision = np.diag(1 / self.prior) + self.A.T @ self.A / sigma2
        return np.linalg.solve(precision, self.A.T @ self.y / sigma2), precision

    def log_evidence(self, sigma2):
        covariance = sigma2 * np.eye(len(self.y)) + self.A * self.prior @ self.A.T
        return stats.multivariate_normal.logpdf(self.y, np.zeros(len(self.y)), covariance)


@pytest.mark.parametrize("form", ["weights", "local"])
class TestLinearModel:
    def test_the_bound_in_closed_form(self, form):
        case = LinearCase(11)
        m, s, sigma2 = case.theta[: case.P], np.exp(case.theta[case.P : -1]), np.exp(case.theta[-1])
        squares = (case.y - case.A @ m) ** 2 + case.A**2 @ s**2
        expected = 0.5 * (np.log(2 * np.pi * sigma2) + squares / sigma2).sum() + plain.divergence(m, s, case.prior)
        assert getattr(case, form)()[0] == pytest.approx(expected, rel=1e-12)

    def test_it_is_below_the_evidence(self, form):
        for seed in range(30):
            case = LinearCase(seed)
            assert -getattr(case, form)()[0] < case.log_evidence(np.exp(case.theta[-1]))

    def test_its_maximum_is_the_known_one(self, form):
        """m is the posterior mean, s^2 the inverse diagonal of the precision: zero gradient, worse neighbours."""
        case = LinearCase(12)
        mean, precision = case.posterior(np.exp(-0.4))
        top = np.concatenate([mean, -0.5 * np.log(np.diag(precision)), [-0.4]])
        value, gradient = getattr(case, form)(top)
        np.testing.assert_allclose(gradient[:-1], 0.0, atol=1e-9)
        for _ in range(20):
            step = np.append(0.1 * case.rng.normal(size=2 * case.P), 0.0)
            assert getattr(case, form)(top + step)[0] > value
        # the gap is KL(q || posterior): half the log of Hadamard's ratio
        gap = 0.5 * (np.log(np.diag(precision)).sum() - np.linalg.slogdet(precision)[1])
        assert case.log_evidence(np.exp(-0.4)) + value == pytest.approx(gap, rel=1e-9)

    def test_with_orthogonal_inputs_the_bound_is_the_evidence(self, form):
        case = LinearCase(13)
        case.A = np.linalg.qr(np.column_stack([np.ones(12), case.rng.normal(size=(12, 3))]))[0] * np.sqrt(12)
        case.A = np.roll(case.A / case.A[0, 0], -1, axis=1)
        case.X = np.ascontiguousarray(case.A[:, :-1])
        mean, precision = case.posterior(np.exp(-0.4))
        np.testing.assert_allclose(precision, np.diag(np.diag(precision)), atol=1e-9)
        top = np.concatenate([mean, -0.5 * np.log(np.diag(precision)), [-0.4]])
        assert -getattr(case, form)(top)[0] == pytest.approx(case.log_evidence(np.exp(-0.4)), rel=1e-10)

    def test_the_fit_reaches_it(self, form):
        rng = np.random.default_rng(14)
        X = rng.normal(size=(60, 3)) @ [[1.0, 0.7, 0.0], [0.0, 0.7, 0.3], [0.0, 0.0, 1.0]]
        y = X @ [1.0, -0.5, 0.2] + 0.3 + 0.6 * rng.normal(size=60)
        config = vi.Config(
            hidden=(), epochs=1500, batch_size=20, noise_variance=0.36, prior_variance=0.5,
            local_reparameterization=form == "local",
        )  # fmt: skip
        state, trace = vi.fit(Rows(X, y), config, np.random.default_rng(0))
        A = np.column_stack([X, np.ones(60)])
        precision = np.eye(4) / 0.5 + A.T @ A / 0.36
        expected, std = np.linalg.solve(precision, A.T @ y / 0.36), 1 / np.sqrt(np.diag(precision))
        assert np.all(np.abs(state.mean - expected) < 0.15 * std)
        np.testing.assert_allclose(state.std, std, rtol=0.05)
        assert state.noise_variance == pytest.approx(0.36, rel=1e-12)
        truth = -stats.multivariate_normal.logpdf(y, np.zeros(60), 0.36 * np.eye(60) + 0.5 * A @ A.T)
        gap = 0.5 * (np.log(np.diag(precision)).sum() - np.linalg.slogdet(precision)[1])
        assert np.mean(trace["objective"][-200:]) * 60 == pytest.approx(truth + gap, abs=0.5)


def averaged_bound(case, theta, seed, times):
    """Return the mean of the negative bound over draws and its standard error."""
    words = stream(np.random.default_rng(seed))
    values = np.array([case.weights(theta, words)[0] for _ in range(times)])
    return values.mean(), values.std() / np.sqrt(times)


def test_the_bound_of_a_small_network_is_below_its_evidence():
    """The evidence by importance sampling from the prior: one input, two hidden units, five data points."""
    rng = np.random.default_rng(15)
    case = Case((2,), 16, d=1, rows=5, K=50, total=5)
    case.X, case.prior = np.array([[-1.5], [-0.7], [0.1], [0.6], [1.4]]), np.ones(case.P)
    case.y = np.maximum(case.X[:, 0], 0.0) - 0.4
    noise = 0.2
    K = 1_000_000
    f = mlp.evaluate(case.X, rng.normal(size=(K, case.P)), case.layers)
    log_p = plain.log_normal(case.y, f, noise).sum(axis=1)
    evidence = logsumexp(log_p) - np.log(K)
    ratios = np.exp(log_p - log_p.max())
    error = ratios.std() / ratios.mean() / np.sqrt(K)
    assert error < 0.01
    config = vi.Config(hidden=(2,), epochs=2000, batch_size=5, samples=20, noise_variance=noise)
    state, _ = vi.fit(Rows(case.X, case.y), config, np.random.default_rng(0))
    fitted = np.concatenate([state.mean, np.log(state.std), [np.log(noise)]])
    value, spread = averaged_bound(case, fitted, 17, 400)
    assert -value < evidence + 4 * (error + spread)
    assert -value > evidence - 5.0
    for _ in range(10):
        step = np.append(0.5 * rng.normal(size=2 * case.P), 0.0)
        other, spread = averaged_bound(case, fitted + step, 18, 200)
        assert -other < evidence + 4 * (error + spread)
        assert other > value - 4 * spread


FORMS = [
    {}, {"local_reparameterization": True}, {"prior": "empirical"}, {"noise": "heteroscedastic", "prior": "empirical"},
]  # fmt: skip


class TestFit:
    def test_the_restart_of_the_highest_bound_is_kept(self):
        train = rows(50, 2, 4)
        single, restarted = (vi.Config(hidden=(6,), epochs=40, samples=2, restarts=number) for number in (1, 4))
        rng = np.random.default_rng(3)
        fits = [vi.fit(train, single, rng) for _ in range(4)]
        bounds = [-50 * np.median(trace["objective"][-5:]) for _, trace in fits]
        state, trace = vi.fit(train, restarted, np.random.default_rng(3))
        assert state.start_evidences == pytest.approx(bounds)
        assert len(set(bounds)) == 4
        kept = fits[int(np.argmax(bounds))]
        np.testing.assert_array_equal(state.mean, kept[0].mean)
        assert trace == kept[1]

    def test_a_restart_that_fails_is_left_out(self, monkeypatch):
        train, config = rows(50, 2, 4), vi.Config(hidden=(6,), epochs=4, samples=2, restarts=3)
        limits = iter([-np.inf, np.inf, np.inf])

        def refuse(objective):
            if min(objective) > next(limits):
                raise FloatingPointError("diverged")

        monkeypatch.setattr(vi, "refuse_divergence", refuse)
        state, _ = vi.fit(train, config, np.random.default_rng(3))
        assert np.isneginf(state.start_evidences).tolist() == [True, False, False]
        limits = iter([-np.inf] * 3)
        with pytest.raises(FloatingPointError, match="diverged"):
            vi.fit(train, config, np.random.default_rng(3))

    def test_a_fixed_prior_is_not_changed_and_an_empirical_one_has_two_values_per_layer(self):
        train = rows(50, 3, 24)
        state, _ = vi.fit(train, vi.Config(hidden=(6, 4), epochs=2, prior_variance=0.7), np.random.default_rng(1))
        np.testing.assert_array_equal(state.prior_variance, 0.7)
        state, _ = vi.fit(train, vi.Config(hidden=(6, 4), epochs=2, prior="empirical"), np.random.default_rng(1))
        assert len(set(state.prior_variance)) == 6
