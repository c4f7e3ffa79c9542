"""The tied factor of one output: posterior, cavity, energy and gradient.

q(u) is proportional to N(u; 0, K) g(u)^N. The natural parameters of g^N are Theta_1 = R' R (R upper triangular with a
positive diagonal) and theta_2. With a fraction beta of it, 1 for the posterior, (N - alpha) / N for the cavity,

    V^-1 = K^-1 + beta Theta_1,   m = beta V theta_2,   W = I + beta R K R' = L L',   S = sqrt(beta) L^-1 R

give all required terms, without K^-1 or a factor of K:

    G = K^-1 - K^-1 V K^-1 = S' S,   A = K^-1 m = t - G K t  (t = beta theta_2),   log|V| - log|K| = -log|W|

Symbols:

    K, V, W    (M, M); K includes its jitter
    m, A, t    (M,); those of the cavity unless stated otherwise
    H          R' Wc^-1 W1^-1 R, (M, M); index 1 is the posterior, c the cavity
    e          (A1 - Ac) / (1 - beta) = (I - G1 K) (theta_2 - Theta_1 mc), (M,)
    D, a       gradients of the propagation with respect to G (M, M), symmetric, and A (M,)

The energy is (N / alpha - 1) phi_1 - (N / alpha) phi_c, phi = -log|W| / 2 + t' K A / 2; its log|K| / 2 cancels against
that of the prior. In its gradient the differences between posterior and cavity, which are of order alpha / N, have a
closed form (H and e). N / alpha times them keeps its digits for small alpha. The limit alpha = 0 is the gradient of the
variational energy. The energy itself loses one digit per factor of 10 in alpha.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ep_bench.numerics.cholesky import inverse_factor
from ep_bench.numerics.copying import copy_vector, difference, scale_matrix
from ep_bench.numerics.jit import FUSE, REORDER, jit


class Power(NamedTuple):
    """The number of data points N, the power alpha, and the fraction beta of the tied factor in the cavity."""

    n: float
    alpha: float
    beta: float  # (N - alpha) / N


class Cavity(NamedTuple):
    """The cavity (or, with beta = 1, the posterior) of one output: the terms that propagation requires."""

    S: Any  # (M, M)
    G: Any  # (M, M)
    A: Any  # (M,)
    mean: Any  # (M,) m = K A
    inverse: Any  # (M, M) L^-1, lower triangular
    RKR: Any  # (M, M) R K R'
    log_determinant: float  # of W; nan if W has no Cholesky factor
    quadratic: float  # t' K A = m' V^-1 m


class TiedTerms(NamedTuple):
    """Terms of the energy and its gradient that involve both posterior and cavity."""

    energy: float  # of this output, nats
    H: Any  # (M, M)
    e: Any  # (M,)
    Ke: Any  # (M,) K e


class BackwardTerms(NamedTuple):
    """Terms that the backward pass requires."""

    G: Any  # (M, M) of the cavity
    H: Any  # (M, M)
    A: Any  # (M,)
    mean: Any  # (M,)
    e: Any  # (M,)
    Ke: Any  # (M,)


def power(n: int, alpha: float) -> Power:
    """Return the constants of power EP with n data points."""
    return Power(float(n), float(alpha), (n - alpha) / n)


@jit(relaxed=FUSE, merged=True)
def unpack(packed: Any, R: Any) -> None:
    """Write the upper triangular R (M, M) from its packed form (M (M + 1) / 2,), whose diagonal is logarithmic."""
    at = 0
    for i in range(len(R)):
        R[i, :i] = 0.0
        for j in range(i, len(R)):
            R[i, j] = packed[at + j - i]
        R[i, i] = math.exp(R[i, i])
        at += len(R) - i


@jit(relaxed=FUSE, merged=True)
def _plus_identity(matrix: Any, scale: float) -> Any:
    """Return I + scale * matrix (M, M)."""
    W = np.empty(matrix.shape)
    for i in range(len(W)):
        for j in range(len(W)):
            W[i, j] = scale * matrix[i, j]
        W[i, i] += 1.0
    return W


@jit(relaxed=FUSE, merged=True)
def cavity(K: Any, R: Any, theta_2: Any, beta: float) -> Cavity:
    """Return the cavity with a fraction beta of the tied factor; K and R (M, M), theta_2 (M,)."""
    RKR = np.dot(np.dot(R, K), R.T)
    inverse, log_determinant = inverse_factor(_plus_identity(RKR, beta))
    S = np.dot(inverse, R)
    scale_matrix(math.sqrt(beta), S)
    t = beta * theta_2
    Kt = np.dot(K, t)
    A = difference(t, np.dot(S.T, np.dot(S, Kt)))
    return Cavity(S, np.dot(S.T, S), A, np.dot(K, A), inverse, RKR, log_determinant, np.dot(Kt, A))


@jit(relaxed=FUSE, merged=True)
def tied_terms(K: Any, R: Any, theta_2: Any, power: Power, cavity: Cavity) -> TiedTerms:
    """Return the terms of posterior and cavity; K and R (M, M), theta_2 (M,)."""
    beta = power.beta
    inverse, log_determinant = inverse_factor(_plus_identity(cavity.RKR, 1.0))
    S1 = np.dot(inverse, R)
    P1 = np.dot(inverse.T, S1)  # W1^-1 R
    Kt = np.dot(K, theta_2)
    A1 = difference(theta_2, np.dot(S1.T, np.dot(S1, Kt)))
    phi = 0.5 * (np.dot(Kt, A1) - log_determinant)
    H = np.dot(cavity.S.T, np.dot(cavity.inverse, P1))
    scale_matrix(1.0 / math.sqrt(beta) if beta > 0.0 else 0.0, H)
    Rm = np.dot(R, cavity.mean)
    rest = difference(theta_2, np.dot(R.T, Rm))
    e = difference(rest, np.dot(S1.T, np.dot(S1, np.dot(K, rest))))
    if power.alpha > 0.0:
        ratio = power.n / power.alpha
        energy = (ratio - 1.0) * phi - ratio * 0.5 * (cavity.quadratic - cavity.log_determinant)
    else:  # the limit: KL divergence of q from the prior; beta is 1 and the cavity is the posterior
        trace = len(K) - (inverse * inverse).sum()
        energy = np.dot(cavity.mean, theta_2) - 0.5 * (trace + np.dot(Rm, Rm)) - phi
    return TiedTerms(energy, H, e, np.dot(K, e))


@jit(relaxed=REORDER)
def back(
    K: Any, R: Any, power: Power, terms: BackwardTerms, D: Any, a: Any, dK: Any, d_theta_2: Any, d_factor: Any
) -> None:
    """Write the gradients of energy and propagation with respect to K, theta_2 and the packed factor.

    ``D`` (M, M), symmetric, and ``a`` (M,) are the gradients of the propagation with respect to G and A of the cavity;
    D is overwritten. dK (M, M) is symmetric and counts every element once; d_theta_2 (M,); d_factor (M (M + 1) / 2,).
    """
    M, beta = len(K), power.beta
    Ga = np.dot(terms.G, a)
    q, r = difference(a, np.dot(K, Ga)), np.empty(M)  # q = (I - K G) a
    for i in range(M):
        q[i] = beta * (terms.Ke[i] + q[i])
        r[i] = beta * terms.e[i] - Ga[i]
    copy_vector(q, d_theta_2)
    Y = np.dot(terms.G, D)
    X = np.dot(Y, terms.G)
    for i in range(M):
        for j in range(M):
            X[i, j] += 0.5 * terms.H[i, j]
    # The gradient with respect to Theta_1 is beta (D + K U + (K U)') minus outer products.
    U = np.dot(X, K)
    for i in range(M):
        for j in range(M):
            U[i, j] = 0.5 * U[i, j] - Y[i, j]
    KU = np.dot(K, U)
    A, e, rest, both = terms.A, terms.e, 0.5 * (1.0 - beta), beta * (1.0 - beta)
    for i in range(M):
        for j in range(M):
            dK[i, j] = (
                0.5 * (terms.G[i, j] + A[i] * r[j] + r[i] * A[j] - A[i] * A[j] + both * e[i] * e[j])
                - X[i, j] + rest * terms.H[i, j]
            )  # fmt: skip
    m, Ke = terms.mean, terms.Ke
    for i in range(M):
        for j in range(M):
            D[i, j] = beta * (D[i, j] + KU[i, j] + KU[j, i]) - 0.5 * (m[i] * q[j] + q[i] * m[j] + both * Ke[i] * Ke[j])
    d_R = np.dot(R, D)
    at = 0
    for i in range(M):
        d_factor[at] = 2.0 * d_R[i, i] * R[i, i]
        for j in range(i + 1, M):
            d_factor[at + j - i] = 2.0 * d_R[i, j]
        at += M - i
