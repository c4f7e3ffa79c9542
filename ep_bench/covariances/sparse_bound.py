"""The evidence of FITC, the variational bound and their gradients, for all data points or for a subset.

Z          inducing inputs z_1 ... z_M (M, d), u = f(z_1) ... f(z_M) their outputs
K_uu       covariances of u with jitter (M, M), K_uu = L L', u = L w with w ~ N(0, I)
V          K_fu L^-T (n, M), rows v_i': E[f_i | w] = v_i' w
rest_i     k(x_i, x_i) - v_i' v_i, the variance of f_i given w
c_i        number of data points that were merged into this one, usually 1 (``covariances.replicates``)
Lambda_i   noise of y_i given w: sigma^2 / c_i + rest_i in FITC, sigma^2 / c_i in the variational form
B          I + V' Lambda^-1 V = R R' (M, M)
q(w)       N(m, S); the best is m = B^-1 V' Lambda^-1 y, S = B^-1

In both approximations y_i = v_i' w + noise of variance Lambda_i. The evidence of FITC is that of this model: Snelson
and Ghahramani (2006), equation (9), Bui et al. (2015), section 3. Titsias (2009), equation (9), subtracts
sum_i c_i rest_i / (2 sigma^2). For any q(w) both are bounded from below by

    sum_i l_i - KL(q || N(0, I)),   l_i = log N(y_i | v_i' m, Lambda_i) - v_i' S v_i / (2 Lambda_i),

minus the term of Titsias, with equality at the best q: Hensman et al. (2013), equation (4), for the variational form.
The bound is a sum over data points, so that a subset gives an estimate. The gradient at the best q equals that at
fixed q. With r = y - V m, e_i = (r_i^2 + v_i' S v_i) / Lambda_i and g_i = dl_i / dLambda_i = (e_i - 1) / (2 Lambda_i),

    dF / dV = Lambda^-1 (r m' - V S) + 2 diag(h) V,   h_i = dF / d(v_i' v_i) = -g_i (FITC) or 1 / (2 Lambda_i),
    dF / dK_fu = dF / dV L^-1,   dF / dK_uu = -L^-T P L^-1 / 2,

with P the symmetric matrix that has the lower triangle of (dF / dV)' V. Log-likelihoods are computed from squared
residuals, which loses no digits if the noise is small.

Jitter: JITTER times the mean diagonal is added to the diagonal of K_uu. It is multiplied by ten until K_uu can be
factorised, up to MAX_JITTER. The inducing outputs are then those of f plus a small noise of their own. The bounds
remain valid, and the gradient includes the jitter. Another method may set an absolute jitter in ``SparseGPProblem``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ep_bench.covariances import Covariance
from ep_bench.covariances.hyperparameters import Hyperparameters
from ep_bench.covariances.protocol import blocks, rectangle
from ep_bench.covariances.replicates import Replicates
from ep_bench.numerics import symmetric
from ep_bench.numerics.jit import FUSE, jit
from ep_bench.types import Array, Indices

JITTER, MAX_JITTER = 1e-10, 1e-5  # relative to the mean diagonal of K_uu
BLOCK = 2**16  # covariances with inducing inputs that are computed at once


class SparseGPProblem(NamedTuple):
    """Training data, covariance, hyperparameters (the noise variance last), and the approximation."""

    X: Array  # (N, d)
    y: Array  # (N,)
    covariance: Covariance
    hyper: Hyperparameters
    fitc: bool  # False: variational
    replicates: Replicates  # of merged data points
    jitter: float | None = None  # absolute, not a function of the parameters; None: JITTER, relative

    def words(self, theta: Array) -> str:
        """Return the hyperparameters as text, for messages."""
        return f"at {self.hyper.words(theta)}"


class InducingBasis(NamedTuple):
    """Inducing inputs and the factor of their covariance at fixed hyperparameters."""

    theta: Array  # (P,) logarithms
    Z: Array  # (M, d)
    factor: Array  # (M, M) L in its lower triangle
    jitter: float  # relative to the mean diagonal of K_uu; 0 if it is not a function of the parameters


class RowTerms(NamedTuple):
    """A subset of the data points with their terms of the model."""

    X: Array  # (n, d)
    y: Array  # (n,)
    V: Array  # (n, M)
    rest: Array  # (n,)
    noise: Array  # (n,) Lambda
    counts: Array  # (n,) c


class InducingPosterior(NamedTuple):
    """q(w)."""

    mean: Array  # (M,) m
    covariance: Array  # (M, M) S, in full
    divergence: float  # KL(q || N(0, I)), nats


class ExpectedLogLikelihood(NamedTuple):
    """The sum of l_i over a subset of the data points, and its derivatives."""

    log_likelihood: float  # nats
    by_features: Array  # (n, M)
    by_rest: Array  # (n,) -h
    by_noise_variance: float


def split(problem: SparseGPProblem, point: Array) -> tuple[Array, Array]:
    """Split a vector (P + M d,) into hyperparameters (P,) and inducing inputs (M, d)."""
    size = len(problem.hyper.names)
    return point[:size], point[size:].reshape(-1, problem.X.shape[1])


def basis(problem: SparseGPProblem, theta: Array, Z: Array) -> InducingBasis:
    """Return L at logarithms theta (P,) for Z (M, d). Raises FloatingPointError if the jitter does not suffice."""
    if problem.jitter is not None:
        return _basis_with_fixed_jitter(problem, theta, Z, problem.jitter)
    K, jitter = symmetric.square(len(Z)), JITTER
    with np.errstate(over="ignore", invalid="ignore"):
        scale = float(problem.covariance.diagonal(theta[:-1], Z).mean()) or 1.0  # 0: linear covariance, all inputs 0
        while jitter <= MAX_JITTER:
            problem.covariance.fill(theta[:-1], Z, K)
            K.reshape(-1)[:: len(Z) + 1] += jitter * scale
            if symmetric.factorise(K):
                return InducingBasis(theta, Z, K, jitter)
            jitter *= 10.0
    words = f"not positive definite, even with jitter {MAX_JITTER:g}, {problem.words(theta)}"
    raise FloatingPointError(f"the covariance of the inducing outputs is {words}")


def _basis_with_fixed_jitter(problem: SparseGPProblem, theta: Array, Z: Array, jitter: float) -> InducingBasis:
    K = symmetric.square(len(Z))
    with np.errstate(over="ignore", invalid="ignore"):
        problem.covariance.fill(theta[:-1], Z, K)
        K.reshape(-1)[:: len(Z) + 1] += jitter
        if symmetric.factorise(K):
            return InducingBasis(theta, Z, K, 0.0)
    words = f"not positive definite with jitter {jitter:g}, {problem.words(theta)}"
    raise FloatingPointError(f"the covariance of the inducing outputs is {words}")


def features(covariance: Covariance, base: InducingBasis, X: Array) -> tuple[Array, Array]:
    """Return V (n, M) and rest (n,) of inputs X (n, d)."""
    theta = base.theta[:-1]
    K = rectangle(len(X), len(base.Z))
    covariance.fill(theta, X, K, base.Z)
    V = symmetric.half_solve(base.factor, K)
    return V, covariance.diagonal(theta, X) - np.einsum("ij,ij->i", V, V)


def terms(problem: SparseGPProblem, base: InducingBasis, rows: slice | Indices) -> RowTerms:
    """Return the terms of some data points."""
    X = problem.X[rows]
    V, rest = features(problem.covariance, base, X)
    counts = problem.replicates.counts[rows]
    noise = np.exp(base.theta[-1]) / counts
    return RowTerms(X, problem.y[rows], V, rest, noise + rest if problem.fitc else noise, counts)


def sweep(problem: SparseGPProblem, base: InducingBasis) -> Iterator[RowTerms]:
    """Yield the terms of all data points, block by block."""
    for rows in blocks(len(problem.y), len(base.Z), BLOCK):
        yield terms(problem, base, rows)


def best_weights(
    problem: SparseGPProblem, base: InducingBasis, parts: Iterable[RowTerms]
) -> tuple[InducingPosterior, Array]:
    """Return the best q(w), and the lower triangle R (M, M). Raises FloatingPointError as ``of_precision`` does."""
    return of_precision(problem, base, *precision(parts, len(base.Z)))


def precision(parts: Iterable[RowTerms], size: int, scale: float = 1.0) -> tuple[Array, Array]:
    """Return B = S^-1 (M, M) and S^-1 m (M,) of the best q(w), with each data point counted ``scale`` times."""
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
    """Return q(w) from S^-1 (M, M) and S^-1 m (M,), and the factor of S^-1. ``inverse`` is overwritten.

    Raises FloatingPointError, with the hyperparameters, if it is not positive definite.
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
    """Return the sum of l_i over the data points of a part (nats), and its derivatives."""
    _, y, V, rest, noise, counts = part
    residual = y - V @ weights.mean
    VS = V @ weights.covariance
    e = (residual**2 + np.einsum("ij,ij->i", VS, V)) / noise
    log_likelihood = -0.5 * float((np.log(2.0 * math.pi * noise) + e).sum())
    by_noise = 0.5 * (e - 1.0) / noise
    by_noise_variance = float((by_noise / counts).sum())
    if fitc:
        by_rest = by_noise
    else:
        log_likelihood -= 0.5 * float((rest / noise).sum())
        by_noise_variance += 0.5 * float((rest / noise**2 / counts).sum())
        by_rest = -0.5 / noise
    combine(V, VS, -2.0 * by_rest, 1.0 / noise, residual / noise, weights.mean)
    return ExpectedLogLikelihood(log_likelihood, VS, by_rest, by_noise_variance)


