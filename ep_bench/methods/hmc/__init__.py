"""Hamiltonian Monte Carlo (Duane et al. 1987; Neal 1996, 2011): HMC-1 of Bui et al. (2015, section 8).

A network with Gaussian weights and Gaussian noise; weights by trajectories of Hamiltonian dynamics, the variances of
both, under inverse-gamma hyperpriors, by Gibbs steps. ``prior: ard`` gives every input a variance of its own, as the
networks by MCMC of Jylanki et al. (2014, section 4.4) have. Predictions are mixtures over the draws of all chains, each
with its own noise variance.

Modules: ``trajectory`` (the dynamics, with the table of symbols), ``hyperparameters`` (Gibbs steps, and a move along
the orbits that leave a rectified network's function alone), ``adaptation`` (step size, masses), ``chain``,
``diagnostics``, ``joint_draws`` (draws from the prior, for tests of calibration).

Chains are judged by their predictions: where the largest R-hat over the watched rows exceeds 1.05, the fit warns that
it has not converged, and keeps its draws. R-hat and effective sample sizes stand in ``diagnostics``.

Deviation: the papers say "broad" inverse-gamma priors and give no numbers; the noise prior decides the log-likelihood
where the noise is small (energy, yacht, naval), so that it is an option to be named with every result. Bui et al. tune
step size and number of steps by Bayesian optimisation; here dual averaging sets the size, and the number is an option.
No U-turn sampling is offered: on these posteriors it saturates any sensible depth of its trees on every draw.
Deviation: Bui et al. do not state the activation of HMC-1; here that of their networks by variational inference,
rectified linear units. Jylanki et al. state neither activation nor hyperpriors of their networks by MCMC (NN-MC), so
that no configuration answers to these.
"""

from __future__ import annotations

import warnings
from typing import Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from ep_bench.methods.hmc import diagnostics, hyperparameters
from ep_bench.methods.hmc.chain import HMCChain, HMCSchedule, NetworkModel, run
from ep_bench.methods.hmc.trajectory import NetworkRows
from ep_bench.models import mlp, residuals
from ep_bench.numerics import mcmc_diagnostics
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Indices, Method, Rows


