"""Annealed importance sampling of the evidence: reference values, quadrature, exact regression, moves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from ep_bench.covariances import matrix
from ep_bench.methods import gp_t
from ep_bench.methods.gp_t import annealing, ep
from tests.methods.gp_t_support import exact_evidence
from tests.methods.test_gp_t import VALUES, conflicting, options_of


def problem_of(hyper):
    config = gp_t.Config(optimize=False, **options_of(hyper))
    problem = gp_t.problem_of(conflicting(), config)
    return (
        matrix(problem.covariance, problem.hyper.start()[:-2], problem.X),
        problem.y,
        hyper["nu"],
        hyper["sigma"],
    )


MANY = pytest.param(2, 8000, 5e-3, 3, marks=[pytest.mark.slow, pytest.mark.exhaustive])


@pytest.mark.parametrize(("seed", "runs", "largest", "z"), [(1, 1500, 1e-2, 4), MANY])
@pytest.mark.parametrize("case", "AB")
def test_reference_values(case, seed, runs, largest, z):
    values = VALUES["cases"][case]
    expected = values["exact_logZ_AIS"]
    found = annealing.log_evidence(*problem_of(values["hyper"]), np.random.default_rng(seed), runs=runs)
    assert found.error < largest
    assert found.effective > 0.86 * runs
    assert abs(found.log_evidence - expected["value"]) < z * np.hypot(found.error, expected["stderr"])


class TestTwoDataPoints:
    K, y, nu, scale = np.array([[1.0, 0.8], [0.8, 1.3]]), np.array([0.5, -2.0]), 3.0, 0.2

    @pytest.fixture(scope="class")
    @classmethod
    def exact(cls):
        return exact_evidence(cls.K, cls.y, cls.nu, cls.scale)

    @pytest.mark.parametrize("sites", [None, (0.0, 0.0), (2.0, 2.0), (-0.1, 1.0)])
    def test_quadrature_from_different_starts(self, exact, sites):
        """Starts: expectation propagation, the prior, sites at the targets, and arbitrary sites."""
        if sites is not None:
            sites = np.full(2, sites[0]), sites[1] * self.y
        at = self.K, self.y, self.nu, self.scale
        found = annealing.log_evidence(*at, np.random.default_rng(0), runs=2000, temperatures=60, sites=sites)
        assert found.error < 0.05
        assert abs(found.log_evidence - exact) < 4 * found.error

    def test_standard_errors_match_the_spread_of_estimates(self, exact):
        at = self.K, self.y, self.nu, self.scale
        found = [
            annealing.log_evidence(*at, rng, runs=200, temperatures=20) for rng in np.random.default_rng(0).spawn(60)
        ]
        z = [(one.log_evidence - exact) / one.error for one in found]
        assert 0.7 < np.std(z) < 1.4
        assert abs(np.mean(z)) < 0.6


def test_exact_sites_have_no_error():
    K, y, nu, scale = problem_of({"ell": 1.0, "magn2": 1.0, "nu": 1e7, "sigma": 0.5})
    sites = np.full(25, 1 / scale**2), y / scale**2
    found = annealing.log_evidence(K, y, nu, scale, np.random.default_rng(0), runs=20, temperatures=5, sites=sites)
    exact = stats.multivariate_normal.logpdf(y, cov=K + scale**2 * np.eye(25))
    assert found.error < 1e-5
    assert found.log_evidence == pytest.approx(exact, abs=1e-4)


def test_a_move_leaves_its_distribution_invariant():
    """One data point: runs drawn exactly from p_beta still have the distribution p_beta after moves."""
    K, y, nu, scale, beta, rng = np.array([[1.5]]), np.array([1.2]), 2.5, 0.3, 0.4, np.random.default_rng(0)
    start = annealing._start(K, np.array([0.7]), np.array([-0.5]))
    target = annealing.Likelihood(y[:, None], nu, nu * scale**2)

    def density(f):
        level = annealing._ratio(np.array([[f]]), start, target)[0]
        return stats.norm.pdf(f, start.mean[0], abs(start.factor[0, 0])) * np.exp(beta * level)

    grid = np.linspace(-6.0, 7.0, 4001)
    heights = np.array([density(f) for f in grid])
    steps = np.cumsum(0.5 * (heights[1:] + heights[:-1]))
    below = np.concatenate([[0.0], steps / steps[-1]])
    f = np.interp(rng.random(4000), below, grid)[None]
    level = annealing._ratio(f, start, target)
    before = f.copy()
    for _ in range(4):
        f, level = annealing._move(f, level, beta, start, target, rng)
    assert np.abs(np.corrcoef(before[0], f[0])[0, 1]) < 0.9
    np.testing.assert_allclose(level, annealing._ratio(f, start, target))
    assert stats.kstest(f[0], lambda at: np.interp(at, grid, below)).pvalue > 1e-3


def test_the_normaliser_of_the_sites():
    K, tau, b = np.array([[1.7]]), np.array([0.6]), np.array([1.1])
    start = annealing._start(K, tau, b)
    whole = quad(lambda f: stats.norm.pdf(f, 0, np.sqrt(1.7)) * np.exp(1.1 * f - 0.3 * f**2), -20, 20)[0]
    assert start.log_normaliser == pytest.approx(np.log(whole))
    assert start.factor[0, 0] ** 2 == pytest.approx(1 / (1 / 1.7 + 0.6))


def test_estimates_of_known_weights():
    found = annealing._estimate(np.log([1.0, 3.0]))
    assert found.log_evidence == pytest.approx(np.log(2.0))
    assert found.error == pytest.approx(np.std([0.5, 1.5], ddof=1) / np.sqrt(2))
    assert found.effective == pytest.approx(16 / 10)


def test_expectation_propagation_without_convergence(monkeypatch):
    def failing(*arguments):
        raise FloatingPointError("no fixed point")

    at = problem_of(VALUES["cases"]["A"]["hyper"])
    monkeypatch.setattr(ep, "infer", failing)
    found = annealing.log_evidence(*at, np.random.default_rng(0), runs=600, temperatures=400)
    assert found.error < 0.05
    assert abs(found.log_evidence - VALUES["cases"]["A"]["exact_logZ_AIS"]["value"]) < 4 * found.error
