"""Sparse Gaussian-process regression: dense twins, reference values, limits, search, invalid options."""

from __future__ import annotations

import json
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from ep_bench import Estimator
from ep_bench.covariances import matrix
from ep_bench.covariances import sparse_bound as bound
from ep_bench.covariances import sparse_searches as searches
from ep_bench.covariances.inducing import centres
from ep_bench.covariances.map_search import starting_points
from ep_bench.covariances.sparse_evidence import evidence
from ep_bench.methods import gp, sgp
from ep_bench.types import Rows
from tests.methods.support import wave
from tests.twins import plain_covariances as plain
from tests.twins.plain_networks import check_gradient

QUICK = {"inducing": 10, "starts": 1, "steps": 100}  # options of the conformance tests

VALUES = json.loads((Path(__file__).parents[1] / "reference_values" / "sgp.json").read_text(encoding="utf-8"))
KERNELS = [
    "se", "matern32", "matern52", "nn", "linear", "constant", {"sum": ["se", "linear"]},
    {"product": ["nn", "matern32"]}, {"sum": [{"product": ["se", "linear"]}, "nn", "constant"]},
]  # fmt: skip
FIXED = {"optimize": False, "standardize": False}
every_approximation = pytest.mark.parametrize("approximation", ["fitc", "vfe"])
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=str)


def problem_of(rows, count=7, seed=2, **options):
    """The problem of the method, and random hyperparameters with inducing inputs close to training inputs."""
    problem = sgp.problem_of(rows, sgp.Config(**options))
    rng = np.random.default_rng(seed)
    Z = rows.X[:count] + 0.1 * rng.normal(size=(count, rows.X.shape[1]))
    return problem, np.append(rng.normal(-0.5, 0.5, len(problem.hyper.names)), Z), rng


def state_of(problem, point):
    return sgp._state(problem, *bound.split(problem, point), 0, True)


def fitted(rows, seed=0, **options):
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return sgp.fit(rows, sgp.Config(**options), np.random.default_rng(seed))[0]


def log_posterior(state):
    return state.log_evidence + state.hyper.log_prior(state.theta)[0]


class Dense:
    """The approximations by the formulas of the papers, with N x N matrices."""

    def __init__(self, problem, point):
        theta, self.Z = bound.split(problem, point)
        self.problem, self.own_theta, self.noise = problem, theta[:-1], np.exp(theta[-1])
        self.Kuu = matrix(problem.covariance, self.own_theta, self.Z)
        self.Kuu += bound.JITTER * np.trace(self.Kuu) / len(self.Z) * np.eye(len(self.Z))
        self.Kfu = self.cross(problem.X)
        Q = self.Kfu @ np.linalg.solve(self.Kuu, self.Kfu.T)
        self.rest = problem.covariance.diagonal(self.own_theta, problem.X) - np.diag(Q)
        self.Lambda = self.noise + (self.rest if problem.fitc else np.zeros(len(Q)))
        self.C = Q + np.diag(self.Lambda)

    def cross(self, X):
        return matrix(self.problem.covariance, self.own_theta, X, self.Z)

    def log_evidence(self):
        """Snelson and Ghahramani (2006), equation (9); Titsias (2009), equation (9)."""
        value = plain.log_evidence(self.C, 0.0, self.problem.y)
        return value if self.problem.fitc else value - self.rest.sum() / (2 * self.noise)

    def latent(self, X):
        """From the joint Gaussian of f* and y, cov(f*, y) = K_*u K_uu^-1 K_uf: Quinonero-Candela, Rasmussen (2005)."""
        Q = self.cross(X) @ np.linalg.solve(self.Kuu, self.Kfu.T)
        prior = self.problem.covariance.diagonal(self.own_theta, X)
        return Q @ np.linalg.solve(self.C, self.problem.y), prior - np.diag(Q @ np.linalg.solve(self.C, Q.T))


