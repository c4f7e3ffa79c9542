"""What chains monitor, and how well they have mixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ep_bench.methods.hmc.chain import HMCChain
from ep_bench.numerics import mcmc_diagnostics

COMMON = 0.01  # share of the draws over which divergences are worth a word


def summarise(chains: Sequence[HMCChain]) -> tuple[dict[str, Any], dict[str, float]]:
    """Return monitored series, each (chains, draws), and diagnostics.

    The series are ``log_joint`` (nats), ``noise_deviation``, ``prior_deviation`` (of several groups of weights
    ``prior_deviation_1`` and so on) and ``prediction`` (the watched row whose R-hat is the largest), standardised
    units. R-hat and effective sample sizes are ``mixing.measures``; of the predictions and of the groups'
    deviations, the worst.
    """
    places = mcmc_diagnostics.monitored_draws(len(chains[0].log_joint))
    alone = ("log_joint", "noise_deviation")
    series = {name: np.array([getattr(chain, name)[places] for chain in chains]) for name in alone}
    groups = np.array([chain.prior_deviations[places] for chain in chains])
    names = [f"prior_deviation_{g + 1}" for g in range(groups.shape[2])] if groups.shape[2] > 1 else ["prior_deviation"]
    series |= {name: groups[:, :, g] for g, name in enumerate(names)}
    found: dict[str, float] = {}
    for name in alone:
        found |= mcmc_diagnostics.measures(name, series[name][:, :, None])[0]
    found |= mcmc_diagnostics.measures("prior_deviation", groups)[0]
    predictions = np.array([chain.predictions[places] for chain in chains])
    measures, worst = mcmc_diagnostics.measures("predictions", predictions)
    found |= measures
    series["prediction"] = predictions[:, :, worst]
    found |= {
        "divergences": float(sum(chain.divergences for chain in chains)),
        "acceptance": float(np.mean([chain.acceptance.mean() for chain in chains])),
        "step_size": float(np.mean([chain.step_size for chain in chains])),
        "gradients": float(sum(chain.gradients for chain in chains)),
    }
    return series, found


def problem(found: dict[str, float], chains: int, samples: int) -> str:
    """Return why the chains are not taken for mixed, with the share of divergent trajectories if it is large, or ''."""
    run = f"{chains} {'chain' if chains == 1 else 'chains'} of {samples} draws"
    reason = mcmc_diagnostics.unmixed(found, run)
    share = found["divergences"] / (chains * samples)
    if reason and share > COMMON:
        reason += f", {share:.0%} of them divergent"
    return f"{reason}; a longer warm-up and more samples may help" if reason else ""
