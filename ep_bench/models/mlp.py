"""The multilayer perceptron that the networks' engines share: rectified hidden layers, one linear output.

A network's weights are one vector w (P,). The rows of ``layers`` (L, 3) say where each layer stands in it: offset,
inputs, outputs; its weights come first, (n_in, n_out) row by row, then its biases (n_out,). Weights enter unscaled:
a unit's input is x' W + b. Without hidden layers the network is a linear model with a constant.

Scratch of a batch of B rows is one vector, all rows of the first hidden layer, then those of the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ep_bench.numerics.jit import REORDER, jit

CHUNK = 512  # rows at a time where many are evaluated, so that a layer's outputs stay in the cache


def layout(inputs: int, hidden: Sequence[int]) -> Any:
    """Return the layers (L, 3) of a network with one output: offset, inputs, outputs."""
    rows, offset = [], 0
    for n_in, n_out in pairwise((inputs, *hidden, 1)):
        rows.append((offset, n_in, n_out))
        offset += (n_in + 1) * n_out
    return np.array(rows, dtype=np.int64)


def count(layers: Any) -> int:
    """Return the number of weights P, biases included."""
    offset, n_in, n_out = layers[-1].tolist()
    return int(offset + (n_in + 1) * n_out)


def units(layers: Any) -> int:
    """Return the number of hidden units, at least 1: the scratch that a row needs."""
    return max(int(layers[:-1, 2].sum()), 1)


def widest(layers: Any) -> int:
    """Return the number of units of the widest hidden layer, at least 1."""
    return int(layers[:-1, 2].max(initial=1))


def initial_weights(layers: Any, rng: np.random.Generator) -> Any:
    """Return weights (P,): N(0, 2 / n_in) below rectified units, N(0, 1 / n_in) below the output, biases 0."""
    parts = []
    for index, (_, n_in, n_out) in enumerate(layers.tolist()):
        gain = 1.0 if index == len(layers) - 1 else 2.0
        parts += [rng.normal(0.0, np.sqrt(gain / n_in), n_in * n_out), np.zeros(n_out)]
    return np.concatenate(parts)


@jit(relaxed=REORDER)
def forward(X: Any, w: Any, layers: Any, Z: Any, f: Any) -> None:
    """Write the outputs f (B,) of rows X (B, d), and the hidden units' outputs to scratch Z (B * units,)."""
    rows, at = X.shape[0], 0
    inputs = X
    for l in range(layers.shape[0] - 1):
        offset, n_in, n_out = layers[l]
        end = offset + n_in * n_out
        outputs = Z[at : at + rows * n_out].reshape(rows, n_out)
        np.dot(inputs, w[offset:end].reshape(n_in, n_out), outputs)
        rectify(outputs, w[end : end + n_out])
        inputs = outputs
        at += rows * n_out
    offset, n_in, _ = layers[-1]
    np.dot(inputs, w[offset : offset + n_in], f)
    bias = w[offset + n_in]
    for b in range(rows):
        f[b] += bias


@jit(relaxed=REORDER, inline=True)
def rectify(A: Any, bias: Any) -> None:
    """Turn products A (B, n) into max(A + bias, 0)."""
    for b in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[b, j] = max(A[b, j] + bias[j], 0.0)


@jit(relaxed=REORDER)
def backward(X: Any, w: Any, layers: Any, Z: Any, df: Any, scale: float, g: Any, D: Any) -> None:
    """Write the gradient g (P,) of a loss with derivatives df (B,) by the outputs, from the scratch of ``forward``.

    ``D`` (2, B * widest) is scratch. ``scale`` is what an active unit's output was multiplied by: 1, or under dropout
    1 / (1 - rate); a unit whose output is 0 passes nothing on.
    """
    rows, last = X.shape[0], layers.shape[0] - 1
    at = rows * np.sum(layers[:last, 2])
    for l in range(last, -1, -1):
        offset, n_in, n_out = layers[l]
        end = offset + n_in * n_out
        if l > 0:
            at -= rows * n_in
            inputs = Z[at : at + rows * n_in].reshape(rows, n_in)
        else:
            inputs = X
        below = D[l % 2, : rows * n_in].reshape(rows, n_in) if l > 0 else D[0, :0].reshape(0, n_in)
        if l == last:
            np.dot(inputs.T, df, g[offset:end])
            g[end] = np.sum(df)
            if l > 0:
                _outer(df, w[offset:end], inputs, scale, below)
        else:
            above = D[(l + 1) % 2, : rows * n_out].reshape(rows, n_out)
            np.dot(inputs.T, above, g[offset:end].reshape(n_in, n_out))
            _column_sums(above, g[end : end + n_out])
            if l > 0:
                np.dot(above, w[offset:end].reshape(n_in, n_out).T, below)
                _gate(inputs, scale, below)


@jit(relaxed=REORDER, inline=True)
def _outer(df: Any, v: Any, Z: Any, scale: float, out: Any) -> None:
    """Write df_b v_j where unit j was active in row b, else 0."""
    for b in range(Z.shape[0]):
        d = df[b] * scale
        for j in range(Z.shape[1]):
            out[b, j] = d * v[j] if Z[b, j] > 0.0 else 0.0


@jit(relaxed=REORDER, inline=True)
def _gate(Z: Any, scale: float, out: Any) -> None:
    for b in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            out[b, j] = out[b, j] * scale if Z[b, j] > 0.0 else 0.0


@jit(relaxed=REORDER, inline=True)
def _column_sums(A: Any, out: Any) -> None:
    for j in range(A.shape[1]):
        out[j] = 0.0
    for b in range(A.shape[0]):
        for j in range(A.shape[1]):
            out[j] += A[b, j]


@jit(relaxed=REORDER)
def _evaluate(X: Any, W: Any, layers: Any, Z: Any, f: Any, out: Any, at: int) -> None:
    for k in range(W.shape[0]):
        forward(X, W[k], layers, Z, f)
        out[k, at : at + X.shape[0]] = f


def evaluate(X: Any, W: Any, layers: Any) -> Any:
    """Return the outputs (K, N) of networks with weights W (K, P) on rows X (N, d).

    Raises ValueError where X has another number of columns than the networks inputs.
    """
    if X.ndim != 2 or X.shape[1] != layers[0, 1]:
        raise ValueError(f"X must have shape (n, {layers[0, 1]}), found {X.shape}")
    out, weights = np.empty((len(W), len(X))), np.ascontiguousarray(W)
    for at in range(0, len(X), CHUNK):
        rows = np.array(X[at : at + CHUNK], dtype=np.float64, order="C")
        _evaluate(rows, weights, layers, np.empty(len(rows) * units(layers)), np.empty(len(rows)), out, at)
    return out


@jit(relaxed=REORDER)
def row_gradient(x: Any, w: Any, layers: Any, Z: Any, f: Any, g: Any, D: Any) -> Any:
    """Write output f (1,) and its gradient g (P,) by the weights for a row x (1, d); return the gradient's square."""
    forward(x, w, layers, Z, f)
    backward(x, w, layers, Z, np.ones(1), 1.0, g, D)
    total = 0.0
    for i in range(g.size):
        total += g[i] * g[i]
    return total


@jit()
def shortened(rate: float, momentum: float, square: float) -> float:
    """Return the step size of a row for gradient descent on half the squared error.

    It is ``rate``, but no more than brings the row's own output to its target, momentum included: a step changes the
    output by rate / (1 - momentum) times the gradient's ``square`` times the residual. A row far out among the inputs
    would else throw the weights about.
    """
    return min(rate, (1.0 - momentum) / square)
