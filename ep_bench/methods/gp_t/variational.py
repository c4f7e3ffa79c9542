"""Variational bounds and factorising variational Bayes, Jylanki et al. (2011), sections 3.4 and 3.3.

The t is a mixture of normals of variances V_i ~ Inv-chi^2(nu, sigma^2), and log t is convex in the squared residual:

r = y - f,  s2 = nu sigma^2,  D   precisions (N,), gamma = 1 / D in the paper, b = y D
R     (K + D^-1)^-1, w = R y;  q(f) = N(K w, S),  S = (K^-1 + D)^-1 = D^-1 - D^-1 R D^-1
e     E r^2 = (w / D)^2 + diag S, which loses no digits where D is large

    log t(y | f) >= phi(D) - D r^2 / 2,   phi(D) = c + (nu + 1) / 2 (1 + log(D s2 / (nu + 1))) - D s2 / 2
    vb    log Z >= B(D) = sum_i phi(D_i) - log |I + K D| / 2 - y' (K + D^-1)^-1 y / 2
          2 dB / dlog D = nu + 1 - D (s2 + e)
    fvb   q(f) q(V), 1 / V_i ~ Gamma((nu + 1) / 2, (s2 + e_i) / 2) with mean D_i: its fixed point is
          D = (nu + 1) / (s2 + e), the stationary point of B, where both bounds are equal

``vb`` climbs B in log D by Newton's steps where they raise it, else by D <- (nu + 1) / (s2 + e), which never lowers it.
``fvb`` takes such steps on the bound of q(f) q(V), extrapolated from the last few (Anderson 1965) where that raises it.

Hyperparameters: ``vb`` by the gradient of B at its optimum. ``fvb`` by EM: the E step finds q at given hyperparameters,
the M step those of the highest bound and prior density with q(V) fixed. Deviation: the paper fixes q(f) too. That
bound has log |K| in it, which no double holds for a smooth covariance; here q(f) follows the covariance within the M
step, whose bound is then log N(y | 0, K + D^-1) and what only sigma and nu are in. It is an M step of larger gain.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, psi

from ep_bench.methods.gp_t.posterior import InferenceResult, by_likelihood
from ep_bench.methods.gp_t.tilted import log_constant
from ep_bench.numerics import symmetric
from ep_bench.numerics.symmetric import square
from ep_bench.types import Array

STEPS = 2000
CLOSE = 1e-9  # largest |1 - D (s2 + e) / (nu + 1)| of an optimum
NEAR = 0.3  # the same, above which Newton's steps are not tried
MEMORY = 6  # steps that are extrapolated from
ROUNDING = 1e-13  # of a bound


class BoundedPosterior(NamedTuple):
    """q(f) of precisions D, and what both bounds are made of."""

    D: Array
    resolvent: Array  # (N, N) R, in the lower triangle
    weights: Array  # (N,) w
    square: Array  # (N,) e
    log_determinant: float  # of I + K D


def bounds(K: Array, y: Array, nu: float, scale: float) -> InferenceResult:
    """Return the highest B by direct search, for covariances K (N, N), in full.

    Raises FloatingPointError, with the mismatch reached, where no stationary point is found.
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
        raised = -np.inf if after is None else _direct(after, y, nu, s2)
        if after is None or not raised >= bound - ROUNDING * abs(bound):
            after = _at(K, y, fixed)
            raised = _direct(after, y, nu, s2)
        now, bound = after, raised
    raise _lost_bound("variational bounds", gap)


def factors(K: Array, y: Array, nu: float, scale: float, start: Array | None = None) -> InferenceResult:
    """Return the same optimum by steps of q(f) and q(V), from precisions ``start`` (N,) where they are given.

    Raises FloatingPointError, with the mismatch reached, where no fixed point is found.
    """
    s2 = nu * scale**2
    now = _at(K, y, _prior_precisions(K, y, nu, s2) if start is None else start)
    bound, gap = _factorised(now, y, nu, s2), np.inf
    history: list[tuple[Array, Array]] = []  # log D, and by how much a step changes it
    for step in range(STEPS):
        fixed = _step(now, nu, s2)
        gap = float(np.abs(1.0 - now.D / fixed).max())
        if gap < CLOSE:
            return _ended(now, bound, nu, s2, step, "factorising bounds")
        history = [*history, (np.log(now.D), np.log(fixed / now.D))][-MEMORY:]
        after = _attempt(K, y, np.exp(extrapolated(history)))
        raised = -np.inf if after is None else _factorised(after, y, nu, s2)
        if after is None or (not raised >= bound - ROUNDING * abs(bound) and len(history) > 1):
            history = history[-1:]
            after = _at(K, y, fixed)
            raised = _factorised(after, y, nu, s2)
        now, bound = after, raised
    raise _lost_bound("factorising variational Bayes", gap)


