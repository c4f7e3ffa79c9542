"""The marginal likelihood of EP, (48), corrected: each local term is (ln Z + Psi(cavity) - Psi(marginal)) / eta.

In print, the terms of h have the opposite sign and s_i = 1 / eta + alpha' Sigma alpha. Here s_i = 1 / eta - sign alpha'
Sigma alpha, as in (32). Differences of Psi are computed in closed form, so that small sites lose no digits.

Arguments of the kernels: ``sites``, ``prior`` and ``post`` are the named tuples of module ``sites``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ep_bench.methods.ep_nn.outputs import inner, output_cavity
from ep_bench.methods.ep_nn.priors import LOG_2PI, SCALE_NODES, output_moments, weight_moments
from ep_bench.methods.ep_nn.tilted import activation_moments, class_moments, noise_moments
from ep_bench.numerics.jit import FUSE, jit
from ep_bench.types import Array


@jit(relaxed=FUSE)
def gaussian_difference(m: float, V: float, tau: float, nu: float) -> float:
    """Return Psi(cavity) - Psi(marginal); the cavity is N(m, V) without a site of precision tau and location nu."""
    ratio = 1.0 - tau * V
    return 0.5 * ((tau * m * m - 2.0 * nu * m + nu * nu * V) / ratio - math.log(ratio))


@jit(relaxed=FUSE)
def likelihood_terms(
    m: Any, V: Any, y: Any, linear: Any, sites: Any, post: Any, eta: float, probit: bool, log_z: Any
) -> float:  # fmt: skip
    """Write ln Z_i to ``log_z`` (n,) and return the sum of the local terms, nan if a cavity is not proper.

    ``m`` and ``V`` (n, K) are means and variances of h under q, ``y`` (n,) targets, ``linear`` (K,) flags. With
    ``probit`` the targets are classes, -1 or 1.
    """
    n, K = m.shape
    scale, total = 1.0 / math.sqrt(K), 0.0
    m_g, V_g, mu, spread, cross, u = (
        np.ones(K + 1), np.zeros(K + 1), np.empty(K + 1), np.empty(K + 1), np.empty(K + 1), np.empty(K + 1),
    )  # fmt: skip
    for i in range(n):
        local = 0.0
        for k in range(K):
            tau, nu = eta * sites.tau[i, k], eta * sites.nu[i, k]
            ratio = 1.0 - tau * V[i, k]
            local += gaussian_difference(m[i, k], V[i, k], tau, nu)
            m_g[k], V_g[k] = activation_moments((m[i, k] - nu * V[i, k]) / ratio, V[i, k] / ratio, scale, linear[k])
        _, term = output_cavity(
            eta, sites.alpha[i], sites.sign[i], sites.beta[i], post.output_mean, post.output_covariance, m_g, mu,
            spread, cross, u,
        )  # fmt: skip
        m_f, V_f = inner(mu, m_g), inner(m_g, cross)
        for k in range(K):
            V_f += V_g[k] * (spread[k] + mu[k] * mu[k])
        t, r = eta * sites.noise_precision[i], eta * sites.noise_location[i]
        theta, theta_V = post.noise[0], post.noise[1]
        ratio = 1.0 - t * theta_V
        local += term + gaussian_difference(theta, theta_V, t, r)
        if not math.isfinite(local):
            return np.nan
        if probit:
            log_z[i], _, _ = class_moments(y[i], m_f, V_f)
        else:
            mean, variance = (theta - r * theta_V) / ratio, theta_V / ratio
            log_z[i], _, _, _, _ = noise_moments(y[i], m_f, V_f, eta, mean, variance)
        total += (log_z[i] + local) / eta
    return total


@jit(relaxed=FUSE)
def weight_prior_terms(groups: Any, prior: Any, post: Any, eta: float, kind: int) -> float:
    """Return the sum of the local terms of the priors of input weights, of groups (K, D)."""
    K, D = groups.shape
    logs, means, squares = np.empty(SCALE_NODES), np.empty(SCALE_NODES), np.empty(SCALE_NODES)
    scales, total = post.scales, 0.0
    for k in range(K):
        for j in range(D):
            l = groups[k, j]
            m, V = post.weight_mean[k, j], post.weight_covariance[k, j, j]
            tau, nu = eta * prior.tau[k, j], eta * prior.nu[k, j]
            t, r = eta * prior.scale_precision[k, j], eta * prior.scale_location[k, j]
            ratio, precision = 1.0 - tau * V, scales[0, l] - t
            log_z, _, _, _, _ = weight_moments(
                (m - nu * V) / ratio, V / ratio, (scales[1, l] - r) / precision, 1.0 / precision, eta, kind, logs,
                means, squares,
            )  # fmt: skip
            phi, phi_V = scales[1, l] / scales[0, l], 1.0 / scales[0, l]
            total += (log_z + gaussian_difference(m, V, tau, nu) + gaussian_difference(phi, phi_V, t, r)) / eta
    return total


@jit(relaxed=FUSE)
def output_prior_terms(prior: Any, post: Any, eta: float, freedom: float, variance: float) -> float:
    """Return the sum of the local terms of the truncated priors of v_1..v_K."""
    tau, nu, total = prior.output_tau, prior.output_nu, 0.0
    for k in range(tau.size - 1):
        m, V = post.output_mean[k], post.output_covariance[k, k]
        ratio = 1.0 - eta * tau[k] * V
        log_z, _, _ = output_moments((m - eta * nu[k] * V) / ratio, V / ratio, eta, freedom, variance)
        total += (log_z + gaussian_difference(m, V, eta * tau[k], eta * nu[k])) / eta
    return total


def log_partition(mean: Array, covariance: Array) -> float:
    """Return Psi of a Gaussian, mean (D,) and covariance (D, D); nan if that is not positive definite."""
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:  # after updates of rank one; it is recomputed before the next sweep
        return np.nan
    whitened = np.linalg.solve(factor, mean)
    return float(0.5 * whitened @ whitened + np.log(np.diag(factor)).sum() + 0.5 * len(mean) * LOG_2PI)


def scalar_partition(mean: float, variance: float) -> float:
    """Return Psi of a univariate Gaussian."""
    return float(0.5 * (mean * mean / variance + np.log(variance) + LOG_2PI))


def site_partition(tau: Array, nu: Array) -> float:
    """Return the sum of Psi over independent Gaussians with precisions tau and locations nu."""
    return float(0.5 * (nu * nu / tau - np.log(tau) + LOG_2PI).sum())
