"""Residuals and gradients of a network, and its Jacobian by the weights, in factors and in blocks of data points.

Units are rectified or tanh; ``kind`` is the activation, one of the numbers of ``models.residuals.ACTIVATIONS``.

At each data point, the derivative of the output f by the weight from input i to unit j of a layer is a product:

    J_ij = a_i s_j

a     inputs of the layer (B, n_in + 1); the last one is the constant 1 of the biases
s     derivatives of f by the inputs of the units of the layer (B, n_out), 1 in the output layer

The weights of a layer are stored in the vector of weights in the order of the matrix (n_in + 1, n_out), row by row.
Only the Jacobian of one block is stored at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk

from ep_bench.models import mlp, residuals, smooth
from ep_bench.models.residuals import RELU, square_norm
from ep_bench.numerics.jit import REORDER, jit
from ep_bench.numerics.simd.vector import aligned
from ep_bench.types import Array

BLOCK = 2**22  # maximum number of elements of a block's Jacobian, unless the block has MIN_BLOCK_SIZE data points
MIN_BLOCK_SIZE = 16


class JacobianFactors(NamedTuple):
    """The Jacobian of a block of B data points, one pair of factors per layer."""

    inputs: list[Array]  # (B, n_in + 1) a
    slopes: list[Array]  # (B, n_out) s

    def jacobian(self, first: int = 0) -> Array:
        """Return the derivatives (B, Q) by the weights of the layers from ``first`` on."""
        pairs = list(zip(self.inputs[first:], self.slopes[first:], strict=True))
        rows, sizes = len(pairs[0][0]), [a.shape[1] * s.shape[1] for a, s in pairs]
        out, at = aligned_matrix(sum(sizes), rows).T, 0
        for (a, s), size in zip(pairs, sizes, strict=True):
            out[:, at : at + size] = (a[:, :, None] * s[:, None, :]).reshape(rows, size)
            at += size
        return out


def aligned_matrix(rows: int, columns: int) -> Array:
    """Return a matrix of zeros in column order that starts on a cache line.

    The last bits of the results of BLAS and LAPACK can depend on the alignment of arrays, and the searches amplify
    these differences.
    """
    return aligned(rows * columns).reshape(rows, columns, order="F")


def blocks(X: Array, layers: Any, weights: int) -> Iterator[slice]:
    """Yield slices of the data points X (N, d) whose derivatives by ``weights`` weights fit into a block."""
    rows = max(BLOCK // max(weights, mlp.units(layers)), MIN_BLOCK_SIZE)
    for start in range(0, len(X), rows):
        yield slice(start, start + rows)


def factors(X: Array, w: Array, layers: Any, kind: int = RELU) -> tuple[Array, JacobianFactors]:
    """Return the outputs f (B,) at X (B, d) of a network with activation ``kind``, and their Jacobian in factors."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    rows, f, Z = len(X), np.empty(len(X)), np.empty(len(X) * mlp.units(layers))
    derivatives = np.empty(len(Z))
    if kind == RELU:
        mlp.forward(X, w, layers, Z, f)
        derivatives[:] = Z > 0.0
    else:
        smooth.forward(X, w, layers, kind, Z, derivatives, f)
    hidden, by_input, at = [], [], 0
    for _, _, n_out in layers[:-1].tolist():
        hidden.append(Z[at : at + rows * n_out].reshape(rows, n_out))
        by_input.append(derivatives[at : at + rows * n_out].reshape(rows, n_out))
        at += rows * n_out
    ones = np.ones((rows, 1))
    slopes = [ones]
    for (offset, n_in, n_out), derivative in zip(layers[:0:-1].tolist(), by_input[::-1], strict=True):
        W = w[offset : offset + n_in * n_out].reshape(n_in, n_out)
        slopes.insert(0, (slopes[0] @ W.T) * derivative)
    return f, JacobianFactors([np.hstack([z, ones]) for z in (X, *hidden)], slopes)


def normal_equations(X: Array, y: Array, w: Array, layers: Any) -> tuple[Array, Array]:
    """Return the upper triangle of J'J (P, P), and J'(f - y) (P,)."""
    product, gradient = aligned_matrix(len(w), len(w)), np.zeros(len(w))
    for rows in blocks(X, layers, len(w)):
        f, parts = factors(X[rows], w, layers)
        J = parts.jacobian()
        product = dsyrk(1.0, J.T, beta=1.0, c=product, overwrite_c=True)
        gradient += J.T @ (f - y[rows])
    return product, gradient


def gram(X: Array, w: Array, layers: Any, first: int, kind: int = RELU) -> Array:
    """Return the upper triangle of J'J (Q, Q) for the weights of the layers from ``first`` on."""
    size = len(w) - int(layers[first, 0])
    product = aligned_matrix(size, size)
    for rows in blocks(X, layers, size):
        J = factors(X[rows], w, layers, kind)[1].jacobian(first)
        product = dsyrk(1.0, J.T, beta=1.0, c=product, overwrite_c=True)
    return product


def outputs(X: Array, W: Array, layers: Any, kind: int) -> Array:
    """Return the outputs (K, N) of networks with weights W (K, P) and activation ``kind`` at X (N, d)."""
    evaluated = mlp.evaluate(X, W, layers) if kind == RELU else residuals.outputs(X, W, layers, kind)
    return np.asarray(evaluated)


class HalfSquaresGradient:
    """Half the sum of squares and its gradient for rectified units; scratch arrays are allocated once."""

    def __init__(self, X: Array, y: Array, layers: Any) -> None:
        rows, size = min(len(y), mlp.CHUNK), mlp.count(layers)
        self._rows = (X, y, layers)
        self._scratch = (
            np.empty(rows * mlp.units(layers)), np.empty((2, rows * mlp.widest(layers))), np.empty(rows),
            np.empty(size),
        )  # fmt: skip

    def __call__(self, w: Array) -> tuple[float, Array]:
        """Return the value and the gradient (P,) at weights w (P,)."""
        gradient = np.zeros(len(w))
        return _half_squares(*self._rows, w, *self._scratch, gradient), gradient


class SmoothHalfSquaresGradient:
    """Half the sum of squares and its gradient for units with activation ``kind``; scratch is allocated once."""

    def __init__(self, X: Array, y: Array, layers: Any, kind: int) -> None:
        self._rows, self._layers, self._kind = (X, y), layers, kind
        self._work = residuals.workspace(layers, kind)

    def __call__(self, w: Array) -> tuple[float, Array]:
        """Return the value and the gradient (P,) at weights w (P,)."""
        gradient = np.empty(len(w))
        half = residuals.half_squares(*self._rows, w, self._layers, self._kind, self._work, gradient)
        return float(half), gradient


@jit(relaxed=REORDER)
def _half_squares(X: Any, y: Any, layers: Any, w: Any, Z: Any, D: Any, f: Any, by_w: Any, gradient: Any) -> float:
    """Return sum (f - y)^2 / 2 and add its gradient to ``gradient`` (P,), in chunks of B = f.size data points.

    X (N, d), y (N,), layers (L, 3), w (P,); scratch Z (B * units,), D (2, B * widest), f (B,), by_w (P,).
    """
    half = 0.0
    for start in range(0, y.size, f.size):
        rows = min(f.size, y.size - start)
        block, out = X[start : start + rows], f[:rows]
        mlp.forward(block, w, layers, Z, out)
        for b in range(rows):
            out[b] -= y[start + b]
        half += 0.5 * square_norm(out)
        mlp.backward(block, w, layers, Z, out, 1.0, by_w, D)
        for i in range(by_w.size):
            gradient[i] += by_w[i]
    return half
