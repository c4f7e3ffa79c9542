"""Damped sweeps of expectation propagation over all sites: Jylanki et al. (2011), sections 3.5 and 3.7.

Each scheme is an unlimited iterator of states, one per sweep. A sweep does not update sites with an improper cavity. If
a parallel sweep makes the posterior improper, its steps are halved. The iterator ends if that does not help, or if
sequential updates make the posterior improper.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ep_bench.methods.gp_t.posterior import gaussian
from ep_bench.methods.gp_t.sites import SMALLEST, SiteModel, SitePosterior, sites
from ep_bench.methods.gp_t.tilted import NODES, WEIGHTS, fill
from ep_bench.numerics.jit import jit

HALVINGS = 10


def parallel(model: SiteModel, start: SitePosterior, damping: float) -> Iterator[SitePosterior]:
    """Update all sites, then the posterior."""
    now: SitePosterior | None = start
    while now is not None:
        now = _swept(model, now, damping)
        if now is not None:
            yield now


def sequential(model: SiteModel, start: SitePosterior, damping: float) -> Iterator[SitePosterior]:
    """Update the posterior after each site, in the order of the data points; factorise it again after each sweep."""
    now: SitePosterior | None = start
    likelihood = (model.nu, model.scale**2, model.eta)
    while now is not None:
        posterior = gaussian(model.K, now.tau)
        if posterior is None:
            return
        tau, b, mean = now.tau.copy(), now.b.copy(), now.posterior.mean.copy()
        _update(tau, b, posterior.covariance, mean, model.y, *likelihood, damping, NODES, WEIGHTS)
        now = sites(model, tau, b)
        if now is not None:
            yield now


def _swept(model: SiteModel, now: SitePosterior, damping: float) -> SitePosterior | None:
    by_tau, by_b = now.steps(model.eta)
    for halved in range(HALVINGS):
        step = damping * 0.5**halved
        after = sites(model, now.tau + step * by_tau, now.b + step * by_b)
        if after is not None:
            return after
    return None


@jit()
def _update(
    tau: Any, b: Any, Sigma: Any, mean: Any, y: Any, nu: float, s2: float, eta: float, damping: float, nodes: Any,
    weights: Any,
) -> None:  # fmt: skip
    """Update the sites and the posterior in place.

    tau, b, mean and y are (N,), Sigma (N, N); nodes and weights (n,) are the quadrature rule of ``tilted``.
    """
    m, v, tilted = np.empty(1), np.empty(1), np.empty((7, 1))
    for i in range(tau.size):
        variance = Sigma[i, i]
        precision = 1.0 / variance - eta * tau[i]
        if precision <= SMALLEST / variance:
            continue
        m[0] = (mean[i] / variance - eta * b[i]) / precision
        v[0] = 1.0 / precision
        fill(m, v, y[i : i + 1], nu, s2, eta, nodes, weights, tilted)
        by_tau = damping * (1.0 / tilted[2, 0] - 1.0 / variance) / eta
        by_b = damping * (tilted[1, 0] / tilted[2, 0] - mean[i] / variance) / eta
        if 1.0 + by_tau * variance <= 0.0:
            continue
        tau[i] += by_tau
        b[i] += by_b
        column = Sigma[:, i].copy()
        factor = 1.0 / (1.0 + by_tau * variance)
        by_mean = (by_b - by_tau * mean[i]) * factor
        for j in range(tau.size):
            mean[j] += column[j] * by_mean
            row, slope = Sigma[j], column[j] * by_tau * factor
            for k in range(tau.size):
                row[k] -= column[k] * slope
