"""Passes over the weights of one layer: moments forward, (13) to (17); gradients and updates backward, (6) and (7).

Symbols: z, z_var are the moments m^z, v^z of a layer's inputs; g, k the derivatives of log Z with respect to m^a and
v^a of a unit; h = g^2 - 2 k. With n = V_{l-1} + 1 inputs, bias included, the derivatives with respect to a weight are

    d log Z / d m = g z / sqrt(n) + 2 k m z_var / n        d log Z / d v = k (z^2 + z_var) / n

Arguments of the kernels: ``mean`` and ``variance`` (W,) of the weights and ``layers`` (L, 4) as in ``PBPNetwork``, the
index ``l`` of a layer, and the scratch ``u`` (FIELDS * U,) and ``inputs`` (3 * (d + 1),) of ``layout.scratch``.
"""

from __future__ import annotations

import math
from typing import Any

from ep_bench.methods.pbp.layout import (
    A_VAR,
    CURRENT,
    D_A,
    D_A_VAR,
    D_Z,
    D_Z_VAR,
    FIELDS,
    INVERSE,
    LOWEST,
    NEXT,
    NEXT_SQUARE,
    OFFSET,
    ROOT,
    ROWS,
    SHIFTED,
    SLOPE_MM,
    SLOPE_MV,
    SLOPE_VM,
    SLOPE_VV,
    SQUARE,
    STRIDE,
    UNITS,
    Z_VAR,
    A,
    Z,
)
from ep_bench.numerics.jit import FUSE, jit
from ep_bench.numerics.relu import relu_moments, relu_scales
from ep_bench.numerics.simd.vector import WIDTH, any_not_above, load, repeat, select_above, spread, store, total
from ep_bench.types import Array, Indices

FLOOR = 1e-100  # an update that would leave a variance at or below this value is undone
NEAR_FLOOR = 1e-99  # the first layer checks every weight if the lower bound of a variance is at or below this value


@jit(relaxed=FUSE, inline=True)
def store_input_moments(i: int, m: Any, v: Any, u: Array, size: int) -> None:
    """Store the moments N(m, v) of the inputs of units i, ..., i + WIDTH - 1, and the scales of their rectifiers.

    ``m`` and ``v`` are vectors of WIDTH doubles. Roots and divisions are here because the passes over the weights leave
    the divider of the processor idle.
    """
    root, inverse, shifted = relu_scales(m, v)
    store(u, A * size + i, m)
    store(u, A_VAR * size + i, v)
    store(u, ROOT * size + i, root)
    store(u, INVERSE * size + i, inverse)
    store(u, SHIFTED * size + i, shifted)


@jit(relaxed=FUSE, inline=True)
def rectify_units(first: int, stride: int, u: Array, size: int) -> None:
    """Store the output moments of a layer's units and their derivatives; ``store_input_moments`` was called before."""
    for i in range(first, first + stride, WIDTH):
        scales = (load(u, ROOT * size + i), load(u, INVERSE * size + i), load(u, SHIFTED * size + i))
        z, z_var, mm, mv, vm, vv = relu_moments(load(u, A * size + i), load(u, A_VAR * size + i), scales)
        store(u, Z * size + i, z)
        store(u, Z_VAR * size + i, z_var)
        store(u, SLOPE_MM * size + i, mm)
        store(u, SLOPE_MV * size + i, mv)
        store(u, SLOPE_VM * size + i, vm)
        store(u, SLOPE_VV * size + i, vv)


@jit(relaxed=FUSE, inline=True)
def first_forward(mean: Array, variance: Array, layers: Indices, u: Array, inputs: Array) -> None:
    """Propagate the data point NEXT through the first layer."""
    rows, stride, size = layers[0, ROWS], layers[0, STRIDE], len(u) // FIELDS
    by_root, by_n = 1.0 / math.sqrt(rows), 1.0 / rows
    for i in range(0, stride, WIDTH):
        a, a_var = spread(0.0), spread(0.0)
        for j in range(rows):
            at = j * stride + i
            a = a + load(mean, at) * repeat(inputs, NEXT * rows + j)
            a_var = a_var + load(variance, at) * repeat(inputs, NEXT_SQUARE * rows + j)
        store_input_moments(i, a * by_root, a_var * by_n, u, size)
    rectify_units(0, stride, u, size)


@jit(relaxed=FUSE, inline=True)
def first_gradients(layers: Indices, u: Array) -> bool:
    """Store g / sqrt(n) and h / n of the first layer's units; return whether all new variances are above the floor.

    The inputs have no variance, so the update of a weight is v_new = v - (v x)^2 h / n. Since v x^2 / n is at most v^a
    of the unit, v_new >= v (1 - v^a h). The field LOWEST applies this bound to the variances of each unit.
    """
    rows, stride, size = layers[0, ROWS], layers[0, STRIDE], len(u) // FIELDS
    by_root, by_n = 1.0 / math.sqrt(rows), 1.0 / rows
    bound = spread(1.0)
    for i in range(0, stride, WIDTH):
        d_z, d_z_var = load(u, D_Z * size + i), load(u, D_Z_VAR * size + i)
        g = d_z * load(u, SLOPE_MM * size + i) + d_z_var * load(u, SLOPE_VM * size + i)
        k = d_z * load(u, SLOPE_MV * size + i) + d_z_var * load(u, SLOPE_VV * size + i)
        h = g * g - 2.0 * k
        shrink = 1.0 - load(u, A_VAR * size + i) * h
        lowest = load(u, LOWEST * size + i) * select_above(shrink, 1.0, 1.0, shrink)
        bound = select_above(lowest, bound, bound, lowest)
        store(u, LOWEST * size + i, lowest)
        store(u, D_A * size + i, g * by_root)
        store(u, D_A_VAR * size + i, h * by_n)
    return not any_not_above(bound, NEAR_FLOOR)


