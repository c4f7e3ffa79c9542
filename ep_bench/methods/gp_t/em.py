"""Hyperparameters of factorising variational Bayes by EM: Kuss (2006); Jylanki et al. (2011), section 6.2.

E   q(f) q(V) that maximises the bound at the hyperparameters (``variational.factors``)
M   hyperparameters that maximise the bound plus log prior with q(V) fixed, D_i = E 1 / V_i:

    those of the covariance in   log N(y | 0, K + D^-1)
    sigma and nu in              sum_i E log Inv-chi^2(V_i | nu, sigma^2)

No step lowers the sum of bound and log prior. The steps end if the remaining increase is estimated to be below
``TOLERANCE``, under the assumption that steps shrink at the rate of the last two (Aitken).

Deviation: in the paper q(f) is fixed in the M step too. Its bound contains log |K|, which cannot be computed in double
precision for a smooth covariance. Here q(f) is free in the M step, which raises the bound by at least as much.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from ep_bench.covariances import Covariance, matrix
from ep_bench.covariances.gaussian_process_config import GaussianProcessConfig
from ep_bench.covariances.hyperparameters import Hyperparameters
from ep_bench.covariances.map_search import judged, search, starting_points, warn
from ep_bench.methods.gp_t import fixed_scales
from ep_bench.methods.gp_t.posterior import InferenceResult
from ep_bench.methods.gp_t.variational import factors
from ep_bench.numerics.lbfgs import Function, Optimum
from ep_bench.numerics.symmetric import square
from ep_bench.types import Array, Rows

TOLERANCE = 1e-5  # estimated remaining increase (nats) at convergence
INNER = 5  # iterations of the search in an M step


def learn(
    rows: Rows,
    covariance: Covariance,
    hyper: Hyperparameters,
    config: GaussianProcessConfig,
    rng: np.random.Generator,
    start: Array | None = None,
) -> tuple[Optimum, InferenceResult]:
    """Return the end of the best run, as ``covariances.map_search.learn`` does, and the inference there.

    ``iterations`` are EM steps, at most ``config.steps`` per run. Warns and raises as that function does.
    """
    found, error = [], FloatingPointError("no starting point")
    for point in starting_points(hyper, config, rng, start):
        try:
            found.append(_run(rows, covariance, hyper, point, config.steps))
        except FloatingPointError as failure:
            error = failure
    if not found:
        raise error
    best, at = min(found, key=lambda one: one[0].value)
    best = judged(best, hyper)
    warn(best, hyper, config.steps)
    return best, at


def _run(
    rows: Rows, covariance: Covariance, hyper: Hyperparameters, theta: Array, steps: int
) -> tuple[Optimum, InferenceResult]:
    theta = np.where(hyper.free, np.clip(theta, hyper.low, hyper.high), theta)
    at = _inferred(rows, covariance, hyper, theta, None)
    values = [_value(at, hyper, theta)]
    path: list[tuple[Array, float]] = []
    workspace = square(len(rows.y))
    for _ in range(steps):
        theta = maximised(rows, covariance, hyper, theta, at, workspace)
        at = _inferred(rows, covariance, hyper, theta, at.precisions)
        values.append(_value(at, hyper, theta))
        path.append((theta, values[-1]))
        if _remaining_decrease(values) < TOLERANCE:
            return Optimum(theta, values[-1], len(path), True, path), at
    return Optimum(theta, values[-1], len(path), False, path), at


def maximised(
    rows: Rows, covariance: Covariance, hyper: Hyperparameters, theta: Array, at: InferenceResult, workspace: Array
) -> Array:
    """Return the hyperparameters (P,) after one M step from theta (P,), given the result ``at`` of the E step."""
    D, nu = at.precisions, math.exp(theta[-1])
    # 1 / V ~ Gamma((nu + 1) / 2, (nu + 1) / (2 D))
    mean_log = float(np.mean(np.log(0.5 * (nu + 1.0) / D))) - digamma(0.5 * (nu + 1.0))
    likelihood = np.isin(np.arange(len(theta)), [len(theta) - 2, len(theta) - 1])

    def targets(point: Array) -> tuple[float, Array]:
        value, gradient = fixed_scales.evidence(covariance, point[:-2], rows.X, rows.y, 1.0 / D, workspace)
        return value, np.append(gradient, [0.0, 0.0])

    def scales(point: Array) -> tuple[float, Array]:
        value, gradient = log_scales(point[-2], point[-1], len(D), mean_log, float(D.mean()))
        return value, np.append(np.zeros(len(point) - 2), gradient)

    theta = _best(targets, hyper, theta, hyper.free & ~likelihood)
    return _best(scales, hyper, theta, hyper.free & likelihood)


def log_scales(log_sigma: float, log_nu: float, n: int, mean_log: float, mean_precision: float) -> tuple[float, Array]:
    """Return sum_i E log Inv-chi^2(V_i | nu, sigma^2), up to a constant, and its gradient (2,).

    ``mean_log`` and ``mean_precision`` are means over n data points of E log V and E 1 / V.
    """
    nu, s2 = math.exp(log_nu), math.exp(log_nu + 2.0 * log_sigma)
    value = 0.5 * nu * (math.log(0.5 * s2) - mean_log) - gammaln(0.5 * nu) - 0.5 * s2 * mean_precision
    by_sigma = nu - s2 * mean_precision
    by_nu = 0.5 * nu * (math.log(0.5 * s2) - mean_log + 1.0 - digamma(0.5 * nu)) - 0.5 * s2 * mean_precision
    return n * value, n * np.array([by_sigma, by_nu])


def _best(bound: Function, hyper: Hyperparameters, theta: Array, free: NDArray[np.bool_]) -> Array:
    """Return theta (P,) with the entries ``free`` (P,) set to the maximum of bound plus log prior."""
    if not free.any():
        return theta
    return search(bound, replace(hyper, fixed=np.where(free, np.nan, theta)), [theta], INNER).point


def _inferred(
    rows: Rows, covariance: Covariance, hyper: Hyperparameters, theta: Array, start: Array | None
) -> InferenceResult:
    scale, nu = np.exp(theta[-2:])
    try:
        return factors(matrix(covariance, theta[:-2], rows.X), rows.y, float(nu), float(scale), start)
    except FloatingPointError as error:
        raise FloatingPointError(f"{error}; at {hyper.words(theta)}") from None


def _value(at: InferenceResult, hyper: Hyperparameters, theta: Array) -> float:
    return -(at.log_evidence + hyper.log_prior(theta)[0])


def _remaining_decrease(values: list[float]) -> float:
    """Return the remaining decrease of values if steps go on to shrink at the rate of the last two."""
    if len(values) < 3:
        return math.inf
    before, last = values[-3] - values[-2], values[-2] - values[-1]
    if last < 1e-12 * abs(values[-1]):
        return 0.0
    return last * last / (before - last) if before > last else math.inf
