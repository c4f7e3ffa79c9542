"""Copies, sums and differences of arrays inside kernels.

Use these instead of ``out[a:b] = array`` and ``out[i] += array``, whose shape check formats a message, which takes
seconds to compile, and instead of expressions such as ``a - b``: each takes up to half a second to compile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ep_bench.numerics.jit import jit


@jit()
def copy_vector(source: Any, out: Any) -> None:
    """Copy a vector (n,) to ``out`` (n,)."""
    for i in range(out.size):
        out[i] = source[i]


@jit()
def add_vector(source: Any, out: Any) -> None:
    """Add a vector (n,) to ``out`` (n,)."""
    for i in range(out.size):
        out[i] += source[i]


@jit()
def difference(a: Any, b: Any) -> Any:
    """Return a - b for vectors (n,)."""
    out = np.empty(a.size)
    for i in range(out.size):
        out[i] = a[i] - b[i]
    return out


@jit()
def subtract_matrix(less: Any, out: Any) -> None:
    """Subtract a matrix (n, m) from ``out`` (n, m)."""
    for i in range(out.shape[0]):
        row, into = less[i], out[i]
        for j in range(out.shape[1]):
            into[j] -= row[j]


@jit()
def scale_matrix(factor: float, out: Any) -> None:
    """Multiply ``out`` (n, m) by a number."""
    for i in range(out.shape[0]):
        into = out[i]
        for j in range(out.shape[1]):
            into[j] *= factor


@jit()
def copy_matrix(source: Any, out: Any) -> None:
    """Copy a matrix (n, m) to ``out`` (n, m)."""
    for i in range(out.shape[0]):
        row, into = source[i], out[i]
        for j in range(out.shape[1]):
            into[j] = row[j]


@jit()
def copy_rows(X: Any, y: Any, order: Any, batch: Any, targets: Any) -> None:
    """Copy the data points ``order`` (B,) of X (n, d) and y (n,) to the first rows of ``batch`` and ``targets``.

    ``batch`` is (B or more, d), ``targets`` (B or more,).
    """
    for b in range(order.size):
        row, into = X[order[b]], batch[b]
        targets[b] = y[order[b]]
        for j in range(batch.shape[1]):
            into[j] = row[j]
