"""The model at fixed noise variances: Gaussian noise with a known variance per data point, f integrated out.

C      K + diag(V) = L L', in the lower triangle of one array

log p(y | V) = -y' C^-1 y / 2 - log |C| / 2 - N / 2 log(2 pi). Its derivative by a parameter theta of the covariance is
tr((w w' - C^-1) dC / dtheta) / 2 with w = C^-1 y: Rasmussen and Williams (2006), equations (5.8), (5.9).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ep_bench.covariances import Covariance
from ep_bench.numerics import symmetric
from ep_bench.types import Array


class FixedScaleFactorisation(NamedTuple):
    """L in the lower triangle (N, N), w (N,), and log p(y | V) in nats."""

    factor: Array
    weights: Array
    log_evidence: float


def factorised(
    covariance: Covariance, theta: Array, X: Array, y: Array, V: Array, workspace: Array
) -> FixedScaleFactorisation:
    """Return the factor, in ``workspace`` (N, N), at logarithms theta of the parameters of the covariance.

    X is (N, d), y and V are (N,). Raises FloatingPointError if C is not positive definite or the evidence not finite.
    """
    n = len(y)
    with np.errstate(over="ignore"):
        covariance.fill(theta, X, workspace)
        workspace.reshape(-1)[:: n + 1] += V
    if not symmetric.factorise(workspace):
        raise FloatingPointError("the covariance of the targets is not positive definite")
    weights = symmetric.solve(workspace, y)
    with np.errstate(over="ignore", invalid="ignore"):
        value = -0.5 * (float(y @ weights) + symmetric.log_determinant(workspace) + n * math.log(2.0 * math.pi))
    if not math.isfinite(value):
        raise FloatingPointError("the evidence of the targets is not finite")
    return FixedScaleFactorisation(workspace, weights, value)


def evidence(
    covariance: Covariance, theta: Array, X: Array, y: Array, V: Array, workspace: Array
) -> tuple[float, Array]:
    """Return log p(y | V) (nats) and its gradient by theta. Raises FloatingPointError as ``factorised`` does."""
    _, weights, value = factorised(covariance, theta, X, y, V, workspace)
    symmetric.invert(workspace)
    np.negative(workspace, out=workspace)
    symmetric.add_outer(workspace, weights, 1.0)
    return value, 0.5 * covariance.contract(theta, X, workspace)