@jit(relaxed=FUSE, inline=True)
def first_pass(mean: Array, variance: Array, layers: Indices, u: Array, inputs: Array) -> None:
    """Update the first layer for the data point CURRENT and propagate NEXT through it, in one pass over its weights."""
    rows, stride, size = layers[0, ROWS], layers[0, STRIDE], len(u) // FIELDS
    by_root, by_n = 1.0 / math.sqrt(rows), 1.0 / rows
    for i in range(0, stride, WIDTH):
        g, h = load(u, D_A * size + i), load(u, D_A_VAR * size + i)
        a, a_var = spread(0.0), spread(0.0)
        for j in range(rows):
            at = j * stride + i
            v = load(variance, at)
            p = v * repeat(inputs, CURRENT * rows + j)
            m = load(mean, at) + p * g
            v = v - p * (p * h)
            store(mean, at, m)
            store(variance, at, v)
            a = a + m * repeat(inputs, NEXT * rows + j)
            a_var = a_var + v * repeat(inputs, NEXT_SQUARE * rows + j)
        store_input_moments(i, a * by_root, a_var * by_n, u, size)
    rectify_units(0, stride, u, size)


@jit(relaxed=FUSE)
def first_pass_checked(mean: Array, variance: Array, layers: Indices, u: Array, inputs: Array) -> float:
    """Do the same as ``first_pass``, but undo updates that leave a variance at or below FLOOR; return their number.

    LOWEST is exact afterwards.
    """
    rows, stride, size = layers[0, ROWS], layers[0, STRIDE], len(u) // FIELDS
    by_root, by_n = 1.0 / math.sqrt(rows), 1.0 / rows
    undone = spread(0.0)
    for i in range(0, stride, WIDTH):
        g, h = load(u, D_A * size + i), load(u, D_A_VAR * size + i)
        a, a_var, lowest = spread(0.0), spread(0.0), spread(math.inf)
        for j in range(rows):
            at = j * stride + i
            m, v = load(mean, at), load(variance, at)
            p = v * repeat(inputs, CURRENT * rows + j)
            decrease = p * (p * h)
            v_new = v - decrease
            undone = undone + select_above(v_new, FLOOR, 0.0, 1.0)
            m = m + select_above(v_new, FLOOR, p * g, 0.0)
            v = v - select_above(v_new, FLOOR, decrease, 0.0)
            lowest = select_above(lowest, v, v, lowest)
            store(mean, at, m)
            store(variance, at, v)
            a = a + m * repeat(inputs, NEXT * rows + j)
            a_var = a_var + v * repeat(inputs, NEXT_SQUARE * rows + j)
        store(u, LOWEST * size + i, lowest)
        store_input_moments(i, a * by_root, a_var * by_n, u, size)
    rectify_units(0, stride, u, size)
    return total(undone)


@jit(relaxed=FUSE, inline=True)
def forward(mean: Array, variance: Array, layers: Indices, l: int, u: Array) -> None:
    """Propagate the outputs of the hidden layer l - 1 through the hidden layer l."""
    rows, stride, offset, units = layers[l, ROWS], layers[l, STRIDE], layers[l, OFFSET], layers[l, UNITS]
    first, size = layers[l - 1, UNITS], len(u) // FIELDS
    by_root, by_n = 1.0 / math.sqrt(rows), 1.0 / rows
    for i in range(first, first + layers[l - 1, STRIDE], WIDTH):
        z = load(u, Z * size + i)
        store(u, SQUARE * size + i, z * z + load(u, Z_VAR * size + i))
    for i in range(0, stride, WIDTH):
        at = offset + (rows - 1) * stride + i
        a, a_var, from_means = load(mean, at), load(variance, at), spread(0.0)  # the bias; two sums reduce the latency
        for j in range(rows - 1):
            at = offset + j * stride + i
            m = load(mean, at)
            a = a + m * repeat(u, Z * size + first + j)
            from_means = from_means + (m * m) * repeat(u, Z_VAR * size + first + j)
            a_var = a_var + load(variance, at) * repeat(u, SQUARE * size + first + j)
        a_var = a_var + from_means
        store_input_moments(units + i, a * by_root, a_var * by_n, u, size)
    rectify_units(units, stride, u, size)


