"""The Laplace approximation: components against loops and differences, closed forms, fits of networks."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning

from ep_bench.methods import laplace
from ep_bench.methods.laplace import curvature, evidence, mode_search, network
from ep_bench.models import mlp
from ep_bench.predictions import Predictive
from ep_bench.types import Rows
from tests.methods.laplace_support import BETA, FORMS, NETWORKS, SHAPES, Case, fitted, largest_gain, wave
from tests.twins import plain_networks as plain
from tests.twins.plain_networks import check_gradient

QUICK = {"updates": 2, "steps": 50, "starts": 1}  # options of the conformance tests


@pytest.mark.parametrize(("hidden", "activation"), NETWORKS)
class TestNetwork:
    def test_outputs_and_jacobian(self, hidden, activation):
        case, digits = Case(hidden, 1, activation=activation), 1e-12 if activation == "relu" else 1e-6
        f, parts = case.factors()
        np.testing.assert_allclose(f, case.outputs(), rtol=1e-12, atol=1e-13)
        found = network.outputs(case.X, case.w[None], case.layers, case.kind)[0]
        np.testing.assert_allclose(found, case.outputs(), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(parts.jacobian(), case.jacobian(), rtol=digits, atol=1e-2 * digits)

    def test_jacobian_by_differences(self, hidden, activation):
        case = Case(hidden, 2, activation=activation)
        for n, row in enumerate(case.factors()[1].jacobian()):
            check_gradient(lambda w, n=n: case.outputs(w)[n], case.w, row, case.rng, step=1e-6, directions=3)

    def test_half_the_squares_and_gradient_over_chunks(self, hidden, activation, monkeypatch):
        case = Case(hidden, 4, rows=70 if activation == "relu" else 300, activation=activation)
        monkeypatch.setattr(mlp, "CHUNK", 32)
        kernel = network.HalfSquaresGradient if activation == "relu" else network.SmoothHalfSquaresGradient
        half, gradient = kernel(case.X, case.y, case.layers, *([case.kind] if activation != "relu" else []))(case.w)
        residuals = case.outputs() - case.y
        assert half == pytest.approx(0.5 * (residuals**2).sum(), rel=1e-12)
        np.testing.assert_allclose(gradient, case.factors()[1].jacobian().T @ residuals, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("hidden", SHAPES)
def test_products_of_the_jacobian_in_blocks(hidden, monkeypatch):
    case = Case(hidden, 3, rows=70)
    J, residuals = case.jacobian(), case.outputs() - case.y
    for block in (network.BLOCK, 1):
        monkeypatch.setattr(network, "BLOCK", block)
        product, gradient = network.normal_equations(case.X, case.y, case.w, case.layers)
        np.testing.assert_allclose(np.triu(product), np.triu(J.T @ J), rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(gradient, J.T @ residuals, rtol=1e-11, atol=1e-11)


def test_the_sum_of_squares_does_not_depend_on_alignment():
    case, found, kept = Case((50,), 12, d=13, rows=455), set(), []
    for size in case.rng.integers(1, 5000, size=40):
        kept.append(np.empty(size))
        half, gradient = network.HalfSquaresGradient(case.X.copy(), case.y.copy(), case.layers)(case.w.copy())
        found.add((half, gradient.tobytes()))
    assert len(found) == 1


@pytest.mark.parametrize("hidden", SHAPES)
@pytest.mark.parametrize("form", FORMS)
class TestForms:
    def test_the_covariance_follows_the_formula(self, hidden, form):
        case = Case(hidden, 5)
        posterior, covariance = case.posterior(form), case.covariance(form)
        assert posterior.log_det == pytest.approx(-np.linalg.slogdet(covariance)[1], rel=1e-10)
        np.testing.assert_allclose(posterior.variances, np.diag(covariance), rtol=1e-9)

    def test_variance_of_the_linearised_outputs(self, hidden, form):
        case = Case(hidden, 6)
        covariance = case.covariance(form)
        J = case.jacobian()[:, case.P - len(covariance) :]
        mean, variance = curvature.linearised(case.posterior(form), case.X, case.w, case.layers)
        np.testing.assert_allclose(mean, plain.outputs(case.X, case.w, case.sizes), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(variance, np.einsum("ni,ij,nj->n", J, covariance, J), rtol=1e-9)

    def test_draws_have_its_covariance(self, hidden, form):
        case, count = Case(hidden, 7), 20_000
        drawn, covariance = case.posterior(form).draw(count, case.rng), case.covariance(form)
        deviations = np.sqrt(np.diag(covariance))
        assert np.abs(drawn.mean(axis=0) / deviations).max() < 5 / np.sqrt(count)
        scaled = drawn / deviations
        gap = np.abs(scaled.T @ scaled / count - covariance / np.outer(deviations, deviations))
        assert gap.max() < 5.5 * np.sqrt(2 / count)

    def test_memory_is_limited_by_the_block_size(self, hidden, form, monkeypatch):
        case = Case(hidden, 8, rows=70)
        whole = case.posterior(form)
        monkeypatch.setattr(network, "BLOCK", 1)
        parted = case.posterior(form)
        np.testing.assert_allclose(parted.variances, whole.variances, rtol=1e-10)
        ours, theirs = (curvature.linearised(one, case.X, case.w, case.layers)[1] for one in (parted, whole))
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)


class TestRelationsBetweenForms:
    def test_kronecker_is_exact_without_hidden_layers(self):
        case = Case((), 9)
        full, kron = case.posterior("full"), case.posterior("kron")
        assert kron.log_det == pytest.approx(full.log_det, rel=1e-12)
        np.testing.assert_allclose(kron.variances, full.variances, rtol=1e-11)

    @pytest.mark.parametrize("hidden", SHAPES)
    def test_gammas(self, hidden):
        """Gamma of the diagonal is at least that of the full form, which is at most min(N, P)."""
        for seed in range(5):
            case = Case(hidden, 20 + seed)
            problem, at = mode_search.ModeProblem(case.X, case.y, case.layers), evidence.Precisions(case.alpha, BETA)
            diag, full = (evidence.approximate(problem, case.w, at, form).gamma.sum() for form in ("diag", "full"))
            assert diag >= full
            assert full < min(case.P, len(case.y)) + 1e-9
            covariance = case.covariance("full")
            assert full == pytest.approx(case.P - case.prior @ np.diag(covariance), rel=1e-9)

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize(("hidden", "activation"), NETWORKS)
    def test_evidence_by_the_formula(self, form, hidden, activation):
        case = Case(hidden, 10, activation=activation)
        at = evidence.Precisions(case.alpha, BETA)
        problem = mode_search.ModeProblem(case.X, case.y, case.layers, case.kind)
        found = evidence.approximate(problem, case.w, at, form)
        assert found.squares == pytest.approx(((case.outputs() - case.y) ** 2).sum(), rel=1e-12)
        if (form, activation) == ("kron", "tanh"):
            return  # its blocks by loops are those of rectified units
        covariance = case.covariance(form)
        w, prior = case.w[-len(covariance) :], case.prior[-len(covariance) :]
        expected = plain.log_normal(case.y, case.outputs(), 1 / BETA).sum() + plain.log_normal(w, 0, 1 / prior).sum()
        expected += 0.5 * len(w) * np.log(2 * np.pi) + 0.5 * np.linalg.slogdet(covariance)[1]
        assert found.log_evidence == pytest.approx(expected, rel=1e-10 if activation == "relu" else 1e-6)


def linear_rows(n, d, seed=1, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.5 * rng.standard_normal((d, d)))
    return Rows(X, X @ rng.standard_normal(d) + noise * rng.standard_normal(n) + 0.3)


def log_marginal(rows, prior_variance, noise_variance):
    A = np.column_stack([rows.X, np.ones(len(rows.y))])
    covariance = noise_variance * np.eye(len(A)) + prior_variance * A @ A.T
    return multivariate_normal.logpdf(rows.y, np.zeros(len(A)), covariance)


class TestLinearModel:
    """Without hidden layers the posterior and the evidence are exact."""

    @pytest.mark.parametrize("form", ["full", "kron", "last"])
    @pytest.mark.parametrize(("n", "d"), [(30, 3), (6, 9), (1, 2)])
    def test_posterior_and_evidence(self, form, n, d):
        rows = linear_rows(n, d)
        state, _ = fitted(rows, hidden=(), hessian=form, prior_variance=0.7, noise_variance=0.2)
        A, B = (np.column_stack([X, np.ones(len(X))]) for X in (rows.X, linear_rows(11, d, seed=2).X))
        covariance = np.linalg.inv(np.eye(d + 1) / 0.7 + A.T @ A / 0.2)
        mean = covariance @ A.T @ rows.y / 0.2
        predicted = laplace.predict(state, B[:, :-1], np.random.default_rng(0))
        np.testing.assert_allclose(state.weights, mean, rtol=1e-8)
        np.testing.assert_allclose(predicted.mean(), B @ mean, rtol=1e-8)
        np.testing.assert_allclose(predicted.variance(), 0.2 + np.sum(B @ covariance * B, axis=1), rtol=1e-8)
        assert state.log_evidence == pytest.approx(log_marginal(rows, 0.7, 0.2), rel=1e-8)

    @pytest.mark.parametrize("form", ["full", "kron", "last"])
    @pytest.mark.parametrize(("seed", "noise"), [(3, 0.5), (4, 3.0), (5, 0.05)])
    def test_the_updates_end_at_the_maximum_of_the_evidence(self, form, seed, noise):
        rows = linear_rows(40, 4, seed=seed, noise=noise)
        state, trace = fitted(rows, hidden=(), hessian=form, updates=500)
        options = {"xatol": 1e-8, "fatol": 1e-13, "maxiter": 2000}
        best = minimize(lambda t: -log_marginal(rows, *np.exp(t)), np.zeros(2), method="Nelder-Mead", options=options)
        np.testing.assert_allclose([state.prior_variance[0], state.noise_variance], np.exp(best.x), rtol=1e-5)
        assert state.log_evidence == pytest.approx(-best.fun, rel=1e-9)
        assert trace["log_evidence"][-1] > trace["log_evidence"][0]

    @pytest.mark.parametrize("given", ["prior_variance", "noise_variance"])
    def test_a_fixed_precision_does_not_change(self, given):
        rows = linear_rows(40, 4)
        state, _ = fitted(rows, hidden=(), updates=500, **{given: 0.37})
        at = {"prior_variance": state.prior_variance[0], "noise_variance": state.noise_variance}
        assert at[given] == pytest.approx(0.37, rel=1e-12)
        for factor in (0.99, 1.01):
            moved = {name: value * (1.0 if name == given else factor) for name, value in at.items()}
            assert log_marginal(rows, **moved) < log_marginal(rows, **at)

    def test_the_diagonal_form_has_its_own_variances(self):
        rows = linear_rows(30, 3)
        state, _ = fitted(rows, hidden=(), hessian="diag", prior_variance=0.7, noise_variance=0.2)
        A = np.column_stack([rows.X, np.ones(30)])
        np.testing.assert_allclose(state.posterior.variances, 1 / (1 / 0.7 + (A**2).sum(axis=0) / 0.2), rtol=1e-10)
        assert state.log_evidence < log_marginal(rows, 0.7, 0.2)  # Hadamard

    def test_draws_agree_with_the_linearised_prediction(self):
        rows, count = linear_rows(30, 3), 20_000
        state, _ = fitted(rows, hidden=(), predictive="sampled", test_samples=count)
        sampled = laplace.predict(state, rows.X, np.random.default_rng(1))
        line = laplace.predict(state._replace(predictive="linearized"), rows.X, np.random.default_rng(1))
        assert sampled.means.shape == (count, 30)
        spread = np.sqrt(line.variance() - state.noise_variance)
        assert np.all(np.abs(sampled.mean() - line.mean()) < 5 * spread / np.sqrt(count))
        ratio = (sampled.variance() - state.noise_variance) / spread**2
        assert np.all(np.abs(ratio - 1) < 5 * np.sqrt(2 / count))


class TestNetworks:
    @pytest.mark.parametrize("seed", range(4))
    def test_the_weights_are_most_probable(self, seed):
        """No step along the gradient or Newton's direction clearly increases the log joint density.

        The gradient itself need not vanish: searches end on kinks of the rectified units.
        """
        rows = wave()
        state, _ = fitted(rows, seed, hidden=(8,), prior_variance=1.0, noise_variance=0.05, steps=3000)
        assert largest_gain(rows, state.layers, state.weights) < 0.02
        assert largest_gain(rows, state.layers, 0.95 * state.weights) > 1.0

    @pytest.mark.parametrize("form", ["full", "kron"])
    def test_the_noise_is_recovered(self, form):
        state, trace = fitted(wave(200), hidden=(20,), hessian=form)
        assert np.sqrt(state.noise_variance) == pytest.approx(0.1, rel=0.25)
        assert 5 < state.well_determined < 45
        assert max(trace["log_evidence"]) == state.log_evidence
        assert len({len(values) for values in trace.values()}) == 1

    def test_a_fixed_point_of_the_evidence(self):
        """If the best update is the last, the evidence at fixed weights is stationary in the log precisions.

        Tanh units have no kinks at which the mode, and with it the evidence, changes from one search to the next.
        """
        rows = wave()
        with warnings.catch_warnings(action="error", category=ConvergenceWarning):
            state, _ = fitted(rows, hidden=(4,), activation="tanh", updates=300, steps=1000)
        problem, h = mode_search.ModeProblem(rows.X, rows.y, state.layers, state.kind), 1e-3
        at = np.log([1 / state.prior_variance[0], 1 / state.noise_variance])

        def log_evidence(point):
            alpha, beta = np.exp(point)
            precisions = evidence.Precisions(np.full(2, alpha), beta)
            return evidence.approximate(problem, state.weights, precisions, "full").log_evidence

        for step in np.eye(2):
            slope = (log_evidence(at + h * step) - log_evidence(at - h * step)) / (2 * h)
            assert abs(slope) < 2e-3 * len(rows.y)

    def test_a_prior_for_each_layer(self):
        state, trace = fitted(wave(), hidden=(8,), prior="layers")
        assert state.prior_variance[0] != state.prior_variance[1]
        best = np.argmax(trace["log_evidence"])
        assert trace["prior_deviation_2"][best] == pytest.approx(np.sqrt(state.prior_variance[1]))
        with pytest.raises(ValueError, match="covers all layers"):
            laplace.Config(hessian="last", prior="layers")

    def test_uncertainty_grows_away_from_the_data(self):
        state, _ = fitted(wave(), hidden=(20,))
        inside, outside = laplace.predict(state, np.array([[0.0], [6.0]]), np.random.default_rng(0)).std()
        assert outside > 3 * inside

    @pytest.mark.parametrize("form", FORMS)
    def test_the_last_layer_alone_covers_its_weights(self, form):
        state, _ = fitted(wave(), hidden=(8,), hessian=form, updates=2)
        assert len(state.posterior.variances) == (9 if form == "last" else 25)
        drawn = laplace.predict(state._replace(predictive="sampled"), np.zeros((3, 1)), np.random.default_rng(0))
        assert isinstance(drawn, Predictive)
        assert np.ptp(drawn.means, axis=0).min() > 0
