"""The bound with a full covariance of the weights; it is that of a factorised Gaussian plus one term.

    w = m + s * u,   u = (I + A) e,   A strictly lower triangular

so that q(w) = N(m, L L') with L = diag(s) (I + A), and A = 0 is the factorised Gaussian. s are the standard deviations
of w given the weights before it, log det L is the sum of log s, and

    KL(q || prior) = KL of the factorised Gaussian + sum_i s_i^2 sum_j A_ij^2 / (2 v0_i)

A is stored by rows in P (P - 1) / 2 numbers. Symbols and arguments are those of ``models.variational_bound``, whose
noise e is here the correlated noise u.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ep_bench.models import variational_bound
from ep_bench.models.meanfield import scale_noise
from ep_bench.models.variational_bound import BoundWorkspace
from ep_bench.numerics.adam import AdamMoments, moments
from ep_bench.numerics.jit import REORDER, jit
from ep_bench.numerics.normal_rng import fill_normals
from ep_bench.types import Array


class Correlations(NamedTuple):
    """A of P weights, its gradient and moments of Adam, and the independent noise of K samples."""

    values: Any  # (P (P - 1) / 2,)
    gradient: Any  # the same
    moments: AdamMoments
    noise: Any  # (K, P) e


def correlations(samples: int, weights: int) -> Correlations:
    """Return A = 0, before the first step."""
    size = weights * (weights - 1) // 2
    return Correlations(np.zeros(size), np.empty(size), moments(size), np.empty((samples, weights)))


def cholesky_factor(std: Array, values: Array) -> Array:
    """Return L (P, P), the Cholesky factor of the covariance, for s (P,) and A (P (P - 1) / 2,)."""
    factor = np.eye(len(std))
    factor[np.tril_indices(len(std), -1)] = values
    return std[:, None] * factor


@jit(relaxed=REORDER)
def draw(theta: Any, words: Any, work: BoundWorkspace, found: Correlations) -> None:
    """Draw noise and weights of one step at theta (2 P + 1,)."""
    fill_normals(words, found.noise.reshape(found.noise.size))
    correlate(theta, work, found)


@jit(relaxed=REORDER)
def correlate(theta: Any, work: BoundWorkspace, found: Correlations) -> None:
    """Write standard deviations, correlated noise and weights for the independent noise of ``found``."""
    samples, size = found.noise.shape
    start = 0
    for i in range(size):
        work.std[i] = math.exp(theta[size + i])
        row = found.values[start : start + i]
        start += i
        for k in range(samples):
            noise = found.noise[k]
            total = noise[i]
            for j in range(i):
                total += row[j] * noise[j]
            work.noise[k, i] = total
    scale_noise(theta[:size], work.std, work.noise, work.W)


@jit(relaxed=REORDER)
def bound(
    theta: Any, X: Any, y: Any, layers: Any, n: int, prior_variance: Any, work: BoundWorkspace, gradient: Any,
    found: Correlations,
) -> float:  # fmt: skip
    """Return the negative bound of a batch X (B, d), y (B,) of n data points.

    Writes the gradient (2 P + 1,), and that by A. ``work`` and ``found`` must hold what ``draw`` writes.
    """
    value = variational_bound.bound(theta, X, y, layers, n, prior_variance, work, gradient)
    samples, size = found.noise.shape
    start = 0
    for i in range(size):
        row, slopes = found.values[start : start + i], found.gradient[start : start + i]
        start += i
        weight = work.std[i] * work.std[i] / prior_variance[i]
        squares = 0.0
        for j in range(i):
            squares += row[j] * row[j]
            slopes[j] = weight * row[j]
        value += 0.5 * weight * squares
        gradient[size + i] += weight * squares
        for k in range(samples):
            slope, noise = work.std[i] * work.by_w[k, i], found.noise[k]
            for j in range(i):
                slopes[j] += slope * noise[j]
    return value
