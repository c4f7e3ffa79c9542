"""Known variances of noise and weights: with them, all methods approximate the posterior of one model."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.methods import ep_nn, laplace, pbp, vi_graves
from tests.methods.support import rows

KNOWN = {"noise_variance": 0.07, "prior_variance": 0.3}


def test_pbp_keeps_them() -> None:
    state, trace = pbp.fit(rows(40, 3), pbp.Config(hidden=(5, 4), epochs=7, **KNOWN), np.random.default_rng(0))
    assert state.noise_variance == pytest.approx(0.07, rel=1e-7)
    assert trace["prior_variance"] == pytest.approx([0.3] * 7, rel=1e-9)
    for fan_in, precision in zip((4, 6, 5), state.factor_precisions, strict=True):
        np.testing.assert_allclose(precision, 1.0 / (0.3 * fan_in), rtol=1e-12)


def test_pbp_without_information_predicts_the_prior() -> None:
    """With two inputs of 0, a hidden unit has max(b, 0) of the bias b ~ N(0, v), with second moment v / 2."""
    config = pbp.Config(hidden=(4,), epochs=1, noise_variance=1e9, prior_variance=0.3)
    start = [np.zeros((4, 3)), np.zeros((1, 5))]
    state, _ = pbp.fit(rows(5, 2), config, np.random.default_rng(0), start)
    found = pbp.predict(state, np.zeros((1, 2)), np.random.default_rng(0)).variance() - state.noise_variance
    assert found[0] == pytest.approx(0.3 * (4 * 0.5 * 0.3 + 1.0), abs=1e-5)


def test_graves_keeps_them() -> None:
    config = vi_graves.Config(hidden=(5,), epochs=3, **KNOWN)
    state, _ = vi_graves.fit(rows(30, 2), config, np.random.default_rng(0))
    assert state.noise_variance == pytest.approx(0.07, rel=1e-12)
    weak = vi_graves.Config(hidden=(5,), epochs=200, noise_variance=4.0, prior_variance=0.01)
    state, _ = vi_graves.fit(rows(30, 2), weak, np.random.default_rng(0))
    np.testing.assert_allclose(state.std, 0.1, rtol=0.02)  # the prior, without information


def test_an_ep_network_without_information_predicts_the_prior() -> None:
    """With Gaussian output weights, E[(2 Phi(h) - 1)^2] = 2 / pi arcsin(s / (1 + s)) for h ~ N(0, s)."""
    v = 0.3
    config = ep_nn.Config(
        hidden=(3,), prior="gaussian", weight_variance=v, bias_variance=v, output_freedom=1e6, output_scale=v**0.5,
        output_bias_variance=v, noise_variance=1e8, sweeps=60,
    )  # fmt: skip
    train = rows(6, 2)
    state, _ = ep_nn.fit(train, config, np.random.default_rng(0))
    s = v * (1.0 + np.sum(train.X**2, axis=1))
    expected = v * 2.0 / np.pi * np.arcsin(s / (1.0 + s)) + v
    found = ep_nn.predict(state, train.X, np.random.default_rng(0)).variance() - 1e8
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_laplace_of_probit_units_linearises_the_same_network() -> None:
    train = rows(30, 2)
    config = laplace.Config(hidden=(3,), activation="probit", starts=0, **KNOWN)
    state, _ = laplace.fit(train, config, np.random.default_rng(0))
    moved = state._replace(weights=state.weights + 1e-6 * np.random.default_rng(1).normal(size=len(state.weights)))
    before, after = (laplace.predict(one, train.X, np.random.default_rng(0)).mean() for one in (state, moved))
    from ep_bench.methods.laplace.network import factors

    slope = factors(train.X, state.weights, state.layers, state.kind)[1].jacobian()
    np.testing.assert_allclose(after - before, slope @ (moved.weights - state.weights), rtol=1e-4, atol=1e-11)
