"""Laplace's method, Jylanki et al. (2011), section 3.2, at a verified mode.

r = y - f,  q = nu sigma^2 + r^2,  g = (nu + 1) r / q,  W = (nu + 1) (nu sigma^2 - r^2) / q^2 of any sign;
at the mode f = K g, and log Z = log p(y | f) - f' K^-1 f / 2 - log |I + K W| / 2.

The direction of a step from f is (K^-1 + S)^-1 (g - K^-1 f). With S = D = (nu + 1) / q it is a reweighted least-squares
(EM) step, which never lowers the density. With S = W, if that is proper, it is a Newton step. Both are ascent
directions, and a line search along them needs no further solve. The first steps are reweighted and determine the mode.
At a mode W is proper and Newton's step is 0. Symmetric targets may lead to a stationary point that is not a mode; f is
then perturbed and the ascent continues.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ep_bench.methods.gp_t.posterior import InferenceResult, by_likelihood, marginals
from ep_bench.methods.gp_t.tilted import log_constant
from ep_bench.types import Array

STEPS = 500
REWEIGHTED = 10  # steps before the first Newton step
CLOSE = 1e-9  # largest Newton step of f at a mode, relative to the largest target
EARLY = 1e-2  # |f - K g|, relative to the largest target, below which Newton steps are tried at once
LENGTHS = 2.0 ** np.arange(-20.0, 7.0)  # of a step, in the line search
WHOLE = 20  # index of the length 1
PERTURBATION = 1e-3  # of f at a saddle point, relative to the largest target
ROUNDING = 1e-15  # relative, per term of a density

Start = tuple[Array, Array]


class ModePoint(NamedTuple):
    """f = K weights and its r and q, (N,) each."""

    weights: Array
    f: Array
    r: Array
    q: Array


def infer(K: Array, y: Array, nu: float, scale: float, start: Start | None = None) -> InferenceResult:
    """Return evidence and gradient at the mode for full covariances K (N, N) and targets y (N,).

    The ascent starts at the mean under the precisions and precision-times-means ``start`` (N,), by default at f = 0.
    Raises FloatingPointError, with the mismatch, if no mode is found.
    """
    if not np.all(K.diagonal() > 0.0):
        raise FloatingPointError("the prior has a variance that is not above 0")
    s2 = nu * scale**2
    first = _first(K, y, s2, start)
    (weights, f, r, q), steps = _mode(K, y, nu, s2, first, REWEIGHTED if start is None else 0)
    g, W = (nu + 1.0) * r / q, _curvature(r, q, nu, s2)
    posterior = marginals(K, W, W * f + g)
    if posterior is None:
        raise FloatingPointError("Laplace's method: the stationary point found is not a mode")
    logarithm, ratio = np.log1p(r**2 / s2), r**2 / q
    constant = log_constant(nu, scale**2)
    log_joint = len(y) * constant - 0.5 * (nu + 1.0) * logarithm.sum() - 0.5 * weights @ f
    log_evidence = float(log_joint - 0.5 * posterior.log_determinant)
    R = posterior.resolvent()
    A, likelihood = _gradient(K, weights, (r, q, W), posterior.variance, R, nu, s2)
    likelihood += by_likelihood(logarithm, ratio, nu)
    return InferenceResult(log_evidence, weights, W, A - R, likelihood, steps, "laplace", W * f + g)


def _curvature(r: Array, q: Array, nu: float, s2: float) -> Array:
    return np.asarray((nu + 1.0) * (s2 - r**2) / q**2)


def _at(K: Array, y: Array, weights: Array, s2: float) -> ModePoint:
    f = K @ weights
    r = y - f
    return ModePoint(weights, f, r, s2 + r**2)


def _first(K: Array, y: Array, s2: float, start: Start | None) -> ModePoint:
    found = marginals(K, *start) if start is not None else None
    return _at(K, y, np.zeros(len(y)) if found is None else found.weights, s2)


def _mode(K: Array, y: Array, nu: float, s2: float, at: ModePoint, reweighted: int) -> tuple[ModePoint, int]:
    """Return the mode and the number of steps; the first ``reweighted`` are reweighted unless the mode is close."""
    gap, size = np.inf, max(float(np.abs(y).max()), 1e-300)
    for step in range(STEPS):
        rest = (nu + 1.0) * at.r / at.q - at.weights
        gap = float(np.abs(K @ rest).max() / size)
        after = None
        if gap < EARLY or step >= reweighted:
            ahead = _newton_step(K, _curvature(at.r, at.q, nu, s2), rest)
            if ahead is not None and np.abs(ahead[1]).max() <= CLOSE * size:
                return _at(K, y, at.weights + ahead[0], s2), step
            after = None if ahead is None else _line_search(at, ahead, nu, s2)
            if ahead is None and gap <= CLOSE:
                after = _perturbed(K, at.weights, size)
        if after is None:
            ahead = _newton_step(K, (nu + 1.0) / at.q, rest)
            after = None if ahead is None else _line_search(at, ahead, nu, s2)
        if after is None:
            break
        at = _at(K, y, after, s2)
    raise FloatingPointError(f"Laplace's method found no mode: mismatch {gap:.2g} after {step} steps")


def _newton_step(K: Array, precisions: Array, rest: Array) -> tuple[Array, Array] | None:
    """Return the step (K^-1 + S)^-1 (g - K^-1 f) of weights and f (N,), or None if it is improper.

    S are the precisions (N,), ``rest`` is g - K^-1 f.
    """
    found = marginals(K, precisions, rest)
    return None if found is None else (found.weights, K @ found.weights)


def _perturbed(K: Array, weights: Array, size: float) -> Array:
    """Return weights (N,) with f changed by PERTURBATION, in a direction without symmetry."""
    direction = np.random.default_rng(0).standard_normal(len(weights))
    return np.asarray(weights + PERTURBATION * size / max(float(np.abs(K @ direction).max()), 1e-300) * direction)


def _line_search(at: ModePoint, ahead: tuple[Array, Array], nu: float, s2: float) -> Array | None:
    """Return the weights (N,) with the highest density along a step, or None if it does not increase.

    If rounding errors hide the increase, the full step is returned.
    """
    by_weights, by_f = ahead
    r = at.r[:, None] - LENGTHS * by_f[:, None]
    quadratic = LENGTHS * (2.0 * by_weights @ at.f + LENGTHS * (by_weights @ by_f))  # change of f' K^-1 f
    density = -0.5 * (nu + 1.0) * np.log((s2 + r**2) / at.q[:, None]).sum(axis=0) - 0.5 * quadratic
    best, hidden = int(np.argmax(density)), ROUNDING * ((nu + 1.0) * len(at.f) + abs(float(at.weights @ at.f)))
    if density[best] > hidden:
        return np.asarray(at.weights + LENGTHS[best] * by_weights)
    return at.weights + by_weights if density[WHOLE] >= -hidden else None


def _gradient(
    K: Array, weights: Array, at: tuple[Array, Array, Array], v: Array, R: Array, nu: float, s2: float
) -> tuple[Array, Array]:
    """Return the matrix A without the resolvent, and derivatives (2,) by log sigma and log nu.

    The derivatives are those of the determinant and of the shift of the mode. ``at`` are r, q and W, ``v`` the
    variances of f, (N,) each; R (N, N) is the resolvent.
    """
    r, q, W = at
    c = -(nu + 1.0) * r * (3.0 * s2 - r**2) / q**3 * v  # by f of -log |I + K W| / 2
    along = K @ c
    along -= K @ (R @ along)  # Sigma c
    u = c - W * along
    A = np.outer(weights, weights) + np.outer(u, weights) + np.outer(weights, u)
    rest = (q - 2.0 * (s2 - r**2)) / q**3
    by_scale = -0.5 * v @ ((nu + 1.0) * 2.0 * s2 * rest) + along @ (-2.0 * (nu + 1.0) * r * s2 / q**2)
    g_nu = r / q - (nu + 1.0) * r * (s2 / nu) / q**2
    W_nu = (s2 - r**2) / q**2 + (nu + 1.0) * (s2 / nu) * rest
    by_nu = nu * (-0.5 * v @ W_nu + along @ g_nu)
    return A, np.array([by_scale, by_nu])
