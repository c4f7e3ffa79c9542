"""Descent with momentum in blocks of units against the kernels of ``models.mlp``, and its padding."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.models import mlp, momentum
from ep_bench.numerics.simd.vector import WIDTH

SHAPES = [(), (1,), (7,), (WIDTH,), (WIDTH + 1, 2), (3, 2 * WIDTH, 5), (WIDTH, WIDTH, WIDTH, 1)]


def start(d, hidden):
    layers = mlp.layout(d, hidden)
    w = np.random.default_rng(1).normal(size=mlp.count(layers))
    return layers, w, momentum.start(layers, w)


@pytest.mark.parametrize("d", [1, 3, WIDTH, WIDTH - 1])
@pytest.mark.parametrize("hidden", SHAPES)
class TestNetwork:
    def test_weights_return_in_their_order(self, hidden, d):
        _, w, net = start(d, hidden)
        np.testing.assert_array_equal(momentum.weights(net, 0.9), w)
        assert len(np.unique(net.places)) == len(w)

    def test_one_step_is_that_of_the_gradient(self, hidden, d):
        layers, w, net = start(d, hidden)
        rng = np.random.default_rng(2)
        X, y = rng.normal(size=(3, d)), rng.normal(size=3)
        Z, D = np.empty(mlp.units(layers)), np.empty((2, mlp.widest(layers)))
        velocity, loss = np.zeros_like(w), 0.0
        for x, target in zip(X, y, strict=True):
            f, g = np.empty(1), np.empty_like(w)
            square = mlp.row_gradient(x[None], w, layers, Z, f, g, D)
            step, residual = mlp.row_step_size(0.05, 0.8, square), f[0] - target
            velocity = 0.8 * velocity - step * residual * g - 0.05 * 0.3 * w
            w, loss = w + velocity, loss + 0.5 * residual**2 / 3
        found = momentum.run_epoch(X, y, np.arange(3), net, 0.05, 0.8, 0.3)
        assert found == pytest.approx(loss, rel=1e-12)
        np.testing.assert_allclose(momentum.weights(net, 0.8), w, rtol=1e-11, atol=1e-13)

    def test_padding_stays_zero(self, hidden, d):
        _, _, net = start(d, hidden)
        rng = np.random.default_rng(3)
        momentum.run_epoch(rng.normal(size=(20, d)), rng.normal(size=20), np.arange(20), net, 0.05, 0.9, 1.0)
        momentum.weights(net, 0.9)
        padding = np.setdiff1d(np.arange(len(net.w)), net.places)
        assert not net.w[padding].any()
        assert not net.v[padding].any()


def test_the_pending_step_is_taken_once():
    _, _, net = start(3, (5,))
    momentum.run_epoch(np.ones((1, 3)), np.ones(1), np.arange(1), net, 0.05, 0.9, 1.0)
    before = net.w[net.places]
    first, second = momentum.weights(net, 0.9), momentum.weights(net, 0.9)
    assert not np.array_equal(before, first)
    np.testing.assert_array_equal(first, second)


def test_a_weight_that_is_not_a_number_reaches_the_loss():
    layers = mlp.layout(2, (4, 3))
    w = np.full(mlp.count(layers), np.nan)
    assert np.isnan(momentum.run_epoch(np.ones((2, 2)), np.ones(2), np.arange(2), momentum.start(layers, w), 0.1, 0, 0))
