"""The perceptron with smooth hidden units against loops and differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import erf
from scipy.stats import norm

from ep_bench.models import mlp, smooth
from tests.models.test_mlp import SHAPES, network
from tests.twins import plain_networks as plain
from tests.twins.plain_networks import check_gradient

KINDS = {"tanh": smooth.TANH, "probit": smooth.PROBIT}
both = pytest.mark.parametrize("activation", KINDS)


def run(X, w, layers, activation):
    Z, S = (np.full(len(X) * mlp.units(layers), np.nan) for _ in range(2))
    f = np.empty(len(X))
    smooth.forward(X, w, layers, KINDS[activation], Z, S, f)
    return Z, S, f


def gradient_of(X, w, layers, activation, df):
    Z, S, _ = run(X, w, layers, activation)
    g, D = np.full(len(w), np.nan), np.full((2, len(X) * mlp.widest(layers)), np.nan)
    smooth.backward(X, w, layers, Z, S, df.copy(), g, D)
    return g


def units(a, activation):
    """Outputs and slopes of a layer of units with inputs ``a`` (n,), for one data point."""
    a = np.asarray(a, dtype=np.float64)
    layers = mlp.layout(1, (len(a),))
    w = np.concatenate([np.zeros(len(a)), a, np.ones(len(a)), [0.0]])
    Z, S, _ = run(np.zeros((1, 1)), w, layers, activation)
    return Z, S


@both
class TestUnits:
    @pytest.mark.parametrize("n", [1, 3, 8, 20, 401])
    def test_outputs_and_slopes(self, activation, n):
        a = np.linspace(-9.0, 9.0, n) if n > 1 else np.array([0.7])
        Z, S = units(a, activation)
        scale = 1.0 if activation == "tanh" else 1.0 / np.sqrt(n)
        expected = np.tanh(a) if activation == "tanh" else erf(a / np.sqrt(2))
        slope = 1.0 / np.cosh(a) ** 2 if activation == "tanh" else 2 * norm.pdf(a)
        np.testing.assert_allclose(Z, scale * expected, rtol=0, atol=1e-15)
        np.testing.assert_allclose(S, scale * slope, rtol=1e-12, atol=1e-15)

    def test_units_saturate_for_large_inputs(self, activation):
        far = np.array([40.0, 200.0, 1e4, 1e300])
        Z, S = units(np.concatenate([far, -far]), activation)
        scale = 1.0 if activation == "tanh" else 1.0 / np.sqrt(8)
        np.testing.assert_array_equal(Z, scale * np.repeat([1.0, -1.0], 4))
        assert np.all(S >= 0.0)
        assert np.all(S <= 1e-30)


@both
class TestPasses:
    @pytest.mark.parametrize("hidden", SHAPES)
    @pytest.mark.parametrize(("rows", "d"), [(1, 3), (7, 1), (9, 4), (33, 13)])
    def test_forward_equals_the_loops(self, activation, hidden, rows, d):
        X, w, layers, _ = network(d, hidden, rows, 1)
        Z, S, f = run(X, w, layers, activation)
        expected = plain.outputs(X, w, (d, *hidden, 1), activation=activation)
        np.testing.assert_allclose(f, expected, rtol=1e-12, atol=1e-12)
        if hidden:
            assert np.all(np.abs(Z) <= 1.0)
            assert np.all(S >= 0.0)
        else:
            assert np.isnan(Z).all()

    @pytest.mark.parametrize("hidden", SHAPES)
    @pytest.mark.parametrize(("rows", "d"), [(1, 3), (7, 1), (9, 4), (33, 13)])
    def test_backward_along_random_directions(self, activation, hidden, rows, d):
        X, w, layers, rng = network(d, hidden, rows, 3)
        df = rng.normal(size=rows)  # of the loss sum(df f)
        g = gradient_of(X, w, layers, activation, df)
        sizes = (d, *hidden, 1)
        check_gradient(lambda at: df @ plain.outputs(X, at, sizes, activation=activation), w, g, rng, step=1e-4)

    @pytest.mark.parametrize("hidden", [(5,), (9, 17)])
    def test_saturated_units_have_no_gradient_and_do_not_overflow(self, activation, hidden):
        X, w, layers, rng = network(3, hidden, 6, 6)
        end = 3 * hidden[0]
        w[end : end + hidden[0]] = 40.0 * np.where(np.arange(hidden[0]) % 2, 1.0, -1.0)
        w[:end] = 0.0
        g = gradient_of(X, w, layers, activation, rng.normal(size=6))
        assert np.isfinite(g).all()
        assert np.all(np.abs(g[: end + hidden[0]]) < 1e-30)
        assert np.any(g[end + hidden[0] :] != 0.0)
