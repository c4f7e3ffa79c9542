"""The evidence at fixed hyperparameters by annealed importance sampling: Neal (2001); Jylanki et al. (2011), 5.3.

    log p_beta(f) = log N(f | 0, K) + sum_i (1 - beta) log site_i(f_i) + beta log t(y_i | f_i) + constant,
    site_i(f) = exp(b_i f - tau_i f^2 / 2)

p_0 is the Gaussian of the sites, with a known normaliser Z_0, and p_1 is the posterior. With
l(f) = sum_i log t(y_i | f_i) - log site_i(f_i), the weight of a run is

    log w = log Z_0 + sum_j (beta_j - beta_{j-1}) l(f_{j-1}),   mean of w = p(y)

for any sites; these determine only the spread of the weights. Between temperatures f moves by elliptical slice sampling
(Murray, Adams and MacKay 2010) around the Gaussian; the remaining factor of p_beta is exp(beta l). Sites are those of
expectation propagation times ``WEAKER``, so that the Gaussian is wider than the posterior. If EP does not converge,
usually because the posterior has several modes, sites are those of the variational bounds times ``FAINT``. The runs are
independent and are computed together, as columns.

A mode that no run reaches is missing from the estimate and from its standard error. Estimates from different sites then
differ by more than their errors.

Deviation: the paper does not state the start of its runs or their moves; both are ours.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.special import logsumexp

from ep_bench.methods.gp_t import ep, variational
from ep_bench.methods.gp_t.posterior import gaussian
from ep_bench.methods.gp_t.tilted import log_constant
from ep_bench.types import Array

RUNS = 2000
TEMPERATURES = 200
WEAKER = 0.9
FAINT = 0.05
DAMPING = 0.8
SHRINKS = 100  # of the bracket of an ellipse, after which a run does not move


class EvidenceEstimate(NamedTuple):
    """Log evidence (nats), its standard error (nats), and the effective number of runs."""

    log_evidence: float
    error: float
    effective: float


class StartingGaussian(NamedTuple):
    """The Gaussian of the sites."""

    mean: Array  # (N,)
    factor: Array  # (N, N) A, A A' its covariance
    precisions: Array  # (N,) tau
    shifts: Array  # (N,) b
    log_normaliser: float  # log Z_0


class Likelihood(NamedTuple):
    """Targets and parameters of the t."""

    y: Array  # (N, 1)
    nu: float
    s2: float  # nu sigma^2


def log_evidence(
    K: Array,
    y: Array,
    nu: float,
    scale: float,
    rng: np.random.Generator,
    *,
    runs: int = RUNS,
    temperatures: int = TEMPERATURES,
    sites: tuple[Array, Array] | None = None,
) -> EvidenceEstimate:
    """Return the evidence for full covariances K (N, N).

    ``sites`` are the precisions and precision-times-means (N,) at beta = 0, by default those of ``starting_sites``.
    Raises FloatingPointError if their Gaussian is improper.
    """
    start = _start(K, *(starting_sites(K, y, nu, scale) if sites is None else sites))
    target = Likelihood(y[:, None], nu, nu * scale**2)
    f = start.mean[:, None] + start.factor @ rng.standard_normal((len(y), runs))
    level = _ratio(f, start, target)
    log_weights = np.full(runs, start.log_normaliser)
    ladder = np.linspace(0.0, 1.0, temperatures + 1)
    for before, beta in pairwise(ladder):
        log_weights += (beta - before) * level
        if beta < 1.0:
            f, level = _move(f, level, beta, start, target, rng)
    return _estimate(log_weights)


def starting_sites(K: Array, y: Array, nu: float, scale: float) -> tuple[Array, Array]:
    """Return precisions and precision-times-means (N,) of a Gaussian that is wider than the posterior."""
    try:
        found = ep.infer(K, y, nu, scale, 1.0, DAMPING)
    except FloatingPointError:
        precisions = FAINT * variational.bounds(K, y, nu, scale).precisions
        return precisions, precisions * y
    if found.shifts is None:
        raise TypeError("expectation propagation returned no sites")
    return WEAKER * found.precisions, WEAKER * found.shifts


def _start(K: Array, precisions: Array, shifts: Array) -> StartingGaussian:
    posterior = gaussian(K, precisions)
    if posterior is None:
        raise FloatingPointError("the Gaussian of the starting sites is improper")
    mean = posterior.covariance @ shifts
    values, vectors = eigh(posterior.covariance)
    # eigenvalues below 0 are rounding errors
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    return StartingGaussian(mean, factor, precisions, shifts, 0.5 * (float(shifts @ mean) - posterior.log_determinant))


def _ratio(f: Array, start: StartingGaussian, target: Likelihood) -> Array:
    """Return l (R,) of runs f (N, R)."""
    y, nu, s2 = target
    constant = log_constant(nu, s2 / nu)
    logs = np.log1p((y - f) ** 2 / s2).sum(axis=0)
    sites = start.shifts @ f - 0.5 * (start.precisions @ f**2)
    return np.asarray(len(y) * constant - 0.5 * (nu + 1.0) * logs - sites)


def _move(
    f: Array, level: Array, beta: float, start: StartingGaussian, target: Likelihood, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return the runs (N, R) and their l (R,) after one update by elliptical slice sampling."""
    runs = f.shape[1]
    threshold = beta * level - rng.standard_exponential(runs)
    mean = start.mean[:, None]
    other = start.factor @ rng.standard_normal(f.shape)
    angle = np.asarray(rng.uniform(0.0, 2.0 * math.pi, runs))
    low, high = angle - 2.0 * math.pi, angle.copy()
    f, level, active = f.copy(), level.copy(), np.arange(runs)
    for _ in range(SHRINKS):
        proposed = mean + np.cos(angle[active]) * (f[:, active] - mean) + np.sin(angle[active]) * other[:, active]
        found = _ratio(proposed, start, target)
        accepted = beta * found > threshold[active]
        f[:, active[accepted]], level[active[accepted]] = proposed[:, accepted], found[accepted]
        active = active[~accepted]
        if len(active) == 0:
            break
        below = angle[active] < 0.0
        low[active] = np.where(below, angle[active], low[active])
        high[active] = np.where(below, high[active], angle[active])
        angle[active] = rng.uniform(low[active], high[active])
    return f, level


def _estimate(log_weights: Array) -> EvidenceEstimate:
    """Return the log of the mean of weights (R,), given as logarithms, and its standard error to first order."""
    log_mean = float(logsumexp(log_weights) - math.log(len(log_weights)))
    relative = np.exp(log_weights - log_mean)
    error = float(relative.std(ddof=1)) / math.sqrt(len(relative))
    return EvidenceEstimate(log_mean, error, float(relative.sum() ** 2 / (relative**2).sum()))
