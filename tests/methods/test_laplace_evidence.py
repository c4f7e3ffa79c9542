"""Updates of the precisions: fixed points of the evidence of each form, more effective weights than data points."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ep_bench.methods.laplace import evidence, mode_search
from tests.methods.laplace_support import BETA, FORMS, SHAPES, Case
from tests.twins import plain_networks as plain

ALLOWED = [(form, shared) for form in FORMS for shared in (True, False) if shared or form != "last"]


def problem_of(case):
    return mode_search.ModeProblem(case.X, case.y, case.layers)


def settings_of(form, *, shared=True):
    return evidence.UpdateSettings(form, shared, fixed_prior=False, fixed_noise=False, updates=1, steps=1)


def slope(log_evidence, h=1e-4):
    return (log_evidence(h) - log_evidence(-h)) / (2 * h)


@pytest.mark.parametrize(("form", "shared"), ALLOWED)
@pytest.mark.parametrize("hidden", [(5,), (4, 3)])
def test_fixed_points_of_the_updates_are_stationary_points_of_the_evidence(form, shared, hidden):
    """Derivatives by the logarithms of beta and of every separate alpha, at fixed weights."""
    case = Case(hidden, 11, rows=60)
    problem, at = problem_of(case), evidence.Precisions(np.full(len(hidden) + 1, 1.3), 0.8)
    for _ in range(500):
        found = evidence.approximate(problem, case.w, at, form)
        before, at = at, evidence.updated(found, problem, settings_of(form, shared=shared))
    np.testing.assert_allclose([*at.alpha, at.beta], [*before.alpha, before.beta], rtol=1e-9)
    assert not shared or np.ptp(at.alpha) == 0

    def moved(by_layer, by_noise):
        precisions = evidence.Precisions(at.alpha * np.exp(by_layer), at.beta * np.exp(by_noise))
        return evidence.approximate(problem, case.w, precisions, form).log_evidence

    covered = np.arange(len(at.alpha)) >= found.first
    assert abs(slope(lambda h: moved(0.0 * covered, h))) < 1e-5
    for direction in [1.0 * covered] if shared else np.eye(len(covered)):
        assert abs(slope(lambda h, of=direction: moved(h * of, 0.0))) < 1e-5
        assert abs(moved(0.1 * direction, 0.0) - moved(0.0 * direction, 0.0)) > 1e-4


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("hidden", SHAPES)
def test_the_log_joint_density_is_that_of_all_weights(form, hidden):
    case = Case(hidden, 13)
    found = evidence.approximate(problem_of(case), case.w, evidence.Precisions(case.alpha, BETA), form)
    f = plain.outputs(case.X, case.w, case.sizes)
    expected = plain.log_normal(case.y, f, 1 / BETA).sum() + plain.log_normal(case.w, 0, 1 / case.prior).sum()
    assert found.log_joint == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("hidden", SHAPES)
def test_the_evidence_away_from_a_mode_is_a_lower_bound_of_that_of_the_linearised_network(hidden):
    """The difference is g'A^-1 g / 2 at the gradient g of M. The weights of the case are no mode."""
    case = Case(hidden, 17)
    J, residuals = case.jacobian(), case.y - case.outputs()
    found = evidence.approximate(problem_of(case), case.w, evidence.Precisions(case.alpha, BETA), "full")
    covariance = J @ np.diag(1 / case.prior) @ J.T + np.eye(len(case.y)) / BETA
    linearised = stats.multivariate_normal(cov=covariance).logpdf(residuals + J @ case.w)
    gradient = case.prior * case.w - BETA * J.T @ residuals
    missing = gradient @ case.covariance("full") @ gradient / 2
    assert missing > 1.0
    assert found.log_evidence + missing == pytest.approx(linearised, rel=1e-9)


class TestMoreWeightsThanDataPoints:
    """Small noise and more weights than data points."""

    ROWS, ALPHA, BETA = 10, 0.1, 1e6

    def found(self, form):
        case = Case((20, 20), 11, rows=self.ROWS)
        at = evidence.Precisions(np.full(len(case.layers), self.ALPHA), self.BETA)
        return case, evidence.approximate(problem_of(case), case.w, at, form)

    @pytest.mark.parametrize(("form", "minimum"), [("diag", 300), ("kron", 100)])
    def test_gammas_of_diag_and_kron_exceed_the_number_of_data_points(self, form, minimum):
        """The update is that of EM: the mean squared residual under the posterior of the form's linear model."""
        case, found = self.found(form)
        assert found.gamma.sum() > minimum
        H = case.kronecker() if form == "kron" else np.diag((case.jacobian() ** 2).sum(axis=0))
        values = np.maximum(np.linalg.eigvalsh(H), 0.0) if form == "kron" else np.diag(H)
        trace = np.sum(values / (self.ALPHA + self.BETA * values))
        squares = np.sum((case.y - plain.outputs(case.X, case.w, case.sizes)) ** 2)
        at = evidence.updated(found, problem_of(case), settings_of(form))
        assert trace > 1e-5
        assert at.beta == pytest.approx(self.ROWS / (squares + trace), rel=1e-9)

    @pytest.mark.parametrize("form", ["full", "last"])
    @pytest.mark.parametrize("shared", [True, False])
    def test_gammas_of_full_and_last_exceed_it_by_rounding_and_are_reduced(self, form, shared):
        case, found = self.found(form)
        assert found.gamma.sum() < self.ROWS + 1e-3
        settings = settings_of(form, shared=shared)
        cut, beyond = (
            evidence.updated(
                found._replace(gamma=found.gamma * (total / found.gamma.sum())), problem_of(case), settings
            )
            for total in (self.ROWS, self.ROWS + 0.32)
        )
        np.testing.assert_allclose([*beyond.alpha, beyond.beta], [*cut.alpha, cut.beta], rtol=1e-12)
        squares = np.add.reduceat(case.w**2, case.layers[:, 0])[found.first :]
        assert np.sum(beyond.alpha[found.first :] * squares) == pytest.approx(self.ROWS)
        assert beyond.beta == pytest.approx(self.ROWS / (found.squares + self.ROWS / self.BETA))
