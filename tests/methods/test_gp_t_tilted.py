"""Tilted moments of a Student-t likelihood with a target far from the cavity."""

from __future__ import annotations

import time

import numpy as np
import pytest

from ep_bench.methods.gp_t.tilted import log_constant, moments


def at_gap(gap: float, scale: float) -> np.ndarray:
    """Return the moments (7,) for a standard Gaussian cavity and nu = 4."""
    return moments(np.zeros(1), np.ones(1), np.array([gap]), 4.0, scale, 1.0)[:, 0]


@pytest.mark.parametrize(("gap", "scale"), [(2e4, 1e-5), (1e5, 1e-6), (1e7, 1e-8)])
def test_a_negligible_mode_at_a_far_target_costs_no_time(gap, scale):
    """The likelihood is nearly constant over the cavity, and has a mode of its own at the target."""
    at_gap(1.0, 1.0)  # compiles
    started = time.perf_counter()
    found = at_gap(gap, scale)
    assert time.perf_counter() - started < 1.0
    s2 = 4.0 * scale**2
    assert found[0] == pytest.approx(log_constant(4.0, scale**2) - 2.5 * np.log1p(gap**2 / s2), rel=1e-8)
    assert found[1] == pytest.approx(5.0 / gap, rel=1e-6)
    np.testing.assert_allclose(found[2], 1.0, atol=1e-7)


def test_moments_are_continuous_where_a_mode_is_left_out():
    near, far = at_gap(9_999.0, 1e-5), at_gap(10_001.0, 1e-5)
    np.testing.assert_allclose(far[[0, 2, 3, 4, 6]], near[[0, 2, 3, 4, 6]], rtol=1e-4)
    np.testing.assert_allclose(10_001.0 * far[1], 9_999.0 * near[1], rtol=1e-6)
