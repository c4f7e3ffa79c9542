"""The shared perceptron against loops and differences."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from ep_bench.models import mlp
from tests.twins import plain_networks as plain
from tests.twins.plain_networks import check_gradient

SHAPES = [(), (1,), (5,), (7,), (8,), (9,), (50,), (4, 3), (9, 17), (17, 9), (3, 4, 5), (16, 8, 16)]


def network(d, hidden, rows, seed):
    rng = np.random.default_rng(seed)
    layers = mlp.layout(d, hidden)
    w = rng.normal(size=mlp.count(layers))
    return rng.normal(size=(rows, d)), w, layers, rng


def run(X, w, layers):
    Z, f = np.full(len(X) * mlp.units(layers), np.nan), np.empty(len(X))
    mlp.forward(X, w, layers, Z, f)
    return Z, f


def gradient_of(X, w, layers, Z, df, scale=1.0):
    g, D = np.full(len(w), np.nan), np.full((2, len(X) * mlp.widest(layers)), np.nan)
    mlp.backward(X, w, layers, Z, df.copy(), scale, g, D)
    return g


class TestLayout:
    @pytest.mark.parametrize("hidden", SHAPES)
    def test_sizes(self, hidden):
        layers = mlp.layout(6, hidden)
        sizes = (6, *hidden, 1)
        assert mlp.count(layers) == sum((a + 1) * b for a, b in pairwise(sizes))
        assert mlp.units(layers) == (sum(hidden) or 1)
        assert mlp.widest(layers) == max(hidden, default=1)

    def test_initial_weights_have_the_documented_scales_and_zero_biases(self):
        layers = mlp.layout(200, (300, 100))
        parts = plain.matrices(mlp.initial_weights(layers, np.random.default_rng(0)), (200, 300, 100, 1))
        for (W, b), gain in zip(parts, (2.0, 2.0, 1.0), strict=True):
            z = W.ravel() / np.sqrt(gain / len(W))
            assert np.all(b == 0.0)
            assert abs(z.mean()) < 4 / np.sqrt(z.size)
            assert abs((z**2).mean() - 1) < 4 * np.sqrt(2 / z.size)


class TestPasses:
    @pytest.mark.parametrize("hidden", SHAPES)
    @pytest.mark.parametrize(("rows", "d"), [(1, 3), (7, 1), (9, 4), (33, 13)])
    def test_forward_equals_the_loops(self, hidden, rows, d):
        X, w, layers, _ = network(d, hidden, rows, 1)
        Z, f = run(X, w, layers)
        np.testing.assert_allclose(f, plain.outputs(X, w, (d, *hidden, 1)), rtol=1e-12, atol=1e-12)
        assert np.isnan(Z).all() if not hidden else np.all(Z >= 0)

    def test_scratch_contains_the_layers_in_sequence(self):
        X, w, layers, _ = network(2, (3, 4), 5, 2)
        Z, _ = run(X, w, layers)
        (first, bias), (second, other), _ = plain.matrices(w, (2, 3, 4, 1))
        below = np.maximum(X @ first + bias, 0)
        np.testing.assert_allclose(Z[:15].reshape(5, 3), below)
        np.testing.assert_allclose(Z[15:].reshape(5, 4), np.maximum(below @ second + other, 0), atol=1e-15)

    @pytest.mark.parametrize("hidden", SHAPES)
    @pytest.mark.parametrize(("rows", "d"), [(1, 3), (7, 1), (9, 4), (33, 13)])
    def test_backward_along_random_directions(self, hidden, rows, d):
        X, w, layers, rng = network(d, hidden, rows, 3)
        df = rng.normal(size=rows)  # of the loss sum(df f)
        g = gradient_of(X, w, layers, run(X, w, layers)[0], df)
        check_gradient(lambda at: df @ plain.outputs(X, at, (d, *hidden, 1)), w, g, rng, step=1e-7, rel=1e-6)

    @pytest.mark.parametrize("hidden", [(5,), (4, 3), (3, 4, 5), (19,), (9, 17)])
    def test_backward_under_masks_of_dropout(self, hidden):
        rate = 0.4
        X, w, layers, rng = network(3, hidden, 6, 4)
        masks = [(rng.random((6, units)) >= rate) / (1 - rate) for units in hidden]
        parts, z, Z = plain.matrices(w, (3, *hidden, 1)), X, []
        for (W, b), mask in zip(parts[:-1], masks, strict=True):
            z = np.maximum(z @ W + b, 0) * mask
            Z.append(z.ravel())
        df = rng.normal(size=6)
        g = gradient_of(X, w, layers, np.concatenate(Z), df, 1 / (1 - rate))
        check_gradient(lambda at: df @ plain.outputs(X, at, (3, *hidden, 1), masks), w, g, rng, step=1e-7, rel=1e-6)

    def test_an_inactive_unit_has_no_gradient(self):
        X, w, layers, rng = network(3, (4, 3), 6, 6)
        parts = plain.matrices(w, (3, 4, 3, 1))
        parts[0][1][2] = -100.0  # bias of the third unit
        w = plain.flat(parts)
        g = plain.matrices(gradient_of(X, w, layers, run(X, w, layers)[0], rng.normal(size=6)), (3, 4, 3, 1))
        assert np.all(g[0][0][:, 2] == 0.0)
        assert g[0][1][2] == 0.0
        assert np.all(g[1][0][2] == 0.0)
        assert np.any(g[0][0][:, :2] != 0.0)


class TestSingleDataPoint:
    @pytest.mark.parametrize("hidden", SHAPES)
    def test_gradient_of_the_output(self, hidden):
        x, w, layers, rng = network(3, hidden, 1, 10)
        Z, f, g, D = np.empty(mlp.units(layers)), np.empty(1), np.empty_like(w), np.empty((2, mlp.widest(layers)))
        square = mlp.row_gradient(x, w, layers, Z, f, g, D)
        assert f[0] == pytest.approx(plain.outputs(x, w, (3, *hidden, 1))[0], rel=1e-12)
        assert square == pytest.approx(g @ g, rel=1e-12)
        check_gradient(lambda at: plain.outputs(x, at, (3, *hidden, 1))[0], w, g, rng, step=1e-7)

    @pytest.mark.parametrize("momentum", [0.0, 0.9])
    def test_a_step_ends_at_most_at_the_target(self, momentum):
        """In a linear model, a step and all its later momentum change the output as documented."""
        x, w, _, _ = network(3, (), 1, 11)
        g, target = np.append(x[0], 1.0), 5.0
        for rate in (1e-4, 0.05, 100.0):
            step = mlp.row_step_size(rate, momentum, float(g @ g))
            residual = w @ g - target
            remaining = (w - step / (1 - momentum) * residual * g) @ g - target
            if rate / (1 - momentum) * (g @ g) < 1:
                assert step == rate
                assert 0 < remaining / residual < 1
            else:
                assert remaining == pytest.approx(0.0, abs=1e-9)


class TestEvaluate:
    @pytest.mark.parametrize("hidden", [(), (5,), (4, 3)])
    @pytest.mark.parametrize("rows", [0, 1, 511, 512, 513, 1300])
    def test_outputs_do_not_depend_on_chunks(self, hidden, rows):
        X, _, layers, rng = network(3, hidden, rows, 7)
        W = rng.normal(size=(3, mlp.count(layers)))
        found = mlp.evaluate(X, W, layers)
        assert found.shape == (3, rows)
        for k in range(3):
            np.testing.assert_allclose(found[k], run(X, W[k], layers)[1], rtol=1e-12, atol=1e-13)

    def test_inputs_of_any_memory_layout_and_type(self):
        X, w, layers, _ = network(3, (5,), 20, 8)
        expected = mlp.evaluate(X, w[None], layers)
        wide = np.zeros((40, 6))
        wide[::2, ::2] = X
        W = np.asfortranarray(np.repeat(w[None], 2, axis=0))
        for other in (np.asfortranarray(X), wide[::2, ::2]):
            np.testing.assert_array_equal(mlp.evaluate(other, W, layers)[1], expected[0])
        whole = np.arange(6).reshape(2, 3)
        np.testing.assert_array_equal(mlp.evaluate(whole, w[None], layers), mlp.evaluate(whole * 1.0, w[None], layers))

    @pytest.mark.parametrize("shape", [(4, 2), (4, 4), (3,), (1, 4, 3)])
    def test_a_wrong_number_of_columns_raises(self, shape):
        _, w, layers, _ = network(3, (5,), 1, 9)
        with pytest.raises(ValueError, match=r"\(n, 3\), found \(" + str(shape[0])):
            mlp.evaluate(np.zeros(shape), w[None], layers)
