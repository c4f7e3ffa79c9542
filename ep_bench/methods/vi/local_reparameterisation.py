"""The bound by local reparameterisation (Kingma, Salimans and Welling 2015), which draws the inputs of the units.

Given the outputs z of the layer below, the input of a unit is Gaussian with mean z' m and variance z'^2 s^2. Inputs are
independent between data points and units. Each data point of a batch gets its own draws:

    a = z M + b + sqrt(delta) e,   delta = z^2 S + s_b^2,   S = s^2

The K samples are K copies of the data points of the batch. The output layer is drawn in the same way. Symbols and
arguments are those of ``models.variational_bound``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ep_bench.models.meanfield import divergence
from ep_bench.models.variational_bound import add_divergence
from ep_bench.numerics.jit import REORDER, jit
from ep_bench.numerics.normal_rng import fill_normals


class LocalBoundWorkspace(NamedTuple):
    """Arrays for R = K B copies of data points, P weights and U units, the output included."""

    noise: Any  # (R * U,) e, layer by layer
    root: Any  # (R * U,) sqrt(delta)
    Z: Any  # (R * U,) outputs of the units; f for the last layer
    squares: Any  # (R * max(d, widest),) squared inputs of a layer
    above: Any  # (R * widest,) derivatives with respect to a of one layer
    spread: Any  # (R * widest,) derivatives with respect to delta
    below: Any  # (R * widest,) derivatives with respect to the inputs of the layer, through a
    product: Any  # (R * widest,) and to the squared inputs, through delta
    variance: Any  # (P,) S
    std: Any  # (P,) s


def workspace(copies: int, weights: int, units: int, widest: int, inputs: int) -> LocalBoundWorkspace:
    """Allocate the arrays for up to ``copies`` copies of data points; ``units`` includes the output."""
    plain, wide = np.empty(copies * units), copies * widest
    return LocalBoundWorkspace(
        plain, plain.copy(), plain.copy(), np.empty(copies * max(inputs, widest)), np.empty(wide), np.empty(wide),
        np.empty(wide), np.empty(wide), np.empty(weights), np.empty(weights),
    )  # fmt: skip


@jit(relaxed=REORDER)
def draw(theta: Any, words: Any, work: LocalBoundWorkspace) -> None:
    """Draw the noise of one step at theta (2 P + 1,)."""
    fill_normals(words, work.noise)
    fill_variances(theta, work)


@jit(relaxed=REORDER)
def fill_variances(theta: Any, work: LocalBoundWorkspace) -> None:
    """Write standard deviations and variances of the weights."""
    size = work.std.size
    for i in range(size):
        work.std[i] = math.exp(theta[size + i])
        work.variance[i] = work.std[i] * work.std[i]


@jit(relaxed=REORDER)
def bound(
    theta: Any, X: Any, y: Any, layers: Any, n: int, prior_variance: Any, work: LocalBoundWorkspace, gradient: Any
) -> float:
    """Return the negative bound of K copies of a batch, X (R, d), y (R,), of n data points.

    Writes the gradient (2 P + 1,). ``work`` must hold what ``draw`` writes.
    """
    size, copies, last = work.std.size, len(y), layers.shape[0] - 1
    at = _forward(theta, X, layers, work)
    f = work.Z[at : at + copies]
    log_sigma2 = theta[2 * size]
    precision, factor = math.exp(-log_sigma2), n / copies
    squares = 0.0
    for r in range(copies):
        residual = y[r] - f[r]
        squares += residual * residual
        work.above[r] = -factor * precision * residual
    for l in range(last, -1, -1):
        n_in = layers[l, 1]
        begin = at - copies * n_in
        inputs = X if l == 0 else work.Z[begin:at].reshape(copies, n_in)
        _backward_layer(theta, inputs, layers[l], l == 0, at, work, gradient)
        at = begin
    add_divergence(theta, work.std, prior_variance, gradient)
    fit = factor * 0.5 * precision * squares
    gradient[2 * size] = 0.5 * n - fit
    constant = 0.5 * n * (math.log(2.0 * math.pi) + log_sigma2)
    return divergence(theta[:size], work.std, prior_variance) + constant + fit


@jit(relaxed=REORDER)
def _forward(theta: Any, X: Any, layers: Any, work: LocalBoundWorkspace) -> int:
    """Write sqrt(delta) and outputs of all layers for X (R, d); return the offset of the last layer's arrays."""
    copies, at = X.shape[0], 0
    inputs = X
    for l in range(layers.shape[0]):
        offset, n_in, n_out = layers[l]
        end = offset + n_in * n_out
        outputs = work.Z[at : at + copies * n_out].reshape(copies, n_out)
        root = work.root[at : at + copies * n_out].reshape(copies, n_out)
        noise = work.noise[at : at + copies * n_out].reshape(copies, n_out)
        squares = _squared(inputs, work)
        np.dot(inputs, theta[offset:end].reshape(n_in, n_out), outputs)
        np.dot(squares, work.variance[offset:end].reshape(n_in, n_out), root)
        hidden = l < layers.shape[0] - 1
        for r in range(copies):
            for j in range(n_out):
                root[r, j] = math.sqrt(root[r, j] + work.variance[end + j])
                a = outputs[r, j] + theta[end + j] + root[r, j] * noise[r, j]
                outputs[r, j] = max(a, 0.0) if hidden else a
        inputs = outputs
        if hidden:
            at += copies * n_out
    return at