@jit(relaxed=FUSE, inline=True)
def output_forward(mean: Array, variance: Array, layers: Indices, l: int, u: Array) -> tuple[float, float]:
    """Return m^z and v^z of the network's output."""
    rows, stride, offset = layers[l, ROWS], layers[l, STRIDE], layers[l, OFFSET]
    first, size = layers[l - 1, UNITS], len(u) // FIELDS
    a, a_var = spread(0.0), spread(0.0)
    for i in range(0, stride, WIDTH):
        m, v = load(mean, offset + i), load(variance, offset + i)
        z, z_var = load(u, Z * size + first + i), load(u, Z_VAR * size + first + i)
        a = a + m * z
        a_var = a_var + (m * m) * z_var + v * (z * z + z_var)
    bias = offset + stride
    return (total(a) + mean[bias]) / math.sqrt(rows), (total(a_var) + variance[bias]) / rows


@jit(relaxed=FUSE, inline=True)
def output_backward(g: float, k: float, mean: Array, variance: Array, layers: Indices, l: int, u: Array) -> float:
    """Update the output layer, store the derivatives by the moments of its inputs; return the number of undone updates.

    If an update is undone, the kernel adds 0. A choice between the old and the new value would compile to a masked
    store, which is slow.
    """
    rows, stride, offset = layers[l, ROWS], layers[l, STRIDE], layers[l, OFFSET]
    first, size = layers[l - 1, UNITS], len(u) // FIELDS
    g, k = g / math.sqrt(rows), k / rows
    undone = 0.0
    rejected = spread(0.0)
    for i in range(0, stride, WIDTH):
        m, v = load(mean, offset + i), load(variance, offset + i)
        z, z_var = load(u, Z * size + first + i), load(u, Z_VAR * size + first + i)
        store(u, D_Z * size + first + i, m * g + (v * z) * (2.0 * k))
        store(u, D_Z_VAR * size + first + i, (m * m + v) * k)
        d_m = z * g + (m * z_var) * (2.0 * k)
        decrease = (v * v) * (d_m * d_m - (z * z + z_var) * (2.0 * k))
        v_new = v - decrease
        store(mean, offset + i, m + select_above(v_new, FLOOR, v * d_m, 0.0))
        store(variance, offset + i, v - select_above(v_new, FLOOR, decrease, 0.0))
        rejected = rejected + select_above(v_new, FLOOR, 0.0, select_above(v, 0.0, 1.0, 0.0))
    undone = total(rejected)
    bias = offset + stride
    v = variance[bias]
    v_new = v - v * v * (g * g - 2.0 * k)
    if v_new > FLOOR:
        mean[bias] += v * g
        variance[bias] = v_new
    else:
        undone += 1.0
    return undone


@jit(relaxed=FUSE, inline=True)
def backward(mean: Array, variance: Array, layers: Indices, l: int, u: Array) -> float:
    """Do the same as ``output_backward`` for a hidden layer l > 0."""
    rows, stride, offset, units = layers[l, ROWS], layers[l, STRIDE], layers[l, OFFSET], layers[l, UNITS]
    first, size = layers[l - 1, UNITS], len(u) // FIELDS
    by_root, by_n = 1.0 / math.sqrt(rows), 1.0 / rows
    for i in range(units, units + stride, WIDTH):
        d_z, d_z_var = load(u, D_Z * size + i), load(u, D_Z_VAR * size + i)
        store(
            u, D_A * size + i, (d_z * load(u, SLOPE_MM * size + i) + d_z_var * load(u, SLOPE_VM * size + i)) * by_root
        )
        store(
            u, D_A_VAR * size + i, (d_z * load(u, SLOPE_MV * size + i) + d_z_var * load(u, SLOPE_VV * size + i)) * by_n
        )
    rejected = spread(0.0)
    for j in range(rows):
        at = offset + j * stride - units
        z, z_var = (u[Z * size + first + j], u[Z_VAR * size + first + j]) if j < rows - 1 else (1.0, 0.0)
        if j < rows - 1:
            d_z, d_z_var = spread(0.0), spread(0.0)
            for i in range(units, units + stride, WIDTH):
                m, v = load(mean, at + i), load(variance, at + i)
                g, k = load(u, D_A * size + i), load(u, D_A_VAR * size + i)
                d_z = d_z + g * m + (v * k) * (2.0 * z)
                d_z_var = d_z_var + k * (m * m + v)
            u[D_Z * size + first + j] = total(d_z)
            u[D_Z_VAR * size + first + j] = total(d_z_var)
        for i in range(units, units + stride, WIDTH):
            m, v = load(mean, at + i), load(variance, at + i)
            g, k = load(u, D_A * size + i), load(u, D_A_VAR * size + i)
            d_m = g * z + (k * (2.0 * z_var)) * m
            decrease = (v * v) * (d_m * d_m - k * (2.0 * (z * z + z_var)))
            v_new = v - decrease
            store(mean, at + i, m + select_above(v_new, FLOOR, v * d_m, 0.0))
            store(variance, at + i, v - select_above(v_new, FLOOR, decrease, 0.0))
            rejected = rejected + select_above(v_new, FLOOR, 0.0, 1.0)
    return total(rejected)
