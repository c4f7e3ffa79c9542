"""Vectors in compiled code against the equivalent NumPy code."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ep_bench.numerics.jit import FUSE, jit
from ep_bench.numerics.simd import vector
from ep_bench.numerics.simd.vector import (
    MAGIC,
    WIDTH,
    absolute,
    any_not_above,
    load,
    power_of_two,
    select_above,
    spread,
    square_root,
    store,
    total,
)

rng = np.random.default_rng(3)


@jit(relaxed=FUSE)
def arithmetic(x, y, out):
    a, b = load(x, 1), load(y, 0)
    store(out, 0, 2.0 * a + b / 3 - (-a) * b)
    store(out, WIDTH, square_root(absolute(a - 1.0)))
    store(out, 2 * WIDTH, select_above(a, b, a, 7.0))
    store(out, 3 * WIDTH, power_of_two(spread(3.0) + MAGIC) * power_of_two(spread(-1000.0) + MAGIC))
    return total(a), any_not_above(a, -10.0), any_not_above(a, 10.0)


def plain(x, y):
    a, b = x[1 : WIDTH + 1], y[:WIDTH]
    parts = [2 * a + b / 3 + a * b, np.sqrt(np.abs(a - 1)), np.where(a > b, a, 7.0), np.full(WIDTH, 2.0**-997)]
    return np.concatenate(parts)


@pytest.mark.parametrize("function", [arithmetic, getattr(arithmetic, "py_func", arithmetic)])
def test_vectors_equal_numpy(function):
    x, y, out = rng.normal(size=WIDTH + 3), rng.normal(size=WIDTH), np.zeros(4 * WIDTH)
    summed, below, above = function(x, y, out)
    np.testing.assert_allclose(out, plain(x, y), rtol=1e-15, atol=1e-15)
    assert summed == pytest.approx(x[1 : WIDTH + 1].sum(), rel=1e-14)
    assert (below, above) == (False, True)


def test_nan_is_not_above_any_bound():
    x = np.ones(WIDTH + 1)
    x[3] = math.nan
    out = np.zeros(4 * WIDTH)
    _, below, _ = arithmetic(x, np.zeros(WIDTH), out)
    assert below
    assert out[2 * WIDTH + 2] == 7.0
    assert math.isnan(out[2])


@jit()
def scalars(x):
    return square_root(x), absolute(-x), select_above(x, 1.0, 5.0, 6.0), power_of_two(x + MAGIC)


def test_functions_accept_floats():
    assert scalars(4.0) == (2.0, 4.0, 5.0, 16.0)


def test_aligned_arrays_start_on_a_cache_line():
    for n in (1, 5, 64):
        filled = vector.aligned(n, 1.5)
        assert filled.shape == (n,)
        assert filled.ctypes.data % vector.ALIGNMENT == 0
        np.testing.assert_array_equal(filled, 1.5)
    assert [vector.padded(n) for n in (1, WIDTH, WIDTH + 1)] == [WIDTH, WIDTH, 2 * WIDTH]
