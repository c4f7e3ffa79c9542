"""Simulation-based calibration of Hamiltonian Monte Carlo (Talts, Betancourt, Simpson, Vehtari and Gelman 2018).

True parameters (hyperparameters included) and targets are drawn from the prior. A chain is run on the targets and
thinned to almost independent draws. If the sampler draws from the posterior, the rank of the true value of any quantity
among L draws is uniform over 0, ..., L. The quantities are the network's outputs at two further inputs, the standard
deviations of noise and prior, and the log joint density, which depends on all parameters. With known variances, as in
reference posteriors, the standard deviations are left out.

Inputs are standard normal and new in each replication. The networks are small and the hyperpriors proper and narrow, so
that one replication takes a fraction of a second. The hyperpriors of the other studies are too broad for this: most
data sets drawn from them are unrealistic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from ep_bench.experiments.method_entries import Options
from ep_bench.methods import hmc
from ep_bench.methods.hmc import hyperparameters
from ep_bench.methods.hmc.chain import HMCSchedule, run
from ep_bench.methods.hmc.draws import JointDraw, draw_joint
from ep_bench.options import NEUTRAL
from ep_bench.types import Array, Indices, Rows

if TYPE_CHECKING:
    from ep_bench.numerics.mcmc import ChainRecord

QUANTITIES = ("first output", "second output", "noise deviation", "prior deviation", "log joint")
UNKNOWN = (0, 1, 4)  # of these, if the variances are known


class Case(Options):
    """A network and its prior, as options of the method."""

    label: str
    activation: Literal["relu", "tanh", "probit"] = "relu"
    prior: Literal["gaussian", "ard"] = "gaussian"
    prior_scales: Literal["one", "layer"] = "one"
    hidden: tuple[PositiveInt, ...] = (3,)
    masses: Literal["per weight", "pooled"] = "per weight"
    gradients: Literal["double", "single"] = "double"

    @model_validator(mode="after")
    def _possible(self) -> Case:
        hyperparameters.refuse_scales(self.prior, self.prior_scales)
        return self


class Config(Options):
    """Options of the experiment; the numbers are ours."""

    cases: tuple[Case, ...] = Field(
        (
            Case(label="rectified, one variance"),
            Case(label="rectified, a variance an input", prior="ard"),
            Case(label="tanh, a variance a layer", activation="tanh", prior_scales="layer"),
            Case(label="rectified, two layers", hidden=(3, 2)),
            Case(label="rectified, pooled masses, single precision", masses="pooled", gradients="single"),
        ),
        min_length=1,
        description="networks and priors",
    )
    replications: int = Field(300, ge=20, description="draws of the true parameters from the prior, per case")
    inputs: PositiveInt = Field(2, description="of the network")
    rows: PositiveInt = Field(8, description="data points per data set")
    draws: int = Field(19, ge=4, description="draws of a chain, among which the true value is ranked (L)")
    thin: PositiveInt = Field(12, description="iterations per draw")
    warmup: PositiveInt = Field(120, description="iterations of a chain's warm-up")
    steps: PositiveInt = Field(20, description="mean number of leapfrog steps per trajectory")
    weight_prior: tuple[PositiveFloat, PositiveFloat] = Field((3.0, 2.0), description="as the option of the method")
    noise_prior: tuple[PositiveFloat, PositiveFloat] = Field((3.0, 0.5), description="as the option of the method")
    variances: tuple[tuple[PositiveFloat, PositiveFloat], ...] | None = Field(
        None, json_schema_extra={NEUTRAL: None}, description="known variances of noise and weights of each case"
    )

    @model_validator(mode="after")
    def _one_per_case(self) -> Config:
        if self.variances is not None and len(self.variances) != len(self.cases):
            raise ValueError(f"variances must have one pair per case, {len(self.cases)}")
        return self

    @property
    def quantities(self) -> tuple[int, ...]:
        """Indices of the ranked quantities in ``QUANTITIES``."""
        return UNKNOWN if self.variances else tuple(range(len(QUANTITIES)))


def compute(config: Config, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the arrays of the figure, and one summary row per case and quantity.

    ``ranks`` (cases, replications, quantities) are among 0, ..., ``draws``; ``labels`` and ``quantities`` name the
    cases and the quantities.
    """
    from threadpoolctl import threadpool_limits

    streams = np.random.default_rng(seed).spawn(len(config.cases))
    quantities = np.array(QUANTITIES)[list(config.quantities)]
    with threadpool_limits(1):  # threads are slower for such small matrices
        ranks = np.array([_ranks(config, index, rng) for index, rng in enumerate(streams)])
    summary = [
        {"case": case.label, "quantity": str(quantity), "replications": config.replications, **judge(of, config.draws)}
        for case, part in zip(config.cases, ranks, strict=True)
        for quantity, of in zip(quantities, part.T, strict=True)
    ]
    labels = np.array([case.label for case in config.cases])
    return {"ranks": ranks, "labels": labels, "quantities": quantities, "draws": np.array(config.draws)}, summary