@jit(relaxed=FUSE)
def combine(V: Any, VS: Any, a: Any, b: Any, c: Any, mean: Any) -> None:
    """Replace V S (n, M) by a V - b V S + c m', with a, b, c (n,), V (n, M) and m (M,)."""
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
    """Return the bound (nats) and its gradient (P + M d,) at fixed q(w), with each data point counted ``scale`` times.

    Raises FloatingPointError, with the hyperparameters, if one of them is not finite.
    """
    theta, Z = base.theta, base.Z
    parameters, (size, d) = theta[:-1], Z.shape
    covariance, by_theta = problem.covariance, np.zeros(len(theta))
    by_Z, product = np.zeros((size, d)), np.zeros((size, size))
    repeated, by_theta[-1] = problem.replicates.log_density(theta[-1])
    value = repeated - weights.divergence
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for part in parts:
            found = expected(part, weights, problem.fitc)
            value += scale * found.log_likelihood
            product += scale * (found.by_features.T @ part.V)
            A = symmetric.half_solve_back(base.factor, found.by_features)
            by_parameters, by_inputs = covariance.contract_both(parameters, part.X, A, Z)
            by_diagonal = covariance.contract_diagonal(parameters, part.X, found.by_rest)
            by_theta[:-1] += scale * (by_parameters + by_diagonal)
            by_theta[-1] += scale * found.by_noise_variance * np.exp(theta[-1])
            by_Z += scale * by_inputs
        by_parameters, by_inputs = covariance.contract_both(parameters, Z, by_covariance(base, product), Z)
        by_theta[:-1] += by_parameters
        by_Z += 2.0 * by_inputs
    gradient = np.append(by_theta, by_Z)
    if not (math.isfinite(value) and np.isfinite(gradient).all()):
        raise FloatingPointError(f"the evidence or its gradient is not finite {problem.words(theta)}")
    return value, gradient


