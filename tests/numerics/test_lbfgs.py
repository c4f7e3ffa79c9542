"""Searches for a minimum: known minima, bounds, holes, starts without a value."""

from __future__ import annotations

from unittest.mock import Mock

import numpy as np
import pytest
from scipy.optimize import OptimizeResult, rosen, rosen_der

from ep_bench.numerics.lbfgs import minimise

LOW, HIGH = np.full(3, -5.0), np.full(3, 5.0)


def banana(x):
    return rosen(x), rosen_der(x)


def wells(x):
    """A function with two wells per input; the one below 0 is deeper."""
    return float(((x**2 - 1) ** 2 + 0.3 * x).sum()), 4 * x * (x**2 - 1) + 0.3


def test_a_known_minimum():
    found = minimise(banana, [np.full(3, -1.2)], LOW, HIGH, 500)
    assert found.converged
    np.testing.assert_allclose(found.point, 1.0, atol=1e-3)
    assert found.value < 1e-7
    values = [value for _, value in found.path]
    assert len(values) == found.iterations
    assert values == sorted(values, reverse=True)
    np.testing.assert_array_equal(found.path[-1][0], found.point)


def test_the_best_of_several_starts():
    starts = [np.full(3, 1.0), np.array([-1.0, 1.0, 1.0]), np.full(3, -1.0), np.array([-1.0, 1.0, -1.0])]
    found = minimise(wells, starts, LOW, HIGH, 100)
    assert np.all(found.point < 0)
    assert found.value == min(minimise(wells, [start], LOW, HIGH, 100).value for start in starts)


def test_bounds_are_respected():
    found = minimise(lambda x: (float(x.sum()), np.ones(3)), [np.zeros(3)], LOW, HIGH, 100)
    np.testing.assert_array_equal(found.point, LOW)
    assert found.converged
    outside = minimise(banana, [np.full(3, 100.0)], np.full(3, 2.0), HIGH, 100)
    assert np.all(outside.point >= 2.0)


def test_the_limit_of_steps_is_no_convergence():
    found = minimise(banana, [np.full(3, -1.2)], LOW, HIGH, 3)
    assert not found.converged
    assert found.iterations == 3


class TestHoles:
    @pytest.mark.parametrize("edge", [1.05, 1.3, 2.0])
    def test_a_search_returns_from_points_without_a_value(self, edge):
        met = []

        def function(x):
            if np.any(x > edge):
                met.append(x.copy())
                raise FloatingPointError("nothing here")
            return float(np.cosh(3 * (x - 1)).sum()), 3 * np.sinh(3 * (x - 1))

        found = minimise(function, [np.full(3, -4.0), np.array([-4.0, 0.0, 0.9])], LOW, HIGH, 200)
        assert met
        assert found.converged
        np.testing.assert_allclose(found.point, 1.0, atol=1e-3)

    def test_the_end_next_to_a_hole_has_its_own_value(self):
        """The minimum is inside the hole; the result is the best point with a value."""
        lowest = []

        def function(x):
            if x[0] + 2 * x[1] > 1:
                raise FloatingPointError("beyond the wall")
            value = float(np.square(x - [1, 1, 0]).sum() + 0.1 * np.sin(20 * x[2]) ** 2)
            lowest.append((value, x.copy()))
            return value, 2 * (x - [1, 1, 0]) + [0, 0, 2 * np.sin(40 * x[2])]

        found = minimise(function, [np.array([-2.0, -1.5, 0.7])], LOW, HIGH, 200)
        value, point = min(lowest, key=lambda one: one[0])
        assert not found.converged
        assert found.value == value
        np.testing.assert_array_equal(found.point, point)
        assert point[0] + 2 * point[1] > 0.8

    def test_starts_without_a_value_are_skipped(self):
        def function(x):
            if x[0] < 0:
                raise FloatingPointError(f"nothing at {x[0]:g}")
            return banana(x)

        assert minimise(function, [-np.ones(3), np.full(3, 0.5)], LOW, HIGH, 500).value < 1e-7
        with pytest.raises(FloatingPointError, match="nothing at -2"):
            minimise(function, [-np.ones(3), -2 * np.ones(3)], LOW, HIGH, 500)

    @pytest.mark.parametrize("offset", [0.0, 1e8])
    def test_an_end_next_to_points_without_a_value_is_no_convergence(self, offset):
        """With the offset, the relative decrease of a step is so small that L-BFGS stops."""

        def function(x):
            if x[0] > 1.0:
                raise FloatingPointError("nothing here")
            return offset - 3.0 * x[0] + x[1] ** 2, np.array([-3.0, 2.0 * x[1]])

        found = minimise(function, [np.array([-3.0, -0.5])], np.full(2, -5.0), np.full(2, 5.0), 200)
        assert 0.9 < found.point[0] <= 1.0
        assert not found.converged
        found = minimise(function, [np.array([-3.0, -0.5])], np.full(2, -5.0), np.array([1.0, 5.0]), 200)
        assert found.converged


@pytest.mark.parametrize(
    ("value", "slope", "converged"),
    [(-20.0, 0.9, True), (-20.0, 1.1, False), (-20.0, -600.0, False), (1e4, 9.0, True), (1e4, 11.0, False)],
)
def test_an_end_with_a_steep_slope_is_no_convergence(value, slope, converged, monkeypatch):
    """At a jump of the value, L-BFGS takes ever shorter steps and reports convergence."""
    gradient = np.array([0.0, slope, 0.1])
    ended = OptimizeResult(x=np.zeros(3), fun=value, jac=gradient, nit=7, status=0, success=True, message="")
    monkeypatch.setattr("scipy.optimize.minimize", Mock(return_value=ended))

    def search(low, high):
        return minimise(lambda _: (value, gradient), [np.zeros(3)], low, high, 500)

    assert search(LOW, HIGH).converged == converged
    assert search(np.where(gradient > 0, 0.0, LOW), np.where(gradient < 0, 0.0, HIGH)).converged


def test_a_search_with_a_small_gain_has_converged():
    wide = np.full(100, 5.0)
    starts = [np.zeros(100)]
    whole = minimise(banana, starts, -wide, wide, 5000)
    ended = minimise(banana, starts, -wide, wide, 5000, gain=21.0)
    assert ended.converged
    assert 100 < ended.iterations < whole.iterations
    values = [value for _, value in ended.path]
    assert values[-101] - values[-1] < 21.0 <= values[-102] - values[-2]
    np.testing.assert_array_equal(ended.point, ended.path[-1][0])