class TestReferenceValues:
    i = np.arange(40)
    X = np.column_stack([np.linspace(-2, 2, 40), np.cos(3.0 * i), np.sin(5.0 * i)])
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.1 * np.cos(17 * i)
    Z = X[2::5] + 0.05 * np.sin(np.arange(24)).reshape(8, 3)

    @pytest.mark.parametrize("case", VALUES["sparse"], ids=lambda case: f"{case['approximation']}-{case['kernel']}")
    def test_evidence_and_function(self, case):
        options = {"kernel": case["kernel"], "approximation": case["approximation"], **VALUES["options"]}
        model = Estimator("sgp", **FIXED, **options).fit(self.X, self.y, inducing_inputs=self.Z)
        mean, variance = model.latent(np.array(VALUES["x_star"]))
        assert model.log_evidence_ == pytest.approx(case["log_evidence"], rel=3e-9)
        np.testing.assert_allclose(mean, case["mean"], atol=1e-9)
        np.testing.assert_allclose(variance, case["variance"], atol=1e-9)

    @every_approximation
    @pytest.mark.parametrize("kernel", VALUES["exact"])
    def test_all_data_points_as_inducing_inputs_are_exact(self, kernel, approximation):
        options = {"kernel": kernel, "approximation": approximation, **VALUES["options"]}
        model = Estimator("sgp", **FIXED, **options).fit(self.X, self.y, inducing_inputs=self.X)
        assert model.log_evidence_ == pytest.approx(VALUES["exact"][kernel], rel=1e-6)


@every_approximation
@every_kernel
class TestDenseTwins:
    @pytest.mark.parametrize("ard", [True, False])
    def test_evidence_and_gradient(self, kernel, ard, approximation, monkeypatch):
        problem, point, rng = problem_of(wave(n=30, d=3), kernel=kernel, ard=ard, approximation=approximation)
        value, gradient = evidence(problem, point)
        assert value == pytest.approx(Dense(problem, point).log_evidence(), rel=1e-9)
        check_gradient(
            lambda at: Dense(problem, at).log_evidence(), point, gradient, rng, directions=4, step=1e-3, rel=2e-6
        )
        for block in (1, 7 * 13):
            monkeypatch.setattr(bound, "BLOCK", block)
            again, by_blocks = evidence(problem, point)
            assert again == pytest.approx(value, rel=1e-11)
            np.testing.assert_allclose(by_blocks, gradient, rtol=1e-7, atol=1e-8 * np.abs(gradient).max())

    def test_each_derivative(self, kernel, approximation):
        """Each hyperparameter and each coordinate of each inducing input separately."""
        problem, point, _ = problem_of(wave(n=25, d=2), 4, kernel=kernel, approximation=approximation)
        _, gradient = evidence(problem, point)
        for at, step in enumerate(1e-4 * np.eye(len(point))):
            up, down = (Dense(problem, point + sign * step).log_evidence() for sign in (1, -1))
            assert gradient[at] == pytest.approx((up - down) / 2e-4, rel=1e-4, abs=1e-5 * np.abs(gradient).max())

    def test_predictions(self, kernel, approximation, monkeypatch):
        X = wave(n=17, d=3, seed=5).X
        problem, point, _ = problem_of(wave(n=30, d=3), kernel=kernel, approximation=approximation)
        state, expected = state_of(problem, point), Dense(problem, point)
        assert state.log_evidence == pytest.approx(expected.log_evidence(), rel=1e-9)
        for block in (bound.BLOCK, 1, 50):
            monkeypatch.setattr(bound, "BLOCK", block)
            mean, variance = sgp.latent(state, X)
            np.testing.assert_allclose(mean, expected.latent(X)[0], rtol=1e-6, atol=1e-7)
            np.testing.assert_allclose(variance, expected.latent(X)[1], rtol=1e-6, atol=1e-7)
        noisy = sgp.predict(state, X, None)
        np.testing.assert_allclose(noisy.mean(), mean)
        np.testing.assert_allclose(noisy.variance(), variance + np.exp(state.theta[-1]))


@every_kernel
class TestLimits:
    def exact(self, rows, kernel, theta):
        problem = gp.problem_of(rows, gp.Config(kernel=kernel))
        return gp._state(problem, theta, 0, True)

    @every_approximation
    def test_all_data_points_as_inducing_inputs_are_exact(self, kernel, approximation):
        rows, X = wave(n=30, d=3), wave(n=9, d=3, seed=4).X
        problem, point, _ = problem_of(rows, kernel=kernel, approximation=approximation)
        theta, _ = bound.split(problem, point)
        state, exact = sgp._state(problem, theta, rows.X, 0, True), self.exact(rows, kernel, theta)
        assert state.log_evidence == pytest.approx(exact.log_evidence, rel=1e-7)
        for ours, theirs in zip(sgp.latent(state, X), gp.latent(exact, X), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)

    @pytest.mark.parametrize("seed", range(4))
    def test_the_bound_is_one_and_grows_with_inducing_inputs(self, kernel, seed):
        rows = wave(n=40, d=3, seed=seed)
        problem, point, _ = problem_of(rows, 12, seed=seed, kernel=kernel, approximation="vfe")
        theta, Z = bound.split(problem, point)
        bounds = [evidence(problem, np.append(theta, Z[:count]))[0] for count in (1, 3, 6, 12)]
        assert bounds == sorted(bounds)
        assert bounds[-1] < self.exact(rows, kernel, theta).log_evidence + 1e-9


