"""Mean-variance estimation: loss and gradient against the formula and a deep ensemble's kernel, early stopping."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from ep_bench.methods import mve
from ep_bench.models import early_stopping, mlp
from ep_bench.numerics.minibatch import hold_out
from ep_bench.predictions import Predictive
from ep_bench.types import Rows
from tests.conformance.support import findings, having, outcomes
from tests.methods.support import rows
from tests.twins import plain_networks as plain
from tests.twins.plain_networks import check_gradient

QUICK = {"hidden": [20], "epochs": 100}  # options of the conformance tests
MINIMUM = 1e-3


def losses(X, y, w, sizes):
    """Negative log-likelihoods (B,) and variances (B,)."""
    F = plain.all_outputs(X, w, sizes)
    s = np.log(1 + np.exp(F[:, 1])) + MINIMUM
    return -plain.log_normal(y, F[:, 0], s), s


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("hidden", [(), (19,), (4, 3)])
def test_loss_and_gradient(hidden, beta):
    rng, layers, sizes = np.random.default_rng(1), mlp.layout(5, hidden, outputs=2), (5, *hidden, 2)
    w, X, y = rng.normal(size=mlp.count(layers)), rng.normal(size=(9, 5)), rng.normal(size=9)
    gradient = np.full(len(w), np.nan)
    found = mve.weighted_likelihood(w, X, y, layers, beta, MINIMUM, gradient)
    plain_losses, s = losses(X, y, w, sizes)
    assert found == pytest.approx(plain_losses.mean(), rel=1e-12)
    check_gradient(lambda at: np.mean(s**beta * losses(X, y, at, sizes)[0]), w, gradient, rng, step=1e-6)


@pytest.mark.parametrize("raw", [-800.0, -40.0, 0.0, 40.0, 800.0])
def test_extreme_variances(raw):
    layers, gradient = mlp.layout(1, (), outputs=2), np.full(4, np.nan)
    found = mve.weighted_likelihood(
        np.array([0.0, 0.0, 0.5, raw]), np.ones((1, 1)), np.array([0.6]), layers, 0.5, 1e-6, gradient
    )
    assert found == pytest.approx(-plain.log_normal(0.6, 0.5, np.logaddexp(0.0, raw) + 1e-6), rel=1e-12)
    assert np.isfinite(gradient).all()


def test_one_input_with_two_values_gives_the_moments_of_both_groups():
    """The maximum-likelihood linear model has the mean and variance of the targets at each value, for every beta."""
    rng = np.random.default_rng(6)
    group = np.repeat([0, 1], [15, 25])
    y = np.where(group == 0, -1.0 + 0.3 * rng.normal(size=40), 0.6 + 0.9 * rng.normal(size=40))
    config = mve.Config(hidden=(), epochs=2500, batch_size=40, learning_rate=0.01)
    state, _ = mve.fit(Rows(group[:, None] - 0.6, y), config, np.random.default_rng(0))
    answer = mve.predict(state, np.array([[-0.6], [0.4]]), rng)
    np.testing.assert_allclose(answer.mean(), [y[group == g].mean() for g in (0, 1)], rtol=1e-5)
    np.testing.assert_allclose(answer.variance(), [y[group == g].var() for g in (0, 1)], rtol=1e-4)


def test_the_epochs_are_those_with_the_highest_likelihood_of_validation_points(monkeypatch):
    monkeypatch.setattr(early_stopping, "MINIMUM", 5)
    train = rows(60, 2, 8)
    config = mve.Config(hidden=(8,), max_epochs=200, learning_rate=0.03)
    _, trace = mve.fit(train, config, np.random.default_rng(1))
    fitted, validation = hold_out(60, 0.2, np.random.default_rng(1))
    found = []

    def recorded(epochs):
        rng = np.random.default_rng(1)
        hold_out(60, 0.2, rng)
        options = mve.Config(hidden=(8,), epochs=epochs, learning_rate=0.03)
        state, _ = mve.fit(Rows(train.X[fitted], train.y[fitted]), options, rng)
        return mve.predict(state, train.X[validation], rng).logpdf(train.y[validation]).mean()

    best = len(trace["objective"])
    found = [recorded(epochs) for epochs in range(1, max(2 * best, 5) + 1)]
    assert np.argmax(found) + 1 == best < 200


def test_a_single_data_point_is_fitted():
    train = Rows(np.ones((1, 2)), np.zeros(1))
    _, trace = mve.fit(train, mve.Config(hidden=(4,)), np.random.default_rng(0))
    assert len(trace["objective"]) == early_stopping.SINGLE


@pytest.mark.parametrize("option", ["validation_fraction", "max_epochs"])
def test_options_of_early_stopping_exclude_a_number_of_epochs(option):
    with pytest.raises(ValueError, match=f"{option} has no effect if epochs is set"):
        mve.Config(epochs=3, **{option: 0.5 if option == "validation_fraction" else 7})


def mixture_terms(X, y, w, sizes, K):
    """Log densities (B, K) of the components, their log weights (B, K) and variances (B, K), by the definitions."""
    F = plain.all_outputs(X, w, sizes)
    s = np.log(1 + np.exp(F[:, K : 2 * K])) + MINIMUM
    densities = np.column_stack([plain.log_normal(y, F[:, k], s[:, k]) for k in range(K)])
    return densities, np.log(softmax(F[:, 2 * K :], axis=1)), s


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("hidden", "K"), [((), 2), ((7,), 3), ((4, 3), 5)])
def test_loss_and_gradient_of_mixtures(hidden, K, beta):
    rng, layers, sizes = np.random.default_rng(2), mlp.layout(4, hidden, outputs=3 * K), (4, *hidden, 3 * K)
    w, X, y = rng.normal(size=mlp.count(layers)), rng.normal(size=(9, 4)), rng.normal(size=9)
    gradient = np.full(len(w), np.nan)
    found = mve.mixture_likelihood(w, X, y, layers, beta, MINIMUM, gradient)
    densities, log_weights, s = mixture_terms(X, y, w, sizes, K)
    assert found == pytest.approx(-logsumexp(densities + log_weights, axis=1).mean(), rel=1e-12)
    r = softmax(densities + log_weights, axis=1)

    def weighted(at):  # responsibilities and factors are not differentiated
        densities, log_weights, _ = mixture_terms(X, y, at, sizes, K)
        return -np.mean((r * (s**beta * densities + log_weights)).sum(axis=1))

    check_gradient(weighted, w, gradient, rng, step=1e-6)
    if beta == 0.0:
        terms = lambda at: np.add(*mixture_terms(X, y, at, sizes, K)[:2])  # noqa: E731
        check_gradient(lambda at: -logsumexp(terms(at), axis=1).mean(), w, gradient, rng, step=1e-6)


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_a_mixture_of_one_component_is_the_network_of_mean_and_variance(beta):
    rng, two, three = np.random.default_rng(3), mlp.layout(5, (8,), outputs=2), mlp.layout(5, (8,), outputs=3)
    w, X, y = rng.normal(size=mlp.count(two)), rng.normal(size=(9, 5)), rng.normal(size=9)
    first = int(two[-1, 0])
    padded = np.concatenate([w[:first], np.column_stack([w[first:].reshape(-1, 2), rng.normal(size=9)]).ravel()])
    gradient, longer = np.full(len(w), np.nan), np.full(len(padded), np.nan)
    loss = mve.weighted_likelihood(w, X, y, two, beta, MINIMUM, gradient)
    assert mve.mixture_likelihood(padded, X, y, three, beta, MINIMUM, longer) == pytest.approx(loss, rel=1e-13)
    last = longer[first:].reshape(-1, 3)
    np.testing.assert_allclose(np.concatenate([longer[:first], last[:, :2].ravel()]), gradient, rtol=1e-11, atol=1e-15)
    assert np.abs(last[:, 2]).max() < 1e-15  # the only logit has no effect


def test_predictions_of_a_mixture_are_those_of_its_outputs():
    rng, K = np.random.default_rng(4), 3
    layers = mlp.layout(2, (6,), outputs=3 * K)
    w, X, y = 3.0 * rng.normal(size=mlp.count(layers)), rng.normal(size=(700, 2)), rng.normal(size=700)
    answer = mve.predict(mve.State(layers, w, MINIMUM, K), X, rng)
    densities, log_weights, _ = mixture_terms(X, y, w, (2, 6, 3 * K), K)
    np.testing.assert_allclose(answer.logpdf(y), logsumexp(densities + log_weights, axis=1), rtol=1e-10)


def test_two_components_find_a_bimodal_density():
    """Targets are 1 or -1 with noise of 0.1, the upper one with probability (1 + x) / 2."""
    rng = np.random.default_rng(5)
    x, test = rng.uniform(-1.0, 1.0, 600), np.array([-0.7, 0.0, 0.7])

    def targets(x):
        return np.where(rng.random(len(x)) < 0.5 * (1.0 + x), 1.0, -1.0) + 0.1 * rng.normal(size=len(x))

    train = Rows(x[:, None], targets(x))
    unseen = rng.uniform(-1.0, 1.0, 2000)
    y = targets(unseen)
    truth = Predictive(
        [0.5 * (1.0 - unseen), 0.5 * (1.0 + unseen)], np.repeat([[-1.0], [1.0]], 2000, axis=1), np.full((2, 2000), 0.01)
    )
    found = {}
    for K in (1, 2):
        config = mve.Config(hidden=(20,), epochs=60, beta=0.0, components=K)
        state, _ = mve.fit(train, config, np.random.default_rng(0))
        found[K] = mve.predict(state, unseen[:, None], rng).logpdf(y).mean()
    optimum = truth.logpdf(y).mean()
    assert optimum - 0.05 < found[2] < optimum + 0.01
    assert found[1] < optimum - 0.5
    answer = mve.predict(state, test[:, None], rng)
    upper = np.where(answer.means > 0.0, answer.weights, 0.0).sum(axis=0)
    np.testing.assert_allclose(upper, 0.5 * (1.0 + test), atol=0.07)


def test_mixtures_conform():
    found = outcomes("mve", **QUICK, components=3)
    assert having(found, "ok") == found.keys(), findings(found)
