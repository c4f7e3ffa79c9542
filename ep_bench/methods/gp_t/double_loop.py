"""The double loop of expectation propagation, Jylanki et al. (2011), sections 3.6 and 4.

lambda_s   fixed marginals, as natural parameters (N,): precisions and precision-times-means
lambda     sites tau and b; cavities are lambda_- = lambda_s - eta lambda
psi        as in ``sites``

    min over lambda_s of  G = max over lambda of  F,                                       equation (13), with powers:
    F = -sum_i log Z_i(lambda_-) / eta - log Z_q(lambda) + mu sum_i log(K_ii tau_-i) + sum_i psi(lambda_s,i) / eta,

with Z_i the normaliser of t(y_i | f)^eta times the unnormalised cavity. The inner loop maximises F, which is concave in
the sites; each step is shortened until F increases. The outer loop moves lambda_s to, or towards, the marginals of the
posterior, and accepts a step only if G decreases. Both loops keep cavities and posterior proper.

Deviation: inner steps are those of Newton's method (``newton`` has the curvatures), not those of moment matching. They
end at a mismatch that is a fraction of the outer one. The term in mu keeps the precisions of cavities away from 0,
where the inner maximum may be in the first rounds. mu tends to 0 with the outer mismatch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from ep_bench.methods.gp_t.newton import curvatures, site_changes
from ep_bench.methods.gp_t.posterior import Marginals, marginals
from ep_bench.methods.gp_t.sites import SiteModel, SitePosterior, log_normaliser, sites
from ep_bench.methods.gp_t.tilted import moments
from ep_bench.types import Array

INNER_STEPS = 40
HALVINGS = 40
TIGHT = 0.1  # inner mismatch relative to the outer one, or to 1 if that is larger
BARRIER = 1e-2  # mu relative to the outer mismatch
DROP = 0.2  # mu decreases at least by this factor, or not at all
SHORTEST = 1e-4  # length of outer steps; 1 is a step to the marginals of the posterior
EDGE = 0.9  # largest fraction of the way to a cavity of precision 0


class FixedMarginals(NamedTuple):
    """Sites at fixed marginals, and the terms of F that depend on them."""

    outer: tuple[Array, Array]  # lambda_s, (N,) each
    tau: Array  # (N,)
    b: Array  # (N,)
    cavity: tuple[Array, Array]  # (N,) each
    posterior: Marginals
    tilted: Array  # (7, N) as ``tilted.moments`` returns it
    value: float  # F without the barrier
    barrier: float  # the factor of mu in F
    short: float  # distance of F from its maximum, by the last quadratic model


def double_loop(model: SiteModel, start: SitePosterior) -> Iterator[SitePosterior]:
    """Yield the state after each round of the outer loop, until no outer step decreases G."""
    mu, length = BARRIER, 1.0
    found = fixed_marginals(model, natural(start.posterior), start.tau, start.b)
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


def natural(posterior: Marginals) -> tuple[Array, Array]:
    return 1.0 / posterior.variance, posterior.mean / posterior.variance


def _distance(outer: tuple[Array, Array], posterior: Marginals) -> float:
    """Return the largest distance of the fixed marginals from those of the posterior, as a mismatch of ``sites``."""
    precision, shift = outer
    by_mean = np.abs(shift / precision - posterior.mean) / np.sqrt(posterior.variance)
    return float(np.maximum(by_mean, np.abs(precision * posterior.variance - 1.0)).max())


def fixed_marginals(model: SiteModel, outer: tuple[Array, Array], tau: Array, b: Array) -> FixedMarginals | None:
    """Return the state of sites tau and b (N,), or None if the posterior or a cavity is improper."""
    precision, shift = outer[0] - model.eta * tau, outer[1] - model.eta * b
    if not np.all(precision > 0.0):
        return None
    posterior = marginals(model.K, tau, b)
    if posterior is None:
        return None
    tilted = moments(shift / precision, 1.0 / precision, model.y, model.nu, model.scale, model.eta)
    likelihood = (tilted[0] + log_normaliser(precision, shift) - log_normaliser(*outer)).sum() / model.eta
    value = -likelihood - 0.5 * (b @ posterior.mean - posterior.log_determinant)
    if not (np.isfinite(value) and np.isfinite(tilted[[1, 2, 5, 6]]).all()):
        return None
    barrier = float(np.log(precision * model.K.diagonal()).sum())
    return FixedMarginals(outer, tau, b, (precision, shift), posterior, tilted, float(value), barrier, np.inf)


def _inner_loop(model: SiteModel, start: FixedMarginals, mu: float, close: float) -> FixedMarginals:
    """Return the state after Newton's steps, each of which increases F, until the mismatch is below ``close``."""
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
    """Return Newton's step (2N,), the derivative of F along it, and the largest entry of the gradient."""
    at = curvatures(model, now.tau, now.posterior, now.tilted)
    if at is None:
        return None, 0.0, 0.0
    n = len(now.tau)
    ratio = model.eta / (now.cavity[0] * now.posterior.variance)
    gradient = at.residual.copy()
    gradient[n:] -= mu * ratio
    H = np.zeros((2 * n, 2 * n), order="F")
    H[:n, :n], H[n:, n:] = at.rho, 0.5 * at.rho**2
    i = np.arange(n)
    first, across, second = at.tilted
    H[i, i] += model.eta * first
    H[n + i, i] = H[i, n + i] = model.eta * across
    H[n + i, n + i] += model.eta * second + mu * ratio**2
    scale = 1.0 / np.sqrt(H.diagonal())
    _, step, failed = lapack.dposv(H * scale[:, None] * scale, scale * gradient)
    if failed or not np.isfinite(step).all():
        return None, 0.0, 0.0
    step = scale * step
    return step, float(gradient @ step), float(np.abs(gradient).max())


def _ascent_step(
    model: SiteModel, now: FixedMarginals, by_tau: Array, by_b: Array, slope: float, mu: float
) -> FixedMarginals | None:
    """Return the state after a step by ``by_tau`` and ``by_b`` (N,), shortened until F increases, or None."""
    toward = float((model.eta * by_tau / now.cavity[0]).max())
    part = min(1.0, EDGE / toward) if toward > 0.0 else 1.0
    before = now.value + mu * now.barrier
    for _ in range(HALVINGS):
        after = fixed_marginals(model, now.outer, now.tau + part * by_tau, now.b + part * by_b)
        if after is not None and after.value + mu * after.barrier > before + 1e-4 * part * slope - 1e-12 * abs(before):
            return after
        part *= 0.5
    return None


def _outer_loop(model: SiteModel, now: FixedMarginals, length: float) -> tuple[FixedMarginals | None, float]:
    """Return the state with marginals moved towards those of the posterior, and the length of the step."""
    target = natural(now.posterior)
    for _ in range(HALVINGS):
        by_precision, by_shift = (length * (new - old) for new, old in zip(target, now.outer, strict=True))
        outer = now.outer[0] + by_precision, now.outer[1] + by_shift
        if np.all(outer[0] - model.eta * now.tau > (1.0 - EDGE) * np.minimum(now.cavity[0], outer[0])):
            after = fixed_marginals(model, outer, now.tau, now.b)
        else:  # keep the cavities by moving the sites too
            after = fixed_marginals(model, outer, now.tau + by_precision / model.eta, now.b + by_shift / model.eta)
        if after is not None:
            return after, length
        length *= 0.5
    return None, length
