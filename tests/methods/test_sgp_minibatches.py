"""Sparse Gaussian processes on minibatches: the bound for any q, its estimates, steps, sizes."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from ep_bench import Estimator
from ep_bench.covariances import matrix
from ep_bench.covariances import sparse_bound as bound
from ep_bench.covariances.sparse_evidence import evidence
from ep_bench.methods import sgp
from ep_bench.methods.sgp import minibatches
from tests.methods.support import rows as wave
from tests.twins.plain_networks import check_gradient

KERNELS = ["se", "nn", {"sum": ["matern32", "linear"]}]
every_approximation = pytest.mark.parametrize("approximation", ["fitc", "vfe"])


class Case:
    """A problem with a point and a q that is not optimal."""

    def __init__(self, approximation, kernel="se", n=48, count=6):
        self.rng = np.random.default_rng(3)
        rows = wave(n)
        self.problem = sgp.problem_of(rows, sgp.Config(approximation=approximation, kernel=kernel))
        Z = rows.X[:count] + 0.1 * self.rng.normal(size=(count, 2))
        self.point = np.append(self.rng.normal(-0.5, 0.5, len(self.problem.hyper.names)), Z)
        root = self.rng.normal(size=(count, count))
        inverse = np.eye(count) + root @ root.T
        self.q, _ = bound.of_precision(self.problem, self.base(), inverse, self.rng.normal(size=count))

    def base(self, point=None):
        return bound.basis(self.problem, *bound.split(self.problem, self.point if point is None else point))

    def parts(self, base, rows=slice(None)):
        return [bound.terms(self.problem, base, rows)]

    def bound(self, point=None, q=None, rows=slice(None), scale=1.0):
        base = self.base(point)
        return bound.bound(self.problem, base, self.parts(base, rows), q or self.q, scale)

    def best(self):
        base = self.base()
        return bound.best_weights(self.problem, base, self.parts(base))[0]


@every_approximation
class TestBoundForAnyQ:
    def test_sum_over_data_points(self, approximation):
        """For u, not whitened: E log N(y | f, noise) by quadrature over the marginal of u, minus KL by its formula."""
        case = Case(approximation)
        theta, Z = bound.split(case.problem, case.point)
        L = np.tril(case.base().factor)
        mean, S = L @ case.q.mean, L @ case.q.covariance @ L.T
        Kuu = matrix(case.problem.covariance, theta[:-1], Z)
        nodes, weights = np.polynomial.hermite_e.hermegauss(20)
        expected = 0.0
        for x, y in zip(case.problem.X, case.problem.y, strict=True):
            k = matrix(case.problem.covariance, theta[:-1], x[None], Z)[0]
            to_u = np.linalg.solve(Kuu, k)
            rest, noise = np.exp(theta[-2]) - k @ to_u, np.exp(theta[-1])
            f = to_u @ mean + np.sqrt(to_u @ S @ to_u) * nodes
            variance = noise + (rest if approximation == "fitc" else 0.0)
            expected += weights @ stats.norm.logpdf(y, f, np.sqrt(variance)) / weights.sum()
            expected -= 0.0 if approximation == "fitc" else rest / (2 * noise)
        apart = np.linalg.slogdet(Kuu)[1] - np.linalg.slogdet(S)[1]
        expected -= 0.5 * (np.trace(np.linalg.solve(Kuu, S)) + mean @ np.linalg.solve(Kuu, mean) - len(Z) + apart)
        assert case.bound()[0] == pytest.approx(expected, rel=1e-7)

    @pytest.mark.parametrize("kernel", KERNELS, ids=str)
    def test_gradient_by_differences(self, kernel, approximation):
        case = Case(approximation, kernel)
        _, gradient = case.bound(scale=2.5)
        check_gradient(lambda at: case.bound(at, scale=2.5)[0], case.point, gradient, case.rng, step=1e-3, rel=1e-6)

    @pytest.mark.parametrize("kernel", KERNELS, ids=str)
    def test_the_best_q_has_the_evidence_and_its_gradient(self, kernel, approximation):
        case = Case(approximation, kernel)
        (value, gradient), (same, by_same) = case.bound(q=case.best()), evidence(case.problem, case.point)
        assert value == pytest.approx(same, rel=1e-12)
        np.testing.assert_allclose(gradient, by_same, rtol=1e-8, atol=1e-9 * np.abs(gradient).max())

    def test_no_other_q_has_a_higher_bound(self, approximation):
        case = Case(approximation)
        best = case.best()
        highest = case.bound(q=best)[0]
        for _ in range(20):
            inverse = np.linalg.inv(best.covariance)
            inverse *= np.exp(0.1 * case.rng.normal())
            shift = inverse @ (best.mean + 0.05 * case.rng.normal(size=len(inverse)))
            other, _ = bound.of_precision(case.problem, case.base(), inverse, shift)
            assert case.bound(q=other)[0] < highest

    def test_minibatches_give_unbiased_estimates(self, approximation):
        case = Case(approximation)
        order = case.rng.permutation(48)
        found = [case.bound(rows=rows, scale=4.0) for rows in np.split(order, 4)]
        value, gradient = case.bound()
        assert np.mean([one for one, _ in found]) == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(np.mean([one for _, one in found], axis=0), gradient, rtol=1e-9, atol=1e-10)


@every_approximation
class TestSteps:
    def test_a_full_natural_step_on_all_data_gives_the_best_q(self, approximation, monkeypatch):
        monkeypatch.setattr(minibatches, "RHO", 1.0)
        case = Case(approximation)
        elsewhere = case.point.copy()
        elsewhere[:3] += 0.5
        estimate = minibatches._StochasticBound(case.problem, elsewhere)
        estimate.rows = np.arange(48)
        estimate(case.point)
        best = case.best()
        np.testing.assert_allclose(estimate.q.mean, best.mean, rtol=1e-9)
        np.testing.assert_allclose(estimate.q.covariance, best.covariance, rtol=1e-9, atol=1e-12)

    def test_small_natural_steps_converge_to_the_best_q(self, approximation, monkeypatch):
        case = Case(approximation)
        estimate, best = minibatches._StochasticBound(case.problem, case.point), case.best()
        estimate.T[...], estimate.t[...] = np.eye(6), 0.0
        estimate.rows = np.arange(48)
        for _ in range(200):
            estimate(case.point)
        np.testing.assert_allclose(estimate.q.mean, best.mean, rtol=1e-6)

    def test_evidence_is_close_to_that_of_the_full_search(self, approximation, monkeypatch):
        rows = wave(n=600)
        options = {"approximation": approximation, "inducing": 12, "starts": 1, "noise_variance": 0.2}
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            whole = sgp.fit(rows, sgp.Config(**options), np.random.default_rng(0))[0]
            config = sgp.Config(**options, minibatch=True, batch_size=100, epochs=300)
            monkeypatch.setattr(sgp, "FIRST_STEPS", 1)
            climb, started = minibatches.optimise, []
            monkeypatch.setattr(
                sgp, "optimise", lambda problem, start, *more: started.append(start) or climb(problem, start, *more)
            )
            found, trace = sgp.fit(rows, config, np.random.default_rng(0))
        assert found.log_evidence > whole.log_evidence - 6.0
        start = evidence(sgp.problem_of(rows, config), started[0])[0]
        assert found.log_evidence > start + 6.0
        assert found.n_iterations == 1800
        assert len(trace["objective"]) == len(trace["log_evidence"]) == len(trace["noise_deviation"]) == 300
        assert found.hyperparameters["noise_variance"] == pytest.approx(0.2)

    def test_limits_are_respected(self, approximation):
        rows = wave(n=200)
        problem = sgp.problem_of(rows, sgp.Config(approximation=approximation))
        point = np.append(problem.hyper.start(), rows.X[:5])
        point[:2], point[3] = 11.5, -18.3
        end = minibatches.optimise(problem, point, 5, 40, 0.2, np.random.default_rng(0)).point[:4]
        assert np.all((end >= problem.hyper.low) & (end <= problem.hyper.high))


class TestFits:
    def test_the_evidence_is_that_of_all_data_points(self):
        rows = wave(n=300)
        config = sgp.Config(minibatch=True, batch_size=70, epochs=8, inducing=9)
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            state, _ = sgp.fit(rows, config, np.random.default_rng(0))
        problem = sgp.problem_of(rows, config)
        value, _ = evidence(problem, np.append(state.theta, state.inducing_inputs))
        assert state.log_evidence == pytest.approx(value, rel=1e-11)

    def test_too_few_epochs_warn(self):
        model, rows = Estimator("sgp", minibatch=True, epochs=1, inducing=4, random_state=0), wave(n=100)
        with pytest.warns(ConvergenceWarning, match="did not converge in 1 epochs of minibatches"):
            model.fit(rows.X, rows.y)
        assert not model.converged_

    def test_sizes_that_use_minibatches(self):
        auto = sgp.Config()
        assert [sgp.by_minibatches(auto, n) for n in (455, 20_000, 20_001)] == [False, False, True]
        assert sgp.by_minibatches(sgp.Config(minibatch=True), 10)
        assert not sgp.by_minibatches(sgp.Config(minibatch=False), 10**6)
        assert sgp.passes(auto, 41_157) == 238
        assert sgp.passes(auto, 463_715) == 22
        assert sgp.passes(sgp.Config(epochs=3), 463_715) == 3

    def test_settled(self):
        falling = list(np.linspace(1.0, 0.0, 40))
        assert not minibatches.has_settled(falling)
        assert minibatches.has_settled(falling + [0.0] * 40)
        assert not minibatches.has_settled([0.5, 0.5, 0.5])

    def test_memory_does_not_include_all_covariances(self, monkeypatch):
        monkeypatch.setattr(bound, "BLOCK", 2**14)
        monkeypatch.setattr(sgp, "FIRST_ROWS", 500)
        rows, kept = wave(n=40_000), 40_000 * 50 * 8
        config = sgp.Config(epochs=1, starts=1, steps=2)
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            sgp.fit(wave(n=300), sgp.Config(epochs=1, starts=1, steps=1, minibatch=True), np.random.default_rng(0))
            tracemalloc.start()
            sgp.latent(sgp.fit(rows, config, np.random.default_rng(0))[0], rows.X)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.4 * kept
