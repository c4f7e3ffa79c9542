"""The energy of black-box alpha for one minibatch and one set of weight samples, and its gradient.

Symbols (P weights, K samples, B data points in the batch, N in total):

    m, v, s        means, variances and standard deviations of q(w), (P,)
    w_k, e_k       a weight sample, w = m + s e, (P,)
    v0             prior variance
    tau, nu        natural parameters of the tied factor f: tau = (1 / v - 1 / v0) / N, nu = m / (N v), (P,)
    F_k            log f(w_k) = sum(nu w - tau w^2 / 2)
    l_bk           log p(y_b | w_k), noise variance sigma2
    p_bk           softmax over k of alpha (l_bk - F_k): weights of the samples in the tilted distribution of point b
    r_k            sum over b of p_bk

    energy = log Z_prior - log Z_q - N / (B alpha) sum_b (logsumexp_k alpha (l_bk - F_k) - log K)

with log Z_q = sum(log(2 pi v) / 2 + m^2 / (2 v)), and log Z_prior likewise. For alpha -> 0 the last term is the mean
over k of l_bk - F_k. The energy is then the negative variational bound, with the divergence estimated from the same
draws. The parameters are theta = (m, rho, log sigma2), (2 P + 1,), with v = v0 / (1 + exp(-rho)).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ep_bench.models.meanfield import sum_of_logs
from ep_bench.models.mlp import backward, forward
from ep_bench.numerics.jit import FUSE, REORDER, jit
from ep_bench.numerics.simd.vector import WIDTH, load, store

TINY = 1e-14  # alphas below this count as 0: dividing by them would amplify rounding errors


class EnergyWorkspace(NamedTuple):
    """Arrays for K samples, B data points and P weights."""

    noise: Any  # (K, P) e
    W: Any  # (K, P) w
    gradients: Any  # (P,) of the data term with respect to the weights of one sample
    Z: Any  # (K, B * units) hidden outputs
    D: Any  # (2, B * widest)
    f: Any  # (B,)
    tilt: Any  # (K, B) network outputs, then the derivatives with respect to them
    p: Any  # (K, B) alpha (l - F), then p
    F: Any  # (K,)
    vectors: Any  # (6, P) s, tau, nu, sums over k of r e, r e^2 and g e


@jit(relaxed=FUSE)
def fill_factor(theta: Any, prior_variance: float, work: EnergyWorkspace, n: int) -> None:
    """Write s, tau and nu at theta (2 P + 1,), for n data points."""
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
    """Return the energy of a batch X (B, d), y (B,) of n data points, nats; write its gradient (2 P + 1,).

    ``layers`` (L, 3). ``work`` must hold what ``fill_factor`` writes, draws in ``work.noise`` and their weights in
    ``work.W``.
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
        r, squares = 0.0, 0.0
        p, slope = work.p[k], work.tilt[k, :rows]
        for b in range(rows):
            residual = y[b] - slope[b]
            r += p[b]
            squares += p[b] * residual * residual
            slope[b] = -factor * precision * p[b] * residual
        by_noise += 0.5 * (r - precision * squares)
        backward(X, work.W[k], layers, work.Z[k], slope, 1.0, work.gradients, work.D)
        _add_sample(r, work.gradients, work.noise[k], gradient, work.vectors)
    gradient[2 * P] = factor * by_noise
    _collect(theta, prior_variance, rows, n, work, gradient)
    return _log_normalisers(theta, prior_variance, work.vectors[0]) - factor * data


