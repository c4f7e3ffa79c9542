"""Variational inference with a full covariance: the bound against a dense twin, differences and evidences; fits."""

import numpy as np
import pytest
from scipy import stats

from ep_bench.methods import vi
from ep_bench.methods.vi import full_covariance as full
from ep_bench.models import mlp, variational_bound
from ep_bench.types import Rows
from tests.methods.support import rows
from tests.methods.test_vi import SHAPES, Case, LinearCase
from tests.twins import plain_networks as plain
from tests.twins.plain_networks import check_gradient


def evaluate(case, theta, values, noise):
    """Return the negative bound and its gradients by theta (2 P + 1,) and by A (P (P - 1) / 2,)."""
    work = variational_bound.workspace(len(noise), len(case.y), case.P, mlp.units(case.layers), mlp.widest(case.layers))
    found = full.correlations(len(noise), case.P)
    found.values[:], found.noise[:] = values, noise
    full.correlate(theta, work, found)
    gradient = np.full(len(theta), np.nan)
    value = full.bound(theta, case.X, case.y, case.layers, case.total, case.prior, work, gradient, found)
    return value, gradient, found.gradient


def by_matrices(case, theta, values, noise):
    """Return the negative bound from dense matrices: draws by the Cholesky factor, divergence of two Gaussians."""
    factor = full.cholesky_factor(np.exp(theta[case.P : -1]), values)
    mean, sigma2 = theta[: case.P], np.exp(theta[-1])
    W = mean + noise @ factor.T
    f = mlp.evaluate(case.X, W, case.layers)
    log_likelihood = case.total / len(case.y) * plain.log_normal(case.y, f, sigma2).sum(axis=1).mean()
    trace = (np.sum(factor**2, axis=1) / case.prior).sum()
    logs = np.log(case.prior).sum() - np.linalg.slogdet(factor @ factor.T)[1]
    return 0.5 * (trace + (mean**2 / case.prior).sum() - case.P + logs) - log_likelihood


def random_values(case):
    return case.rng.normal(size=case.P * (case.P - 1) // 2) / np.sqrt(case.P)


@pytest.mark.parametrize("hidden", SHAPES)
class TestKernels:
    def test_the_bound_agrees_with_dense_matrices(self, hidden):
        case = Case(hidden, 1)
        values = random_values(case)
        expected = by_matrices(case, case.theta, values, case.noise)
        assert evaluate(case, case.theta, values, case.noise)[0] == pytest.approx(expected, rel=1e-11)

    def test_gradients(self, hidden):
        case = Case(hidden, 2)
        values = random_values(case)
        _, by_theta, by_values = evaluate(case, case.theta, values, case.noise)
        check_gradient(lambda at: evaluate(case, at, values, case.noise)[0], case.theta, by_theta, case.rng, step=1e-6)
        check_gradient(lambda at: evaluate(case, case.theta, at, case.noise)[0], values, by_values, case.rng, step=1e-6)

    def test_without_correlations_it_is_the_factorised_gaussian(self, hidden):
        case = Case(hidden, 3)
        value, gradient, _ = evaluate(case, case.theta, np.zeros(case.P * (case.P - 1) // 2), case.noise)
        expected, slopes = case.weights()
        assert value == pytest.approx(expected, rel=1e-13)
        np.testing.assert_allclose(gradient, slopes, rtol=1e-12)


def test_the_posterior_of_a_linear_model_has_the_evidence_as_its_bound():
    """A full covariance contains it: the gradient is zero there, and the gap of the factorised Gaussian is closed."""
    case = LinearCase(12)
    mean, precision = case.posterior(np.exp(-0.4))
    factor = np.linalg.cholesky(np.linalg.inv(precision))
    std = np.diag(factor)
    theta = np.concatenate([mean, np.log(std), [-0.4]])
    values = (factor / std[:, None])[np.tril_indices(case.P, -1)]
    value, by_theta, by_values = evaluate(case, theta, values, case.noise)
    assert -value == pytest.approx(case.log_evidence(np.exp(-0.4)), rel=1e-10)
    np.testing.assert_allclose(by_theta[:-1], 0.0, atol=1e-9)
    np.testing.assert_allclose(by_values, 0.0, atol=1e-9)
    np.testing.assert_allclose(full.cholesky_factor(std, values), factor, rtol=1e-12)


def test_a_fit_of_a_linear_model_reaches_its_posterior():
    rng = np.random.default_rng(14)
    X = rng.normal(size=(60, 3)) @ [[1.0, 0.7, 0.0], [0.0, 0.7, 0.3], [0.0, 0.0, 1.0]]
    y = X @ [1.0, -0.5, 0.2] + 0.3 + 0.6 * rng.normal(size=60)
    config = vi.Config(
        hidden=(), epochs=1500, batch_size=20, noise_variance=0.36, prior_variance=0.5, covariance="full",
        test_samples=4000,
    )  # fmt: skip
    state, trace = vi.fit(Rows(X, y), config, np.random.default_rng(0))
    A = np.column_stack([X, np.ones(60)])
    covariance = np.linalg.inv(np.eye(4) / 0.5 + A.T @ A / 0.36)
    assert np.all(np.abs(state.mean - covariance @ A.T @ y / 0.36) < 0.15 * np.sqrt(np.diag(covariance)))
    np.testing.assert_allclose(state.factor @ state.factor.T, covariance, atol=0.05 * np.diag(covariance).max())
    np.testing.assert_allclose(state.std, np.sqrt(np.diag(covariance)), rtol=0.05)
    evidence = stats.multivariate_normal.logpdf(y, np.zeros(60), 0.36 * np.eye(60) + 0.5 * A @ A.T)
    assert -60 * np.mean(trace["objective"][-200:]) == pytest.approx(evidence, abs=0.5)
    latent = vi.predict(state, X, np.random.default_rng(1)).means
    np.testing.assert_allclose(latent.std(axis=0), np.sqrt(np.sum(A @ covariance * A, axis=1)), rtol=0.1)


def test_a_network_has_a_higher_bound_than_with_a_factorised_gaussian():
    train = rows(80, 3, 5)
    ends = {}
    for covariance in ("diagonal", "full"):
        config = vi.Config(hidden=(8,), epochs=600, noise_variance=0.05, covariance=covariance)
        state, trace = vi.fit(train, config, np.random.default_rng(2))
        ends[covariance] = vi.end_of(trace["objective"])
        assert state.factor.ndim == (2 if covariance == "full" else 1)
    assert ends["full"] < ends["diagonal"] - 0.02


@pytest.mark.parametrize(
    "other", [{"noise": "heteroscedastic"}, {"prior": "empirical"}, {"local_reparameterization": True}]
)
def test_other_forms_are_refused(other):
    with pytest.raises(ValueError, match="covariance: full has one noise variance"):
        vi.Config(covariance="full", **other)
