"""Langevin dynamics: density and gradient against twins, a fit step by step, stationary variances in closed form."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from ep_bench.methods import sgld
from ep_bench.methods.sgld import sampling
from ep_bench.models import mlp
from ep_bench.numerics.normal_rng import fill_normals, stream
from ep_bench.types import Rows
from tests.methods.support import rows
from tests.twins import plain_networks as plain
from tests.twins.plain_networks import check_gradient

QUICK = {"hidden": [5], "epochs": 300}  # options of the conformance tests

SHAPES = [(), (5,), (4, 3), (19,), (9, 17)]


def negative_log_joint(theta, X, y, sizes, n, prior):
    w, kappa = theta[:-1], theta[-1]
    rows = plain.log_normal(y, plain.outputs(X, w, sizes), np.log1p(np.exp(kappa)))
    total = n / len(y) * rows.sum() + plain.log_normal(w, 0.0, prior.weights).sum()
    return -(total if prior.noise_known else total + plain.log_normal(kappa, 0.0, prior.kappa))


class Case:
    """A random network with kappa, and a batch of n data points."""

    def __init__(self, hidden, seed, rows=9, d=5, n=40, prior=None):
        rng = np.random.default_rng(seed)
        self.sizes, self.layers, self.rng, self.n = (d, *hidden, 1), mlp.layout(d, hidden), rng, n
        self.prior = prior or sampling.NetworkPrior(0.7, 30.0, noise_known=False)
        self.theta = np.append(rng.normal(size=mlp.count(self.layers)), rng.normal(-1.0, 1.5))
        self.X, self.y = rng.normal(size=(rows, d)), rng.normal(size=rows)

    def energy(self, theta):
        work, gradient = sampling.workspace(self.layers, len(self.y)), np.full(len(theta), np.nan)
        value, squares = sampling.misfit(theta, self.X, self.y, self.n, self.layers, work, gradient)
        return value + sampling.add_prior(theta, self.prior, gradient), gradient, squares

    def twin(self, theta):
        return negative_log_joint(theta, self.X, self.y, self.sizes, self.n, self.prior)


@pytest.mark.parametrize("hidden", SHAPES)
class TestDensity:
    def test_density_equals_that_of_the_twin(self, hidden):
        case = Case(hidden, 1)
        value, _, squares = case.energy(case.theta)
        assert value == pytest.approx(case.twin(case.theta), rel=1e-12)
        f = plain.outputs(case.X, case.theta[:-1], case.sizes)
        assert squares == pytest.approx(((case.y - f) ** 2).sum(), rel=1e-12)

    @pytest.mark.parametrize(("rows", "d"), [(9, 5), (1, 1)])
    def test_gradient(self, hidden, rows, d):
        case = Case(hidden, 2, rows=rows, d=d)
        check_gradient(case.twin, case.theta, case.energy(case.theta)[1], case.rng, step=1e-6)

    @pytest.mark.parametrize("kappa", [-12.0, -1.0, 0.0, 3.0, 40.0])
    def test_gradient_by_kappa_alone(self, hidden, kappa):
        case, h = Case(hidden, 3), 1e-5
        case.theta[-1] = kappa
        step = np.append(np.zeros(len(case.theta) - 1), h)
        slope = (case.energy(case.theta + step)[0] - case.energy(case.theta - step)[0]) / (2 * h)
        assert case.energy(case.theta)[1][-1] == pytest.approx(slope, rel=1e-6, abs=1e-8)

    def test_known_noise_has_neither_prior_nor_gradient(self, hidden):
        case = Case(hidden, 4, prior=sampling.NetworkPrior(0.7, 30.0, noise_known=True))
        value, gradient, _ = case.energy(case.theta)
        assert value == pytest.approx(case.twin(case.theta), rel=1e-12)
        assert gradient[-1] == 0.0


@pytest.mark.parametrize("kappa", [-800.0, -40.0, -1.0, 0.0, 5.0, 800.0])
def test_softplus_over_the_whole_range(kappa):
    assert sampling.softplus(kappa) == pytest.approx(np.logaddexp(0.0, kappa), rel=1e-14, abs=1e-300)


def quiet(train, config, seed=0):
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return sgld.fit(train, config, np.random.default_rng(seed))


class Chain:
    """The chain in NumPy, with the orders and normal numbers of the generator of ``fit``."""

    def __init__(self, train, config, seed):
        X, y = train.X, train.y
        n, rng = len(y), np.random.default_rng(seed)
        sizes, layers = (X.shape[1], *config.hidden, 1), mlp.layout(X.shape[1], config.hidden)
        theta = np.append(mlp.initial_weights(layers, rng), np.log(np.expm1(1.0)))
        words, e, V = stream(rng), np.empty(len(theta)), np.zeros(len(theta) - 1)
        starts = range(0, n, config.batch_size)
        total, t = len(starts) * config.epochs, 0
        prior = sampling.NetworkPrior(config.prior_variance, config.noise_prior_variance, noise_known=False)
        b = (total - 1) / (config.final_step ** (-1 / config.decay) - 1)
        self.thetas, self.eps = [], []
        G = np.ones(len(theta))
        for _ in range(config.epochs):
            order = rng.permutation(n)
            for start in starts:
                batch = order[start : start + config.batch_size]
                case = Case(config.hidden, 0, d=X.shape[1], n=n, prior=prior)
                case.X, case.y = X[batch], y[batch]
                g = self.gradient(case, theta, sizes)
                if config.preconditioner == "rmsprop" and t < config.burn_in * total:
                    likelihood = g[:-1] - theta[:-1] / config.prior_variance
                    V = 0.999 * V + 0.001 * (likelihood / n) ** 2
                    G[:-1] = 1 / (0.1 + np.sqrt(V))
                eps = np.full(len(theta), config.step_size / n * b**config.decay)
                eps[-1] = config.noise_step_size / n * b**config.decay
                eps *= (b + t) ** -config.decay  # as the paper prints it: a (b + t)^-gamma
                fill_normals(words, e)
                theta = theta - 0.5 * eps * G * g + np.sqrt(eps * G) * e
                self.thetas.append(theta)
                self.eps.append(eps[0])
                t += 1

    @staticmethod
    def gradient(case, theta, sizes):
        """By differences of the twin, without the kernels."""
        found = np.empty(len(theta))
        for i in range(len(theta)):
            h = np.zeros(len(theta))
            h[i] = 1e-5
            args = (case.X, case.y, sizes, case.n, case.prior)
            found[i] = (negative_log_joint(theta + h, *args) - negative_log_joint(theta - h, *args)) / 2e-5
        return found


@pytest.mark.parametrize("preconditioner", ["none", "rmsprop"])
def test_a_fit_step_by_step(preconditioner):
    """Kept samples, their weights, noise and trace, for two epochs with a smaller last batch."""
    train = rows(11, 2, 5)
    config = sgld.Config(
        hidden=(3,), epochs=2, batch_size=4, samples=2, step_size=0.05, preconditioner=preconditioner, final_step=0.2
    )
    state, trace = sgld.fit(train, config, np.random.default_rng(6))
    chain = Chain(train, config, 6)
    assert len(chain.thetas) == 6
    due = [3, 5]  # two evenly spaced steps of 3, 4 and 5, which follow the burn-in; the last one is included
    kept = np.array([chain.thetas[t] for t in due])
    np.testing.assert_allclose(state.weights, kept[:, :-1], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(state.noise_variances, np.logaddexp(0.0, kept[:, -1]), rtol=1e-6)
    sizes = np.array([chain.eps[t] for t in due])
    np.testing.assert_allclose(state.mixture, sizes / sizes.sum(), rtol=1e-12)
    np.testing.assert_allclose(trace["step_size"], [chain.eps[2], chain.eps[5]], rtol=1e-12)
    np.testing.assert_allclose(
        trace["noise_deviation"], [np.sqrt(np.logaddexp(0.0, chain.thetas[t][-1])) for t in (2, 5)], rtol=1e-6
    )
    assert chain.eps[5] == pytest.approx(0.2 * chain.eps[0], rel=1e-12)


def orthogonal(n, scales, seed):
    """Inputs that are orthogonal to each other and to the constant: the posterior of the linear model is diagonal."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(np.column_stack([np.ones(n), rng.normal(size=(n, len(scales)))]))
    X = Q[:, 1:] * np.sqrt(n) * scales
    return Rows(X, X @ rng.normal(size=len(scales)) + 0.3 * rng.normal(size=n))


