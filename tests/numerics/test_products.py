"""Products in kernels against NumPy, and bit for bit against NumPy's function inside a kernel."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.numerics.jit import jit
from ep_bench.numerics.products import dot

# rows, summands, columns; a matrix of one row or column is treated as a vector by BLAS
SHAPES = [(3, 4, 5), (1, 4, 5), (3, 4, 1), (1, 4, 1), (3, 1, 2), (0, 4, 5), (3, 0, 5), (3, 4, 0), (37, 61, 29)]
LAYOUTS = ["C", "F", "strided"]


@jit()
def product(a, b):
    return dot(a, b)


@jit()
def product_by_numba(a, b):
    return np.dot(a, b)


def array(shape, layout, rng):
    if layout == "strided":
        return rng.normal(size=[2 * size for size in shape])[tuple(slice(None, None, 2) for _ in shape)]
    return np.array(rng.normal(size=shape), order=layout)


@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("left", LAYOUTS)
def test_two_matrices(left, right):
    rng = np.random.default_rng(0)
    for m, k, n in SHAPES:
        a, b = array((m, k), left, rng), array((k, n), right, rng)
        found = product(a, b)
        assert found.shape == (m, n)
        np.testing.assert_allclose(found, a @ b, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_matrix_and_a_vector(layout):
    rng = np.random.default_rng(1)
    for m, k, _ in SHAPES:
        a, x, z = array((m, k), layout, rng), rng.normal(size=k), rng.normal(size=m)
        np.testing.assert_allclose(product(a, x), a @ x, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(product(z, a), z @ a, rtol=1e-12, atol=1e-13)


def test_two_vectors():
    rng = np.random.default_rng(2)
    for k in (0, 1, 4, 61):
        x, z = rng.normal(size=k), rng.normal(size=k)
        assert product(x, z) == pytest.approx(x @ z, rel=1e-13, abs=1e-14)


def test_the_bits_are_those_of_numpys_function_in_a_kernel():
    rng = np.random.default_rng(3)
    for m, k, n in SHAPES:
        a, b, x = rng.normal(size=(m, k)), rng.normal(size=(n, k)), rng.normal(size=k)
        np.testing.assert_array_equal(product(a, b.T), product_by_numba(a, b.T))
        np.testing.assert_array_equal(product(a, x), product_by_numba(a, x))


@pytest.mark.parametrize(("left", "right"), [((3, 4), (3, 4)), ((3, 4), (3,)), ((4,), (3, 4)), ((3,), (4,))])
def test_shapes_that_do_not_match_are_refused(left, right):
    with pytest.raises(ValueError, match="shapes do not match"):
        product(np.ones(left), np.ones(right))


def test_it_is_numpys_function_outside_kernels():
    np.testing.assert_array_equal(dot(np.eye(2), np.ones(2)), np.ones(2))
