"""The Gaussian posterior of K and diagonal precisions of any sign, and the words both inferences share.

S      diagonal of the precisions (N,), Sigma = (K^-1 + S)^-1

Positive precisions come first, by a Cholesky factor of I + S^1/2 K S^1/2; those below 0 then by one of
I - |S|^1/2 Sigma_1 |S|^1/2, Sigma_1 what the first gave: the two blocks of Jylanki et al. (2011), section 4.1.
Nothing is added to a diagonal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import psi

from ep_bench.types import Array


class Gaussian(NamedTuple):
    """Covariances (N, N), and log |I + K S|."""

    covariance: Array
    log_determinant: float


class Inferred(NamedTuple):
    """What an inference ends with. ``by_covariance`` A: the evidence's derivative is tr(A dK) / 2."""

    log_evidence: float
    weights: Array  # (N,) K^-1 times the posterior means
    precisions: Array  # (N,)
    covariance: Array  # (N, N) Sigma
    by_covariance: Array  # (N, N)
    by_likelihood: Array  # (2,) by log sigma and log nu
    iterations: int
    stage: str


def gaussian(K: Array, precisions: Array) -> Gaussian | None:
    """Return the posterior, or None where it is not positive definite."""
    Sigma, log_determinant = K.copy(), 0.0
    for sign in (1.0, -1.0):
        rows = np.flatnonzero(sign * precisions > 0.0)
        if len(rows) == 0:
            continue
        root = np.sqrt(sign * precisions[rows])
        B = np.eye(len(rows)) + sign * root[:, None] * Sigma[np.ix_(rows, rows)] * root
        try:
            L = cholesky(B, lower=True)
        except (np.linalg.LinAlgError, ValueError):
            return None
        V = solve_triangular(L, root[:, None] * Sigma[rows], lower=True)
        Sigma -= sign * (V.T @ V)
        log_determinant += 2.0 * float(np.log(L.diagonal()).sum())
    if not np.all(Sigma.diagonal() > 0.0):
        return None
    return Gaussian(Sigma, log_determinant)


def resolvent(precisions: Array, covariance: Array) -> Array:
    """Return (K + S^-1)^-1 = S - S Sigma S."""
    return np.asarray(np.diag(precisions) - precisions[:, None] * covariance * precisions)


def by_likelihood(logarithm: Array, share: Array, nu: float) -> Array:
    """Return the derivatives (2,) of sum_i log t by log sigma and log nu.

    From log(1 + u^2 / (nu sigma^2)) and u^2 / (nu sigma^2 + u^2), or their means, (N,) each.
    """
    constant = 0.5 * (psi(0.5 * (nu + 1.0)) - psi(0.5 * nu) - 1.0 / nu)
    by_nu = len(share) * constant - 0.5 * logarithm.sum() + 0.5 * (nu + 1.0) / nu * share.sum()
    return np.array([(nu + 1.0) * share.sum() - len(share), nu * by_nu])
