"""Expectation propagation on two contradicting observations, sweep by sweep (figure 3).

The data are those of example 2 of ``conflict_examples``, at hyperparameters with a bimodal posterior. The experiment
records the approximate evidence and the precisions of the sites of y1, ..., y4 after each sweep of a scheme, which
starts with empty sites. A scheme is a sequence of stages; each stage starts from the final state of the previous one.
The evidence is not defined if a cavity is improper.

Deviation: the example is ours. The hyperparameters are the paper's, except for a magnitude of 3, where the paper has
sigma_se = 3. Sweeps are those of ``gp_t``: a sweep that would make the posterior improper is shortened. Its double loop
has Newton's inner steps, so that one round corresponds to several of the paper's iterations. Three parallel sweeps
precede it, where the paper has five; after five, cavities are improper here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any, Literal

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from ep_bench.experiments.gp_t_2011.conflict_examples import ExampleHyperparameters, covariances, example
from ep_bench.experiments.method_entries import Options
from ep_bench.methods.gp_t import sweeps
from ep_bench.methods.gp_t.double_loop import double_loop
from ep_bench.methods.gp_t.sites import CLOSE, SiteModel, SitePosterior, empty, log_evidence
from ep_bench.types import Array

MONITORED = 4  # sites, those of the first data points


Updates = Literal["sequential", "parallel", "double_loop"]


class Stage(Options):
    """Sweeps of one kind, until convergence or a maximum number."""

    updates: Updates
    damping: float = Field(
        1.0, gt=0.0, le=1.0, description="damping factor delta of updates, ignored by the double loop"
    )
    sweeps: PositiveInt = Field(100, description="maximum number of sweeps, or of outer rounds of the double loop")


class Scheme(Options):
    """A sequence of stages."""

    label: str
    stages: tuple[Stage, ...] = Field(min_length=1)
    fraction: float = Field(1.0, gt=0.0, le=1.0, description="power eta of the likelihood")


def _plain(updates: Updates, damping: float = 1.0) -> tuple[Stage, ...]:
    return (Stage(updates=updates, damping=damping),)


class Config(Options):
    """Options of the experiment."""

    schemes: tuple[Scheme, ...] = Field(
        (
            Scheme(label="sequential, δ = 0.8", stages=_plain("sequential", 0.8)),
            Scheme(label="sequential, δ = 0.5", stages=_plain("sequential", 0.5)),
            Scheme(label="parallel, δ = 0.5", stages=_plain("parallel", 0.5)),
            Scheme(label="double loop", stages=_plain("double_loop")),
            Scheme(
                label="3 parallel, double loop",
                stages=(Stage(updates="parallel", damping=0.5, sweeps=3), Stage(updates="double_loop")),
            ),
            Scheme(label="parallel, δ = 1, η = 0.5", stages=_plain("parallel", 1.0), fraction=0.5),
        ),
        min_length=1,
        max_length=8,
        description="schemes of updates (figure 3)",
    )
    lengthscale: PositiveFloat = Field(0.88, description="of the squared exponential (figure 3: 0.88)")
    magnitude: PositiveFloat = Field(3.0, description="variance of the squared exponential; ours")
    scale: PositiveFloat = Field(0.1, description="sigma of the Student-t (figure 3: 0.1)")
    nu: PositiveFloat = Field(2.0, description="degrees of freedom (figure 3: 2)")


def compute(config: Config, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:  # noqa: ARG001 no random numbers
    """Return the arrays of the figure, and one summary row per scheme.

    ``labels`` name the schemes. For scheme i, after each of its S sweeps: ``log_evidence_<i>`` (S,), nats, NaN if a
    cavity is improper; ``precisions_<i>`` (S, 4) of the sites of y1, ..., y4; ``mismatch_<i>`` (S,), infinite if a
    cavity is improper; ``stage_<i>`` (S,), the index of its stage.
    """
    data = example(2)
    K = covariances(data.x, ExampleHyperparameters(config.lengthscale, config.magnitude, config.scale, config.nu))
    arrays: dict[str, Any] = {"labels": np.array([scheme.label for scheme in config.schemes])}
    summary = []
    for i, scheme in enumerate(config.schemes):
        model = SiteModel(K, data.y, config.nu, config.scale, scheme.fraction)
        history = list(states(model, scheme.stages))
        evidences = np.array([log_evidence(now, scheme.fraction) for _, now in history])
        mismatches = np.array([now.mismatch for _, now in history])
        arrays |= {
            f"log_evidence_{i}": evidences,
            f"precisions_{i}": np.array([now.tau[:MONITORED] for _, now in history]),
            f"mismatch_{i}": mismatches,
            f"stage_{i}": np.array([stage for stage, _ in history]),
        }
        summary.append({"scheme": scheme.label, **_row(evidences, mismatches)})
    return arrays, summary


def states(model: SiteModel, stages: tuple[Stage, ...]) -> Iterator[tuple[int, SitePosterior]]:
    """Yield the index of the stage and the state after each sweep, until convergence."""
    now = empty(model)
    for place, stage in enumerate(stages):
        for now in islice(_updates(model, now, stage), stage.sweeps):  # noqa: B020 each stage starts from the last state
            yield place, now
            if now.mismatch < CLOSE:
                return


def _updates(model: SiteModel, start: SitePosterior, stage: Stage) -> Iterator[SitePosterior]:
    if stage.updates == "double_loop":
        return double_loop(model, start)
    kind = {"sequential": sweeps.sequential, "parallel": sweeps.parallel}[stage.updates]
    return kind(model, start, stage.damping)


def _row(evidences: Array, mismatches: Array) -> dict[str, Any]:
    """Return a summary row: the final state of a scheme, and how often its evidence was not defined."""
    return {
        "sweeps": len(evidences),
        "converged": bool(mismatches[-1] < CLOSE),
        "mismatch": float(f"{mismatches[-1]:.3g}"),
        "log_evidence": round(float(evidences[-1]), 6) if math.isfinite(evidences[-1]) else "",
        "undefined": int(np.isnan(evidences).sum()),
    }
