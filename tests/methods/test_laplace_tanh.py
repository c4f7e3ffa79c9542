"""The Laplace approximation of networks of tanh units: components against plain NumPy, differences and formulas."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.methods import laplace
from ep_bench.methods.laplace import evidence, mode_search, network
from ep_bench.models.residuals import ACTIVATIONS
from ep_bench.types import Rows
from tests.methods.laplace_support import BETA, FORMS, Case, fitted, wave
from tests.twins import plain_networks as plain

TANH = ACTIVATIONS["tanh"]
SHAPES = [(5,), (4, 3), (9, 17)]


def differences(case, step=1e-6):
    """The Jacobian (N, P) of a tanh network by central differences."""
    columns = []
    for direction in np.eye(case.P):
        upper, lower = (
            plain.outputs(case.X, case.w + s * step * direction, case.sizes, activation="tanh") for s in (1, -1)
        )
        columns.append((upper - lower) / (2 * step))
    return np.column_stack(columns)


@pytest.mark.parametrize("hidden", SHAPES)
class TestComponents:
    def test_outputs_and_jacobian(self, hidden):
        case = Case(hidden, 1)
        f, parts = network.factors(case.X, case.w, case.layers, TANH)
        expected = plain.outputs(case.X, case.w, case.sizes, activation="tanh")
        np.testing.assert_allclose(f, expected, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(network.outputs(case.X, case.w[None], case.layers, TANH)[0], expected, rtol=1e-12)
        np.testing.assert_allclose(parts.jacobian(), differences(case), rtol=1e-6, atol=1e-8)

    def test_half_the_squares_and_gradient(self, hidden):
        case = Case(hidden, 2, rows=300)
        half, gradient = network.SmoothHalfSquaresGradient(case.X, case.y, case.layers, TANH)(case.w)
        residuals = plain.outputs(case.X, case.w, case.sizes, activation="tanh") - case.y
        assert half == pytest.approx(0.5 * (residuals**2).sum(), rel=1e-12)
        J = network.factors(case.X, case.w, case.layers, TANH)[1].jacobian()
        np.testing.assert_allclose(gradient, J.T @ residuals, rtol=1e-10, atol=1e-10)

    @pytest.mark.parametrize("form", FORMS)
    def test_evidence_by_the_formula(self, form, hidden):
        case = Case(hidden, 3)
        problem = mode_search.ModeProblem(case.X, case.y, case.layers, TANH)
        found = evidence.approximate(problem, case.w, evidence.Precisions(case.alpha, BETA), form)
        residuals = plain.outputs(case.X, case.w, case.sizes, activation="tanh") - case.y
        assert found.squares == pytest.approx((residuals**2).sum(), rel=1e-12)
        if form not in {"full", "diag"}:
            return
        J = differences(case)
        A = np.diag(case.prior) + BETA * (J.T @ J if form == "full" else np.diag((J**2).sum(axis=0)))
        expected = plain.log_normal(case.y, residuals + case.y, 1 / BETA).sum()
        expected += plain.log_normal(case.w, 0, 1 / case.prior).sum() + 0.5 * case.P * np.log(2 * np.pi)
        expected -= 0.5 * np.linalg.slogdet(A)[1]
        assert found.log_evidence == pytest.approx(expected, rel=1e-6)


def test_a_fit_predicts_a_wave():
    rows = wave(n=60, noise=0.1)
    state, _ = fitted(rows, starts=3, hidden=(10,), activation="tanh")
    X = np.linspace(-1.8, 1.8, 40)[:, None]
    predicted = laplace.predict(state, X, np.random.default_rng(0))
    assert np.sqrt(np.mean((predicted.mean() - np.sin(2 * X[:, 0])) ** 2)) < 0.1
    assert state.noise_variance == pytest.approx(0.01, rel=0.6)


def test_sampled_predictions_are_those_of_the_drawn_networks():
    rows = wave(n=30)
    options = {"hidden": (4,), "activation": "tanh", "predictive": "sampled", "test_samples": 7}
    state, _ = fitted(rows, **options)
    predicted = laplace.predict(state, rows.X, np.random.default_rng(5)).mean()
    draws = state.weights + state.posterior.draw(7, np.random.default_rng(5))
    expected = [plain.outputs(rows.X, w, (1, 4, 1), activation="tanh") for w in draws]
    np.testing.assert_allclose(predicted, np.mean(expected, axis=0), rtol=1e-10)


def test_predictions_are_smooth_where_rectified_units_have_kinks():
    """Linearised standard deviations of tanh units have no jumps between neighbouring inputs."""
    rows = Rows(np.linspace(-2, 2, 30)[:, None], np.abs(np.linspace(-2, 2, 30)))
    X = np.linspace(-2, 2, 4001)[:, None]
    jumps = {}
    for activation in ("tanh", "relu"):
        state, _ = fitted(rows, hidden=(6,), activation=activation, noise_variance=0.01)
        deviation = np.sqrt(laplace.predict(state, X, np.random.default_rng(0)).variance())
        jumps[activation] = np.abs(np.diff(deviation)).max() / deviation.mean()
    assert jumps["tanh"] < 0.01 < jumps["relu"]
