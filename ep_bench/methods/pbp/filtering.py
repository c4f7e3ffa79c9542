"""Loops over data points and over weights: the steps of one epoch, the refinement of the prior, prediction."""

from __future__ import annotations

import math

from ep_bench.methods.pbp.layout import (
    CURRENT,
    D_Z,
    D_Z_VAR,
    FIELDS,
    LOWEST,
    NEXT,
    NEXT_SQUARE,
    PBPNetwork,
)
from ep_bench.methods.pbp.passes import (
    backward,
    first_forward,
    first_gradients,
    first_pass,
    first_pass_checked,
    forward,
    output_backward,
    output_forward,
)
from ep_bench.numerics.gamma import gamma_update
from ep_bench.numerics.jit import jit
from ep_bench.types import Array, Indices

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@jit(inline=True)
def load_next_row(X: Array, row: int, inputs: Array) -> None:
    """Move the field NEXT of the scratch ``inputs`` (3 * (d + 1),) to CURRENT, and load a row of X (n, d) into NEXT."""
    n = X.shape[1] + 1
    for j in range(n - 1):
        x = X[row, j]
        inputs[CURRENT * n + j] = inputs[NEXT * n + j]
        inputs[NEXT * n + j] = x
        inputs[NEXT_SQUARE * n + j] = x * x


@jit()
def filter_rows(X: Array, y: Array, order: Indices, net: PBPNetwork, u: Array, inputs: Array) -> tuple[float, float]:
    """Update the posterior with the data points X (n, d), y (n,), standardised, in the given order (m,).

    Returns the sum of log Z in nats and the number of undone updates. The update of the first layer is delayed until
    the forward pass of the next data point, so that one pass over its weights does both. With
    s_k = v^z + b / (a - 1 + k), log Z of a step is log N(y | m^z, s_0), equation (12).

    ``u`` (FIELDS * U,) and ``inputs`` (3 * (d + 1),) are scratch of ``layout.scratch``.
    """
    mean, variance, layers = net.mean, net.variance, net.layers
    last, size = len(layers) - 1, len(u) // FIELDS
    a, b = net.noise[0], net.noise[1]
    log_z, undone, product = 0.0, 0.0, 1.0
    u[D_Z * size : (D_Z_VAR + 1) * size] = 0.0  # there is no delayed update
    u[LOWEST * size :] = 0.0  # and no lower bound of the variances
    for step in range(len(order) + 1):
        row = order[min(step, len(order) - 1)]
        load_next_row(X, row, inputs)
        if first_gradients(layers, u):
            first_pass(mean, variance, layers, u, inputs)
        else:
            rejected = first_pass_checked(mean, variance, layers, u, inputs)
            undone += rejected if step > 0 else 0.0
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
        if not 1e-100 < product < 1e100:  # one logarithm for many data points
            log_z -= 0.5 * math.log(product)
            product = 1.0
    net.noise[0], net.noise[1] = a, b
    return log_z - 0.5 * math.log(product) - len(order) * HALF_LOG_2PI, undone


@jit()
def refine_prior(net: PBPNetwork) -> None:
    """Refine the prior factor of every weight in turn by expectation propagation (section 3.4).

    Inserting (11) into (6) and (7) gives the product of the cavity and N(w | 0, b / (a - 1)), with a and b of the
    cavity. A factor is therefore stored as a precision, and m / v of the weight does not change here.
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


@jit()
def predict_rows(X: Array, net: PBPNetwork, u: Array, inputs: Array, m_z: Array, v_z: Array) -> None:
    """Write mean m_z (n,) and variance v_z (n,) of the network's output, without noise, at X (n, d), standardised."""
    last = len(net.layers) - 1
    for row in range(len(X)):
        load_next_row(X, row, inputs)
        first_forward(net.mean, net.variance, net.layers, u, inputs)
        for l in range(1, last):
            forward(net.mean, net.variance, net.layers, l, u)
        m_z[row], v_z[row] = output_forward(net.mean, net.variance, net.layers, last, u)
