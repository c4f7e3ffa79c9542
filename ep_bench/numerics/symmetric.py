"""Symmetric matrices by their lower triangles, in place.

A matrix (n, n) lies row by row, from a cache line on (``square``): the last bits of what LAPACK returns may hang on
where arrays begin, and searches magnify them. What stands above the diagonal is not read, and left as it is. LAPACK
counts column by column and so meets the upper triangle of the transpose.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from ep_bench.numerics.jit import REORDER, jit
from ep_bench.numerics.simd.vector import aligned

Array = NDArray[np.float64]
SMALL = 64  # rows that are inverted at once


def square(n: int) -> Array:
    """Return a matrix of zeros (n, n)."""
    return aligned(n * n).reshape(n, n)


def factorise(matrix: Array) -> bool:
    """Turn a positive definite matrix into its factor L, L L' the matrix; return whether it is one, and finite."""
    _, failed = lapack.dpotrf(matrix.T, lower=0, clean=0, overwrite_a=1)
    # LAPACK may let NaN pass
    return failed == 0 and bool(np.isfinite(matrix.diagonal()).all())


def log_determinant(factor: Array) -> float:
    """Return the log determinant of L L'."""
    return 2.0 * float(np.log(factor.diagonal()).sum())


def solve(factor: Array, b: Array) -> Array:
    """Return (L L')^-1 b for b (n,)."""
    found, _ = lapack.dpotrs(factor.T, _moved(b), lower=0, overwrite_b=1)
    return np.asarray(found)


def half_solve(factor: Array, rows: Array) -> Array:
    """Return L^-1 b for each row b of (m, n), as rows; the argument is used up."""
    found, _ = lapack.dtrtrs(factor.T, rows.T, lower=0, trans=1, overwrite_b=1)
    return np.asarray(found).T


def half_solve_back(factor: Array, rows: Array) -> Array:
    """Return L'^-1 b for each row b of (m, n), as rows; the argument is used up."""
    found, _ = lapack.dtrtrs(factor.T, rows.T, lower=0, overwrite_b=1)
    return np.asarray(found).T


def invert(factor: Array) -> None:
    """Turn a factor L into (L L')^-1."""
    invert_factor(factor)
    square_factor(factor)


def square_factor(L: Array) -> None:
    """Turn a triangle L into L' L."""
    if len(L):  # LAPACK complains of a matrix without rows
        lapack.dlauum(L.T, lower=0, overwrite_c=1)


def invert_factor(L: Array) -> None:
    """Turn L into its inverse, by halves: where the lower half is [B C] and the upper A, B becomes -C^-1 B A^-1.

    LAPACK's own routine, as OpenBLAS has it, took six times as long at 455 rows, 1.4 times at 1,500.
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
    """Add ``scale`` x x' to a matrix."""
    blas.dsyr(scale, x, lower=0, a=matrix.T, overwrite_a=1)


def times(matrix: Array, B: Array) -> Array:
    """Return the product (n, m) of a symmetric matrix with B (n, m)."""
    return np.asarray(blas.dsymm(1.0, matrix.T, np.asfortranarray(B), side=0, lower=0))


@jit()
def column_squares(matrix: Any) -> Array:
    """Return the sum of squares (n,) of each column of a lower triangle, which is the diagonal of L' L."""
    sums = np.zeros(matrix.shape[0])
    for i in range(matrix.shape[0]):
        row = matrix[i]
        for j in range(i + 1):
            sums[j] += row[j] * row[j]
    return sums


@jit()
def mirror(matrix: Any) -> None:
    """Write what stands below the diagonal above it too."""
    for i in range(matrix.shape[0]):
        for j in range(i):
            matrix[j, i] = matrix[i, j]


@jit(relaxed=REORDER)
def total(matrix: Any) -> float:
    """Return the sum of all elements, those above the diagonal being those below it."""
    below, diagonal = 0.0, 0.0
    for i in range(matrix.shape[0]):
        row = matrix[i]
        for j in range(i):
            below += row[j]
        diagonal += row[i]
    return 2.0 * below + diagonal


@jit()
def add(matrix: Any, other: Any) -> None:
    """Add another lower triangle."""
    for i in range(matrix.shape[0]):
        into, row = matrix[i], other[i]
        for j in range(i + 1):
            into[j] += row[j]


@jit()
def multiply(matrix: Any, other: Any) -> None:
    """Multiply elements by those of another lower triangle."""
    for i in range(matrix.shape[0]):
        into, row = matrix[i], other[i]
        for j in range(i + 1):
            into[j] *= row[j]


def _moved(b: Array) -> Array:
    out = aligned(len(b))
    out[:] = b
    return out
