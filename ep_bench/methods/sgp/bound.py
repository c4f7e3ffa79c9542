"""The evidence of FITC, the variational bound, their gradients, of all rows or of a part of them.

Z          inducing inputs z_1 ... z_M (M, d), u = f(z_1) ... f(z_M) their outputs
K_uu       covariances of u and their jitter (M, M), K_uu = L L', u = L w with w ~ N(0, I)
V          K_fu L^-T (n, M), rows v_i': E[f_i | w] = v_i' w
rest_i     k(x_i, x_i) - v_i' v_i, the variance of f_i that w leaves open
Lambda_i   noise of y_i given w: sigma^2 + rest_i in FITC, sigma^2 in the variational form
B          I + V' Lambda^-1 V = R R' (M, M)
q(w)       N(m, S); the best is m = B^-1 V' Lambda^-1 y, S = B^-1

Both approximations are models in which y_i = v_i' w + noise of variance Lambda_i. FITC's evidence is that model's,
Snelson and Ghahramani (2006), equation (9), Bui et al. (2015), section 3; Titsias (2009), equation (9), takes
sum_i rest_i / (2 sigma^2) off. For any q(w) both are bounded from below by

    sum_i l_i - KL(q || N(0, I)),   l_i = log N(y_i | v_i' m, Lambda_i) - v_i' S v_i / (2 Lambda_i),

less Titsias' term, and equal to it at the best q: Hensman et al. (2013), equation (4), for the variational form. So
rows add up, a part of them estimates the whole, and the gradient at the best q is that at fixed q. With r = y - V m,
e_i = (r_i^2 + v_i' S v_i) / Lambda_i and g_i = dl_i / dLambda_i = (e_i - 1) / (2 Lambda_i),

    dF / dV = Lambda^-1 (r m' - V S) + 2 diag(h) V,   h_i = dF / d(v_i' v_i) = -g_i (FITC) or 1 / (2 sigma^2),
    dF / dK_fu = dF / dV L^-1,   dF / dK_uu = -L^-T P L^-1 / 2,

P the symmetric matrix with the lower triangle of (dF / dV)' V. Log-likelihoods are sums of squares of residuals, so
that little noise loses no digits.

Jitter: K_uu has JITTER times its mean diagonal on its diagonal, ten times as much as often as it takes to factorise it,
up to MOST. That makes the inducing outputs those of f and a little noise of their own: bounds stay bounds, and the
gradient counts it in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ep_bench.covariances import Covariance
from ep_bench.covariances.hyperparameters import Hyperparameters
from ep_bench.covariances.protocol import blocks, rectangle
from ep_bench.numerics import symmetric
from ep_bench.numerics.jit import FUSE, jit
from ep_bench.types import Array

JITTER, MOST = 1e-10, 1e-5  # of the mean diagonal of K_uu
BLOCK = 2**16  # covariances with inducing inputs that are made at once


class SparseGPProblem(NamedTuple):
    """Training rows, covariance, hyperparameters (the noise variance last), and which approximation."""

    X: Array  # (N, d)
    y: Array  # (N,)
    covariance: Covariance
    hyper: Hyperparameters
    fitc: bool

    def words(self, theta: Array) -> str:
        """Return where in the hyperparameters a calculation stands."""
        return f"at {self.hyper.words(theta)}"


class InducingBasis(NamedTuple):
    """The inducing outputs at given hyperparameters."""

    theta: Array  # (P,) logarithms
    Z: Array  # (M, d)
    factor: Array  # (M, M) L in its lower triangle
    jitter: float  # in parts of the mean diagonal of K_uu


class RowTerms(NamedTuple):
    """What some of the rows have to do with w."""

    X: Array  # (n, d)
    y: Array  # (n,)
    V: Array  # (n, M)
    rest: Array  # (n,)
    noise: Array  # (n,) Lambda


class InducingPosterior(NamedTuple):
    """q(w)."""

    mean: Array  # (M,) m
    covariance: Array  # (M, M) S, in full
    divergence: float  # KL(q || N(0, I)), nats


class ExpectedLogLikelihood(NamedTuple):
    """The sum of l_i over some of the rows, and its derivatives."""

    log_likelihood: float
    by_rows: Array  # (n, M)
    by_rest: Array  # (n,) h with its sign turned
    by_noise_variance: float


def split(problem: SparseGPProblem, point: Array) -> tuple[Array, Array]:
    """Return hyperparameters (P,) and inducing inputs (M, d) of a vector (P + M d,)."""
    size = len(problem.hyper.names)
    return point[:size], point[size:].reshape(-1, problem.X.shape[1])


def basis(problem: SparseGPProblem, theta: Array, Z: Array) -> InducingBasis:
    """Return L at logarithms theta (P,). Raises FloatingPointError where the most jitter does not help."""
    K, jitter = symmetric.square(len(Z)), JITTER
    with np.errstate(over="ignore", invalid="ignore"):
        scale = float(problem.covariance.diagonal(theta[:-1], Z).mean()) or 1.0  # 0: a linear one, all inputs at 0
        while jitter <= MOST:
            problem.covariance.fill(theta[:-1], Z, K)
            K.reshape(-1)[:: len(Z) + 1] += jitter * scale
            if symmetric.factorise(K):
                return InducingBasis(theta, Z, K, jitter)
            jitter *= 10.0
    words = f"not positive definite, jitter {MOST:g} and all, {problem.words(theta)}"
    raise FloatingPointError(f"the covariance of the inducing outputs is {words}")


def features(covariance: Covariance, base: InducingBasis, X: Array) -> tuple[Array, Array]:
    """Return V (n, M) and rest (n,) of rows X (n, d)."""
    share = base.theta[:-1]
    K = rectangle(len(X), len(base.Z))
    covariance.fill(share, X, K, base.Z)
    V = symmetric.half_solve(base.factor, K)
    return V, covariance.diagonal(share, X) - np.einsum("ij,ij->i", V, V)


def terms(problem: SparseGPProblem, base: InducingBasis, X: Array, y: Array) -> RowTerms:
    """Return the terms of rows X (n, d), y (n,)."""
    V, rest = features(problem.covariance, base, X)
    noise = np.full(len(X), np.exp(base.theta[-1]))
    return RowTerms(X, y, V, rest, noise + rest if problem.fitc else noise)


def sweep(problem: SparseGPProblem, base: InducingBasis) -> Iterator[RowTerms]:
    """Yield the terms of all rows, block by block."""
    for rows in blocks(len(problem.y), len(base.Z), BLOCK):
        yield terms(problem, base, problem.X[rows], problem.y[rows])


def best_weights(
    problem: SparseGPProblem, base: InducingBasis, parts: Iterable[RowTerms]
) -> tuple[InducingPosterior, Array]:
    """Return the best q(w), and R (M, M) in its lower triangle. Raises FloatingPointError as ``of_precision`` does."""
    return of_precision(problem, base, *precision(parts, len(base.Z)))


def precision(parts: Iterable[RowTerms], size: int, scale: float = 1.0) -> tuple[Array, Array]:
    """Return B = S^-1 (M, M) and S^-1 m (M,) of the best q(w), the rows of the parts counted ``scale`` times each."""
    B, b = symmetric.square(size), np.zeros(size)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for part in parts:
            scaled = part.V * np.sqrt(scale / part.noise)[:, None]
            B += scaled.T @ scaled
            b += scale * (part.V.T @ (part.y / part.noise))
    B.reshape(-1)[:: size + 1] += 1.0
    return B, b


def of_precision(
    problem: SparseGPProblem, base: InducingBasis, inverse: Array, shift: Array
) -> tuple[InducingPosterior, Array]:
    """Return q(w) of S^-1 (M, M) and S^-1 m (M,), and the factor of S^-1. The first array is used up.

    Raises FloatingPointError, with the hyperparameters, where it is not positive definite.
    """
    if not symmetric.factorise(inverse):
        words = problem.words(base.theta)
        raise FloatingPointError(f"the precision of the inducing outputs is not positive definite {words}")
    factor = inverse.copy()
    mean = symmetric.solve(factor, shift)
    symmetric.invert(inverse)
    symmetric.mirror(inverse)
    with np.errstate(over="ignore", invalid="ignore"):
        divergence = 0.5 * float(np.trace(inverse) + mean @ mean - len(mean) + symmetric.log_determinant(factor))
    return InducingPosterior(mean, inverse, divergence), factor


def expected(part: RowTerms, weights: InducingPosterior, fitc: bool) -> ExpectedLogLikelihood:
    """Return the sum of l_i over a part's rows, nats, and its derivatives."""
    _, y, V, rest, noise = part
    residual = y - V @ weights.mean
    VS = V @ weights.covariance
    e = (residual**2 + np.einsum("ij,ij->i", VS, V)) / noise
    log_likelihood = -0.5 * float((np.log(2.0 * math.pi * noise) + e).sum())
    by_noise = 0.5 * (e - 1.0) / noise
    by_noise_variance = float(by_noise.sum())
    if fitc:
        by_rest = by_noise
    else:
        log_likelihood -= 0.5 * float((rest / noise).sum())
        by_noise_variance += 0.5 * float((rest / noise**2).sum())
        by_rest = -0.5 / noise
    _combine(V, VS, -2.0 * by_rest, 1.0 / noise, residual / noise, weights.mean)
    return ExpectedLogLikelihood(log_likelihood, VS, by_rest, by_noise_variance)


