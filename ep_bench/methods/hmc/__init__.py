"""Hamiltonian Monte Carlo (Duane et al. 1987; Neal 1996, 2011): HMC-1 of Bui et al. (2015, section 8).

A network with Gaussian weights and Gaussian noise. Weights are sampled by trajectories of Hamiltonian dynamics. The
variances of weights and noise have inverse-gamma hyperpriors and are sampled by Gibbs steps. With ``prior: ard`` there
is one prior variance per input, as in the networks by MCMC of Jylanki et al. (2014, section 4.4). Predictions are
mixtures over the draws of all chains, each with its own noise variance.

Modules: ``trajectory`` (the dynamics, with the table of symbols), ``hyperparameters`` (Gibbs steps, and moves that
leave the function of a rectified network unchanged), ``model`` (the log joint density), ``walker`` (the moves of a
chain), ``adaptation`` (step size, masses), ``chain`` (warm-up, draws and monitored quantities), ``draws`` (of outputs
and from the prior, for experiments), ``annealing`` (log evidence with known variances). The loop over the chains and
the diagnostics are in ``numerics.mcmc``.

Convergence is judged by the predictions. If the largest R-hat at the monitored inputs exceeds 1.05, the fit warns that
the chains have not converged, and keeps the draws.

Deviation: the papers use "broad" inverse-gamma priors and give no numbers. The noise prior decides the log-likelihood
if the noise is small (energy, yacht, naval), so it is an option that should be stated with every result. Bui et al.
tune step size and number of steps by Bayesian optimisation. Here dual averaging sets the step size, and the number of
steps is an option. The no-U-turn sampler is not offered: on these posteriors its trees reach any sensible depth limit
on every draw.
Deviation: Bui et al. do not state the activation of HMC-1. Here it is that of their networks by variational inference,
rectified linear units. Jylanki et al. state neither activation nor hyperpriors of their networks by MCMC (NN-MC); the
studies of their table 1 have tanh and the priors of the toolbox's authors.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from ep_bench.methods.hmc import chain, hyperparameters
from ep_bench.methods.hmc.chain import HMCSchedule
from ep_bench.methods.hmc.model import NetworkModel
from ep_bench.methods.hmc.trajectory import NetworkRows
from ep_bench.models import mlp, residuals
from ep_bench.numerics import mcmc, mcmc_diagnostics
from ep_bench.options import NEUTRAL
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Indices, Method, Rows


class Config(BaseModel):
    """Options of Hamiltonian Monte Carlo."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field(
        (50,), description="units per hidden layer; Bui et al., section 8: 50, and 100 for protein"
    )
    activation: Literal["relu", "tanh", "probit"] = Field(
        "relu",
        description="activation; probit: the scaled error function of Jylanki et al., eq. 2; ours: relu",
    )
    prior: Literal["gaussian", "ard"] = Field(
        "gaussian",
        description="prior of the weights: a common variance, or one variance per input (ard); Bui et al.: gaussian",
    )
    prior_scales: Literal["one", "layer"] = Field(
        "one", description="if the prior is gaussian: one variance for all weights, or one per layer; ours: one"
    )
    weight_prior: tuple[PositiveFloat, PositiveFloat] = Field(
        (0.1, 0.1),
        description="inverse-gamma shape and rate of the prior variances; ours, the papers call it broad",
    )
    noise_prior: tuple[PositiveFloat, PositiveFloat] = Field(
        (0.1, 0.01), description="inverse-gamma shape and rate of the noise variance, standardised target; ours"
    )
    chains: PositiveInt = Field(4, description="number of independent chains; ours")
    samples: PositiveInt = Field(1250, description="draws per chain after the warm-up; ours")
    warmup: NonNegativeInt = Field(420, description="warm-up iterations per chain; ours")
    steps: PositiveInt = Field(300, description="mean number of leapfrog steps per trajectory; ours")
    target_acceptance: float = Field(
        0.7, gt=0.0, lt=1.0, description="mean acceptance probability that the step size is adapted to; ours"
    )
    masses: Literal["per weight", "pooled"] = Field(
        "pooled",
        json_schema_extra={NEUTRAL: "per weight"},
        description="masses from the curvature averaged over exchangeable units: one per input, one for the weights of "
        "the output; or from that of each weight, the earlier default; ours",
    )
    gradients: Literal["double", "single"] = Field(
        "double",
        json_schema_extra={NEUTRAL: "double"},
        description="precision of the gradients of trajectories; single applies to one rectified hidden layer of at "
        "most 112 units, other networks have double; energies are double; ours",
    )
    stored: PositiveInt = Field(
        500,
        description="draws stored for predictions, all chains together, evenly thinned, at least one per chain; ours",
    )
    noise_variance: PositiveFloat | None = Field(
        None, description="noise variance in squared units of the standardised target; sampled if null"
    )
    prior_variance: PositiveFloat | None = Field(
        None, description="fixed prior variance of all groups of weights; sampled if null"
    )

    @model_validator(mode="after")
    def _possible(self) -> Config:
        hyperparameters.refuse_scales(self.prior, self.prior_scales)
        return self


