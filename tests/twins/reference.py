"""Slow twins of fast routines: NumPy and Python loops that follow the printed formulas of the papers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx, ndtr


def relu_moments(m, v):
    """Mean and variance of max(a, 0), a ~ N(m, v): Hernandez-Lobato and Adams (2015), equations (15) and (16)."""
    s = np.sqrt(v)
    alpha = m / s
    cdf = ndtr(alpha)
    with np.errstate(over="ignore", under="ignore"):
        gamma = np.where(alpha < 0, np.sqrt(2 / np.pi) / erfcx(-np.minimum(alpha, 0) / np.sqrt(2)), 0.0)
        density = np.exp(-0.5 * alpha**2) / np.sqrt(2 * np.pi)
        gamma = np.where(alpha < 0, gamma, density / np.where(alpha < 0, 1.0, cdf))
        far = alpha < -30
        tail = np.where(far, alpha, -30.0)
        gamma = np.where(far, -tail - 1 / tail + 2 / tail**3, gamma)
    v_dash = m + s * gamma
    mean = cdf * v_dash
    variance = mean * v_dash * ndtr(-alpha) + cdf * v * (1 - gamma * (gamma + alpha))
    return mean, variance


def relu_moment_gradients(m, v):
    """Derivatives of the mean and the variance of max(a, 0) with respect to m and v, each of the shape of m."""
    s = np.sqrt(v)
    alpha = m / s
    cdf, density = ndtr(alpha), np.exp(-0.5 * alpha**2) / np.sqrt(2 * np.pi)
    mean = m * cdf + s * density
    # of E[max(a, 0)^2] = (m^2 + v) Phi + m s phi the derivatives are 2 mean and Phi
    return cdf, density / (2 * s), 2 * mean * (1 - cdf), cdf - mean * density / s


def gamma_update(a, b, variance, square):
    """Equations (9) and (10), with Z_k the density of a residual of that square under N(0, variance + b/(a-1+k))."""
    scales = [variance + b / (a - 1 + k) for k in range(3)]
    log_z, log_z1, log_z2 = (-0.5 * (np.log(2 * np.pi * s) + square / s) for s in scales)
    a_new = 1 / (np.exp(log_z + log_z2 - 2 * log_z1) * (a + 1) / a - 1)
    b_new = 1 / (np.exp(log_z2 - log_z1) * (a + 1) / b - np.exp(log_z1 - log_z) * a / b)
    return a_new, b_new, log_z


@dataclass
class SlowPBP:
    """Probabilistic backpropagation as in the paper, with one weight matrix (n_out, n_in + 1) per layer."""

    means: list
    variances: list
    factor_precisions: list
    factor_shifts: list  # precision times mean
    factor_a: list
    factor_b: list
    noise_a: float = 6.0
    noise_b: float = 6.0
    prior_a: float = 6.0
    prior_b: float = 6.0
    undone: int = 0
    log_z: float = 0.0

    @classmethod
    def begin(cls, start):
        zeros = [np.zeros_like(m) for m in start]
        return cls(
            [np.array(m, dtype=float) for m in start],
            [np.full_like(m, 6.0 / 5.0) for m in start],
            [np.full_like(m, 5.0 / 6.0) for m in start],
            [z.copy() for z in zeros],
            [z.copy() for z in zeros],
            [z.copy() for z in zeros],
        )

    def forward(self, x):
        """Equations (13) to (17) for one data point: input moments and activation moments per layer."""
        z, z_var, layers = x, np.zeros_like(x), []
        for index, (m, v) in enumerate(zip(self.means, self.variances, strict=True)):
            if index:
                z, z_var = relu_moments(*layers[-1][2:])
            z, z_var = np.append(z, 1.0), np.append(z_var, 0.0)
            a = m @ z / np.sqrt(len(z))
            a_var = (m**2 @ z_var + v @ z**2 + v @ z_var) / len(z)
            layers.append((z, z_var, a, a_var))
        return layers

    def gradients(self, x, y):
        """Gradients of log Z with respect to every mean and variance, by the chain rule, and (m_z, v_z)."""
        layers = self.forward(x)
        mean, variance = layers[-1][2][0], layers[-1][3][0]
        scale = variance + self.noise_b / (self.noise_a - 1)
        d_a = np.array([(y - mean) / scale])
        d_a_var = np.array([0.5 * ((y - mean) ** 2 / scale**2 - 1 / scale)])
        d_m, d_v = [], []
        for index in reversed(range(len(layers))):
            (z, z_var, _, _), m, v = layers[index], self.means[index], self.variances[index]
            n = len(z)
            d_m.insert(0, np.outer(d_a, z) / np.sqrt(n) + 2 * m * np.outer(d_a_var, z_var) / n)
            d_v.insert(0, np.outer(d_a_var, z**2 + z_var) / n)
            if index:
                d_z = d_a @ m / np.sqrt(n) + 2 * (d_a_var @ v) * z / n
                d_z_var = d_a_var @ (m**2 + v) / n
                d_z, d_z_var = d_z[:-1], d_z_var[:-1]
                mean_m, mean_v, var_m, var_v = relu_moment_gradients(*layers[index - 1][2:])
                d_a, d_a_var = d_z * mean_m + d_z_var * var_m, d_z * mean_v + d_z_var * var_v
        return d_m, d_v, mean, variance

    def step(self, x, y):
        """One assumed-density step: equations (6), (7), (9), (10)."""
        d_m, d_v, mean, variance = self.gradients(x, y)
        for m, v, g, h in zip(self.means, self.variances, d_m, d_v, strict=True):
            m_new, v_new = m + v * g, v - v**2 * (g**2 - 2 * h)
            keep = v_new > 1e-100
            self.undone += int((~keep).sum())
            m[...], v[...] = np.where(keep, m_new, m), np.where(keep, v_new, v)
        self.noise_a, self.noise_b, log_z = gamma_update(self.noise_a, self.noise_b, variance, (y - mean) ** 2)
        self.log_z += log_z

    def refine(self):
        """One pass of expectation propagation over the prior factors, one weight at a time."""
        for layer, m in enumerate(self.means):
            for place in np.ndindex(m.shape):
                self._refine_one(layer, place)

    def _refine_one(self, layer, place):
        m, v = self.means[layer][place], self.variances[layer][place]
        precision = 1 / v - self.factor_precisions[layer][place]
        shift = m / v - self.factor_shifts[layer][place]
        a, b = self.prior_a - self.factor_a[layer][place], self.prior_b - self.factor_b[layer][place]
        if not (precision > 0 and 1 / precision < 1e6 and a > 1 and b > 0):
            return
        v_cavity, m_cavity = 1 / precision, shift / precision
        scale = v_cavity + b / (a - 1)
        g, h = -m_cavity / scale, 0.5 * (m_cavity**2 / scale**2 - 1 / scale)
        m_new, v_new = m_cavity + v_cavity * g, v_cavity - v_cavity**2 * (g**2 - 2 * h)
        self.prior_a, self.prior_b, _ = gamma_update(a, b, v_cavity, m_cavity**2)
        self.means[layer][place], self.variances[layer][place] = m_new, v_new
        self.factor_precisions[layer][place] = 1 / v_new - precision
        self.factor_shifts[layer][place] = m_new / v_new - shift
        self.factor_a[layer][place], self.factor_b[layer][place] = self.prior_a - a, self.prior_b - b

    def fit(self, X, y, orders):
        for order in orders:
            for row in order:
                self.step(X[row], y[row])
            self.refine()
        return self

    def predict(self, X):
        """Means and variances (n,), noise included."""
        ends = [self.forward(x)[-1] for x in X]
        noise = self.noise_b / (self.noise_a - 1)
        return np.array([end[2][0] for end in ends]), np.array([end[3][0] + noise for end in ends])
