"""Robust regression with Student-t noise: reference values, quadrature, gradients, limits, invalid options."""

from __future__ import annotations

import json
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import betaln, logsumexp
from sklearn.exceptions import ConvergenceWarning

from ep_bench import Estimator
from ep_bench.methods import gp, gp_t
from ep_bench.methods.gp_t import ep, laplace, learning, sampling, scale_mixture
from ep_bench.methods.gp_t import state as gp_t_state
from ep_bench.methods.gp_t.inference import evidence, infer, problem_of
from ep_bench.methods.gp_t.posterior import gaussian
from ep_bench.methods.gp_t.tilted import log_constant, moments
from ep_bench.scoring import score
from ep_bench.types import Rows
from tests.twins.plain_networks import check_gradient

QUICK = {"nu": 4.0}  # options of the conformance tests

PATH = Path(__file__).parents[1] / "reference_values" / "student_t_gp.json"
VALUES = json.loads(PATH.read_text(encoding="utf-8"))
FIXED = {"optimize": False, "standardize": False}
INFERENCES = {"ep": {}, "fep0.5": {"fraction": 0.5}, "laplace": {"inference": "laplace"}}
EVERY = INFERENCES | {name: {"inference": name} for name in ("vb", "fvb", "kl")}


def conflicting():
    x = np.linspace(-3.0, 3.0, 25)
    y = np.sin(2 * x) + 0.1 * np.cos(17 * np.arange(1, 26))
    y[6] += 3
    y[17] -= 2.5
    return Rows(x[:, None], y)


def options_of(hyper):
    return {"lengthscale": hyper["ell"], "magnitude": hyper["magn2"], "nu": hyper["nu"], "scale": hyper["sigma"]}


def test_a_flat_prior_of_log_log_nu_has_the_same_mode():
    """The paper's prior (section 6.2): over log log nu, a search finds the nu of one over log nu."""
    fixed = {"lengthscale": 1.0, "magnitude": 1.0, "scale": 0.1}
    config = gp_t.Config(inference="vb", nu="optimize", prior="none", **fixed)
    problem = problem_of(conflicting(), config)

    def negative(w):
        return -evidence(problem, np.append(problem.hyper.start()[:-1], np.exp(w)))[0]

    found = minimize_scalar(negative, bounds=(np.log(np.log(1.01)), np.log(np.log(900.0))), options={"xatol": 1e-6})
    nu = np.exp(np.exp(found.x))
    assert 1.1 < nu < 100.0  # not at a limit
    found = gp_t.fit(conflicting(), config, np.random.default_rng(0))[0]
    assert found.hyperparameters["nu"] == pytest.approx(nu, rel=1e-3)


def test_searches_start_at_the_values_of_the_paper():
    found = [
        problem_of(conflicting(), gp_t.METHOD.config(nu="optimize", **options)).hyper.start()
        for options in ({}, {"start": "paper"})
    ]
    np.testing.assert_allclose(np.exp(found), [[1.0, 1.0, 0.3, 4.0], [1.0, 1.0, 0.5, 4.0]])


@pytest.mark.parametrize("inference", EVERY)
@pytest.mark.parametrize("case", "AB")
def test_reference_values(case, inference):
    values, is_a_bound = VALUES["cases"][case], inference not in INFERENCES
    options = options_of(values["hyper"]) | EVERY[inference]
    model = Estimator("gp_t", **FIXED, **options).fit(conflicting().X, conflicting().y)
    expected = values["vb" if inference == "fvb" else inference]
    mean, variance = model.latent(np.array(VALUES["x_star"])[:, None])
    assert model.converged_
    assert model.n_iterations_ > 0
    log_evidence = expected["fVB_elbo_identical" if inference == "fvb" else "logZ"]
    assert model.log_evidence_ == pytest.approx(log_evidence, rel=1e-12 if is_a_bound else 1e-9)
    np.testing.assert_allclose(mean, expected["mean"], rtol=1e-7 if is_a_bound else 1e-6)
    np.testing.assert_allclose(variance, expected["var"], rtol=1e-7 if is_a_bound else 1e-6)
    assert np.sum(model.site_precisions_ < 0) == (expected.get("n_neg_lambda", 0) if is_a_bound else 2)
    if "site_tau" in expected:
        np.testing.assert_allclose(model.site_precisions_, expected["site_tau"], rtol=1e-6)


