"""The energy of black-box alpha for a linear model and any Gaussian q, with its gradient by mean and covariance.

The method evaluates it in coordinates of a root of the covariance, and at the best mean only.
"""

from __future__ import annotations

import numpy as np

from ep_bench.methods.bb_alpha.linear_energy import EnergyGradient, LinearRegressionProblem, energy, gradient, point
from ep_bench.types import Array


def linear_energy(
    X: Array, y: Array, *, alpha: float, prior_variance: float, noise_variance: float, mean: Array, covariance: Array
) -> tuple[float, EnergyGradient]:
    """Return the energy of q = N(mean (d,), covariance (d, d)), nats, and its gradient, for X (N, d) and y (N,).

    The gradient is with respect to mean (d,), covariance (d, d), symmetric, and noise variance, the others fixed.
    Raises FloatingPointError if a cavity or a tilted distribution is improper.
    """
    problem = LinearRegressionProblem(X, y, alpha, prior_variance)
    values, vectors = np.linalg.eigh(covariance)
    at = point(problem, vectors * np.sqrt(values), noise_variance)
    if at is None:
        raise FloatingPointError(f"alpha = {alpha:g}: a cavity or a tilted distribution of this q is improper")
    inverse = np.linalg.inv(at.T)
    mu = inverse @ mean
    slope = gradient(problem, at, mu)
    # the derivative with respect to A has the mean fixed: V = T exp(A) T', so dV = T dA T'
    by_covariance = inverse.T @ slope.covariance @ inverse
    return energy(problem, at, mu), EnergyGradient(inverse.T @ slope.mean, by_covariance, slope.noise / noise_variance)
