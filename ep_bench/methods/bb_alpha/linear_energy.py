"""The black-box alpha energy of Bayesian linear regression in closed form, with its gradient and curvature.

Model: y_n = x_n' w + N(0, sigma^2), w ~ N(0, v0 I), no bias; q(w) = N(m, V) is the prior times f^N with one tied factor
f. Hernandez-Lobato et al. (ICML 2016), supplement, section B: the tilted distributions of (5) are Gaussians (8), and

    E = log Z_prior - log Z_q - (1 / alpha) sum_n log E_q[(p(y_n | w) / f(w))^alpha]
      = (1/2) sum_i [-log r_i + log(g_i) / beta + (1 - beta) r_i mu_i^2 / g_i]
        + sum_n [log(2 pi sigma^2) / 2 + log(1 + alpha s_n / sigma^2) / (2 alpha) + D_n e_n^2 / 2].

Only log1p(alpha ...) is divided by alpha, so that a tiny alpha loses no digits. For alpha = 0 this is the negative
evidence lower bound. The gradient is (N / alpha - 1) times the difference of the moments in (5), here in a form without
division by alpha.

Symbols; the coordinates are whitened by T, the root of V whose columns are orthogonal:

    beta       alpha / N
    T, r       V = T T', T' T = v0 diag(r)
    mu         m = T mu
    g          1 + beta (r - 1): variances of q divided by those of the cavity q f^-alpha; positive if it is proper
    Z          rows z_n = x_n' T / g
    s, t       variance and mean of x_n' w under the cavity: z_n' diag(g) z_n and (1 - beta) z_n' mu
    D, e, h    1 / (sigma^2 + alpha s), y - t, D - alpha e^2 D^2
    rho        r mu / g, which is Z' D e at the optimal mean
    A, a       directions: V = T exp(A) T' with A symmetric, sigma^2 exp(a)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ep_bench.types import Array


class LinearRegressionProblem(NamedTuple):
    """Data and constants of the energy."""

    X: Array  # (N, d)
    y: Array  # (N,)
    alpha: float
    prior_variance: float

    @property
    def beta(self) -> float:
        """The exponent alpha / N of the prior in a cavity."""
        return self.alpha / len(self.y)


class EnergyPoint(NamedTuple):
    """A covariance T T' and a noise variance, with the terms that energy, gradient and curvature have in common."""

    T: Array  # (d, d)
    noise_variance: float
    r: Array  # (d,)
    g: Array  # (d,)
    Z: Array  # (N, d)
    s: Array  # (N,)
    D: Array  # (N,)


class EnergyGradient(NamedTuple):
    """Derivatives of the energy."""

    mean: Array  # (d,) with respect to mu
    covariance: Array  # (d, d) with respect to A, mean fixed
    noise: float  # with respect to a


def point(problem: LinearRegressionProblem, root: Array, noise_variance: float) -> EnergyPoint | None:
    """Return the point of covariance root root', root (d, d); None if a cavity or a tilted distribution is improper."""
    T = root if _is_diagonal(root) else _with_orthogonal_columns(root)
    r = np.einsum("ij,ij->j", T, T) / problem.prior_variance
    g = 1.0 + problem.beta * (r - 1.0)
    if not (np.isfinite(noise_variance) and noise_variance > 0.0 and np.isfinite(r).all() and r.min() > 0.0):
        return None
    if not g.min() > 0.0:
        return None
    Z = problem.X @ (T / g)
    s = np.square(Z) @ g
    width = noise_variance + problem.alpha * s
    return EnergyPoint(T, noise_variance, r, g, Z, s, 1.0 / width) if width.min() > 0.0 else None


def _is_diagonal(root: Array) -> bool:
    return bool(np.count_nonzero(root) == np.count_nonzero(np.diagonal(root)))


def _with_orthogonal_columns(root: Array) -> Array:
    """Return T (d, d) with T T' = root root' and orthogonal columns."""
    vectors, values, _ = np.linalg.svd(root)
    return np.asarray(vectors * values)


def best_mean(problem: LinearRegressionProblem, at: EnergyPoint) -> Array:
    """Return mu (d,) of minimum energy for a covariance and a noise variance: m / v0 = X' D e is linear in it."""
    return np.asarray(cho_solve(_mean_system(problem, at), at.Z.T @ (at.D * problem.y)))