class TestJitter:
    @every_approximation
    def test_duplicate_inducing_inputs_count_once(self, approximation):
        problem, point, _ = problem_of(wave(n=30), 6, approximation=approximation)
        theta, Z = bound.split(problem, point)
        once, twice = (state_of(problem, np.append(theta, rows)) for rows in (Z, np.repeat(Z, 2, axis=0)))
        assert twice.log_evidence == pytest.approx(once.log_evidence, rel=1e-7)
        assert once.jitter == twice.jitter == bound.JITTER
        _, gradient = evidence(problem, np.append(theta, np.repeat(Z, 2, axis=0)))
        by_Z = gradient[len(theta) :].reshape(6, 2, -1).sum(axis=1)
        _, expected = evidence(problem, point)
        np.testing.assert_allclose(gradient[: len(theta)], expected[: len(theta)], rtol=1e-4)
        np.testing.assert_allclose(by_Z.ravel(), expected[len(theta) :], rtol=1e-4, atol=1e-4)

    def test_jitter_is_relative_to_the_covariance(self):
        rows = wave(n=30)
        problem, point, _ = problem_of(rows, 6, approximation="vfe")
        large = sgp.problem_of(Rows(rows.X, 1e4 * rows.y), sgp.Config(approximation="vfe"))
        size = len(problem.hyper.names)
        point[:size] = [0.0, 0.0, 0.0, -1.0]
        value, _ = evidence(problem, point)
        point[size - 2 : size] += np.log(1e8)
        assert evidence(large, point)[0] == pytest.approx(value - 30 * np.log(1e4), rel=1e-9)

    def test_jitter_increases_up_to_a_limit(self, monkeypatch):
        problem, point, _ = problem_of(wave(n=30), 25)
        monkeypatch.setattr(bound, "JITTER", 1e-22)
        point[:2] = 4.0
        found = state_of(problem, point)
        assert 1e-20 < found.jitter < 1e-12
        monkeypatch.setattr(bound, "MAX_JITTER", 1e-21)
        with pytest.raises(
            FloatingPointError, match="inducing outputs is not positive definite, even with jitter 1e-21"
        ):
            state_of(problem, point)

    @every_approximation
    def test_inducing_outputs_of_variance_zero(self, approximation):
        rows = Rows(np.zeros((8, 2)), wave(n=8).y)
        options = {"kernel": "linear", "optimize": False, "noise_variance": 0.3}
        config = sgp.Config(approximation=approximation, **options)
        state, _ = sgp.fit(rows, config, np.random.default_rng(0))
        exact, _ = gp.fit(rows, gp.Config(**options), np.random.default_rng(0))
        assert state.log_evidence == pytest.approx(exact.log_evidence, rel=1e-9)
        np.testing.assert_array_equal(sgp.latent(state, rows.X), np.zeros((2, 8)))


class TestCentres:
    def test_centres_of_clusters(self):
        rng = np.random.default_rng(0)
        means = 10.0 * rng.normal(size=(4, 3))
        X = np.repeat(means, 30, axis=0) + 0.01 * rng.normal(size=(120, 3))
        found = centres(X, 4, np.random.default_rng(1))
        distances = np.linalg.norm(found[:, None] - means, axis=2)
        assert sorted(distances.argmin(axis=1)) == [0, 1, 2, 3]
        assert distances.min(axis=1).max() < 0.02

    def test_distinct_inputs_if_there_are_not_enough(self):
        X = np.repeat(np.arange(6.0).reshape(3, 2), 4, axis=0)
        for count in (3, 5):
            np.testing.assert_array_equal(centres(X, count, np.random.default_rng(0)), X[::4])
        assert len(centres(X, 2, np.random.default_rng(0))) == 2