class TestTiltedMoments:
    @pytest.mark.parametrize("case", VALUES["tilted_moments"], ids=lambda case: f"nu={case['nu']} eta={case['eta']}")
    def test_reference_values(self, case):
        at = [np.array([case[name]]) for name in ("cav_mean", "cav_var", "y")]
        found = moments(*at, case["nu"], np.sqrt(case["sigma2"]), case["eta"])
        np.testing.assert_allclose(found[:3, 0], [case["logZ"], case["mean"], case["var"]], rtol=1e-11)

    @pytest.mark.parametrize("nu", [0.7, 4.0, 1000.0])
    @pytest.mark.parametrize("y", [0.0, 1.5, 6.0])
    @pytest.mark.parametrize("scale", [0.05, 1.0])
    @pytest.mark.parametrize("eta", [0.5, 1.0])
    def test_quadrature(self, nu, y, scale, eta):
        m, v = 0.3, 1.0
        found = moments(np.array([m]), np.array([v]), np.array([y]), nu, scale, eta)[:, 0]

        at_mode = stats.t.logpdf(0.0, nu, scale=scale)  # one call: those of scipy take most of the time of a quadrature
        constant = eta * at_mode - 0.5 * np.log(2.0 * np.pi * v) - found[0]

        def height(f):
            residual = (y - f) / scale
            return constant - eta * 0.5 * (nu + 1.0) * np.log1p(residual**2 / nu) - 0.5 * (f - m) ** 2 / v

        def mean(function):
            around = [y + sign * scale * 3.0**k for sign in (-1, 1) for k in range(-1, 4)]
            points = sorted([m, y, found[1], *around])
            return sum(
                quad(lambda f: function(f) * np.exp(height(f)), low, high, epsabs=1e-13, epsrel=1e-12, limit=200)[0]
                for low, high in zip(
                    [min(points[0], -12.0) - 1, *points], [*points, max(points[-1], 14.0)], strict=True
                )
                if high > low
            )

        assert mean(lambda _: 1.0) == pytest.approx(1.0, rel=1e-8)
        assert mean(lambda f: f) == pytest.approx(found[1], rel=1e-8)
        assert mean(lambda f: (f - found[1]) ** 2) == pytest.approx(found[2], rel=1e-8)


@pytest.mark.parametrize("nu", [0.3, 1.0, 4.0, 1e3, 9e3, 1.1e4, 1e8, 1e300])
def test_the_constant_keeps_its_digits(nu):
    expected = -betaln(0.5, 0.5 * nu) - 0.5 * np.log(0.09 * nu)
    assert log_constant(nu, 0.09) == pytest.approx(expected, abs=1e-11)


class TestPosterior:
    def test_precisions_of_any_sign_by_a_dense_solve(self):
        rng = np.random.default_rng(0)
        root = rng.normal(size=(12, 12))
        K, S = root @ root.T / 12 + 0.1 * np.eye(12), rng.uniform(0.1, 5.0, 12)
        S[[2, 7]], S[4] = -0.05, 0.0
        found = gaussian(K, S)
        np.testing.assert_allclose(
            found.covariance, np.linalg.inv(np.linalg.inv(K) + np.diag(S)), rtol=1e-8, atol=1e-10
        )
        assert found.log_determinant == pytest.approx(np.linalg.slogdet(np.eye(12) + K * S)[1], rel=1e-10)

    def test_an_improper_posterior(self):
        assert gaussian(np.eye(3), np.array([1.0, -1.5, 0.0])) is None