def by_covariance(base: InducingBasis, product: Array) -> Array:
    """Return dF / dK_uu (M, M), jitter included, from the product (dF / dV)' V (M, M)."""
    symmetric.mirror(product)
    half = symmetric.half_solve_back(base.factor, product)  # rows P L^-1
    A = -0.5 * symmetric.half_solve_back(base.factor, np.ascontiguousarray(half.T))
    A.reshape(-1)[:: len(A) + 1] += base.jitter * np.trace(A) / len(A)
    return np.ascontiguousarray(0.5 * (A + A.T))


def evidence_by_bound(problem: SparseGPProblem, point: Array) -> tuple[float, Array]:
    """Return the same as ``sparse_evidence.evidence``, with more operations: 7 N M^2 multiplications and additions."""
    base = basis(problem, *split(problem, point))
    parts = list(sweep(problem, base))
    weights, _ = best_weights(problem, base, parts)
    return bound(problem, base, parts, weights)


def log_evidence(problem: SparseGPProblem, base: InducingBasis, weights: InducingPosterior) -> float:
    """Return the bound of all data points (nats), block by block. Raises FloatingPointError if it is not finite."""
    parts = (expected(part, weights, problem.fitc).log_likelihood for part in sweep(problem, base))
    value = sum(parts) - weights.divergence + problem.replicates.log_density(base.theta[-1])[0]
    if not math.isfinite(value):
        raise FloatingPointError(f"the evidence is not finite {problem.words(base.theta)}")
    return value
