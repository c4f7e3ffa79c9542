"""Equations (9) and (10) against their printed form, in decimal arithmetic and in floats."""

from __future__ import annotations

from decimal import Decimal, localcontext

import pytest

from ep_bench.numerics.gamma import gamma_update
from ep_bench.numerics.jit import jit
from tests.twins import reference


@jit()
def update(a, b, variance, square):
    return gamma_update(a, b, variance, square)


def printed(a, b, variance, square):
    with localcontext() as context:
        context.prec = 60
        a, b, variance, square = (Decimal(x) for x in (a, b, variance, square))
        scales = [variance + b / (a - 1 + k) for k in range(3)]
        z, z1, z2 = ((-square / (2 * s)).exp() / s.sqrt() for s in scales)
        return 1 / (z * z2 / z1**2 * (a + 1) / a - 1), 1 / (z2 / z1 * (a + 1) / b - z1 / z * a / b)


@pytest.mark.parametrize("square", [0.0, 1e-8, 0.3, 20.0])
@pytest.mark.parametrize("variance", [1e-9, 0.1, 30.0])
@pytest.mark.parametrize(("a", "b"), [(1.5, 0.2), (6.0, 6.0), (100.0, 20.0), (6691.0, 477.0), (1e7, 3e5)])
def test_accuracy_does_not_depend_on_the_shape(a, b, variance, square):
    for ours, theirs in zip(update(a, b, variance, square), printed(a, b, variance, square), strict=True):
        assert abs(Decimal(ours) / theirs - 1) < Decimal("2e-13")


def test_the_printed_formulas_lose_digits_for_a_large_shape():
    a_exact, _ = printed(1e7, 3e5, 0.1, 0.3)
    a_plain, _, _ = reference.gamma_update(1e7, 3e5, 0.1, 0.3)
    a_ours, _ = update(1e7, 3e5, 0.1, 0.3)
    assert abs(Decimal(float(a_plain)) / a_exact - 1) > 1000 * abs(Decimal(a_ours) / a_exact - 1)


@pytest.mark.parametrize("square", [400.0, 2000.0])
def test_a_large_residual(square):
    ours, theirs = update(6.0, 6.0, 1e-3, square), printed(6.0, 6.0, 1e-3, square)
    assert all(abs(Decimal(a) / b - 1) < Decimal("1e-11") for a, b in zip(ours, theirs, strict=True))


def test_a_residual_of_one_noise_standard_deviation_adds_half_to_the_shape():
    noise = 500.0 / 999.0
    a, b = update(1000.0, 500.0, 0.0, noise)
    assert a == pytest.approx(1000.5, abs=0.01)
    assert b / (a - 1) == pytest.approx(noise, rel=1e-5)
