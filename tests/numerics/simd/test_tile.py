"""Tiles of registers in compiled code against the equivalent NumPy code."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.numerics.jit import REORDER, jit
from ep_bench.numerics.simd import tile
from ep_bench.numerics.simd.vector import WIDTH

INPUTS = 3


def every_operation(shape, W, x, f, sums):
    stride = len(shape[0]) * WIDTH
    A = tile.tile_of_rows(shape, W, 0)
    for i in range(INPUTS):
        A = tile.plus_products(A, W, (i + 1) * stride, x, i + 1, INPUTS)
    tile.store_positive_sums(A, W, 2 * stride, f, 1)
    D = tile.gate(A, x, 2)
    tile.add_products(D, sums, stride, x, 1, INPUTS)
    tile.add_rows(D, sums, 0)


compiled = jit(relaxed=REORDER)(every_operation)


def random_arguments(shape, dtype=np.float64):
    rng = np.random.default_rng(5)
    rows, stride = len(shape), len(shape[0]) * WIDTH
    parts = rng.normal(size=4 * stride), rng.normal(size=rows * INPUTS + 4), np.zeros(rows + 2), np.ones(2 * stride)
    return [part.astype(dtype) for part in parts]


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-13), (np.float32, 2e-6)])
@pytest.mark.parametrize("shape", [((0,),) * 3, ((0, 0),) * 2])
def test_compiled_tiles_equal_numpy(shape, dtype, rtol):
    W, x, f, sums = random_arguments(shape, dtype)
    plain_f, plain_sums = f.copy(), sums.copy()
    compiled(shape, W, x, f, sums)
    every_operation(shape, W, x, plain_f, plain_sums)
    np.testing.assert_allclose(f, plain_f, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(sums, plain_sums, rtol=rtol, atol=rtol)
    assert f[0] == f[-1] == 0.0
    assert np.any(sums != 1.0)


@pytest.mark.parametrize("n", [1, 8, 9, 20, 50, 64, 100, 112])
def test_a_shape_leaves_free_registers(n):
    shape = tile.shape_of(n)
    rows, columns = len(shape), len(shape[0])
    assert columns == -(-n // WIDTH)
    assert 2 <= rows <= tile.MAX_ROWS
    assert rows * columns + rows + 1 < tile.REGISTERS


def test_wide_rows_have_no_shape():
    assert tile.shape_of(113) == ()
