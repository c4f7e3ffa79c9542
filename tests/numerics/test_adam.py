"""Adam against the algorithm as printed."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.numerics.adam import adam_step, clear_vanished, moments
from tests.twins.plain_networks import adam


@pytest.mark.parametrize("rate", [1e-3, 0.1])
def test_fifty_steps(rate):
    rng = np.random.default_rng(1)
    start = rng.normal(size=12)
    gradients = rng.normal(size=(50, 12)) * 10.0 ** rng.uniform(-9, 3, size=12)
    gradients[:, 0] = 0.0
    gradients[::3, 1] = 0.0
    theta, state = start.copy(), moments(12)
    for gradient in gradients:
        adam_step(theta, gradient, state, rate)
    np.testing.assert_allclose(theta, adam(start, gradients, rate), rtol=1e-12)
    assert theta[0] == start[0]
    assert state.steps[0] == 50


def test_the_gradient_is_not_changed_and_the_first_step_has_the_size_of_the_rate():
    theta, gradient = np.zeros(3), np.array([2.0, -3e-3, 5e5])
    adam_step(theta, gradient, moments(3), 0.01)
    np.testing.assert_allclose(theta, [-0.01, 0.01, -0.01], rtol=1e-5)
    np.testing.assert_array_equal(gradient, [2.0, -3e-3, 5e5])


def test_the_minimum_of_a_quadratic():
    theta, state = np.array([3.0, -2.0]), moments(2)
    for step in range(4000):
        adam_step(theta, 2 * (theta - [1.0, 5.0]) * [1.0, 30.0], state, 0.05 * (1 - step / 4000))
    np.testing.assert_allclose(theta, [1.0, 5.0], atol=1e-4)


def test_nan_is_propagated():
    theta = np.zeros(2)
    adam_step(theta, np.array([np.nan, 1.0]), moments(2), 0.1)
    assert np.isnan(theta[0])
    assert np.isfinite(theta[1])


def test_parameters_and_moments_that_have_vanished_are_cleared():
    theta, state = np.array([1.0, -1e-99, 1e-101, -5e-324]), moments(4)
    state.first[:] = [-1e-99, 1e-101, -1e-310, 0.0]
    state.second[:] = [1e-199, 1e-201, 1e-310, 0.0]
    clear_vanished(theta, state)
    np.testing.assert_array_equal(theta, [1.0, -1e-99, 0.0, 0.0])
    np.testing.assert_array_equal(state.first, [-1e-99, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(state.second, [1e-199, 0.0, 0.0, 0.0])
