"""Squared residuals of a network with one rectified hidden layer, and their gradient, in one pass over the data.

A tile of data points is propagated forward and, with its residuals r_b, backward at once, so the hidden outputs stay in
the processor's registers. With gates G_bj = [z_bj > 0] and the unscaled sums

    S_ij = sum_b x_bi G_bj r_b,    T_j = sum_b G_bj r_b

the derivatives are v_j S_ij by the weights w_ij and v_j T_j by the biases c_j. Since the hidden outputs are
z_bj = G_bj (sum_i x_bi w_ij + c_j), those by the weights v_j of the output are sum_i w_ij S_ij + c_j T_j.

In single precision the pass takes less than half the time; on processors without wide registers it is the only form.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ep_bench.numerics.jit import REORDER, jit
from ep_bench.numerics.simd import tile
from ep_bench.numerics.simd.vector import WIDTH, aligned


class RectifiedWorkspace(NamedTuple):
    """Scratch of the pass; each row of weights is padded to whole registers."""

    shape: Any  # of a tile: R rows of C registers
    weights: Any  # ((d + 2) * C * WIDTH,) weights of the inputs, biases, weights of the output
    sums: Any  # ((d + 1) * C * WIDTH,) S, T
    f: Any  # (R,) outputs of a tile, then its residuals


def workspace(layers: Any) -> RectifiedWorkspace | None:
    """Return scratch for a network with layers (L, 3), or None if this module does not support it.

    One hidden layer of at most 112 units is supported, on a processor with registers of ``WIDTH`` doubles.
    """
    _, d, n = layers[0].tolist()
    shape = tile.shape_of(n) if len(layers) == 2 and tile.wide_registers() else ()
    if not shape:
        return None
    padded = len(shape[0]) * WIDTH
    return RectifiedWorkspace(shape, aligned((d + 2) * padded), aligned((d + 1) * padded), aligned(len(shape)))


class SinglePrecision(NamedTuple):
    """Data and scratch in single precision."""

    X: Any  # (N, d)
    y: Any  # (N,)
    w: Any  # (P,)
    g: Any  # (P,)
    workspace: RectifiedWorkspace


def single_precision(X: Any, y: Any, layers: Any) -> SinglePrecision | None:
    """Return copies of data X (N, d), y (N,) and scratch in single precision, or None if the pass does not apply.

    It applies to one hidden layer of at most 112 units and at least as many data points as a tile has rows.
    """
    _, d, n = layers[0].tolist()
    shape = tile.shape_of(n) if len(layers) == 2 else ()
    if not shape or len(y) < len(shape):
        return None
    padded, weights = len(shape[0]) * WIDTH, (d + 2) * n + 1
    scratch = (_aligned_single(size) for size in ((d + 2) * padded, (d + 1) * padded, len(shape)))
    inputs, targets = (np.array(part, dtype=np.float32, order="C") for part in (X, y))
    w, g = np.empty((2, weights), dtype=np.float32)
    return SinglePrecision(inputs, targets, w, g, RectifiedWorkspace(shape, *scratch))


def _aligned_single(n: int) -> Any:
    """Return zeros (n,) in single precision that start on a cache line."""
    return aligned(-(-n // 2)).view(np.float32)[:n]


@jit(relaxed=REORDER)
def single_half_squares(w: Any, single: SinglePrecision, g: Any) -> float:
    """Do the same as ``half_squares`` in single precision, for weights w and a gradient g (P,) in double precision."""
    for i in range(w.size):
        single.w[i] = w[i]
    value = half_squares(single.X, single.y, single.w, single.workspace, single.g)
    for i in range(w.size):
        g[i] = single.g[i]
    return value


@jit(relaxed=REORDER)
def half_squares(X: Any, y: Any, w: Any, work: RectifiedWorkspace, g: Any) -> float:
    """Return half the sum of squared residuals of data X (N, d), y (N,), and write its gradient g (P,).

    N must be at least the number of rows of a tile; w is (P,). All arrays, those of ``work`` included, have one type.
    """
    rows, d = X.shape
    n = (len(w) - 1) // (d + 2)
    constant = w[-1]
    _pad(w, n, work.weights)
    work.sums[:] = 0.0
    squares = by_constant = 0.0
    x = X.reshape(rows * d)
    for start in range(0, rows, len(work.f)):
        first = min(start, rows - len(work.f))
        activations = _activations(x, first, d, work)
        for r in range(len(work.f)):
            residual = work.f[r] + constant - y[first + r]
            if first + r < start:  # the last tile overlaps the one before
                residual = 0.0
            work.f[r] = residual
            squares += residual * residual
            by_constant += residual
        _add_sums(activations, x, first, d, work)
    _gradient(work, n, d, g)
    g[-1] = by_constant
    return 0.5 * squares


@jit(relaxed=REORDER, inline=True)
def _activations(x: Any, first: int, d: int, work: RectifiedWorkspace) -> Any:
    """Return the inputs of the hidden units for a tile of x (N * d,), and write its outputs without the constant."""
    stride = len(work.shape[0]) * WIDTH
    A = tile.tile_of_rows(work.shape, work.weights, d * stride)
    for i in range(d):
        A = tile.plus_products(A, work.weights, i * stride, x, first * d + i, d)
    tile.store_positive_sums(A, work.weights, (d + 1) * stride, work.f, 0)
    return A


@jit(relaxed=REORDER, inline=True)
def _add_sums(activations: Any, x: Any, first: int, d: int, work: RectifiedWorkspace) -> None:
    """Add the contributions of a tile to S and T."""
    stride = len(work.shape[0]) * WIDTH
    D = tile.gate(activations, work.f, 0)
    for i in range(d):
        tile.add_products(D, work.sums, i * stride, x, first * d + i, d)
    tile.add_rows(D, work.sums, d * stride)


@jit(relaxed=REORDER)
def _pad(w: Any, n: int, out: Any) -> None:
    """Copy the rows of n weights of w (P,), without the constant, to padded rows."""
    rows = (len(w) - 1) // n
    stride = len(out) // rows
    for i in range(rows):
        for j in range(n):
            out[i * stride + j] = w[i * n + j]


@jit(relaxed=REORDER)
def _gradient(work: RectifiedWorkspace, n: int, d: int, g: Any) -> None:
    """Write the gradient g (P,), except for the constant, from S and T."""
    stride = len(work.shape[0]) * WIDTH
    weights, sums = work.weights, work.sums
    by_v = g[(d + 1) * n : (d + 2) * n]
    by_v[:] = 0.0
    for i in range(d + 1):
        for j in range(n):
            g[i * n + j] = weights[(d + 1) * stride + j] * sums[i * stride + j]
            by_v[j] += weights[i * stride + j] * sums[i * stride + j]
