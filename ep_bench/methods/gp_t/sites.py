"""Sites of expectation propagation, the posterior that they give, and how far they are from matching moments.

tau, b   site precisions and precision-times-means (N,), tau of any sign
psi      log of the normaliser of exp(b f - tau f^2 / 2) but for a constant: b^2 / (2 tau) - log(tau) / 2

With powers eta of the likelihood, cavities have the precision 1 / Sigma_ii - eta tau_i, and Jylanki et al. (2011),
equation (16), reads

    log Z = sum_i (log Z^_i + psi(cavity_i) - psi(marginal_i)) / eta + b' Sigma b / 2 - log |I + K S| / 2.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ep_bench.methods.gp_t.posterior import InferenceResult, Marginals, by_likelihood, marginals
from ep_bench.methods.gp_t.tilted import moments
from ep_bench.types import Array

CLOSE = 1e-9  # largest mismatch of a fixed point
LEAST = 1e-10  # precision of a cavity, in parts of the marginal's, below which there is none


class SiteModel(NamedTuple):
    """What is given: prior covariances (N, N) in full, targets (N,), the likelihood and its power."""

    K: Array
    y: Array
    nu: float
    scale: float
    eta: float


class SitePosterior(NamedTuple):
    """Sites, what follows from them, and the largest distance of tilted moments from the marginals.

    Distances are those of means in deviations, and of variances in parts. Where a cavity is improper the mismatch is
    infinite and the tilted moments are NaN.
    """

    tau: Array  # (N,)
    b: Array  # (N,)
    posterior: Marginals
    cavity: tuple[Array, Array]  # precisions and precision-times-means (N,)
    tilted: Array  # (7, N)
    mismatch: float

    def steps(self, eta: float) -> tuple[Array, Array]:
        """Return the undamped steps of tau and b, equation (15); 0 where a cavity is improper."""
        mean, variance = self.posterior.mean, self.posterior.variance
        by_tau = (1.0 / self.tilted[2] - 1.0 / variance) / eta
        by_b = (self.tilted[1] / self.tilted[2] - mean / variance) / eta
        return np.nan_to_num(by_tau, nan=0.0), np.nan_to_num(by_b, nan=0.0)


def sites(model: SiteModel, tau: Array, b: Array) -> SitePosterior | None:
    """Return the state of sites (N,), or None where the posterior is improper."""
    posterior = marginals(model.K, tau, b)
    if posterior is None:
        return None
    mean, variance = posterior.mean, posterior.variance
    precision, shift = 1.0 / variance - model.eta * tau, mean / variance - model.eta * b
    proper = precision > LEAST / variance
    tilted = np.full((7, len(tau)), np.nan)
    found = shift[proper] / precision[proper], 1.0 / precision[proper], model.y[proper]
    tilted[:, proper] = moments(*found, model.nu, model.scale, model.eta)
    by_mean = np.abs(tilted[1] - mean) / np.sqrt(variance)
    mismatch = float(np.maximum(by_mean, np.abs(tilted[2] / variance - 1.0)).max())
    if not math.isfinite(mismatch):
        mismatch = math.inf
    return SitePosterior(tau, b, posterior, (precision, shift), tilted, mismatch)


def empty(model: SiteModel) -> SitePosterior:
    """Return the state of sites that are all 0."""
    found = sites(model, np.zeros(len(model.y)), np.zeros(len(model.y)))
    if found is None:
        raise FloatingPointError("the prior has a variance that is not above 0")
    return found


def psi(precision: Array, shift: Array) -> Array:
    """Return psi (N,)."""
    return np.asarray(0.5 * shift**2 / precision - 0.5 * np.log(precision))


def log_evidence(now: SitePosterior, eta: float) -> float:
    """Return log Z, NaN where a cavity is improper."""
    mean, variance, _, log_determinant, _ = now.posterior
    precision, shift = now.cavity
    with np.errstate(invalid="ignore"):
        # tilted[0] has the normaliser of the cavity as a density, which the difference of psi accounts for
        terms = now.tilted[0] + psi(precision, shift) - psi(1.0 / variance, mean / variance)
    return float(terms.sum() / eta + 0.5 * (now.b @ mean - log_determinant))


def inferred(now: SitePosterior, model: SiteModel, sweeps: int, stage: str) -> InferenceResult:
    """Return evidence and gradient at a fixed point, where the sites' own derivatives vanish."""
    weights, R = now.posterior.weights, now.posterior.resolvent()
    likelihood = by_likelihood(now.tilted[3], now.tilted[4], model.nu)
    A = np.outer(weights, weights) - R
    return InferenceResult(log_evidence(now, model.eta), weights, now.tau, A, likelihood, sweeps, stage, now.b)