@jit(relaxed=REORDER, inline=True)
def _squared(inputs: Any, work: LocalBoundWorkspace) -> Any:
    """Return the squares of the inputs (R, n_in) of a layer, a view of the workspace."""
    rows, columns = inputs.shape
    squares = work.squares[: rows * columns].reshape(rows, columns)
    for r in range(rows):
        for i in range(columns):
            squares[r, i] = inputs[r, i] * inputs[r, i]
    return squares


@jit(relaxed=REORDER)
def _backward_layer(
    theta: Any, inputs: Any, layer: Any, first: bool, at: int, work: LocalBoundWorkspace, gradient: Any
) -> None:
    """Write the gradient of one layer, whose inputs are (R, n_in) and whose outputs begin at ``at`` in the workspace.

    On entry ``work.above`` holds the derivatives with respect to a of this layer, on return those of the layer below.
    """
    copies = inputs.shape[0]
    offset, n_in, n_out = layer
    end, size = offset + n_in * n_out, work.std.size
    above = work.above[: copies * n_out].reshape(copies, n_out)
    spread = work.spread[: copies * n_out].reshape(copies, n_out)
    root = work.root[at : at + copies * n_out].reshape(copies, n_out)
    noise = work.noise[at : at + copies * n_out].reshape(copies, n_out)
    for r in range(copies):
        for j in range(n_out):
            spread[r, j] = 0.5 * above[r, j] * noise[r, j] / root[r, j]
    np.dot(inputs.T, above, gradient[offset:end].reshape(n_in, n_out))
    np.dot(_squared(inputs, work).T, spread, gradient[size + offset : size + end].reshape(n_in, n_out))
    for j in range(n_out):
        gradient[end + j] = np.sum(above[:, j])
        gradient[size + end + j] = np.sum(spread[:, j])
    for i in range(size + offset, size + end + n_out):
        gradient[i] *= 2.0 * work.std[i - size]  # dS / ds
    if first:
        return
    below = work.below[: copies * n_in].reshape(copies, n_in)
    product = work.product[: copies * n_in].reshape(copies, n_in)
    np.dot(above, theta[offset:end].reshape(n_in, n_out).T, below)
    np.dot(spread, work.variance[offset:end].reshape(n_in, n_out).T, product)
    passed = work.above[: copies * n_in].reshape(copies, n_in)
    for r in range(copies):
        for i in range(n_in):
            z = inputs[r, i]
            passed[r, i] = below[r, i] + 2.0 * z * product[r, i] if z > 0.0 else 0.0
