"""The Gaussian posterior for covariances K and diagonal precisions of any sign, and the results of inferences.

S      diagonal of the precisions (N,), Sigma = (K^-1 + S)^-1
b      precision-times-means (N,), m = Sigma b

Positive precisions are handled first, by a Cholesky factor of I + S^1/2 K S^1/2. Negative precisions follow, by a
factor of I - |S|^1/2 Sigma_1 |S|^1/2, with Sigma_1 the covariance after the first step. These are the two blocks of
Jylanki et al. (2011), section 4.1. No jitter is added.

Iterations need only the marginals of N(m, Sigma). Let P be the sites with precisions clearly above 0, L the factor, and
R_1 = S^1/2 (L L')^-1 S^1/2 on P and 0 elsewhere. Then

    Sigma_1,ii = (1 - ((L L')^-1)_ii) / S_ii,  m_1,i = (b_i - (R_1 S^-1 b)_i) / S_ii,  i in P

without a product of matrices. The few other sites (Q) then change Sigma_1 by a matrix of the size of Q:

    G = I_Q - R_1 K_Q,  Sigma_1 I_Q = K G,  C = (S_Q^-1 + Sigma_1,QQ)^-1,  (K + S^-1)^-1 = R_1 + G C G'.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, cholesky, solve_triangular
from scipy.special import digamma

from ep_bench.numerics import symmetric
from ep_bench.numerics.jit import jit
from ep_bench.types import Array

BLOCK = 2**22  # covariances between test and training points in memory at once
SMALL = 1e-3  # precision, relative to that of the prior, up to which a site is in Q


class Gaussian(NamedTuple):
    """The covariance of the posterior."""

    covariance: Array  # (N, N)
    log_determinant: float  # log |I + K S|


class InferenceResult(NamedTuple):
    """The result of an inference at fixed hyperparameters."""

    log_evidence: float  # nats
    weights: Array  # (N,) K^-1 times the posterior means
    precisions: Array  # (N,)
    by_covariance: Array  # (N, N) A: the derivative of the evidence is tr(A dK) / 2
    by_likelihood: Array  # (2,) derivatives by log sigma and log nu
    iterations: int
    stage: str  # that converged
    shifts: Array | None = None  # (N,) precision-times-means of EP's sites


class SiteBlocks(NamedTuple):
    """The resolvent (K + S^-1)^-1 in blocks of the sites P and Q."""

    first: NDArray[np.intp]  # P
    rest: NDArray[np.intp]  # Q
    root: Array  # S^1/2 on P
    inverse: Array  # L^-1, a lower triangle
    G: Array  # on P, (P, Q)
    C: Array  # (Q, Q)

    def variance_reduction(self, k: Array) -> Array:
        """Return k' (K + S^-1)^-1 k (n,), prior minus posterior variance, for k (n, N) with the training points.

        The block P is summed as squares, because its terms may be as large as 1 / sigma^2 and nearly cancel.
        """
        half = _product(self.inverse, self.root[:, None] * k[:, self.first].T, 1)
        found = np.einsum("ij,ij->j", half, half)
        if len(self.rest) > 0:
            other = k[:, self.rest] + k[:, self.first] @ self.G
            found += np.einsum("ij,ij->i", other @ self.C, other)
        return np.asarray(found)


class Marginals(NamedTuple):
    """Marginals of N(Sigma b, Sigma)."""

    mean: Array  # (N,)
    variance: Array  # (N,)
    weights: Array  # (N,) K^-1 m
    log_determinant: float  # log |I + K S|
    blocks: SiteBlocks

    def resolvent(self) -> Array:
        """Return (K + S^-1)^-1 (N, N); the blocks are overwritten."""
        first, rest, root, inverse, G, C = self.blocks
        symmetric.square_factor(inverse)
        symmetric.mirror(inverse)
        if len(rest) == 0:
            return inverse * root[:, None] * root
        out = np.empty((len(self.mean), len(self.mean)))
        by_C = G @ C
        out[np.ix_(first, first)] = inverse * root[:, None] * root + by_C @ G.T
        out[np.ix_(first, rest)] = by_C
        out[np.ix_(rest, first)] = by_C.T
        out[np.ix_(rest, rest)] = C
        return out


def gaussian(K: Array, precisions: Array) -> Gaussian | None:
    """Return the posterior for K (N, N) and precisions (N,), or None if it is not positive definite."""
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


def marginals(K: Array, precisions: Array, b: Array) -> Marginals | None:
    """Return the marginals for K (N, N), precisions and b (N,), or None if the posterior is not positive definite."""
    large = precisions * K.diagonal() > SMALL
    first, rest = np.flatnonzero(large), np.flatnonzero(~large)
    root = np.sqrt(precisions[first])
    inverse, log_determinant = symmetric.square(len(first)), 0.0
    if len(first) > 0:
        _fill(K, first, root, inverse)
        if not symmetric.factorise(inverse):
            return None
        log_determinant = symmetric.log_determinant(inverse)
        symmetric.invert_factor(inverse)
    mean, variance, weights = np.empty_like(b), np.empty_like(b), np.empty_like(b)
    half = _product(inverse, (b[first] / root)[:, None], 1)
    weights[first] = root * _product(inverse, half, 0)[:, 0]
    variance[first] = (1.0 - symmetric.column_squares(inverse)) / precisions[first]
    G, C = np.empty((len(first), 0)), np.empty((0, 0))
    if len(rest) > 0:
        across = K[np.ix_(first, rest)]
        V = _product(inverse, root[:, None] * across, 1)
        inside = K[np.ix_(rest, rest)] - V.T @ V
        other = gaussian(inside, precisions[rest])
        if other is None:
            return None
        U = _product(inverse, V, 0)
        G, C = -root[:, None] * U, resolvent(precisions[rest], other.covariance)
        before = across.T @ weights[first] + inside @ b[rest]
        weights[rest] = b[rest] - C @ before
        weights[first] += G @ weights[rest]
        mean[rest] = before - inside @ (C @ before)
        variance[rest] = other.covariance.diagonal()
        moved = U / root[:, None]
        variance[first] -= np.einsum("ij,ij->i", moved @ C, moved)
        log_determinant += other.log_determinant
    mean[first] = (b[first] - weights[first]) / precisions[first]
    if not (np.all(variance > 0.0) and np.isfinite(mean).all()):
        return None
    return Marginals(mean, variance, weights, log_determinant, SiteBlocks(first, rest, root, inverse, G, C))


def divided(K: Array, precisions: Array) -> SiteBlocks:
    """Return the blocks of a posterior for K (N, N) and precisions (N,), without points of prior variance 0.

    Raises FloatingPointError if it is not positive definite.
    """
    rows = np.flatnonzero(K.diagonal() > 0.0)
    found = marginals(K[np.ix_(rows, rows)], precisions[rows], np.zeros(len(rows)))
    if found is None:
        raise FloatingPointError("the posterior of the site precisions is not positive definite")
    return found.blocks._replace(first=rows[found.blocks.first], rest=rows[found.blocks.rest])


@jit()
def _fill(K: Any, rows: Any, root: Any, out: Any) -> None:
    """Write the lower triangle of I + S^1/2 K S^1/2 for n of the sites to ``out`` (n, n).

    K is (N, N), ``rows`` (n,) are the indices of the sites, ``root`` (n,) is S^1/2.
    """
    for i in range(rows.size):
        row, into = K[rows[i]], out[i]
        for j in range(i + 1):
            into[j] = root[i] * row[rows[j]] * root[j]
        into[i] += 1.0


def _product(T: Array, B: Array, trans: int) -> Array:
    """Return T B for a lower triangle T, or T' B if ``trans`` is 0."""
    return np.asarray(blas.dtrmm(1.0, T.T, B, lower=0, trans_a=trans)) if B.size else B


def resolvent(precisions: Array, covariance: Array) -> Array:
    """Return (K + S^-1)^-1 = S - S Sigma S from precisions S (N,) and covariances Sigma (N, N)."""
    return np.asarray(np.diag(precisions) - precisions[:, None] * covariance * precisions)


def by_likelihood(logarithm: Array, ratio: Array, nu: float) -> Array:
    """Return the derivatives (2,) of sum_i log t by log sigma and log nu.

    ``logarithm`` is log(1 + u^2 / (nu sigma^2)) and ``ratio`` u^2 / (nu sigma^2 + u^2), or their means, (N,) each.
    """
    constant = 0.5 * (digamma(0.5 * (nu + 1.0)) - digamma(0.5 * nu) - 1.0 / nu)
    by_nu = len(ratio) * constant - 0.5 * logarithm.sum() + 0.5 * (nu + 1.0) / nu * ratio.sum()
    return np.array([(nu + 1.0) * ratio.sum() - len(ratio), nu * by_nu])