def linear_chain(train, config, seed, steps, batch=None):
    """Samples (S, P + 1) of a chain of ``steps`` steps of constant size on full or small batches; a tenth is burn-in.

    One call of the kernel: a fit has as many calls as epochs.
    """
    X, y = train.X, train.y
    n, rng, layers = len(y), np.random.default_rng(seed), mlp.layout(train.X.shape[1], ())
    batch = batch or n
    theta = np.append(np.zeros(mlp.count(layers)), np.log(np.expm1(config.noise_variance or 1.0)))
    schedule = sgld._schedule(config, n, steps)
    due = sgld._sample_steps(config, steps)
    samples = np.empty((len(due), len(theta)))
    order = np.concatenate([rng.permutation(n) for _ in range(steps * batch // n)])
    prior, work, words = sgld._prior(config), sampling.workspace(layers, batch), stream(rng)
    *_, stored = sampling.epoch(X, y, order, 0, theta, layers, prior, schedule, words, work, due, 0, samples)
    assert stored == len(due) == steps - steps // 10
    return samples


def chain_options(**options):
    common = {"hidden": (), "noise_variance": 0.5, "final_step": 1.0, "burn_in": 0.1, "samples": 10**7}
    return sgld.Config(**{**common, **options})


def linear_posterior(train, config):
    A = np.column_stack([train.X, np.ones(len(train.y))])
    precision = 1 / config.prior_variance + (A**2).sum(axis=0) / config.noise_variance
    return A.T @ train.y / config.noise_variance / precision, precision


@pytest.mark.slow
class TestStationary:
    """In the linear model with known noise and full batches, the error of the steps has a closed form."""

    def test_the_variance_exceeds_the_posterior_in_proportion_to_the_step(self):
        """theta' = theta - eps/2 L (theta - mean) + sqrt(eps) e has the stationary variance 1 / (L (1 - eps L / 4))."""
        train, excess = orthogonal(20, np.ones(3), 8), {}
        for relative_step in (0.2, 0.4, 0.8):  # eps L
            precision = 1.0 + 20 / 0.5
            config = chain_options(step_size=20 * relative_step / precision)
            mean, precisions = linear_posterior(train, config)
            np.testing.assert_allclose(precisions, precision)
            w = linear_chain(train, config, 7, 100_000)[:, :-1]
            rest = 1 - relative_step / 2  # correlation of successive samples
            error = np.sqrt(2 / len(w) * (1 + rest**2) / (1 - rest**2))
            np.testing.assert_allclose(w.var(axis=0) * precision, 1 / (1 - relative_step / 4), rtol=4 * error)
            np.testing.assert_allclose(w.mean(axis=0), mean, atol=4 * np.sqrt(4 / relative_step / len(w) / precision))
            excess[relative_step] = ((w.var(axis=0) * precision).mean() - 1) / relative_step
        np.testing.assert_allclose(list(excess.values()), 0.28, atol=0.06)  # 0.263, 0.278, 0.3125

    @pytest.mark.exhaustive
    def test_the_preconditioner_keeps_the_distribution_and_mixes_faster(self):
        """Inputs of scales 0.03 and 3: without the prior, the precisions differ by a factor of 10,000."""
        train = orthogonal(20, np.array([0.03, 3.0]), 9)
        chains = {}
        for kind in ("rmsprop", "none"):
            config = chain_options(step_size=0.02, preconditioner=kind)
            mean, precision = linear_posterior(train, config)
            chains[kind] = (linear_chain(train, config, 7, 200_000)[:, :-1] - mean) * np.sqrt(precision)
        w = chains["rmsprop"]
        np.testing.assert_allclose(w.var(axis=0), 1.0, rtol=0.2)
        np.testing.assert_allclose(w.mean(axis=0), 0.0, atol=0.3)

        def memory(w):  # autocorrelation of the slowest weight at lag 100
            return (w[100:, 0] * w[:-100, 0]).mean() / w[:, 0].var()

        assert memory(w) < memory(chains["none"]) - 0.2

    @pytest.mark.parametrize("kind", ["none", pytest.param("rmsprop", marks=pytest.mark.exhaustive)])
    def test_the_excess_variance_of_minibatches_decreases_with_the_step(self, kind):
        train, ratios = orthogonal(20, np.ones(2), 10), []
        largest = 0.2 if kind == "none" else 0.05
        for step in (largest, largest / 10):
            config = chain_options(step_size=step, preconditioner=kind)
            w = linear_chain(train, config, 11, 400_000, batch=5)[:, :-1]
            ratios.append((w.var(axis=0) * linear_posterior(train, config)[1]).mean())
        assert ratios[0] > ratios[1] + 0.02
        assert ratios[1] == pytest.approx(1.0, abs=0.1)

    def test_the_posterior_of_kappa_matches_quadrature(self):
        """With inputs of 0, the constant integrates out analytically and only kappa remains."""
        y = 0.7 * np.random.default_rng(12).normal(size=15)
        config = chain_options(step_size=0.1, noise_step_size=0.3, noise_prior_variance=9.0, noise_variance=None)
        found = linear_chain(Rows(np.zeros((15, 1)), y), config, 13, 400_000)[:, -1]
        kappa = np.linspace(-8.0, 8.0, 4001)
        s2 = np.logaddexp(0.0, kappa)
        precision = 1 + len(y) / s2
        log = -0.5 * (len(y) * np.log(s2) + (y**2).sum() / s2 - (y.sum() / s2) ** 2 / precision + np.log(precision))
        density = np.exp(log - kappa**2 / 18 - (log - kappa**2 / 18).max())
        density /= density.sum()
        mean = density @ kappa
        spread = np.sqrt(density @ (kappa - mean) ** 2)
        assert found.mean() == pytest.approx(mean, abs=0.1 * spread)
        assert found.std() == pytest.approx(spread, rel=0.08)


class TestFit:
    def test_predictions_are_mixtures_of_the_samples_with_their_own_noise(self):
        train = rows(30, 2, 22)
        state, _ = quiet(train, sgld.Config(hidden=(4,), epochs=12, samples=6))
        answer = sgld.predict(state, train.X[:3], np.random.default_rng(1))
        expected = [plain.outputs(train.X[:3], w, (2, 4, 1)) for w in state.weights]
        np.testing.assert_allclose(answer.means, expected, rtol=1e-10, atol=1e-12)
        np.testing.assert_array_equal(answer.variances, state.noise_variances[:, None] * np.ones((6, 3)))
        np.testing.assert_array_equal(answer.weights, state.mixture)
        assert len(set(state.noise_variances)) == 6
        assert np.all(np.diff(state.mixture) < 0)

    @pytest.mark.parametrize(
        ("options", "kept"),
        [
            ({}, 40), ({"samples": 7}, 7), ({"samples": 1}, 1), ({"samples": 1000}, 40), ({"burn_in": 0.0}, 80),
            ({"burn_in": 0.99, "samples": 1000}, 1), ({"epochs": 1, "samples": 1000}, 2), ({"epochs": 1000}, 100),
        ],
    )  # fmt: skip
    def test_number_of_kept_samples(self, options, kept):
        config = sgld.Config(**{"hidden": (3,), "epochs": 20, "batch_size": 10, **options})
        state, _ = quiet(rows(40, 2, 24), config)
        assert len(state.weights) == len(state.noise_variances) == len(state.mixture) == kept
        assert state.mixture.sum() == pytest.approx(1.0)
        assert len(np.unique(state.weights, axis=0)) == kept
        assert state.weights.base is None  # not a view of a larger array

    @pytest.mark.parametrize("noise", [1e-6, 0.04, 1e4])
    def test_a_fixed_noise_variance_is_kept(self, noise):
        config = sgld.Config(hidden=(3,), epochs=3, noise_variance=noise, step_size=1e-3 * min(noise, 1.0))
        state, trace = sgld.fit(rows(50, 3, 25), config, np.random.default_rng(1))
        np.testing.assert_allclose(state.noise_variances, noise, rtol=1e-10)
        np.testing.assert_allclose(trace["noise_deviation"], np.sqrt(noise), rtol=1e-10)
