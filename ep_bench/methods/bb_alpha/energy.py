"""The energy of black-box alpha for one minibatch and one set of weight samples, and its gradient.

Symbols (P weights, K samples, B rows of the batch, N rows in all):

    m, v, s        mean, variance and deviation of q's weights
    w_k, e_k       a sample, w = m + s e
    tau, nu        natural parameters of the tied factor f: tau = (1 / v - 1 / v0) / N, nu = m / (N v)
    F_k            log f(w_k) = sum(nu w - tau w^2 / 2)
    l_bk           log p(y_b | w_k), noise variance sigma2
    p_bk           softmax over k of alpha (l_bk - F_k): the samples' weights in the tilted distribution of row b
    r_k            sum over b of p_bk

    energy = log Z_prior - log Z_q - N / (B alpha) sum_b (logsumexp_k alpha (l_bk - F_k) - log K)

with log Z_q = sum(log(2 pi v) / 2 + m^2 / (2 v)), log Z_prior likewise. As alpha goes to 0 the last term becomes the
mean over k of l_bk - F_k, and the energy the negative variational bound, the divergence estimated from the same draws.
The parameters are theta = (m, rho, log sigma2), v = v0 / (1 + exp(-rho)).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ep_bench.models.mlp import backward, forward
from ep_bench.numerics.jit import FUSE, REORDER, jit

TINY = 1e-14  # an alpha of this size is 0: below, its inverse would lift rounding above everything else


class Work(NamedTuple):
    """Scratch for K samples, B rows and P weights."""

    noise: Any  # (K, P) e
    W: Any  # (K, P) w
    gradients: Any  # (K, P) of the data term by w
    Z: Any  # (K, B * units) hidden outputs
    D: Any  # (2, B * widest)
    f: Any  # (B,)
    tilt: Any  # (K, B) network outputs, then the derivatives by them
    shares: Any  # (K, B) alpha (l - F), then p
    F: Any  # (K,)
    r: Any  # (K,)
    vectors: Any  # (6, P) s, tau, nu, sums over k of r e, r e^2 and g e


@jit(relaxed=FUSE)
def deviations(theta: Any, prior_variance: float, work: Work, n: int) -> None:
    """Write s, tau and nu of the parameters (2 P + 1,)."""
    P = work.W.shape[1]
    s, tau, nu = work.vectors[0], work.vectors[1], work.vectors[2]
    for i in range(P):
        v = prior_variance / (1.0 + math.exp(-theta[P + i]))
        s[i] = math.sqrt(v)
        # 1 / v - 1 / v0 = exp(-rho) / v0
        tau[i] = math.exp(-theta[P + i]) / (prior_variance * n)
        nu[i] = theta[i] / (v * n)


@jit(relaxed=REORDER)
def energy(
    theta: Any, X: Any, y: Any, layers: Any, n: int, alpha: float, prior_variance: float, work: Work, gradient: Any
) -> float:
    """Return the energy of a batch X (B, d), y (B,) of n rows at the noise in ``work``; write its gradient (2 P + 1,).

    ``deviations`` has been called, and ``work.W`` holds the weights of ``work.noise``.
    """
    K, P = work.W.shape
    rows = X.shape[0]
    sigma2 = math.exp(theta[2 * P])
    data = _tilted(theta, X, y, layers, alpha, work)
    by_noise = 0.0
    factor = n / rows
    for k in range(K):
        share = 0.0
        for b in range(rows):
            residual = y[b] - work.tilt[k, b]
            p = work.shares[k, b]
            share += p
            by_noise += p * (0.5 - 0.5 * residual * residual / sigma2)
            work.tilt[k, b] = -factor * p * residual / sigma2
        work.r[k] = share
        backward(X, work.W[k], layers, work.Z[k], work.tilt[k, :rows], 1.0, work.gradients[k], work.D)
    gradient[2 * P] = factor * by_noise
    _collect(theta, prior_variance, rows, n, work, gradient)
    return _log_normalisers(theta, prior_variance, P) - factor * data


@jit(relaxed=REORDER)
def _tilted(theta: Any, X: Any, y: Any, layers: Any, alpha: float, work: Work) -> float:
    """Return the sum over rows of log E[(p / f)^alpha] / alpha; write outputs and p."""
    K, P = work.W.shape
    rows = X.shape[0]
    sigma2, constant = math.exp(theta[2 * P]), -0.5 * (math.log(2.0 * math.pi) + theta[2 * P])
    limit = abs(alpha) < TINY
    power = 1.0 if limit else alpha
    f = work.f[:rows]
    for k in range(K):
        forward(X, work.W[k], layers, work.Z[k], f)
        work.F[k] = _log_factor(work.W[k], work.vectors[1], work.vectors[2])
        for b in range(rows):
            residual = y[b] - f[b]
            work.tilt[k, b] = f[b]
            work.shares[k, b] = power * (constant - 0.5 * residual * residual / sigma2 - work.F[k])
    total = 0.0
    for b in range(rows):
        total += _mean_share(work.shares, b) if limit else _log_mean_share(work.shares, b) / alpha
    return total


@jit(relaxed=REORDER, inline=True)
def _log_factor(w: Any, tau: Any, nu: Any) -> float:
    total = 0.0
    for i in range(w.size):
        total += w[i] * (nu[i] - 0.5 * tau[i] * w[i])
    return total


@jit(relaxed=REORDER, inline=True)
def _log_mean_share(shares: Any, b: int) -> float:
    """Return log mean exp over the samples of row b; turn the column into its softmax."""
    K = shares.shape[0]
    top = shares[0, b]
    for k in range(K):
        top = max(top, shares[k, b])
    total = 0.0
    for k in range(K):
        shares[k, b] = math.exp(shares[k, b] - top)
        total += shares[k, b]
    for k in range(K):
        shares[k, b] /= total
    return top + math.log(total / K)


@jit(relaxed=REORDER, inline=True)
def _mean_share(shares: Any, b: int) -> float:
    K = shares.shape[0]
    total = 0.0
    for k in range(K):
        total += shares[k, b]
        shares[k, b] = 1.0 / K
    return total / K


@jit(relaxed=REORDER)
def _collect(theta: Any, prior_variance: float, rows: int, n: int, work: Work, gradient: Any) -> None:
    """Add up the gradient by m and rho: through the samples, through the factor, through log Z_q."""
    K, P = work.W.shape
    s, tau, nu = work.vectors[0], work.vectors[1], work.vectors[2]
    re, ree, ge = work.vectors[3], work.vectors[4], work.vectors[5]
    for i in range(P):
        gradient[i], re[i], ree[i], ge[i] = 0.0, 0.0, 0.0, 0.0
    for k in range(K):
        r, g, e = work.r[k], work.gradients[k], work.noise[k]
        _add_sample(r, g, e, gradient, re, ree, ge)
    for i in range(P):
        m, variance = theta[i], s[i] * s[i]
        # sums over k of r w and r w^2 from those of r e and r e^2; sum of r is the number of rows
        rw = rows * m + s[i] * re[i]
        rww = rows * m * m + 2.0 * m * s[i] * re[i] + variance * ree[i]
        rwe = m * re[i] + s[i] * ree[i]
        scale = n / rows
        by_m = gradient[i] + scale * (nu[i] * rows - tau[i] * rw) + rw / (rows * variance) - m / variance
        by_s = ge[i] + scale * (nu[i] * re[i] - tau[i] * rwe)
        by_v = (0.5 * rww - m * rw) / (rows * variance * variance) + 0.5 * (m * m / variance - 1.0) / variance
        gradient[i] = by_m
        gradient[P + i] = (0.5 * by_s / s[i] + by_v) * variance * (1.0 - variance / prior_variance)


@jit(relaxed=REORDER, inline=True)
def _add_sample(r: float, g: Any, e: Any, by_w: Any, re: Any, ree: Any, ge: Any) -> None:
    for i in range(g.size):
        by_w[i] += g[i]
    for i in range(g.size):
        ge[i] += g[i] * e[i]
    for i in range(g.size):
        re[i] += r * e[i]
    for i in range(g.size):
        ree[i] += r * e[i] * e[i]


@jit(relaxed=REORDER)
def _log_normalisers(theta: Any, prior_variance: float, P: int) -> float:
    """Return log Z_prior - log Z_q."""
    total = 0.0
    for i in range(P):
        share = 1.0 / (1.0 + math.exp(-theta[P + i]))  # v / v0
        total -= 0.5 * (math.log(share) + theta[i] * theta[i] / (prior_variance * share))
    return total


def workspace(samples: int, rows: int, weights: int, units: int, widest: int) -> Work:
    """Return scratch for batches of up to ``rows`` rows; only whole batches fill it."""
    return Work(
        noise=np.empty((samples, weights)),
        W=np.empty((samples, weights)),
        gradients=np.empty((samples, weights)),
        Z=np.empty((samples, rows * units)),
        D=np.empty((2, rows * widest)),
        f=np.empty(rows),
        tilt=np.empty((samples, rows)),
        shares=np.empty((samples, rows)),
        F=np.empty(samples),
        r=np.empty(samples),
        vectors=np.empty((6, weights)),
    )
