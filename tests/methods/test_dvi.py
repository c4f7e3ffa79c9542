"""Deterministic variational inference against draws of networks, differences and the bound by draws."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.methods import dvi
from ep_bench.methods.dvi import moments
from ep_bench.models import mlp, two_outputs, variational_bound
from ep_bench.numerics.normal_rng import stream
from tests.methods.support import rows


def case(hidden, outputs, seed=0, n=11, d=3, spread=0.3):
    """Layers, parameters (2 P + 1,) and data."""
    layers, rng = mlp.layout(d, hidden, outputs), np.random.default_rng(seed)
    size = mlp.count(layers)
    theta = np.concatenate([0.5 * rng.normal(size=size), np.log(rng.uniform(0.1, spread, size)), [-0.4]])
    return layers, theta, rows(n, d, seed + 1)


def moments_at(layers, theta, X):
    work = moments.workspace(layers, len(X))
    moments.fill_weights(theta, work)
    moments.forward(theta, X, layers, work)
    return work


def objective(layers, theta, train, prior):
    work, gradient = moments.workspace(layers, len(train.y) + 5), np.empty_like(theta)
    moments.fill_weights(theta, work)
    return moments.bound(theta, train.X, train.y, layers, 40, prior, work, gradient), gradient


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("hidden", [(), (9,), (5, 4)])
def test_gradient(hidden, outputs):
    layers, theta, train = case(hidden, outputs)
    prior, rng = np.linspace(0.2, 2.0, mlp.count(layers)), np.random.default_rng(3)
    _, gradient = objective(layers, theta, train, prior)
    for _ in range(4):
        direction = rng.normal(size=theta.size)
        ends = [objective(layers, theta + step * direction, train, prior)[0] for step in (1e-5, -1e-5)]
        assert gradient @ direction == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6, abs=1e-6)


def test_moments_of_both_outputs_by_draws():
    layers, theta, train = case((6,), 2, spread=0.6)
    size, rng = mlp.count(layers), np.random.default_rng(4)
    draws = theta[:size] + np.exp(theta[size:-1]) * rng.standard_normal((60_000, size))
    F, work = two_outputs.evaluate(train.X, draws, layers), moments_at(layers, theta, train.X)
    error = F.std(axis=0) / np.sqrt(len(F))
    assert (np.abs(F.mean(axis=0) - work.f) < 5 * error).all()
    np.testing.assert_allclose(F.var(axis=0), work.f_var, rtol=0.06)
    centred = F - F.mean(axis=0)
    np.testing.assert_allclose((centred[..., 0] * centred[..., 1]).mean(axis=0), work.c, atol=0.03)


def test_the_homoscedastic_bound_is_the_mean_of_the_bound_by_draws():
    layers, theta, train = case((6,), 1)
    size, rng = mlp.count(layers), np.random.default_rng(5)
    prior, work = np.ones(size), variational_bound.workspace(500, 11, size, 6, 6)
    values, words = [], stream(rng)
    for _ in range(60):
        variational_bound.draw(theta, words, work)
        values.append(variational_bound.bound(theta, train.X, train.y, layers, 40, prior, work, np.empty_like(theta)))
    exact, _ = objective(layers, theta, train, prior)
    assert abs(np.mean(values) - exact) < 4 * np.std(values) / np.sqrt(len(values))


def test_the_expected_likelihood_with_learned_noise_by_draws():
    layers, theta, train = case((6,), 2)
    size, rng = mlp.count(layers), np.random.default_rng(6)
    value, _ = objective(layers, theta, train, np.ones(size))
    work = moments_at(layers, theta, train.X)
    expected = 0.0
    for b in range(len(train.y)):
        cov = [[work.f_var[b, 0], work.c[b]], [work.c[b], work.f_var[b, 1]]]
        f, log = rng.multivariate_normal(work.f[b], cov, size=200_000).T
        expected += np.mean(0.5 * (np.log(2 * np.pi) + log + (train.y[b] - f) ** 2 * np.exp(-log)))
    zero = moments.divergence(theta[:size], np.exp(theta[size:-1]), np.ones(size))
    assert value - zero == pytest.approx(expected * 40 / len(train.y), rel=0.01)


@pytest.mark.parametrize("noise", ["heteroscedastic", "homoscedastic"])
def test_fit_and_prediction(noise):
    train, test = rows(200, 2, 7), rows(200, 2, 8)
    state, trace = dvi.fit(train, dvi.Config(hidden=(12,), epochs=150, noise=noise), np.random.default_rng(0))
    answer, (f, f_var) = dvi.predict(state, test.X, None), dvi.latent(state, test.X)
    assert np.sqrt(np.mean((answer.mean() - test.y) ** 2)) < 0.6
    np.testing.assert_allclose(answer.mean(), f, atol=1e-10)
    assert (answer.variance() > f_var).all()
    assert trace["objective"][-1] < trace["objective"][0] - 0.3
    if noise == "heteroscedastic":
        work = moments_at(state.layers, np.concatenate([state.mean, np.log(state.std), [0.0]]), test.X)
        expected = f_var + np.exp(work.f[:, 1] + 0.5 * work.f_var[:, 1])
        np.testing.assert_allclose(answer.variance(), expected, rtol=1e-6)
