"""Slow, obvious twins of EP for networks: Jylanki, Nummenmaa and Vehtari (2014), appendices A to G, errata corrected.

One-dimensional integrals are sums over fine uniform grids, cavities differences of natural parameters, sites quotients
of Gaussians, the evidence a sum of log partition functions. Sites of v are whole matrices here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
from scipy.special import erf, gammaln, log_ndtr, logsumexp

FINE = 8001  # nodes of a grid
REACH = 12.0  # of a grid, standard deviations


def natural(mean, covariance):
    """Return precision and location of a Gaussian; numbers or matrices."""
    mean, covariance = np.asarray(mean, dtype=float), np.asarray(covariance, dtype=float)
    if covariance.ndim == 2:
        precision = np.linalg.inv(covariance)
        return precision, precision @ mean
    return 1.0 / covariance, mean / covariance


def usual(precision, location):
    """Return mean and covariance, the inverse of ``natural``."""
    covariance, mean = natural(location, precision)
    return mean, covariance


def psi(mean, covariance):
    """Return the log of the integral of exp(-z' P z / 2 + r' z), appendix G."""
    mean, covariance = np.atleast_1d(mean), np.atleast_2d(covariance)
    square = mean @ np.linalg.solve(covariance, mean)
    return 0.5 * (square + np.linalg.slogdet(covariance)[1] + len(mean) * np.log(2 * np.pi))


def log_normal(x, mean, variance):
    return -0.5 * (np.log(2 * np.pi * variance) + (x - mean) ** 2 / variance)


def moments_on_grid(x, log_density, *functions):
    """Return log of the integral, and mean and variance of x and of each function (values at x)."""
    log_z = logsumexp(log_density)
    p = np.exp(log_density - log_z)
    found = []
    for values in (x, *functions):
        mean = p @ values
        found.append((mean, p @ (values - mean) ** 2))
    return log_z + np.log(x[1] - x[0]), *found


def around(mean, variance, reach=REACH, count=FINE):
    return mean + np.sqrt(variance) * np.linspace(-reach, reach, count)


def activation(h, K, linear=False):
    """g(h), (2)."""
    return (h if linear else erf(h / np.sqrt(2))) / np.sqrt(K)


def activation_moments(m, V, K, linear=False):
    """Return mean and variance of g(h), h ~ N(m, V)."""
    h = around(m, V)
    return moments_on_grid(h, log_normal(h, m, V), activation(h, K, linear))[2]


def function_moments(m_g, V_g, mu, Sigma):
    """Return mean and variance of f, and its covariance with v, (34)."""
    return mu @ m_g, m_g @ Sigma @ m_g + V_g @ (np.diag(Sigma) + mu**2), Sigma @ m_g


def log_power(theta, eta):
    """log Z(theta) of (36): N(y | f, e^theta)^eta is this times N(y | f, e^theta / eta)."""
    return 0.5 * (1 - eta) * (np.log(2 * np.pi) + theta) - 0.5 * np.log(eta)


def noise_moments(y, m_f, V_f, eta, mean, variance):
    """Return log Z_i, moments of theta and of 1 / V_y under (37); a variance of 0 means a fixed theta."""
    if variance == 0:
        V_y = V_f + np.exp(mean) / eta
        return log_power(mean, eta) + log_normal(y, m_f, V_y), (mean, 0.0), (1 / V_y, 0.0)
    # heavy tails of the likelihood in theta raise the tilted mean by at most eta / 2 times the variance
    theta = around(mean, variance, 20.0, 4 * FINE)
    V_y = V_f + np.exp(theta) / eta
    logs = log_power(theta, eta) + log_normal(y, m_f, V_y) + log_normal(theta, mean, variance)
    return moments_on_grid(theta, logs, 1 / V_y)


def class_moments(y, m_f, V_f):
    """Return log Z_i, mean and variance of f under N(f | m_f, V_f) Phi(y f), y = -1 or 1, by quadrature."""
    f = around(m_f, V_f, 40.0)
    return moments_on_grid(f, log_normal(f, m_f, V_f) + log_ndtr(y * f))


def tilted_activation(y, theta, k, m, V, m_g, V_g, mu, Sigma, eta, linear=False, count=FINE, probit=False):
    """Return mean and variance of h_k under (36) for a fixed theta, with (34) at every h_k."""
    K, h = len(m), around(m[k], V[k], count=count)
    logs = np.empty(len(h))
    for j, g in enumerate(activation(h, K, linear)):
        means, variances = m_g.copy(), V_g.copy()
        means[k], variances[k] = g, 0.0
        m_f, V_f, _ = function_moments(means, variances, mu, Sigma)
        term = log_ndtr(y * m_f / np.sqrt(1 + V_f)) if probit else log_normal(y, m_f, V_f + np.exp(theta) / eta)
        logs[j] = term + log_normal(h[j], m[k], V[k])
    return moments_on_grid(h, logs)[1]


def tilted_output(y, m_f, cross, ratio, ratio_V, mu, Sigma):
    """Return mean and covariance of v, (38) and (39)."""
    a = ratio - (y - m_f) ** 2 * ratio_V
    return mu + cross * ratio * (y - m_f), Sigma - np.outer(cross, cross) * a


def log_laplace(w, phi):
    """(3) with phi = log(2 lambda^2), of variance e^phi."""
    scale = np.exp(0.5 * phi) / np.sqrt(2)
    return -np.log(2 * scale) - np.abs(w) / scale


def log_gaussian(w, phi):
    return log_normal(w, 0.0, np.exp(phi))


def log_truncated(v, freedom=4.0, variance=1.0):
    """(5): a Student-t truncated to v >= 0."""
    constant = gammaln((freedom + 1) / 2) - gammaln(freedom / 2) - 0.5 * np.log(np.pi * freedom * variance)
    return np.log(2) + constant - (freedom + 1) / 2 * np.log1p(v**2 / (freedom * variance))


@dataclass
class Model:
    """Data, network and constants; ``noise`` is a fixed theta or None; the prior sites are Gaussian terms."""

    X: np.ndarray
    y: np.ndarray
    K: int
    eta: float = 0.95
    noise: float | None = None
    noise_prior: tuple = (2 * np.log(0.01), 4.0)
    linear: tuple = ()
    w_tau: np.ndarray = None  # (K, D) of Gaussian prior terms
    w_nu: np.ndarray = None
    v_tau: np.ndarray = None  # (K + 1,)
    v_nu: np.ndarray = None
    clip: bool = False
    probit: bool = False  # y holds classes, -1 or 1; eta is 1 and theta 0

    def is_linear(self, k):
        return bool(len(self.linear)) and bool(self.linear[k])


@dataclass
class Sites:
    """Sites of the likelihood."""

    tau: np.ndarray
    nu: np.ndarray
    T: np.ndarray  # (n, K + 1, K + 1)
    b: np.ndarray
    t: np.ndarray = field(default=None)  # of theta
    r: np.ndarray = field(default=None)

    @staticmethod
    def empty(n, K):
        return Sites(
            np.zeros((n, K)), np.zeros((n, K)), np.zeros((n, K + 1, K + 1)), np.zeros((n, K + 1)), np.zeros(n),
            np.zeros(n),
        )  # fmt: skip


def posterior(model, sites):
    """q(w_k), q(v) and q(theta), each mean and covariance: (17), (21), (22)."""
    w = [
        usual(
            (model.X.T * sites.tau[:, k]) @ model.X + np.diag(model.w_tau[k]),
            model.X.T @ sites.nu[:, k] + model.w_nu[k],
        )
        for k in range(model.K)
    ]
    v = usual(sites.T.sum(0) + np.diag(model.v_tau), sites.b.sum(0) + model.v_nu)
    if model.noise is not None:
        return SimpleNamespace(w=w, v=v, theta=(model.noise, 0.0))
    t, r = natural(*model.noise_prior)
    return SimpleNamespace(w=w, v=v, theta=usual(t + sites.t.sum(), r + sites.r.sum()))


def cavities(model, sites, q, i):
    """For data point i: means and variances of h, mean and covariance of v, mean and variance of theta: (31), (32)."""
    x, m, V = model.X[i], [], []
    for k, (mean, S) in enumerate(q.w):
        t, r = natural(x @ mean, x @ S @ x)
        one = usual(t - model.eta * sites.tau[i, k], r - model.eta * sites.nu[i, k])
        m.append(float(one[0]))
        V.append(float(one[1]))
    P, b = natural(*q.v)
    v = usual(P - model.eta * sites.T[i], b - model.eta * sites.b[i])
    if model.noise is not None:
        return np.array(m), np.array(V), v, q.theta
    t, r = natural(*q.theta)
    return np.array(m), np.array(V), v, usual(t - model.eta * sites.t[i], r - model.eta * sites.r[i])


def unit_moments(model, m, V):
    found = [activation_moments(m[k], V[k], model.K, model.is_linear(k)) for k in range(model.K)]
    m_g, V_g = np.array([*found, (1.0, 0.0)]).T
    return m_g, V_g


def tilted(model, sites, q, i):
    """For data point i: log Z_i, tilted moments of every h, of v and of theta, and the cavities."""
    cavity = cavities(model, sites, q, i)
    m, V, (mu, Sigma), theta = cavity
    m_g, V_g = unit_moments(model, m, V)
    m_f, V_f, cross = function_moments(m_g, V_g, mu, Sigma)
    log_z, theta_hat, ratio = noise_moments(model.y[i], m_f, V_f, model.eta, *theta)
    v_hat = tilted_output(model.y[i], m_f, cross, *ratio, mu, Sigma)
    if model.probit:
        log_z, (mean, variance) = class_moments(model.y[i], m_f, V_f)
        v_hat = mu + cross * (mean - m_f) / V_f, Sigma + np.outer(cross, cross) * (variance - V_f) / V_f**2
    h_hat = [
        tilted_activation(
            model.y[i], theta_hat[0], k, m, V, m_g, V_g, mu, Sigma, model.eta, model.is_linear(k), 1001, model.probit
        )
        for k in range(model.K)
    ]
    return log_z, h_hat, v_hat, theta_hat, cavity


def quotient(hat, cavity, eta):
    """Return the site of a variable from its tilted and cavity moments, (25)."""
    (P, r), (P_cavity, r_cavity) = natural(*hat), natural(*cavity)
    return (P - P_cavity) / eta, (r - r_cavity) / eta


def updated(model, sites):
    """Return new sites of all data points, undamped, from one posterior."""
    q, new = posterior(model, sites), Sites.empty(len(model.y), model.K)
    for i in range(len(model.y)):
        _, h_hat, v_hat, theta_hat, (m, V, v, theta) = tilted(model, sites, q, i)
        for k in range(model.K):
            tau, nu = quotient(h_hat[k], (m[k], V[k]), model.eta)
            if model.clip and tau < 0:
                tau, nu = 0.0, (h_hat[k][0] - m[k]) / V[k] / model.eta
            new.tau[i, k], new.nu[i, k] = tau, nu
        new.T[i], new.b[i] = quotient(v_hat, v, model.eta)
        if model.noise is None:
            new.t[i], new.r[i] = quotient(theta_hat, theta, model.eta)
    return new


def log_evidence(model, sites, fixed_w=True, fixed_v=True):
    """(48) with each local term (ln Z + Psi(cavity) - Psi(marginal)) / eta; returns it and the ln Z_i.

    Without ``fixed_w`` or ``fixed_v`` the terms of their priors are left to ``weight_term`` and ``output_term``.
    """
    q = posterior(model, sites)
    total = psi(*q.v) + sum(psi(*one) for one in q.w)
    if fixed_w:
        total -= sum(psi(r / t, 1 / t) for t, r in zip(model.w_tau.ravel(), model.w_nu.ravel(), strict=True))
    first = 0 if fixed_v else model.K  # v_0 keeps its Gaussian prior
    total -= sum(psi(r / t, 1 / t) for t, r in zip(model.v_tau[first:], model.v_nu[first:], strict=True))
    if model.noise is None:
        total += psi(*q.theta) - psi(*model.noise_prior)
    log_z = np.empty(len(model.y))
    for i in range(len(model.y)):
        log_z[i], local = likelihood_term(model, sites, q, i)
        total += local
    return total, log_z


def likelihood_term(model, sites, q, i):
    m, V, v, theta = cavities(model, sites, q, i)
    m_f, V_f, _ = function_moments(*unit_moments(model, m, V), *v)
    log_z = noise_moments(model.y[i], m_f, V_f, model.eta, *theta)[0]
    if model.probit:
        log_z = class_moments(model.y[i], m_f, V_f)[0]
    local, x = log_z + psi(*v) - psi(*q.v), model.X[i]
    for k, (mean, S) in enumerate(q.w):
        local += psi(m[k], V[k]) - psi(x @ mean, x @ S @ x)
    if model.noise is None:
        local += psi(*theta) - psi(*q.theta)
    return log_z, local / model.eta


def over_both_signs(low=-45.0, high=5.0, count=6001):
    """Return nodes and log weights over the real line, denser towards 0, the kink of a Laplace density."""
    u = np.linspace(low, high, count)
    return np.concatenate([-np.exp(u), np.exp(u)]), np.tile(u + np.log(u[1] - u[0]), 2)


def weight_moments(m, V, phi, phi_V, eta, log_prior, count=301, reach=REACH):
    """log Z, (mean, variance) of w and of phi of N(w | m, V) N(phi | phi, phi_V) p(w | phi)^eta, (27)."""
    w, log_weights = over_both_signs(count=6001 if phi_V > 0 else 24001)
    scales = around(phi, phi_V, reach, count) if phi_V > 0 else np.array([phi])
    outer = log_normal(scales, phi, phi_V) + np.log(scales[1] - scales[0]) if phi_V > 0 else np.zeros(1)
    logs = eta * log_prior(w[:, None], scales) + (log_normal(w, m, V) + log_weights)[:, None] + outer
    log_z = logsumexp(logs)
    p = np.exp(logs - log_z)
    found = []
    for values, share in ((w, p.sum(1)), (scales, p.sum(0))):
        mean = share @ values
        found.append((mean, share @ (values - mean) ** 2))
    return log_z, *found


def output_moments(m, V, eta, freedom=4.0, variance=1.0):
    """log Z and (mean, variance) of v >= 0 under N(m, V) times (5) to the power eta."""
    v, log_weights = (one[one.size // 2 :] for one in over_both_signs(count=40001))
    logs = log_normal(v, m, V) + eta * log_truncated(v, freedom, variance) + log_weights
    log_z = logsumexp(logs)
    p = np.exp(logs - log_z)
    mean = p @ v
    return log_z, (mean, p @ (v - mean) ** 2)


def without(marginal, site, eta):
    """Return mean and variance of the cavity of a scalar."""
    (P, r), (t, s) = natural(*marginal), site
    return usual(P - eta * t, r - eta * s)


def weight_term(marginal, site, scale, scale_site, eta, log_prior):
    """Return the local term in (48) of the prior of one weight."""
    cavity, scale_cavity = without(marginal, site, eta), without(scale, scale_site, eta)
    log_z = weight_moments(*cavity, *scale_cavity, eta, log_prior)[0]
    return (log_z + psi(*cavity) - psi(*marginal) + psi(*scale_cavity) - psi(*scale)) / eta


def output_term(marginal, site, eta, freedom=4.0, variance=1.0):
    """Return the local term of one output weight."""
    cavity = without(marginal, site, eta)
    return (output_moments(*cavity, eta, freedom, variance)[0] + psi(*cavity) - psi(*marginal)) / eta
