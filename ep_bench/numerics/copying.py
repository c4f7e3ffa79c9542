"""Copies of arrays inside kernels.

The compiler takes seconds for ``out[a:b] = array``, since the check of shapes brings the formatting of its message.
"""

from __future__ import annotations

from typing import Any

from ep_bench.numerics.jit import jit


@jit()
def copy_vector(source: Any, out: Any) -> None:
    """Write a vector (n,) to another of its length."""
    for i in range(out.size):
        out[i] = source[i]


@jit()
def copy_matrix(source: Any, out: Any) -> None:
    """Write a matrix (n, m) to another of its shape."""
    for i in range(out.shape[0]):
        row, into = source[i], out[i]
        for j in range(out.shape[1]):
            into[j] = row[j]


@jit()
def copy_rows(X: Any, y: Any, order: Any, batch: Any, targets: Any) -> None:
    """Write the rows of X (n, d) and y (n,) at the indices ``order`` (B,) to the first rows of a batch (B, d), (B,)."""
    for b in range(order.size):
        row, into = X[order[b]], batch[b]
        targets[b] = y[order[b]]
        for j in range(batch.shape[1]):
            into[j] = row[j]
