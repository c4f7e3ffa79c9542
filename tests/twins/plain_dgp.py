"""Slow, obvious twins of deep Gaussian processes by approximate EP: explicit inverses, in extended precision.

Formulas of Bui et al. (2016), sections 3 to 5 and appendices D to F, one output and one row at a time. A layer is a
dict: ``log_ls`` (G, D_in), ``log_sf`` (G,) and ``log_sn`` (G,), logarithms of lengthscales and of the standard
deviations of signal and noise, G = 1 if its outputs share them, otherwise one per output; ``Z`` (D_out, M, D_in);
``R`` (D_out, M (M + 1) / 2), rows of an upper triangle with logarithms on its diagonal; ``theta2`` (D_out, M). R'R and
theta_2 are the natural parameters of the whole factor g^N of one output. Inverses of K lose digits as its condition
number grows, so the twins compute in ``numpy.longdouble``.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

JITTER = 1e-6
Real = np.longdouble


class Output(NamedTuple):
    """One output of a layer: a Gaussian process and the factor on its inducing outputs."""

    l: np.ndarray  # (D_in,)
    sf: float
    sn: float
    Z: np.ndarray  # (M, D_in)
    R: np.ndarray  # (M, M) upper triangular
    theta2: np.ndarray  # (M,)


def triangle(packed, M):
    R, at = np.zeros((M, M), dtype=Real), 0
    for i in range(M):
        for j in range(i, M):
            R[i, j] = np.exp(packed[at]) if i == j else packed[at]
            at += 1
    assert at == len(packed)
    return R


def outputs(layer):
    """Return the outputs of a layer from the logarithms of their parameters."""
    found = []
    for o, Z in enumerate(layer["Z"]):
        g = 0 if len(layer["log_sf"]) == 1 else o
        scales = [np.exp(np.asarray(layer[name][g], dtype=Real)) for name in ("log_ls", "log_sf", "log_sn")]
        R, theta2 = triangle(np.asarray(layer["R"][o], dtype=Real), len(Z)), np.asarray(layer["theta2"][o], dtype=Real)
        found.append(Output(*scales, np.asarray(Z, dtype=Real), R, theta2))
    return found


def eliminate(A):
    """Return inverse and log determinant of a positive definite matrix, by Gauss-Jordan elimination."""
    n = len(A)
    table, log_det = np.hstack([np.asarray(A, dtype=Real), np.eye(n, dtype=Real)]), Real(0)
    for i in range(n):
        assert table[i, i] > 0
        log_det += np.log(table[i, i])
        table[i] = table[i] / table[i, i]
        for j in range(n):
            if j != i:
                table[j] = table[j] - table[j, i] * table[i]
    return table[:, n:], log_det


def kernel(x, z, out):
    return out.sf**2 * np.exp(-sum((x - z) ** 2 / (2 * out.l**2)))


def gram(out):
    """Return K_uu (M, M), jitter included."""
    K = np.array([[kernel(a, b, out) for b in out.Z] for a in out.Z], dtype=Real)
    return K + JITTER * np.eye(len(K), dtype=Real)


def psi1(mean, variance, z, out):
    """E k(h, z), h ~ N(mean, diag(variance)), each (D_in,)."""
    s = out.l**2 + variance
    return out.sf**2 * np.prod(np.sqrt(out.l**2 / s)) * np.exp(-sum((mean - z) ** 2 / (2 * s)))


def psi2(mean, variance, za, zb, out):
    """E k(h, za) k(h, zb)."""
    s = out.l**2 + 2 * variance
    exponent = -((za - zb) ** 2) / (4 * out.l**2) - (mean - (za + zb) / 2) ** 2 / s
    return out.sf**4 * np.prod(np.sqrt(out.l**2 / s)) * np.exp(sum(exponent))


def gaussian(out, beta):
    """Mean and covariance of p(u) times the power beta of the factor: 1 the posterior, (N - alpha) / N the cavity."""
    K_inverse, _ = eliminate(gram(out))
    V, _ = eliminate(K_inverse + beta * out.R.T @ out.R)
    return V @ (beta * out.theta2), V


def log_partition(m, V):
    """phi without the constant in 2 pi: log |V| / 2 + m' V^-1 m / 2, equation (19)."""
    inverse, log_det = eliminate(V)
    return log_det / 2 + m @ inverse @ m / 2