@pytest.mark.parametrize("options", EVERY.values(), ids=EVERY)
class TestEveryInference:
    def test_gradient_by_differences(self, options):
        problem = gp_t.problem_of(conflicting(), gp_t.Config(nu="optimize", **options))
        theta = np.log([1.0, 1.0, 0.2, 4.0])
        _, gradient = evidence(problem, theta)
        rng = np.random.default_rng(1)
        check_gradient(lambda at: evidence(problem, at)[0], theta, gradient, rng, step=1e-3, rel=1e-6)

    @pytest.mark.parametrize("nu", [1e6, 1e8, 1e12, 1e15])
    def test_nearly_gaussian_noise_is_exact_regression(self, options, nu):
        """The factorised bound alone loses digits at degrees of freedom far above those of a fit."""
        nu = min(nu, 1e6) if options == EVERY["fvb"] else nu
        rows = Rows(conflicting().X, np.sin(2 * conflicting().X[:, 0]))
        given = {"lengthscale": 1.0, "magnitude": 1.0, "optimize": False}
        robust = gp_t.fit(rows, gp_t.Config(nu=nu, scale=0.3, **given, **options), None)[0]
        exact = gp.fit(rows, gp.Config(noise_variance=0.09, **given), None)[0]
        assert robust.log_evidence == pytest.approx(exact.log_evidence, abs=100.0 / nu + 1e-8)
        np.testing.assert_allclose(gp_t.latent(robust, rows.X), gp.latent(exact, rows.X), atol=1e-5)

    def test_learning_raises_the_evidence(self, options):
        rows = conflicting()
        config = gp_t.Config(prior="none", **options)
        state, trace = gp_t.fit(rows, config, np.random.default_rng(0))
        slope = evidence(gp_t.problem_of(rows, config), state.best.theta)[1]
        assert np.abs(slope[:-1]).max() < 2e-2
        assert state.log_evidence > -24.73
        assert trace["objective"][-1] * 25 == pytest.approx(-state.log_evidence)


@pytest.mark.parametrize("nu", [1.1, 4.0, 1e4])
@pytest.mark.parametrize("scale", [0.005, 0.05, 1.0])
@pytest.mark.parametrize("lengthscale", [0.3, 1.0, 3.0])
def test_laplace_finds_a_mode(lengthscale, scale, nu):
    (x,), y = conflicting().X.T, conflicting().y
    K = np.exp(-0.5 * (x[:, None] - x) ** 2 / lengthscale**2)
    found = laplace.infer(K, y, nu, scale)
    again = laplace.infer(K, y, nu, scale, (found.precisions, found.shifts))
    assert again.log_evidence == pytest.approx(found.log_evidence, rel=1e-8)

    def log_joint(weights):
        return stats.t.logpdf(y, nu, K @ weights, scale).sum() - 0.5 * weights @ K @ weights

    f = K @ found.weights
    slope = (nu + 1.0) * (y - f) / (nu * scale**2 + (y - f) ** 2)
    assert np.abs(slope - found.weights).max() < 1e-5 * np.abs(slope).max()
    rng = np.random.default_rng(0)
    highest = log_joint(found.weights)
    for size in (1e-3, 1e-1):
        aside = [log_joint(found.weights * (1.0 + size * rng.normal(size=len(y)))) for _ in range(20)]
        assert max(aside) < highest


@pytest.mark.parametrize("K", [np.ones((2, 2)), np.array([[1.0, 0.9], [0.9, 1.0]]), 5.0 * np.ones((2, 2))], ids=str)
def test_laplace_leaves_the_saddle_between_contradicting_targets(K):
    y, nu, scale = np.array([1.0, -1.0]), 1.5, 0.1
    found = laplace.infer(K, y, nu, scale)
    f = K @ found.weights
    np.testing.assert_allclose(found.weights, (nu + 1.0) * (y - f) / (nu * scale**2 + (y - f) ** 2), rtol=1e-6)
    assert np.abs(f).max() > 0.5
    curvature = np.linalg.eigvals(np.eye(2) + K * found.precisions)
    assert curvature.real.min() > 0.0


