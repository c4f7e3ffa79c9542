"""Log evidence by annealed importance sampling, against the closed form of linear models and draws from the prior."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from ep_bench.methods.hmc import Config, annealing, model_of
from ep_bench.models import residuals
from ep_bench.types import Rows

NOISE, PRIOR = 0.2, 1.5


def estimates(train, options, count, runs, seed=0):
    """Return log mean and standard error of the evidence from paths there, and of its inverse from those back."""
    model = model_of(train, Config(noise_variance=NOISE, prior_variance=PRIOR, **options))
    rng = np.random.default_rng(seed)
    path = annealing.adapted(model, count, 5, 0.8, rng)
    there, back = zip(*(annealing.log_ratios(model, path, rng) for _ in range(runs)), strict=True)
    return model, annealing.log_mean(there), annealing.log_mean(back)


def test_the_evidence_of_a_linear_model_is_exact_in_both_directions():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 3))
    y = X @ [1.0, -0.5, 0.2] + 0.3 + np.sqrt(NOISE) * rng.normal(size=30)
    design = np.column_stack([X, np.ones(30)])
    exact = multivariate_normal.logpdf(y, cov=NOISE * np.eye(30) + PRIOR * design @ design.T)
    _, (there, error), (back, error_back) = estimates(Rows(X, y), {"hidden": ()}, 300, 40)
    assert max(error, error_back) < 0.3
    assert abs(there - exact) < 4.0 * error
    assert abs(-back - exact) < 4.0 * error_back


@pytest.mark.parametrize("activation", ["relu", "probit"])
def test_the_evidence_of_a_small_network_is_that_of_draws_from_its_prior(activation):
    rng = np.random.default_rng(1)
    X = np.linspace(-1.0, 1.0, 5)[:, None]
    y = np.abs(X[:, 0]) + 0.3 * rng.normal(size=5)
    model, (there, error), (back, error_back) = estimates(
        Rows(X, y), {"hidden": (2,), "activation": activation}, 300, 40
    )
    W = np.sqrt(PRIOR) * rng.standard_normal((200_000, len(model.group)))
    f = residuals.outputs(X, W, model.rows.layers, model.rows.kind)
    logs = -0.5 * ((y - f) ** 2).sum(axis=1) / NOISE - 0.5 * len(y) * np.log(2.0 * np.pi * NOISE)
    exact = logsumexp(logs) - np.log(len(logs))
    assert max(error, error_back) < 0.3
    assert abs(there - exact) < 4.0 * error + 0.02
    assert abs(-back - exact) < 4.0 * error_back + 0.02


def test_the_log_of_a_mean_ratio():
    mean, error = annealing.log_mean(np.log([1.0, 3.0]) + 800.0)
    assert mean == pytest.approx(800.0 + np.log(2.0))
    assert error == pytest.approx(0.5)


@pytest.mark.parametrize("orthogonal", [True, False], ids=["standard deviations", "Cholesky factor"])
def test_the_bound_of_the_exact_posterior_is_the_log_evidence(orthogonal):
    """With orthogonal inputs, the posterior of a linear model is a diagonal Gaussian."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 2)), rng.normal(size=12)
    if orthogonal:
        X = np.linalg.qr(np.column_stack([np.ones(12), X]))[0][:, 1:] * np.sqrt(12.0)
    A = np.column_stack([X, np.ones(12)])
    covariance = np.linalg.inv(A.T @ A / NOISE + np.eye(3) / PRIOR)
    factor = np.sqrt(np.diag(covariance)) if orthogonal else np.linalg.cholesky(covariance)
    model = model_of(Rows(X, y), Config(hidden=(), noise_variance=NOISE, prior_variance=PRIOR))
    bound, error = annealing.bound(model, covariance @ A.T @ y / NOISE, factor, rng)
    exact = multivariate_normal.logpdf(y, cov=NOISE * np.eye(12) + PRIOR * A @ A.T)
    assert abs(bound - exact) < 4.5 * error
