"""Support for tests of Hamiltonian Monte Carlo: small models, comparison of chains with known moments."""

from __future__ import annotations

import numpy as np

from ep_bench.methods.hmc import hyperparameters
from ep_bench.methods.hmc.model import NetworkModel
from ep_bench.methods.hmc.trajectory import NetworkRows
from ep_bench.models import mlp
from ep_bench.models.residuals import ACTIVATIONS

TOLERANCE = 4.5  # standard errors; a run of 500 comparisons exceeds it once in 300 runs


def standard_error(series):
    """Return the standard error of the mean of draws (chains, draws), from their effective sample size."""
    from arviz_stats.base import array_stats

    series = np.asarray(series)
    return series.std() / np.sqrt(array_stats.ess(series, method="mean", chain_axis=0, draw_axis=1))


def distance(series, expected, error=0.0):
    """Return how many standard errors the mean of draws (chains, draws) is from a value with its own ``error``."""
    return abs(np.mean(series) - expected) / np.hypot(standard_error(series), error)


def small_model(
    *, d=2, hidden=(3,), rows=5, activation="tanh", prior="gaussian", scales="one", seed=0,
    weight_prior=(3.0, 2.0), noise_prior=(3.0, 2.0), noise_variance=None, prior_variance=None,
):  # fmt: skip
    rng = np.random.default_rng(seed)
    layers = mlp.layout(d, hidden)
    X, y = rng.normal(size=(rows, d)), rng.normal(size=rows)
    return NetworkModel(
        NetworkRows(X, y, layers, ACTIVATIONS[activation]),
        hyperparameters.groups(layers, prior, scales),
        weight_prior,
        noise_prior,
        noise_variance,
        prior_variance,
    )


def by_chain(state, values):
    """Return values (S, ...) of the draws of a state as (chains, draws, ...)."""
    chains = int(state.chain.max()) + 1
    return np.asarray(values).reshape(chains, -1, *np.shape(values)[1:])