class State(NamedTuple):
    """Draws of all chains, standardised units."""

    layers: Array  # (L, 3) as in ``models.mlp``
    activation: str
    W: Array  # (S, P) weights
    noise_variance: Array  # (S,)
    prior_variance: Array  # (S, G)
    chain: Indices  # (S,) chain of each draw
    chains: dict[str, Array]  # name -> (chains, draws), as in ``numerics.mcmc.diagnose``
    diagnostics: dict[str, float]
    converged: bool  # whether R-hat of the predictions at the monitored inputs is below its limit


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Fit to standardised data X (n, d), y (n,).

    Returns the state and a trace with one value per iteration, warm-up first: ``log_joint`` (nats), the standard
    deviations ``noise_deviation`` and ``prior_deviation`` (standardised units), and ``acceptance``, means over the
    chains. Monitored series are ``log_joint``, ``noise_deviation``, ``prior_deviation`` (with several groups of weights
    ``prior_deviation_1`` and so on) and ``prediction``.

    Warns with scikit-learn's ConvergenceWarning if the chains have not converged. Raises FloatingPointError if a draw
    is not finite.
    """
    model = model_of(train, config)
    schedule = schedule_of(config)
    inputs = mcmc_diagnostics.monitored_inputs(model.rows.X, rng)
    records, counts = chain.run(model, schedule, inputs, rng.spawn(config.chains))
    found = mcmc.summarise(records, schedule, counts | chain.monitored_r_hats(records))
    state = State(
        model.rows.layers, config.activation, **found.draws, chain=found.chain, chains=found.chains,
        diagnostics=found.diagnostics, converged=not found.problem,
    )  # fmt: skip
    if not (np.isfinite(state.W).all() and np.isfinite(state.noise_variance).all()):
        raise FloatingPointError("a draw is not finite; other priors or a larger target_acceptance may help")
    mcmc.warn(found.problem, stacklevel=3)
    return state, found.trace


def model_of(train: Rows, config: Config) -> NetworkModel:
    """Return the model of standardised data under the options."""
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    layers = mlp.layout(X.shape[1], config.hidden)
    return NetworkModel(
        NetworkRows(X, y, layers, residuals.ACTIVATIONS[config.activation]),
        hyperparameters.groups(layers, config.prior, config.prior_scales),
        config.weight_prior, config.noise_prior, config.noise_variance, config.prior_variance,
    )  # fmt: skip


def schedule_of(config: Config) -> HMCSchedule:
    """Return length and numerical settings of the chains under the options."""
    return HMCSchedule(
        config.warmup, config.samples, config.stored, config.steps, config.target_acceptance,
        is_pooled=config.masses == "pooled", is_single=config.gradients == "single",
    )  # fmt: skip


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG001
    """Return the mixture over the draws at inputs X (n, d), standardised units, noise included; ``rng`` is not used."""
    outputs = residuals.outputs(X, state.W, state.layers, residuals.ACTIVATIONS[state.activation])
    return Predictive.equal_mixture(outputs, state.noise_variance)


def _seconds(config: Config, n: int, d: int) -> float:
    """Estimate the seconds of a fit on one core: a gradient is linear in data points and weights."""
    weights = mlp.count(mlp.layout(d, config.hidden))
    slower = 1.0 if config.activation == "relu" else 2.5
    gradient = slower * 9e-11 * n * weights + 2e-9 * weights + 2e-6
    return config.chains * (config.samples + config.warmup) * (config.steps * gradient + 4e-4)


def _published(config: Config) -> tuple[str, ...]:
    """Return the published columns that a configuration corresponds to."""
    theirs = config.activation == "relu" and config.prior == "gaussian" and config.prior_scales == "one"
    sampled = config.noise_variance is None and config.prior_variance is None
    return ("HMC-1",) if theirs and sampled and config.hidden in {(50,), (100,)} else ()


METHOD = Method(
    name="hmc",
    equality="sampled",
    version=1,
    title="Hamiltonian Monte Carlo",
    paper="Neal (1996), as in Bui et al. (2015)",
    style=("sampling", "o"),
    bibtex="""
    @book{neal1996, author = {Neal, Radford M.}, title = {{Bayesian Learning for Neural Networks}}, year = {1996},
      publisher = {Springer}}""",
    density="mixture over draws",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    warmup={"chains": 2, "samples": 4, "warmup": 2, "steps": 2, "stored": 4},
    published=_published,
    space={"steps": {"log_int": [100, 2000]}, "target_acceptance": {"uniform": [0.6, 0.9]}},
)
