"""The tied factor of one output: posterior, cavity, their share of the energy and its gradient.

q(u) is proportional to N(u; 0, K) g(u)^N; g^N has the natural parameters Theta_1 = R' R (R upper triangular, its
diagonal positive) and theta_2. With a share beta of it, 1 for the posterior, (N - alpha) / N for the cavity,

    V^-1 = K^-1 + beta Theta_1,   m = beta V theta_2,   W = I + beta R K R' = L L',   S = sqrt(beta) L^-1 R

give all that is needed, with neither K^-1 nor a factor of K:

    G = K^-1 - K^-1 V K^-1 = S' S,   A = K^-1 m = t - G K t  (t = beta theta_2),   log|V| - log|K| = -log|W|

K, V, W   (M, M); K with its jitter          H    R' Wc^-1 W1^-1 R (M, M); 1 the posterior's, c the cavity's
m, A, t   (M,); the cavity's unless said     e    (A1 - Ac) / (1 - beta) = (I - G1 K) (theta_2 - Theta_1 mc), (M,)
D, a      gradients of what the propagation gives, with respect to G (symmetric) and A

The energy has (N / alpha - 1) phi_1 - (N / alpha) phi_c, phi = -log|W| / 2 + t' K A / 2 (log|K| / 2 cancels against
that of the prior). In its gradient the differences between posterior and cavity, of order alpha / N, are in closed form
(H and e): N / alpha times them keeps its digits however small alpha is, and has a limit at alpha = 0, where the energy
is the variational one. The energy itself loses a digit each time that alpha falls to a tenth.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ep_bench.numerics.cholesky import inverse_factor
from ep_bench.numerics.copying import copy_vector
from ep_bench.numerics.jit import FUSE, REORDER, jit


class Power(NamedTuple):
    """The number of rows N, the power alpha, and the share beta of the tied factor that the cavity keeps."""

    n: float
    alpha: float
    beta: float  # (N - alpha) / N


class Cavity(NamedTuple):
    """The cavity (or, with beta = 1, the posterior) of one output, as far as propagation needs it."""

    S: Any  # (M, M)
    G: Any  # (M, M)
    A: Any  # (M,)
    mean: Any  # (M,) m = K A
    inverse: Any  # (M, M) L^-1, lower triangular
    spread: Any  # (M, M) R K R'
    log_determinant: float  # of W; nan where W has no factor
    quadratic: float  # t' K A = m' V^-1 m


class TiedTerms(NamedTuple):
    """What the energy and its gradient need beside the cavity."""

    energy: float  # this output's share, nats
    H: Any  # (M, M)
    e: Any  # (M,)
    Ke: Any  # (M,)


class BackwardTerms(NamedTuple):
    """What the backward pass needs."""

    G: Any  # (M, M), the cavity's
    H: Any  # (M, M)
    A: Any  # (M,)
    mean: Any  # (M,)
    e: Any  # (M,)
    Ke: Any  # (M,)


def power(n: int, alpha: float) -> Power:
    """Return the power alpha of n rows."""
    return Power(float(n), float(alpha), (n - alpha) / n)


@jit(relaxed=FUSE, merged=True)
def unpack(packed: Any, R: Any) -> None:
    """Write the upper triangular R (M, M), zeros below, from its packed form, the diagonal as logarithms."""
    at = 0
    for i in range(len(R)):
        R[i, :i] = 0.0
        for j in range(i, len(R)):
            R[i, j] = packed[at + j - i]
        R[i, i] = math.exp(R[i, i])
        at += len(R) - i


@jit(relaxed=FUSE, merged=True)
def _plus_identity(spread: Any, share: float) -> Any:
    """Return I + share * spread."""
    W = share * spread
    for i in range(len(W)):
        W[i, i] += 1.0
    return W


@jit(relaxed=FUSE, merged=True)
def cavity(K: Any, R: Any, theta_2: Any, beta: float) -> Cavity:
    """Return the state with a share beta of the tied factor."""
    spread = np.dot(np.dot(R, K), R.T)
    inverse, log_determinant = inverse_factor(_plus_identity(spread, beta))
    S = np.dot(inverse, R)
    S *= math.sqrt(beta)
    t = beta * theta_2
    Kt = np.dot(K, t)
    A = t - np.dot(S.T, np.dot(S, Kt))
    return Cavity(S, np.dot(S.T, S), A, np.dot(K, A), inverse, spread, log_determinant, np.dot(Kt, A))


@jit(relaxed=FUSE, merged=True)
def tie(K: Any, R: Any, theta_2: Any, power: Power, own: Cavity) -> TiedTerms:
    """Return what ties the posterior to its cavity."""
    beta = power.beta
    inverse, log_determinant = inverse_factor(_plus_identity(own.spread, 1.0))
    S1 = np.dot(inverse, R)
    P1 = np.dot(inverse.T, S1)  # W1^-1 R
    Kt = np.dot(K, theta_2)
    A1 = theta_2 - np.dot(S1.T, np.dot(S1, Kt))
    phi = 0.5 * (np.dot(Kt, A1) - log_determinant)
    H = np.dot(own.S.T, np.dot(own.inverse, P1))
    H *= 1.0 / math.sqrt(beta) if beta > 0.0 else 0.0
    Rm = np.dot(R, own.mean)
    rest = theta_2 - np.dot(R.T, Rm)
    e = rest - np.dot(S1.T, np.dot(S1, np.dot(K, rest)))
    if power.alpha > 0.0:
        ratio = power.n / power.alpha
        energy = (ratio - 1.0) * phi - ratio * 0.5 * (own.quadratic - own.log_determinant)
    else:  # the limit, the divergence of q from the prior: beta is 1, the cavity the posterior
        trace = len(K) - (inverse * inverse).sum()
        energy = np.dot(own.mean, theta_2) - 0.5 * (trace + np.dot(Rm, Rm)) - phi
    return TiedTerms(energy, H, e, np.dot(K, e))


@jit(relaxed=REORDER)
def back(
    K: Any, R: Any, power: Power, kept: BackwardTerms, D: Any, a: Any, dK: Any, d_theta_2: Any, d_factor: Any
) -> None:
    """Write the gradient of the energy and of the propagation with respect to K, theta_2 and the packed factor.

    ``D`` (M, M), symmetric, and ``a`` (M,) are the propagation's with respect to the cavity's G and A; dK (M, M) is
    symmetric, every element counted once. d_theta_2 (M,), d_factor (M (M + 1) / 2).
    """
    M, beta = len(K), power.beta
    Ga = np.dot(kept.G, a)
    pull = a - np.dot(K, Ga)  # (I - K G) a
    q = beta * (kept.Ke + pull)
    copy_vector(q, d_theta_2)
    r = beta * kept.e - Ga
    Y = np.dot(kept.G, D)
    X = np.dot(Y, kept.G)
    for i in range(M):
        for j in range(M):
            X[i, j] += 0.5 * kept.H[i, j]
    # The gradient with respect to Theta_1 is beta (D + K U + (K U)') less outer products.
    U = np.dot(X, K)
    for i in range(M):
        for j in range(M):
            U[i, j] = 0.5 * U[i, j] - Y[i, j]
    KU = np.dot(K, U)
    A, e, rest, both = kept.A, kept.e, 0.5 * (1.0 - beta), beta * (1.0 - beta)
    for i in range(M):
        for j in range(M):
            dK[i, j] = (
                0.5 * (kept.G[i, j] + A[i] * r[j] + r[i] * A[j] - A[i] * A[j] + both * e[i] * e[j])
                - X[i, j] + rest * kept.H[i, j]
            )  # fmt: skip
    m, Ke = kept.mean, kept.Ke
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
