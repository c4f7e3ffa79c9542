"""The perceptron of ``mlp`` with smooth hidden units: tanh, or the scaled error function.

Weights, layers and scratch are stored as in ``mlp``. A second scratch S, of the shape of Z, contains the derivatives of
the outputs of the hidden units by their inputs. The scaled error function of Jylanki, Nummenmaa and Vehtari (2014,
equation 2) is g(a) = (2 Phi(a) - 1) / sqrt(K) in a layer of K units.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ep_bench.numerics.exponential import exponential
from ep_bench.numerics.jit import REORDER, jit
from ep_bench.numerics.normal import SHIFT, normal_tail
from ep_bench.numerics.simd.vector import WIDTH, absolute, load, select_above, store

TANH, PROBIT = 1, 2


@jit(relaxed=REORDER)
def forward(X: Any, w: Any, layers: Any, kind: int, Z: Any, S: Any, f: Any) -> None:
    """Write the outputs f (B,) at X (B, d), the outputs Z and the slopes S (B * units,) of the hidden units.

    w (P,), layers (L, 3); ``kind`` is TANH or PROBIT.
    """
    rows, at, last = X.shape[0], 0, layers.shape[0] - 1
    inputs = X
    for l in range(last):
        offset, n_in, n_out = layers[l]
        end = offset + n_in * n_out
        flat, slopes = Z[at : at + rows * n_out], S[at : at + rows * n_out]
        outputs = flat.reshape(rows, n_out)
        np.dot(inputs, w[offset:end].reshape(n_in, n_out), outputs)
        if kind == TANH:
            _tanh_layer(flat, w[end : end + n_out], slopes)
        else:
            _probit_layer(flat, w[end : end + n_out], slopes)
        inputs = outputs
        at += rows * n_out
    offset, n_in, _ = layers[last]
    np.dot(inputs, w[offset : offset + n_in], f)
    for b in range(rows):
        f[b] += w[offset + n_in]


@jit(relaxed=REORDER)
def backward(X: Any, w: Any, layers: Any, Z: Any, S: Any, df: Any, g: Any, D: Any) -> None:
    """Write the gradient g (P,) of a loss with derivatives df (B,) by the outputs; ``forward`` wrote Z and S.

    ``D`` (2, B * widest) is scratch.
    """
    rows, last = X.shape[0], layers.shape[0] - 1
    at = 0
    for l in range(last):
        at += rows * layers[l, 2]
    for l in range(last, -1, -1):
        offset, n_in, n_out = layers[l]
        end = offset + n_in * n_out
        if l > 0:
            at -= rows * n_in
            inputs = Z[at : at + rows * n_in].reshape(rows, n_in)
        else:
            inputs = X
        below = D[l % 2, : rows * n_in if l > 0 else 0]
        if l == last:
            np.dot(inputs.T, df, g[offset:end])
            g[end] = np.sum(df)
            if l > 0:
                _output_gradient(df, w[offset:end], S[at : at + rows * n_in], below)
        else:
            above = D[(l + 1) % 2, : rows * n_out].reshape(rows, n_out)
            np.dot(inputs.T, above, g[offset:end].reshape(n_in, n_out))
            _column_sums(above, g[end : end + n_out])
            if l > 0:
                np.dot(above, w[offset:end].reshape(n_in, n_out).T, below.reshape(rows, n_in))
                slopes = S[at : at + rows * n_in]
                for i in range(below.size):
                    below[i] *= slopes[i]


@jit(relaxed=REORDER)
def _tanh_layer(A: Any, bias: Any, S: Any) -> None:
    """Replace the products A (B * n,) by tanh(A + bias), and write the slopes S (B * n,); bias (n,)."""
    n = bias.size
    whole = n // WIDTH * WIDTH
    for at in range(0, A.size, n):
        for j in range(0, whole, WIDTH):
            g, slope = _tanh(load(A, at + j) + load(bias, j))
            store(A, at + j, g)
            store(S, at + j, slope)
        for j in range(whole, n):
            A[at + j], S[at + j] = _tanh(A[at + j] + bias[j])


@jit(relaxed=REORDER)
def _probit_layer(A: Any, bias: Any, S: Any) -> None:
    """Replace the products A (B * n,) by (2 Phi(A + bias) - 1) / sqrt(n), and write the slopes S; bias (n,)."""
    n = bias.size
    whole, scale = n // WIDTH * WIDTH, 1.0 / math.sqrt(n)
    for at in range(0, A.size, n):
        for j in range(0, whole, WIDTH):
            g, slope = _odd_probit(load(A, at + j) + load(bias, j))
            store(A, at + j, g * scale)
            store(S, at + j, slope * scale)
        for j in range(whole, n):
            g, slope = _odd_probit(A[at + j] + bias[j])
            A[at + j], S[at + j] = g * scale, slope * scale


@jit(relaxed=REORDER, inline=True)
def _tanh(a: Any) -> Any:
    """Return tanh(a) and its slope, for a vector or a float, from h = 1 - tanh(a)."""
    h = 2.0 / (1.0 + exponential(2.0 * a))
    return 1.0 - h, h * (2.0 - h)


@jit(relaxed=REORDER, inline=True)
def _odd_probit(a: Any) -> Any:
    """Return 2 Phi(a) - 1 and its slope, for a vector or a float."""
    t = absolute(a)
    density, tail, _ = normal_tail(t, 1.0 / (t + SHIFT))
    g = 1.0 - 2.0 * tail
    return select_above(a, 0.0, g, -g), 2.0 * density


@jit(relaxed=REORDER, inline=True)
def _output_gradient(df: Any, v: Any, S: Any, below: Any) -> None:
    """Write the derivatives df_b v_j S_bj by the inputs of the last layer; df (B,), v (n,), S and below (B * n,)."""
    n = v.size
    for b in range(df.size):
        for j in range(n):
            below[b * n + j] = df[b] * v[j] * S[b * n + j]


@jit(relaxed=REORDER, inline=True)
def _column_sums(A: Any, out: Any) -> None:
    """Write the sums (n,) of the columns of A (B, n)."""
    out[:] = 0.0
    for b in range(A.shape[0]):
        for j in range(A.shape[1]):
            out[j] += A[b, j]
