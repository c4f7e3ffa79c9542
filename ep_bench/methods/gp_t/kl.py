"""The Gaussian that minimises KL(q || p): Opper and Archambeau (2009); Nickisch and Rasmussen (2008).

q(f)      N(m, S), m = K w, S = (K^-1 + diag(L))^-1, L (N,) of any sign, v = diag S
h(f)      log t(y | f),  u = f - y,  s2 = nu sigma^2

    log Z >= sum_i E h(f_i) - KL(q || p), with the maximum at w = E h' and L = -E h'', means under N(m_i, v_i)

Steps of the natural gradient move L and b = w + L m towards -E h'' and E h' - E h'' m. They are halved until the bound
increases. The means are integrals over t with f = y + sqrt(s2) sinh(t), by the trapezoidal rule. Gauss-Hermite
quadrature would converge slowly for a small scale, because h has branch points at f = y +- i sqrt(s2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ep_bench.methods.gp_t.posterior import InferenceResult, Marginals, by_likelihood, marginals
from ep_bench.methods.gp_t.tilted import log_constant
from ep_bench.methods.gp_t.variational import MEMORY, extrapolated
from ep_bench.types import Array

STEPS = 300
CLOSE = 1e-9  # mismatch of weights, times sqrt(v), and of precisions, times v, at an optimum
VERIFIED = 1e-6  # the same if rounding errors hide further increases of the bound
HALVINGS = 30
NODES = 300
REACH = 9.0  # standard deviations of a Gaussian to either side
ROUNDING = 1e-13  # relative, of the bound


class LikelihoodMeans(NamedTuple):
    """Means under Gaussians, (N,) each."""

    logarithm: Array  # of log(1 + u^2 / s2)
    ratio: Array  # of u^2 / (s2 + u^2)
    slope: Array  # of h'
    curvature: Array  # of -h''


class KLFit(NamedTuple):
    """q(f) with its means and its bound."""

    b: Array  # (N,)
    precisions: Array  # (N,) L
    posterior: Marginals
    means: LikelihoodMeans
    bound: float  # nats


def infer(K: Array, y: Array, nu: float, scale: float, start: tuple[Array, Array] | None = None) -> InferenceResult:
    """Return the maximum of the bound for full covariances K (N, N) and targets y (N,).

    ``start`` are L and b (N,). If the steps end without one, the point of the smallest mismatch counts if that is below
    ``VERIFIED``. Raises FloatingPointError, with the mismatch, if no stationary point is found.
    """
    first = (nu + 1.0) / (nu * scale**2 + y**2 + K.diagonal())
    now = _at(K, y, start[1], start[0], nu, scale) if start is not None else None
    now = now or _at(K, y, first * y, first, nu, scale)
    closest, smallest, step = now, np.inf, 0
    history: list[tuple[Array, Array]] = []
    while now is not None and step < STEPS:
        gap = _mismatch(now)
        if gap < smallest:
            closest, smallest = now, gap
        if gap < CLOSE:
            return _ended(now, nu, step)
        after = _ascent_step(K, y, now, history, nu, scale)
        if after is None and gap < VERIFIED:
            return _ended(now, nu, step)
        now, step = after, step + 1
    if closest is not None and smallest < VERIFIED:
        return _ended(closest, nu, step)
    raise FloatingPointError(f"KL: no stationary point found; mismatch {smallest:.2g} after {step} steps")


def _mismatch(now: KLFit) -> float:
    """Return the mismatch of weights, times sqrt(v), and of precisions, times v, of all data points."""
    v = now.posterior.variance
    off = np.sqrt(v) * (now.means.slope - now.posterior.weights), v * (now.means.curvature - now.precisions)
    return float(np.abs(off).max())


def means(m: Array, v: Array, y: Array, nu: float, scale: float) -> LikelihoodMeans:
    """Return the means under N(m, v), for means, variances and targets (N,)."""
    s = np.sqrt(nu) * scale
    reach = REACH * np.sqrt(v)
    low, high = np.arcsinh((m - reach - y) / s), np.arcsinh((m + reach - y) / s)
    t = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, NODES)
    with np.errstate(under="ignore"):
        u = np.sinh(t)  # of u / s
        q = 1.0 + u**2  # (s2 + u^2) / s2
        p = np.exp(-0.5 * (s * u + (y - m)[:, None]) ** 2 / v[:, None]) * np.sqrt(q)
    p /= p.sum(axis=1, keepdims=True)
    slope, curvature = -(nu + 1.0) / s * u / q, (nu + 1.0) / s**2 * (1.0 - u**2) / q**2
    return LikelihoodMeans(*((p * part).sum(axis=1) for part in (np.log1p(u**2), u**2 / q, slope, curvature)))


def _at(K: Array, y: Array, b: Array, precisions: Array, nu: float, scale: float) -> KLFit | None:
    """Return q(f) for b and precisions (N,), or None if it is improper."""
    posterior = marginals(K, precisions, b)
    if posterior is None:
        return None
    mean, variance, weights, log_determinant, _ = posterior
    found = means(mean, variance, y, nu, scale)
    constant = log_constant(nu, scale**2)
    targets = len(y) * constant - 0.5 * (nu + 1.0) * found.logarithm.sum()
    divergence = 0.5 * (log_determinant - float(precisions @ variance) + float(weights @ mean))
    bound = float(targets) - divergence
    return KLFit(b, precisions, posterior, found, bound) if np.isfinite(bound) else None


def _ascent_step(
    K: Array, y: Array, now: KLFit, history: list[tuple[Array, Array]], nu: float, scale: float
) -> KLFit | None:
    """Return q(f) after the extrapolated step, or else after the longest halved step, that does not lower the bound."""
    at = np.concatenate([now.b, now.precisions])
    change = np.concatenate([now.means.slope + now.means.curvature * now.posterior.mean, now.means.curvature]) - at
    history[:] = [*history, (at, change)][-MEMORY:]
    candidates = [extrapolated(history)] if len(history) > 1 else []
    candidates += [at + 0.5**k * change for k in range(HALVINGS)]
    for candidate in candidates:
        if np.array_equal(candidate, at):  # a step that rounding errors hide would be repeated for ever
            continue
        after = _at(K, y, candidate[: len(y)], candidate[len(y) :], nu, scale)
        if after is not None and after.bound >= now.bound - ROUNDING * abs(now.bound):
            return after
        history[:] = history[-1:]
    return None


def _ended(now: KLFit, nu: float, steps: int) -> InferenceResult:
    """Return bound and gradient at an optimum; the derivatives by q(f) are 0 there."""
    weights = now.posterior.weights
    A = np.outer(weights, weights) - now.posterior.resolvent()
    likelihood = by_likelihood(now.means.logarithm, now.means.ratio, nu)
    return InferenceResult(now.bound, weights, now.precisions, A, likelihood, steps, "kl", now.b)