@pytest.mark.parametrize(("x", "y"), [((0.0, 0.0), (-1.0, 1.0)), ((0.0, 0.0, 5.0, 5.0), (1.0, -1.0, 1.0, -1.0))])
def test_laplace_leaves_a_saddle_of_symmetric_targets(x, y):
    K = np.exp(-0.5 * np.subtract.outer(x, x) ** 2)
    found = laplace.infer(K, np.array(y), 4.0, 0.1)
    assert found.log_evidence == pytest.approx(laplace.infer(K, -np.array(y), 4.0, 0.1).log_evidence, rel=1e-9)
    f = K @ found.weights
    assert np.abs(f).max() > 0.5  # close to one of the targets, not at 0 between them
    np.testing.assert_allclose(5.0 * (y - f) / (0.04 + (y - f) ** 2), found.weights, atol=1e-6)


OVER_NU = {"nu": "integrate", "inference": "laplace", "lengthscale": 1.0, "magnitude": 1.0, "scale": 0.2}


class TestIntegralOverNu:
    def parts(self, **options):
        """Return the values of nu, the fits at each of them, and their log evidences."""
        nus = np.exp(np.exp(np.linspace(np.log(np.log(1.5)), np.log(np.log(20.0)), 15)))
        found = [gp_t.fit(conflicting(), gp_t.Config(**{**OVER_NU, "nu": nu, **options}), None)[0] for nu in nus]
        return nus, found, np.array([state.log_evidence for state in found])

    def test_weights_are_evidences_under_flat_priors(self):
        nus, found, evidences = self.parts()
        state, _ = gp_t.fit(conflicting(), gp_t.Config(**OVER_NU, prior="none"), None)
        weights = np.exp(evidences) / np.exp(evidences).sum()
        np.testing.assert_allclose(state.probabilities, weights, rtol=1e-9)
        assert state.log_evidence == pytest.approx(np.log(np.mean(np.exp(evidences))))
        assert state.hyperparameters["nu"] == pytest.approx(nus[np.argmax(weights)])
        x = np.linspace(-4.0, 4.0, 9)[:, None]
        means, variances = np.array([gp_t.latent(one, x) for one in found]).transpose(1, 0, 2)
        mean, variance = gp_t.latent(state, x)
        np.testing.assert_allclose(mean, weights @ means)
        np.testing.assert_allclose(variance, weights @ (variances + means**2) - mean**2, rtol=1e-9)

    def test_predictive_density_is_a_mixture(self):
        _, found, evidences = self.parts()
        state, _ = gp_t.fit(conflicting(), gp_t.Config(**OVER_NU, prior="none"), None)
        weights, x, y = np.exp(evidences) / np.exp(evidences).sum(), np.array([[0.3], [2.0]]), np.array([0.5, 3.0])
        each = [predictive_density(gp_t.predict(one, x, None), y) for one in found]
        np.testing.assert_allclose(predictive_density(gp_t.predict(state, x, None), y), weights @ each, rtol=1e-5)

    def test_weak_prior_of_nu(self):
        nus, _, evidences = self.parts()
        state, _ = gp_t.fit(conflicting(), gp_t.Config(**OVER_NU), None)
        by_log_log_nu = stats.lognorm.pdf(nus, 1.0, scale=4.0) * nus * np.log(nus)
        weights = by_log_log_nu * np.exp(evidences)
        np.testing.assert_allclose(state.probabilities, weights / weights.sum(), rtol=1e-9)

    def test_other_hyperparameters_are_learned_at_each_value(self):
        config = gp_t.Config(nu="integrate", inference="laplace", prior="none")
        state, trace = gp_t.fit(conflicting(), config, np.random.default_rng(0))
        np.testing.assert_allclose([np.exp(part.theta[-1]) for part in state.parts], self.parts()[0])
        assert state.converged
        for part in state.parts[::3]:
            nu = float(np.exp(part.theta[-1]))
            alone = gp_t.fit(conflicting(), gp_t.Config(nu=nu, inference="laplace", prior="none"), None)[0]
            assert part.log_evidence > alone.log_evidence - 1e-3
        assert trace["objective"][-1] * 25 == pytest.approx(-state.best.log_evidence)

    def test_values_without_a_solution_are_omitted_with_a_warning(self, monkeypatch):
        def failing(problem, theta):
            if theta[-1] < np.log(2.0):
                raise FloatingPointError("no mode")
            return infer(problem, theta)

        monkeypatch.setattr(learning, "infer", failing)
        with pytest.warns(ConvergenceWarning, match=r"omitted 4 of 15 values of nu: nu 1\.86: no mode"):
            state, _ = gp_t.fit(conflicting(), gp_t.Config(**OVER_NU), None)
        assert len(state.parts) == 11
        assert not state.converged


