"""Cholesky factor and its inverse against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.numerics.cholesky import BLOCK, factorise, inverse_factor, invert_lower

every_size = pytest.mark.parametrize("M", [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 100])


def positive_definite(M, seed=0):
    """Return a matrix (M, M) with eigenvalues of at least 1."""
    A = np.random.default_rng(seed).normal(size=(M, M))
    return A @ A.T / np.sqrt(M) + np.eye(M)


def above(M):
    return np.triu_indices(M, 1)


@every_size
class TestValues:
    def test_inverse_factor(self, M):
        W = positive_definite(M)
        found, log_determinant = inverse_factor(W.copy())
        np.testing.assert_allclose(found, np.linalg.inv(np.linalg.cholesky(W)), rtol=1e-10, atol=1e-13)
        assert log_determinant == pytest.approx(np.linalg.slogdet(W)[1], rel=1e-13)
        np.testing.assert_array_equal(found[above(M)], 0.0)
        np.testing.assert_allclose(found @ W @ found.T, np.eye(M), atol=1e-12)

    def test_factor(self, M):
        W = positive_definite(M)
        L = W.copy()
        log_determinant = factorise(L)
        np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(W), rtol=1e-11, atol=1e-13)
        np.testing.assert_array_equal(L[above(M)], W[above(M)])
        assert log_determinant == pytest.approx(np.linalg.slogdet(W)[1], rel=1e-13)

    def test_inverse_of_a_lower_triangle(self, M):
        L = np.linalg.cholesky(positive_definite(M))
        found = invert_lower(L)
        np.testing.assert_allclose(found, np.linalg.inv(L), rtol=1e-10, atol=1e-13)
        np.testing.assert_array_equal(found[above(M)], 0.0)

    def test_elements_above_the_diagonal_are_not_read(self, M):
        W = positive_definite(M)
        corrupted = W.copy()
        corrupted[above(M)] = np.nan
        clean, corrupted_result = inverse_factor(W.copy()), inverse_factor(corrupted.copy())
        np.testing.assert_array_equal(corrupted_result[0], clean[0])
        assert corrupted_result[1] == clean[1]
        assert factorise(corrupted) == factorise(W)
        np.testing.assert_array_equal(np.tril(corrupted), np.tril(W))
        np.testing.assert_array_equal(invert_lower(corrupted), invert_lower(W))

    def test_very_large_and_small_scales(self, M):
        """Scaling rows and columns by 1e-100 to 1e100 only scales the result."""
        W, scales = positive_definite(M), np.logspace(-100, 100, M)
        found, log_determinant = inverse_factor(W * np.outer(scales, scales))
        expected = np.linalg.inv(np.linalg.cholesky(W))
        np.testing.assert_allclose(found * scales, expected, rtol=1e-10, atol=1e-13)
        assert log_determinant == pytest.approx(np.linalg.slogdet(W)[1] + 2 * np.log(scales).sum(), abs=1e-10)


@every_size
class TestWithoutFactor:
    """The log determinant is NaN, independent of the position of the fault."""

    def places(self, M):
        return sorted({0, M // 2, M - 1})

    @pytest.mark.parametrize("pivot", [-1.0, 0.0, np.nan])
    def test_a_pivot_that_is_not_positive(self, M, pivot):
        for place in self.places(M):
            W = np.diag(np.linspace(1.0, 2.0, M))
            W[place, place] = pivot
            assert np.isnan(inverse_factor(W.copy())[1])
            assert np.isnan(factorise(W))

    def test_a_negative_eigenvalue(self, M):
        """The diagonal is positive for M > 1."""
        W = positive_definite(M)
        values, vectors = np.linalg.eigh(W)
        W -= 1.1 * values[0] * np.outer(vectors[:, 0], vectors[:, 0])
        assert np.linalg.eigvalsh(W)[0] < -0.01
        assert np.isnan(inverse_factor(W.copy())[1])
        assert np.isnan(factorise(W))

    def test_nan_below_the_diagonal(self, M):
        for place in range(1, M):
            W = positive_definite(M)
            W[place, 0] = np.nan
            assert np.isnan(inverse_factor(W.copy())[1])
            assert np.isnan(factorise(W))


def test_nearly_singular():
    """For a condition number of 1e10, the inverse is as accurate as that of NumPy."""
    rng = np.random.default_rng(3)
    Q, _ = np.linalg.qr(rng.normal(size=(70, 70)))
    W = (Q * np.logspace(-10, 0, 70)) @ Q.T
    W = (W + W.T) / 2
    found, log_determinant = inverse_factor(W.copy())
    reference = np.linalg.inv(np.linalg.cholesky(W))
    error, reference_error = (np.abs(one @ W @ one.T - np.eye(70)).max() for one in (found, reference))
    assert error < 10 * reference_error
    assert log_determinant == pytest.approx(np.linalg.slogdet(W)[1], rel=1e-7)
