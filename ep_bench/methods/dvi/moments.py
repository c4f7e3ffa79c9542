"""Moments of the outputs of a network with Gaussian weights, the closed-form bound, and its gradient.

Symbols (P weights, B data points in the batch, K outputs):

    m, s           means and standard deviations of q(w), (P,); M, V are the means and variances s^2 of one layer
    z, z_var       mean and variance of the outputs of the units of a layer; z = x, z_var = 0 for the network's inputs
    a, a_var       of their inputs: a = z M + b, a_var = z_var M^2 + (z^2 + z_var) V + b_var
    f, f_var, c    of the outputs of the network, and the covariance of both outputs, sum_j z_var_j M_j1 M_j2

Moments of the rectified units are exact for a Gaussian input (``numerics.relu``). Covariances between the units of a
layer are left out. With one hidden layer there are none, because the inputs of the network are known.

Arguments of the kernels: ``theta`` and ``gradient`` (2 P + 1,) as in ``models.variational_bound``, ``layers`` (L, 3) as
in ``models.mlp``. The log noise variance theta[-1] is not used with two outputs.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ep_bench.models import mlp
from ep_bench.models.meanfield import divergence
from ep_bench.models.variational_bound import add_divergence
from ep_bench.numerics.jit import REORDER, jit
from ep_bench.numerics.relu import relu_moments, relu_scales
from ep_bench.numerics.simd.vector import WIDTH, aligned, load, padded, store


class MomentsWorkspace(NamedTuple):
    """Arrays for B data points and U hidden units, layer after layer, each layer padded to whole vectors."""

    units: Any  # (6, ...) z, z_var, and the derivatives of z and z_var with respect to a and a_var
    std: Any  # (P,) s
    variance: Any  # (P,) V
    square: Any  # (P,) M^2
    f: Any  # (B, K)
    f_var: Any  # (B, K)
    c: Any  # (B,)
    by: Any  # (2, B, K) and (B,): derivatives of the objective with respect to f, f_var and c
    by_c: Any


def workspace(layers: Any, rows: int) -> MomentsWorkspace:
    """Allocate the arrays for batches of up to ``rows`` data points."""
    size, outputs = mlp.count(layers), int(layers[-1, 2])
    length = sum(padded(rows * n) for n in layers[:-1, 2].tolist())
    units = aligned(6 * length, 1.0).reshape(6, length)
    f, f_var, by, by_c = (np.zeros(shape) for shape in ((rows, outputs), (rows, outputs), (2, rows, outputs), rows))
    std, variance, square = np.empty((3, size))
    return MomentsWorkspace(units, std, variance, square, f, f_var, by_c.copy(), by, by_c)


@jit(relaxed=REORDER)
def bound(
    theta: Any, X: Any, y: Any, layers: Any, n: int, prior_variance: Any, work: MomentsWorkspace, gradient: Any
) -> float:
    """Return the negative bound of a batch X (B, d), y (B,) of n data points; write its gradient (2 P + 1,).

    ``work`` must hold the arrays that ``fill_weights`` writes.
    """
    size, rows = work.std.size, len(y)
    forward(theta, X, layers, work)
    factor = n / rows
    if work.f.shape[1] == 1:
        total = _homoscedastic(y, theta[2 * size], factor, work)
        gradient[2 * size] = 0.5 * n - (total - 0.5 * n * theta[2 * size])
    else:
        total = _heteroscedastic(y, factor, work)
        gradient[2 * size] = 0.0
    _backward(theta, X, layers, work, gradient)
    add_divergence(theta, work.std, prior_variance, gradient)
    return divergence(theta[:size], work.std, prior_variance) + 0.5 * n * math.log(2.0 * math.pi) + total


@jit(relaxed=REORDER)
def fill_weights(theta: Any, work: MomentsWorkspace) -> None:
    """Write the standard deviations, variances and squared means of the weights."""
    for i in range(work.std.size):
        s = math.exp(theta[work.std.size + i])
        work.std[i], work.variance[i], work.square[i] = s, s * s, theta[i] * theta[i]


@jit(relaxed=REORDER)
def _homoscedastic(y: Any, log_noise: float, factor: float, work: MomentsWorkspace) -> float:
    """Return the expected negative log-likelihood, without its constant, and write its derivatives."""
    precision, total = math.exp(-log_noise), 0.0
    for b in range(y.size):
        residual = work.f[b, 0] - y[b]
        total += log_noise + precision * (work.f_var[b, 0] + residual * residual)
        work.by[0, b, 0], work.by[1, b, 0] = factor * precision * residual, 0.5 * factor * precision
    return 0.5 * factor * total


@jit(relaxed=REORDER)
def _heteroscedastic(y: Any, factor: float, work: MomentsWorkspace) -> float:
    """Return the same if the second output is the log noise variance, and both are jointly Gaussian."""
    total = 0.0
    for b in range(y.size):
        log_noise, residual = work.f[b, 1], work.f[b, 0] - work.c[b] - y[b]
        precision = math.exp(0.5 * work.f_var[b, 1] - log_noise)
        ratio = precision * (work.f_var[b, 0] + residual * residual)
        total += log_noise + ratio
        work.by[0, b, 0], work.by[1, b, 0] = factor * precision * residual, 0.5 * factor * precision
        work.by[0, b, 1], work.by[1, b, 1] = 0.5 * factor * (1.0 - ratio), 0.25 * factor * ratio
        work.by_c[b] = -factor * precision * residual
    return 0.5 * factor * total


@jit(relaxed=REORDER)
def forward(theta: Any, X: Any, layers: Any, work: MomentsWorkspace) -> None:
    """Write moments and derivatives of the hidden units, and f, f_var and c, at X (B, d)."""
    rows, last, at = X.shape[0], layers.shape[0] - 1, 0
    z, z_var = X, X[:0]
    for l in range(layers.shape[0]):
        offset, n_in, n_out = layers[l]
        end = offset + n_in * n_out
        if l < last:
            a, a_var = _unit(work, 0, at, rows, n_out), _unit(work, 1, at, rows, n_out)
        else:
            a, a_var = work.f[:rows], work.f_var[:rows]
        np.dot(z, theta[offset:end].reshape(n_in, n_out), a)
        np.dot(_second_moment(z, z_var), work.variance[offset:end].reshape(n_in, n_out), a_var)
        if l > 0:
            a_var += np.dot(z_var, work.square[offset:end].reshape(n_in, n_out))
        for b in range(rows):
            for k in range(n_out):
                a[b, k] += theta[end + k]
                a_var[b, k] += work.variance[end + k]
        if l < last:
            _rectify(work.units, at, rows * n_out)
            z, z_var = a, a_var
            at += (rows * n_out + WIDTH - 1) // WIDTH * WIDTH
        elif n_out == 2 and l > 0:
            M = theta[offset:end].reshape(n_in, n_out)
            work.c[:rows] = np.dot(z_var, M[:, 0] * M[:, 1])


@jit(relaxed=REORDER)
def _second_moment(z: Any, z_var: Any) -> Any:
    """Return z^2 + z_var (B, n); z_var has no rows if it is 0."""
    out = z * z
    if z_var.shape[0] > 0:
        out += z_var
    return out


@jit(relaxed=REORDER, inline=True)
def _unit(work: MomentsWorkspace, field: int, at: int, rows: int, n: int) -> Any:
    """Return a field (B, n) of the n units of a layer, a view."""
    return work.units[field, at : at + rows * n].reshape(rows, n)


@jit(relaxed=REORDER)
def _rectify(units: Any, at: int, count: int) -> None:
    """Replace a and a_var of ``count`` units by z and z_var, and write the derivatives."""
    a, a_var = units[0], units[1]
    end = at + (count + WIDTH - 1) // WIDTH * WIDTH
    a[at + count : end] = 0.0
    a_var[at + count : end] = 1.0
    for i in range(at, end, WIDTH):
        m, v = load(a, i), load(a_var, i)
        z, z_var, mm, mv, vm, vv = relu_moments(m, v, relu_scales(m, v))
        store(a, i, z)
        store(a_var, i, z_var)
        store(units[2], i, mm)
        store(units[3], i, mv)
        store(units[4], i, vm)
        store(units[5], i, vv)


@jit(relaxed=REORDER)
def _backward(theta: Any, X: Any, layers: Any, work: MomentsWorkspace, gradient: Any) -> None:
    """Write the gradient of the expected log-likelihood with respect to m and s (2 P,)."""
    rows, last, size, at = X.shape[0], layers.shape[0] - 1, work.std.size, 0
    for l in range(last):
        at += (rows * layers[l, 2] + WIDTH - 1) // WIDTH * WIDTH
    by_a, by_var = work.by[0, :rows], work.by[1, :rows]
    for l in range(last, -1, -1):
        offset, n_in, n_out = layers[l]
        end = offset + n_in * n_out
        M, by_M = theta[offset:end].reshape(n_in, n_out), gradient[offset:end].reshape(n_in, n_out)
        V, by_s = work.variance[offset:end].reshape(n_in, n_out), gradient[size + offset : size + end]
        z, z_var = X, X[:0]
        if l > 0:
            at -= (rows * n_in + WIDTH - 1) // WIDTH * WIDTH
            z, z_var = _unit(work, 0, at, rows, n_in), _unit(work, 1, at, rows, n_in)
        np.dot(z.T, by_a, by_M)
        np.dot(_second_moment(z, z_var).T, by_var, by_s.reshape(n_in, n_out))
        gradient[end : end + n_out] = by_a.sum(axis=0)
        gradient[size + end : size + end + n_out] = by_var.sum(axis=0)
        for i in range(offset, end + n_out):
            gradient[size + i] *= 2.0 * work.std[i]
        if l > 0:
            by_M += 2.0 * M * np.dot(z_var.T, by_var)
            by_square = np.dot(by_var, V.T)
            by_z, by_z_var = np.dot(by_a, M.T) + 2.0 * z * by_square, by_square + np.dot(by_var, (M * M).T)
            if l == last and n_out == 2:
                by_c = work.by_c[:rows]
                products = np.dot(by_c, z_var)
                by_M[:, 0] += products * M[:, 1]
                by_M[:, 1] += products * M[:, 0]
                by_z_var += by_c.reshape(rows, 1) * (M[:, 0] * M[:, 1])
            mm, mv = _unit(work, 2, at, rows, n_in), _unit(work, 3, at, rows, n_in)
            vm, vv = _unit(work, 4, at, rows, n_in), _unit(work, 5, at, rows, n_in)
            by_a, by_var = by_z * mm + by_z_var * vm, by_z * mv + by_z_var * vv