def log_density(weights, variances, y):
    """Return the log density (M,) of a mixture of normals with mean 0, from weights and variances (S,)."""
    parts = np.log(weights) + stats.norm.logpdf(y[:, None], 0.0, np.sqrt(variances))
    return logsumexp(parts, axis=1)


def predictive_density(predictive, y):
    density = stats.norm.pdf(y, predictive.means, np.sqrt(predictive.variances))
    return predictive.weights @ density


class TestPredictions:
    @pytest.mark.parametrize("nu", [1.0, 2.5, 4.0, 8.0, 10.0, 20.0, 30.0, 100.0])
    def test_mixture_of_normals_in_the_tails(self, nu):
        weights, variances = scale_mixture.fine(nu, 0.3)
        u = np.concatenate([np.linspace(0.0, 10.0, 200), np.geomspace(10.0, 1000.0, 200)])
        np.testing.assert_allclose(
            log_density(weights, variances, 0.3 * u), stats.t.logpdf(u, nu) - np.log(0.3), atol=1e-5
        )

    @pytest.mark.parametrize(("nu", "reach"), [(300.0, 130.0), (1000.0, 80.0), (1e4, 60.0), (1e6, 100.0)])
    def test_mixture_of_normals_up_to_underflow(self, nu, reach):
        weights, variances = scale_mixture.fine(nu, 0.3)
        u = np.linspace(0.0, reach, 300)
        np.testing.assert_allclose(
            log_density(weights, variances, 0.3 * u), stats.t.logpdf(u, nu) - np.log(0.3), atol=1e-5
        )

    @pytest.mark.parametrize("nu", [4.0, 20.0, 1000.0])
    def test_an_observation_at_50_sigma(self, nu):
        X = conflicting().X[:1]
        state = gp_t.fit(conflicting(), gp_t.Config(optimize=False, nu=nu, scale=0.2), None)[0]
        (mean,), (variance,) = gp_t.latent(state, X)
        s, y = np.sqrt(variance), mean + 10.0

        def height(f):
            return stats.t.logpdf(y, nu, f, 0.2) + stats.norm.logpdf(f, mean, s)

        top = max(height(f) for f in np.linspace(mean - 9 * s, mean + 20 * s, 2000))
        mass = quad(lambda f: np.exp(height(f) - top), mean - 12 * s, mean + 30 * s, epsrel=1e-10, limit=400)[0]
        assert gp_t.predict(state, X, None).logpdf([y])[0] == pytest.approx(top + np.log(mass), abs=1e-5)

    @pytest.mark.parametrize("inference", ["ep", "mcmc"])
    def test_standard_deviations_are_those_of_the_t(self, inference):
        options = {"inference": inference, "optimize": False, "scale": 0.2, "samples": 4, "warmup": 0, "stored": 4}
        X = conflicting().X[:3]
        for nu in (2.05, 2.5, 6.0, 300.0):
            with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
                model = Estimator("gp_t", nu=nu, **options, random_state=0).fit(conflicting().X, conflicting().y)
            expected = model.latent(X)[1] + (0.2 * model.y_scaling_.scale[0]) ** 2 * nu / (nu - 2.0)
            np.testing.assert_allclose(model.predict(X, return_std=True)[1] ** 2, expected, rtol=1e-4)

    def test_variance_is_infinite_up_to_two_degrees_of_freedom(self):
        given = {"lengthscale": 1.0, "magnitude": 1.0, "scale": 0.2, "optimize": False}
        for nu in (1.5, 2.0, "integrate"):
            state = gp_t.fit(conflicting(), gp_t.Config(nu=nu, inference="laplace", **given), None)[0]
            found = gp_t.predict(state, conflicting().X[:3], None).rescale(1.0, 3.0)
            assert np.isinf(found.std()).all()
            assert "ll_gaussian" not in score(found, np.zeros(3))
            assert np.isfinite(list(score(found, np.zeros(3)).values())).all()

    def test_the_t_over_a_gaussian(self):
        state = gp_t.fit(conflicting(), gp_t.Config(optimize=False, nu=3.0, scale=0.2), None)[0]
        X = np.array([[0.3]])
        (mean,), (variance,) = gp_t.latent(state, X)
        for y in (-4.0, 0.2, 0.9):
            terms = (
                lambda f, y=y: stats.t.pdf(y, 3.0, f, 0.2) * stats.norm.pdf(f, mean, np.sqrt(variance)),
                mean - 9 * np.sqrt(variance), mean + 9 * np.sqrt(variance),
            )  # fmt: skip
            expected = np.log(quad(*terms, epsabs=0, epsrel=1e-10)[0])
            assert gp_t.predict(state, X, None).logpdf([y])[0] == pytest.approx(expected, abs=1e-6)

    @pytest.mark.parametrize("inference", ["laplace", "mcmc"])
    def test_inputs_block_by_block(self, inference, monkeypatch):
        options = {"inference": inference, "optimize": False, "samples": 3, "warmup": 0, "stored": 3}
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            state = gp_t.fit(conflicting(), gp_t.Config(**options), np.random.default_rng(0))[0]
        X = np.linspace(-4.0, 4.0, 13)[:, None]
        expected = gp_t.latent(state, X)
        for module in (gp_t_state, sampling):
            monkeypatch.setattr(module, "BLOCK", 50)
        np.testing.assert_allclose(gp_t.latent(state, X), expected, rtol=1e-10)
        for module in (gp_t_state, sampling):
            monkeypatch.setattr(module, "BLOCK", 20_000)
        tracemalloc.start()
        gp_t.latent(state, np.linspace(-4.0, 4.0, 50_000)[:, None])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 50_000 * 25 * 8

    @pytest.mark.parametrize("inference", ["ep", "laplace", "vb", "kl"])
    def test_variances_close_to_training_points_with_little_noise(self, inference):
        X = np.random.default_rng(0).uniform(-3.0, 3.0, size=(100, 1))
        rows, given = Rows(X, np.sin(2.0 * X[:, 0])), {"lengthscale": 1.0, "magnitude": 1.0, "optimize": False}
        exact = gp.fit(rows, gp.Config(noise_variance=1e-6, **given), None)[0]
        robust = gp_t.fit(rows, gp_t.Config(inference=inference, nu=1e8, scale=1e-3, **given), None)[0]
        found, expected = (np.array(of(state, X + 1e-3)) for of, state in ((gp_t.latent, robust), (gp.latent, exact)))
        np.testing.assert_allclose(found[1], expected[1], atol=1e-5 * 1e-6)
        np.testing.assert_allclose(found[0], expected[0], atol=1e-5 * 1e-3)


class TestFailures:
    @pytest.mark.parametrize(
        ("slope", "options"), [(0.0, {"inference": "vb"}), (1.0, {"inference": "fvb", "prior": "none"})]
    )
    def test_noise_that_tends_to_zero_warns(self, slope, options):
        x = np.linspace(-1.0, 1.0, 12)
        with pytest.warns(ConvergenceWarning, match="scale runs to 0, stopped at 0.0001"):
            state, _ = gp_t.fit(Rows(x[:, None], slope * x), gp_t.Config(**options), np.random.default_rng(0))
        assert not state.converged

    def test_no_convergence_is_an_error(self, monkeypatch):
        monkeypatch.setattr(ep, "SWEEPS", 2)
        with pytest.raises(
            FloatingPointError, match=r"did not converge; parallel 0.8: mismatch .* 2 steps; at .* scale 0.3"
        ):
            gp_t.fit(conflicting(), gp_t.Config(optimize=False, scheme="parallel"), None)
        monkeypatch.setattr(laplace, "STEPS", 2)
        with pytest.raises(FloatingPointError, match="found no mode: mismatch"):
            gp_t.fit(conflicting(), gp_t.Config(optimize=False, inference="laplace"), None)