@jit(relaxed=REORDER, merged=True)
def _tilted(theta: Any, X: Any, y: Any, layers: Any, alpha: float, work: EnergyWorkspace) -> float:
    """Return the sum over the batch X (B, d), y (B,) of log E[(p / f)^alpha] / alpha; write outputs and p."""
    K, P = work.W.shape
    rows = X.shape[0]
    sigma2, constant = math.exp(theta[2 * P]), -0.5 * (math.log(2.0 * math.pi) + theta[2 * P])
    limit = abs(alpha) < TINY
    power = 1.0 if limit else alpha
    f = work.f[:rows]
    for k in range(K):
        forward(X, work.W[k], layers, work.Z[k], f)
        work.F[k] = _log_factor(work.W[k], work.vectors[1], work.vectors[2])
        level, slope, logs, tilt = power * (constant - work.F[k]), -0.5 * power / sigma2, work.p[k], work.tilt[k]
        for b in range(rows):
            residual = y[b] - f[b]
            tilt[b] = f[b]
            logs[b] = level + slope * residual * residual
    total = 0.0
    for b in range(rows):
        total += _mean(work.p, b) if limit else _log_mean(work.p, b) / alpha
    return total


@jit(relaxed=REORDER, merged=True)
def _log_factor(w: Any, tau: Any, nu: Any) -> float:
    """Return log f(w), w, tau and nu (P,)."""
    total = 0.0
    for i in range(w.size):
        total += w[i] * (nu[i] - 0.5 * tau[i] * w[i])
    return total


@jit(relaxed=REORDER, merged=True)
def _log_mean(p: Any, b: int) -> float:
    """Return the log of the mean exponential of column b of p (K, B); replace the column by its softmax."""
    K = p.shape[0]
    top = p[0, b]
    for k in range(K):
        top = max(top, p[k, b])
    total = 0.0
    for k in range(K):
        p[k, b] = math.exp(p[k, b] - top)
        total += p[k, b]
    for k in range(K):
        p[k, b] /= total
    return top + math.log(total / K)


@jit(relaxed=REORDER, merged=True)
def _mean(p: Any, b: int) -> float:
    """Return the mean of column b of p (K, B); replace the column by 1 / K."""
    K = p.shape[0]
    total = 0.0
    for k in range(K):
        total += p[k, b]
        p[k, b] = 1.0 / K
    return total / K


@jit(relaxed=REORDER, merged=True)
def _collect(theta: Any, prior_variance: float, rows: int, n: int, work: EnergyWorkspace, gradient: Any) -> None:
    """Write the gradient (2 P,) with respect to m and rho from the sums over samples, which include f and log Z_q."""
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


@jit(relaxed=REORDER, merged=True)
def _add_sample(r: float, g: Any, e: Any, by_w: Any, vectors: Any) -> None:
    """Add g (P,) of one sample to ``by_w`` (P,), and r e, r e^2 and g e, with noise e (P,), to ``vectors`` (6, P)."""
    re, ree, ge = vectors[3], vectors[4], vectors[5]
    whole = g.size // WIDTH * WIDTH
    for i in range(0, whole, WIDTH):
        slope, noise = load(g, i), load(e, i)
        product = r * noise
        store(by_w, i, load(by_w, i) + slope)
        store(re, i, load(re, i) + product)
        store(ree, i, load(ree, i) + product * noise)
        store(ge, i, load(ge, i) + slope * noise)
    for i in range(whole, g.size):
        by_w[i] += g[i]
        re[i] += r * e[i]
        ree[i] += r * e[i] * e[i]
        ge[i] += g[i] * e[i]


@jit(relaxed=REORDER, merged=True)
def _log_normalisers(theta: Any, prior_variance: float, s: Any) -> float:
    """Return log Z_prior - log Z_q for standard deviations s (P,)."""
    total = 0.0
    for i in range(s.size):
        total -= theta[i] * theta[i] / (s[i] * s[i])
    return 0.5 * (total + s.size * math.log(prior_variance)) - sum_of_logs(s)


def workspace(samples: int, rows: int, weights: int, units: int, widest: int) -> EnergyWorkspace:
    """Allocate the arrays for batches of up to ``rows`` data points."""
    return EnergyWorkspace(
        noise=np.empty((samples, weights)),
        W=np.empty((samples, weights)),
        gradients=np.empty(weights),
        Z=np.empty((samples, rows * units)),
        D=np.empty((2, rows * widest)),
        f=np.empty(rows),
        tilt=np.empty((samples, rows)),
        p=np.empty((samples, rows)),
        F=np.empty(samples),
        vectors=np.empty((6, weights)),
    )