def extrapolated(history: list[tuple[Array, Array]]) -> Array:
    """Return the next point (M,), where the last few points and their changes tell that there is no change.

    With no more than one of them that is the point that it goes to: Anderson (1965).
    """
    at, change = history[-1]
    if len(history) == 1:
        return np.asarray(at + change)
    places, changes = (np.diff(np.array(part), axis=0).T for part in zip(*history, strict=True))
    share = np.linalg.lstsq(changes, change, rcond=None)[0]
    return np.asarray(at + change - (places + changes) @ share)


def _lost_bound(name: str, gap: float) -> FloatingPointError:
    return FloatingPointError(f"{name}: no fixed point; mismatch {gap:.2g} after {STEPS} steps")


def _prior_precisions(K: Array, y: Array, nu: float, s2: float) -> Array:
    """Return the precisions that belong to f of the prior."""
    return np.asarray((nu + 1.0) / (s2 + y**2 + K.diagonal()))


def _step(now: BoundedPosterior, nu: float, s2: float) -> Array:
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
    """Return what precisions that no bound has vouched for lead to, None where that is nothing."""
    try:
        return _at(K, y, D)
    except FloatingPointError:
        return None


def _direct(now: BoundedPosterior, y: Array, nu: float, s2: float) -> float:
    constant = log_constant(nu, s2 / nu)
    above = now.D * s2 / (nu + 1.0) - 1.0
    phi = constant + 0.5 * (nu + 1.0) * (np.log1p(above) - above)
    return float(phi.sum()) - 0.5 * (now.log_determinant + float(y @ now.weights))


def _newton(K: Array, y: Array, now: BoundedPosterior, nu: float, s2: float) -> BoundedPosterior | None:
    """Return where Newton's step in log D leads, or None where B is not concave."""
    D, w = now.D, now.weights
    M = np.diag(D) - now.resolvent  # D S D
    curvature = np.diag(D * (s2 + now.square)) - (M + 2.0 * np.outer(w, w)) * M / np.outer(D, D)
    if not symmetric.factorise(curvature):
        return None
    return _attempt(K, y, D * np.exp(symmetric.solve(curvature, nu + 1.0 - D * (s2 + now.square))))


def _factorised(now: BoundedPosterior, y: Array, nu: float, s2: float) -> float:
    """Return E log p(y, f, V) - E log q(f) q(V), with the q(V) that belongs to q(f)."""
    shape, log_rate = 0.5 * (nu + 1.0), np.log(0.5 * (s2 + now.square))
    log_V, D = log_rate - psi(shape), _step(now, nu, s2)
    targets = -0.5 * (math.log(2.0 * math.pi) + log_V + D * now.square)
    scales = 0.5 * nu * math.log(0.5 * s2) - gammaln(0.5 * nu) - (0.5 * nu + 1.0) * log_V - 0.5 * s2 * D
    entropy = shape + log_rate + gammaln(shape) - (1.0 + shape) * psi(shape)
    traces = float((1.0 - now.resolvent.diagonal() / now.D).sum())  # of D S
    divergence = 0.5 * (now.log_determinant - traces + float(now.weights @ (y - now.weights / now.D)))
    return float((targets + scales + entropy).sum()) - divergence


def _ended(now: BoundedPosterior, bound: float, nu: float, s2: float, steps: int, stage: str) -> InferenceResult:
    """Return bound and gradient at an optimum, where the precisions' own derivatives vanish."""
    R = now.resolvent
    symmetric.mirror(R)
    likelihood = by_likelihood(np.log1p(now.square / s2), now.square / (s2 + now.square), nu)
    A = np.outer(now.weights, now.weights) - R
    return InferenceResult(bound, now.weights, now.D, A, likelihood, steps, stage)
