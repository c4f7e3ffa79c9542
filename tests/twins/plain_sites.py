"""Slow, obvious twins of expectation propagation with Student-t noise: dense solves, and sums over a grid."""

from __future__ import annotations

import numpy as np
from scipy import stats
from scipy.optimize import minimize


def tilted(m, v, y, nu, scale, eta=1.0, points=1501):
    """Log normaliser, mean and variance of N(f; m, v) t(y | f)^eta: a trapezoidal rule in u, f = y + scale sinh u."""
    end = np.arcsinh((abs(m - y) + 12.0 * np.sqrt(v)) / scale)
    u = np.linspace(-end, end, points)
    f = y + scale * np.sinh(u)
    log_p = stats.norm.logpdf(f, m, np.sqrt(v)) + eta * stats.t.logpdf(y, nu, f, scale)
    top = log_p.max()
    p = np.exp(log_p - top) * scale * np.cosh(u) * (u[1] - u[0])
    total = p.sum()
    mean = p @ f / total
    return np.log(total) + top, mean, p @ (f - mean) ** 2 / total


def posterior(K, tau, b):
    Sigma = np.linalg.solve(np.eye(len(K)) + K * tau, K)
    return Sigma, Sigma @ b


def cavities(K, tau, b, eta):
    Sigma, mean = posterior(K, tau, b)
    precision = 1.0 / Sigma.diagonal() - eta * tau
    return (mean / Sigma.diagonal() - eta * b) / precision, 1.0 / precision


def mismatch(K, y, nu, scale, eta, tau, b):
    """Largest difference of tilted moments from the marginals: means in standard deviations, variances relative."""
    Sigma, mean = posterior(K, tau, b)
    m, v = cavities(K, tau, b, eta)
    assert np.all(v > 0.0)
    found = np.array([tilted(*one, nu, scale, eta) for one in zip(m, v, y, strict=True)])
    variance = Sigma.diagonal()
    return max(np.abs((found[:, 1] - mean) / np.sqrt(variance)).max(), np.abs(found[:, 2] / variance - 1.0).max())


def log_integral(m, v, beta, alpha):
    """Log of the integral of N(f; m, v) exp(beta f - alpha f^2 / 2)."""
    precision = 1.0 / v + alpha
    shift = m / v + beta
    return 0.5 * (shift**2 / precision - m**2 / v - np.log(v * precision))


def log_evidence(K, y, nu, scale, eta, tau, b):
    """Log of the integral of the prior times sites C_i exp(b_i f - tau_i f^2 / 2), normalised one by one."""
    _, mean = posterior(K, tau, b)
    log_C = 0.0
    for m, v, yi, t, s in zip(*cavities(K, tau, b, eta), y, tau, b, strict=True):
        log_C += (tilted(m, v, yi, nu, scale, eta)[0] - log_integral(m, v, eta * s, eta * t)) / eta
    return log_C + 0.5 * b @ mean - 0.5 * np.linalg.slogdet(np.eye(len(y)) + K * tau)[1]


def plain_ep(K, y, nu, scale, eta=1.0, damping=0.5, sweeps=60):
    """Update one site after the other, with a new solve after each; return the sites."""
    tau, b = np.zeros(len(y)), np.zeros(len(y))
    for _ in range(sweeps):
        for i in range(len(y)):
            Sigma, mean = posterior(K, tau, b)
            m, v = (one[i] for one in cavities(K, tau, b, eta))
            _, new_mean, new_variance = tilted(m, v, y[i], nu, scale, eta)
            tau[i] += damping / eta * (1.0 / new_variance - 1.0 / Sigma[i, i])
            b[i] += damping / eta * (new_mean / new_variance - mean[i] / Sigma[i, i])
    return tau, b


def parallel_sweep(K, y, nu, scale, eta, damping, tau, b):
    """Update all sites from the cavities of one posterior; return the sites."""
    Sigma, mean = posterior(K, tau, b)
    found = np.array([tilted(*one, nu, scale, eta) for one in zip(*cavities(K, tau, b, eta), y, strict=True)])
    variance = Sigma.diagonal()
    by_tau = (1.0 / found[:, 2] - 1.0 / variance) / eta
    by_b = (found[:, 1] / found[:, 2] - mean / variance) / eta
    return tau + damping * by_tau, b + damping * by_b


def plain_double_loop(K, y, nu, scale, eta, tau, b, rounds):
    """Use a general optimiser in the inner loop; return the sites, and G after each round."""
    n, values = len(y), []
    for _ in range(rounds):
        Sigma, mean = posterior(K, tau, b)
        outer = 1.0 / Sigma.diagonal(), mean / Sigma.diagonal()

        def negative(point, outer=outer):
            tau, b = point[:n], point[n:]
            precision, shift = outer[0] - eta * tau, outer[1] - eta * b
            if precision.min() <= 0.0 or np.linalg.eigvalsh(np.linalg.inv(K) + np.diag(tau))[0] <= 0.0:
                return 1e10, np.zeros(2 * n)
            Sigma, mean = posterior(K, tau, b)
            found = [
                tilted(s / p, 1.0 / p, yi, nu, scale, eta, 301) for p, s, yi in zip(precision, shift, y, strict=True)
            ]
            log_Z, tilted_mean, tilted_variance = np.array(found).T
            # the cavities are unnormalised: the log normalisers omit a common constant
            log_Z = log_Z + 0.5 * shift**2 / precision - 0.5 * np.log(precision)
            log_Z_s = 0.5 * outer[1] ** 2 / outer[0] - 0.5 * np.log(outer[0])
            log_Z_q = 0.5 * b @ mean - 0.5 * np.linalg.slogdet(np.eye(n) + K * tau)[1]
            by_b = tilted_mean - mean
            by_tau = -0.5 * (tilted_variance + tilted_mean**2 - Sigma.diagonal() - mean**2)
            return (log_Z - log_Z_s).sum() / eta + log_Z_q, -np.concatenate([by_tau, by_b])

        found = minimize(negative, np.concatenate([tau, b]), jac=True, method="BFGS", options={"gtol": 1e-9})
        tau, b = found.x[:n], found.x[n:]
        values.append(-found.fun)
    return tau, b, np.array(values)
