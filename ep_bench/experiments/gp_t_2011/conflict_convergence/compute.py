"""Expectation propagation on two contradicting observations, sweep by sweep (figure 3).

The data are those of example 2 of ``conflict_examples``, at hyperparameters with a bimodal posterior. The experiment
records the approximate evidence and the precisions of the sites of y1, ..., y4 after each sweep of a scheme, which
starts with empty sites. A scheme is a sequence of stages; each stage starts from the final state of the previous one.
The evidence is not defined if a cavity is improper.

The paper's sigma_se = 3 is a standard deviation by its equation (2), so that the magnitude is 9; the study
``student_t_convergence_3`` has 3. Sequential sweeps are also counted over random orders of the sites (section 5.1).

Deviation: the example is ours. Sweeps are those of ``gp_t``: a sweep that would make the posterior improper is
shortened. The double loop is that of the paper (``moment_matching``), and next to it that of ``gp_t`` with Newton's
inner steps, one round of which corresponds to several of the paper's iterations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, PositiveInt

from ep_bench.experiments.gp_t_2011 import INNER_STEPS
from ep_bench.experiments.gp_t_2011.conflict_examples import ExampleHyperparameters, covariances, example
from ep_bench.experiments.method_entries import Options
from ep_bench.methods.gp_t import sweeps
from ep_bench.methods.gp_t.double_loop import double_loop
from ep_bench.methods.gp_t.moment_matching import moment_matching
from ep_bench.methods.gp_t.sites import CLOSE, SiteModel, SitePosterior, empty, log_evidence
from ep_bench.types import Array

MONITORED = 4  # sites, those of the first data points
ORDER_SWEEPS, ORDER_CLOSE = 200, 1e-4  # sweeps per order, at most; mismatch of convergence, the paper's


Updates = Literal["sequential", "parallel", "double_loop", "moment_matching"]


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


FIVE = (Stage(updates="parallel", damping=0.5, sweeps=5),)


class Config(Options):
    """Options of the experiment."""

    schemes: tuple[Scheme, ...] = Field(
        (
            Scheme(label="sequential, δ = 0.8", stages=_plain("sequential", 0.8)),
            Scheme(label="sequential, δ = 0.5", stages=_plain("sequential", 0.5)),
            Scheme(label="parallel, δ = 0.5", stages=_plain("parallel", 0.5)),
            Scheme(label="double loop", stages=_plain("moment_matching", 0.8)),
            Scheme(label="5 parallel, double loop", stages=(*FIVE, *_plain("moment_matching", 0.8))),
            Scheme(label="parallel, δ = 1, η = 0.5", stages=_plain("parallel", 1.0), fraction=0.5),
            Scheme(label="double loop, Newton", stages=_plain("double_loop")),
            Scheme(label="5 parallel, Newton", stages=(*FIVE, *_plain("double_loop"))),
        ),
        min_length=1,
        max_length=8,
        description="schemes of updates (figure 3)",
    )
    lengthscale: PositiveFloat = Field(0.88, description="of the squared exponential (figure 3: 0.88)")
    magnitude: PositiveFloat = Field(9.0, description="variance of the squared exponential (figure 3: sigma_se = 3)")
    scale: PositiveFloat = Field(0.1, description="sigma of the Student-t (figure 3: 0.1)")
    nu: PositiveFloat = Field(2.0, description="degrees of freedom (figure 3: 2)")
    orders: PositiveInt = Field(10, description="random orders of the sites in sequential sweeps (section 5.1); ours")
    order_dampings: tuple[float, ...] = Field((0.5, 0.25), description="their dampings (section 5.1: 0.5, below 0.3)")


def compute(config: Config, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the arrays of the figure, and one summary row per scheme.

    ``labels`` name the schemes. For scheme i, after each of its S sweeps: ``log_evidence_<i>`` (S,), nats, NaN if a
    cavity is improper; ``precisions_<i>`` (S, 4) of the sites of y1, ..., y4; ``mismatch_<i>`` (S,), infinite if a
    cavity is improper; ``stage_<i>`` (S,), the index of its stage. ``order_mismatch`` (D, O): the mismatch after
    ``ORDER_SWEEPS`` sequential sweeps with each of the D ``order_dampings`` in each of O orders of the sites.
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
    model = SiteModel(K, data.y, config.nu, config.scale, 1.0)
    orders = [np.random.default_rng(seed + i).permutation(len(data.y)) for i in range(config.orders)]
    arrays["order_dampings"] = np.array(config.order_dampings)
    arrays["order_mismatch"] = np.array([[_in_order(model, o, d) for o in orders] for d in config.order_dampings])
    return arrays, summary


def _in_order(model: SiteModel, order: NDArray[np.intp], damping: float) -> float:
    """Return the mismatch after sequential sweeps over the sites in an order."""
    turned = model._replace(K=model.K[np.ix_(order, order)], y=model.y[order])
    for now in islice(sweeps.sequential(turned, empty(turned), damping), ORDER_SWEEPS):
        if now.mismatch < ORDER_CLOSE:
            break
    return float(now.mismatch)


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
    if stage.updates == "moment_matching":
        return moment_matching(model, start, stage.damping, INNER_STEPS)
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
