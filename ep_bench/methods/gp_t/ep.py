"""Expectation propagation, Jylanki et al. (2011), sections 3.2 and 4, with powers eta of the likelihood.

tau, b   site precisions and precision-times-means (N,), tau of any sign
psi      log of the normaliser of exp(b f - tau f^2 / 2) but for a constant: b^2 / (2 tau) - log(tau) / 2

    log Z = sum_i (log Z^_i + psi(cavity_i) - psi(marginal_i)) / eta + b' Sigma b / 2 - log |I + K S| / 2

Parallel sweeps from empty sites, damped. A sweep that leaves the posterior or a cavity improper is shortened by halves.
Where they do not converge the scheme starts again with half the damping factor, then updates one site at a time.

Deviation: no double loop yet; smaller factors and sequential updates stand in its place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ep_bench.methods.gp_t.posterior import Gaussian, Inferred, by_likelihood, gaussian, resolvent
from ep_bench.methods.gp_t.tilted import moments
from ep_bench.types import Array

CLOSE = 1e-9  # largest mismatch of means, in deviations, and of variances, in parts
SWEEPS = 100
HALVINGS = 10


class Sites(NamedTuple):
    """Sites and the posterior that they give."""

    tau: Array
    b: Array
    posterior: Gaussian
    mean: Array
    cavity: tuple[Array, Array]  # precisions and precision-times-means


def infer(K: Array, y: Array, nu: float, scale: float, eta: float, damping: float) -> Inferred:
    """Return the fixed point for covariances K (N, N), in full.

    Raises FloatingPointError, with the state reached by each attempt, where none converges.
    """
    tried = []
    total = 0
    for part in (1.0, 0.5, 0.25, 0.125):
        found, tilted, gap, sweeps = _parallel(K, y, nu, scale, eta, damping * part, int(SWEEPS / part))
        total += sweeps
        if gap < CLOSE:
            return _ended(found, tilted, nu, eta, total, f"parallel {damping * part:g}")
        tried.append(f"parallel with damping {damping * part:g}: mismatch {gap:.2g} after {sweeps} sweeps")
    found, tilted, gap, sweeps = _sequential(K, y, nu, scale, eta, 0.5 * damping)
    if gap < CLOSE:
        return _ended(found, tilted, nu, eta, total + sweeps, "sequential")
    tried.append(f"sequential: mismatch {gap:.2g} after {sweeps} sweeps")
    raise FloatingPointError(f"expectation propagation did not converge; {'; '.join(tried)}")


def sites(K: Array, tau: Array, b: Array, eta: float) -> Sites | None:
    """Return the state of sites (N,), or None where the posterior or a cavity is improper."""
    posterior = gaussian(K, tau)
    if posterior is None:
        return None
    variance = posterior.covariance.diagonal()
    mean = posterior.covariance @ b
    precision = 1.0 / variance - eta * tau
    if not (np.all(precision > 1e-10 / variance) and np.isfinite(mean).all()):
        return None
    return Sites(tau, b, posterior, mean, (precision, mean / variance - eta * b))


def _tilted(now: Sites, y: Array, nu: float, scale: float, eta: float) -> tuple[Array, float]:
    """Return the tilted moments (5, N) and their largest distance from the marginals."""
    precision, shift = now.cavity
    tilted = moments(shift / precision, 1.0 / precision, y, nu, scale, eta)
    variance = now.posterior.covariance.diagonal()
    gap = max(np.abs(tilted[1] - now.mean).max() / np.sqrt(variance.min()), np.abs(tilted[2] / variance - 1.0).max())
    return tilted, float(gap) if np.isfinite(gap) else np.inf


def _parallel(
    K: Array, y: Array, nu: float, scale: float, eta: float, damping: float, sweeps: int
) -> tuple[Sites, Array, float, int]:
    """Return sites, tilted moments, mismatch and the number of sweeps."""
    now = sites(K, np.zeros(len(y)), np.zeros(len(y)), eta)
    if now is None:
        raise FloatingPointError("the prior has a variance that is not above 0")
    tilted, gap = _tilted(now, y, nu, scale, eta)
    for sweep in range(sweeps):
        if gap < CLOSE or not np.isfinite(gap):
            return now, tilted, gap, sweep
        by_tau, by_b = _steps(now, tilted, eta)
        step, after = damping, None
        for _ in range(HALVINGS):
            after = sites(K, now.tau + step * by_tau, now.b + step * by_b, eta)
            if after is not None:
                break
            step *= 0.5
        if after is None:
            return now, tilted, gap, sweep
        now = after
        tilted, gap = _tilted(now, y, nu, scale, eta)
    return now, tilted, gap, sweeps


def _steps(now: Sites, tilted: Array, eta: float) -> tuple[Array, Array]:
    """Return the whole steps of tau and b that match the moments."""
    variance = now.posterior.covariance.diagonal()
    by_tau = (1.0 / tilted[2] - 1.0 / variance) / eta
    return by_tau, (tilted[1] / tilted[2] - now.mean / variance) / eta


def _sequential(
    K: Array, y: Array, nu: float, scale: float, eta: float, damping: float
) -> tuple[Sites, Array, float, int]:
    """Return the same of updates of one site at a time, the posterior factorised anew after each sweep."""
    n = len(y)
    now = sites(K, np.zeros(n), np.zeros(n), eta)
    if now is None:
        raise FloatingPointError("the prior has a variance that is not above 0")
    tilted, gap = _tilted(now, y, nu, scale, eta)
    for sweep in range(SWEEPS):
        if gap < CLOSE:
            return now, tilted, gap, sweep
        tau, b, Sigma, mean = now.tau.copy(), now.b.copy(), now.posterior.covariance.copy(), now.mean.copy()
        for i in range(n):
            _update(i, tau, b, Sigma, mean, y, nu, scale, eta, damping)
        after = sites(K, tau, b, eta)
        if after is None:
            return now, tilted, gap, sweep
        now = after
        tilted, gap = _tilted(now, y, nu, scale, eta)
    return now, tilted, gap, SWEEPS


def _update(
    i: int, tau: Array, b: Array, Sigma: Array, mean: Array, y: Array, nu: float, scale: float, eta: float,
    damping: float,
) -> None:  # fmt: skip
    """Update one site and the posterior in place; leave a site as it is whose cavity is improper."""
    variance = Sigma[i, i]
    precision = 1.0 / variance - eta * tau[i]
    if precision <= 1e-10 / variance:
        return
    shift = mean[i] / variance - eta * b[i]
    at = slice(i, i + 1)
    _, m, v, _, _ = moments(np.array([shift / precision]), np.array([1.0 / precision]), y[at], nu, scale, eta)[:, 0]
    by_tau = damping * (1.0 / v - 1.0 / variance) / eta
    by_b = damping * (m / v - mean[i] / variance) / eta
    if 1.0 + by_tau * variance <= 0.0:
        return
    tau[i] += by_tau
    b[i] += by_b
    column = Sigma[:, i].copy()
    mean += column * (by_b - by_tau * mean[i]) / (1.0 + by_tau * variance)
    Sigma -= np.outer(column, column) * (by_tau / (1.0 + by_tau * variance))


def _ended(now: Sites, tilted: Array, nu: float, eta: float, sweeps: int, stage: str) -> Inferred:
    """Return evidence and gradient at a fixed point, where the sites' own derivatives vanish."""
    Sigma, log_determinant = now.posterior
    variance = Sigma.diagonal()
    precision, shift = now.cavity
    cavities = 0.5 * shift**2 / precision - 0.5 * np.log(precision)
    marginals = 0.5 * now.mean**2 / variance + 0.5 * np.log(variance)
    log_evidence = (tilted[0] + cavities - marginals).sum() / eta + 0.5 * (now.b @ now.mean - log_determinant)
    # tilted[0] has the normaliser of the cavity as a density, which the difference of psi accounts for
    weights = now.b - now.tau * now.mean
    A = np.outer(weights, weights) - resolvent(now.tau, Sigma)
    likelihood = by_likelihood(tilted[3], tilted[4], nu)
    return Inferred(float(log_evidence), weights, now.tau, Sigma, A, likelihood, sweeps, stage)
