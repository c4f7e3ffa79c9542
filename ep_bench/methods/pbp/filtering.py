"""One epoch: an assumed-density step for every training row, then the refinement of the prior factors."""

from __future__ import annotations

import math

import numpy as np

from ep_bench.methods.pbp.layout import (
    COMING,
    COMING_SQUARE,
    D_Z,
    D_Z_VAR,
    FIELDS,
    INPUT,
    LOWEST,
    ROWS,
    Network,
)
from ep_bench.methods.pbp.passes import backward, first_gradients, first_pass, first_pass_checked, forward, output_backward, output_forward
from ep_bench.numerics.gamma import gamma_update
from ep_bench.numerics.jit import FUSE, jit
from ep_bench.types import Array, Indices

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@jit()
def filter_rows(X: Array, y: Array, order: Indices, net: Network, u: Array, inputs: Array) -> tuple[float, float]:
    """Take the rows of X (n, d) and targets y (n,), standardised, into the posterior in the given order.

    Returns the sum of log Z and the number of undone updates. The update of the first layer waits for the next row's
    forward pass, see ``first_pass``; no other pass reads its weights.
    """
    mean, variance, layers = net.mean, net.variance, net.layers
    last = len(layers) - 1
    d = X.shape[1]
    a, b = net.noise[0], net.noise[1]
    log_z = undone = 0.0
    product = 1.0
    rows, size = layers[0, ROWS], len(u) // FIELDS
    u[D_Z * size : (D_Z_VAR + 1) * size] = 0.0
    u[LOWEST * size :] = 0.0
    for step in range(len(order) + 1):
        row = order[min(step, len(order) - 1)]
        for j in range(d):
            x = X[row, j]
            inputs[INPUT * rows + j] = inputs[COMING * rows + j]
            inputs[COMING * rows + j] = x
            inputs[COMING_SQUARE * rows + j] = x * x
        if first_gradients(layers, u):
            first_pass(mean, variance, layers, u, inputs)
        else:
            undone += first_pass_checked(mean, variance, layers, u, inputs)
        if step == len(order):
            break
        for l in range(1, last):
            forward(mean, variance, layers, l, u)
        m_z, v_z = output_forward(mean, variance, layers, last, u)
        residual = y[row] - m_z
        scale = v_z + b / (a - 1.0)
        g = residual / scale
        k = 0.5 * (g * g - 1.0 / scale)
        a, b = gamma_update(a, b, v_z, residual * residual)
        undone += output_backward(g, k, mean, variance, layers, last, u)
        for l in range(last - 1, 0, -1):
            undone += backward(mean, variance, layers, l, u)
        log_z -= 0.5 * residual * g
        product *= scale
        if not 1e-100 < product < 1e100:  # one logarithm for many rows
            log_z -= 0.5 * math.log(product)
            product = 1.0
    net.noise[0], net.noise[1] = a, b
    return log_z - 0.5 * math.log(product) - len(order) * HALF_LOG_2PI, undone


@jit()
def refine_prior(net: Network) -> None:
    """Refine every weight's prior factor by expectation propagation, in sequence (section 3.4).

    The factor's Gaussian is N(w | 0, b / (a - 1)) of the cavity's a and b when it was last refined, so that its
    precision says it all: in natural parameters the weight's m / v never changes here.
    """
    a_all, b_all = net.prior[0], net.prior[1]
    for at in net.places:
        v = net.variance[at]
        precision = 1.0 / v - net.factor_precision[at]
        a, b = a_all - net.factor_a[at], b_all - net.factor_b[at]
        cavity = 1.0 / precision
        if not (0.0 < cavity < 1e6 and a > 1.0 and b > 0.0):
            continue
        shift = net.mean[at] / v
        factor_precision = (a - 1.0) / b
        v_new = 1.0 / (precision + factor_precision)
        m_cavity = shift * cavity
        a_all, b_all = gamma_update(a, b, cavity, m_cavity * m_cavity)
        net.mean[at], net.variance[at] = v_new * shift, v_new
        net.factor_precision[at] = factor_precision
        net.factor_a[at], net.factor_b[at] = a_all - a, b_all - b
    net.prior[0], net.prior[1] = a_all, b_all


__all__ = ["filter_rows", "np", "refine_prior"]
