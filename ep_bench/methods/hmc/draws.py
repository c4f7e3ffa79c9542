"""Draws for experiments: network outputs of single chains, and all unknowns and targets from their joint distribution.

The second are for simulation-based calibration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ep_bench.methods.hmc import chain, hyperparameters, model_of, schedule_of
from ep_bench.methods.hmc.model import NetworkModel, log_joint
from ep_bench.models import residuals
from ep_bench.numerics import mcmc, mcmc_diagnostics
from ep_bench.types import Array, Rows

if TYPE_CHECKING:
    from ep_bench.methods.hmc import Config

by_input = mcmc_diagnostics.by_series


def draw_outputs(
    train: Rows, config: Config, inputs: Array, kept: int, rng: np.random.Generator
) -> tuple[Array, dict[str, float]]:
    """Return ``kept`` evenly spaced draws (kept, N) of one chain at inputs (N, d), standardised, and its counts."""
    (record,), counts = chain.run(model_of(train, config), schedule_of(config), inputs, [rng])
    return record.monitored["predictions"][sorted(mcmc.stored_draws(config.samples, kept))], counts


class JointDraw(NamedTuple):
    """Hyperparameters, weights and targets of a model, drawn from its prior."""

    w: Any  # (P,)
    noise: float  # variance
    prior: Any  # (G,) variances
    y: Any  # (N,)
    predictions: Any  # (M,) outputs at the monitored inputs
    log_joint: float  # nats


def draw_joint(model: NetworkModel, monitored: Any, rng: np.random.Generator) -> tuple[JointDraw, NetworkModel]:
    """Return a draw, with outputs at the inputs ``monitored`` (M, d), and the model with the targets of the draw."""
    rows, groups = model.rows, int(model.group.max()) + 1
    prior = np.full(groups, model.prior_variance or 1.0)
    if model.prior_variance is None:
        prior = hyperparameters.draw_variance(np.full(groups, model.weight_prior[0]), model.weight_prior[1], rng)
    noise = model.noise_variance or float(hyperparameters.draw_variance(*model.noise_prior, rng))
    w = np.sqrt(prior[model.group]) * rng.standard_normal(len(model.group))
    f, predictions = (residuals.outputs(X, w[None], rows.layers, rows.kind)[0] for X in (rows.X, monitored))
    errors = np.sqrt(noise) * rng.standard_normal(len(f))
    drawn = model.with_targets(f + errors)
    value = log_joint(drawn, w, 0.5 * float(errors @ errors), noise, prior)
    return JointDraw(w, noise, prior, drawn.rows.y, predictions, value), drawn
