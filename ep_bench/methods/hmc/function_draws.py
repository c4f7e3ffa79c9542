"""Draws of the network's output at given inputs, by single chains, and their diagnostics by input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ep_bench.methods.hmc import chain, model_of, schedule_of
from ep_bench.numerics import mcmc, mcmc_diagnostics
from ep_bench.types import Array, Rows

if TYPE_CHECKING:
    from ep_bench.methods.hmc import Config

by_input = mcmc_diagnostics.by_series


def sample(
    train: Rows, config: Config, inputs: Array, kept: int, rng: np.random.Generator
) -> tuple[Array, dict[str, float]]:
    """Return ``kept`` evenly spaced draws (kept, N) of one chain at inputs (N, d), standardised, and its counts."""
    (record,), counts = chain.run(model_of(train, config), schedule_of(config), inputs, [rng])
    return record.monitored["predictions"][sorted(mcmc.stored_draws(config.samples, kept))], counts