class TestSearch:
    @every_approximation
    @pytest.mark.parametrize("kernel", ["matern52", {"sum": ["se", "linear"]}], ids=str)
    def test_gradient_is_zero_at_the_end_of_a_search(self, kernel, approximation):
        rows = wave(noise=0.4)
        options = {"kernel": kernel, "approximation": approximation, "inducing": 5, "noise_variance": 0.2}
        state = fitted(rows, starts=1, **options)
        problem = sgp.problem_of(rows, sgp.Config(**options))
        _, slope = evidence(problem, np.append(state.theta, state.inducing_inputs))
        slope[: len(state.theta)] += problem.hyper.log_prior(state.theta)[1]
        assert np.abs(slope[np.append(problem.hyper.free, np.ones(10, dtype=bool))]).max() < 2e-2
        assert state.converged

    @every_approximation
    def test_higher_than_with_fixed_inducing_inputs(self, approximation):
        rows = wave(n=100)
        options = {"approximation": approximation, "inducing": 8, "prior": "none"}
        problem = sgp.problem_of(rows, sgp.Config(**options))
        Z = centres(rows.X, 8, np.random.default_rng(0))
        found = fitted(rows, **options)
        theta = starting_points(problem.hyper, sgp.Config(starts=1), None)[0]
        assert found.log_evidence > evidence(problem, np.append(theta, Z))[0] + 1.0
        assert found.log_evidence > evidence(problem, np.append(found.theta, Z))[0] + 0.1
        assert not np.allclose(found.inducing_inputs, Z)

    def test_the_bound_is_close_to_the_exact_evidence(self):
        rows = wave(n=150, d=1)
        sparse = fitted(rows, approximation="vfe", inducing=15, prior="none")
        exact = gp.fit(rows, gp.Config(prior="none", starts=1), np.random.default_rng(0))[0]
        assert exact.log_evidence - 0.1 < sparse.log_evidence < exact.log_evidence + 1e-3
        np.testing.assert_allclose(sparse.theta, exact.theta, atol=0.05)

    @pytest.mark.parametrize("search", ["trials", "many"])
    def test_the_better_of_two_trials_continues(self, search, monkeypatch):
        rows, found = wave(n=80, d=4, seed=2), []
        settings = {"trials": searches.FEW, "many": searches.MANY}[search]
        for fixed in (settings.fixed, settings.fixed[:1], settings.fixed[1:]):
            with monkeypatch.context() as patch:
                patch.setattr(searches, "FEW", searches.FEW._replace(fixed=fixed))
                patch.setattr(searches, "MANY", searches.MANY._replace(fixed=fixed))
                patch.setattr(searches, "step_scales", lambda _, d: np.ones(d))  # they depend on the first point
                found.append(log_posterior(fitted(rows, inducing=9, search=search, steps=searches.TRIAL)))
        assert found[0] == max(found[1:]) > min(found[1:]) + 0.01

    def test_the_search_of_many_data_points(self):
        rows = wave(n=80, d=4)
        few, many = (fitted(rows, inducing=9, approximation="vfe", search=one) for one in ("trials", "many"))
        assert many.log_evidence == pytest.approx(few.log_evidence, abs=2.0)
        assert many.log_evidence != few.log_evidence

    @pytest.mark.parametrize(("limit", "search"), [(79, "many"), (80, "trials")])
    def test_the_number_of_data_points_decides_the_search(self, limit, search, monkeypatch):
        rows = wave(n=80, d=4)
        monkeypatch.setattr(sgp, "SEVERAL", limit)
        auto, chosen = (fitted(rows, inducing=9, search=one, steps=120) for one in ("auto", search))
        assert auto.log_evidence == chosen.log_evidence

    def test_scales_of_the_inducing_inputs(self):
        values = {"lengthscale": np.array([4.0, 9.0]), "magnitude": 100.0}
        np.testing.assert_allclose(searches.step_scales(values, 2), [2.0, 3.0])
        np.testing.assert_allclose(
            searches.step_scales({"1.lengthscale": 25.0, "2.lengthscale": values["lengthscale"]}, 2), [2, 3]
        )
        np.testing.assert_allclose(searches.step_scales({"bias_variance": 4.0}, 3), np.ones(3))

    def test_inducing_inputs_are_learned_if_all_else_is_fixed(self):
        given = {"lengthscale": 1.0, "magnitude": 2.0, "noise_variance": 0.3, "approximation": "vfe", "inducing": 6}
        fixed, learned = fitted(wave(), optimize=False, **given), fitted(wave(), **given)
        assert (fixed.n_iterations, fixed.converged) == (0, True)
        np.testing.assert_allclose(fixed.theta, learned.theta)
        assert learned.log_evidence > fixed.log_evidence + 0.1

    def test_inducing_inputs_as_an_argument(self):
        rows, Z = wave(), wave(n=4, seed=3).X
        config = sgp.Config(optimize=False)
        state, trace = sgp.fit(rows, config, np.random.default_rng(0), inducing_inputs=Z.tolist())
        np.testing.assert_array_equal(state.inducing_inputs, Z)
        assert trace == {}
        for wrong in (np.ones((2, 3)), np.ones(2), np.full((1, 2), np.nan), np.ones((0, 2))):
            with pytest.raises(ValueError, match="inducing_inputs must be finite, of shape \\(M, 2\\)"):
                sgp.fit(rows, config, np.random.default_rng(0), inducing_inputs=wrong)


