"""The double loop of expectation propagation, Jylanki et al. (2011), sections 3.6 and 4.

lambda_s   marginals that are held, natural parameters (N,) each: precisions and precision-times-means
lambda     sites tau and b; cavities are lambda_- = lambda_s - eta lambda
psi        as in ``sites``

    min over lambda_s of  G = max over lambda of  F,                                       equation (13), with powers:
    F = -sum_i log Z_i(lambda_-) / eta - log Z_q(lambda) + mu sum_i log(K_ii tau_-i) + sum_i psi(lambda_s,i) / eta,

Z_i of t(y_i | f)^eta times the unnormalised cavity. The inner loop raises F, which is concave in the sites, and each of
its steps is shortened until F has risen. The outer loop sets lambda_s to the marginals of the posterior, or to a point
on the way there; such a step is taken only if G has fallen. Both loops keep cavities and posterior proper.

Deviations: inner steps are Newton's (``newton`` has the curvatures), not those of moment matching, and go on until the
inner mismatch is a part of the outer one. The term in mu keeps cavities off 0, where the inner maximum may lie in the
first rounds; mu falls with the outer mismatch to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from ep_bench.methods.gp_t.newton import curvatures, site_changes
from ep_bench.methods.gp_t.posterior import Marginals, marginals
from ep_bench.methods.gp_t.sites import SiteModel, SitePosterior, psi, sites
from ep_bench.methods.gp_t.tilted import moments
from ep_bench.types import Array

INNER_STEPS = 40
HALVINGS = 40
TIGHT = 0.1  # inner mismatch in parts of the outer one, or of 1
BARRIER = 1e-2  # mu in parts of the outer mismatch
DROP = 0.2  # part of itself to which mu falls at once at least
SHORTEST = 1e-4  # of outer steps, 1 being to the posterior's marginals
EDGE = 0.9  # part of the way to a cavity of precision 0 that a step goes at most


class FixedMarginals(NamedTuple):
    """Sites under held marginals, and the terms of F that hang on them."""

    outer: tuple[Array, Array]
    tau: Array
    b: Array
    cavity: tuple[Array, Array]
    posterior: Marginals
    tilted: Array
    value: float  # F without the barrier
    barrier: float  # what mu stands before
    short: float  # of F below its maximum, by the last quadratic


def double_loop(model: SiteModel, start: SitePosterior) -> Iterator[SitePosterior]:
    """Yield the state after each round of the outer loop, until no outer step lowers G any more."""
    mu, length = BARRIER, 1.0
    found = _fixed_marginals(model, _natural(start.posterior), start.tau, start.b)
    if found is None:
        return
    now = _inner_loop(model, found, mu, TIGHT)
    while True:
        state = sites(model, now.tau, now.b)
        if state is not None:
            yield state
        gap = _distance(now.outer, now.posterior)
        close = TIGHT * min(gap, 1.0)
        if BARRIER * gap < DROP * mu:
            mu = BARRIER * gap
            now = _inner_loop(model, now, mu, close)
        while True:
            moved_out, length = _outer_loop(model, now, length)
            if moved_out is None:
                return
            after = _inner_loop(model, moved_out, mu, close)
            allowed = now.short + 1e-10 * (1.0 + abs(now.value))
            if after.value + mu * after.barrier <= now.value + mu * now.barrier + allowed:
                break
            length *= 0.5
            if length < SHORTEST:
                return
        now, length = after, min(2.0 * length, 1.0)


def _natural(posterior: Marginals) -> tuple[Array, Array]:
    return 1.0 / posterior.variance, posterior.mean / posterior.variance


def _distance(outer: tuple[Array, Array], posterior: Marginals) -> float:
    """Return the largest distance of held marginals from the posterior's, as mismatches are measured."""
    precision, shift = outer
    by_mean = np.abs(shift / precision - posterior.mean) / np.sqrt(posterior.variance)
    return float(np.maximum(by_mean, np.abs(precision * posterior.variance - 1.0)).max())


