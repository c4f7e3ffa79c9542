"""Slow reference implementations of the covariances: one pair of points at a time, by the formulas of the papers."""

from __future__ import annotations

import math

import numpy as np


def se(x, z, lengthscales, magnitude):
    """Jylanki et al. (2011), equation (2)."""
    return magnitude * math.exp(-0.5 * sum(((a - b) / l) ** 2 for a, b, l in zip(x, z, lengthscales, strict=True)))


def matern32(x, z, lengthscales, magnitude):
    """Rasmussen and Williams (2006), equation (4.17), nu = 3/2."""
    r = math.sqrt(sum(((a - b) / l) ** 2 for a, b, l in zip(x, z, lengthscales, strict=True)))
    return magnitude * (1 + math.sqrt(3) * r) * math.exp(-math.sqrt(3) * r)


def matern52(x, z, lengthscales, magnitude):
    """Rasmussen and Williams (2006), equation (4.17), nu = 5/2."""
    r = math.sqrt(sum(((a - b) / l) ** 2 for a, b, l in zip(x, z, lengthscales, strict=True)))
    return magnitude * (1 + math.sqrt(5) * r + 5 * r**2 / 3) * math.exp(-math.sqrt(5) * r)


def nn(x, z, bias_variance, weight_variances, magnitude):
    """Williams (1998), equation (11)."""

    def product(a, b):
        return 2 * (bias_variance + sum(s * u * v for s, u, v in zip(weight_variances, a, b, strict=True)))

    sine = product(x, z) / math.sqrt((1 + product(x, x)) * (1 + product(z, z)))
    return magnitude * 2 / math.pi * math.asin(sine)


def linear(x, z, variances):
    return sum(v * a * b for v, a, b in zip(variances, x, z, strict=True))


def matrix(k, X, Z):
    """Return the matrix (n, m) of a covariance k(x, z)."""
    return np.array([[k(x, z) for z in Z] for x in X])


def log_evidence(K, noise_variance, y):
    """log N(y | 0, K + noise), by eigenvalues."""
    values, vectors = np.linalg.eigh(K + noise_variance * np.eye(len(y)))
    return -0.5 * (((vectors.T @ y) ** 2 / values).sum() + np.log(2 * np.pi * values).sum())
