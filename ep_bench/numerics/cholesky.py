"""Cholesky factor and its inverse, for kernels that do not call LAPACK: full matrices, lower triangles.

The last bits of LAPACK's results can depend on the alignment of arrays. The results of these functions do not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ep_bench.numerics.jit import FUSE, jit

BLOCK = 32  # rows per block


@jit(relaxed=FUSE)
def inverse_factor(W: Any) -> tuple[Any, float]:
    """Return L^-1 (M, M), where L L' = W, and log|W|, which is NaN if W is not positive definite.

    The lower triangle of W (M, M) is read and overwritten, block by block.
    """
    M = len(W)
    out, log_determinant = np.zeros((M, M)), 0.0
    for a in range(0, M, BLOCK):
        b = min(a + BLOCK, M)
        corner = W[a:b, a:b].copy()
        log_determinant += factorise(corner)
        inverse = invert_lower(corner)
        for i in range(b - a):
            for j in range(b - a):
                out[a + i, a + j] = inverse[i, j]
        if a > 0:
            left = np.dot(inverse, np.dot(W[a:b, :a].copy(), out[:a, :a].copy()))
            for i in range(b - a):
                for j in range(a):
                    out[a + i, j] = -left[i, j]
        if b < M:
            panel = np.dot(W[b:, a:b].copy(), inverse.T)
            for i in range(M - b):
                for j in range(b - a):
                    W[b + i, a + j] = panel[i, j]
            square = np.dot(panel, panel.T)
            for i in range(M - b):
                row, less = W[b + i], square[i]
                for j in range(i + 1):
                    row[b + j] -= less[j]
    return out, log_determinant


@jit(relaxed=FUSE)
def factorise(W: Any) -> float:
    """Replace the lower triangle of a small W (M, M) by its factor L; return log|W|, NaN if W has no factor."""
    M, log_determinant = len(W), 0.0
    column = np.empty(M)
    for j in range(M):
        pivot = W[j, j]
        if not pivot > 0.0:
            return np.nan
        log_determinant += math.log(pivot)
        W[j, j] = math.sqrt(pivot)
        for i in range(j + 1, M):
            column[i] = W[i, j] / W[j, j]
            W[i, j] = column[i]
        for i in range(j + 1, M):
            x, row = column[i], W[i]
            for k in range(j + 1, i + 1):
                row[k] -= x * column[k]
    return log_determinant


@jit(relaxed=FUSE)
def invert_lower(L: Any) -> Any:
    """Return the inverse (M, M) of a small lower triangle L (M, M)."""
    M = len(L)
    out = np.zeros((M, M))
    for i in range(M):
        row, into = L[i], out[i]
        for k in range(i):
            x, other = row[k], out[k]
            for j in range(k + 1):
                into[j] -= x * other[j]
        scale = 1.0 / row[i]
        for j in range(i):
            into[j] *= scale
        into[i] = scale
    return out