def weights(out, beta):
    """A = K^-1 m and C = K^-1 V K^-1 - K^-1, so that f(h) has the mean k A and the variance k(h, h) + k C k'."""
    m, V = gaussian(out, beta)
    K_inverse, _ = eliminate(gram(out))
    return K_inverse @ m, K_inverse @ V @ K_inverse - K_inverse


def conditional(x, out, A, C):
    """Mean and variance of f(x) at a known x, without noise."""
    k = np.array([kernel(x, z, out) for z in out.Z], dtype=Real)
    return k @ A, out.sf**2 + k @ C @ k


def expected(mean, variance, out, A, C):
    """Mean and variance of f(h), h ~ N(mean, diag(variance)), without noise."""
    first = np.array([psi1(mean, variance, z, out) for z in out.Z], dtype=Real)
    second = np.array([[psi2(mean, variance, a, b, out) for b in out.Z] for a in out.Z], dtype=Real)
    m = first @ A
    return m, out.sf**2 + np.sum((C + np.outer(A, A)) * second) - m**2


def moments(layers, X, beta, *, latent=False):
    """Means and variances (n, D_out) of every layer, noise included, at the last one unless ``latent``."""
    found, below = [], None
    for index, layer in enumerate(layers):
        mean, variance = (np.empty((len(X), len(layer["Z"])), dtype=Real) for _ in range(2))
        for o, out in enumerate(outputs(layer)):
            A, C = weights(out, beta)
            for row in range(len(X)):
                if below is None:
                    one = conditional(np.asarray(X[row], dtype=Real), out, A, C)
                else:
                    one = expected(below[0][row], below[1][row], out, A, C)
                mean[row, o], variance[row, o] = one
            if not (latent and index == len(layers) - 1):
                variance[:, o] += out.sn**2
        below = mean, variance
        found.append(below)
    return found


def log_normal(y, mean, variance):
    return -0.5 * (np.log(2 * np.pi * variance) + (y - mean) ** 2 / variance)


def grid(mean, covariance, *, step=0.2, end=9.0):
    """Points (P, C) and weights (P,) of the trapezoidal rule for N(mean, covariance), in every dimension."""
    mean, covariance = np.asarray(mean, dtype=float), np.asarray(covariance, dtype=float)
    t = np.arange(-end, end + step / 2, step)
    w = np.exp(-(t**2) / 2)
    points = np.stack(np.meshgrid(*[t] * len(mean), indexing="ij"), axis=-1).reshape(-1, len(mean))
    masses = reduce(np.multiply.outer, [w / w.sum()] * len(mean)).ravel()
    keep = masses > 1e-30
    return mean + points[keep] @ np.linalg.cholesky(covariance).T, masses[keep]


def log_likelihood(likelihood, f, y):
    """log p(y | f) of a class y for latent values f (P, C): one column for the probit, else one per class."""
    if likelihood == "probit":
        return log_ndtr((2 * y - 1) * f[:, 0])
    top = f.max(axis=1)
    return f[:, y] - top - np.log(np.exp(f - top[:, None]).sum(axis=1))


def log_z(likelihood, mean, covariance, y, alpha, sn=None, noise=None):
    """Log of the integral of N(f; mean, covariance) p(y | f)^alpha of one data point; mean (C,), covariance (C, C).

    ``noise`` (S, C) are standard normal draws to take an average over instead.
    """
    if noise is not None:
        f = np.asarray(mean, dtype=float) + noise @ np.linalg.cholesky(np.asarray(covariance, dtype=float)).T
        return np.log(np.mean(np.exp(alpha * log_likelihood(likelihood, f, y))))
    if likelihood == "gaussian":
        (m,), ((v,),) = mean, covariance
        power = np.log(2 * np.pi * sn**2 / alpha) / 2 - alpha * np.log(2 * np.pi * sn**2) / 2
        return log_normal(y, m, v + sn**2 / alpha) + power
    if likelihood == "probit" and alpha == 1:
        return log_ndtr(float((2 * y - 1) * mean[0] / np.sqrt(1 + covariance[0, 0])))
    f, w = grid(mean, covariance, step=0.05 if len(mean) == 1 else 0.25)
    return np.log(w @ np.exp(alpha * log_likelihood(likelihood, f, y)))


