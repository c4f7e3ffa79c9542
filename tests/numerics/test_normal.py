"""Density and tail of the normal distribution against decimal arithmetic and SciPy."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.special import erfcx

from ep_bench.numerics import normal
from ep_bench.numerics.jit import jit
from tests.numerics import mills_table


@jit()
def tails(t, out):
    for i in range(t.size):
        out[i, 0], out[i, 1], out[i, 2] = normal.normal_tail(t[i], 1.0 / (t[i] + normal.SHIFT))


def tail(points):
    t = np.atleast_1d(np.asarray(points, dtype=float))
    out = np.empty((t.size, 3))
    tails(t, out)
    return out


def exact(t):
    """Density, tail and overshoot as decimals, of a float t."""
    with localcontext() as context:
        context.prec = 60
        t = Decimal(t)
        density = (-t * t / 2).exp() / (2 * mills_table.pi()).sqrt()
        ratio = mills_table.mills(t)
        return density, density * ratio, density * (1 - t * ratio)


@pytest.mark.parametrize("t", [0.0, 1e-300, 1e-9, 0.3, 1.0, 2.5, 5.0, 8.3, 12.0, 20.0, 30.0, 37.0, 37.6])
def test_against_decimal_arithmetic(t):
    density, upper, overshoot = tail(t)[0]
    for ours, theirs, digits in zip((density, upper, overshoot), exact(t), (1, 1, 1 + t * t), strict=True):
        assert abs(Decimal(ours) / theirs - 1) < Decimal(1.5e-15 * (1 + t * t) * digits)


def test_mills_ratio_against_scipy():
    t = np.linspace(0.0, 37.5, 20_001)
    density, upper, _ = tail(t).T
    np.testing.assert_allclose(upper / density, math.sqrt(math.pi / 2) * erfcx(t / math.sqrt(2)), rtol=2e-15)


@pytest.mark.parametrize("t", [37.7, 40.0, 300.0, 1e10, 1e200, math.inf])
def test_values_below_the_smallest_double_are_zero(t):
    density, upper, overshoot = tail(t)[0]
    assert (density, upper) == (0.0, 0.0)
    assert overshoot == 0.0 or (math.isinf(t) and math.isnan(overshoot))


def test_nan_stays_nan():
    assert np.isnan(tail(math.nan)[0, 1:]).all()


def test_the_stored_coefficients_are_reproduced():
    with localcontext() as context:
        context.prec = mills_table.PRECISION
        np.testing.assert_array_equal(normal.MILLS, mills_table.mills_coefficients())
        np.testing.assert_array_equal(normal.DENSITY, mills_table.density_coefficients())
        low, high = 1 / mills_table.K, 1 / (mills_table.T + mills_table.K)
        assert float(mills_table.K) == normal.SHIFT
        assert pytest.approx(float(-2 / (low - high)), rel=1e-15) == normal.SLOPE
        assert pytest.approx(float(1 + 2 * high / (low - high)), rel=1e-15) == normal.FIRST
        assert abs(Decimal(normal.LN2_HIGH) + Decimal(normal.LN2_LOW) - Decimal(2).ln()) < Decimal("1e-25")
        assert int(normal.LN2_HIGH * 2.0**32) == normal.LN2_HIGH * 2.0**32
