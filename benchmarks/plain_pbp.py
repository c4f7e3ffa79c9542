"""Probabilistic backpropagation as a plain compiled kernel: scalar loops over (n_out, n_in + 1) matrices, math.erfc.

This is a straightforward compiled implementation, faster than the slow twin of the tests and slower than the kernels of
the package. The benchmark compares with it, and a test compares it with the twin.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

SQRT_HALF = math.sqrt(0.5)
DENSITY_0 = 1 / math.sqrt(2 * math.pi)


@njit(cache=True, error_model="numpy")
def gamma_update(a, b, variance, square):
    s0, s1, s2 = variance + b / (a - 1), variance + b / a, variance + b / (a + 1)
    l0, l1, l2 = (
        -0.5 * (math.log(s0) + square / s0),
        -0.5 * (math.log(s1) + square / s1),
        -0.5 * (math.log(s2) + square / s2),
    )
    a_new = 1 / (math.exp(l0 + l2 - 2 * l1) * (a + 1) / a - 1)
    return a_new, 1 / (math.exp(l2 - l1) * (a + 1) / b - math.exp(l1 - l0) * a / b)


@njit(cache=True, error_model="numpy")
def relu(m, v):
    """Mean and variance of the unit's output, their derivatives with respect to m and v."""
    s = math.sqrt(v)
    alpha = m / s
    small = 0.5 * math.erfc(abs(alpha) * SQRT_HALF)
    cdf, tail = (small, 1 - small) if alpha < 0 else (1 - small, small)
    density = DENSITY_0 * math.exp(-0.5 * alpha * alpha)
    gamma = -alpha - 1 / alpha + 2 / alpha**3 if alpha < -30 else density / cdf
    v_dash = m + s * gamma
    mean = cdf * v_dash
    variance = mean * v_dash * tail + cdf * v * (1 - gamma * (gamma + alpha))
    return mean, variance, cdf, 0.5 * density / s, 2 * mean * tail, cdf - mean * density / s


@njit(cache=True, error_model="numpy")
def step(x, y, means, variances, noise, z, z_var, d_z, d_z_var, slopes):
    """One assumed-density step; per layer, z, z_var and their gradients are (n_in + 1,), and slopes (n_in, 4)."""
    layers = len(means)
    z[0][:-1] = x
    mean = variance = 0.0
    for l in range(layers):
        m, v = means[l], variances[l]
        n_out, n = m.shape
        for i in range(n_out):
            mean = variance = 0.0
            for j in range(n):
                mean += m[i, j] * z[l][j]
                variance += v[i, j] * z[l][j] * z[l][j]
                if l > 0:
                    variance += (m[i, j] * m[i, j] + v[i, j]) * z_var[l][j]
            mean, variance = mean / math.sqrt(n), variance / n
            if l < layers - 1:
                one = relu(mean, variance)
                z[l + 1][i], z_var[l + 1][i] = one[0], one[1]
                for k in range(4):
                    slopes[l + 1][i, k] = one[2 + k]
    scale = variance + noise[1] / (noise[0] - 1)
    residual = y - mean
    d_mean, d_variance = residual / scale, 0.5 * (residual * residual / (scale * scale) - 1 / scale)
    for l in range(layers - 1, -1, -1):
        m, v = means[l], variances[l]
        n_out, n = m.shape
        d_z[l][:] = 0.0
        d_z_var[l][:] = 0.0
        for i in range(n_out):
            if l < layers - 1:
                one = slopes[l + 1]
                d_mean = d_z[l + 1][i] * one[i, 0] + d_z_var[l + 1][i] * one[i, 2]
                d_variance = d_z[l + 1][i] * one[i, 1] + d_z_var[l + 1][i] * one[i, 3]
            g, k = d_mean / math.sqrt(n), d_variance / n
            for j in range(n):
                mj, vj, zj, wj = m[i, j], v[i, j], z[l][j], z_var[l][j]
                if l > 0:
                    d_z[l][j] += g * mj + 2 * k * vj * zj
                    d_z_var[l][j] += k * (mj * mj + vj)
                d_m = g * zj + 2 * k * mj * wj
                d_v = k * (zj * zj + wj)
                new = vj - vj * vj * (d_m * d_m - 2 * d_v)
                if new > 1e-100:
                    m[i, j], v[i, j] = mj + vj * d_m, new
    noise[0], noise[1] = gamma_update(noise[0], noise[1], variance, residual * residual)


@njit(cache=True, error_model="numpy")
def refine(means, variances, precisions, factor_a, factor_b, prior):
    for l in range(len(means)):
        m, v = means[l], variances[l]
        for i in range(m.shape[0]):
            for j in range(m.shape[1]):
                precision = 1 / v[i, j] - precisions[l][i, j]
                a, b = prior[0] - factor_a[l][i, j], prior[1] - factor_b[l][i, j]
                cavity = 1 / precision
                if not (0 < cavity < 1e6 and a > 1 and b > 0):
                    continue
                m_cavity = m[i, j] / v[i, j] * cavity
                scale = cavity + b / (a - 1)
                m[i, j], v[i, j] = m_cavity - cavity * m_cavity / scale, cavity - cavity * cavity / scale
                prior[0], prior[1] = gamma_update(a, b, cavity, m_cavity * m_cavity)
                precisions[l][i, j] = 1 / v[i, j] - precision
                factor_a[l][i, j], factor_b[l][i, j] = prior[0] - a, prior[1] - b


@njit(cache=True, error_model="numpy")
def epoch(X, y, order, means, variances, noise, z, z_var, d_z, d_z_var, slopes):
    for row in order:
        step(X[row], y[row], means, variances, noise, z, z_var, d_z, d_z_var, slopes)


class PlainPBP:
    """The arrays of a fit; ``fit(X, y, orders)`` runs one epoch per order. The means of prior factors are 0."""

    def __init__(self, start):
        copies = [tuple(f(np.array(m, dtype=float)) for m in start) for f in (np.array,) + (np.empty_like,) * 4]
        self.means, self.variances, self.precisions, self.factor_a, self.factor_b = copies
        for name, value in (("variances", 1.2), ("precisions", 5 / 6), ("factor_a", 0.0), ("factor_b", 0.0)):
            for one in getattr(self, name):
                one[...] = value
        self.noise, self.prior = np.array([6.0, 6.0]), np.array([6.0, 6.0])
        sizes = [m.shape[1] for m in start]
        self.scratch = [tuple(np.zeros(n) for n in sizes) for _ in range(4)]
        for z in self.scratch[0]:
            z[-1] = 1.0
        self.slopes = tuple(np.zeros((n, 4)) for n in sizes)

    def fit(self, X, y, orders):
        for order in orders:
            epoch(X, y, order, self.means, self.variances, self.noise, *self.scratch, self.slopes)
            refine(self.means, self.variances, self.precisions, self.factor_a, self.factor_b, self.prior)
        return self
