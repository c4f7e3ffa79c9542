"""Variational last layer: values of the authors' program, differences, and the exact posterior of linear models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from ep_bench.methods import vbll
from ep_bench.models import mlp
from ep_bench.types import Rows
from tests.methods.support import rows
from tests.twins import plain_networks as plain
from tests.twins.plain_networks import check_gradient

QUICK = {"hidden": [20], "epochs": 40}  # options of the conformance tests
VALUES = json.loads((Path(__file__).parents[1] / "reference_values" / "vbll.json").read_text(encoding="utf-8"))


def bound(theta, X, y, layers, n, config):
    gradient = np.full(len(theta), np.nan)
    return vbll.negative_bound(theta, X, y, layers, n, config, gradient), gradient


def test_reference_values():
    X, y, theta = (np.array(VALUES[name]) for name in ("X", "y", "theta"))
    layers, config = mlp.layout(2, (3,)), vbll.Config(weight_decay=0.0)
    value, gradient = bound(theta, X, y, layers, VALUES["n"], config)
    assert value == pytest.approx(VALUES["train_loss"] - 4 / 2 / VALUES["n"], rel=1e-12)  # the program omits M / 2
    np.testing.assert_allclose(gradient, VALUES["gradient"], rtol=1e-10, atol=1e-12)
    answer = vbll.predict(vbll.State(layers, theta), X, np.random.default_rng(0))
    np.testing.assert_allclose(answer.mean(), VALUES["predictive_mean"], rtol=1e-12)
    np.testing.assert_allclose(answer.variance(), VALUES["predictive_variance"], rtol=1e-12)
    assert -answer.logpdf(y).mean() == pytest.approx(VALUES["validation_loss"], rel=1e-12)


def slow_bound(theta, X, y, sizes, n, config):
    """The negative bound in matrices, as printed."""
    M, width = sizes[-1] + 1, sizes[-1]
    first = len(theta) - 1 - M - M * M
    hidden, m, s = theta[:first], theta[first : first + M], np.exp(2 * theta[-1])
    L = theta[first + M : -1].reshape(M, M).copy()
    L[np.diag_indices(M)] = np.exp(np.diag(L))
    phi = np.ones((len(y), M))
    if first:
        last = np.append(np.eye(width).ravel(), np.zeros(width))  # outputs are the last hidden units
        phi[:, :-1] = plain.all_outputs(X, np.append(hidden, last), (*sizes, width))
    else:
        phi[:, :-1] = X
    S, v0 = L @ L.T, config.prior_scale / M
    divergence = 0.5 * (np.trace(S) / v0 + m @ m / v0 - M + M * np.log(v0) - np.linalg.slogdet(S)[1])
    log_priors = -(config.dof + 2) / 2 * np.log(s) - config.wishart_scale / (2 * s)
    log_priors -= config.weight_decay / 2 * hidden @ hidden
    fitted = plain.log_normal(y, phi @ m, s) - np.einsum("bi,ij,bj->b", phi, S, phi) / (2 * s)
    return -fitted.mean() + (divergence - log_priors) / n


@pytest.mark.parametrize("hidden", [(), (5,), (4, 3)])
def test_bound_and_gradient(hidden):
    rng, config = np.random.default_rng(1), vbll.Config(weight_decay=3.0, prior_scale=2.0, wishart_scale=0.5, dof=2.0)
    layers, sizes = mlp.layout(3, hidden), (3, *hidden)
    theta = vbll.start(layers, rng)
    theta += 0.3 * rng.normal(size=len(theta))
    last = vbll.split(theta, layers)
    last.factor[:] = np.tril(last.factor)
    X, y = rng.normal(size=(9, 3)), rng.normal(size=9)
    value, gradient = bound(theta, X, y, layers, 40, config)
    assert value == pytest.approx(slow_bound(theta, X, y, sizes, 40, config), rel=1e-12)
    np.testing.assert_array_equal(np.triu(vbll.split(gradient, layers).factor, 1), 0.0)

    def changed(at):
        vbll.split(at, layers).factor[:] = np.tril(vbll.split(at, layers).factor)
        return slow_bound(at, X, y, sizes, 40, config)

    check_gradient(changed, theta, gradient, rng)


def test_the_optimum_of_a_linear_model_is_its_posterior_and_the_bound_its_evidence():
    train, config = rows(30, 2, 2), vbll.Config(hidden=(), prior_scale=3.0, wishart_scale=1e-9, dof=1e-9)
    layers, rng = mlp.layout(2, ()), np.random.default_rng(0)
    first = vbll.start(layers, rng)
    first[-1] = np.log(0.7)

    def at_fixed_noise(free):
        value, gradient = bound(np.append(free, first[-1]), train.X, train.y, layers, 30, config)
        return value, gradient[:-1]

    found = minimize(at_fixed_noise, first[:-1], jac=True, method="BFGS", options={"gtol": 1e-9})
    last = vbll.split(np.append(found.x, 0.0), layers)
    Phi, s, v0 = np.column_stack([train.X, np.ones(30)]), 0.49, 1.0
    S = np.linalg.inv(Phi.T @ Phi / s + np.eye(3) / v0)
    np.testing.assert_allclose(last.mean, S @ Phi.T @ train.y / s, atol=1e-6)
    L = vbll.triangle(last.factor)
    np.testing.assert_allclose(L @ L.T, S, atol=1e-7)
    covariance = s * np.eye(30) + v0 * Phi @ Phi.T
    log_evidence = -0.5 * (
        train.y @ np.linalg.solve(covariance, train.y) + np.linalg.slogdet(2 * np.pi * covariance)[1]
    )
    assert -30 * found.fun == pytest.approx(log_evidence - np.log(s), rel=1e-7)  # the prior of the noise is 1 / s


def test_steps_are_those_of_adam():
    train, config = rows(20, 3, 4), vbll.Config(hidden=(4,), epochs=2, batch_size=8)
    state, trace = vbll.fit(train, config, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    layers = mlp.layout(3, (4,))
    first, gradients = vbll.start(layers, rng), []
    losses = []
    for _ in range(2):
        order = rng.permutation(20)
        for batch in (order[:8], order[8:16]):
            theta = plain.adam(first, gradients, config.learning_rate)
            value, gradient = bound(theta, train.X[batch], train.y[batch], layers, 20, config)
            gradients.append(gradient)
            losses.append(value)
    np.testing.assert_allclose(state.theta, plain.adam(first, gradients, config.learning_rate), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(trace["objective"], [np.mean(losses[:2]), np.mean(losses[2:])], rtol=1e-9)


def test_a_constant_target_has_a_positive_variance():
    train = Rows(rows(20, 2, 6).X, np.zeros(20))
    state, _ = vbll.fit(train, vbll.Config(hidden=(4,), epochs=50), np.random.default_rng(0))
    assert vbll.predict(state, train.X, np.random.default_rng(0)).variance().min() > 0.0
