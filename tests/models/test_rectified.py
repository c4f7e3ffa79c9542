"""One rectified hidden layer in one pass, compared with the two passes of the perceptron."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.models import mlp, rectified, residuals
from ep_bench.numerics.simd import tile

needs_registers = pytest.mark.skipif(not tile.wide_registers(), reason="this processor has no registers of 8 doubles")


def problem(rows, d, n, seed=0):
    rng = np.random.default_rng(seed)
    layers = mlp.layout(d, (n,))
    return rng.normal(size=(rows, d)), rng.normal(size=rows), rng.normal(size=mlp.count(layers)), layers


def two_passes(X, y, w, layers):
    Z, f, g = np.empty(len(X) * mlp.units(layers)), np.empty(len(X)), np.empty_like(w)
    mlp.forward(X, w, layers, Z, f)
    mlp.backward(X, w, layers, Z, f - y, 1.0, g, np.empty((2, len(X) * mlp.widest(layers))))
    return 0.5 * np.sum((f - y) ** 2), g


def one_pass(X, y, w, layers):
    g = np.full(len(w), np.nan)
    return rectified.half_squares(X, y, w, rectified.workspace(layers), g), g


@needs_registers
class TestOnePass:
    @pytest.mark.parametrize(("rows", "d", "n"), [(8, 1, 5), (9, 4, 5), (100, 13, 50), (101, 1, 50), (3, 2, 50)])
    def test_it_equals_two_passes(self, rows, d, n):
        case = problem(rows, d, n)
        value, gradient = one_pass(*case)
        expected, expected_gradient = two_passes(*case)
        assert value == pytest.approx(expected, rel=1e-13)
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-11, atol=1e-12 * abs(gradient).max())

    def test_scratch_can_be_reused(self):
        (X, y, w, layers), other = problem(30, 3, 50), problem(30, 3, 50, seed=1)
        work, g = rectified.workspace(layers), np.empty(len(w))
        rectified.half_squares(*other[:3], work, g)
        value = rectified.half_squares(X, y, w, work, g)
        assert (value, g.tolist()) == (one_pass(X, y, w, layers)[0], one_pass(X, y, w, layers)[1].tolist())

    def test_nan_in_an_input_reaches_the_result(self):
        X, y, w, layers = problem(20, 3, 50)
        X[11, 1] = np.nan
        assert np.isnan(one_pass(X, y, w, layers)[0])

    @pytest.mark.parametrize("hidden", [(113,), (20, 20), ()])
    def test_unsupported_networks_have_no_workspace(self, hidden):
        assert rectified.workspace(mlp.layout(4, hidden)) is None


class TestSinglePrecision:
    @pytest.mark.parametrize(("rows", "d", "n"), [(8, 1, 5), (9, 4, 5), (100, 13, 50), (101, 1, 50), (3, 2, 50)])
    def test_it_equals_double_precision_up_to_rounding(self, rows, d, n):
        X, y, w, layers = problem(rows, d, n)
        g = np.full(len(w), np.nan)
        value = rectified.single_half_squares(w, rectified.single_precision(X, y, layers), g)
        expected, gradient = two_passes(X, y, w, layers)
        assert value == pytest.approx(expected, rel=1e-5)
        np.testing.assert_allclose(g, gradient, rtol=0, atol=3e-6 * abs(gradient).max())

    def test_the_same_weights_give_the_same_bits(self):
        X, y, w, layers = problem(30, 3, 50)
        single, (first, between, again) = rectified.single_precision(X, y, layers), np.empty((3, len(w)))
        for at, g in ((w, first), (2.0 * w, between), (w, again)):
            rectified.single_half_squares(at, single, g)
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, between)

    @pytest.mark.parametrize("bad", [np.nan, np.inf, 1e60])
    def test_weights_beyond_single_precision_give_no_finite_value(self, bad):
        X, y, w, layers = problem(20, 3, 50)
        w[-1] = bad
        assert not np.isfinite(
            rectified.single_half_squares(w, rectified.single_precision(X, y, layers), np.empty(len(w)))
        )

    @pytest.mark.parametrize(("rows", "hidden"), [(2, (50,)), (20, (113,)), (20, (20, 20)), (20, ())])
    def test_other_networks_and_few_data_points_have_none(self, rows, hidden):
        assert rectified.single_precision(np.zeros((rows, 4)), np.zeros(rows), mlp.layout(4, hidden)) is None


@pytest.mark.parametrize(("rows", "hidden"), [(2, (50,)), (300, (50,)), (300, (113,)), (300, (20, 20))])
def test_residuals_with_either_kernel(rows, hidden):
    X, y, _, _ = problem(rows, 4, 50)
    layers = mlp.layout(4, hidden)
    w = np.random.default_rng(2).normal(size=mlp.count(layers))
    g = np.full(len(w), np.nan)
    work = residuals.workspace(layers, residuals.RELU, rows)
    value = residuals.half_squares(X, y, w, layers, residuals.RELU, work, g)
    expected, gradient = two_passes(X, y, w, layers)
    assert value == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(g, gradient, rtol=1e-11, atol=1e-12 * abs(gradient).max())


@pytest.mark.skipif(not tile.wide_registers(), reason="the pass is for wider registers")
def test_fewer_rows_than_the_scratch_is_for_give_no_number():
    X, y, _, _ = problem(300, 4, 50)
    layers = mlp.layout(4, (50,))
    w, work = np.ones(mlp.count(layers)), residuals.workspace(layers, residuals.RELU, 300)
    assert np.isnan(residuals.half_squares(X[:2], y[:2], w, layers, residuals.RELU, work, np.empty(len(w))))
