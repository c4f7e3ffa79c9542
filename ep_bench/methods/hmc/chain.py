"""A Markov chain of Hamiltonian Monte Carlo for the loop of ``numerics.mcmc``: warm-up, draws, monitored quantities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ep_bench.methods.hmc.adaptation import RunningCurvature, StepSize, pooled, windows
from ep_bench.methods.hmc.model import NetworkModel
from ep_bench.methods.hmc.walker import Walker
from ep_bench.models import residuals
from ep_bench.numerics import mcmc, mcmc_diagnostics
from ep_bench.numerics.mcmc import ChainRecord, Schedule

START_ITERATIONS = 200  # of L-BFGS per round of the search for a starting point
FIRST_PROBES = 20  # random probes of the curvature at the starting point
FIRST_STEP = 0.1
SHORT = 0.1  # fraction of a trajectory's steps in the first two windows


@dataclass(frozen=True)
class HMCSchedule(Schedule):
    """Length of chains and trajectories, and their numerical settings."""

    steps: int  # mean number of leapfrog steps per trajectory
    target_acceptance: float
    is_pooled: bool  # whether the masses are pooled over exchangeable units
    is_single: bool  # whether the gradients of trajectories are in single precision if the network permits it


class HMCChain:
    """One chain. The warm-up adapts the step size and the masses."""

    def __init__(self, model: NetworkModel, schedule: HMCSchedule, inputs: Any, rng: np.random.Generator) -> None:
        self._schedule, self._inputs = schedule, inputs
        self.walker = walker = Walker(model, rng, is_single=schedule.is_single)
        walker.start(min(START_ITERATIONS, schedule.warmup * schedule.steps))  # at most as long as the warm-up
        self._ends, self._last = windows(schedule.warmup)
        self._short = self._ends[min(1, len(self._ends) - 1)] if self._ends else self._last
        first = RunningCurvature(len(walker.w))
        first.add(model.rows, walker.w, walker.work, rng, FIRST_PROBES)
        walker.curvature = self._curvature(first)
        self._sizes = StepSize(FIRST_STEP, schedule.target_acceptance)
        self._window = RunningCurvature(len(walker.w))
        self._acceptance = 0.0  # probability of the last trajectory, 0 if it diverged
        self.divergences = 0  # after the warm-up

    @property
    def step_size(self) -> float:
        """The step size after the warm-up."""
        return self._sizes.averaged

    def warm_up(self, iteration: int) -> None:
        """Run warm-up iteration 1, 2, ..., then adapt."""
        walker, steps = self.walker, self._schedule.steps
        self._iterate(self._sizes.trial, steps if iteration > self._short else max(1, round(SHORT * steps)))
        self._sizes.update(self._acceptance)
        if iteration <= self._last:
            self._window.add(walker.model.rows, walker.w, walker.work, walker.rng)
        if iteration in self._ends:
            walker.curvature, self._window = self._curvature(self._window), RunningCurvature(len(walker.w))
            self._sizes.restart(self._sizes.averaged)

    def _curvature(self, found: RunningCurvature) -> Any:
        """Return the curvature (P,) that determines the masses."""
        return pooled(found.mean(), self.walker.model.rows.layers) if self._schedule.is_pooled else found.mean()

    def step(self) -> None:
        """Run one iteration with the adapted step size and masses."""
        self.divergences += self._iterate(self.step_size, self._schedule.steps)

    def _iterate(self, step: float, steps: int) -> bool:
        """Run one iteration and return whether its trajectory diverged."""
        self.walker.draw_hyperparameters()
        acceptance = self.walker.move(step, steps)
        diverged = math.isnan(acceptance)
        self._acceptance = 0.0 if diverged else acceptance
        return diverged

    def trace(self) -> dict[str, float]:
        """Return the scalars recorded at every iteration; standard deviations are in standardised units."""
        return {
            "log_joint": self.walker.log_joint(),
            "noise_deviation": math.sqrt(self.walker.noise),
            "prior_deviation": math.sqrt(float(self.walker.prior.mean())),
            "acceptance": self._acceptance,
        }

    def monitor(self) -> dict[str, Any]:
        """Return the noise standard deviation, those (G,) of the prior per group, and predictions (M,)."""
        walker = self.walker
        rows, predictions = walker.model.rows, np.empty((1, len(self._inputs)))
        work = walker.work._replace(rectified=None)  # the type that ``predict`` uses, so that one kernel serves both
        residuals.fill_outputs(self._inputs, walker.w[None], rows.layers, rows.kind, work, predictions)
        return {
            "noise_deviation": math.sqrt(walker.noise),
            "prior_deviation": np.sqrt(walker.prior),
            "predictions": predictions[0],
        }

    def draw(self) -> dict[str, Any]:
        """Return copies of weights (P,), noise variance and prior variances (G,)."""
        walker = self.walker
        return {"W": walker.w.copy(), "noise_variance": walker.noise, "prior_variance": walker.prior.copy()}


def run(
    model: NetworkModel, schedule: HMCSchedule, inputs: Any, rngs: Sequence[np.random.Generator]
) -> tuple[list[ChainRecord], dict[str, float]]:
    """Run one chain per generator; predictions are monitored at ``inputs`` (M, d).

    Returns the records of the chains and diagnostics of the sampler: ``divergences`` and ``gradients`` (sums over the
    chains), ``acceptance`` and ``step_size`` (means).
    """
    chains = [HMCChain(model, schedule, inputs, rng) for rng in rngs]
    records = mcmc.run(chains, schedule)
    return records, {
        "divergences": float(sum(chain.divergences for chain in chains)),
        "acceptance": float(np.mean([record.after_warmup["acceptance"].mean() for record in records])),
        "step_size": float(np.mean([chain.step_size for chain in chains])),
        "gradients": float(sum(chain.walker.gradients for chain in chains)),
    }


def monitored_r_hats(records: Sequence[ChainRecord]) -> dict[str, float]:
    """Return the largest R-hat of predictions at the monitored training inputs, and at the midpoints between them."""
    predictions = np.array([record.monitored["predictions"] for record in records])
    draws = mcmc_diagnostics.monitored_draws(predictions.shape[1])
    found: dict[str, float] = {}
    for name, part in zip(("training_inputs", "midpoints"), np.split(predictions[:, draws], 2, axis=2), strict=True):
        measures, _ = mcmc_diagnostics.measures(name, part)
        found |= {key: value for key, value in measures.items() if key.startswith("r_hat_")}
    return found