@jit(relaxed=FUSE)
def _combine(V: Any, VS: Any, a: Any, b: Any, c: Any, mean: Any) -> None:
    """Turn V S into a V - b V S + c m', with one a, b and c a row."""
    for i in range(V.shape[0]):
        row, out = V[i], VS[i]
        for j in range(row.size):
            out[j] = a[i] * row[j] - b[i] * out[j] + c[i] * mean[j]


def bound(
    problem: SparseGPProblem,
    base: InducingBasis,
    parts: Iterable[RowTerms],
    weights: InducingPosterior,
    scale: float = 1.0,
) -> tuple[float, Array]:
    """Return the bound (nats) and its gradient (P + M d,) at fixed q(w), a part's rows counted ``scale`` times each.

    Raises FloatingPointError, with the hyperparameters, where one of them is not finite.
    """
    theta, Z = base.theta, base.Z
    share, (size, d) = theta[:-1], Z.shape
    covariance, value = problem.covariance, -weights.divergence
    by_theta, by_Z, product = np.zeros(len(theta)), np.zeros((size, d)), np.zeros((size, size))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for part in parts:
            found = expected(part, weights, problem.fitc)
            value += scale * found.log_likelihood
            product += scale * (found.by_rows.T @ part.V)
            A = symmetric.half_solve_back(base.factor, found.by_rows)
            by_share, by_inputs = covariance.contract_both(share, part.X, A, Z)
            by_theta[:-1] += scale * (by_share + covariance.contract_diagonal(share, part.X, found.by_rest))
            by_theta[-1] += scale * found.by_noise_variance * np.exp(theta[-1])
            by_Z += scale * by_inputs
        by_share, by_inputs = covariance.contract_both(share, Z, _by_covariance(base, product), Z)
        by_theta[:-1] += by_share
        by_Z += 2.0 * by_inputs
    gradient = np.append(by_theta, by_Z)
    if not (math.isfinite(value) and np.isfinite(gradient).all()):
        raise FloatingPointError(f"the evidence or its gradient is not finite {problem.words(theta)}")
    return value, gradient