def log_zs(layers, X, y, n, alpha, likelihood="gaussian", noise=None):
    """Return log Z (B,) of each data point under the cavity for n data points."""
    mean, variance = moments(layers, X, (n - alpha) / Real(n), latent=True)[-1]
    sn = outputs(layers[-1])[0].sn
    rows = zip(mean, variance, y, strict=True)
    return np.array([log_z(likelihood, m, np.diag(v), one, alpha, sn, noise) for m, v, one in rows])


def divergences(layers, n, alpha):
    """The energy without its log Z: over all u, phi_prior + (n / alpha - 1) phi_post - n / alpha phi_cavity."""
    total = Real(0)
    for layer in layers:
        for out in outputs(layer):
            prior = eliminate(gram(out))[1] / 2
            post = log_partition(*gaussian(out, Real(1)))
            cavity = log_partition(*gaussian(out, (n - alpha) / Real(n)))
            total += prior + (n / alpha - 1) * post - n / alpha * cavity
    return total


def energy(layers, X, y, n, alpha=1.0, likelihood="gaussian", noise=None):
    """Tied power EP: the energy of a minibatch X (B, d), y (B,) of n data points, to be minimised."""
    total = np.sum(log_zs(layers, X, y, n, alpha, likelihood, noise))
    return divergences(layers, n, alpha) - n / (alpha * len(y)) * total


def expected_log(likelihood, mean, covariance, y, sn=None, noise=None):
    """E log p(y | f), f ~ N(mean, covariance), of one data point, as ``log_z``."""
    if likelihood == "gaussian":
        return log_normal(y, mean[0], sn**2) - covariance[0, 0] / (2 * sn**2)
    if noise is not None:
        f = np.asarray(mean, dtype=float) + noise @ np.linalg.cholesky(np.asarray(covariance, dtype=float)).T
        return np.mean(log_likelihood(likelihood, f, y))
    f, w = grid(mean, covariance, step=0.05 if len(mean) == 1 else 0.25)
    return w @ log_likelihood(likelihood, f, y)


def divergence(layers):
    """Over all u, KL(q(u) || p(u))."""
    total = Real(0)
    for layer in layers:
        for out in outputs(layer):
            m, V = gaussian(out, Real(1))
            K = gram(out)
            K_inverse, log_K = eliminate(K)
            total += (np.trace(K_inverse @ V) + m @ K_inverse @ m - len(m) + log_K - eliminate(V)[1]) / 2
    return total


def variational_energy(layers, X, y, n, likelihood="gaussian", noise=None):
    """The limit alpha -> 0: sum KL(q(u) || p(u)) - n / B sum E_q log p(y | f)."""
    mean, variance = moments(layers, X, Real(1), latent=True)[-1]
    sn = outputs(layers[-1])[0].sn
    rows = zip(mean, variance, y, strict=True)
    fit = sum(expected_log(likelihood, m, np.diag(v), one, sn, noise) for m, v, one in rows)
    return divergence(layers) - n / len(y) * fit


def predict(layers, X):
    """Return mean and variance (n,) of the target, noise included, by moment matching."""
    mean, variance = moments(layers, X, Real(1))[-1]
    return mean[:, 0].astype(float), variance[:, 0].astype(float)


def probabilities(layers, X, likelihood):
    """Return probabilities (n, classes), each by its own quadrature."""
    mean, variance = moments(layers, X, Real(1), latent=True)[-1]
    classes = 2 if likelihood == "probit" else mean.shape[1]
    one = [
        [log_z(likelihood, m, np.diag(v), c, 1.0) for c in range(classes)] for m, v in zip(mean, variance, strict=True)
    ]
    return np.exp(np.array(one, dtype=float))
