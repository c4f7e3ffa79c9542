"""The arctangent against NumPy's."""

from __future__ import annotations

import numpy as np

from ep_bench.numerics.arctangent import FIRST, SECOND, arctangent
from ep_bench.numerics.jit import jit
from ep_bench.numerics.simd.vector import WIDTH, load, padded, store


@jit()
def fill(x, out):
    for i in range(0, x.size, WIDTH):
        store(out, i, arctangent(load(x, i)))


@jit()
def one(x):
    return arctangent(x)


def arctangents(x):
    whole, out = np.zeros(padded(len(x))), np.empty(padded(len(x)))
    whole[: len(x)] = x
    fill(whole, out)
    return out[: len(x)]


def test_errors_are_at_most_two_units_in_the_last_place():
    wide = np.geomspace(1e-300, 1e300, 20_000)
    x = np.concatenate([np.linspace(-5.0, 5.0, 100_001), wide, -wide])
    expected = np.arctan(x)
    assert np.all(np.abs(arctangents(x) - expected) <= 2 * np.spacing(np.abs(expected)))


def test_infinity_sector_borders_and_nan():
    borders = [s * np.nextafter(t, t + way) for s in (-1, 1) for t in (FIRST, SECOND, 1.0) for way in (-1, 0, 1)]
    x = np.array([0.0, np.inf, -np.inf, np.nan, 5e-324, *borders])
    np.testing.assert_allclose(arctangents(x), np.arctan(x), rtol=3e-16)
    np.testing.assert_allclose([one(t) for t in x], np.arctan(x), rtol=3e-16)