def _by_covariance(base: InducingBasis, product: Array) -> Array:
    """Return dF / dK_uu, jitter counted in (M, M), from (dF / dV)' V."""
    symmetric.mirror(product)
    half = symmetric.half_solve_back(base.factor, product)  # rows P L^-1
    A = -0.5 * symmetric.half_solve_back(base.factor, np.ascontiguousarray(half.T))
    A.reshape(-1)[:: len(A) + 1] += base.jitter * np.trace(A) / len(A)
    return np.ascontiguousarray(0.5 * (A + A.T))


def evidence(problem: SparseGPProblem, point: Array) -> tuple[float, Array]:
    """Return FITC's log evidence or the variational bound at the best q(w), nats, and its gradient, (P + M d,) both.

    Raises FloatingPointError, with the hyperparameters, where a matrix is not positive definite or a number not finite.
    """
    base = basis(problem, *split(problem, point))
    parts = list(sweep(problem, base))
    weights, _ = best_weights(problem, base, parts)
    return bound(problem, base, parts, weights)


def log_evidence(problem: SparseGPProblem, base: InducingBasis, weights: InducingPosterior) -> float:
    """Return the bound of all rows (nats), without keeping more than a block of them. Raises FloatingPointError."""
    parts = (expected(part, weights, problem.fitc).log_likelihood for part in sweep(problem, base))
    value = sum(parts) - weights.divergence
    if not math.isfinite(value):
        raise FloatingPointError(f"the evidence is not finite {problem.words(base.theta)}")
    return value
