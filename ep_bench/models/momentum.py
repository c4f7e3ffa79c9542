"""Gradient descent with momentum on half the squared error of a rectified network, one data point per step.

One pass over the weights of a layer applies the step of the last data point and evaluates the layer at the next one.
Weights and velocities are then read and written once per data point, which is what limits the speed. The step of the
last data point is therefore pending until the next call of ``run_epoch``, or until ``weights``.

The weights of a hidden layer are stored in blocks of ``WIDTH`` units. A block has one row of ``WIDTH`` weights per
input, then one of biases. The output layer has one weight per input, then its bias. Padding is 0 and stays 0.

Symbols of the kernels: weights w (W,) and velocities v (W,), padding included; Z (2 units,), the inputs of all layers
at the last data point, then at the current one, each layer's followed by a 1 for the bias; D (units,), the derivatives
of the output by the inputs of the hidden units.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ep_bench.models.mlp import row_step_size
from ep_bench.numerics.jit import FUSE, jit
from ep_bench.numerics.minibatch import Trace, run_epochs
from ep_bench.numerics.simd.vector import WIDTH, aligned, load, padded, repeat, select_above, spread, store, total

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class Descent(NamedTuple):
    """A network under training; the kernels change its arrays in place."""

    layers: Indices  # (L, 4): first weight, inputs + 1, blocks of units, first input in Z and D
    places: Indices  # (P,) index in w of each weight, in the order of ``models.mlp``
    w: Array  # (W,)
    v: Array  # (W,)
    Z: Array  # (2 units,)
    D: Array  # (units,)
    pending: Array  # (2,): step size times residual of the last data point, decay times learning rate


def start(layers: Any, weights: Array) -> Descent:
    """Return a network at rest with weights (P,), in the order of ``models.mlp`` with its ``layers`` (L, 3)."""
    table, places, offset, units = [], [], 0, 0
    for index, (_, n_in, n_out) in enumerate(layers.tolist()):
        rows, hidden = n_in + 1, index < len(layers) - 1
        table.append((offset, rows, padded(n_out) // WIDTH if hidden else 1, units))
        block, lane = np.divmod(np.arange(n_out), WIDTH)
        one = (block * rows + np.arange(rows)[:, None]) * WIDTH + lane if hidden else np.arange(rows)
        places.append(offset + one.ravel())
        offset += rows * padded(n_out) if hidden else padded(rows)
        units += padded(rows)
    w = aligned(offset)
    w[np.concatenate(places)] = weights
    Z = aligned(2 * units)
    for _, rows, _, first in table:
        Z[[first + rows - 1, units + first + rows - 1]] = 1.0
    arrays = (w, aligned(offset), Z, aligned(units), np.zeros(2))
    return Descent(np.array(table, dtype=np.int64), np.concatenate(places), *arrays)


def step_sizes(first: float, epochs: int, *, decreasing: bool = True) -> list[float]:
    """Return one step size per epoch, decreasing linearly to 0 after the last, or constant."""
    return [first * (1.0 - (epoch / epochs if decreasing else 0.0)) for epoch in range(epochs)]


def descend(
    net: Descent,
    X: Array,
    y: Array,
    rates: Sequence[float],
    momentum: float,
    decay: float,
    rng: np.random.Generator,
    monitor: Callable[[], dict[str, float]] = dict,
) -> Trace:
    """Train on X (N, d), y (N,) for one epoch per step size, in random orders; return the trace of ``run_epochs``."""

    def visit(epoch: int, order: Indices) -> float:
        return float(run_epoch(X, y, order, net, rates[epoch], momentum, decay))

    return run_epochs(range(len(rates)), visit, net.w, len(y), rng, monitor)


def weights(net: Descent, momentum: float) -> Array:
    """Take the pending step and end the training; return the weights (P,) in the order of ``models.mlp``."""
    _advance(net, momentum)
    net.v[:] = net.pending[:] = 0.0
    return net.w[net.places]


@jit(relaxed=FUSE)
def run_epoch(X: Any, y: Any, order: Any, net: Any, rate: float, momentum: float, decay: float) -> float:
    """Take one step per data point of X (N, d), y (N,) in the given order; return the mean of residual^2 / 2.

    A step is v = momentum v - step gradient - rate decay w, w = w + v, with ``step`` from ``mlp.row_step_size``.
    """
    units, loss = net.D.size, 0.0
    for row in order:
        for i in range(X.shape[1]):
            net.Z[units + i] = X[row, i]
        residual = _advance(net, momentum) - y[row]
        loss += 0.5 * residual * residual
        net.pending[0] = row_step_size(rate, momentum, _derivatives(net)) * residual
        net.pending[1] = rate * decay
        for at in range(0, units, WIDTH):
            store(net.Z, at, load(net.Z, units + at))
    return loss / order.size


@jit(relaxed=FUSE)
def _advance(net: Any, momentum: float) -> float:
    """Apply the pending step, write the hidden outputs at the current inputs and return the output."""
    w, v, Z, units, last = net.w, net.v, net.Z, net.D.size, net.layers.shape[0] - 1
    step, shrink = net.pending[0], net.pending[1]
    zero = spread(0.0)
    for l in range(last):
        offset, rows, blocks, first = net.layers[l]
        above = net.layers[l + 1, 3]
        for block in range(blocks):
            at, slope, sums = offset + block * rows * WIDTH, load(net.D, above + block * WIDTH) * step, zero
            for i in range(rows):
                k = at + i * WIDTH
                weight = load(w, k)
                change = momentum * load(v, k) - slope * repeat(Z, first + i) - shrink * weight
                weight = weight + change
                store(v, k, change)
                store(w, k, weight)
                sums = sums + weight * repeat(Z, units + first + i)
            store(Z, units + above + block * WIDTH, select_above(zero, sums, zero, sums))  # NaN stays
        Z[units + above + net.layers[l + 1, 1] - 1] = 1.0  # the constant may share the last block
    offset, rows, _, first = net.layers[last]
    sums = zero
    for i in range(0, rows, WIDTH):
        weight, z = load(w, offset + i), load(Z, units + first + i)
        change = momentum * load(v, offset + i) - step * load(Z, first + i) - shrink * weight
        weight = weight + change
        store(v, offset + i, change)
        store(w, offset + i, weight)
        sums = sums + weight * z
    return total(sums)


@jit(relaxed=FUSE)
def _derivatives(net: Any) -> float:
    """Write D at the current inputs; return the squared norm of the gradient of the output by all weights."""
    w, Z, D, units, last = net.w, net.Z, net.D, net.D.size, net.layers.shape[0] - 1
    zero = spread(0.0)
    offset, rows, _, first = net.layers[last]
    for i in range(0, rows, WIDTH):
        store(D, first + i, select_above(load(Z, units + first + i), zero, load(w, offset + i), zero))
    D[first + rows - 1] = 0.0  # the constant
    square = _square(Z, units + first, rows)
    for l in range(last - 1, -1, -1):
        offset, rows, blocks, first = net.layers[l]
        above = net.layers[l + 1, 3]
        square += _square(Z, units + first, rows) * _square(D, above, blocks * WIDTH)
        for i in range(rows - 1 if l > 0 else 0):
            sums = zero
            for block in range(blocks):
                sums = sums + load(w, offset + (block * rows + i) * WIDTH) * load(D, above + block * WIDTH)
            slope = total(sums)
            D[first + i] = slope if Z[units + first + i] > 0.0 else 0.0
    return square


@jit(relaxed=FUSE, inline=True)
def _square(a: Any, at: int, n: int) -> float:
    """Return the sum of a_i^2 for n numbers, and for the padding after them."""
    sums = spread(0.0)
    for i in range(at, at + n, WIDTH):
        sums = sums + load(a, i) * load(a, i)
    return total(sums)