class TestRepeatedInputs:
    """Merged data points have the bound of all of them; FITC is that of the merged points with their own noise."""

    def problems(self, approximation):
        rows = wave(n=12)
        X = np.concatenate([rows.X, rows.X[:5], rows.X[:2]])
        rows = Rows(X, np.random.default_rng(4).normal(size=19))
        kept, point, _ = problem_of(rows, 4, approximation=approximation)
        return kept, sgp.problem_of(rows, sgp.Config(approximation=approximation, duplicates="merge")), point

    def test_the_variational_bound_is_the_same(self):
        kept, merged, point = self.problems("vfe")
        (value, gradient), (same, by_same) = evidence(kept, point), evidence(merged, point)
        assert len(merged.y) == 12
        assert same == pytest.approx(value, rel=1e-11)
        np.testing.assert_allclose(by_same, gradient, rtol=1e-7, atol=1e-8)
        X = wave(n=5, seed=3).X
        latents = [sgp.latent(state_of(problem, point), X) for problem in (kept, merged)]
        np.testing.assert_allclose(latents[1], latents[0], rtol=1e-8)

    @every_approximation
    def test_evidence_and_gradient_of_merged_points(self, approximation):
        _, problem, point = self.problems(approximation)
        value, gradient = evidence(problem, point)

        def dense(at):
            twin = Dense(problem, at)
            noise = twin.noise / problem.replicates.counts
            C = twin.C - np.diag(twin.Lambda) + np.diag(noise + (twin.rest if problem.fitc else 0.0))
            found = plain.log_evidence(C, 0.0, problem.y) + problem.replicates.log_density(np.log(twin.noise))[0]
            return found if problem.fitc else found - (twin.rest / noise).sum() / 2

        assert value == pytest.approx(dense(point), rel=1e-9)
        check_gradient(dense, point, gradient, np.random.default_rng(0), directions=4, step=1e-3, rel=2e-6)
        by_bound, same = bound.evidence_by_bound(problem, point)
        assert by_bound == pytest.approx(value, rel=1e-11)
        np.testing.assert_allclose(same, gradient, rtol=1e-7, atol=1e-8 * np.abs(gradient).max())

    @pytest.mark.parametrize("minibatch", [False, True])
    def test_the_trace_is_per_data_point(self, minibatch):
        """The last value of a search is the objective of the state; the estimates of one minibatch are close to it."""
        kept, _, _ = self.problems("vfe")
        config = sgp.Config(approximation="vfe", duplicates="merge", inducing=4, minibatch=minibatch, epochs=300)
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            state, trace = sgp.fit(Rows(kept.X, kept.y), config, np.random.default_rng(0))
        assert trace["objective"][-1] * 19 == pytest.approx(-log_posterior(state), rel=1e-3 if minibatch else 1e-8)


def test_noise_floor():
    rows = Rows(wave(noise=0.0).X, wave(noise=0.0).y)
    low = fitted(rows, inducing=30)
    with pytest.warns(UserWarning, match="noise variance is at its minimum, noise_floor: 0.001"):
        floored = fitted(rows, inducing=30, noise_floor=1e-3)
    assert low.hyperparameters["noise_variance"] < 1e-4
    assert floored.hyperparameters["noise_variance"] == pytest.approx(1e-3)


@every_approximation
def test_memory_of_an_evaluation(approximation):
    problem, point, _ = problem_of(wave(n=4000, d=20), 40, approximation=approximation)
    evidence(problem, point)
    tracemalloc.start()
    evidence(problem, point)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4.0 * 4000 * 40 * 8