class Config(BaseModel):
    """Options of Hamiltonian Monte Carlo."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field(
        (50,), description="units of each hidden layer; Bui et al., section 8: 50, and 100 for protein"
    )
    activation: Literal["relu", "tanh", "probit"] = Field(
        "relu", description="of hidden units; probit: the scaled error function of Jylanki et al., eq. 2; ours: relu"
    )
    prior: Literal["gaussian", "ard"] = Field(
        "gaussian", description="of the weights: a common variance, or one an input (ard); Bui et al.: gaussian"
    )
    prior_scales: Literal["one", "layer"] = Field(
        "one", description="where the prior is gaussian: one variance for all weights, or one a layer; ours: one"
    )
    weight_prior: tuple[PositiveFloat, PositiveFloat] = Field(
        (0.1, 0.1), description="inverse-gamma shape and rate of the weights' variances; ours, the papers say broad"
    )
    noise_prior: tuple[PositiveFloat, PositiveFloat] = Field(
        (0.1, 0.01), description="inverse-gamma shape and rate of the noise variance, standardised target; ours"
    )
    chains: PositiveInt = Field(2, description="independent chains; ours")
    samples: PositiveInt = Field(300, description="draws of a chain after its warm-up; ours")
    warmup: NonNegativeInt = Field(200, description="iterations of a chain's warm-up; ours")
    steps: PositiveInt = Field(300, description="mean number of leapfrog steps of a trajectory; ours")
    target_acceptance: float = Field(0.7, gt=0.0, lt=1.0, description="that the step size is set for; ours")
    stored: PositiveInt = Field(
        500,
        description="draws kept for predictions, of all chains together, one a chain at least, evenly thinned; ours",
    )
    noise_variance: PositiveFloat | None = Field(
        None, description="variance, in squared units of the standardised target; sampled unless given"
    )
    prior_variance: PositiveFloat | None = Field(
        None, description="of the weights, one number that stands for every group's; sampled unless given"
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
    chain: Indices  # (S,) of which chain each draw is
    chains: dict[str, Array]  # name -> (chains, draws), as ``diagnostics.summarise`` has it
    diagnostics: dict[str, float]


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Fit to standardised rows X (n, d), y (n,).

    Returns the state, and one value an iteration, warm-up first, of ``log_joint`` (nats), ``noise_deviation``,
    ``prior_deviation`` (standardised) and ``acceptance``, means over the chains. Warns ConvergenceWarning where the
    chains have not mixed. Raises FloatingPointError where a draw is not finite.
    """
    model = model_of(train, config)
    stored = max(1, config.stored // config.chains)
    schedule = HMCSchedule(config.warmup, config.samples, config.steps, config.target_acceptance, stored)
    watched = mcmc_diagnostics.monitored_inputs(model.rows.X, rng)
    chains = [run(model, schedule, watched, stream) for stream in rng.spawn(config.chains)]
    state = _state(model.rows.layers, config.activation, chains)
    if not (np.isfinite(state.W).all() and np.isfinite(state.noise_variance).all()):
        raise FloatingPointError("a draw is not finite")
    _warn_unmixed(state.diagnostics, config)
    return state, _trace(chains)


def model_of(train: Rows, config: Config) -> NetworkModel:
    """Return the model of standardised rows under the options."""
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    layers = mlp.layout(X.shape[1], config.hidden)
    return NetworkModel(
        NetworkRows(X, y, layers, residuals.ACTIVATIONS[config.activation]),
        hyperparameters.groups(layers, config.prior, config.prior_scales),
        config.weight_prior, config.noise_prior, config.noise_variance, config.prior_variance,
    )  # fmt: skip


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG001
    """Return the mixture over the draws for rows X (n, d), standardised units, noise included."""
    outputs = residuals.outputs(X, state.W, state.layers, residuals.ACTIVATIONS[state.activation])
    return Predictive.equal_mixture(outputs, state.noise_variance)


def _state(layers: Array, activation: str, chains: list[HMCChain]) -> State:
    series, measures = diagnostics.summarise(chains)
    W, noise, prior = (np.concatenate([c[i] for c in chains]) for i in range(3))
    of = np.repeat(np.arange(len(chains)), [len(c.W) for c in chains])
    return State(layers, activation, W, noise, prior, of, series, measures)


def _warn_unmixed(measures: dict[str, float], config: Config) -> None:
    """Warn where the chains' predictions differ, do not move, or are too few to tell."""
    problem = diagnostics.problem(measures, config.chains, config.samples)
    if problem:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(problem, ConvergenceWarning, stacklevel=3)


def _trace(chains: list[HMCChain]) -> dict[str, list[float]]:
    names = chains[0].warmup_trace
    whole = {name: np.array([[*c.warmup_trace[name], *getattr(c, name)] for c in chains]) for name in names}
    return {name: values.mean(axis=0).tolist() for name, values in whole.items()}


def _seconds(config: Config, n: int, d: int) -> float:
    """Time of a fit on one core: gradients by rows and weights."""
    weights = mlp.count(mlp.layout(d, config.hidden))
    slower = 1.0 if config.activation == "relu" else 2.5
    gradient = slower * 9e-11 * n * weights + 2e-9 * weights + 2e-6
    return config.chains * (config.samples + config.warmup) * (config.steps * gradient + 4e-4)


def _published(config: Config) -> tuple[str, ...]:
    """Return the column that a configuration answers to."""
    theirs = config.activation == "relu" and config.prior == "gaussian" and config.prior_scales == "one"
    sampled = config.noise_variance is None and config.prior_variance is None
    return ("HMC-1",) if theirs and sampled and config.hidden in {(50,), (100,)} else ()


METHOD = Method(
    name="hmc",
    version=1,
    title="Hamiltonian Monte Carlo",
    paper="Neal (1996), as in Bui et al. (2015)",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    warmup={"chains": 2, "samples": 4, "warmup": 2, "steps": 2, "stored": 4},
    published=_published,
    space={"steps": {"log_int": [100, 2000]}, "target_acceptance": {"uniform": [0.6, 0.9]}},
)
