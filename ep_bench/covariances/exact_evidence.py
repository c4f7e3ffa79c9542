"""The evidence of Gaussian-process regression and its gradient, in one N x N array.

c_i    number of data points that were merged into point i, usually 1 (``covariances.replicates``)
K      covariances of the training points (N, N)
C      K + diag(sigma^2 / c_i) = L L'
alpha  C^-1 y

log p(y) = -y' alpha / 2 - sum_i log L_ii - N / 2 log(2 pi), and its derivative by a parameter theta is
tr((alpha alpha' - C^-1) dC / dtheta) / 2: Rasmussen and Williams (2006), equations (5.8) and (5.9). The array contains
K, L, C^-1 and alpha alpha' - C^-1 in turn. Merged data points add a term to both. Derivatives of K are computed row by
row (``Covariance.contract``). The array may be in single precision where only L and alpha are needed. Each covariance
is then computed in double precision and rounded. sigma^2 must be above ``RESOLVED`` sqrt(N) times the rounding error of
the mean diagonal of K. On 6,000 points of power, predicted means were then within 0.02 predictive standard deviations
of those in double precision, and variances within 2e-4 of themselves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ep_bench.covariances.hyperparameters import Hyperparameters
from ep_bench.covariances.protocol import Covariance, blocks, rectangle
from ep_bench.covariances.replicates import Replicates
from ep_bench.numerics import symmetric
from ep_bench.types import Array

RESOLVED = 1e3  # smallest ratio of the noise variance to sqrt(N) rounding errors in single precision
BLOCK = 2**23  # covariances in double precision in memory at once, of an array in single precision


class GPProblem(NamedTuple):
    """Training data, covariance, hyperparameters (the noise variance last), and the array."""

    X: Array  # (N, d)
    y: Array  # (N,)
    covariance: Covariance
    hyper: Hyperparameters
    workspace: Array  # (N, N)
    replicates: Replicates  # of merged data points


class GPFactorisation(NamedTuple):
    """Factor, weights and evidence at fixed hyperparameters."""

    factor: Array  # (N, N) L in its lower triangle
    weights: Array  # (N,) alpha
    log_evidence: float  # nats


def factorised(problem: GPProblem, theta: Array) -> GPFactorisation:
    """Return L (in the workspace of the problem), alpha and the evidence at logarithms theta (P,).

    Raises FloatingPointError, with the hyperparameters, if C is not positive definite, the evidence is not finite, or
    the noise is too small for single precision.
    """
    _, y, _, hyper, workspace, replicates = problem
    n = len(y)
    with np.errstate(over="ignore"):
        _fill(problem, theta[:-1])
        _refuse_small_noise(problem, theta)
        workspace.reshape(-1)[:: n + 1] += np.exp(theta[-1]) / replicates.counts
    if not symmetric.factorise(workspace):
        raise FloatingPointError(f"the covariance of the targets is not positive definite at {hyper.words(theta)}")
    weights = symmetric.solve(workspace, y)
    with np.errstate(over="ignore", invalid="ignore"):
        log_evidence = -0.5 * (float(y @ weights) + symmetric.log_determinant(workspace) + n * math.log(2.0 * math.pi))
        log_evidence += replicates.log_density(theta[-1])[0]
    if not math.isfinite(log_evidence):
        raise FloatingPointError(f"the evidence is not finite at {hyper.words(theta)}")
    return GPFactorisation(workspace, weights, log_evidence)


def _fill(problem: GPProblem, parameters: Array) -> None:
    """Write K to the workspace, block by block if this is in single precision."""
    X, workspace = problem.X, problem.workspace
    if workspace.dtype == np.float64:
        problem.covariance.fill(parameters, X, workspace)
        return
    for rows in blocks(len(X), len(X), BLOCK):
        before = X[: rows.stop]
        part = rectangle(len(X[rows]), len(before))
        problem.covariance.fill(parameters, X[rows], part, before)
        workspace[rows, : len(before)] = part


def _refuse_small_noise(problem: GPProblem, theta: Array) -> None:
    """Raise FloatingPointError if the array is in single precision, which does not resolve the noise variance."""
    diagonal = problem.workspace.diagonal()
    if diagonal.dtype == np.float64:
        return
    limit = RESOLVED * math.sqrt(len(diagonal)) * float(np.finfo(np.float32).eps / 2 * diagonal.mean())
    if np.exp(theta[-1]) < limit:
        words = (
            f"noise_variance is {np.exp(theta[-1]):.3g}, single precision needs {limit:.3g} for {len(diagonal)} points"
        )
        raise FloatingPointError(f"{words}; set precision: double, or fix a larger noise_variance")


def evidence(problem: GPProblem, theta: Array) -> tuple[float, Array]:
    """Return the log evidence (nats) and its gradient (P,) with respect to the logarithms theta (P,).

    Raises FloatingPointError as ``factorised`` does, and if the gradient is not finite.
    """
    workspace, weights, log_evidence = factorised(problem, theta)
    symmetric.invert(workspace)
    np.negative(workspace, out=workspace)
    symmetric.add_outer(workspace, weights, 1.0)
    by_covariance = problem.covariance.contract(theta[:-1], problem.X, workspace)
    by_noise = math.exp(theta[-1]) * float((workspace.diagonal() / problem.replicates.counts).sum())
    gradient = 0.5 * np.append(by_covariance, by_noise)
    gradient[-1] += problem.replicates.log_density(theta[-1])[1]
    if not np.isfinite(gradient).all():
        raise FloatingPointError(f"the gradient of the evidence is not finite at {problem.hyper.words(theta)}")
    return log_evidence, gradient
