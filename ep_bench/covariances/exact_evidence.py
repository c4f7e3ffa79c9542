"""The evidence of Gaussian-process regression and its gradient, in one N x N array.

c_i    number of data points that were merged into point i, usually 1 (``covariances.replicates``)
K      covariances of the training points (N, N)
C      K + diag(sigma^2 / c_i) = L L'
alpha  C^-1 y

log p(y) = -y' alpha / 2 - sum_i log L_ii - N / 2 log(2 pi), and its derivative by a parameter theta is
tr((alpha alpha' - C^-1) dC / dtheta) / 2: Rasmussen and Williams (2006), equations (5.8) and (5.9). The array contains
K, L, C^-1 and alpha alpha' - C^-1 in turn. Merged data points add a term to both. Derivatives of K are computed row by
row (``Covariance.contract``).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ep_bench.covariances.hyperparameters import Hyperparameters
from ep_bench.covariances.protocol import Covariance
from ep_bench.covariances.replicates import Replicates
from ep_bench.numerics import symmetric
from ep_bench.types import Array


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

    Raises FloatingPointError, with the hyperparameters, if C is not positive definite or the evidence is not finite.
    """
    X, y, covariance, hyper, workspace, replicates = problem
    n = len(y)
    with np.errstate(over="ignore"):
        covariance.fill(theta[:-1], X, workspace)
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
