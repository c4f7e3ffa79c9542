"""Newton's method for the fixed points of expectation propagation, and curvatures that the double loop uses too.

In units of the standard deviations of the marginals, z_i = (f_i - m_i) / sqrt(Sigma_ii), the statistics of a site are z
and -z^2 / 2. Their natural parameters are (b - tau m) sqrt(Sigma_ii) and tau Sigma_ii, stacked (2N,):

r      tilted minus posterior means of the statistics, 0 at a fixed point
rho    correlations (N, N) of f
C_q    their covariances under the posterior, diag(rho, rho^2 / 2)
C_t    those under the tilted distributions, a 2 x 2 matrix per site

If marginals follow the sites, dr = (C_t (diag(rho, rho^2) - eta I) - C_q) dlambda. Newton's method converges in a few
steps to a fixed point that is close, if there is one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from ep_bench.methods.gp_t.posterior import Marginals, gaussian
from ep_bench.methods.gp_t.sites import SiteModel, SitePosterior, sites
from ep_bench.types import Array

STEPS = 20
HALVINGS = 4
GAIN = 0.7  # largest factor by which a full step may multiply the norm of the residual


class Curvatures(NamedTuple):
    """The residual r and the covariances rho and C_t."""

    residual: Array  # (2N,)
    rho: Array  # (N, N)
    tilted: tuple[Array, Array, Array]  # (N,) of z, of z with -z^2 / 2, of -z^2 / 2


def residual(posterior: Marginals, tilted: Array) -> Array:
    """Return r (2N,) from the moments ``tilted`` (7, N)."""
    mean = (tilted[1] - posterior.mean) / np.sqrt(posterior.variance)
    return np.concatenate([mean, -0.5 * (tilted[2] / posterior.variance + mean**2 - 1.0)])


def curvatures(model: SiteModel, tau: Array, posterior: Marginals, tilted: Array) -> Curvatures | None:
    """Return the curvatures at site precisions tau (N,), or None if rounding errors make the posterior improper."""
    found = gaussian(model.K, tau)
    if found is None:
        return None
    std = np.sqrt(posterior.variance)
    rho = found.covariance / std[:, None] / std
    np.fill_diagonal(rho, 1.0)
    mean, second = (tilted[1] - posterior.mean) / std, tilted[2] / posterior.variance
    third, fourth = tilted[5] / std**3, tilted[6] / posterior.variance**2
    of_squares = fourth + 4.0 * mean * third + 4.0 * mean**2 * second - second**2
    return Curvatures(
        residual(posterior, tilted), rho, (second, -0.5 * (third + 2.0 * mean * second), 0.25 * of_squares)
    )


def site_changes(step: Array, posterior: Marginals) -> tuple[Array, Array]:
    """Return the changes of tau and b (N,) that correspond to a step (2N,) of the natural parameters."""
    half = len(step) // 2
    by_tau = step[half:] / posterior.variance
    return by_tau, step[:half] / np.sqrt(posterior.variance) + by_tau * posterior.mean


def polish(model: SiteModel, start: SitePosterior, close: float) -> tuple[SitePosterior, int]:
    """Return the state after Newton steps, each of which decreases the residual, and their number."""
    now = start
    for step in range(STEPS):
        if now.mismatch < close:
            return now, step
        after = _step(model, now)
        if after is None:
            return now, step
        now = after
    return now, STEPS


def _step(model: SiteModel, now: SitePosterior) -> SitePosterior | None:
    at = curvatures(model, now.tau, now.posterior, now.tilted)
    if at is None or not np.isfinite(at.tilted).all():
        return None
    *_, whole, failed = lapack.dgesv(_jacobian(at, model.eta), -at.residual)
    if failed or not np.isfinite(whole).all():
        return None
    by_tau, by_b = site_changes(whole, now.posterior)
    size = np.linalg.norm(at.residual)
    for halved in range(HALVINGS):
        part = 0.5**halved
        after = sites(model, now.tau + part * by_tau, now.b + part * by_b)
        if after is not None and np.isfinite(after.mismatch):
            new_size = np.linalg.norm(residual(after.posterior, after.tilted))
            if new_size < (1.0 - part * (1.0 - GAIN)) * size:
                return after
    return None


def _jacobian(at: Curvatures, eta: float) -> Array:
    """Return dr / dlambda (2N, 2N)."""
    n = len(at.rho)
    first, across, second = (one[:, None] for one in at.tilted)
    square = at.rho**2
    by_b, by_tau = at.rho - eta * np.eye(n), square - eta * np.eye(n)
    J = np.empty((2 * n, 2 * n), order="F")
    J[:n, :n], J[:n, n:] = first * by_b - at.rho, across * by_tau
    J[n:, :n], J[n:, n:] = across * by_b, second * by_tau - 0.5 * square
    return J
