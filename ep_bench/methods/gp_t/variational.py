"""Variational bounds and factorising variational Bayes, Jylanki et al. (2011), sections 3.4 and 3.3.

The t is a mixture of normals with variances V_i ~ Inv-chi^2(nu, sigma^2), and log t is convex in the squared residual:

r = y - f,  s2 = nu sigma^2,  D   precisions (N,), gamma = 1 / D in the paper, b = y D
R     (K + D^-1)^-1, w = R y;  q(f) = N(K w, S),  S = (K^-1 + D)^-1 = D^-1 - D^-1 R D^-1
e     E r^2 = (w / D)^2 + diag S, which loses no digits if D is large

    log t(y | f) >= phi(D) - D r^2 / 2,   phi(D) = c + (nu + 1) / 2 (1 + log(D s2 / (nu + 1))) - D s2 / 2
    vb    log Z >= B(D) = sum_i phi(D_i) - log |I + K D| / 2 - y' (K + D^-1)^-1 y / 2
          2 dB / dlog D = nu + 1 - D (s2 + e)
    fvb   q(f) q(V), 1 / V_i ~ Gamma((nu + 1) / 2, (s2 + e_i) / 2) with mean D_i: its fixed point is
          D = (nu + 1) / (s2 + e), the stationary point of B, where both bounds are equal

``vb`` maximises B in log D by Newton steps if they increase it, otherwise by D <- (nu + 1) / (s2 + e), which never
decreases it. ``fvb`` takes steps of the second kind on the bound of q(f) q(V), extrapolated from the last few (Anderson
1965) if that increases the bound.

Hyperparameters of ``vb`` are learned with the gradient of B at its optimum, those of ``fvb`` by EM (``em``).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from ep_bench.methods.gp_t.posterior import InferenceResult, by_likelihood
from ep_bench.methods.gp_t.tilted import log_constant
from ep_bench.numerics import symmetric
from ep_bench.numerics.symmetric import square
from ep_bench.types import Array

STEPS = 2000
CLOSE = 1e-9  # largest |1 - D (s2 + e) / (nu + 1)| at an optimum
NEAR = 0.3  # the same, above which Newton steps are not tried
MEMORY = 6  # steps used for the extrapolation
ROUNDING = 1e-13  # relative, of a bound


class BoundedPosterior(NamedTuple):
    """q(f) for precisions D, and the terms of both bounds."""

    D: Array  # (N,)
    resolvent: Array  # (N, N) R, in the lower triangle
    weights: Array  # (N,) w
    square: Array  # (N,) e
    log_determinant: float  # of I + K D


def bounds(K: Array, y: Array, nu: float, scale: float) -> InferenceResult:
    """Return the maximum of B by direct search, for full covariances K (N, N) and targets y (N,).

    Raises FloatingPointError, with the mismatch, if no stationary point is found.
    """
    s2 = nu * scale**2
    now = _at(K, y, _prior_precisions(K, y, nu, s2))
    bound, gap = _direct(now, y, nu, s2), np.inf
    for step in range(STEPS):
        fixed = _step(now, nu, s2)
        gap = float(np.abs(1.0 - now.D / fixed).max())
        if gap < CLOSE:
            return _ended(now, bound, nu, s2, step, "variational bounds")
        after = _newton(K, y, now, nu, s2) if gap < NEAR else None
        new_bound = -np.inf if after is None else _direct(after, y, nu, s2)
        if after is None or not new_bound >= bound - ROUNDING * abs(bound):
            after = _at(K, y, fixed)
            new_bound = _direct(after, y, nu, s2)
        now, bound = after, new_bound
    raise _not_converged("variational bounds", gap)


def factors(K: Array, y: Array, nu: float, scale: float, start: Array | None = None) -> InferenceResult:
    """Return the same optimum by steps of q(f) and q(V), from precisions ``start`` (N,).

    By default ``start`` corresponds to f of the prior. Raises FloatingPointError, with the mismatch, if no fixed point
    is found.
    """
    s2 = nu * scale**2
    now = _at(K, y, _prior_precisions(K, y, nu, s2) if start is None else start)
    bound, gap = _factorised(now, y, nu, s2), np.inf
    history: list[tuple[Array, Array]] = []  # log D and its change by a step
    for step in range(STEPS):
        fixed = _step(now, nu, s2)
        gap = float(np.abs(1.0 - now.D / fixed).max())
        if gap < CLOSE:
            return _ended(now, bound, nu, s2, step, "factorising bounds")
        history = [*history, (np.log(now.D), np.log(fixed / now.D))][-MEMORY:]
        after = _attempt(K, y, np.exp(extrapolated(history)))
        new_bound = -np.inf if after is None else _factorised(after, y, nu, s2)
        if after is None or (not new_bound >= bound - ROUNDING * abs(bound) and len(history) > 1):
            history = history[-1:]
            after = _at(K, y, fixed)
            new_bound = _factorised(after, y, nu, s2)
        now, bound = after, new_bound
    raise _not_converged("factorising variational Bayes", gap)


def extrapolated(history: list[tuple[Array, Array]]) -> Array:
    """Return the next point (M,) by Anderson's (1965) extrapolation from the last few points and their changes.

    With a single point in the history this is the point plus its change.
    """
    at, change = history[-1]
    if len(history) == 1:
        return np.asarray(at + change)
    points, changes = (np.diff(np.array(part), axis=0).T for part in zip(*history, strict=True))
    coefficients = np.linalg.lstsq(changes, change, rcond=None)[0]
    return np.asarray(at + change - (points + changes) @ coefficients)


def _not_converged(name: str, gap: float) -> FloatingPointError:
    return FloatingPointError(f"{name}: no fixed point found; mismatch {gap:.2g} after {STEPS} steps")


def _prior_precisions(K: Array, y: Array, nu: float, s2: float) -> Array:
    """Return the precisions D (N,) that correspond to f of the prior."""
    return np.asarray((nu + 1.0) / (s2 + y**2 + K.diagonal()))


def _step(now: BoundedPosterior, nu: float, s2: float) -> Array:
    """Return the precisions D (N,) after a step of q(V)."""
    return np.asarray((nu + 1.0) / (s2 + now.square))


def _at(K: Array, y: Array, D: Array) -> BoundedPosterior:
    C = square(len(y))
    C[...] = K
    C.reshape(-1)[:: len(y) + 1] += 1.0 / D
    if not symmetric.factorise(C):
        raise FloatingPointError("the covariance of the targets is not positive definite")
    log_determinant = symmetric.log_determinant(C) + float(np.log(D).sum())
    w = symmetric.solve(C, y)
    symmetric.invert(C)
    return BoundedPosterior(D, C, w, (1.0 - C.diagonal() / D + w**2 / D) / D, log_determinant)


def _attempt(K: Array, y: Array, D: Array) -> BoundedPosterior | None:
    """Return the posterior for precisions D (N,), or None if it is not positive definite."""
    try:
        return _at(K, y, D)
    except FloatingPointError:
        return None


def _direct(now: BoundedPosterior, y: Array, nu: float, s2: float) -> float:
    """Return B(D) (nats)."""
    constant = log_constant(nu, s2 / nu)
    above = now.D * s2 / (nu + 1.0) - 1.0
    phi = constant + 0.5 * (nu + 1.0) * (np.log1p(above) - above)
    return float(phi.sum()) - 0.5 * (now.log_determinant + float(y @ now.weights))


def _newton(K: Array, y: Array, now: BoundedPosterior, nu: float, s2: float) -> BoundedPosterior | None:
    """Return the posterior after a Newton step in log D, or None if B is not concave."""
    D, w = now.D, now.weights
    M = np.diag(D) - now.resolvent  # D S D
    curvature = np.diag(D * (s2 + now.square)) - (M + 2.0 * np.outer(w, w)) * M / np.outer(D, D)
    if not symmetric.factorise(curvature):
        return None
    return _attempt(K, y, D * np.exp(symmetric.solve(curvature, nu + 1.0 - D * (s2 + now.square))))


def _factorised(now: BoundedPosterior, y: Array, nu: float, s2: float) -> float:
    """Return E log p(y, f, V) - E log q(f) q(V) (nats), with q(V) optimal given q(f)."""
    shape, log_rate = 0.5 * (nu + 1.0), np.log(0.5 * (s2 + now.square))
    log_V, D = log_rate - digamma(shape), _step(now, nu, s2)
    targets = -0.5 * (math.log(2.0 * math.pi) + log_V + D * now.square)
    scales = 0.5 * nu * math.log(0.5 * s2) - gammaln(0.5 * nu) - (0.5 * nu + 1.0) * log_V - 0.5 * s2 * D
    entropy = shape + log_rate + gammaln(shape) - (1.0 + shape) * digamma(shape)
    traces = float((1.0 - now.resolvent.diagonal() / now.D).sum())  # of D S
    divergence = 0.5 * (now.log_determinant - traces + float(now.weights @ (y - now.weights / now.D)))
    return float((targets + scales + entropy).sum()) - divergence


def _ended(now: BoundedPosterior, bound: float, nu: float, s2: float, steps: int, stage: str) -> InferenceResult:
    """Return bound and gradient at an optimum; the derivatives by the precisions are 0 there."""
    R = now.resolvent
    symmetric.mirror(R)
    likelihood = by_likelihood(np.log1p(now.square / s2), now.square / (s2 + now.square), nu)
    A = np.outer(now.weights, now.weights) - R
    return InferenceResult(bound, now.weights, now.D, A, likelihood, steps, stage)