def _fixed_marginals(model: SiteModel, outer: tuple[Array, Array], tau: Array, b: Array) -> FixedMarginals | None:
    """Return the state of sites, or None where the posterior or a cavity is improper."""
    precision, shift = outer[0] - model.eta * tau, outer[1] - model.eta * b
    if not np.all(precision > 0.0):
        return None
    posterior = marginals(model.K, tau, b)
    if posterior is None:
        return None
    tilted = moments(shift / precision, 1.0 / precision, model.y, model.nu, model.scale, model.eta)
    likelihood = (tilted[0] + psi(precision, shift) - psi(*outer)).sum() / model.eta
    value = -likelihood - 0.5 * (b @ posterior.mean - posterior.log_determinant)
    if not (np.isfinite(value) and np.isfinite(tilted[[1, 2, 5, 6]]).all()):
        return None
    barrier = float(np.log(precision * model.K.diagonal()).sum())
    return FixedMarginals(outer, tau, b, (precision, shift), posterior, tilted, float(value), barrier, np.inf)


def _inner_loop(model: SiteModel, start: FixedMarginals, mu: float, close: float) -> FixedMarginals:
    """Return where Newton's steps, each of which raises F, end."""
    now = start
    for _ in range(INNER_STEPS):
        step, slope, gap = _direction(model, now, mu)
        if step is None:
            return now
        now = now._replace(short=0.5 * slope)
        if gap < close:
            return now
        after = _ascent_step(model, now, *site_changes(step, now.posterior), slope, mu)
        if after is None:
            return now
        now = after
    return now


def _direction(model: SiteModel, now: FixedMarginals, mu: float) -> tuple[Array | None, float, float]:
    """Return Newton's step (2N,), the derivative of F along it, and the largest element of the gradient."""
    at = curvatures(model, now.tau, now.posterior, now.tilted)
    if at is None:
        return None, 0.0, 0.0
    n = len(now.tau)
    share = model.eta / (now.cavity[0] * now.posterior.variance)
    gradient = at.residual.copy()
    gradient[n:] -= mu * share
    H = np.zeros((2 * n, 2 * n), order="F")
    H[:n, :n], H[n:, n:] = at.rho, 0.5 * at.rho**2
    i = np.arange(n)
    first, across, second = at.tilted
    H[i, i] += model.eta * first
    H[n + i, i] = H[i, n + i] = model.eta * across
    H[n + i, n + i] += model.eta * second + mu * share**2
    scale = 1.0 / np.sqrt(H.diagonal())
    _, step, failed = lapack.dposv(H * scale[:, None] * scale, scale * gradient)
    if failed or not np.isfinite(step).all():
        return None, 0.0, 0.0
    step = scale * step
    return step, float(gradient @ step), float(np.abs(gradient).max())


def _ascent_step(
    model: SiteModel, now: FixedMarginals, by_tau: Array, by_b: Array, slope: float, mu: float
) -> FixedMarginals | None:
    """Return the state after a step that raises F, shortened as far as that takes, or None."""
    toward = float((model.eta * by_tau / now.cavity[0]).max())
    part = min(1.0, EDGE / toward) if toward > 0.0 else 1.0
    least = now.value + mu * now.barrier
    for _ in range(HALVINGS):
        after = _fixed_marginals(model, now.outer, now.tau + part * by_tau, now.b + part * by_b)
        if after is not None and after.value + mu * after.barrier > least + 1e-4 * part * slope - 1e-12 * abs(least):
            return after
        part *= 0.5
    return None


def _outer_loop(model: SiteModel, now: FixedMarginals, length: float) -> tuple[FixedMarginals | None, float]:
    """Return the sites under marginals moved towards the posterior's, and how far that was."""
    target = _natural(now.posterior)
    for _ in range(HALVINGS):
        by_precision, by_shift = (length * (new - old) for new, old in zip(target, now.outer, strict=True))
        outer = now.outer[0] + by_precision, now.outer[1] + by_shift
        if np.all(outer[0] - model.eta * now.tau > (1.0 - EDGE) * np.minimum(now.cavity[0], outer[0])):
            after = _fixed_marginals(model, outer, now.tau, now.b)
        else:  # the cavities stay, the sites go along
            after = _fixed_marginals(model, outer, now.tau + by_precision / model.eta, now.b + by_shift / model.eta)
        if after is not None:
            return after, length
        length *= 0.5
    return None, length
