"""One chain: its start, warm-up and draws.

An iteration rescales the rectified units, draws the hyperparameters given the weights, and moves the weights along one
trajectory, accepted as Metropolis has it (Neal 2011, section 3.2; Duane et al. 1987). The number of leapfrog steps is
jittered, so that no direction comes back to its start each time, and their size widely: the curvature differs much
from place to place, and where a chain would be stuck, the small steps get it out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ep_bench.methods.hmc import hyperparameters
from ep_bench.methods.hmc.adaptation import RunningCurvature, StepSize, windows
from ep_bench.methods.hmc.trajectory import NetworkRows, leapfrog, potential
from ep_bench.models import mlp, residuals

START_ROUNDS, START_ITERATIONS = 3, 200  # of the search for a starting point: rounds, and L-BFGS iterations in each
FASTEST = 10.0  # the noise precision grows at most so many times from one round to the next
FIRST_PROBES = 20
FIRST_STEP = 0.1
SHORT = 0.1  # share of a trajectory's steps in the first two windows
TRACED = ("log_joint", "noise_deviation", "prior_deviation", "acceptance")
JITTER_STEPS = 0.3  # of the number of leapfrog steps, either way
JITTER_LOG_SIZE = (-1.0, 0.5)  # of the logarithm of their size


@dataclass(frozen=True)
class NetworkModel:
    """The rows, the network and the hyperpriors; a variance that is given is not drawn."""

    rows: NetworkRows
    group: Any  # (P,) group of each weight
    weight_prior: tuple[float, float]
    noise_prior: tuple[float, float]
    noise_variance: float | None
    prior_variance: float | None

    def with_targets(self, y: Any) -> NetworkModel:
        """Return the model of other targets (N,)."""
        return replace(self, rows=self.rows._replace(y=y))


@dataclass(frozen=True)
class HMCSchedule:
    """How a chain runs."""

    warmup: int
    samples: int
    steps: int  # mean number of leapfrog steps of a trajectory
    target_acceptance: float
    stored: int  # draws that are kept


class HMCChain(NamedTuple):
    """What a chain leaves; S draws are kept of ``samples`` iterations."""

    W: Any  # (S, P)
    noise_variance: Any  # (S,)
    prior_variance: Any  # (S, G)
    log_joint: Any  # (samples,) nats, of weights, variances and targets
    noise_deviation: Any  # (samples,)
    prior_deviation: Any  # (samples,) root of the groups' mean variance
    prior_deviations: Any  # (samples, G)
    acceptance: Any  # (samples,)
    predictions: Any  # (samples, M) at the monitored rows
    divergences: int
    step_size: float
    gradients: int
    warmup_trace: dict[str, list[float]]


class _Walker:
    """The moving part of a chain: weights, hyperparameters, masses."""

    def __init__(self, model: NetworkModel, rng: np.random.Generator) -> None:
        self.model, self.rng = model, rng
        layers = model.rows.layers
        self.work = residuals.workspace(layers, model.rows.kind, len(model.rows.y))
        self.w = mlp.initial_weights(layers, rng)
        groups = int(model.group.max()) + 1
        self.noise = model.noise_variance or 1.0
        self.prior = np.full(groups, model.prior_variance or 1.0)
        self.gradients = 0
        self.curvature = np.ones_like(self.w)
        self._g = np.empty_like(self.w)
        self.error = self._potential(self.w)[1]

    def _potential(self, w: Any) -> tuple[float, float]:
        self.gradients += 1
        return potential(self.model.rows, w, 1.0 / self.noise, self.tau, self.work, self._g)

    @property
    def tau(self) -> Any:
        """Prior precisions (P,)."""
        return (1.0 / self.prior)[self.model.group]

    def start(self, iterations: int) -> None:
        """Go near a mode: weights by so many iterations of L-BFGS and hyperparameters near their means, in turns.

        The chains start from different weights, and so near different modes.
        """
        from scipy.optimize import minimize

        model = self.model
        for _ in range(START_ROUNDS if iterations else 0):
            found = minimize(self._objective, self.w, jac=True, method="L-BFGS-B", options={"maxiter": iterations})
            if np.isfinite(found.x).all() and found.fun < np.inf:
                self.w = np.array(found.x)
            self.error = self._potential(self.w)[1]
            if model.noise_variance is None:
                a, b = model.noise_prior
                mean = (b + self.error) / (a + 0.5 * len(model.rows.y))
                self.noise = max(mean, self.noise / FASTEST)
            if model.prior_variance is None:
                a, b = model.weight_prior
                counts = np.bincount(model.group)
                squares = np.bincount(model.group, weights=self.w**2)
                self.prior = (b + 0.5 * squares) / (a + 0.5 * counts)

    def _objective(self, w: Any) -> tuple[float, Any]:
        return self._potential(np.ascontiguousarray(w))[0], self._g.copy()

    def draw_hyperparameters(self) -> None:
        """Take the moves that need no gradient."""
        model = self.model
        if model.rows.kind == residuals.RELU:
            hyperparameters.rescale(self.w, model.rows.layers, self.tau, self.rng)
        if model.prior_variance is None:
            self.prior = hyperparameters.draw_prior_variances(self.w, model.group, model.weight_prior, self.rng)
        if model.noise_variance is None:
            a, b = model.noise_prior
            self.noise = float(hyperparameters.draw_variance(a + 0.5 * len(model.rows.y), b + self.error, self.rng))

    def move(self, step: float, steps: int) -> float:
        """Move the weights along a trajectory and accept or not; return the probability, NaN of a divergence."""
        tau, beta = self.tau, 1.0 / self.noise
        mass = beta * self.curvature + tau
        p = np.sqrt(mass) * self.rng.standard_normal(len(mass))
        size = step * math.exp(self.rng.uniform(*JITTER_LOG_SIZE))
        count = max(1, round(steps * (1.0 + JITTER_STEPS * self.rng.uniform(-1.0, 1.0))))
        w = self.w.copy()
        change, error, gradients = leapfrog(self.model.rows, w, p, beta, tau, 1.0 / mass, size, count, self.work)
        self.gradients += gradients
        accepted = self.rng.random() < math.exp(min(0.0, -change))
        if accepted:
            self.w, self.error = w, error
        return math.exp(min(0.0, -change)) if change < np.inf else math.nan

    def log_joint(self) -> float:
        """Return the log density of weights, variances and targets."""
        return log_joint(self.model, self.w, self.error, self.noise, self.prior)


def log_joint(model: NetworkModel, w: Any, error: float, noise: float, prior: Any) -> float:
    """Return the log density (nats) of weights w (P,), variances and targets.

    ``error`` is half the sum of squared residuals, ``noise`` and ``prior`` (G,) are variances; those that are given
    have no density.
    """
    n, counts, squares = len(model.rows.y), np.bincount(model.group), np.bincount(model.group, weights=w**2)
    total = -0.5 * n * math.log(2.0 * math.pi * noise) - error / noise
    total -= float(0.5 * np.sum(counts * np.log(2.0 * np.pi * prior) + squares / prior))
    if model.noise_variance is None:
        total += hyperparameters.log_inverse_gamma(np.array([noise]), model.noise_prior)
    if model.prior_variance is None:
        total += hyperparameters.log_inverse_gamma(prior, model.weight_prior)
    return total


def run(model: NetworkModel, schedule: HMCSchedule, monitored: Any, rng: np.random.Generator) -> HMCChain:
    """Return a chain; ``monitored`` (M, d) are the rows whose predictions are kept of every draw."""
    walker = _Walker(model, rng)
    walker.start(min(START_ITERATIONS, schedule.warmup * schedule.steps))  # no longer than the warm-up itself
    step, trace = _warm_up(walker, schedule)
    return _sample(walker, schedule, step, trace, monitored)


def _warm_up(walker: _Walker, schedule: HMCSchedule) -> tuple[float, dict[str, list[float]]]:
    """Learn masses and step size; return the latter and the trace."""
    closes, end = windows(schedule.warmup)
    short = closes[min(1, len(closes) - 1)] if closes else end
    first = RunningCurvature(len(walker.w))
    first.learn(walker.model.rows, walker.w, walker.work, walker.rng, FIRST_PROBES)
    walker.curvature = first.mean()
    sizes, window = StepSize(FIRST_STEP, schedule.target_acceptance), RunningCurvature(len(walker.w))
    trace: dict[str, list[float]] = {name: [] for name in TRACED}
    for iteration in range(1, schedule.warmup + 1):
        walker.draw_hyperparameters()
        steps = schedule.steps if iteration > short else max(1, round(SHORT * schedule.steps))
        acceptance = walker.move(sizes.trial, steps)
        sizes.learn(0.0 if math.isnan(acceptance) else acceptance)
        _note(trace, walker, acceptance)
        if iteration <= end:
            window.learn(walker.model.rows, walker.w, walker.work, walker.rng)
        if iteration in closes:
            walker.curvature, window = window.mean(), RunningCurvature(len(walker.w))
            sizes.restart(sizes.settled)
    return sizes.settled, trace


def _note(trace: dict[str, list[float]], walker: _Walker, acceptance: float) -> None:
    trace["log_joint"].append(walker.log_joint())
    trace["noise_deviation"].append(math.sqrt(walker.noise))
    trace["prior_deviation"].append(math.sqrt(float(walker.prior.mean())))
    trace["acceptance"].append(0.0 if math.isnan(acceptance) else acceptance)


def _sample(
    walker: _Walker, schedule: HMCSchedule, step: float, warmup: dict[str, list[float]], monitored: Any
) -> HMCChain:
    """Draw; the kept draws stand evenly among all."""
    rows, n = walker.model.rows, schedule.samples
    kept = np.unique(np.linspace(0, n - 1, min(schedule.stored, n)).round().astype(int))
    place = {int(at): index for index, at in enumerate(kept)}
    W, noise = np.empty((len(kept), len(walker.w))), np.empty(len(kept))
    prior = np.empty((len(kept), len(walker.prior)))
    trace: dict[str, list[float]] = {name: [] for name in warmup}
    predictions, deviations, divergences = np.empty((n, len(monitored))), np.empty((n, len(walker.prior))), 0
    for at in range(n):
        walker.draw_hyperparameters()
        acceptance = walker.move(step, schedule.steps)
        divergences += math.isnan(acceptance)
        _note(trace, walker, acceptance)
        deviations[at] = np.sqrt(walker.prior)
        work = walker.work._replace(
            workspace=None
        )  # the type that predictions have too, so that one kernel serves both
        residuals.fill_outputs(monitored, walker.w[None], rows.layers, rows.kind, work, predictions[at : at + 1])
        if at in place:
            W[place[at]], noise[place[at]], prior[place[at]] = walker.w, walker.noise, walker.prior
    series: dict[str, Any] = {name: np.array(trace[name]) for name in TRACED}
    return HMCChain(
        W, noise, prior, **series, prior_deviations=deviations, predictions=predictions, divergences=divergences,
        step_size=step, gradients=walker.gradients, warmup_trace=warmup,
    )  # fmt: skip
