"""The Bayesian network that the chains sample from, and its log joint density."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ep_bench.methods.hmc import hyperparameters
from ep_bench.methods.hmc.trajectory import NetworkRows


@dataclass(frozen=True)
class NetworkModel:
    """Training data, network and hyperpriors. A variance that is not None is fixed and not sampled."""

    rows: NetworkRows
    group: Any  # (P,) group of each weight
    weight_prior: tuple[float, float]  # inverse-gamma shape and rate
    noise_prior: tuple[float, float]
    noise_variance: float | None  # standardised units
    prior_variance: float | None

    def with_targets(self, y: Any) -> NetworkModel:
        """Return the same model with other targets (N,)."""
        return replace(self, rows=self.rows._replace(y=y))


def log_joint(model: NetworkModel, w: Any, error: float, noise: float, prior: Any) -> float:
    """Return the log density (nats) of weights w (P,), variances and targets.

    ``error`` is half the sum of squared residuals. ``noise`` and ``prior`` (G,) are variances; fixed ones have no
    density.
    """
    n, counts, squares = len(model.rows.y), np.bincount(model.group), np.bincount(model.group, weights=w**2)
    total = -0.5 * n * math.log(2.0 * math.pi * noise) - error / noise
    total -= float(0.5 * np.sum(counts * np.log(2.0 * np.pi * prior) + squares / prior))
    if model.noise_variance is None:
        total += hyperparameters.log_inverse_gamma(np.array([noise]), model.noise_prior)
    if model.prior_variance is None:
        total += hyperparameters.log_inverse_gamma(prior, model.weight_prior)
    return total
