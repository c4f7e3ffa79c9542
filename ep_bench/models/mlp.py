"""The multilayer perceptron that the neural-network methods share: rectified hidden layers and one linear output.

The weights of a network are one vector w (P,). Each row of ``layers`` (L, 3) describes a layer: its offset in w, its
inputs and its outputs. The weights of a layer, (n_in, n_out) row by row, precede its biases (n_out,). Weights are not
scaled: the input of a unit is x' W + b. Without hidden layers, the network is a linear model with a constant.

The scratch for a batch of B data points is one vector (B * units,): the outputs of the first hidden layer for all data
points, then those of the next.

Symbols of the kernels: inputs X (B, d), weights w (P,), layers (L, 3), hidden outputs Z (B * units,), outputs f (B,),
gradient g (P,), scratch D (2, B * widest).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ep_bench.numerics.copying import copy_vector
from ep_bench.numerics.jit import REORDER, jit
from ep_bench.numerics.simd.vector import WIDTH, load, repeat, select_above, spread, store, total

TILE = 8  # data points whose sums one pass over the weights keeps in registers
GROUP = 4  # inputs whose gradients one pass over the data points keeps in registers
DIVERGENCE_LIMIT = 1e3  # a fit has diverged if its mean squared residual exceeds this multiple of the targets' variance
CHUNK = 512  # data points evaluated at once, so that the outputs of a layer stay in the cache


def layout(inputs: int, hidden: Sequence[int], outputs: int = 1) -> Any:
    """Return the layers (L, 3) of a network: offset, inputs, outputs. The kernels of this module need one output."""
    rows, offset = [], 0
    for n_in, n_out in pairwise((inputs, *hidden, outputs)):
        rows.append((offset, n_in, n_out))
        offset += (n_in + 1) * n_out
    return np.array(rows, dtype=np.int64)


def count(layers: Any) -> int:
    """Return the number of weights P, biases included."""
    offset, n_in, n_out = layers[-1].tolist()
    return int(offset + (n_in + 1) * n_out)


def units(layers: Any) -> int:
    """Return the number of hidden units, at least 1: the scratch per data point."""
    return max(int(layers[:-1, 2].sum()), 1)


def widest(layers: Any) -> int:
    """Return the number of units of the widest hidden layer, at least 1."""
    return int(layers[:-1, 2].max(initial=1))


def initial_weights(layers: Any, rng: np.random.Generator) -> Any:
    """Return random weights (P,): N(0, 2 / n_in) below rectified units, N(0, 1 / n_in) below the output, biases 0."""
    parts = []
    for index, (_, n_in, n_out) in enumerate(layers.tolist()):
        gain = 1.0 if index == len(layers) - 1 else 2.0
        parts += [rng.normal(0.0, np.sqrt(gain / n_in), n_in * n_out), np.zeros(n_out)]
    return np.concatenate(parts)


@jit(relaxed=REORDER)
def forward(X: Any, w: Any, layers: Any, Z: Any, f: Any) -> None:
    """Write the outputs f (B,) at X (B, d), and the outputs of the hidden units to Z (B * units,)."""
    rows, at, last = X.shape[0], 0, layers.shape[0] - 1
    inputs = X
    for l in range(last):
        offset, n_in, n_out = layers[l]
        end = offset + n_in * n_out
        if l == last - 1 and rows >= TILE and n_out >= WIDTH:
            flat = inputs.reshape(rows * n_in)
            _last_hidden(flat, w[offset:], n_in, w[layers[last, 0] :], Z[at : at + rows * n_out], f)
            return
        outputs = Z[at : at + rows * n_out].reshape(rows, n_out)
        np.dot(inputs, w[offset:end].reshape(n_in, n_out), outputs)
        if l < last - 1:
            rectify(outputs, w[end : end + n_out])
        else:
            _rectified_output(Z[at : at + rows * n_out], w[end : end + n_out], w[layers[last, 0] :], f)
        inputs = outputs
        at += rows * n_out
    if last == 0:
        np.dot(X, w[:-1], f)
        for b in range(rows):
            f[b] += w[-1]


@jit(relaxed=REORDER)
def _last_hidden(x: Any, w: Any, n_in: int, v: Any, Z: Any, f: Any) -> None:
    """Write Z = max(x W + bias, 0) and f = Z v + v_n for B >= TILE data points; the last tile and block overlap.

    x (B * n_in,), w (n_in * n + n,) with the biases last, v (n + 1,), Z (B * n,), f (B,).
    """
    rows, n = f.size, Z.size // f.size
    tail, remaining = np.zeros(WIDTH), n - (n - 1) // WIDTH * WIDTH
    for j in range(remaining):
        tail[WIDTH - remaining + j] = v[n - remaining + j]  # each product is added to f once
    for start in range(0, rows, TILE):
        b = min(start, rows - TILE)
        at, to = b * n_in, b * n
        f_0 = f_1 = f_2 = f_3 = f_4 = f_5 = f_6 = f_7 = spread(0.0)
        for first in range(0, n, WIDTH):
            j = min(first, n - WIDTH)
            a_0 = a_1 = a_2 = a_3 = a_4 = a_5 = a_6 = a_7 = load(w, n_in * n + j)
            for i in range(n_in):
                u, k = load(w, i * n + j), at + i
                a_0 = a_0 + u * repeat(x, k)
                a_1 = a_1 + u * repeat(x, k + n_in)
                a_2 = a_2 + u * repeat(x, k + 2 * n_in)
                a_3 = a_3 + u * repeat(x, k + 3 * n_in)
                a_4 = a_4 + u * repeat(x, k + 4 * n_in)
                a_5 = a_5 + u * repeat(x, k + 5 * n_in)
                a_6 = a_6 + u * repeat(x, k + 6 * n_in)
                a_7 = a_7 + u * repeat(x, k + 7 * n_in)
            u = load(v, j) if first + WIDTH <= n else load(tail, 0)
            f_0 = f_0 + u * _store_positive(Z, to + j, a_0)
            f_1 = f_1 + u * _store_positive(Z, to + n + j, a_1)
            f_2 = f_2 + u * _store_positive(Z, to + 2 * n + j, a_2)
            f_3 = f_3 + u * _store_positive(Z, to + 3 * n + j, a_3)
            f_4 = f_4 + u * _store_positive(Z, to + 4 * n + j, a_4)
            f_5 = f_5 + u * _store_positive(Z, to + 5 * n + j, a_5)
            f_6 = f_6 + u * _store_positive(Z, to + 6 * n + j, a_6)
            f_7 = f_7 + u * _store_positive(Z, to + 7 * n + j, a_7)
        f[b], f[b + 1], f[b + 2], f[b + 3] = total(f_0), total(f_1), total(f_2), total(f_3)
        f[b + 4], f[b + 5], f[b + 6], f[b + 7] = total(f_4), total(f_5), total(f_6), total(f_7)
    for b in range(rows):
        f[b] += v[n]


@jit(relaxed=REORDER, inline=True)
def _store_positive(out: Any, at: int, vector: Any) -> Any:
    """Store and return max(vector, 0) for a vector of WIDTH doubles; NaN stays."""
    zero = spread(0.0)
    positive = select_above(zero, vector, zero, vector)
    store(out, at, positive)
    return positive


@jit(relaxed=REORDER)
def _rectified_output(Z: Any, bias: Any, v: Any, f: Any) -> None:
    """Replace the products Z (B * n,) of the last hidden layer by max(Z + bias, 0), and write f (B,) = Z v + v_n.

    bias (n,), v (n + 1,) with the constant last.
    """
    n = bias.size
    whole, zero = n // WIDTH * WIDTH, spread(0.0)
    for b in range(f.size):
        at = b * n
        sums = zero
        for j in range(0, whole, WIDTH):
            z = load(Z, at + j) + load(bias, j)
            z = select_above(zero, z, zero, z)  # NaN stays
            store(Z, at + j, z)
            sums = sums + z * load(v, j)
        rest = v[n]
        for j in range(whole, n):
            positive = max(Z[at + j] + bias[j], 0.0)
            Z[at + j] = positive
            rest += positive * v[j]
        f[b] = total(sums) + rest


@jit(relaxed=REORDER, inline=True)
def rectify(A: Any, bias: Any) -> None:
    """Replace the products A (B, n) by max(A + bias, 0); bias (n,)."""
    for b in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[b, j] = max(A[b, j] + bias[j], 0.0)


@jit(relaxed=REORDER)
def backward(X: Any, w: Any, layers: Any, Z: Any, df: Any, scale: float, g: Any, D: Any) -> None:
    """Write the gradient g (P,) of a loss with derivatives df (B,) by the outputs; Z was written by ``forward``.

    ``scale`` is the factor of the outputs of active units: 1, or 1 / (1 - rate) under dropout. A unit whose output is 0
    has no gradient.
    """
    rows, last = X.shape[0], layers.shape[0] - 1
    if last == 1 and layers[0, 1] >= GROUP and layers[0, 2] >= WIDTH:
        n_in, n_out = layers[0, 1], layers[0, 2]
        _one_hidden(X.reshape(rows * n_in), n_in, w[layers[1, 0] : -1], Z[: rows * n_out], df, scale, g)
        g[-1] = np.sum(df)
        return
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
        below = D[l % 2, : rows * n_in].reshape(rows, n_in) if l > 0 else D[0, :0].reshape(0, n_in)
        if l == last:
            g[end] = np.sum(df)
            if l > 0:
                biases = g[offset - n_in : offset]
                _last_layer(df, w[offset:end], Z[at : at + rows * n_in], scale, D[l % 2], g[offset:end], biases)
            else:
                np.dot(X.T, df, g[offset:end])
        else:
            above = D[(l + 1) % 2, : rows * n_out].reshape(rows, n_out)
            np.dot(inputs.T, above, g[offset:end].reshape(n_in, n_out))
            if l < last - 1:
                column_sums(above, g[end : end + n_out])
            if l > 0:
                np.dot(above, w[offset:end].reshape(n_in, n_out).T, below)
                pass_active(inputs, scale, below)


@jit(relaxed=REORDER)
def _one_hidden(x: Any, n_in: int, v: Any, Z: Any, df: Any, scale: float, g: Any) -> None:
    """Write the gradient g (P,) of a network with one hidden layer of n units, except for the output's bias.

    x (B * n_in,), v (n,), Z (B * n,), df (B,). The derivatives df_b v_j scale of active units are recomputed for each
    group of inputs, which takes less time than storing and reading them.
    """
    rows, n = df.size, v.size
    zero = spread(0.0)
    for first in range(0, n, WIDTH):
        j = min(first, n - WIDTH)
        slope = load(v, j) * scale
        for start in range(0, n_in - 1, GROUP):
            i = min(start, n_in - GROUP)
            a_0 = a_1 = a_2 = a_3 = zero
            for b in range(rows):
                at, d = b * n_in + i, select_above(load(Z, b * n + j), zero, repeat(df, b), zero)
                a_0 = a_0 + d * repeat(x, at)
                a_1 = a_1 + d * repeat(x, at + 1)
                a_2 = a_2 + d * repeat(x, at + 2)
                a_3 = a_3 + d * repeat(x, at + 3)
            to = i * n + j
            store(g, to, slope * a_0)
            store(g, to + n, slope * a_1)
            store(g, to + 2 * n, slope * a_2)
            store(g, to + 3 * n, slope * a_3)
        a_0 = a_1 = a_2 = zero  # the last input, the bias, the unit's weight in the output
        for b in range(rows):
            z = load(Z, b * n + j)
            d = select_above(z, zero, repeat(df, b), zero)
            a_0, a_1, a_2 = a_0 + d * repeat(x, b * n_in + n_in - 1), a_1 + d, a_2 + z * repeat(df, b)
        store(g, (n_in - 1) * n + j, slope * a_0)
        store(g, n_in * n + j, slope * a_1)
        store(g, (n_in + 1) * n + j, a_2)


@jit(relaxed=REORDER)
def _last_layer(df: Any, v: Any, Z: Any, scale: float, below: Any, by_v: Any, by_bias: Any) -> None:
    """Write by_v = Z' df, the derivatives by the inputs of the last hidden units, and their sums over the batch.

    The derivatives are df_b v_j scale if unit j was active at data point b, otherwise 0. df (B,), v, by_v and by_bias
    (n,), Z and ``below`` (B * n,).
    """
    rows, n = df.size, v.size
    whole, zero = n // WIDTH * WIDTH, spread(0.0)
    for j in range(0, whole, WIDTH):
        slope, sums, products = load(v, j) * scale, zero, zero
        for b in range(rows):
            d, z = repeat(df, b), load(Z, b * n + j)
            passed = select_above(z, zero, d * slope, zero)
            store(below, b * n + j, passed)
            sums, products = sums + passed, products + d * z
        store(by_v, j, products)
        store(by_bias, j, sums)
    for j in range(whole, n):
        factor, sum_, product = v[j] * scale, 0.0, 0.0
        for b in range(rows):
            z = Z[b * n + j]
            back = df[b] * factor if z > 0.0 else 0.0
            below[b * n + j] = back
            sum_, product = sum_ + back, product + df[b] * z
        by_v[j], by_bias[j] = product, sum_


@jit(relaxed=REORDER, inline=True)
def pass_active(Z: Any, scale: float, out: Any) -> None:
    """Multiply out (B, n) by ``scale`` where Z (B, n) is positive, otherwise by 0."""
    for b in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            out[b, j] = out[b, j] * scale if Z[b, j] > 0.0 else 0.0


@jit(relaxed=REORDER, inline=True)
def column_sums(A: Any, out: Any) -> None:
    """Write the sums (n,) of the columns of A (B, n)."""
    for j in range(A.shape[1]):
        out[j] = 0.0
    for b in range(A.shape[0]):
        for j in range(A.shape[1]):
            out[j] += A[b, j]


@jit(relaxed=REORDER)
def _evaluate(X: Any, W: Any, layers: Any, Z: Any, f: Any, out: Any, at: int) -> None:
    """Write the outputs of networks W (K, P) at X (B, d) to out[:, at : at + B]; scratch Z (B * units,), f (B,)."""
    for k in range(W.shape[0]):
        forward(X, W[k], layers, Z, f)
        copy_vector(f, out[k, at : at + f.size])


def refuse_divergence(w: Any, layers: Any, X: Any, y: Any) -> None:
    """Raise FloatingPointError if a fitted network w (P,) has diverged on its training data X (N, d), y (N,).

    The limit of the mean squared residual is 1,000 times the variance of the targets, or 1,000 if that is below 1.
    """
    refuse_residuals(y - evaluate(X, w[None], layers)[0], y)


def refuse_residuals(residuals: Any, y: Any) -> None:
    """Raise FloatingPointError if the residuals (N,) of targets y (N,) exceed the limit of ``refuse_divergence``."""
    residual = float(np.mean(residuals**2))
    largest = DIVERGENCE_LIMIT * max(float(np.var(y)), 1.0)
    if not residual <= largest:
        raise FloatingPointError(
            f"diverged: mean squared residual {residual:.3g} on the training data (standardised units), the limit is "
            f"{largest:.3g}; a smaller learning_rate may help"
        )


def check_inputs(X: Any, layers: Any) -> None:
    """Raise ValueError if X is not a matrix (n, d) with one column per input."""
    if X.ndim != 2 or X.shape[1] != layers[0, 1]:
        raise ValueError(f"X must have shape (n, {layers[0, 1]}), found {X.shape}")


def evaluate(X: Any, W: Any, layers: Any) -> Any:
    """Return the outputs (K, N) of networks with weights W (K, P) at X (N, d).

    Raises ValueError if the number of columns of X is not the number of inputs.
    """
    check_inputs(X, layers)
    out, weights = np.empty((len(W), len(X))), np.ascontiguousarray(W)
    for at in range(0, len(X), CHUNK):
        rows = np.array(X[at : at + CHUNK], dtype=np.float64, order="C")
        _evaluate(rows, weights, layers, np.empty(len(rows) * units(layers)), np.empty(len(rows)), out, at)
    return out


@jit(relaxed=REORDER)
def row_gradient(x: Any, w: Any, layers: Any, Z: Any, f: Any, g: Any, D: Any) -> Any:
    """Write the output f (1,) at x (1, d) and its gradient g (P,) by the weights; return the squared norm of g."""
    forward(x, w, layers, Z, f)
    backward(x, w, layers, Z, np.ones(1), 1.0, g, D)
    total = 0.0
    for i in range(g.size):
        total += g[i] * g[i]
    return total


@jit()
def row_step_size(rate: float, momentum: float, square: float) -> float:
    """Return the step size for one data point in gradient descent on half the squared error.

    A step changes the output by rate / (1 - momentum) times ``square``, the squared norm of the gradient, times the
    residual. The step size is ``rate``, or smaller so that the output does not overshoot the target. Outliers among the
    inputs would otherwise make very large steps.
    """
    return min(rate, (1.0 - momentum) / square)
