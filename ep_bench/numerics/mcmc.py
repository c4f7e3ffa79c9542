"""Markov chain Monte Carlo: one loop over several chains, and the diagnostics of their draws.

A sampler implements ``MarkovChain``. ``run`` does the warm-up of all chains iteration by iteration, so that chains may
adapt to the draws of each other, and then samples chain by chain. ``summarise`` combines the records of the chains.
Each chain has its own random generator, so its draws do not depend on the number of other chains unless they adapt
together.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ep_bench.numerics import mcmc_diagnostics

Array = NDArray[np.float64]

DIVERGENT = 0.01  # fraction of divergent draws from which on a warning reports them


@dataclass(frozen=True)
class Schedule:
    """Length of the chains."""

    warmup: int  # iterations per chain
    samples: int  # draws per chain after the warm-up
    stored: int  # draws stored for predictions, all chains together; at least one per chain


class MarkovChain(Protocol):
    """One Markov chain at its current state."""

    def warm_up(self, iteration: int) -> None:
        """Run warm-up iteration 1, 2, ..., with the adaptation that needs no other chain."""

    def step(self) -> None:
        """Run one iteration after the warm-up."""

    def trace(self) -> dict[str, float]:
        """Return scalars that are recorded at every iteration; one of them is ``log_joint`` (nats)."""

    def monitor(self) -> dict[str, ArrayLike]:
        """Return quantities (M,) that are diagnosed at every draw; the last is ``predictions``."""

    def draw(self) -> dict[str, ArrayLike]:
        """Return copies of what predictions need of a stored draw."""


class ChainRecord(NamedTuple):
    """Everything recorded of one chain."""

    trace: dict[str, Array]  # name -> (warmup + samples,)
    monitored: dict[str, Array]  # name -> (samples, M)
    draws: dict[str, Array]  # name -> (S, ...), evenly spaced among the samples

    @property
    def after_warmup(self) -> dict[str, Array]:
        """The trace of the samples: name -> (samples,)."""
        samples = len(next(iter(self.monitored.values())))
        return {name: values[-samples:] for name, values in self.trace.items()}


class MCMCSummary(NamedTuple):
    """The stored draws of all chains and their diagnostics."""

    draws: dict[str, Array]  # name -> (S, ...), chain by chain
    chain: NDArray[np.int64]  # (S,) chain of each draw
    chains: dict[str, Array]  # name -> (chains, draws), as ``diagnose`` returns it
    diagnostics: dict[str, float]
    trace: dict[str, list[float]]  # one value per iteration, warm-up first: means over the chains
    problem: str  # why the chains have not converged, or ''


def _no_adaptation(iteration: int) -> None:
    pass


def run(
    chains: Sequence[MarkovChain], schedule: Schedule, adapt: Callable[[int], None] = _no_adaptation
) -> list[ChainRecord]:
    """Run the chains and return their records.

    ``adapt(iteration)`` is called after each warm-up iteration of all chains, for adaptation that combines them.
    """
    traces: list[list[dict[str, float]]] = [[] for _ in chains]
    for iteration in range(1, schedule.warmup + 1):
        for chain, trace in zip(chains, traces, strict=True):
            chain.warm_up(iteration)
            trace.append(chain.trace())
        adapt(iteration)
    stored = stored_draws(schedule.samples, schedule.stored // len(chains))
    return [_sample(chain, schedule.samples, stored, trace) for chain, trace in zip(chains, traces, strict=True)]


def stored_draws(samples: int, stored: int) -> set[int]:
    """Return the indices of ``stored`` draws (at least one, at most all), evenly spaced among 0, ..., samples - 1."""
    return set(np.linspace(0, samples - 1, min(max(stored, 1), samples)).round().astype(int).tolist())


def _sample(chain: MarkovChain, samples: int, stored: set[int], trace: list[dict[str, float]]) -> ChainRecord:
    monitored, draws = [], []
    for index in range(samples):
        chain.step()
        trace.append(chain.trace())
        monitored.append(chain.monitor())
        if index in stored:
            draws.append(chain.draw())
    return ChainRecord(_stacked(trace), _stacked(monitored), _stacked(draws))


def _stacked(rows: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def summarise(
    records: Sequence[ChainRecord], schedule: Schedule, counts: Mapping[str, float] | None = None
) -> MCMCSummary:
    """Combine the records of all chains.

    ``counts`` are further diagnostics of the sampler. ``divergences`` among them (draws after divergent trajectories,
    all chains together) is reported in ``problem`` if the chains have not converged.
    """
    quantities = {"log_joint": np.array([record.after_warmup["log_joint"][:, None] for record in records])}
    for name in records[0].monitored:
        values = np.array([record.monitored[name] for record in records])
        quantities[name] = values.reshape(len(records), schedule.samples, -1)
    chains, diagnostics = diagnose(quantities)
    diagnostics |= counts or {}
    first = records[0]
    return MCMCSummary(
        {name: np.concatenate([record.draws[name] for record in records]) for name in first.draws},
        np.repeat(np.arange(len(records)), [len(next(iter(record.draws.values()))) for record in records]),
        chains,
        diagnostics,
        {name: np.mean([record.trace[name] for record in records], axis=0).tolist() for name in first.trace},
        convergence_problem(diagnostics, len(records), schedule.samples),
    )


def diagnose(quantities: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, float]]:
    """Return monitored series, (chains, draws) each, and diagnostics of quantities (chains, draws, M).

    The diagnostics are ``mcmc_diagnostics.measures`` of each quantity: the worst of its M series. A series has the name
    of its quantity, with a suffix ``_1``, ``_2``, ... if M > 1. Of ``predictions`` the only series is ``prediction``,
    at the monitored input with the largest R-hat. Long chains are thinned to ``mcmc_diagnostics.DRAWS`` draws.
    """
    series: dict[str, Array] = {}
    diagnostics: dict[str, float] = {}
    for name, values in quantities.items():
        kept = values[:, mcmc_diagnostics.monitored_draws(values.shape[1])]
        measures, worst = mcmc_diagnostics.measures(name, kept)
        diagnostics |= measures
        if name == "predictions":
            series["prediction"] = kept[:, :, worst]
        elif kept.shape[2] == 1:
            series[name] = kept[:, :, 0]
        else:
            series |= {f"{name}_{number + 1}": kept[:, :, number] for number in range(kept.shape[2])}
    return series, diagnostics


def convergence_problem(diagnostics: Mapping[str, float], chains: int, samples: int) -> str:
    """Return why the predictions of the chains have not converged, or ''."""
    reason = mcmc_diagnostics.unmixed(
        diagnostics, f"{chains} {'chain' if chains == 1 else 'chains'} of {samples} draws"
    )
    divergent = diagnostics.get("divergences", 0.0) / (chains * samples)
    if reason and divergent > DIVERGENT:
        reason += f", {divergent:.0%} of them divergent"
    return f"{reason}; a longer warm-up and more samples may help" if reason else ""


def warn(problem: str, stacklevel: int) -> None:
    """Warn with scikit-learn's ConvergenceWarning if there is a problem; ``stacklevel`` counts from this function."""
    if problem:
        from ep_bench.errors import ConvergenceWarning

        warnings.warn(problem, ConvergenceWarning, stacklevel=stacklevel)
