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

from ep_bench.models.meanfield import sum_of_logs
from ep_bench.models.mlp import backward, forward
from ep_bench.numerics.jit import FUSE, REORDER, jit
from ep_bench.numerics.simd.vector import WIDTH, load, store

TINY = 1e-14  # an alpha of this size is 0: below, its inverse would lift rounding above everything else


class EnergyWorkspace(NamedTuple):
    """Scratch for K samples, B rows and P weights."""

    noise: Any  # (K, P) e
    W: Any  # (K, P) w
    gradients: Any  # (P,) of the data term by a sample's w
    Z: Any  # (K, B * units) hidden outputs
    D: Any  # (2, B * widest)
    f: Any  # (B,)
    tilt: Any  # (K, B) network outputs, then the derivatives by them
    shares: Any  # (K, B) alpha (l - F), then p
    F: Any  # (K,)
    vectors: Any  # (6, P) s, tau, nu, sums over k of r e, r e^2 and g e


@jit(relaxed=FUSE)
def deviations(theta: Any, prior_variance: float, work: EnergyWorkspace, n: int) -> None:
    """Write s, tau and nu of the parameters (2 P + 1,)."""
    P = work.W.shape[1]
    s, tau, nu = work.vectors[0], work.vectors[1], work.vectors[2]
    for i in range(P):
        s[i] = math.exp(-theta[P + i])
    for i in range(P):
        odds = s[i]
        tau[i] = odds / (prior_variance * n)  # 1 / v - 1 / v0 = exp(-rho) / v0
        nu[i] = theta[i] * (1.0 + odds) / (prior_variance * n)
        s[i] = math.sqrt(prior_variance / (1.0 + odds))


@jit(relaxed=REORDER)
def energy(
    theta: Any,
    X: Any,
    y: Any,
    layers: Any,
    n: int,
    alpha: float,
    prior_variance: float,
    work: EnergyWorkspace,
    gradient: Any,
) -> float:
    """Return the energy of a batch X (B, d), y (B,) of n rows at the noise in ``work``; write its gradient (2 P + 1,).

    ``deviations`` has been called, and ``work.W`` holds the weights of ``work.noise``.
    """
    K, P = work.W.shape
    rows = X.shape[0]
    sigma2 = math.exp(theta[2 * P])
    data = _tilted(theta, X, y, layers, alpha, work)
    by_noise = 0.0
    factor, precision = n / rows, 1.0 / sigma2
    gradient[:P] = 0.0
    work.vectors[3:] = 0.0
    for k in range(K):
        share, squares = 0.0, 0.0
        p, slope = work.shares[k], work.tilt[k, :rows]
        for b in range(rows):
            residual = y[b] - slope[b]
            share += p[b]
            squares += p[b] * residual * residual
            slope[b] = -factor * precision * p[b] * residual
        by_noise += 0.5 * (share - precision * squares)
        backward(X, work.W[k], layers, work.Z[k], slope, 1.0, work.gradients, work.D)
        _add_sample(share, work.gradients, work.noise[k], gradient, work.vectors)
    gradient[2 * P] = factor * by_noise
    _collect(theta, prior_variance, rows, n, work, gradient)
    return _log_normalisers(theta, prior_variance, work.vectors[0]) - factor * data


@jit(relaxed=REORDER)
def _tilted(theta: Any, X: Any, y: Any, layers: Any, alpha: float, work: EnergyWorkspace) -> float:
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
        level, slope, shares, tilt = power * (constant - work.F[k]), -0.5 * power / sigma2, work.shares[k], work.tilt[k]
        for b in range(rows):
            residual = y[b] - f[b]
            tilt[b] = f[b]
            shares[b] = level + slope * residual * residual
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
def _collect(theta: Any, prior_variance: float, rows: int, n: int, work: EnergyWorkspace, gradient: Any) -> None:
    """Turn the sums over samples into the gradient by m and rho: through them, the factor and log Z_q."""
    P = work.W.shape[1]
    s, tau, nu = work.vectors[0], work.vectors[1], work.vectors[2]
    re, ree, ge = work.vectors[3], work.vectors[4], work.vectors[5]
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


@jit(relaxed=REORDER)
def _add_sample(r: float, g: Any, e: Any, by_w: Any, vectors: Any) -> None:
    """Add a sample's g to ``by_w`` and its r e, r e^2 and g e to the last three vectors."""
    re, ree, ge = vectors[3], vectors[4], vectors[5]
    whole = g.size // WIDTH * WIDTH
    for i in range(0, whole, WIDTH):
        slope, noise = load(g, i), load(e, i)
        share = r * noise
        store(by_w, i, load(by_w, i) + slope)
        store(re, i, load(re, i) + share)
        store(ree, i, load(ree, i) + share * noise)
        store(ge, i, load(ge, i) + slope * noise)
    for i in range(whole, g.size):
        by_w[i] += g[i]
        re[i] += r * e[i]
        ree[i] += r * e[i] * e[i]
        ge[i] += g[i] * e[i]


@jit(relaxed=REORDER)
def _log_normalisers(theta: Any, prior_variance: float, s: Any) -> float:
    """Return log Z_prior - log Z_q."""
    total = 0.0
    for i in range(s.size):
        total -= theta[i] * theta[i] / (s[i] * s[i])
    return 0.5 * (total + s.size * math.log(prior_variance)) - sum_of_logs(s)


def workspace(samples: int, rows: int, weights: int, units: int, widest: int) -> EnergyWorkspace:
    """Return scratch for batches of up to ``rows`` rows; only whole batches fill it."""
    return EnergyWorkspace(
        noise=np.empty((samples, weights)),
        W=np.empty((samples, weights)),
        gradients=np.empty(weights),
        Z=np.empty((samples, rows * units)),
        D=np.empty((2, rows * widest)),
        f=np.empty(rows),
        tilt=np.empty((samples, rows)),
        shares=np.empty((samples, rows)),
        F=np.empty(samples),
        vectors=np.empty((6, weights)),
    )
