"""Steps of the filter over data points: moments forward, conditioning backward.

Each of the three vectors has one number per input, hidden unit and output, layer after layer, U in all:

    z, z_var     mean and variance of the outputs of the units; a rectified unit whose input has a mean of at most 0 has
                 both equal to 0, all others those of their input
    g, h         (posterior mean - mean) / variance and (variance - posterior variance) / variance^2 of a unit's input

The joint distribution of a unit's input and of what it depends on is Gaussian with the moments of products of
independent Gaussians, so conditioning a weight m, v with the input z below gives

    m + v z g,    v - (v z)^2 h

and for the unit below g' = sum_k m_k g_k, h' = sum_k m_k^2 h_k over the units k above it.

Arguments of the kernels: ``mean`` and ``variance`` (P,) of the weights, and ``layers`` (L, 3), as in ``models.mlp``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ep_bench.numerics.jit import REORDER, jit
from ep_bench.numerics.simd.vector import WIDTH, load, select_above, spread, store, total

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@jit(relaxed=REORDER)
def filter_rows(
    X: Any, y: Any, order: Any, mean: Any, variance: Any, layers: Any, noise_variance: float
) -> tuple[float, float]:
    """Update the weights with the data points X (n, d), y (n,), in the given order (n,).

    With one output the noise variance is ``noise_variance``, with two outputs the second is its logarithm. Returns the
    sum of the log predictive densities of the data points before their updates, nats, and the number of undone updates.
    """
    z, z_var, g, h = np.zeros((4, _size(layers)))
    out = layers[-1, 2]
    log_z = undone = 0.0
    for row in order:
        forward(X[row], mean, variance, layers, z, z_var)
        f, f_var = z[-out], z_var[-out]
        noise = noise_variance if out == 1 else math.exp(z[-1] + 0.5 * z_var[-1])
        scale, residual = f_var + noise, y[row] - f
        g[-out], h[-out] = residual / scale, 1.0 / scale
        if out == 2:
            g[-1], h[-1] = infer_noise(noise, z_var[-1], scale, residual)
        log_z -= 0.5 * (math.log(scale) + residual * residual / scale) + HALF_LOG_2PI
        undone += backward(mean, variance, layers, z, g, h)
    return log_z, undone


@jit(relaxed=REORDER)
def infer_noise(noise: float, log_var: float, scale: float, residual: float) -> tuple[float, float]:
    """Return g and h of the second output, a log noise variance with variance ``log_var`` and E[exp] = ``noise``.

    Approximate Gaussian variance inference: the noise e ~ N(0, noise) is conditioned on the residual. Its square, with
    mean ``noise`` and variance 3 s + 2 noise^2, takes the moments of that posterior, where s, the variance of the
    lognormal noise variance, is noise^2 (exp(log_var) - 1). Gaussian conditioning passes both on to the logarithm.
    """
    e, e_var = noise / scale * residual, noise - noise * noise / scale
    square, square_var = e * e + e_var, 2.0 * e_var * e_var + 4.0 * e_var * e * e
    before = noise * noise * (3.0 * math.expm1(log_var) + 2.0)
    gain = noise / before
    return gain * (square - noise), gain * gain * (before - square_var)


@jit(relaxed=REORDER)
def forward(x: Any, mean: Any, variance: Any, layers: Any, z: Any, z_var: Any) -> None:
    """Propagate a data point x (d,); writes z and z_var (U,), those of the outputs last."""
    start, last = 0, layers.shape[0] - 1
    for j in range(x.size):
        z[j] = x[j]
    for l in range(layers.shape[0]):
        offset, n_in, n_out = layers[l]
        end, to = offset + n_in * n_out, start + n_in
        for k in range(n_out):
            z[to + k], z_var[to + k] = mean[end + k], variance[end + k]
        for j in range(n_in):
            if z[start + j] != 0.0:  # an inactive unit has no variance
                _add_row(z[start + j], z_var[start + j], mean, variance, offset + j * n_out, n_out, z, z_var, to)
        if l < last:
            for k in range(to, to + n_out):
                if z[k] <= 0.0:
                    z[k] = z_var[k] = 0.0
        start = to


@jit(relaxed=REORDER, inline=True)
def _add_row(m: float, v: float, mean: Any, variance: Any, at: int, n: int, z: Any, z_var: Any, to: int) -> None:
    """Add the products of an input with mean m and variance v and its n weights from ``at`` to the sums from ``to``."""
    square, whole = m * m + v, n // WIDTH * WIDTH
    for k in range(0, whole, WIDTH):
        w = load(mean, at + k)
        store(z, to + k, load(z, to + k) + w * m)
        store(z_var, to + k, load(z_var, to + k) + (w * w) * v + load(variance, at + k) * square)
    for k in range(whole, n):
        w_k = mean[at + k]
        z[to + k] += w_k * m
        z_var[to + k] += w_k * w_k * v + variance[at + k] * square


@jit(relaxed=REORDER)
def backward(mean: Any, variance: Any, layers: Any, z: Any, g: Any, h: Any) -> float:
    """Update all weights; g and h (U,) of the outputs are given. Returns the number of undone updates."""
    to, undone = z.size - layers[-1, 2], 0.0
    for l in range(layers.shape[0] - 1, -1, -1):
        offset, n_in, n_out = layers[l]
        start = to - n_in
        for j in range(n_in + 1):  # the last row has the biases, whose input is 1
            at, m = offset + j * n_out, z[start + j] if j < n_in else 1.0
            if j < n_in and l > 0:
                g[start + j] = h[start + j] = 0.0
                if m != 0.0:
                    g[start + j], h[start + j] = _sums(mean, at, n_out, g, h, to)
            if m != 0.0:
                undone += _condition(m, mean, variance, at, n_out, g, h, to)
        to = start
    return undone


@jit(relaxed=REORDER, inline=True)
def _sums(mean: Any, at: int, n: int, g: Any, h: Any, to: int) -> tuple[float, float]:
    """Return the sums of w g and w^2 h over the n units above."""
    g_sum = h_sum = 0.0
    for k in range(n):
        w = mean[at + k]
        g_sum += w * g[to + k]
        h_sum += w * w * h[to + k]
    return g_sum, h_sum


@jit(relaxed=REORDER, inline=True)
def _condition(m: float, mean: Any, variance: Any, at: int, n: int, g: Any, h: Any, to: int) -> float:
    """Update the n weights from ``at`` of an input with mean m; return the number of undone updates."""
    rejected, whole = spread(0.0), n // WIDTH * WIDTH
    for k in range(0, whole, WIDTH):
        w, v, undone = _posterior(m, load(mean, at + k), load(variance, at + k), load(g, to + k), load(h, to + k))
        store(mean, at + k, w)
        store(variance, at + k, v)
        rejected = rejected + undone
    count = total(rejected)
    for k in range(whole, n):
        mean[at + k], variance[at + k], one = _posterior(m, mean[at + k], variance[at + k], g[to + k], h[to + k])
        count += one
    return count


@jit(relaxed=REORDER, inline=True)
def _posterior(m: float, w: Any, v: Any, g: Any, h: Any) -> Any:
    """Return mean, variance and number of undone updates of weights N(w, v), vectors or floats."""
    p = v * m
    decrease = p * (p * h)
    v_new = v - decrease
    return (
        w + select_above(v_new, 0.0, p * g, 0.0), v - select_above(v_new, 0.0, decrease, 0.0),
        select_above(v_new, 0.0, 0.0, 1.0),
    )  # fmt: skip


@jit(relaxed=REORDER)
def predict_rows(X: Any, mean: Any, variance: Any, layers: Any, out_mean: Any, out_variance: Any) -> None:
    """Write mean and variance (n, K) of the K outputs of the network at X (n, d)."""
    z, z_var = np.zeros((2, _size(layers)))
    for row in range(X.shape[0]):
        forward(X[row], mean, variance, layers, z, z_var)
        for k in range(out_mean.shape[1]):
            at = z.size - out_mean.shape[1] + k
            out_mean[row, k], out_variance[row, k] = z[at], z_var[at]


@jit()
def _size(layers: Any) -> int:
    """Return the number of inputs, hidden units and outputs."""
    return int(layers[0, 1] + layers[:, 2].sum())
