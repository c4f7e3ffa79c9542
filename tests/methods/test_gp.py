"""Exact Gaussian-process regression: closed forms, reference values of other programs, search, invalid options."""

from __future__ import annotations

import json
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

import ep_bench
from ep_bench import Estimator
from ep_bench.covariances import matrix
from ep_bench.covariances.exact_evidence import evidence, factorised
from ep_bench.covariances.replicates import merge
from ep_bench.estimator import standardisation
from ep_bench.methods import gp
from ep_bench.types import Rows
from tests.methods.support import cell_row, wave
from tests.twins import plain_covariances as plain
from tests.twins.plain_networks import check_gradient

QUICK = {"starts": 1}  # options of the conformance tests

VALUES = json.loads((Path(__file__).parents[1] / "reference_values" / "gp.json").read_text(encoding="utf-8"))
KERNELS = [
    "se", "matern32", "matern52", "nn", "linear", "constant", {"sum": ["se", "linear"]},
    {"product": ["nn", "matern32"]}, {"sum": [{"product": ["se", "linear"]}, "nn", "constant"]},
]  # fmt: skip
FIXED = {"optimize": False, "standardize": False, "magnitude": 1.0}


def problem_of(rows, seed=2, **options):
    """The problem of the method, and random hyperparameters."""
    problem = gp.problem_of(rows, gp.Config(**options))
    rng = np.random.default_rng(seed)
    return problem, rng.normal(-0.5, 0.5, len(problem.hyper.names)), rng


def fitted(rows, seed=0, **options):
    with warnings.catch_warnings(action="error", category=ConvergenceWarning):
        return gp.fit(rows, gp.Config(**options), np.random.default_rng(seed))[0]


class TestReferenceValues:
    x = np.linspace(-3.0, 3.0, 25)[:, None]

    def rows(self):
        y = np.sin(2 * self.x[:, 0]) + 0.1 * np.cos(17 * np.arange(1, 26))
        y[6] += 3
        y[17] -= 2.5
        return self.x, y

    @pytest.mark.parametrize("case", VALUES["evidence"], ids=lambda case: str(case["options"]))
    def test_evidence_and_function(self, case):
        model = Estimator("gp", **FIXED, **case["options"]).fit(*self.rows())
        assert model.log_evidence_ == pytest.approx(case["log_evidence"], rel=1e-11)
        if "mean" in case:
            mean, variance = model.latent(np.array(VALUES["x_star"])[:, None])
            np.testing.assert_allclose(mean, case["mean"], atol=1e-10)
            np.testing.assert_allclose(variance, case["variance"], atol=1e-10)


