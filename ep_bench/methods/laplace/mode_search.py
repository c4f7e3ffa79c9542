"""Search for the most probable weights, the minimum of M(w) = beta / 2 sum (y - f)^2 + 1 / 2 sum alpha_i w_i^2.

Without hidden layers M is quadratic, and the minimum solves the normal equations. With hidden layers the search is
L-BFGS on all data points. The steps of Levenberg and Marquardt make little progress at the kinks of rectified units
(boston, 751 weights, alpha 1, noise variance 0.05: M is 536 after 100 of them and 10 seconds, 124 after 3,000 steps of
L-BFGS and 4 seconds).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_solve

from ep_bench.methods.laplace.curvature import cholesky
from ep_bench.methods.laplace.network import HalfSquaresGradient, SmoothHalfSquaresGradient, normal_equations
from ep_bench.models.residuals import RELU
from ep_bench.types import Array

FTOL = 1e-10  # L-BFGS ends if a step lowers M / N by at most this fraction of max(M / N, 1 nat)
GTOL = 1e-6  # or if no derivative of M / N exceeds this value
MEMORY = 20  # steps that L-BFGS stores
STATUS_LIMIT = 1  # SciPy's status at the limit of steps or evaluations


class ModeProblem(NamedTuple):
    """Standardised data and the network."""

    X: Array  # (N, d)
    y: Array  # (N,)
    layers: Any  # (L, 3)
    kind: int = RELU  # activation, as in ``models.residuals``


class PosteriorMode(NamedTuple):
    """Result of a search."""

    weights: Array  # (P,)
    converged: bool
    exhausted: bool  # the search ended at its limit of steps; if neither, it ended at a kink without a descent step


def most_probable(problem: ModeProblem, w: Array, alpha: Array, beta: float, steps: int) -> PosteriorMode:
    """Return the weights that minimise M, by at most ``steps`` steps from w (P,); alpha (P,) are prior precisions.

    Raises FloatingPointError if M is not finite.
    """
    from scipy.optimize import minimize

    if len(problem.layers) == 1:
        return _normal_solution(problem, alpha, beta)
    X, y, layers, kind = problem
    slope = HalfSquaresGradient(X, y, layers) if kind == RELU else SmoothHalfSquaresGradient(X, y, layers, kind)
    rows = len(y)

    def objective(at: Array) -> tuple[float, Array]:
        half, gradient = slope(at)
        return (beta * half + 0.5 * float(alpha @ at**2)) / rows, (beta * gradient + alpha * at) / rows

    options = {"maxiter": steps, "maxfun": 2 * steps, "maxcor": MEMORY, "ftol": FTOL, "gtol": GTOL}
    found = minimize(objective, w, jac=True, method="L-BFGS-B", options=options)
    if not (np.isfinite(found.fun) and np.isfinite(found.x).all()):
        raise FloatingPointError("the search for the most probable weights: the log joint density is not finite")
    return PosteriorMode(np.asarray(found.x), bool(found.success), found.status == STATUS_LIMIT)


def _normal_solution(problem: ModeProblem, alpha: Array, beta: float) -> PosteriorMode:
    """Return the minimum of M for the linear model, by the normal equations."""
    product, by_fit = normal_equations(problem.X, problem.y, np.zeros(len(alpha)), problem.layers)
    if not np.isfinite(by_fit).all():
        raise FloatingPointError("the search for the most probable weights: a gradient is not finite")
    root = cholesky(beta * product, alpha)
    return PosteriorMode(np.asarray(cho_solve((root, False), -beta * by_fit)), converged=True, exhausted=False)
