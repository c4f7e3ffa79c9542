"""Variational inference with Student-t noise: reference values, bounds, gradients, EM of hyperparameters."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import gammaln, roots_genlaguerre
from sklearn.exceptions import ConvergenceWarning

from ep_bench.covariances import build, matrix
from ep_bench.methods import gp_t
from ep_bench.methods.gp_t import em, fixed_scales, kl, variational
from ep_bench.methods.gp_t.inference import evidence, infer
from ep_bench.methods.gp_t.posterior import divided
from ep_bench.numerics.symmetric import square
from ep_bench.types import Rows
from tests.methods.gp_t_support import exact_evidence
from tests.methods.test_gp_t import conflicting
from tests.twins.plain_networks import check_gradient

NAMES = ("vb", "fvb", "kl")


def problem_at(theta, **options):
    problem = gp_t.problem_of(conflicting(), gp_t.Config(**options))
    K = matrix(problem.covariance, theta[:-2], problem.X)
    return problem, (K, problem.y, float(np.exp(theta[-1])), float(np.exp(theta[-2])))


RANGE = [np.log([length, 1.0, scale, nu]) for length in (0.3, 3.0) for scale in (0.02, 0.3) for nu in (1.5, 20.0)]


class TestBounds:
    @pytest.mark.parametrize("theta", RANGE, ids=lambda theta: " ".join(f"{value:.3g}" for value in np.exp(theta)))
    def test_both_bounds_are_equal_at_the_optimum(self, theta):
        _, at = problem_at(theta)
        direct, factorised = variational.bounds(*at), variational.factors(*at)
        assert direct.log_evidence == pytest.approx(factorised.log_evidence, rel=1e-13, abs=1e-13)
        np.testing.assert_allclose(direct.precisions, factorised.precisions, rtol=1e-7)

    @pytest.mark.parametrize("seed", [47, 100, 149, 172])
    def test_duplicate_data_points_with_vanishing_noise(self, seed):
        """An extrapolated step leads to a covariance of the targets that cannot be factorised."""
        rng = np.random.default_rng(seed)
        x = rng.normal(size=6)
        x[1:3] = x[0]
        y = np.sin(2 * x) + 0.05 * rng.normal(size=6)
        at = np.exp(-0.5 * (x[:, None] - x) ** 2 / 0.5**2), y, 1.5, 0.02
        direct, factorised = variational.bounds(*at), variational.factors(*at)
        assert factorised.log_evidence == pytest.approx(direct.log_evidence, rel=1e-12)

    @pytest.mark.parametrize("inference", ["vb", "fvb"])
    def test_a_data_point_with_prior_variance_zero(self, inference):
        x = np.array([-1.0, 0.0, 0.5, 2.0])
        rows = Rows(x[:, None], np.array([-1.1, 0.3, 0.4, 2.2]))
        options = {"kernel": "linear", "inference": inference, "scale": 0.2, "weight_variance": 1.5, "optimize": False}
        whole = gp_t.fit(rows, gp_t.Config(**options), None)[0]
        without = gp_t.fit(Rows(rows.X[[0, 2, 3]], rows.y[[0, 2, 3]]), gp_t.Config(**options), None)[0]
        at = np.array([[-3.0], [0.0], [1.0]])
        np.testing.assert_allclose(gp_t.latent(whole, at), gp_t.latent(without, at), rtol=1e-9, atol=1e-12)
        apart = whole.log_evidence - without.log_evidence
        assert apart == pytest.approx(stats.t.logpdf(0.3, 4.0, 0.0, 0.2), rel=1e-8)

    def test_order_of_the_bounds_below_the_evidence(self):
        K, y, nu, scale = np.array([[1.0, 0.8], [0.8, 1.3]]), np.array([0.5, -2.0]), 3.0, 0.4
        exact = exact_evidence(K, y, nu, scale)
        nearest, bound = kl.infer(K, y, nu, scale).log_evidence, variational.bounds(K, y, nu, scale).log_evidence
        assert exact - 0.2 < nearest < exact - 1e-3
        assert exact - 0.7 < bound < nearest - 1e-3

    def test_plain_steps_never_lower_either_bound(self):
        _, (K, y, nu, scale) = problem_at(np.log([1.0, 1.0, 0.05, 2.0]))
        s2 = nu * scale**2
        at, by_steps = variational._at(K, y, np.full(25, 1e-3)), []
        for _ in range(40):
            by_steps.append((variational._direct(at, y, nu, s2), variational._factorised(at, y, nu, s2)))
            at = variational._at(K, y, variational._step(at, nu, s2))
        direct, factorised = np.array(by_steps).T
        assert (np.diff(direct) > 0).all()
        assert (np.diff(factorised) > 0).all()
        # q(V) of the last q(f) raises the bound of its precisions, q(f) of these raises it again
        assert (factorised >= direct).all()
        assert (direct[1:] >= factorised[:-1]).all()

    def test_extrapolation_finds_the_fixed_point_of_a_linear_map(self):
        rng = np.random.default_rng(0)
        A, end = 0.3 * rng.normal(size=(3, 3)), rng.normal(size=3)
        points = rng.normal(size=(4, 3))
        history = [(point, (A - np.eye(3)) @ (point - end)) for point in points]
        np.testing.assert_allclose(variational.extrapolated(history), end, atol=1e-12)
        np.testing.assert_allclose(variational.extrapolated(history[:1]), end + A @ (points[0] - end))

    @pytest.mark.parametrize("case", [(0.3, 2.0, -1.0), (0.0, 1e-4, 0.5), (2.0, 1e3, 0.0), (0.1, 0.01, 30.0)])
    @pytest.mark.parametrize("scale", [0.001, 0.7])
    def test_means_under_a_gaussian_by_quadrature(self, case, scale):
        m, v, y, nu = *case, 3.5
        found = kl.means(*(np.array([value]) for value in (m, v, y)), nu, scale)
        s2, s = nu * scale**2, np.sqrt(v)

        def mean(function):
            points = np.unique(np.clip([y + k * scale for k in (-30, -5, 0, 5, 30)], m - 9 * s, m + 9 * s))
            ends = [m - 9 * s, *points, m + 9 * s]
            return sum(
                quad(lambda f: function(f - y) * stats.norm.pdf(f, m, s), low, high, epsrel=1e-11, limit=500)[0]
                for low, high in pairwise(ends)
            )

        expected = [
            mean(lambda u: np.log1p(u**2 / s2)),
            mean(lambda u: u**2 / (s2 + u**2)),
            mean(lambda u: -(nu + 1) * u / (s2 + u**2)),
            mean(lambda u: (nu + 1) * (s2 - u**2) / (s2 + u**2) ** 2),
        ]
        np.testing.assert_allclose(np.concatenate(found), expected, rtol=1e-8, atol=1e-10)

    def test_stationary_by_differences(self):
        """The KL bound does not increase along any direction of the precisions and of b."""
        _, (K, y, nu, scale) = problem_at(np.log([1.0, 1.0, 0.1, 2.0]))
        end = kl.infer(K, y, nu, scale)
        b = end.weights + end.precisions * (K @ end.weights)
        rng = np.random.default_rng(0)
        for _ in range(5):
            by_b, by_precisions = rng.normal(size=(2, 25)) * np.array([np.abs(b), np.abs(end.precisions)])
            plus, minus = (
                kl._at(K, y, b + h * by_b, end.precisions + h * by_precisions, nu, scale).bound for h in (1e-4, -1e-4)
            )
            assert max(plus, minus) < end.log_evidence
            assert abs(plus - minus) < 1e-3 * (end.log_evidence - 0.5 * (plus + minus))


@pytest.mark.parametrize("inference", NAMES)
@pytest.mark.parametrize("scale", [0.1, 0.02])
def test_variances_keep_their_digits_with_little_noise(inference, scale):
    """Variances of f at and between training points, compared with a prior variance of 5."""
    x = np.sort(np.random.default_rng(1).uniform(-2.0, 2.0, 40))
    K, between = (5.0 * np.exp(-2.0 * np.subtract.outer(x, z) ** 2) for z in (x, np.array([0.05, 1.11, x[7]])))
    found = infer(
        gp_t.problem_of(Rows(x[:, None], np.sin(2.0 * x)), gp_t.Config(inference=inference)),
        np.log([0.5, 5.0, scale, 4.0]),
    )
    half = np.linalg.solve(np.linalg.cholesky(K + np.diag(1.0 / found.precisions)), between)
    variance = 5.0 - divided(K, found.precisions).variance_reduction(between.T)
    np.testing.assert_allclose(variance, 5.0 - (half**2).sum(axis=0), rtol=1e-4)


@pytest.mark.parametrize("inference", NAMES)
class TestAllInferences:
    def test_gradient_is_zero_at_the_end_of_a_search(self, inference):
        rows, config = conflicting(), gp_t.Config(prior="none", nu="optimize", inference=inference)
        state, trace = gp_t.fit(rows, config, np.random.default_rng(0))
        theta = state.best.theta
        start = gp_t.problem_of(rows, config).hyper.start()
        slope = evidence(gp_t.problem_of(rows, config), theta)[1]
        assert state.converged
        assert np.abs(slope).max() < (0.02 if inference == "fvb" else 1e-3)
        assert state.log_evidence > evidence(gp_t.problem_of(rows, config), start)[0] + 1.0
        assert trace["objective"][-1] * 25 == pytest.approx(-state.log_evidence, rel=1e-9)
        assert (np.diff(trace["objective"]) < 0).all()

    def test_no_convergence_is_an_error(self, inference, monkeypatch):
        monkeypatch.setattr(kl if inference == "kl" else variational, "STEPS", 2)
        with pytest.raises(FloatingPointError, match=r"no (fixed|stationary) point found; mismatch .* scale 0.3"):
            gp_t.fit(conflicting(), gp_t.Config(optimize=False, inference=inference), None)


class TestExpectationMaximisation:
    def test_em_and_gradients_find_the_same_hyperparameters(self):
        direct, by_steps = (
            gp_t.fit(conflicting(), gp_t.Config(inference=name, nu="optimize"), np.random.default_rng(0))[0]
            for name in ("vb", "fvb")
        )
        np.testing.assert_allclose(by_steps.best.theta, direct.best.theta, atol=0.01)

        def objective(state):
            return state.log_evidence + state.hyper.log_prior(state.best.theta)[0]

        assert objective(direct) - 1e-3 < objective(by_steps) <= objective(direct) + 1e-6

    def test_a_step_maximises_the_bound_of_fixed_scales(self, monkeypatch):
        monkeypatch.setattr(em, "INNER", 200)
        theta = np.log([1.3, 0.6, 0.3, 6.0])
        problem, at = problem_at(theta, nu="optimize", prior="none")
        first = variational.factors(*at)
        rows, workspace = Rows(problem.X, problem.y), square(25)
        after = em.maximised(rows, problem.covariance, problem.hyper, theta, first, workspace)
        assert (np.abs(after - theta) > 0.01).all()
        V = 1.0 / first.precisions

        def targets(point):
            C = matrix(problem.covariance, point, problem.X) + np.diag(V)
            return stats.multivariate_normal.logpdf(problem.y, cov=C)

        def scales(log_sigma, log_nu):
            nodes, weights = roots_genlaguerre(60, 2.5)  # of a gamma distribution with the shape (6 + 1) / 2
            V = 3.5 / np.outer(first.precisions, nodes)
            heights = stats.invgamma.logpdf(V, 0.5 * np.exp(log_nu), scale=0.5 * np.exp(log_nu + 2 * log_sigma))
            return (heights @ weights).sum() / weights.sum()

        for point, bound in ((after[:2], targets), (after[2:], lambda at: scales(*at))):
            here = bound(point)
            for direction in np.random.default_rng(0).normal(size=(3, 2)):
                plus, minus = bound(point + 0.02 * direction), bound(point - 0.02 * direction)
                assert max(plus, minus) < here
                assert abs(plus - minus) < 0.1 * (2 * here - plus - minus)

    def test_mean_log_density_of_the_scales(self):
        n, mean_log, mean_precision = 7, 0.4, 1.9
        point = np.array([-0.3, 1.1])
        _, gradient = em.log_scales(*point, n, mean_log, mean_precision)

        def value(at):
            return em.log_scales(*at, n, mean_log, mean_precision)[0]

        check_gradient(value, point, gradient, np.random.default_rng(0), step=1e-3, rel=1e-8)
        nu, s2 = np.exp(1.1), np.exp(1.1 - 0.6)
        expected = 0.5 * nu * np.log(0.5 * s2) - gammaln(0.5 * nu) - 0.5 * nu * mean_log - 0.5 * s2 * mean_precision
        assert value(point) == pytest.approx(n * expected)

    def test_the_limit_of_steps_warns(self):
        config = gp_t.Config(inference="fvb", steps=3)
        with pytest.warns(ConvergenceWarning, match="ended after 3 of at most 3 steps"):
            state, _ = gp_t.fit(conflicting(), config, np.random.default_rng(0))
        assert not state.converged
        assert state.n_iterations == 3


def test_evidence_at_fixed_scales():
    rng = np.random.default_rng(2)
    X, y, V = rng.normal(size=(15, 2)), rng.normal(size=15), rng.uniform(0.01, 4.0, 15)
    covariance, theta, workspace = build("se", 2, True), np.log([0.8, 1.5, 2.0]), square(15)
    value, gradient = fixed_scales.evidence(covariance, theta, X, y, V, workspace)
    C = matrix(covariance, theta, X) + np.diag(V)
    assert value == pytest.approx(stats.multivariate_normal.logpdf(y, cov=C), rel=1e-12)
    check_gradient(
        lambda at: fixed_scales.factorised(covariance, at, X, y, V, workspace).log_evidence, theta, gradient, rng
    )
