"""Moments of the rectified Gaussian against decimal arithmetic, quadrature and the paper's formulas."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.integrate import quad

from ep_bench.numerics.jit import jit
from ep_bench.numerics.relu import relu_moments, relu_scales
from ep_bench.numerics.simd.vector import WIDTH, load, store
from tests.numerics import mills_table
from tests.twins import reference

PLACES = [-37.0, -30.1, -29.9, -12.0, -8.4, -3.0, -1.0, -1e-3, 0.0, 1e-3, 0.7, 2.0, 6.0, 8.4, 20.0, 40.0, 300.0]


@jit()
def one(m, v):
    return relu_moments(m, v, relu_scales(m, v))


@jit()
def many(m, v, out):
    n = m.size
    for i in range(0, n, WIDTH):
        a, b = load(m, i), load(v, i)
        for_units = relu_moments(a, b, relu_scales(a, b))
        store(out, i, for_units[0])
        store(out, n + i, for_units[1])
        store(out, 2 * n + i, for_units[2])
        store(out, 3 * n + i, for_units[3])
        store(out, 4 * n + i, for_units[4])
        store(out, 5 * n + i, for_units[5])


def exact(m, v):
    """Mean and variance as decimals: m Phi + s phi and (m^2 + v) Phi + m s phi - mean^2."""
    s = v.sqrt()
    t = abs(m) / s
    density = (-t * t / 2).exp() / (2 * mills_table.pi()).sqrt()
    tail = density * mills_table.mills(t)
    cdf = 1 - tail if m > 0 else tail
    mean = m * cdf + s * density
    return mean, (m * m + v) * cdf + m * s * density - mean * mean


@pytest.mark.parametrize("v", [1e-200, 1e-12, 0.3, 1.0, 50.0])
@pytest.mark.parametrize("alpha", [place for place in PLACES if abs(place) < 38])
def test_moments_and_slopes_against_decimal_arithmetic(alpha, v):
    m = alpha * math.sqrt(v)
    ours = one(m, v)
    with localcontext() as context:
        context.prec = 400 if abs(alpha) > 20 else 150
        m, v = Decimal(m), Decimal(v)
        mean, variance = exact(m, v)
        step = Decimal(10) ** -40
        dm, dv = v.sqrt() * step, v * step
        slopes = [
            (after - before) / (2 * size)
            for size, up, down in ((dm, exact(m + dm, v), exact(m - dm, v)), (dv, exact(m, v + dv), exact(m, v - dv)))
            for after, before in zip(up, down, strict=True)
        ]
        # v enters Phi(alpha) through its root, whose rounding the exponent multiplies by alpha^2
        tolerance = 4e-15 * (1 + alpha * alpha) * (1 + alpha * alpha if alpha < 0 else 1)
        theirs = (mean, variance, slopes[0], slopes[2], slopes[1], slopes[3])
        limits = [Decimal(tolerance)] * 6
        limits[1] = limits[5] = Decimal(tolerance * (1 + alpha * alpha if alpha < 0 else 1))
        for name, a, b, limit in zip(("mean", "variance", "mm", "mv", "vm", "vv"), ours, theirs, limits, strict=True):
            assert abs(Decimal(float(a)) - b) <= limit * abs(b) + Decimal("1e-306"), name


@pytest.mark.parametrize(("m", "v"), [(-1.3, 0.5), (0.0, 2.0), (0.4, 0.1), (3.0, 1.0)])
def test_moments_against_quadrature(m, v):
    def density(a):
        return math.exp(-((a - m) ** 2) / (2 * v)) / math.sqrt(2 * math.pi * v)

    end = m + 15 * math.sqrt(v)
    first, second = (quad(lambda a, k=k: a**k * density(a), 0, end, epsabs=0, epsrel=1e-12)[0] for k in (1, 2))
    mean, variance = one(m, v)[:2]
    assert mean == pytest.approx(first, rel=1e-10)
    assert variance == pytest.approx(second - first**2, rel=1e-10)


@pytest.mark.parametrize("alpha", [-300.0, -40.0, -37.7])
def test_an_inactive_unit_has_no_output_and_no_gradient(alpha):
    assert one(alpha * 0.1, 0.01) == (0.0,) * 6


@pytest.mark.parametrize("alpha", [40.0, 300.0, 1e8])
def test_an_active_unit_is_linear(alpha):
    m, v = alpha * 0.1, 0.1**2
    np.testing.assert_allclose(one(m, v), (m, v, 1.0, 0.0, 0.0, 1.0), rtol=1e-15)


@pytest.mark.parametrize("m", [-2.0, 3.0])
def test_very_small_variances(m):
    for v in (1e-30, 1e-100, 1e-250):
        np.testing.assert_allclose(one(m, v)[:3], (max(m, 0.0), v * (m > 0), float(m > 0)), rtol=1e-15)


def test_nan_stays_nan():
    assert all(math.isnan(value) for value in one(math.nan, 1.0)[:2])
    assert all(math.isnan(value) for value in one(1.0, math.nan)[:2])


def test_vectors_equal_floats_and_the_formulas_of_the_paper():
    m = np.repeat(PLACES, WIDTH)[: 16 * WIDTH] * np.tile(np.linspace(0.9, 1.0, WIDTH), 16)
    v = np.tile(np.linspace(0.2, 1.0, WIDTH), 16)
    out = np.empty(6 * m.size)
    many(m, v, out)
    out = out.reshape(6, -1)
    np.testing.assert_allclose(out.T, [one(a, b) for a, b in zip(m, v, strict=True)], rtol=1e-12, atol=1e-300)
    near = np.abs(m / np.sqrt(v)) < 5
    np.testing.assert_allclose(out[:2, near], reference.relu_moments(m[near], v[near]), rtol=1e-11)
    np.testing.assert_allclose(out[2:, near], reference.relu_moment_gradients(m[near], v[near]), rtol=1e-11, atol=1e-14)
