"""Deep Gaussian processes by variational inference: closed forms, autograd values, differences and a slow twin."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ep_bench import Estimator
from ep_bench.covariances import matrix
from ep_bench.covariances import sparse_bound as sparse
from ep_bench.covariances.sparse_evidence import evidence
from ep_bench.methods import dgp_vi, gp
from ep_bench.methods.dgp_vi.bound import Model, NaturalSteps, negative_bound, propagate
from ep_bench.methods.dgp_vi.layers import Structure, diagonal, divergence, forward, layers, lower, size
from ep_bench.types import Rows
from tests.methods.support import rows
from tests.twins.plain_networks import check_gradient

QUICK = {"inducing": 8, "steps": 800, "learning_rate": 0.03, "test_samples": 20}  # options of the conformance tests
VALUES = json.loads((Path(__file__).parents[1] / "reference_values" / "dgp_vi.json").read_text(encoding="utf-8"))
DEPTHS = [(2, 1), (2, 2, 1), (3, 2, 2, 1)]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class Case:
    """A network with four inducing inputs, six data points and two draws; the arrays of the reference values."""

    def __init__(self, dims, count=20):
        self.structure, i = Structure(tuple(dims), 4), np.arange(6)
        self.theta = 0.6 * np.cos(1.7 * np.arange(size(self.structure)) ** 1.3)
        for layer in layers(self.structure, self.theta):
            layer.factor[:] *= lower(4)
        self.X, self.y = np.column_stack([np.cos((j + 2.0) * i) for j in range(dims[0])]), np.sin(2.0 * i)
        W = [np.cos(np.arange(a * b).reshape(a, b)) for a, b in pairwise(dims)]
        self.model = Model.of(self.structure, W, count)
        self.noise = 1.5 * np.sin(0.7 * np.arange(12 * self.model.hidden) ** 1.1).reshape(2, 6, -1)

    def bound(self, theta=None):
        """Return minus the bound and its gradient (P,)."""
        theta, gradient = self.theta if theta is None else theta, np.empty_like(self.theta)
        found, by = layers(self.structure, theta), layers(self.structure, gradient)
        return negative_bound(self.model, found, self.X, self.y, self.noise, by)[0], gradient


class TestBound:
    @pytest.mark.parametrize("reference", VALUES["cases"], ids=lambda case: str(len(case["dims"]) - 1))
    def test_value_and_gradient_by_autograd(self, reference):
        value, gradient = Case(reference["dims"]).bound()
        assert -value == pytest.approx(reference["bound"], rel=1e-9)
        assert -gradient @ np.cos(np.arange(len(gradient))) == pytest.approx(reference["gradient_sum"], rel=1e-7)
        assert np.linalg.norm(gradient) == pytest.approx(reference["gradient_norm"], rel=1e-8)
        np.testing.assert_allclose(-gradient[:6], reference["gradient_head"], rtol=1e-7)

    @pytest.mark.parametrize("dims", DEPTHS)
    def test_gradient_by_differences(self, dims):
        case = Case(dims)
        used = np.ones_like(case.theta)
        for layer in layers(case.structure, used):
            layer.factor[:] *= lower(4)
        free = np.flatnonzero(used)

        def at(point):
            theta = case.theta.copy()
            theta[free] = point
            return case.bound(theta)[0]

        gradient = case.bound()[1]
        assert not gradient[used == 0.0].any()
        check_gradient(at, case.theta[free], gradient[free], np.random.default_rng(3), directions=3)

    def test_the_expectation_is_the_mean_over_draws(self):
        """Over the hidden unit of one data point, by quadrature."""
        case = Case((2, 1, 1), count=1)
        case.X, case.y = case.X[:1], case.y[:1]
        nodes, weights = np.polynomial.hermite_e.hermegauss(40)
        values = []
        for case.noise in nodes.reshape(-1, 1, 1, 1):
            values.append(case.bound()[0])
        case.noise = np.random.default_rng(0).standard_normal((40_000, 1, 1))
        assert case.bound()[0] == pytest.approx(weights @ values / weights.sum(), rel=0.01)


def test_moments_and_divergence_by_slow_twin():
    case = Case((3, 2, 1))
    problem, layer, W = case.model.problems[0], layers(case.structure, case.theta)[0], case.model.W[0]
    made = forward(problem, layer, W, case.X)
    K = matrix(problem.covariance, layer.hyper[:-1], layer.Z)
    L = np.linalg.cholesky(K + 1e-10 * K[0, 0] * np.eye(4))
    total = 0.0
    for o in range(2):
        F = np.tril(layer.factor[:, o, :], -1) + np.diag(np.exp(np.diag(layer.factor[:, o, :])))
        S, m = F @ F.T, layer.mean[:, o]
        total += 0.5 * (np.trace(S) + m @ m - 4 - np.linalg.slogdet(S)[1])
        for i, x in enumerate(case.X):
            k = matrix(problem.covariance, layer.hyper[:-1], x[None], layer.Z)[0]
            v = np.linalg.solve(L, k)
            assert made.mean[i, o] == pytest.approx(x @ W[:, o] + v @ m, rel=1e-9)
            expected = np.exp(layer.hyper[-2]) - v @ v + v @ S @ v
            assert made.variance[i, o] == pytest.approx(expected, rel=1e-8)
    assert divergence(layer, made) == pytest.approx(total, rel=1e-10)


class TestOneLayer:
    """With one layer the bound at the best q is that of Titsias (2009)."""

    def fitted(self, inducing, train):
        """Return model, layer, and minus the bound at the best q, which one whole natural step finds."""
        config = dgp_vi.Config(layers=1, inducing=inducing)
        model, theta = dgp_vi.start(train.X, train.y, config, np.random.default_rng(2))
        layers(model.structure, theta)[0].hyper[:2] = np.log(0.5)
        noise, gradient = np.empty((1, len(train.y), 0)), np.empty_like(theta)
        NaturalSteps(model, 1.0)(theta, train.X, train.y, noise, gradient)
        found = layers(model.structure, theta)
        by = layers(model.structure, gradient)
        return model, found, negative_bound(model, found, train.X, train.y, noise, by)[0], by[0]

    def test_the_bound_and_its_gradient_are_those_of_the_sparse_process(self):
        train = rows(40)
        model, (layer,), value, by = self.fitted(7, train)
        problem = model.problems[0]._replace(X=train.X, y=train.y, replicates=sparse.Replicates.none(40))
        best, gradient = evidence(problem, np.append(layer.hyper, layer.Z))
        assert -value == pytest.approx(best, rel=1e-9)
        np.testing.assert_allclose(-by.hyper, gradient[: len(by.hyper)], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(-by.Z.ravel(), gradient[len(by.hyper) :], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(by.mean, 0.0, atol=1e-8)
        np.testing.assert_allclose(by.factor, 0.0, atol=1e-8)

    def test_all_data_points_as_inducing_inputs_are_exact(self):
        train, test = rows(30), rows(9, seed=2)
        model, (layer,), value, _ = self.fitted(30, train)
        fixed = {"lengthscale": 0.5, "magnitude": 1.0, "noise_variance": 0.05, "optimize": False}
        exact, _ = gp.fit(train, gp.Config(**fixed), np.random.default_rng(0))
        assert -value == pytest.approx(exact.log_evidence, abs=1e-6)
        mean, variance = gp.latent(exact, test.X)
        made = propagate(model, [layer], test.X, np.empty((1, 9, 0)))[0]
        np.testing.assert_allclose(made.mean[:, 0], mean, atol=1e-6)
        np.testing.assert_allclose(made.variance[:, 0], variance, atol=1e-6)


class TestFit:
    def test_two_layers_find_a_step(self):
        """A step, with a better bound than a single layer's."""
        X = np.linspace(-2, 2, 60)[:, None]
        train = Rows(X, np.sign(X[:, 0]) + 0.02 * np.sin(40 * X[:, 0]))
        options = {"inducing": 10, "steps": 400, "batch_size": 60, "learning_rate": 0.05}
        bounds = [
            dgp_vi.fit(train, dgp_vi.Config(layers=count, **options), np.random.default_rng(0))[0].log_evidence
            for count in (1, 2)
        ]
        assert bounds[1] > bounds[0] + 10.0

    def test_predictions_are_mixtures_over_draws(self, monkeypatch):
        train, test = rows(30), rows(7, seed=5)
        config = dgp_vi.Config(layers=3, inducing=5, steps=20, test_samples=4)
        state, trace = dgp_vi.fit(train, config, np.random.default_rng(0))
        assert set(trace) == {"objective", "noise_deviation"}
        whole = dgp_vi.predict(state, test.X, np.random.default_rng(1))
        monkeypatch.setattr(dgp_vi, "BLOCK", 100)
        parts = dgp_vi.predict(state, test.X, np.random.default_rng(1))
        assert whole.means.shape == (4, 7)
        np.testing.assert_allclose(parts.means, whole.means, rtol=1e-10)
        np.testing.assert_allclose(parts.variances, whole.variances, rtol=1e-10)

    def test_the_mean_functions(self):
        X = np.random.default_rng(0).normal(size=(20, 4)) * [3.0, 1.0, 2.0, 0.1]
        first, second, last = dgp_vi.mean_functions(X, Structure((4, 2, 2, 1), 5))
        np.testing.assert_allclose(np.abs(first.T @ first), np.eye(2), atol=1e-12)
        assert (X @ first).var() > 0.9 * X[:, [0, 2]].var()
        assert (second == np.eye(2)).all()
        assert not last.any()

    def test_hidden_layers_start_close_to_their_mean_functions(self):
        train = rows(25, 3)
        model, theta = dgp_vi.start(train.X, train.y, dgp_vi.Config(layers=2), np.random.default_rng(0))
        found = layers(model.structure, theta)
        assert model.structure == Structure((3, 3, 1), 25)
        made = forward(model.problems[0], found[0], model.W[0], train.X)
        np.testing.assert_allclose(made.mean, train.X)
        assert (diagonal(found[1].factor) == 0.0).all()

    def test_the_estimator_offers_the_bound_and_hyperparameters(self):
        train = rows(30)
        deep = Estimator("dgp_vi", inducing=5, steps=10, random_state=0).fit(train.X, train.y)
        assert np.isfinite(deep.log_evidence_)
        assert deep.hyperparameters_["lengthscale_1"].shape == (2,)
        assert deep.hyperparameters_["noise_variance_2"] > 0.0
