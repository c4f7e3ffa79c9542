"""Residuals and gradients of a network, and its Jacobian by the weights: in factors, in blocks of rows.

The derivative of the output f by the weight from input i to unit j of a layer is a product, in a row:

    J_ij = a_i s_j

a     inputs of the layer, the last one the constant 1 of the biases (B, n_in + 1)
s     derivatives of f by the inputs of the layer's units, of the output layer 1 (B, n_out)

A layer's weights stand in the network's vector in the order of the matrix (n_in + 1, n_out) that this says, row by row.
No array here has a place for every pair of a row and a weight but those of one block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk

from ep_bench.models import mlp
from ep_bench.models.residuals import square_norm
from ep_bench.numerics.jit import REORDER, jit
from ep_bench.numerics.simd.vector import aligned
from ep_bench.types import Array

BLOCK = 2**22  # numbers in a block's Jacobian, at most, but for blocks of the fewest rows
FEWEST = 16


class JacobianFactors(NamedTuple):
    """The Jacobian of a block of B rows: a layer each."""

    inputs: list[Array]  # (B, n_in + 1) a
    slopes: list[Array]  # (B, n_out) s

    def jacobian(self, first: int = 0) -> Array:
        """Return the derivatives (B, Q) by the weights of the layers from ``first`` on."""
        pairs = list(zip(self.inputs[first:], self.slopes[first:], strict=True))
        rows, sizes = len(pairs[0][0]), [a.shape[1] * s.shape[1] for a, s in pairs]
        out, at = matrix(sum(sizes), rows).T, 0
        for (a, s), size in zip(pairs, sizes, strict=True):
            out[:, at : at + size] = (a[:, :, None] * s[:, None, :]).reshape(rows, size)
            at += size
        return out


def matrix(rows: int, columns: int) -> Array:
    """Return a matrix of zeros, column by column from a cache line on.

    The last bits of what BLAS and LAPACK return may hang on where arrays begin, and the searches magnify them.
    """
    return aligned(rows * columns).reshape(rows, columns, order="F")


def blocks(X: Array, layers: Any, weights: int) -> Iterator[slice]:
    """Yield slices of the rows X (N, d) whose derivatives by so many weights fit into a block."""
    rows = max(BLOCK // max(weights, mlp.units(layers)), FEWEST)
    for start in range(0, len(X), rows):
        yield slice(start, start + rows)


def factors(X: Array, w: Array, layers: Any) -> tuple[Array, JacobianFactors]:
    """Return the outputs f (B,) of rows X (B, d), and their Jacobian in factors."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    rows, f, Z = len(X), np.empty(len(X)), np.empty(len(X) * mlp.units(layers))
    mlp.forward(X, w, layers, Z, f)
    hidden, at = [], 0
    for _, _, n_out in layers[:-1].tolist():
        hidden.append(Z[at : at + rows * n_out].reshape(rows, n_out))
        at += rows * n_out
    ones = np.ones((rows, 1))
    slopes = [ones]
    for (offset, n_in, n_out), z in zip(layers[:0:-1].tolist(), hidden[::-1], strict=True):
        W = w[offset : offset + n_in * n_out].reshape(n_in, n_out)
        slopes.insert(0, (slopes[0] @ W.T) * (z > 0.0))
    return f, JacobianFactors([np.hstack([z, ones]) for z in (X, *hidden)], slopes)


def normal_equations(X: Array, y: Array, w: Array, layers: Any) -> tuple[Array, Array]:
    """Return J'J (P, P), its upper triangle, and J'(f - y) (P,)."""
    product, gradient = matrix(len(w), len(w)), np.zeros(len(w))
    for rows in blocks(X, layers, len(w)):
        f, parts = factors(X[rows], w, layers)
        J = parts.jacobian()
        product = dsyrk(1.0, J.T, beta=1.0, c=product, overwrite_c=True)
        gradient += J.T @ (f - y[rows])
    return product, gradient


def gram(X: Array, w: Array, layers: Any, first: int) -> Array:
    """Return J'J (Q, Q) of the weights of the layers from ``first`` on, its upper triangle."""
    size = len(w) - int(layers[first, 0])
    product = matrix(size, size)
    for rows in blocks(X, layers, size):
        J = factors(X[rows], w, layers)[1].jacobian(first)
        product = dsyrk(1.0, J.T, beta=1.0, c=product, overwrite_c=True)
    return product


def sum_of_squares(X: Array, y: Array, w: Array, layers: Any) -> float:
    """Return the sum of the squared residuals."""
    return float(np.sum((mlp.evaluate(X, w[None], layers)[0] - y) ** 2))


class HalfSquaresGradient:
    """Half the sum of squares and its gradient, rows in chunks, with scratch that is made once."""

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


@jit(relaxed=REORDER)
def _half_squares(X: Any, y: Any, layers: Any, w: Any, Z: Any, D: Any, f: Any, by_w: Any, gradient: Any) -> float:
    """Return sum (f - y)^2 / 2 and add its gradient to ``gradient``, as many rows at a time as f has places."""
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