def judge(ranks: Indices, draws: int) -> dict[str, float]:
    """Return measures of the non-uniformity of ranks (R,) among 0, ..., ``draws``.

    ``chi_square`` is Pearson's statistic with one bar per rank, ``p_value`` its p-value. ``shift`` is the difference
    between the mean rank and the middle rank, ``spread`` the difference between the mean squared distance from the
    middle and its expectation; both are in standard errors.
    """
    from scipy.stats import chi2

    bars = draws + 1
    counts = np.bincount(ranks, minlength=bars)
    expected = len(ranks) / bars
    chi_square = float(np.sum((counts - expected) ** 2) / expected)
    centred, grid = (ranks - 0.5 * draws) / bars, (np.arange(bars) - 0.5 * draws) / bars
    measures = {"chi_square": chi_square, "p_value": float(chi2.sf(chi_square, draws))}
    for name, power in (("shift", 1), ("spread", 2)):
        uniform = grid**power
        measures[name] = float((np.mean(centred**power) - uniform.mean()) / (uniform.std() / np.sqrt(len(ranks))))
    return {key: round(value, 4) for key, value in measures.items()}


def _ranks(config: Config, index: int, rng: np.random.Generator) -> Indices:
    """Return the ranks (replications, quantities) of a case."""
    case, (noise, prior) = config.cases[index], config.variances[index] if config.variances else (None, None)
    options = hmc.Config(
        **case.model_dump(exclude={"label"}), weight_prior=config.weight_prior, noise_prior=config.noise_prior,
        noise_variance=noise, prior_variance=prior,
    )  # fmt: skip
    schedule = HMCSchedule(
        config.warmup, config.draws * config.thin, 1, config.steps, options.target_acceptance,
        is_pooled=case.masses == "pooled", is_single=case.gradients == "single",
    )  # fmt: skip
    ranks = []
    for stream in rng.spawn(config.replications):
        X, further = stream.standard_normal((config.rows, config.inputs)), stream.standard_normal((2, config.inputs))
        truth, model = draw_joint(hmc.model_of(Rows(X, np.zeros(config.rows)), options), further, stream)
        (record,), _ = run(model, schedule, further, [stream])
        ranks.append(np.sum(_quantities(record)[config.thin - 1 :: config.thin] < _true(truth), axis=0))
    return np.array(ranks)[:, list(config.quantities)]


def _true(truth: JointDraw) -> Array:
    standard_deviations = np.sqrt([truth.noise, truth.prior.mean()])
    return np.array([*truth.predictions, *standard_deviations, truth.log_joint])


def _quantities(record: ChainRecord) -> Array:
    """Return the quantities (samples, Q) of all draws."""
    traced = (record.after_warmup[name] for name in ("noise_deviation", "prior_deviation", "log_joint"))
    return np.column_stack([record.monitored["predictions"], *traced])
