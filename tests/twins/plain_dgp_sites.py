"""Slow, obvious twins around one layer of tied-factor EP: untied EP, fixed points of the tied factor, exact bounds.

Nothing here has a hidden layer: f(x) given u is a'u plus noise of variance r, a = K^-1 k. Layers as in ``plain_dgp``.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr

from tests.twins.plain_dgp import energy, gram, kernel, log_normal, log_z, outputs


def projection(layer, X):
    """The only output, K (M, M), the coefficients a (n, M) and the variances r (n,) of f given u."""
    (out,) = outputs(layer)
    K = gram(out).astype(float)
    k = np.array([[float(kernel(x, z, out)) for z in out.Z] for x in X])
    a = np.linalg.solve(K, k.T).T
    return out, K, a, float(out.sf) ** 2 - np.sum(k * a, axis=1)


def slopes(likelihood, mean, variance, y, alpha, sn):
    """log Z of p(y | f)^alpha under N(f; mean, variance), and its derivatives by the mean and the variance."""
    log_Z = float(log_z(likelihood, np.array([mean]), np.array([[variance]]), y, alpha, sn))
    if likelihood == "gaussian":
        s = variance + sn**2 / alpha
        return log_Z, (y - mean) / s, ((y - mean) ** 2 / s - 1) / (2 * s)
    assert alpha == 1
    sign, s = 2 * y - 1, np.sqrt(1 + variance)
    z = sign * mean / s
    hazard = np.exp(-(z**2) / 2 - log_ndtr(z)) / np.sqrt(2 * np.pi)
    return log_Z, sign * hazard / s, -z * hazard / (2 * s**2)


def tilted(m, V, a, r, likelihood, y, alpha, sn):
    """log Z, mean and covariance of N(u; m, V) times the integral over f of p(y | f)^alpha: appendix C."""
    log_Z, g, h = slopes(likelihood, a @ m, a @ V @ a + r, y, alpha, sn)
    return log_Z, m + V @ a * g, V - np.outer(V @ a, a @ V) * (g**2 - 2 * h)


def partition(precision, shift):
    """phi of natural parameters, without the constant in 2 pi."""
    return -0.5 * np.linalg.slogdet(precision)[1] + 0.5 * shift @ np.linalg.solve(precision, shift)


def natural(mean, covariance):
    precision = np.linalg.inv(covariance)
    return precision, precision @ mean


def usual(precision, shift):
    V = np.linalg.inv(precision)
    return V @ shift, V


def untied(layer, X, y, alpha=1.0, likelihood="gaussian", damping=0.5, sweeps=200):
    """log Z of power EP with a Gaussian site on u per data point, and the moments of u; parallel updates."""
    out, K, a, r = projection(layer, X)
    n, M, sn = len(y), len(K), float(out.sn)
    prior = np.linalg.inv(K)
    T, t = np.zeros((n, M, M)), np.zeros((n, M))
    for _ in range(sweeps):
        precision, shift = prior + T.sum(0), t.sum(0)
        total, step = partition(precision, shift) - 0.5 * np.linalg.slogdet(K)[1], 0.0
        for i in range(n):
            cavity = precision - alpha * T[i], shift - alpha * t[i]
            log_Z, *found = tilted(*usual(*cavity), a[i], r[i], likelihood, y[i], alpha, sn)
            total += (log_Z + partition(*cavity) - partition(precision, shift)) / alpha
            new = natural(*found)
            change = (new[0] - cavity[0]) / alpha - T[i], (new[1] - cavity[1]) / alpha - t[i]
            T[i], t[i] = T[i] + damping * change[0], t[i] + damping * change[1]
            step = max(step, abs(change[0]).max(), abs(change[1]).max())
        if step < 1e-11:
            break
    assert step < 1e-8, step
    return total, *usual(precision, shift)


def packed(R):
    """Return the rows of an upper triangle in one vector, with logarithms of its diagonal."""
    return np.concatenate([np.append(np.log(R[i, i]), R[i, i + 1 :]) for i in range(len(R))])


def with_factor(layer, precision, shift):
    """Return the layer with the factor g^N of these natural parameters."""
    R = np.linalg.cholesky(precision).T
    return {**layer, "R": packed(R)[None], "theta2": np.asarray(shift)[None]}


def moments_averaged(layer, X, y, alpha=1.0, likelihood="gaussian", damping=0.5, sweeps=2000):
    """The stationary point of the tied energy: q has the average of the tilted moments (section 4.2); Theta_1, theta_2.

    Theta_1 need not be positive definite there: then no R has it.
    """

    def new(cavity, found):
        means = np.array([mean for mean, _ in found])
        second = np.mean([V + np.outer(mean, mean) for mean, V in found], axis=0)
        mean = means.mean(0)
        return natural(mean, second - np.outer(mean, mean))

    return iterate(new, layer, X, y, alpha, likelihood, damping, sweeps)


def naturals_averaged(layer, X, y, alpha=1.0, likelihood="gaussian", damping=0.5, sweeps=2000):
    """The fixed point of stochastic EP: the average of the factors of the data points; Theta_1, theta_2."""

    def new(cavity, found):
        one = [natural(*moments) for moments in found]
        factor = [np.mean([(parts[k] - cavity[k]) / alpha for parts in one], axis=0) for k in range(2)]
        return cavity[0] + alpha * factor[0], cavity[1] + alpha * factor[1]

    return iterate(new, layer, X, y, alpha, likelihood, damping, sweeps)


def iterate(new, layer, X, y, alpha, likelihood, damping, sweeps):
    """Damped fixed-point iteration of the tied factor, from an empty one."""
    out, K, a, r = projection(layer, X)
    n, sn, prior = len(y), float(out.sn), np.linalg.inv(K)
    T, t = np.zeros_like(K), np.zeros(len(K))
    for _ in range(sweeps):
        cavity = prior + (1 - alpha / n) * T, (1 - alpha / n) * t
        m, V = usual(*cavity)
        found = [tilted(m, V, a[i], r[i], likelihood, y[i], alpha, sn)[1:] for i in range(n)]
        precision, shift = new(cavity, found)
        # the difference from the cavity is alpha of the n factors
        change = n * (precision - cavity[0]) / alpha - T, n * (shift - cavity[1]) / alpha - t
        T, t = T + damping / n * change[0], t + damping / n * change[1]
        if max(abs(change[0]).max(), abs(change[1]).max()) < 1e-11 * n:
            break
    assert max(abs(change[0]).max(), abs(change[1]).max()) < 1e-7 * n, (change[0], change[1])
    return T, t


def smallest_energy(layer, X, y, alpha=1.0, likelihood="gaussian"):
    """The tied energy at the optimal factor, everything else fixed, by a general optimiser with differences."""
    shape = layer["R"].shape[1]

    def value(point):
        return energy(
            [{**layer, "R": point[None, :shape], "theta2": point[None, shape:]}], X, y, len(y), alpha, likelihood
        )

    found = minimize(value, np.append(layer["R"][0], layer["theta2"][0]), method="BFGS", options={"gtol": 1e-6})
    return found.fun


def tied_energy(layer, T, t, X, y, alpha=1.0, likelihood="gaussian"):
    """The tied energy at the natural parameters of g^N, which may be indefinite as long as the cavity is proper."""
    out, K, a, r = projection(layer, X)
    n, sn, prior = len(y), float(out.sn), np.linalg.inv(K)
    cavity = prior + (1 - alpha / n) * T, (1 - alpha / n) * t
    m, V = usual(*cavity)
    log_Z = sum(tilted(m, V, a[i], r[i], likelihood, y[i], alpha, sn)[0] for i in range(n))
    phis = (n / alpha - 1) * partition(prior + T, t) - n / alpha * partition(*cavity)
    return 0.5 * np.linalg.slogdet(K)[1] + phis - log_Z / alpha


def log_evidence(covariance, y):
    values, vectors = np.linalg.eigh(covariance)
    return -0.5 * (((vectors.T @ y) ** 2 / values).sum() + np.log(2 * np.pi * values).sum())


def fitc(layer, X, y, alpha=1.0):
    """log Z of power EP with Gaussian noise in closed form; alpha = 1 is FITC's evidence, 0 Titsias' bound."""
    out, K, a, r = projection(layer, X)
    sn2 = float(out.sn) ** 2
    Q = a @ K @ a.T
    if alpha == 0:
        return log_evidence(Q + sn2 * np.eye(len(y)), y) - r.sum() / (2 * sn2)
    extra = (1 - alpha) / (2 * alpha) * np.log1p(alpha * r / sn2).sum()
    return log_evidence(Q + np.diag(alpha * r + sn2), y) - extra


def exact(layer, X, y):
    """log N(y; 0, K + noise) of the exact Gaussian process."""
    (out,) = outputs(layer)
    K = np.array([[float(kernel(a, b, out)) for b in X] for a in X])
    return log_evidence(K + float(out.sn) ** 2 * np.eye(len(y)), y)


def prior_energy(layer, y):
    """- sum log N(y; 0, sf^2 + sn^2): the energy of a factor that is 1."""
    (out,) = outputs(layer)
    return -float(np.sum(log_normal(np.asarray(y), 0.0, out.sf**2 + out.sn**2)))
