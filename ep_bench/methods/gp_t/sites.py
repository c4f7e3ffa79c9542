"""Sites of expectation propagation, their posterior, and the mismatch of the moments.

tau, b   site precisions and precision-times-means (N,), tau of any sign
psi      log of the normaliser of exp(b f - tau f^2 / 2) up to a constant: b^2 / (2 tau) - log(tau) / 2

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
SMALLEST = 1e-10  # precision of a cavity, relative to the marginal, up to which it counts as improper


class SiteModel(NamedTuple):
    """The model at fixed hyperparameters."""

    K: Array  # (N, N) prior covariances, in full
    y: Array  # (N,) targets
    nu: float
    scale: float
    eta: float  # power of the likelihood


class SitePosterior(NamedTuple):
    """Sites with their posterior, cavities, tilted moments and mismatch.

    The mismatch is the largest distance of tilted moments from the marginals: of means in standard deviations, of
    variances relative to the marginal. With an improper cavity the mismatch is infinite and its tilted moments are NaN.
    """

    tau: Array  # (N,)
    b: Array  # (N,)
    posterior: Marginals
    cavity: tuple[Array, Array]  # precisions and precision-times-means (N,)
    tilted: Array  # (7, N) as ``tilted.moments`` returns it
    mismatch: float

    def steps(self, eta: float) -> tuple[Array, Array]:
        """Return the undamped steps of tau and b (N,), equation (15); 0 for sites with an improper cavity."""
        mean, variance = self.posterior.mean, self.posterior.variance
        by_tau = (1.0 / self.tilted[2] - 1.0 / variance) / eta
        by_b = (self.tilted[1] / self.tilted[2] - mean / variance) / eta
        return np.nan_to_num(by_tau, nan=0.0), np.nan_to_num(by_b, nan=0.0)


def sites(model: SiteModel, tau: Array, b: Array) -> SitePosterior | None:
    """Return the state of sites tau and b (N,), or None if the posterior is improper."""
    posterior = marginals(model.K, tau, b)
    if posterior is None:
        return None
    mean, variance = posterior.mean, posterior.variance
    precision, shift = 1.0 / variance - model.eta * tau, mean / variance - model.eta * b
    proper = precision > SMALLEST / variance
    tilted = np.full((7, len(tau)), np.nan)
    found = shift[proper] / precision[proper], 1.0 / precision[proper], model.y[proper]
    tilted[:, proper] = moments(*found, model.nu, model.scale, model.eta)
    by_mean = np.abs(tilted[1] - mean) / np.sqrt(variance)
    mismatch = float(np.maximum(by_mean, np.abs(tilted[2] / variance - 1.0)).max())
    if not math.isfinite(mismatch):
        mismatch = math.inf
    return SitePosterior(tau, b, posterior, (precision, shift), tilted, mismatch)


def empty(model: SiteModel) -> SitePosterior:
    """Return the state with all sites 0. Raises FloatingPointError if a prior variance is not positive."""
    found = sites(model, np.zeros(len(model.y)), np.zeros(len(model.y)))
    if found is None:
        raise FloatingPointError("the prior has a variance that is not above 0")
    return found


def log_normaliser(precision: Array, shift: Array) -> Array:
    """Return psi (N,), as above, of precisions and precision-times-means (N,)."""
    return np.asarray(0.5 * shift**2 / precision - 0.5 * np.log(precision))


def log_evidence(now: SitePosterior, eta: float) -> float:
    """Return log Z (nats), NaN if a cavity is improper."""
    mean, variance, _, log_determinant, _ = now.posterior
    precision, shift = now.cavity
    with np.errstate(invalid="ignore"):
        # tilted[0] includes the normaliser of the cavity as a density, so the difference of psi enters
        terms = now.tilted[0] + log_normaliser(precision, shift) - log_normaliser(1.0 / variance, mean / variance)
    return float(terms.sum() / eta + 0.5 * (now.b @ mean - log_determinant))


def inferred(now: SitePosterior, model: SiteModel, sweeps: int, stage: str) -> InferenceResult:
    """Return evidence and gradient at a fixed point; the derivatives by the sites are 0 there."""
    weights, R = now.posterior.weights, now.posterior.resolvent()
    likelihood = by_likelihood(now.tilted[3], now.tilted[4], model.nu)
    A = np.outer(weights, weights) - R
    return InferenceResult(log_evidence(now, model.eta), weights, now.tau, A, likelihood, sweeps, stage, now.b)
