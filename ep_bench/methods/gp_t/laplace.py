"""Laplace's method, Jylanki et al. (2011), section 3.1, at a mode that is verified.

r = y - f,  q = nu sigma^2 + r^2,  g = (nu + 1) r / q,  W = (nu + 1) (nu sigma^2 - r^2) / q^2 of any sign;
at the mode f = K g, and log Z = log p(y | f) - f' K^-1 f / 2 - log |I + K W| / 2.

Reweighted (EM) steps, f = K (K + D^-1)^-1 y with D = (nu + 1) / q, never lower the density; Newton's
are taken where they raise it.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from ep_bench.methods.gp_t.posterior import Gaussian, Inferred, by_likelihood, gaussian, resolvent
from ep_bench.types import Array

STEPS = 2000
CLOSE = 1e-9  # Newton's last step of f, in parts of the largest target
VERIFIED = 1e-6  # of f = K g, in the same parts: rounding comes back times K W
EARLY = 1e-2  # mismatch above which Newton's steps are not tried


def infer(K: Array, y: Array, nu: float, scale: float) -> Inferred:
    """Return evidence and gradient at the mode for covariances K (N, N), in full.

    Raises FloatingPointError, with the mismatch reached, where no mode is found.
    """
    weights, steps = _mode(K, y, nu, scale)
    f = K @ weights
    r, q = y - f, nu * scale**2 + (y - f) ** 2
    W = _curvature(r, nu, scale)
    posterior = gaussian(K, W)
    if posterior is None:
        raise FloatingPointError("Laplace's method: the stationary point that was found is no mode")
    logarithm, share = np.log1p(r**2 / (nu * scale**2)), r**2 / q
    log_evidence = _log_joint(logarithm, f, weights, nu, scale) - 0.5 * posterior.log_determinant
    R = resolvent(W, posterior.covariance)
    A, likelihood = _gradient(weights, r, W, posterior, nu, scale)
    likelihood += by_likelihood(logarithm, share, nu)
    return Inferred(log_evidence, weights, R, W, A - R, likelihood, steps, "laplace")


def _curvature(r: Array, nu: float, scale: float) -> Array:
    return np.asarray((nu + 1.0) * (nu * scale**2 - r**2) / (nu * scale**2 + r**2) ** 2)


def _log_joint(logarithm: Array, f: Array, weights: Array, nu: float, scale: float) -> float:
    constant = gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu) - 0.5 * np.log(nu * np.pi * scale**2)
    return float(len(f) * constant - 0.5 * (nu + 1.0) * logarithm.sum() - 0.5 * weights @ f)


def _mode(K: Array, y: Array, nu: float, scale: float) -> tuple[Array, int]:
    """Return K^-1 f at the mode, and the number of steps."""
    s2 = nu * scale**2
    weights, f = np.zeros(len(y)), np.zeros(len(y))
    gap, size = np.inf, max(float(np.abs(y).max()), 1e-300)
    for step in range(STEPS):
        r = y - f
        g = (nu + 1.0) * r / (s2 + r**2)
        gap = float(np.abs(K @ g - f).max() / size)
        after = _newton(K, f, g, r, nu, scale) if gap < EARLY else None
        if after is not None:
            near = K @ after
            if np.abs(near - f).max() <= CLOSE * size and gap < VERIFIED:
                return after, step
            if _density(y - near, near, after, nu, s2) <= _density(r, f, weights, nu, s2) and gap > VERIFIED:
                after = None
        if after is None:
            D = (nu + 1.0) / (s2 + r**2)
            reweighted = gaussian(K, D)
            if reweighted is None:
                break
            after = D * (y - reweighted.covariance @ (D * y))
        weights = after
        f = K @ weights
    raise FloatingPointError(
        f"Laplace's method found no mode: mismatch {gap:.2g} after {STEPS} reweighted and Newton steps"
    )


def _density(r: Array, f: Array, weights: Array, nu: float, s2: float) -> float:
    return float(-0.5 * (nu + 1.0) * np.log1p(r**2 / s2).sum() - 0.5 * weights @ f)


def _newton(K: Array, f: Array, g: Array, r: Array, nu: float, scale: float) -> Array | None:
    W = _curvature(r, nu, scale)
    posterior = gaussian(K, W)
    if posterior is None:
        return None
    b = W * f + g
    return np.asarray(b - W * (posterior.covariance @ b))


def _gradient(weights: Array, r: Array, W: Array, posterior: Gaussian, nu: float, scale: float) -> tuple[Array, Array]:
    """Return A but for the resolvent, and by log sigma and log nu what the determinant and the mode's shift add."""
    Sigma, s2 = posterior.covariance, nu * scale**2
    q, v = s2 + r**2, Sigma.diagonal()
    c = -(nu + 1.0) * r * (3.0 * s2 - r**2) / q**3 * v  # by f of -log |I + K W| / 2
    u = c - W * (Sigma @ c)
    A = np.outer(weights, weights) + np.outer(u, weights) + np.outer(weights, u)
    rest = (q - 2.0 * (s2 - r**2)) / q**3
    by_scale = -0.5 * v @ ((nu + 1.0) * 2.0 * s2 * rest) + (Sigma @ c) @ (-2.0 * (nu + 1.0) * r * s2 / q**2)
    g_nu = r / q - (nu + 1.0) * r * scale**2 / q**2
    W_nu = (s2 - r**2) / q**2 + (nu + 1.0) * scale**2 * rest
    by_nu = nu * (-0.5 * v @ W_nu + (Sigma @ c) @ g_nu)
    return A, np.array([by_scale, by_nu])
