"""Moments of the tilted distributions of one likelihood term (appendices B, C and D).

Symbols, for data point i and unit k:

    m, V           cavity mean and variance of h_k = x' w_k, equation (31)
    m_g, V_g       mean and variance of g(h_k) under it; g(h) = (2 Phi(h) - 1) / sqrt(K), linear: h / sqrt(K)
    mu, Sigma      cavity mean and covariance of the output weights v, equation (32)
    m_f, V_f       cavity mean and variance of f, equation (34)
    s2             e^theta, the noise variance; eta is the fraction of the likelihood
    label          class, -1 or 1, of a probit term Phi(label f), whose eta is 1; 0 for a Gaussian term
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ep_bench.numerics.exponential import exponential
from ep_bench.numerics.jit import FUSE, jit
from ep_bench.numerics.normal import SHIFT, log_normal_cdf, normal_tail
from ep_bench.numerics.simd.vector import WIDTH, absolute, load, select_above, square_root, store, total

REACH = 7.5  # range of a grid, in standard deviations of the cavity on either side
SPACING = 0.4  # maximum distance of nodes, in standard deviations of the cavity
NARROW = 0.25  # the same, in standard deviations of the likelihood as a function of h
SMOOTH = 0.32  # the same, in h itself, unless g is linear
MAX_NODES = 512
LOG_DROP = 40.0  # decrease of a log density from its peak at the ends of a grid
LEGENDRE_NODES, LEGENDRE_WEIGHTS = np.polynomial.legendre.leggauss(12)
NOISE_NODES = 128
DENSITY_AT_0 = 1.0 / math.sqrt(2.0 * math.pi)  # of the standard normal distribution
FIXED = 1e-24  # variance of theta below which theta counts as fixed


@jit(relaxed=FUSE)
def activation_moments(m: float, V: float, scale: float, linear: bool) -> tuple[float, float]:
    """Return mean and variance of g(h) for h ~ N(m, V); ``scale`` is 1 / sqrt(K).

    The variance is the integral of a positive function over the correlation of two copies of h, not a difference.
    """
    if linear:
        return scale * m, scale * scale * V
    mean = scale * math.erf(m / math.sqrt(2.0 * (1.0 + V)))
    end = math.asin(V / (1.0 + V))
    weight, half = m * m / (1.0 + V), 0.5 * end
    integral = 0.0
    for j in range(LEGENDRE_NODES.size):
        angle = half * (1.0 + LEGENDRE_NODES[j])
        integral += LEGENDRE_WEIGHTS[j] * math.exp(-weight / (1.0 + math.sin(angle)))
    return mean, scale * scale * (2.0 / math.pi) * half * integral


@jit(relaxed=FUSE)
def noise_moments(
    y: float, m_f: float, V_f: float, eta: float, mean: float, variance: float
) -> tuple[float, float, float, float, float]:
    """Return ln Z_i, mean and variance of theta, mean and variance of 1 / V_y under the tilted distribution, (37).

    V_y = V_f + e^theta / eta. The cavity of theta is N(mean, variance); theta is fixed for variances below ``FIXED``.
    """
    square = (y - m_f) ** 2
    if variance <= FIXED:
        log_z = _log_factor(mean, square, V_f, eta)
        return log_z, mean, 0.0, 1.0 / (V_f + math.exp(mean) / eta), 0.0
    low, high = _noise_range(square, V_f, eta, mean, variance)
    logs, ratios = np.empty(NOISE_NODES), np.empty(NOISE_NODES)
    for _ in range(2):
        step, top = (high - low) / (NOISE_NODES - 1), -np.inf
        for j in range(NOISE_NODES):
            theta = low + step * j
            logs[j] = _log_factor(theta, square, V_f, eta) - 0.5 * (theta - mean) ** 2 / variance
            ratios[j] = 1.0 / (V_f + math.exp(theta) / eta)
            top = max(top, logs[j])
        narrow = _support(low, step, NOISE_NODES, top, logs)
        if narrow[1] - narrow[0] > 0.7 * (high - low):
            break
        low, high = narrow
    z, first, ratio = 0.0, 0.0, 0.0
    for j in range(NOISE_NODES):
        logs[j] = math.exp(logs[j] - top)
        z += logs[j]
        first += logs[j] * j
        ratio += logs[j] * ratios[j]
    first /= z
    ratio /= z
    second, spread = 0.0, 0.0
    for j in range(NOISE_NODES):
        second += logs[j] * (j - first) ** 2
        spread += logs[j] * (ratios[j] - ratio) ** 2
    log_z = math.log(z * step) + top - 0.5 * math.log(2.0 * math.pi * variance)
    return log_z, low + step * first, step * step * second / z, ratio, spread / z


@jit(relaxed=FUSE, inline=True)
def _log_factor(theta: float, square: float, V_f: float, eta: float) -> float:
    """Return the log of the power eta of the likelihood integrated over f, Z(theta) N(y | m_f, V_y)."""
    V_y = V_f + math.exp(theta) / eta
    power = 0.5 * (1.0 - eta) * (math.log(2.0 * math.pi) + theta) - 0.5 * math.log(eta)
    return power - 0.5 * (math.log(2.0 * math.pi * V_y) + square / V_y)


@jit(relaxed=FUSE)
def _noise_range(square: float, V_f: float, eta: float, mean: float, variance: float) -> tuple[float, float]:
    """Return the range of theta in which the tilted density is above exp(-LOG_DROP) of its peak."""
    peak = _noise_peak(square, V_f, eta, mean, variance)
    floor = _log_factor(peak, square, V_f, eta) - 0.5 * (peak - mean) ** 2 / variance - LOG_DROP
    low, high = peak, peak
    stride = 2.0 * math.sqrt(variance)
    while _log_factor(low, square, V_f, eta) - 0.5 * (low - mean) ** 2 / variance > floor:
        low -= stride
    while _log_factor(high, square, V_f, eta) - 0.5 * (high - mean) ** 2 / variance > floor:
        high += stride
    return low, high


@jit(relaxed=FUSE)
def _noise_peak(square: float, V_f: float, eta: float, mean: float, variance: float) -> float:
    """Return the approximate maximiser of the tilted density of theta."""
    theta = mean
    for _ in range(20):
        noise = math.exp(theta) / eta
        V_y = V_f + noise
        ratio = noise / V_y
        slope = 0.5 * (1.0 - eta) - 0.5 * ratio + 0.5 * square * ratio / V_y - (theta - mean) / variance
        second = 0.5 * ratio * (1.0 - ratio) + 0.5 * square / V_y * ratio * (2.0 * ratio - 1.0)
        curvature = max(1.0 / variance + second, 0.25 / variance)
        step = min(max(slope / curvature, -2.0), 2.0)
        theta += step
        if abs(step) * math.sqrt(curvature) < 0.05:
            break
    return theta


@jit(relaxed=FUSE)
def class_moments(label: float, m_f: float, V_f: float) -> tuple[float, float, float]:
    """Return ln Z_i of a probit term, and residual and 1 / V_y of the Gaussian term with the same tilted moments of f.

    Z_i = Phi(z), z = label m_f / sqrt(1 + V_f); its log has the slope r = phi(z) / Phi(z) and the curvature -r (z + r).
    """
    root = math.sqrt(1.0 + V_f)
    z = label * m_f / root
    log_z, r = log_normal_cdf(z)
    return log_z, label * root / (z + r), r * (z + r) / (root * root)


@jit(relaxed=FUSE)
def tilted_activation(
    label: float, residual: float, noise: float, m: float, V: float, m_g: float, mu: float, spread: float, cross: float,
    rest: float, scale: float, linear: bool, logs: Any, points: Any,
) -> tuple[float, float]:  # fmt: skip
    """Return mean and variance of h_k under the tilted distribution, (36) and (41), on a uniform grid.

    Parameters
    ----------
    label : see above
    residual : y - m_f; of a probit term -m_f
    noise : e^theta / eta; of a probit term 1
    m, V, m_g : moments of the unit
    mu, spread, cross : mu_k, Sigma_kk and (Sigma m_g)_k
    rest : V_f - V_gk (Sigma_kk + mu_k^2), the variance of f if g(h_k) is equal to its mean
    logs, points : (MAX_NODES,) workspaces
    """
    std = math.sqrt(V)
    min_variance = rest + noise - (cross * cross / spread if spread > 0.0 else 0.0)
    slope = scale * (1.0 if linear else math.sqrt(2.0 / math.pi)) * std * math.sqrt(mu * mu + spread)
    step = min(SPACING, NARROW * math.sqrt(max(min_variance, noise)) / max(slope, 1e-300))
    if not linear:
        step = min(step, SMOOTH / std)
    low, high = -REACH, REACH
    for turn in range(2):
        count = min(MAX_NODES, WIDTH * (1 + int((high - low) / step) // WIDTH))
        grid = (high - low) / (count - 1)
        if label == 0.0:
            highest = _fill(
                low, grid, count, residual, rest + noise, m, std, m_g, mu, spread, cross, scale, linear, logs, points
            )
        else:
            highest = _fill_probit(
                label, low, grid, count, residual, rest + noise, m, std, m_g, mu, spread, cross, scale, linear, logs,
                points,
            )  # fmt: skip
        if turn == 1 or grid <= 1.001 * step:
            break
        low, high = _support(low, grid, count, highest, logs)
    return _grid_moments(low, grid, count, highest, m, std, logs, points)


@jit(relaxed=FUSE)
def _fill(
    low: float, grid: float, count: int, residual: float, rest: float, m: float, std: float, m_g: float,
    mu: float, spread: float, cross: float, scale: float, linear: bool, logs: Any, points: Any,
) -> float:  # fmt: skip
    """Write the log density without the factor 1 / sqrt(variance) to ``logs``, and the root to ``points``.

    Both are (MAX_NODES,), for ``count`` nodes with distance ``grid`` from ``low``. Returns the maximum of ``logs``.
    """
    lanes = load(_FIRST, 0)
    for start in range(0, count, WIDTH):
        z = (lanes + start) * grid + low
        h = z * std + m
        change = (h if linear else _error_function(h)) * scale - m_g
        gap = residual - change * mu
        variance = change * (2.0 * cross + change * spread) + rest
        store(logs, start, (z * z + gap * gap / variance) * -0.5)
        store(points, start, square_root(variance))
    highest = -np.inf
    for j in range(count):
        highest = max(highest, logs[j])
    return highest


@jit(relaxed=FUSE)
def _fill_probit(
    label: float, low: float, grid: float, count: int, residual: float, rest: float, m: float, std: float,
    m_g: float, mu: float, spread: float, cross: float, scale: float, linear: bool, logs: Any, points: Any,
) -> float:  # fmt: skip
    """Write the same for a probit term; the density is exp(logs) / points.

    Phi(-t) is exp(-t^2 / 2) times a factor that does not underflow.
    """
    lanes = load(_FIRST, 0)
    for start in range(0, count, WIDTH):
        z = (lanes + start) * grid + low
        h = z * std + m
        change = (h if linear else _error_function(h)) * scale - m_g
        variance = change * (2.0 * cross + change * spread) + rest
        a = (change * mu - residual) * label / square_root(variance)
        t = absolute(a)
        near = select_above(t, 37.0, 37.0 + t * 0.0, t)
        density, tail, _ = normal_tail(near, 1.0 / (near + SHIFT))
        store(logs, start, (z * z + select_above(a, 0.0, t * 0.0, t * t)) * -0.5)
        store(points, start, 1.0 / select_above(a, 0.0, 1.0 - tail, tail / density * DENSITY_AT_0))
    highest = -np.inf
    for j in range(count):
        highest = max(highest, logs[j])
    return highest


@jit(relaxed=FUSE)
def _support(low: float, grid: float, count: int, highest: float, logs: Any) -> tuple[float, float]:
    """Return the range of the nodes whose density is not negligible, extended by one node on either side."""
    first, last = 0, count - 1
    while logs[first] < highest - LOG_DROP:
        first += 1
    while logs[last] < highest - LOG_DROP:
        last -= 1
    return low + grid * (first - 1), low + grid * (last + 1)


@jit(relaxed=FUSE)
def _grid_moments(
    low: float, grid: float, count: int, highest: float, m: float, std: float, logs: Any, points: Any
) -> tuple[float, float]:
    """Return mean and variance of h from the arrays that ``_fill`` writes."""
    lanes, zero = load(_FIRST, 0), load(_ZERO, 0)
    mass, first, second = zero, zero, zero
    for start in range(0, count, WIDTH):
        z = (lanes + start) * grid + low
        p = exponential(load(logs, start) - highest) / load(points, start)
        mass = mass + p
        first = first + p * z
        second = second + p * z * z
    total_mass = total(mass)
    centre = total(first) / total_mass
    return m + std * centre, std * std * (total(second) / total_mass - centre * centre)


@jit(relaxed=FUSE, inline=True)
def _error_function(h: Any) -> Any:
    """Return 2 Phi(h) - 1 for a SIMD vector h."""
    t = absolute(h)
    t = select_above(t, 37.0, 37.0 + t * 0.0, t)
    _, tail, _ = normal_tail(t, 1.0 / (t + SHIFT))
    value = 1.0 - 2.0 * tail
    return select_above(h, 0.0, value, -value)


_FIRST = np.arange(WIDTH, dtype=np.float64)
_ZERO = np.zeros(WIDTH)