def _mean_system(problem: LinearRegressionProblem, at: EnergyPoint) -> tuple[Array, bool]:
    """Return the Cholesky factor of diag(r / g) + (1 - beta) Z' D Z, the Hessian of the energy in mu."""
    matrix = (1.0 - problem.beta) * (at.Z.T * at.D) @ at.Z
    matrix[np.diag_indices_from(matrix)] += at.r / at.g
    factor: tuple[Array, bool] = cho_factor(matrix, lower=True)
    return factor


def residuals(problem: LinearRegressionProblem, at: EnergyPoint, mu: Array) -> Array:
    """Return e (N,), the targets minus the means under the cavities."""
    return problem.y - (1.0 - problem.beta) * (at.Z @ mu)


def energy(problem: LinearRegressionProblem, at: EnergyPoint, mu: Array) -> float:
    """Return E, nats, at mu (d,)."""
    beta, noise = problem.beta, at.noise_variance
    weights = -np.log(at.r) + _log1p_over(at.r - 1.0, beta) + (1.0 - beta) * at.r * mu**2 / at.g
    e = residuals(problem, at, mu)
    rows = np.log(2.0 * np.pi * noise) + _log1p_over(at.s / noise, problem.alpha) + at.D * e**2
    return 0.5 * float(weights.sum() + rows.sum())


def _log1p_over(x: Array, scale: float) -> Array:
    """Return log(1 + scale x) / scale for x (n,); x itself for scale = 0."""
    z = scale * x
    ratio = np.ones_like(z)
    np.divide(np.log1p(z), z, out=ratio, where=z != 0.0)
    return x * ratio


def gradient(problem: LinearRegressionProblem, at: EnergyPoint, mu: Array) -> EnergyGradient:
    """Return the gradient in the whitened coordinates at mu (d,); no term grows as alpha goes to 0."""
    beta, noise = problem.beta, at.noise_variance
    e = residuals(problem, at, mu)
    rho = at.r * mu / at.g
    gap = rho - at.Z.T @ (at.D * e)  # 0 at the optimal mean
    h = at.D - problem.alpha * (e * at.D) ** 2
    by_covariance = (at.Z.T * h) @ at.Z + beta * (np.outer(rho, rho) - np.outer(gap, rho) - np.outer(rho, gap))
    by_covariance[np.diag_indices_from(by_covariance)] += (at.r - 1.0) / at.g
    by_noise = 0.5 * float(np.sum(1.0 - at.s * at.D - noise * (e * at.D) ** 2))
    return EnergyGradient((1.0 - beta) * gap, 0.5 * (1.0 - beta) * by_covariance, by_noise)


class EnergyCurvature:
    """Products with the Hessian of the energy minimised over the mean, at a point with the optimal mean mu (d,)."""

    def __init__(self, problem: LinearRegressionProblem, at: EnergyPoint, mu: Array) -> None:
        self._problem, self._at = problem, at
        self._e = residuals(problem, at, mu)
        self._rho = at.r * mu / at.g
        self._gradient = gradient(problem, at, mu)
        self._system = _mean_system(problem, at)

    def times(self, A: Array, a: float) -> tuple[Array, float]:
        """Return the product with a direction, symmetric A (d, d) and a."""
        problem, at, e, rho = self._problem, self._at, self._e, self._rho
        alpha, rest, noise = problem.alpha, 1.0 - problem.beta, at.noise_variance
        ds = rest * np.einsum("ij,ij->i", at.Z @ A, at.Z)
        dD = -(at.D**2) * (alpha * ds + noise * a)
        dmu = cho_solve(self._system, at.Z.T @ (dD * e) - problem.beta * at.r / at.g * (A @ rho))
        de = -rest * (at.Z @ dmu)
        drho = at.r / at.g * (dmu + problem.beta * (A @ rho))
        dh = dD * (1.0 - 2.0 * alpha * at.D * e**2) - 2.0 * alpha * e * at.D**2 * de
        change = (at.Z.T * dh) @ at.Z + problem.beta * (np.outer(drho, rho) + np.outer(rho, drho))
        change += rest * A / np.outer(at.g, at.g) + problem.beta * A * np.outer(at.r / at.g, at.r / at.g)
        by_noise = ds * at.D + at.s * dD + noise * a * (e * at.D) ** 2 + 2.0 * noise * e * at.D * (de * at.D + e * dD)
        return 0.5 * rest * change + self._path_curvature(A), -0.5 * float(by_noise.sum())

    def _path_curvature(self, A: Array) -> Array:
        """Return the term of the nonlinear map from A to the cavity covariance, which is 0 if the gradient is 0."""
        half = self._gradient.covariance @ A
        bent = ((1.0 - self._problem.beta) / self._at.g) * half - 0.5 * half
        return np.asarray(bent + bent.T)
