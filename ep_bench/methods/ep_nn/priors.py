"""Tilted moments of the prior terms of one weight (section 3.2.1).

The prior of an input weight w has variance e^phi and is Laplace, (3), or Gaussian. For fixed phi the integral over w
has a closed form; the integral over phi is a sum over a grid. The prior of an output weight v is a truncated Student-t,
(5), integrated over v >= 0. Cavities are N(m, V) for weights and N(phi, phi_V) for scales; eta is the fraction.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ep_bench.numerics.jit import FUSE, jit
from ep_bench.numerics.normal import SHIFT, normal_tail

COARSE_NODES, SCALE_NODES = 25, 73  # of the grids that locate and integrate the density of phi
SCALE_REACH = 10.0  # standard deviations of the cavity on either side of the coarse grid
LOG_DROP = 40.0  # decrease of a log density from its peak at the ends of a grid
OUTPUT_NODES, OUTPUT_WEIGHTS = np.polynomial.legendre.leggauss(96)
LAPLACE, GAUSSIAN = 0, 1
FAR, FRACTIONS = 8.0, 30  # t from which tail moments are continued fractions, and their number of terms
LOG_2PI = math.log(2.0 * math.pi)


@jit(relaxed=FUSE)
def log_mills(t: float) -> float:
    """Return the log of Phi(-t) / phi(t) for any t."""
    if t > 37.0:
        u = 1.0 / (t * t)
        return -math.log(t) + math.log1p(-u * (1.0 - u * (3.0 - u * 15.0)))
    if t >= 0.0:
        density, tail, _ = normal_tail(t, 1.0 / (t + SHIFT))
        return math.log(tail / density)
    return math.log(0.5 * math.erfc(t / math.sqrt(2.0))) + 0.5 * (t * t + LOG_2PI)


@jit(relaxed=FUSE)
def beyond(t: float, log_ratio: float) -> tuple[float, float]:
    """Return E[w - t] and E[(w - t)^2] of a standard normal w truncated to w > t.

    ``log_ratio`` is the log of Mills' ratio at t. For large t, where differences lose all digits, Laplace's continued
    fraction is used.
    """
    if t < FAR:
        first = math.exp(-log_ratio) - t
        return first, 1.0 - t * first
    more = 0.0
    for j in range(FRACTIONS, 1, -1):
        more = j / (t + more)
    return 1.0 / (t + more), more / (t + more)


@jit(relaxed=FUSE)
def weight_given_scale(m: float, V: float, phi: float, eta: float, kind: int) -> tuple[float, float, float]:
    """Return log of int N(w | m, V) p(w | phi)^eta dw, and E w and E w^2 under the normalised integrand."""
    if kind == GAUSSIAN:
        prior = math.exp(phi) / eta
        whole = V + prior
        power = 0.5 * (1.0 - eta) * (LOG_2PI + phi) - 0.5 * math.log(eta)
        mean = m * prior / whole
        log_z = power - 0.5 * (LOG_2PI + math.log(whole) + m * m / whole)
        return log_z, mean, mean * mean + V * prior / whole
    rate, std = eta * math.sqrt(2.0) * math.exp(-0.5 * phi), math.sqrt(V)
    up, down = (rate * V - m) / std, (rate * V + m) / std
    log_up, log_down = log_mills(up), log_mills(down)
    top = max(log_up, log_down)
    p_up, p_down = math.exp(log_up - top), math.exp(log_down - top)
    ratio = p_up / (p_up + p_down)
    log_z = top + math.log(p_up + p_down) - 0.5 * (eta * (math.log(2.0) + phi) + LOG_2PI + m * m / V)
    up_1, up_2 = beyond(up, log_up)
    down_1, down_2 = beyond(down, log_down)
    mean = std * (ratio * up_1 - (1.0 - ratio) * down_1)
    return log_z, mean, V * (ratio * up_2 + (1.0 - ratio) * down_2)


@jit(relaxed=FUSE)
def weight_moments(
    m: float, V: float, phi: float, phi_V: float, eta: float, kind: int, logs: Any, means: Any, squares: Any
) -> tuple[float, float, float, float, float]:
    """Return log Z, mean and variance of w, mean and variance of phi under the tilted distribution, (27) to (30).

    ``logs``, ``means`` and ``squares`` (SCALE_NODES,) are workspaces.
    """
    if phi_V <= 0.0:
        log_z, mean, square = weight_given_scale(m, V, phi, eta, kind)
        return log_z, mean, square - mean * mean, phi, 0.0
    low, high = _scale_range(m, V, phi, phi_V, eta, kind, logs)
    step, top = (high - low) / (SCALE_NODES - 1), -np.inf
    for j in range(SCALE_NODES):
        at = low + step * j
        log_z, means[j], squares[j] = weight_given_scale(m, V, at, eta, kind)
        logs[j] = log_z - 0.5 * (at - phi) ** 2 / phi_V
        top = max(top, logs[j])
    z, first, mean, square = 0.0, 0.0, 0.0, 0.0
    for j in range(SCALE_NODES):
        logs[j] = math.exp(logs[j] - top)
        z += logs[j]
        first += logs[j] * j
        mean += logs[j] * means[j]
    first /= z
    mean /= z
    second = 0.0
    for j in range(SCALE_NODES):
        second += logs[j] * (j - first) ** 2
        square += logs[j] * (squares[j] - means[j] ** 2 + (means[j] - mean) ** 2)
    log_z = math.log(z * step) + top - 0.5 * (LOG_2PI + math.log(phi_V))
    return log_z, mean, square / z, low + step * first, step * step * second / z


@jit(relaxed=FUSE)
def _scale_range(m: float, V: float, phi: float, phi_V: float, eta: float, kind: int, logs: Any) -> tuple[float, float]:
    """Return the range of phi in which the tilted density is above exp(-LOG_DROP) of its peak."""
    std = math.sqrt(phi_V)
    step, top = 2.0 * SCALE_REACH * std / (COARSE_NODES - 1), -np.inf
    low = phi - SCALE_REACH * std
    for j in range(COARSE_NODES):
        at = low + step * j
        log_z, _, _ = weight_given_scale(m, V, at, eta, kind)
        logs[j] = log_z - 0.5 * (at - phi) ** 2 / phi_V
        top = max(top, logs[j])
    first, last = 0, COARSE_NODES - 1
    while logs[first] < top - LOG_DROP:
        first += 1
    while logs[last] < top - LOG_DROP:
        last -= 1
    return low + step * max(first - 1, 0), low + step * min(last + 1, COARSE_NODES - 1)


@jit(relaxed=FUSE)
def output_moments(m: float, V: float, eta: float, freedom: float, variance: float) -> tuple[float, float, float]:
    """Return log Z, mean and variance of v >= 0 under N(m, V) (2 t(v | 0, variance))^eta.

    Gauss-Legendre quadrature, between the points (or 0) where the Gaussian factor alone is exp(-LOG_DROP) of its value
    at the peak of the product, which decreases faster.
    """
    power, width = 0.5 * eta * (freedom + 1.0), freedom * variance
    peak = _output_peak(m, V, power, width)
    reach = math.sqrt(2.0 * LOG_DROP * V + (peak - m) ** 2)
    low, half = max(0.0, m - reach), 0.5 * (m + reach - max(0.0, m - reach))
    logs, top = np.empty(OUTPUT_NODES.size), -np.inf
    for j in range(OUTPUT_NODES.size):
        v = low + half * (1.0 + OUTPUT_NODES[j])
        logs[j] = -0.5 * (v - m) ** 2 / V - power * math.log1p(v * v / width)
        top = max(top, logs[j])
    z, first, second = 0.0, 0.0, 0.0
    for j in range(OUTPUT_NODES.size):
        p, u = OUTPUT_WEIGHTS[j] * math.exp(logs[j] - top), 1.0 + OUTPUT_NODES[j]
        z += p
        first += p * u
        second += p * u * u
    first /= z
    density = math.lgamma(0.5 * (freedom + 1.0)) - math.lgamma(0.5 * freedom) - 0.5 * math.log(math.pi * width)
    log_z = eta * (math.log(2.0) + density) + math.log(z * half) + top - 0.5 * (LOG_2PI + math.log(V))
    return log_z, low + half * first, half * half * (second / z - first * first)


@jit(relaxed=FUSE)
def _output_peak(m: float, V: float, power: float, width: float) -> float:
    """Return the approximate maximiser of exp(-(v - m)^2 / (2 V)) (1 + v^2 / width)^-power over v >= 0."""
    peak = max(m, 0.0)
    for _ in range(50):
        base = width + peak * peak
        slope = (m - peak) / V - 2.0 * power * peak / base
        curvature = 1.0 / V + 2.0 * power * max((width - peak * peak) / (base * base), 0.0)
        new = max(peak + slope / curvature, 0.0)
        moved = abs(new - peak)
        peak = new
        if moved * moved < 1e-6 * V:
            break
    return peak