SCIKIT = {
    "se": (lambda l, m, _: ConstantKernel(m) * RBF(l), "se", {}),
    "matern32": (lambda l, m, _: ConstantKernel(m) * Matern(l, nu=1.5), "matern32", {}),
    "matern52": (lambda l, m, _: ConstantKernel(m) * Matern(l, nu=2.5), "matern52", {}),
    "sum": (
        lambda l, m, v: ConstantKernel(m) * RBF(l) + ConstantKernel(v) * DotProduct(0.0, "fixed"),
        {"sum": ["se", "linear"]}, {"ard": False},
    ),
    "product": (
        lambda l, m, v: ConstantKernel(m) * Matern(l, nu=1.5) * ConstantKernel(v) * DotProduct(0.0, "fixed"),
        {"product": ["matern32", "linear"]}, {"ard": False},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCIKIT)
class TestScikitLearn:
    def both(self, name, rows):
        """The models of scikit-learn and of ep_bench at the same random hyperparameters."""
        make, kernel, options = SCIKIT[name]
        problem, theta, _ = problem_of(rows, kernel=kernel, **options)
        values = problem.hyper.values(theta)
        by_role = {key.rpartition(".")[2]: value for key, value in values.items()}
        theirs = make(by_role["lengthscale"], by_role["magnitude"], by_role.get("weight_variance"))
        theirs += WhiteKernel(by_role["noise_variance"])
        return problem, theta, GaussianProcessRegressor(theirs, alpha=0.0, optimizer=None).fit(rows.X, rows.y)

    def test_evidence_and_gradient(self, name):
        problem, theta, model = self.both(name, wave(n=50))
        ours, gradient = evidence(problem, theta)
        theirs, by_theirs = model.log_marginal_likelihood(model.kernel_.theta, eval_gradient=True)
        assert ours == pytest.approx(theirs, rel=1e-8)
        scales = len(theta) - (2 if name in {"se", "matern32", "matern52"} else 3)
        order = [scales, *range(scales), *range(scales + 1, len(theta))]
        np.testing.assert_allclose(gradient[order], by_theirs, rtol=1e-8, atol=1e-8 * abs(gradient).max())

    def test_predictions(self, name):
        rows, test = wave(n=50), wave(n=20, seed=4)
        problem, theta, model = self.both(name, rows)
        state = gp._state(problem, theta, 0, True)
        mean, deviation = model.predict(test.X, return_std=True)
        found = gp.predict(state, test.X, None)
        np.testing.assert_allclose(found.mean(), mean, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(found.std(), deviation, rtol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
class TestClosedForms:
    @pytest.mark.parametrize("ard", [True, False])
    def test_evidence_by_eigenvalues_and_gradient_by_differences(self, kernel, ard):
        rows = wave(n=30, d=3)
        problem, theta, rng = problem_of(rows, kernel=kernel, ard=ard)

        def dense(at):
            return plain.log_evidence(matrix(problem.covariance, at[:-1], rows.X), np.exp(at[-1]), rows.y)

        ours, gradient = evidence(problem, theta)
        assert ours == pytest.approx(dense(theta), rel=1e-11)
        assert factorised(problem, theta).log_evidence == ours
        check_gradient(dense, theta, gradient, rng, step=1e-3, rel=1e-7)

    def test_predictions_by_dense_solves(self, kernel, monkeypatch):
        rows, X = wave(n=30, d=3), wave(n=17, d=3, seed=5).X
        problem, theta, _ = problem_of(rows, kernel=kernel)
        state, own_theta = gp._state(problem, theta, 0, True), theta[:-1]
        C = matrix(problem.covariance, own_theta, rows.X) + np.exp(theta[-1]) * np.eye(30)
        k, among = matrix(problem.covariance, own_theta, X, rows.X), matrix(problem.covariance, own_theta, X)
        for block in (gp.BLOCK, 1, 90):
            monkeypatch.setattr(gp, "BLOCK", block)
            mean, variance = gp.latent(state, X)
            np.testing.assert_allclose(mean, k @ np.linalg.solve(C, rows.y), rtol=1e-9, atol=1e-11)
            np.testing.assert_allclose(variance, np.diag(among - k @ np.linalg.solve(C, k.T)), rtol=1e-7, atol=1e-10)
        noisy = gp.predict(state, X, None)
        np.testing.assert_allclose(noisy.mean(), mean)
        np.testing.assert_allclose(noisy.variance(), variance + np.exp(theta[-1]))


class TestSearch:
    @pytest.mark.parametrize("prior", ["weak", "none"])
    @pytest.mark.parametrize("kernel", ["se", "matern52", "nn", {"sum": ["se", "linear"]}], ids=str)
    def test_gradient_is_zero_at_the_end_of_a_search(self, kernel, prior):
        rows = wave()
        state = fitted(rows, kernel=kernel, prior=prior, starts=1)
        problem = problem_of(rows, kernel=kernel, prior=prior)[0]
        slope = evidence(problem, state.theta)[1] + problem.hyper.log_prior(state.theta)[1]
        inside = (state.theta > problem.hyper.low) & (state.theta < problem.hyper.high)
        assert np.abs(slope[inside]).max() < 2e-2
        assert state.converged
        assert state.n_iterations > 5

    def test_evidence_is_at_least_that_of_scikit_learn(self):
        rows = wave(n=80)
        kernel = ConstantKernel(1.0, (1e-6, 1e6)) * RBF(np.full(2, 1.4), (1e-4, 1e5)) + WhiteKernel(0.1, (1e-8, 1e3))
        theirs = GaussianProcessRegressor(kernel, alpha=0.0, n_restarts_optimizer=3, random_state=0).fit(rows.X, rows.y)
        assert fitted(rows, prior="none").log_evidence > theirs.log_marginal_likelihood_value_ - 1e-4

    def test_noise_and_irrelevant_input_are_identified(self):
        state = fitted(wave(n=200, noise=0.2), starts=1)
        values = state.hyperparameters
        assert np.sqrt(values["noise_variance"]) == pytest.approx(0.2 / np.sqrt(0.5 + 0.04), rel=0.15)
        assert values["lengthscale"][1] > 5 * values["lengthscale"][0]

    def test_the_best_start_counts(self):
        rows = wave(n=40, seed=7)
        problem = problem_of(rows)[0]
        ends = [
            state.log_evidence + problem.hyper.log_prior(state.theta)[0]
            for state in (fitted(rows, seed=3, starts=count) for count in (1, 2, 5))
        ]
        assert ends == sorted(ends)

    def test_nothing_is_learned_if_all_is_fixed_or_optimize_is_off(self):
        given = {"lengthscale": 1.0, "magnitude": 2.0, "noise_variance": 0.3}
        for options in (given, {"optimize": False}):
            state, trace = gp.fit(wave(), gp.Config(**options), np.random.default_rng(0))
            assert (state.n_iterations, state.converged, trace) == (0, True, {})
        np.testing.assert_allclose(state.hyperparameters["lengthscale"], np.sqrt(2.0))


class TestFailures:
    def twice(self):
        return Rows(np.repeat(wave(n=10).X, 2, axis=0), wave(n=20).y)

    def test_a_failed_factorisation_reports_the_hyperparameters(self):
        options = {"optimize": False, "noise_variance": 1e-30, "lengthscale": 1.5}
        with pytest.raises(
            FloatingPointError, match=r"not positive definite at lengthscale 1.5 1.5, magnitude 1, noise"
        ):
            gp.fit(self.twice(), gp.Config(**options), np.random.default_rng(0))
        with pytest.raises(FloatingPointError, match="not positive definite at"):
            gp.fit(self.twice(), gp.Config(noise_variance=1e-30), np.random.default_rng(0))

    def test_a_search_at_its_limit_is_not_converged(self, tmp_path):
        row = cell_row(tmp_path, "use: gp, steps: 2")
        assert row["status"] == "ok"
        assert row["reason"].startswith("not converged: the search for hyperparameters")


class TestSize:
    @pytest.mark.parametrize(
        ("kernel", "arrays"), [("se", 2.0), ("nn", 2.0), ({"sum": ["se", "linear"]}, 3.0)], ids=str
    )
    def test_memory_of_an_evaluation_does_not_depend_on_the_parameters(self, kernel, arrays):
        problem, theta, _ = problem_of(wave(n=600, d=40), kernel=kernel)
        evidence(problem, theta)
        tracemalloc.start()
        evidence(problem, theta)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak + problem.workspace.nbytes < arrays * problem.workspace.nbytes


class TestRepeatedInputs:
    def rows(self, equal=False):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(12, 2))[np.append(np.arange(12), rng.integers(12, size=9))]
        return Rows(X, np.sin(3.0 * X[:, 0]) if equal else rng.normal(size=21))

    def test_repeated_inputs_that_are_not_merged_are_named(self):
        rows, rng = self.rows(), np.random.default_rng(0)
        with pytest.warns(UserWarning, match="9 of 21 data points repeat the inputs of another one; duplicates: merge"):
            gp.fit(rows, gp.Config(starts=1), rng)
        distinct = Rows(*merge(rows.X, rows.y)[:2])
        for data, options in ((rows, {"duplicates": "merge"}), (distinct, {})):
            with warnings.catch_warnings():
                warnings.filterwarnings("error", "9 of 21|data points repeat")
                gp.fit(data, gp.Config(starts=1, **options), rng)

    def test_merged_evidence_and_function_are_the_same(self):
        rows, X = self.rows(), np.random.default_rng(1).normal(size=(5, 2))
        problems = [gp.problem_of(rows, gp.Config(duplicates=one)) for one in ("keep", "merge")]
        theta = np.array([0.2, -0.3, 0.4, -1.0])
        (value, gradient), (same, by_same) = (evidence(problem, theta) for problem in problems)
        assert same == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(by_same, gradient, rtol=1e-9)
        assert problems[1].workspace.shape == (12, 12)
        kept, merged = (gp.latent(gp._state(problem, theta, 0, True), X) for problem in problems)
        np.testing.assert_allclose(merged, kept, rtol=1e-10)

    def test_the_trace_is_per_data_point(self):
        """The evidences are the same, and so are the first steps of both searches."""
        kept, merged = (
            gp.fit(self.rows(), gp.Config(duplicates=one, starts=1), np.random.default_rng(0))[1]["objective"]
            for one in ("keep", "merge")
        )
        assert merged[:3] == pytest.approx(kept[:3], rel=1e-6)

    def test_equal_targets_are_reported(self):
        with pytest.warns(ConvergenceWarning, match="noise_variance runs to 0, stopped at 1e-08: 9 of 21 data points"):
            gp.fit(self.rows(equal=True), gp.Config(starts=1), np.random.default_rng(0))
        with pytest.warns(UserWarning, match="9 of 21 data points repeat the inputs and the target of another one"):
            state, _ = gp.fit(self.rows(equal=True), gp.Config(starts=1, steps=1), np.random.default_rng(0))
        assert state.theta[-1] > np.log(1e-8)

    def test_a_small_noise_is_reported(self):
        """Targets that are nearly equal have an optimum, at a noise that is close to 0."""
        rows = self.rows(equal=True)
        rows.y[np.argmax(rows.y)] += 1e-3
        with pytest.warns(UserWarning, match="of the variance of the target, close to 0"):
            state, _ = gp.fit(rows, gp.Config(starts=1), np.random.default_rng(0))
        assert np.log(1e-8) < state.theta[-1] < np.log(1e-6)

    def test_evidence_grows_with_the_logarithm_of_the_noise(self):
        """As the noise falls, each of the N - G repeated targets adds half the logarithm of the noise."""
        rows = self.rows(equal=True)
        values = []
        for noise in (1e-6, 1e-8):
            options = {"lengthscale": 0.5, "magnitude": 1.0, "noise_variance": noise, "optimize": False}
            values.append(gp.fit(rows, gp.Config(**options), np.random.default_rng(0))[0].log_evidence)
        assert values[1] - values[0] == pytest.approx(0.5 * 9 * np.log(100.0), rel=1e-3)

    def test_closed_form_of_wine(self):
        """With short lengthscales distinct inputs are independent. The evidence is above that of a smooth function."""
        data = ep_bench.load_dataset("wine")
        train, _ = ep_bench.standard_split(len(data.y), 0)
        inputs, target = standardisation(data.X[train], data.y[train])
        X, y = inputs.apply(data.X[train]), target.apply(data.y[train][:, None])[:, 0]
        distinct, means, replicates = merge(X, y)
        variance = float(means @ means) / len(means)
        expected = -0.5 * len(means) * (np.log(2.0 * np.pi * variance) + 1.0) + replicates.log_density(np.log(1e-8))[0]
        options = {"lengthscale": 1e-3, "magnitude": variance, "noise_variance": 1e-8, "optimize": False}
        found, _ = gp.fit(Rows(X, y), gp.Config(duplicates="merge", **options), np.random.default_rng(0))
        assert (len(distinct), replicates.squares) == (1253, 0.0)
        assert found.log_evidence == pytest.approx(expected, rel=1e-5)
        smooth = {"lengthscale": 3.0, "magnitude": 1.0, "noise_variance": 0.5, "optimize": False}
        other, _ = gp.fit(Rows(X, y), gp.Config(duplicates="merge", **smooth), np.random.default_rng(0))
        assert found.log_evidence > other.log_evidence + 1000.0
