"""Neural linear model: the last layer against matrices and scikit-learn, the features against those of bp."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.linear_model import BayesianRidge

from ep_bench.methods import bp, neural_linear
from ep_bench.models import mlp
from ep_bench.models.last_layer import features
from ep_bench.types import Rows
from tests.methods.support import rows

QUICK = {"hidden": [20]}  # options of the conformance tests


def problem(n, M, seed, noise=0.3):
    rng = np.random.default_rng(seed)
    Phi = np.column_stack([rng.normal(size=(n, M - 1)), np.ones(n)])
    return Phi, Phi @ rng.normal(size=M) + noise * rng.normal(size=n)


def log_evidence(Phi, y, s, g):
    covariance = s / g * Phi @ Phi.T + s * np.eye(len(y))
    return multivariate_normal(cov=covariance).logpdf(y)


@pytest.mark.parametrize(("n", "M"), [(30, 5), (4, 9)])
def test_posterior_and_evidence_by_matrices(n, M):
    Phi, y = problem(n, M, 1)
    Phi[:, 0] = 0.0  # a unit that is never active
    found = neural_linear.regression(Phi, y)
    s, g = found.noise_variance, found.ratio
    precision = Phi.T @ Phi + g * np.eye(M)
    np.testing.assert_allclose(Phi.T @ (Phi @ found.mean - y) + g * found.mean, 0.0, atol=1e-9)
    covariance = (found.directions / (found.squares + g)) @ found.directions.T
    np.testing.assert_allclose(covariance @ precision, np.eye(M), atol=1e-4)
    if n > M:  # otherwise the covariance of y is nearly singular
        assert found.log_evidence == pytest.approx(log_evidence(Phi, y, s, g), rel=1e-9)
        for a, b in [(1.02, 1.0), (0.98, 1.0), (1.0, 1.02), (1.0, 0.98)]:
            assert log_evidence(Phi, y, a * s, b * g) < found.log_evidence


def test_variances_and_posterior_are_those_of_scikit_learn():
    """BayesianRidge maximises the same evidence by fixed-point steps, here without hyperpriors."""
    Phi, y = problem(40, 6, 2)
    none = dict.fromkeys(("alpha_1", "alpha_2", "lambda_1", "lambda_2"), 0.0)
    ridge = BayesianRidge(fit_intercept=False, tol=1e-12, max_iter=5000, compute_score=True, **none).fit(Phi, y)
    found = neural_linear.regression(Phi, y)
    assert found.noise_variance == pytest.approx(1 / ridge.alpha_, rel=1e-6)
    assert found.ratio == pytest.approx(ridge.lambda_ / ridge.alpha_, rel=1e-5)
    np.testing.assert_allclose(found.mean, ridge.coef_, rtol=1e-6)
    assert found.log_evidence == pytest.approx(ridge.scores_[-1], rel=1e-9)


@pytest.mark.parametrize("hidden", [(), (7, 5)])
def test_features_are_those_of_bp_and_predictions_those_of_the_posterior(hidden):
    train = rows(40, 3, 3)
    config = neural_linear.Config(hidden=hidden, epochs=3)
    state, trace = neural_linear.fit(train, config, np.random.default_rng(0))
    theirs = bp.Config(hidden=hidden, epochs=3)
    weights, losses = bp._descend(train.X, train.y, mlp.layout(3, hidden), theirs, np.random.default_rng(0))
    np.testing.assert_array_equal(state.weights, weights)
    assert trace == losses
    answer = neural_linear.predict(state, train.X[:5], np.random.default_rng(0))
    Phi = features(train.X, state.weights, state.layers)
    covariance = np.linalg.inv(Phi.T @ Phi + state.last.ratio * np.eye(Phi.shape[1]))
    np.testing.assert_allclose(answer.mean(), Phi[:5] @ covariance @ Phi.T @ train.y, rtol=1e-7)
    spread = np.einsum("ni,ij,nj->n", Phi[:5], covariance, Phi[:5])
    np.testing.assert_allclose(answer.variance(), state.last.noise_variance * (1 + spread), rtol=1e-7)


def test_features_with_the_weights_of_the_last_layer_are_the_outputs():
    layers, rng = mlp.layout(3, (6, 4)), np.random.default_rng(4)
    w, X = rng.normal(size=mlp.count(layers)), rng.normal(size=(9, 3))
    np.testing.assert_allclose(features(X, w, layers) @ w[-5:], mlp.evaluate(X, w[None], layers)[0], rtol=1e-12)


def test_features_that_fit_the_targets_understate_the_noise():
    """Ober and Rasmussen (2019): the evidence counts the weights of the last layer only."""
    train = rows(40, 5, 5, noise=1.0)
    state, _ = neural_linear.fit(train, neural_linear.Config(epochs=300, weight_decay=0.0), np.random.default_rng(0))
    assert state.last.noise_variance < 0.1  # the targets are mostly noise: about 0.7 of their variance of 1


def test_a_single_data_point_has_the_variance_of_a_standardised_target():
    train = Rows(np.ones((1, 2)), np.zeros(1))
    state, _ = neural_linear.fit(train, neural_linear.Config(epochs=1), np.random.default_rng(0))
    assert state.last.noise_variance == 1.0
