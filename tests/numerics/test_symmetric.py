"""Symmetric matrices as lower triangles against dense matrices of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.numerics import symmetric

SIZES = [1, 2, 7, 63, 64, 65, 129, 200]
MARK = 7.0  # element above the diagonal


def problem(n, seed=0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n + 3))
    full = root @ root.T + np.eye(n)
    matrix = symmetric.square(n)
    matrix[...] = np.tril(full) + np.triu(np.full((n, n), MARK), 1)
    return full, matrix, rng


def above(matrix):
    return matrix[np.triu_indices(len(matrix), 1)]


@pytest.mark.parametrize("n", SIZES)
class TestAgainstDense:
    def test_factor_and_determinant(self, n):
        full, matrix, _ = problem(n)
        assert symmetric.factorise(matrix)
        np.testing.assert_allclose(np.tril(matrix), np.linalg.cholesky(full), rtol=1e-9, atol=1e-12)
        assert symmetric.log_determinant(matrix) == pytest.approx(np.linalg.slogdet(full)[1], rel=1e-12)
        assert np.all(above(matrix) == MARK)

    def test_solutions(self, n):
        full, matrix, rng = problem(n)
        symmetric.factorise(matrix)
        b, B = rng.normal(size=n), rng.normal(size=(5, n))
        original = b.copy()
        np.testing.assert_allclose(symmetric.solve(matrix, b), np.linalg.solve(full, b), rtol=1e-7, atol=1e-10)
        np.testing.assert_array_equal(b, original)
        expected = np.linalg.solve(np.linalg.cholesky(full), B.T).T
        np.testing.assert_allclose(symmetric.half_solve(matrix, B.copy()), expected, rtol=1e-7, atol=1e-10)
        expected = np.linalg.solve(np.linalg.cholesky(full).T, B.T).T
        np.testing.assert_allclose(symmetric.half_solve_back(matrix, B.copy()), expected, rtol=1e-7, atol=1e-10)

    def test_inverse(self, n):
        full, matrix, _ = problem(n)
        symmetric.factorise(matrix)
        symmetric.invert(matrix)
        np.testing.assert_allclose(np.tril(matrix), np.tril(np.linalg.inv(full)), rtol=1e-6, atol=1e-11)
        assert np.all(above(matrix) == MARK)

    def test_mirrored(self, n):
        full, matrix, _ = problem(n)
        symmetric.mirror(matrix)
        np.testing.assert_array_equal(matrix, np.tril(full) + np.tril(full, -1).T)

    def test_sums_and_products(self, n):
        full, matrix, rng = problem(n)
        x, B = rng.normal(size=n), rng.normal(size=(n, 3))
        assert symmetric.total(matrix) == pytest.approx(full.sum(), rel=1e-12)
        np.testing.assert_allclose(symmetric.times(matrix, B), full @ B, rtol=1e-10, atol=1e-10)
        symmetric.add_outer(matrix, x, -0.5)
        np.testing.assert_allclose(np.tril(matrix), np.tril(full - 0.5 * np.outer(x, x)), rtol=1e-12, atol=1e-12)

    def test_elementwise_operations(self, n):
        full, matrix, _ = problem(n)
        other = problem(n, seed=1)[0]
        symmetric.add(matrix, other)
        symmetric.multiply(matrix, other)
        np.testing.assert_array_equal(np.tril(matrix), np.tril((full + other) * other))
        assert np.all(above(matrix) == MARK)


@pytest.mark.parametrize("fault", [-1.0, 0.0, np.nan, np.inf])
@pytest.mark.parametrize("n", [1, 5, 200])
def test_a_matrix_that_is_not_positive_definite_is_reported(n, fault):
    _, matrix, _ = problem(n)
    matrix[n - 1, n - 1] = fault
    assert not symmetric.factorise(matrix)


def test_nan_off_the_diagonal_is_reported():
    _, matrix, _ = problem(200)
    matrix[150, 20] = np.nan
    assert not symmetric.factorise(matrix)


def test_matrices_start_on_a_cache_line():
    assert all(symmetric.square(n).ctypes.data % 64 == 0 for n in SIZES)
