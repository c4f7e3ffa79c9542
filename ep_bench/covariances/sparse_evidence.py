"""The evidence of FITC or the variational bound at the best q(w), and its gradient, for all data points.

The value and the gradient are those of ``sparse_bound`` at the best q. For N much larger than M they need about 4 N M^2
multiplications and additions in the variational form and 6 N M^2 in FITC, instead of 7 N M^2. The operations for
covariances are the same. Symbols are those of module ``sparse_bound``.

At the best q, V' Lambda^-1 V = B - I is known, so that with a = L^-T m

    sum_i v_i' S v_i / Lambda_i = tr(S (B - I)) = M - tr(S),
    (dF / dV)' V = m (V' Lambda^-1 r)' - S (B - I) + 2 V' diag(h) V.

In the variational form 2 diag(h) is Lambda^-1. No further product over data points is then needed than

    dF / dK_fu = Lambda^-1 (r a' + V (I - S) L^-1).

In FITC 2 h_i = (1 - e_i) / Lambda_i, so that 2 V' diag(h) V = B - I - V' diag(e / Lambda) V.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ep_bench.covariances.sparse_bound import (
    InducingBasis,
    InducingPosterior,
    RowTerms,
    SparseGPProblem,
    basis,
    by_covariance,
    combine,
    of_precision,
    precision,
    split,
    sweep,
)
from ep_bench.numerics import symmetric
from ep_bench.numerics.jit import FUSE, jit
from ep_bench.types import Array


class _Part(NamedTuple):
    """Contributions of a subset of the data points."""

    rows: RowTerms
    log_likelihood: float  # nats
    by_rest: Array  # (n,) dF / drest
    by_log_noise: float
    by_cross: Array  # (n, M) dF / dK_fu
    product: Array  # (M, M) the terms of (dF / dV)' V that are not known from B


def evidence(problem: SparseGPProblem, point: Array) -> tuple[float, Array]:
    """Return the log evidence of FITC or the variational bound (nats) at the best q(w), and its gradient (P + M d,).

    Raises FloatingPointError, with the hyperparameters, if a matrix is not positive definite or a number not finite.
    """
    base = basis(problem, *split(problem, point))
    rows = list(sweep(problem, base))
    B, b = precision(rows, len(base.Z))
    known = _without_unit(B)  # B - I
    q, _ = of_precision(problem, base, B, b)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        value, gradient = _summed(problem, base, known, q, _parts(problem, base, q, rows))
    if not (math.isfinite(value) and np.isfinite(gradient).all()):
        raise FloatingPointError(f"the evidence or its gradient is not finite {problem.words(base.theta)}")
    return value, gradient


def _without_unit(B: Array) -> Array:
    """Return B - I for B (M, M)."""
    known = B.copy()
    known.reshape(-1)[:: len(B) + 1] -= 1.0
    return known


def _summed(
    problem: SparseGPProblem, base: InducingBasis, known: Array, q: InducingPosterior, parts: Iterator[_Part]
) -> tuple[float, Array]:
    theta, Z, covariance = base.theta, base.Z, problem.covariance
    by_theta, by_Z = np.zeros(len(theta)), np.zeros(Z.shape)
    repeated, by_theta[-1] = problem.replicates.log_density(theta[-1])
    value = repeated - q.divergence
    product = known - q.covariance @ known
    for part in parts:
        value += part.log_likelihood
        product += part.product
        by_parameters, by_inputs = covariance.contract_both(theta[:-1], part.rows.X, part.by_cross, Z)
        by_theta[:-1] += by_parameters + covariance.contract_diagonal(theta[:-1], part.rows.X, part.by_rest)
        by_theta[-1] += part.by_log_noise
        by_Z += by_inputs
    by_parameters, by_inputs = covariance.contract_both(theta[:-1], Z, by_covariance(base, product), Z)
    by_theta[:-1] += by_parameters
    return value, np.append(by_theta, by_Z + 2.0 * by_inputs)


def _parts(
    problem: SparseGPProblem, base: InducingBasis, q: InducingPosterior, rows: list[RowTerms]
) -> Iterator[_Part]:
    if problem.fitc:
        noise_variance = float(np.exp(base.theta[-1]))
        yield from (_fitc(base, q, noise_variance, one) for one in rows)
        return
    size = len(base.Z)
    moved = np.empty((size + 1, size))  # (I - S) L^-1 above a'
    moved[:-1] = -q.covariance
    moved[:-1].reshape(-1)[:: size + 1] += 1.0
    moved[-1] = q.mean
    moved = symmetric.half_solve_back(base.factor, moved)
    spread = size - float(np.trace(q.covariance))  # sum_i v_i' S v_i / Lambda_i of all parts
    for at, one in enumerate(rows):
        yield _variational(q, moved, spread if at == 0 else 0.0, one)


def _variational(q: InducingPosterior, moved: Array, spread: float, rows: RowTerms) -> _Part:
    _, y, V, rest, noise, _ = rows
    residual = y - V @ q.mean
    misfit = float((residual**2 / noise).sum()) + spread
    titsias = float((rest / noise).sum())
    log_likelihood = -0.5 * (float(np.log(2.0 * math.pi * noise).sum()) + misfit + titsias)
    by_cross = V @ moved[:-1]
    _add_and_scale(by_cross, residual, moved[-1], 1.0 / noise)
    product = np.outer(q.mean, V.T @ (residual / noise))
    return _Part(rows, log_likelihood, -0.5 / noise, 0.5 * (misfit + titsias - len(y)), by_cross, product)


def _fitc(base: InducingBasis, q: InducingPosterior, noise_variance: float, rows: RowTerms) -> _Part:
    _, y, V, _, noise, counts = rows
    residual = y - V @ q.mean
    VS = V @ q.covariance
    e = (residual**2 + np.einsum("ij,ij->i", VS, V)) / noise
    log_likelihood = -0.5 * float((np.log(2.0 * math.pi * noise) + e).sum())
    by_rest = 0.5 * (e - 1.0) / noise
    combine(V, VS, -2.0 * by_rest, 1.0 / noise, residual / noise, q.mean)
    scaled = V * np.sqrt(e / noise)[:, None]
    product = np.outer(q.mean, V.T @ (residual / noise)) - scaled.T @ scaled
    by_cross = symmetric.half_solve_back(base.factor, VS)
    return _Part(rows, log_likelihood, by_rest, float(by_rest @ (noise_variance / counts)), by_cross, product)


@jit(relaxed=FUSE)
def _add_and_scale(A: Any, r: Any, a: Any, scale: Any) -> None:
    """Replace A (n, M) by diag(scale) (A + r a'), with r, scale (n,) and a (M,)."""
    for i in range(A.shape[0]):
        row = A[i]
        for j in range(row.size):
            row[j] = scale[i] * (row[j] + r[i] * a[j])
