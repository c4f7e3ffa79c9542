"""Symmetric matrices stored as lower triangles; most operations are in place.

A matrix (n, n) is stored row by row and starts on a cache line (``square``). The last bits of LAPACK's results can
depend on the alignment of arrays, and searches amplify these differences. The elements above the diagonal are neither
read nor changed. LAPACK uses column order and therefore receives the upper triangle of the transpose. A matrix may be
in single precision for ``factorise``, ``solve`` and ``half_solve``.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from ep_bench.numerics.jit import REORDER, jit
from ep_bench.numerics.simd.vector import aligned

Array = NDArray[np.float64]
SMALL = 64  # rows up to which LAPACK inverts a triangle


def square(n: int, precision: str = "double") -> Array:
    """Return a matrix of zeros (n, n) that starts on a cache line."""
    if precision == "single":
        return cast("Array", aligned((n * n + 1) // 2).view(np.float32)[: n * n].reshape(n, n))
    return aligned(n * n).reshape(n, n)


def _routine(name: str, matrix: Array) -> Any:
    """Return a routine of LAPACK for the precision of a matrix."""
    return getattr(lapack, ("s" if matrix.dtype == np.float32 else "d") + name)


def factorise(matrix: Array) -> bool:
    """Replace a positive definite matrix by its factor L, L L' = matrix; return False if it has no finite factor."""
    _, failed = _routine("potrf", matrix)(matrix.T, lower=0, clean=0, overwrite_a=1)
    # LAPACK may let NaN pass
    return failed == 0 and bool(np.isfinite(matrix.diagonal()).all())


def log_determinant(factor: Array) -> float:
    """Return the log determinant of L L' for a factor L (n, n)."""
    return 2.0 * float(np.log(factor.diagonal(), dtype=np.float64).sum())


def solve(factor: Array, b: Array) -> Array:
    """Return (L L')^-1 b (n,) for b (n,)."""
    found, _ = _routine("potrs", factor)(factor.T, _aligned_copy(b), lower=0, overwrite_b=1)
    return np.asarray(found, dtype=np.float64)


def half_solve(factor: Array, rows: Array) -> Array:
    """Return L^-1 b for each row b of ``rows`` (m, n), as rows; ``rows`` is overwritten."""
    found, _ = _routine("trtrs", factor)(factor.T, rows.T, lower=0, trans=1, overwrite_b=1)
    return np.asarray(found).T


def half_solve_back(factor: Array, rows: Array) -> Array:
    """Return L'^-1 b for each row b of ``rows`` (m, n), as rows; ``rows`` is overwritten."""
    found, _ = lapack.dtrtrs(factor.T, rows.T, lower=0, overwrite_b=1)
    return np.asarray(found).T


def invert(factor: Array) -> None:
    """Replace a factor L by (L L')^-1."""
    invert_factor(factor)
    square_factor(factor)


def square_factor(L: Array) -> None:
    """Replace a triangle L by L' L."""
    if len(L):  # LAPACK rejects an empty matrix
        lapack.dlauum(L.T, lower=0, overwrite_c=1)


def invert_factor(L: Array) -> None:
    """Replace L by its inverse, recursively: with L = [[A, 0], [B, C]], B becomes -C^-1 B A^-1.

    The routine of LAPACK in OpenBLAS took six times as long at 455 rows, and 1.4 times as long at 1,500.
    """
    if len(L) <= SMALL:
        small = np.ascontiguousarray(L)
        lapack.dtrtri(small.T, lower=0, overwrite_c=1)
        L[...] = small
        return
    half = len(L) // 2
    A, B, C = L[:half, :half], L[half:, :half], L[half:, half:]
    invert_factor(A)
    invert_factor(C)
    product = blas.dtrmm(1.0, np.ascontiguousarray(A).T, np.ascontiguousarray(B).T, overwrite_b=1)
    B[...] = blas.dtrmm(-1.0, np.ascontiguousarray(C).T, product, side=1, overwrite_b=1).T


def add_outer(matrix: Array, x: Array, scale: float) -> None:
    """Add ``scale`` x x' to a matrix (n, n), for x (n,)."""
    blas.dsyr(scale, x, lower=0, a=matrix.T, overwrite_a=1)


def times(matrix: Array, B: Array) -> Array:
    """Return the product (n, m) of a symmetric matrix (n, n) and B (n, m)."""
    return np.asarray(blas.dsymm(1.0, matrix.T, np.asfortranarray(B), side=0, lower=0))


@jit()
def column_squares(matrix: Any) -> Array:
    """Return the sums of squares (n,) of the columns of a lower triangle L (n, n), the diagonal of L' L."""
    sums = np.zeros(matrix.shape[0])
    for i in range(matrix.shape[0]):
        row = matrix[i]
        for j in range(i + 1):
            sums[j] += row[j] * row[j]
    return sums


@jit()
def mirror(matrix: Any) -> None:
    """Copy the elements below the diagonal of a matrix (n, n) to those above it."""
    for i in range(matrix.shape[0]):
        for j in range(i):
            matrix[j, i] = matrix[i, j]


@jit(relaxed=REORDER)
def total(matrix: Any) -> float:
    """Return the sum of all elements of a symmetric matrix (n, n)."""
    below, diagonal = 0.0, 0.0
    for i in range(matrix.shape[0]):
        row = matrix[i]
        for j in range(i):
            below += row[j]
        diagonal += row[i]
    return 2.0 * below + diagonal


@jit()
def add(matrix: Any, other: Any) -> None:
    """Add the lower triangle ``other`` (n, n) to ``matrix`` (n, n)."""
    for i in range(matrix.shape[0]):
        into, row = matrix[i], other[i]
        for j in range(i + 1):
            into[j] += row[j]


@jit()
def multiply(matrix: Any, other: Any) -> None:
    """Multiply the lower triangle ``matrix`` (n, n) by ``other`` (n, n), element by element."""
    for i in range(matrix.shape[0]):
        into, row = matrix[i], other[i]
        for j in range(i + 1):
            into[j] *= row[j]


def _aligned_copy(b: Array) -> Array:
    """Return a copy of b (n,) that starts on a cache line."""
    out = aligned(len(b))
    out[:] = b
    return out
