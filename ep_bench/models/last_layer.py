"""The inputs of a network's last layer: features for models that are linear in the weights of that layer.

The network is that of ``mlp``, in NumPy. Weights of the hidden layers are the first weights of w (P,); layers (L, 3).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ep_bench.models.mlp import check_inputs

Array = NDArray[np.float64]


def features(X: Array, w: Array, layers: Any) -> Array:
    """Return the outputs of the last hidden units at X (N, d), or X without hidden layers, and a column of ones.

    Raises ValueError if the number of columns of X is not the number of inputs.
    """
    check_inputs(X, layers)
    Z = hidden_outputs(np.asarray(X, dtype=np.float64), w, layers)[-1]
    return np.column_stack([Z, np.ones(len(Z))])


def hidden_outputs(X: Array, w: Array, layers: Any) -> list[Array]:
    """Return X (B, d) and the outputs (B, units) of each hidden layer."""
    outputs = [X]
    for offset, n_in, n_out in layers[:-1].tolist():
        end = offset + n_in * n_out
        outputs.append(np.maximum(outputs[-1] @ w[offset:end].reshape(n_in, n_out) + w[end : end + n_out], 0.0))
    return outputs


def hidden_gradient(outputs: list[Array], above: Array, w: Array, layers: Any, g: Array) -> None:
    """Write the derivatives of a loss by the weights of the hidden layers to the beginning of g (P,).

    ``outputs`` are those of ``hidden_outputs``, ``above`` (B, units) the derivatives by the last of them.
    """
    for l in range(len(layers) - 2, -1, -1):
        offset, n_in, n_out = layers[l].tolist()
        end = offset + n_in * n_out
        below = above * (outputs[l + 1] > 0.0)
        np.matmul(outputs[l].T, below, out=g[offset:end].reshape(n_in, n_out))
        np.sum(below, axis=0, out=g[end : end + n_out])
        if l > 0:
            above = below @ w[offset:end].reshape(n_in, n_out).T
