"""Memory layout of the arrays that the kernels use.

All weights are in one vector, layer after layer. A hidden layer of n_out units has n_in + 1 rows: one per input, then
the bias. Each row contains one weight per unit and is padded to whole vector registers, so that one instruction
processes several units. The output layer is one padded row over its inputs, followed by its bias. Padding has mean 0
and variance 1 in a hidden layer, 0 in the output layer: it contributes nothing forward and receives no gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ep_bench.numerics.simd.vector import WIDTH, aligned, padded
from ep_bench.types import Array, Indices

ROWS, STRIDE, OFFSET, UNITS = range(4)  # columns of PBPNetwork.layers


class PBPNetwork(NamedTuple):
    """Weights, prior factors and hyperparameters; the kernels change them in place.

    W is the length of the vector of weights, padding included.
    """

    layers: Indices  # (L, 4): n_in + 1, padded units, first weight, first hidden unit (not for the output)
    places: Indices  # (weights,) index of each weight, by layer, unit and input, bias last
    mean: Array  # (W,)
    variance: Array  # (W,)
    factor_precision: Array  # (W,) of each weight's prior factor N(w | 0, 1 / precision)
    factor_a: Array  # (W,) contribution of that factor to prior[0]
    factor_b: Array  # (W,) contribution of that factor to prior[1]
    noise: Array  # (2,) shape and rate of the noise precision gamma
    prior: Array  # (2,) shape and rate of the weights' prior precision lambda


# Fields of the scratch of the units: each has one number per hidden unit, padded, layer after layer.
(
    A,  # m^a
    A_VAR,  # v^a
    ROOT,  # sqrt(v^a)
    INVERSE,  # 1 / sqrt(v^a)
    SHIFTED,  # 1 / (|alpha| + SHIFT), see numerics.normal
    Z,  # m^b
    Z_VAR,  # v^b
    SQUARE,  # m^b m^b + v^b
    SLOPE_MM,  # d m^b / d m^a
    SLOPE_MV,  # d m^b / d v^a
    SLOPE_VM,  # d v^b / d m^a
    SLOPE_VV,  # d v^b / d v^a
    D_Z,  # d log Z / d m^b
    D_Z_VAR,  # d log Z / d v^b
    D_A,  # d log Z / d m^a
    D_A_VAR,  # d log Z / d v^a
    LOWEST,  # lower bound of the variances of the weights of a unit in the first layer
) = range(17)
FIELDS = 17
# Fields of the scratch of the inputs, each of length d + 1.
CURRENT, NEXT, NEXT_SQUARE = range(3)


def _table(sizes: Sequence[int]) -> tuple[Indices, Indices]:
    """Return ``PBPNetwork.layers`` and ``PBPNetwork.places`` for layer sizes, inputs first, output last."""
    layers, places = [], []
    offset = units = 0
    for n_in, n_out in pairwise(sizes[:-1]):
        stride = padded(n_out)
        layers.append((n_in + 1, stride, offset, units))
        places.append(offset + np.arange(n_in + 1)[None, :] * stride + np.arange(n_out)[:, None])
        offset, units = offset + (n_in + 1) * stride, units + stride
    stride = padded(sizes[-2])
    layers.append((sizes[-2] + 1, stride, offset, units))
    places.append(offset + np.append(np.arange(sizes[-2]), stride)[None, :])
    return np.array(layers, dtype=np.int64), np.concatenate([one.ravel() for one in places]).astype(np.int64)


def network(start: Sequence[Array], a: float, b: float) -> PBPNetwork:
    """Return a network with the weight means ``start``; all variances, also of prior factors, are b / (a - 1).

    ``start`` has one array (n_out, n_in + 1) per layer, bias last; a and b are shape and rate of both precisions.
    """
    sizes = [start[0].shape[1] - 1, *(len(one) for one in start)]
    layers, places = _table(sizes)
    count = int(layers[-1, OFFSET] + layers[-1, STRIDE] + WIDTH)
    variance = aligned(count, b / (a - 1))
    variance[layers[-1, OFFSET] :] = 0.0
    variance[places] = b / (a - 1)
    mean = aligned(count)
    mean[places] = flat(start)
    gamma = np.array([a, b])
    return PBPNetwork(
        layers, places, mean, variance, aligned(count, (a - 1) / b), aligned(count), aligned(count), gamma, gamma.copy()
    )  # fmt: skip


def flat(arrays: Sequence[Array]) -> Array:
    """Return the elements of one array (n_out, n_in + 1) per layer in the order of ``PBPNetwork.places``."""
    return np.concatenate([np.ravel(one) for one in arrays])


def matrices(net: PBPNetwork, values: Array) -> tuple[Array, ...]:
    """Return a vector of ``PBPNetwork`` as one array (n_out, n_in + 1) per layer, bias last."""
    rows = net.layers[:, ROWS]
    shapes = [(int(n_out), int(n)) for n, n_out in zip(rows, [*(rows[1:] - 1), 1], strict=True)]
    ends = np.cumsum([n_out * n for n_out, n in shapes])[:-1]
    return tuple(part.reshape(shape) for part, shape in zip(np.split(values[net.places], ends), shapes, strict=True))


def scratch(net: PBPNetwork) -> tuple[Array, Array]:
    """Return the scratch of the units (FIELDS * U,) and of the inputs (3 * (d + 1),), whose biases are 1."""
    inputs = aligned(3 * int(net.layers[0, ROWS]), 1.0)
    return aligned(FIELDS * int(net.layers[-1, UNITS])), inputs
