"""Log normalisers of the power alpha of the likelihood under the Gaussian of the last layer, and their gradients.

Each kernel returns sum_b log Z_b / alpha with log Z_b = log E p(y_b | f)^alpha, and adds ``weight`` times its gradients
to dm and dv. f has means m and variances v (B, C or more columns), without the noise of the last layer.

- Gaussian: noise of variance s.
- Probit: p(y | f) = Phi(y f) for targets -1 and 1, in closed form for alpha = 1 (appendix F), else by the trapezoidal
  rule.
- Softmax of C outputs: Monte Carlo with common draws for all data points (appendix F). The log of a mean over draws is
  biased downwards by half the relative variance of p, divided by the number of draws.

For alpha = 0 each is its limit, E log p.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from scipy.special import logsumexp

from ep_bench.numerics.cholesky import factorise, invert_lower
from ep_bench.numerics.exponential import fill_exponentials
from ep_bench.numerics.jit import jit
from ep_bench.numerics.normal import log_normal_cdf

NODES, REACH = 101, 8.5  # of the trapezoidal rule for powers of the probit; standard deviations on either side

Likelihood = Literal["gaussian", "probit", "softmax"]


class LikelihoodTerm:
    """The likelihood term of the energy of a minibatch, -N / B sum_b log Z_b / alpha.

    ``n`` is the number N of data points in total, ``alpha`` the power.
    """

    def __init__(self, likelihood: Likelihood, n: int, alpha: float) -> None:
        self.likelihood, self.n, self.alpha = likelihood, n, alpha
        x = np.linspace(-REACH, REACH, NODES)
        self.nodes = np.array([x, -0.5 * x**2 - logsumexp(-0.5 * x**2)])

    def diagonal(self, m: Any, v: Any, y: Any, s: float, draws: Any, dm: Any, dv: Any) -> tuple[float, float]:
        """Return the term, nats, and its gradient with respect to half the log of s.

        m and v (B, W) are means and variances, y (B,) targets, ``s`` the noise variance of the last layer, ``draws``
        (S, C) standard normal draws for the softmax. Adds to the gradients dm and dv (B, W).
        """
        weight, ds = -self.n / len(y), 0.0
        if self.likelihood == "gaussian":
            value, ds = gaussian(m, v, y, s, self.alpha, weight, dm, dv)
        elif self.likelihood == "probit":
            value = probit(m, v, y, self.alpha, self.nodes, weight, dm, dv)
        else:
            value = softmax(m, v, y, self.alpha, draws, weight, dm, dv)
        return weight * value, 2.0 * s * ds

    def joint(self, m: Any, C: Any, y: Any, s: float, draws: Any, dm: Any, dC: Any) -> tuple[float, float]:
        """Return the same for covariances C (B, V, V); add to the gradients dm (B, W) and dC (B, V, V)."""
        if self.likelihood == "softmax":
            weight = -self.n / len(y)
            return weight * joint_softmax(m, C, y, self.alpha, draws, weight, dm, dC), 0.0
        dv = np.zeros((len(y), 1))
        found = self.diagonal(m, C[:, :1, 0].copy(), y, s, draws, dm, dv)
        dC[:, 0, 0] += dv[:, 0]
        return found


@jit()
def gaussian(m: Any, v: Any, y: Any, s: float, alpha: float, weight: float, dm: Any, dv: Any) -> tuple[float, float]:
    """Return the sum for targets y (B,), and ``weight`` times its gradient with respect to s."""
    value, ds = 0.0, 0.0
    for n in range(len(y)):
        q, r = s + alpha * v[n, 0], y[n] - m[n, 0]
        spread = math.log1p(alpha * v[n, 0] / s) / alpha if alpha > 0.0 else v[n, 0] / s
        value -= 0.5 * (spread + r * r / q + math.log(2.0 * math.pi * s))
        dm[n, 0] += weight * r / q
        dv[n, 0] += weight * 0.5 * (alpha * r * r / q - 1.0) / q
        ds += weight * 0.5 * (r * r / (q * q) - (1.0 - v[n, 0] / q) / s)
    return value, ds


@jit()
def probit(m: Any, v: Any, y: Any, alpha: float, nodes: Any, weight: float, dm: Any, dv: Any) -> float:
    """Return the sum for targets y (B,), -1 or 1; ``nodes`` (2, Q) are standard normal nodes and log weights."""
    value = 0.0
    for n in range(len(y)):
        sign, centre, std = y[n], m[n, 0], math.sqrt(v[n, 0])
        if alpha == 1.0:
            root = math.sqrt(1.0 + v[n, 0])
            log_z, slope = log_normal_cdf(sign * centre / root)
            first, second = slope * sign / root, -0.5 * slope * sign * centre / root**3
        else:
            log_z, first, second = _powered(sign, centre, std, alpha, nodes)
        value += log_z
        dm[n, 0] += weight * first
        dv[n, 0] += weight * second
    return value


@jit()
def _powered(sign: float, centre: float, std: float, alpha: float, nodes: Any) -> tuple[float, float, float]:
    """Return log E Phi(sign f)^alpha / alpha and its derivatives with respect to mean and variance of f.

    f has mean ``centre`` and standard deviation ``std``; ``nodes`` as in ``probit``.
    """
    largest, total, first, second, mean_log = -np.inf, 0.0, 0.0, 0.0, 0.0
    for q in range(nodes.shape[1]):
        log_cdf, slope = log_normal_cdf(sign * (centre + std * nodes[0, q]))
        mean_log += math.exp(nodes[1, q]) * log_cdf
        log_part = nodes[1, q] + alpha * log_cdf
        if log_part > largest:
            scale = math.exp(largest - log_part)
            largest, total, first, second = log_part, total * scale, first * scale, second * scale
        part = math.exp(log_part - largest)
        total += part
        first += part * sign * slope
        second += part * sign * slope * nodes[0, q]
    if alpha == 0.0:  # the limit, E log Phi(sign f)
        return mean_log, first / total, 0.5 * second / (total * std)
    return (largest + math.log(total)) / alpha, first / total, 0.5 * second / (total * std)


@jit()
def softmax(m: Any, v: Any, y: Any, alpha: float, noise: Any, weight: float, dm: Any, dv: Any) -> float:
    """Return the sum for class indices y (B,), from standard normal draws ``noise`` (S, C)."""
    S, C = noise.shape
    log_p, slopes, ratios, stds = np.empty(S), np.empty((S, C)), np.empty(S), np.empty(C)
    value = 0.0
    for n in range(len(y)):
        for c in range(C):
            if not v[n, c] >= 0.0:
                return np.nan
            stds[c] = math.sqrt(v[n, c])
            for s in range(S):
                slopes[s, c] = m[n, c] + stds[c] * noise[s, c]
        value += _softmax_row(slopes, int(y[n]), alpha, weight, log_p, ratios)
        for s in range(S):
            for c in range(C):
                dm[n, c] += slopes[s, c]
                dv[n, c] += 0.5 * slopes[s, c] * noise[s, c] / stds[c]
    return value


@jit()
def joint_softmax(m: Any, V: Any, y: Any, alpha: float, noise: Any, weight: float, dm: Any, dV: Any) -> float:
    """Return the sum like ``softmax`` for covariances V (B, C or more, the same); nan if one has no Cholesky factor."""
    S, C = noise.shape
    log_p, ratios, value = np.empty(S), np.empty(S), 0.0
    for n in range(len(y)):
        L = V[n, :C, :C].copy()
        if np.isnan(factorise(L)):
            return np.nan
        for i in range(C):
            L[i, i + 1 :] = 0.0
        slopes = np.dot(noise, L.T) + m[n, :C]
        value += _softmax_row(slopes, int(y[n]), alpha, weight, log_p, ratios)
        for c in range(C):
            dm[n, c] += slopes[:, c].sum()
        # The gradient of V from that of L (Murray 2016): (X + X') / 2, X = L'^-1 P L^-1, P the lower part of L' dL.
        P = np.dot(L.T, np.dot(slopes.T, noise))
        for i in range(C):
            P[i, i] *= 0.5
            P[i, i + 1 :] = 0.0
        inverse = invert_lower(L)
        X = np.dot(inverse.T, np.dot(P, inverse))
        for i in range(C):
            for j in range(C):
                dV[n, i, j] += 0.5 * (X[i, j] + X[j, i])
    return value


@jit()
def _softmax_row(f: Any, label: int, alpha: float, weight: float, log_p: Any, ratios: Any) -> float:
    """Return log E p(label)^alpha / alpha over draws f (S, C); replace f by ``weight`` times the gradient.

    ``log_p`` and ``ratios`` (S,) are workspaces.
    """
    S, C = f.shape
    _log_softmax(f, label, log_p)
    top = log_p.max()
    for s in range(S):
        ratios[s] = alpha * (log_p[s] - top)
    fill_exponentials(ratios, ratios)
    whole = ratios.sum()
    for s in range(S):
        for c in range(C):
            f[s, c] *= weight * ratios[s] / whole
    return top + math.log(whole / S) / alpha if alpha > 0.0 else log_p.mean()


@jit()
def _log_softmax(f: Any, label: int, log_p: Any) -> None:
    """Write log p(label) (S,) of latent values f (S, C); replace f by its gradient."""
    S, C = f.shape
    for s in range(S):
        top = f[s, 0]
        for c in range(1, C):
            top = max(top, f[s, c])
        for c in range(C):
            f[s, c] -= top
        log_p[s] = f[s, label]
    flat = f.reshape(S * C)
    fill_exponentials(flat, flat)
    for s in range(S):
        whole = 0.0
        for c in range(C):
            whole += f[s, c]
        log_p[s] -= math.log(whole)
        for c in range(C):
            f[s, c] *= -1.0 / whole
        f[s, label] += 1.0
