"""The perceptron of ``mlp`` with two linear outputs, which share the hidden layers.

Weights, layers and scratch are stored as in ``mlp``, with ``mlp.layout(inputs, hidden, outputs=2)``. Symbols of the
kernels: inputs X (B, d), weights w (P,), layers (L, 3), hidden outputs Z (B * units,), outputs F (B, 2), gradient
g (P,), scratch D (2, B * widest).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ep_bench.models import mlp
from ep_bench.models.mlp import column_sums, pass_active, rectify
from ep_bench.numerics.copying import copy_matrix
from ep_bench.numerics.jit import REORDER, jit


@jit(relaxed=REORDER)
def forward(X: Any, w: Any, layers: Any, Z: Any, F: Any) -> None:
    """Write the outputs F (B, 2) at X (B, d), and the outputs of the hidden units to Z (B * units,)."""
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
    offset, n_in, n_out = layers[-1]
    end = offset + n_in * n_out
    np.dot(inputs, w[offset:end].reshape(n_in, n_out), F)
    for b in range(rows):
        F[b, 0] += w[end]
        F[b, 1] += w[end + 1]


@jit(relaxed=REORDER)
def backward(X: Any, w: Any, layers: Any, Z: Any, dF: Any, g: Any, D: Any, dX: Any) -> None:
    """Write the gradient g (P,) of a loss with derivatives dF (B, 2) by the outputs; ``forward`` wrote Z.

    Also writes the derivatives by the inputs to dX (B, d), unless dX has no rows.
    """
    rows, last = X.shape[0], layers.shape[0] - 1
    at = 0
    for l in range(last):
        at += rows * layers[l, 2]
    above = dF
    for l in range(last, -1, -1):
        offset, n_in, n_out = layers[l]
        end = offset + n_in * n_out
        inputs = X
        if l > 0:
            at -= rows * n_in
            inputs = Z[at : at + rows * n_in].reshape(rows, n_in)
        np.dot(inputs.T, above, g[offset:end].reshape(n_in, n_out))
        column_sums(above, g[end : end + n_out])
        weights = w[offset:end].reshape(n_in, n_out)
        if l > 0:
            below = D[l % 2, : rows * n_in].reshape(rows, n_in)
            np.dot(above, weights.T, below)
            pass_active(inputs, 1.0, below)
            above = below
        elif dX.shape[0] > 0:
            np.dot(above, weights.T, dX)


@jit(relaxed=REORDER)
def _evaluate(X: Any, W: Any, layers: Any, Z: Any, F: Any, out: Any, at: int) -> None:
    """Write the outputs of networks W (K, P) at X (B, d) to out[:, at : at + B]; scratch Z (B * units,), F (B, 2)."""
    for k in range(W.shape[0]):
        forward(X, W[k], layers, Z, F)
        copy_matrix(F, out[k, at : at + F.shape[0]])


def evaluate(X: Any, W: Any, layers: Any) -> Any:
    """Return the outputs (K, N, 2) of networks with weights W (K, P) at X (N, d).

    Raises ValueError if the number of columns of X is not the number of inputs.
    """
    mlp.check_inputs(X, layers)
    out, weights = np.empty((len(W), len(X), 2)), np.ascontiguousarray(W)
    for at in range(0, len(X), mlp.CHUNK):
        rows = np.array(X[at : at + mlp.CHUNK], dtype=np.float64, order="C")
        _evaluate(rows, weights, layers, np.empty(len(rows) * mlp.units(layers)), np.empty((len(rows), 2)), out, at)
    return out
