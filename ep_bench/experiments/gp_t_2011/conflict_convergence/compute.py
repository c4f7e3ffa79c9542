"""Expectation propagation on two contradicting observations, sweep by sweep (Jylanki and others 2011, figure 3).

Of example 2 of ``conflict_examples``, at hyperparameters where the posterior is bimodal: the approximate evidence and
the precisions of the sites of y1, ..., y4 after each sweep of a scheme, from empty sites. A scheme is a row of stages,
each of which starts where the one before it ends. The evidence is not defined where a cavity is improper.

Deviation: the example is ours; hyperparameters are the paper's but for a magnitude of 3, where the paper has sigma_se =
3. Sweeps are those of ``gp_t``: one that would make the posterior improper is shortened; its double loop has Newton's
inner steps, and one round stands for several of the paper's iterations. Three parallel sweeps come before it where the
paper has five, after which cavities are improper here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from ep_bench.experiments.gp_t_2011.conflict_examples import ExampleHyperparameters, covariances, example
from ep_bench.methods.gp_t import sweeps
from ep_bench.methods.gp_t.double_loop import double_loop
from ep_bench.methods.gp_t.sites import CLOSE, SiteModel, SitePosterior, empty, log_evidence
from ep_bench.types import Array

WATCHED = 4  # sites, those of the first rows


Updates = Literal["sequential", "parallel", "double_loop"]


class Stage(BaseModel):
    """So many sweeps of one kind, or fewer where it converges."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    updates: Updates
    damping: float = Field(
        1.0, gt=0.0, le=1.0, description="share of an update that is made (delta), but for the double loop"
    )
    sweeps: PositiveInt = Field(100, description="or rounds of the double loop's outer loop, at most")


class Scheme(BaseModel):
    """Stages, one after the other."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: str
    stages: tuple[Stage, ...] = Field(min_length=1)
    fraction: float = Field(1.0, gt=0.0, le=1.0, description="power eta of the likelihood")


def _plain(updates: Updates, damping: float = 1.0) -> tuple[Stage, ...]:
    return (Stage(updates=updates, damping=damping),)


class Config(BaseModel):
    """Options of the experiment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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


def compute(config: Config, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:  # noqa: ARG001 nothing is drawn
    """Return the arrays of the figure and one summary row a scheme.

    Of scheme i, after each of its S sweeps: ``log_evidence_<i>`` (S,), nats, NaN where a cavity is improper,
    ``precisions_<i>`` (S, 4) of the sites of y1, ..., y4, ``mismatch_<i>`` (S,), infinite where a cavity is improper,
    and ``stage_<i>`` (S,), which stage it belongs to. ``labels`` name the schemes.
    """
    data = example(2)
    K = covariances(data.x, ExampleHyperparameters(config.lengthscale, config.magnitude, config.scale, config.nu))
    arrays: dict[str, Any] = {"labels": np.array([scheme.label for scheme in config.schemes])}
    summary = []
    for i, scheme in enumerate(config.schemes):
        model = SiteModel(K, data.y, config.nu, config.scale, scheme.fraction)
        path = list(states(model, scheme.stages))
        evidences = np.array([log_evidence(now, scheme.fraction) for _, now in path])
        mismatches = np.array([now.mismatch for _, now in path])
        arrays |= {
            f"log_evidence_{i}": evidences,
            f"precisions_{i}": np.array([now.tau[:WATCHED] for _, now in path]),
            f"mismatch_{i}": mismatches,
            f"stage_{i}": np.array([stage for stage, _ in path]),
        }
        summary.append({"scheme": scheme.label, **_row(evidences, mismatches)})
    return arrays, summary


def states(model: SiteModel, stages: tuple[Stage, ...]) -> Iterator[tuple[int, SitePosterior]]:
    """Yield the stage and the state after each sweep, until one has converged."""
    now = empty(model)
    for place, stage in enumerate(stages):
        for now in islice(_updates(model, now, stage), stage.sweeps):  # noqa: B020 each stage goes on from the last
            yield place, now
            if now.mismatch < CLOSE:
                return


def _updates(model: SiteModel, start: SitePosterior, stage: Stage) -> Iterator[SitePosterior]:
    if stage.updates == "double_loop":
        return double_loop(model, start)
    kind = {"sequential": sweeps.sequential, "parallel": sweeps.parallel}[stage.updates]
    return kind(model, start, stage.damping)


def _row(evidences: Array, mismatches: Array) -> dict[str, Any]:
    """Return how a scheme ended: where it stands, how close, and how often its evidence was not defined."""
    return {
        "sweeps": len(evidences),
        "converged": bool(mismatches[-1] < CLOSE),
        "mismatch": float(f"{mismatches[-1]:.3g}"),
        "log_evidence": round(float(evidences[-1]), 6) if math.isfinite(evidences[-1]) else "",
        "undefined": int(np.isnan(evidences).sum()),
    }
