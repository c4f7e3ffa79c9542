"""Markov chains for Student-t noise: reference values, conditionals, the joint distribution, diagnostics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from ep_bench import Estimator
from ep_bench.covariances import build, matrix
from ep_bench.covariances.hyperparameters import Hyperparameters
from ep_bench.methods import gp_t
from ep_bench.methods.gp_t import chain, sampling, scale_mixture
from ep_bench.methods.gp_t.chain import ChainWalker, StudentTModel
from ep_bench.numerics import mcmc_diagnostics, slice_sampling
from tests.methods.hmc_support import distance, standard_error
from tests.methods.test_gp_t import FIXED, VALUES, conflicting, log_density, options_of

GIBBS_ERROR = {"A": 3.3e-4, "B": 5.6e-4}  # largest difference between two runs of the reference


def small_model(**given):
    """Five data points with one input, under narrow priors."""
    rng = np.random.default_rng(0)
    covariance = build("se", 1, True)
    hyper = Hyperparameters.of((*covariance.names, "scale", "nu"), 1, given)
    return StudentTModel(rng.normal(size=(5, 1)), rng.normal(size=5), covariance, replace(hyper, std=np.full(4, 0.5)))


@pytest.mark.slow
@pytest.mark.parametrize("case", ["A", pytest.param("B", marks=pytest.mark.exhaustive)])
def test_reference_values(case):
    values = VALUES["cases"][case]
    options = {"samples": 3000, "warmup": 20, "stored": 6000, "random_state": 0}
    model = Estimator("gp_t", **FIXED, **options_of(values["hyper"]), inference="mcmc", **options).fit(
        conflicting().X, conflicting().y
    )
    assert model.converged_
    means, variances = sampling.latents(model.state_, np.array(VALUES["x_star"])[:, None])
    expected = values["exact_gibbs"]
    for at in range(5):
        error = standard_error(means[:, at].reshape(2, -1))
        assert error < 2e-3
        assert abs(means[:, at].mean() - expected["mean"][at]) < 4 * np.hypot(error, GIBBS_ERROR[case])
        series = variances[:, at] + (means[:, at] - means[:, at].mean()) ** 2
        error = standard_error(series.reshape(2, -1))
        assert error < 0.05 * expected["var"][at]
        assert abs(series.mean() - expected["var"][at]) < 4 * error


class TestConditionals:
    DRAWS = 3000

    def walker(self, **given):
        return ChainWalker(small_model(**given), np.random.default_rng(1))

    def test_draws_from_a_prior_of_deficient_rank(self):
        root = np.random.default_rng(0).normal(size=(4, 2))
        K, rng = root @ root.T, np.random.default_rng(2)
        draws = np.array([chain.draw_prior(np.tril(K), rng) for _ in range(self.DRAWS)])
        error = np.sqrt((K**2 + np.outer(K.diagonal(), K.diagonal())) / self.DRAWS)
        assert (np.abs(draws.T @ draws / self.DRAWS - K) < 4 * error).all()
        # the null space of K
        null = np.linalg.svd(root)[0][:, 2:]
        assert np.abs(draws @ null).max() < 1e-6

    def test_residuals(self):
        walker = self.walker()
        model, V = walker.model, walker.V
        draws = np.array([walker.draw_residuals() for _ in range(self.DRAWS)])
        R = np.linalg.inv(matrix(model.covariance, walker.theta[:-2], model.X) + np.diag(V))
        mean, covariance = V * (R @ model.y), np.diag(V) - V[:, None] * R * V
        np.testing.assert_array_less(np.abs(draws.mean(0) - mean), 4 * np.sqrt(covariance.diagonal() / self.DRAWS))
        spread = np.outer(covariance.diagonal(), covariance.diagonal())
        error = np.sqrt((covariance**2 + spread) / self.DRAWS)
        assert (np.abs(np.cov(draws.T) - covariance) < 4 * error).all()

    def test_scales(self):
        walker = self.walker()
        r = np.array([0.1, -0.5, 2.0, 0.0, 7.0])
        scale, nu = np.exp(walker.theta[-2:])
        draws = np.array([walker.draw_scales(r) for _ in range(self.DRAWS)])
        for at in range(5):
            expected = stats.invgamma(0.5 * (nu + 1), scale=0.5 * (nu * scale**2 + r[at] ** 2))
            assert stats.kstest(draws[:, at], expected.cdf).pvalue > 1e-3

    def test_scale_and_degrees_of_freedom(self):
        walker = self.walker()
        r = np.array([0.1, -0.5, 2.0, 0.0, 7.0])
        draws = []
        for _ in range(self.DRAWS):
            walker.draw_likelihood(r)
            draws.append(walker.theta[-2:].copy())
        hyper = walker.model.hyper
        axes = [np.linspace(hyper.median[at] - 4.0, hyper.median[at] + 4.0, 161) for at in (-2, -1)]
        axes[1] = axes[1][axes[1] > 0.0]  # nu stops at 1
        log_scale, log_nu = np.meshgrid(*axes, indexing="ij")
        heights = stats.t.logpdf(r[:, None, None], np.exp(log_nu), 0.0, np.exp(log_scale)).sum(axis=0)
        for value, at in ((log_scale, -2), (log_nu, -1)):
            heights += stats.norm.logpdf(value, hyper.median[at], hyper.std[at])
        weights = np.exp(heights - logsumexp(heights))
        found = np.array(draws)
        assert (found[:, 1] >= 0.0).all()
        for place, value in enumerate((log_scale, log_nu)):
            mean = (weights * value).sum()
            assert distance(found[None, :, place], mean) < 4
            assert distance((found[None, :, place] - mean) ** 2, (weights * (value - mean) ** 2).sum()) < 4

    @pytest.mark.parametrize("ellipses", [pytest.param(False, marks=pytest.mark.exhaustive), True])
    def test_hyperparameters_conditional_on_the_scales(self, ellipses, monkeypatch):
        """Lengthscale and scale are sampled, the magnitude is fixed; U does not change."""
        monkeypatch.setattr(chain, "LINES", 0)
        walker = self.walker(magnitude=1.5)
        model, hyper = walker.model, walker.model.hyper
        U = walker.V * np.exp(-2 * walker.theta[-2])
        if ellipses:
            walker.approximation = slice_sampling.StudentTApproximation(np.array([0.5, -0.5]), np.diag([0.6, 0.8]))
        draws = []
        for _ in range(1000):
            walker.draw_hyperparameters()
            draws.append(walker.theta[[0, 2]])
            _, walker.log_targets = walker.factorise()
        np.testing.assert_allclose(walker.V * np.exp(-2 * walker.theta[-2]), U, rtol=1e-9)
        axes = [np.linspace(hyper.median[at] - 2.5, hyper.median[at] + 2.5, 61) for at in (0, 2)]
        heights = np.array([[self.height(model, a, b, U) for b in axes[1]] for a in axes[0]])
        weights = np.exp(heights - logsumexp(heights))
        for place, value in enumerate(np.meshgrid(*axes, indexing="ij")):
            mean = (weights * value).sum()
            series = np.array(draws)[None, :, place]
            assert standard_error(series) < 0.05
            assert distance(series, mean) < 4
            assert distance((series - mean) ** 2, (weights * (value - mean) ** 2).sum()) < 4

    @staticmethod
    def height(model, log_lengthscale, log_scale, U):
        K = matrix(model.covariance, np.array([log_lengthscale, np.log(1.5)]), model.X)
        prior = stats.norm.logpdf([log_lengthscale, log_scale], model.hyper.median[[0, 2]], 0.5).sum()
        return prior + stats.multivariate_normal.logpdf(model.y, cov=K + np.diag(U * np.exp(2 * log_scale)))

    def test_fixed_hyperparameters_do_not_change(self):
        walker = self.walker(lengthscale=0.7, nu=3.0)
        for _ in range(5):
            walker.step()
        np.testing.assert_array_equal(walker.theta[[0, 3]], np.log([0.7, 3.0]))
        assert (walker.theta[[1, 2]] != walker.model.hyper.median[[1, 2]]).all()

    def test_flat_priors_are_truncated_at_the_limits(self):
        model, ends = small_model(), np.full(4, 0.5)
        hyper = replace(model.hyper, std=np.full(4, np.inf), median=np.zeros(4), low=-ends, high=ends)
        walker = ChainWalker(model._replace(hyper=hyper), np.random.default_rng(0))
        thetas = []
        for _ in range(200):
            walker.step()
            thetas.append(walker.theta.copy())
        assert np.abs(thetas).max() <= 0.5
        assert (np.ptp(thetas, axis=0) > 0.7).all()


class TestJointDistribution:
    """Draws from the prior, and alternating steps of the sampler and draws of the targets: Geweke (2004)."""

    FEW, MANY = 3000, 6000  # FEW draws find the faults below at 5 standard errors

    @classmethod
    def from_prior(cls, model, rng, n):
        hyper, out = model.hyper, []
        while len(out) < n:
            theta = hyper.median + hyper.std * rng.standard_normal(4)
            if (theta < hyper.low).any() or (theta > hyper.high).any():
                continue
            scale, nu = np.exp(theta[-2:])
            V = 0.5 * nu * scale**2 / rng.standard_gamma(0.5 * nu, 5)
            out.append((theta, V, cls.targets(model, theta, V, rng)))
        return [np.array(part) for part in zip(*out, strict=True)]

    @staticmethod
    def targets(model, theta, V, rng):
        C = matrix(model.covariance, theta[:-2], model.X) + np.diag(V)
        return np.linalg.cholesky(C) @ rng.standard_normal(5)

    def by_alternation(self, model, rng, n):
        theta, V, y = (part[0] for part in self.from_prior(model, rng, 1))
        walker = ChainWalker(model._replace(y=y), rng)
        walker.theta, walker.V, out = theta, V, []
        walker.approximation = slice_sampling.StudentTApproximation(
            model.hyper.median[:3] + 0.2, np.diag([0.4, 0.6, 0.5])
        )
        for _ in range(n):
            walker.weights, walker.log_targets = walker.factorise()
            walker.step()
            y = self.targets(model, walker.theta, walker.V, rng)
            walker.model = walker.model._replace(y=y)
            out.append((walker.theta.copy(), walker.V.copy(), y))
        return [np.array(part) for part in zip(*out, strict=True)]

    @staticmethod
    def quantities(theta, V, y):
        logs, squashed = np.log(V), np.tanh(y)
        crossed = np.column_stack(
            [theta[:, 0] * theta[:, 1], theta[:, 2] * theta[:, 3], squashed[:, 0] * squashed[:, 1]]
        )
        return np.column_stack([theta, theta**2, logs, squashed, squashed**2, logs[:, 0] * theta[:, 2], crossed])

    @pytest.fixture(scope="class")
    @classmethod
    def free(cls):
        return cls.quantities(*cls.from_prior(small_model(), np.random.default_rng(3), 20_000))

    def largest_distance(self, free, draws):
        bound = self.quantities(*self.by_alternation(small_model(), np.random.default_rng(4), draws))
        errors = np.array([standard_error(series[None]) for series in bound.T])
        away = np.abs(bound.mean(axis=0) - free.mean(axis=0))
        return (away / np.hypot(errors, free.std(axis=0) / np.sqrt(len(free)))).max()

    @pytest.mark.slow
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("draws", [FEW, MANY])
    def test_the_step_leaves_it_invariant(self, free, draws, monkeypatch):
        monkeypatch.setattr(chain, "ELLIPSES", 2)
        monkeypatch.setattr(chain, "TURNS", 1)
        assert self.largest_distance(free, draws) < 4.5

    @pytest.mark.slow
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("fault", ["scales", "residuals", "level"])
    def test_a_wrong_step_is_detected(self, free, fault, monkeypatch):
        monkeypatch.setattr(chain, "ELLIPSES", 2)
        monkeypatch.setattr(chain, "TURNS", 1)
        if fault == "scales":
            right = ChainWalker.draw_scales
            monkeypatch.setattr(ChainWalker, "draw_scales", lambda self, r: 1.1 * right(self, r))
        elif fault == "residuals":
            right = ChainWalker.draw_residuals
            monkeypatch.setattr(ChainWalker, "draw_residuals", lambda self: 0.9 * right(self))
        else:
            monkeypatch.setattr(slice_sampling, "_log_t", lambda square, entries: 0.0)  # noqa: ARG005
        assert self.largest_distance(free, self.MANY) > 6.0


class TestPredictions:
    @pytest.mark.parametrize("nu", [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0, 30.0, 100.0, 300.0, 1000.0])
    def test_the_coarse_rule_approximates_the_t(self, nu):
        weights, variances = scale_mixture.coarse(nu, 0.3)
        u = np.concatenate([np.linspace(0.0, 5.0, 200), np.geomspace(5.0, 300.0 if nu <= 30.0 else 45.0, 200)])
        np.testing.assert_allclose(
            log_density(weights, variances, 0.3 * u), stats.t.logpdf(u, nu) - np.log(0.3), atol=5e-4
        )
        assert len(weights) == scale_mixture.NODES

    def test_the_mixture_over_draws(self):
        config = gp_t.Config(inference="mcmc", nu="optimize", samples=6, warmup=4, stored=4)
        with pytest.warns(ConvergenceWarning):
            state, _ = gp_t.fit(conflicting(), config, np.random.default_rng(0))
        X, y = np.array([[0.3]]), 1.4
        means, variances = sampling.latents(state, X)
        expected = 0.0
        for (mean,), (variance,), theta in zip(means, variances, state.theta, strict=True):
            scale, nu = np.exp(theta[-2:])
            s = np.sqrt(variance)
            expected += quad(
                lambda f, mean=mean, s=s, scale=scale, nu=nu: stats.t.pdf(y, nu, f, scale) * stats.norm.pdf(f, mean, s),
                mean - 9 * s, mean + 9 * s, epsrel=1e-9,
            )[0]  # fmt: skip
        distribution = gp_t.predict(state, X, None)
        assert distribution.logpdf([y])[0] == pytest.approx(np.log(expected / len(means)), abs=4e-4)
        assert distribution.mean()[0] == pytest.approx(means.mean())
        mean, variance = gp_t.latent(state, X)
        assert mean[0] == pytest.approx(means.mean())
        assert variance[0] == pytest.approx(variances.mean() + means.var())

    def test_the_latent_distribution_given_a_draw(self):
        config = gp_t.Config(inference="mcmc", samples=4, warmup=2, stored=2)
        with pytest.warns(ConvergenceWarning):
            state, _ = gp_t.fit(conflicting(), config, np.random.default_rng(0))
        X = np.array([[0.3], [9.0]])
        means, variances = sampling.latents(state, X)
        theta, V = state.theta[1, :-2], state.V[1]
        R = np.linalg.inv(matrix(state.covariance, theta, state.X) + np.diag(V))
        k = matrix(state.covariance, theta, X, state.X)
        np.testing.assert_allclose(means[1], k @ R @ state.y, rtol=1e-7)
        exact = np.exp(theta[1]) - (k @ R @ k.T).diagonal()
        np.testing.assert_allclose(variances[1], exact, rtol=1e-6)


@pytest.fixture(scope="module")
def model():
    options = {"inference": "mcmc", "nu": "optimize", "chains": 2, "samples": 300, "warmup": 100, "stored": 120}
    rows = conflicting()
    X, y = rows.X, rows.y.copy()
    y[[6, 17]] += [-3.0, 2.5]  # remove the outliers, which short chains may fit as signal
    return Estimator("gp_t", **options, random_state=0).fit(X, y)


class TestDiagnostics:
    def test_diagnose_counts_each_draw_once(self, model):
        X = np.array([[0.2], [1.7]])
        means = sampling.latents(model.state_, (X - model.x_scaling_.shift) / model.x_scaling_.scale)[0]
        expected = mcmc_diagnostics.measures("here", means.reshape(2, 60, 2))[0]
        found = model.diagnose(X, "here")
        assert found.keys() == expected.keys()
        for name, value in found.items():
            assert value == pytest.approx(expected[name], rel=0.01), name  # other units break other ties of ranks

    def test_log_joint(self):
        walker = ChainWalker(small_model(), np.random.default_rng(0))
        model, theta, V = walker.model, walker.theta, walker.V
        scale, nu = np.exp(theta[-2:])
        C = matrix(model.covariance, theta[:-2], model.X) + np.diag(V)
        expected = stats.multivariate_normal.logpdf(model.y, cov=C)
        expected += stats.invgamma.logpdf(V, 0.5 * nu, scale=0.5 * nu * scale**2).sum()
        expected += stats.norm.logpdf(theta, model.hyper.median, model.hyper.std).sum()
        assert walker.log_joint() == pytest.approx(expected)

    def test_integrated_degrees_of_freedom_are_sampled(self):
        for nu in ("optimize", "integrate"):
            problem = gp_t.problem_of(conflicting(), gp_t.Config(inference="mcmc", nu=nu))
            assert problem.hyper.free.all()

    def test_hyperparameters_that_are_not_sampled_are_at_the_medians(self):
        options = {"inference": "mcmc", "optimize": False, "samples": 6, "warmup": 0, "stored": 6, "lengthscale": 0.7}
        for nu, drawn in (("optimize", set()), ("integrate", {"nu"})):
            with pytest.warns(ConvergenceWarning):
                state, _ = gp_t.fit(conflicting(), gp_t.Config(nu=nu, **options), np.random.default_rng(0))
            moved = {name for name, series in zip(state.hyper.names, state.theta.T, strict=True) if np.ptp(series) > 0}
            assert moved == drawn
            assert drawn <= state.chains.keys()
            np.testing.assert_allclose(np.exp(state.theta[:, :3]), np.tile([0.7, 1.0, 0.3], (len(state.theta), 1)))
