"""The Laplace approximation with the evidence framework: MacKay, Neural Computation 4 (1992), 415 and 448.

The model is a network of rectified linear or tanh units with Gaussian noise of precision beta and weights
w ~ N(0, 1 / alpha), biases included. The posterior is approximated by a Gaussian around the most probable weights,
the minimum of

    M(w) = beta / 2 sum_n (y_n - f_n)^2 + alpha / 2 |w|^2.

Its precision is the Hessian A of M in the Levenberg-Marquardt approximation alpha + beta J'J, in one of four forms:

    full   J'J
    diag   the diagonal of J'J (the experiments of Hernandez-Lobato and Adams 2015, section 5.4)
    kron   Kronecker-factored by layers (Martens and Grosse 2015; Ritter, Botev and Barber 2018)
    last   the last layer only

The precisions maximise the evidence. MacKay's updates, by gamma, the number of well-determined weights, alternate with
searches for the most probable weights. Predictions use the network linearised in the weights,
N(f, J A^-1 J' + 1 / beta), or a mixture over draws of the weights.

The diagonal form has its own gamma and evidence. It treats correlated weights as independent, so gamma is too large and
can exceed the number of data points. The noise and prior precisions are then wrong; this is the weakness that section
5.4 describes. The last-layer form treats the weights of the lower layers as known in the evidence, gamma and alpha, and
their prior has the same alpha. Nothing then prevents overfitting by these weights (boston: a noise standard deviation
of 0.03; full: 0.27).

Modules: ``network`` (residuals and Jacobian in blocks of data points), ``mode_search`` (the most probable weights),
``curvature`` (the forms of A), ``evidence`` (the updates and their symbols).

Deviation: the units are rectified linear by default, where both papers have tanh (``activation: tanh``). J'J does not
include the curvature at the kinks. The variance of a linearised prediction can have narrow peaks at the kinks, where
the derivatives by the weights jump.
Deviation: the Hessian is J'J alone, as in section 5.4. MacKay adds the term of the second derivatives.

The evidence of networks has many optima. Where the prior starts weak, most weights remain in use, and the evidence ends
tens to hundreds of nats lower than where it starts strong and the data free the weights that they need. Therefore there
are several ``starts`` with strong priors, and the one of the highest evidence is kept, as MacKay (1992) compares optima
by their evidence. The evidence can also fall from one update to a later one (boston, tanh: by 100 nats and more), so
the update of the highest evidence is kept too.
Deviation: MacKay returns the fixed point of the updates. In the best update, the search for the weights has often ended
at its limit of steps. The weights are then not at a mode, and the evidence is a lower bound (``evidence``).
Deviation: the precisions of these starts are ours. MacKay starts once per network that he compares.

``activation: evidence`` fits rectified and tanh units from the same initial weights and keeps the fit of the higher
evidence. Both evidences are of the same standardised targets, and both networks have the same number of weights with
priors of the same form, so they are comparable, as far as the form of the Hessian approximates them (``full``).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from ep_bench.methods.laplace.curvature import Form, WeightPosterior, linearised
from ep_bench.methods.laplace.evidence import PATIENCE, EvidenceFit, Precisions, UpdateSettings, best_of
from ep_bench.methods.laplace.mode_search import ModeProblem
from ep_bench.methods.laplace.network import outputs
from ep_bench.models import mlp
from ep_bench.models.residuals import ACTIVATIONS
from ep_bench.options import NEUTRAL
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Method, Rows

WEAK_START = (1.0, 10.0)  # prior and noise precision of a single start
# Prior precisions of several starts at noise precision 1, divided by the number of data points, in turn. A prior that
# is too strong for the data collapses the network to a constant of low evidence, in two or three short searches.
STARTS = (0.03, 0.1, 0.2, 0.4, 0.7)
TYPICAL_UPDATES = 8  # per start, for estimates of the time
LARGEST = 20_000  # maximum number of weights that one matrix may cover


class Config(BaseModel):
    """Options of the Laplace approximation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field(
        (50,), description="units per hidden layer, none for the linear model; ours: as in the tables of PBP"
    )
    activation: Literal["relu", "tanh", "probit", "evidence"] = Field(
        "relu",
        json_schema_extra={NEUTRAL: "relu"},
        description="activation of the hidden units (probit: the scaled error function of EP networks), or that of "
        "relu and tanh with the higher evidence; MacKay (1992), Hernandez-Lobato and Adams (2015): tanh; ours: relu",
    )
    hessian: Literal["diag", "full", "kron", "last"] = Field(
        "full", description="form of the Hessian; MacKay (1992): full"
    )
    predictive: Literal["linearized", "sampled"] = Field(
        "linearized", description="network linearised in the weights, or mixture over draws; MacKay (1992): linearized"
    )
    prior: Literal["single", "layers"] = Field(
        "single", description="one prior variance for all weights, or one per layer; MacKay (1992) has both"
    )
    prior_variance: PositiveFloat | None = Field(
        None, description="prior variance of the weights; by default it maximises the evidence (MacKay 1992)"
    )
    noise_variance: PositiveFloat | None = Field(
        None,
        description="noise variance, squared units of the standardised target; by default it maximises the evidence "
        "(MacKay 1992)",
    )
    starts: NonNegativeInt = Field(
        15,
        json_schema_extra={NEUTRAL: 0},
        description="number of starts, of which the one of the highest evidence is kept; 0: a single start with a weak "
        "prior; ours",
    )
    updates: PositiveInt = Field(50, description="maximum number of updates of the precisions; ours")
    steps: PositiveInt = Field(200, description="maximum number of steps per search for the mode; ours")
    test_samples: PositiveInt = Field(100, description="number of draws of a sampled prediction; ours")

    @model_validator(mode="after")
    def _possible(self) -> Config:
        if self.hessian == "last" and self.prior == "layers":
            raise ValueError("prior: layers needs a hessian that covers all layers: diag, full or kron")
        return self


class State(NamedTuple):
    """Posterior of the weights in standardised units."""

    layers: Array  # (L, 3) as in ``models.mlp``
    kind: int  # activation, as in ``models.residuals``
    weights: Array  # (P,) the most probable weights
    posterior: WeightPosterior  # of the Q covered weights, the last of the P, around the most probable ones
    prior_variance: Array  # (L,)
    noise_variance: float
    log_evidence: float  # nats, for the standardised targets
    well_determined: float  # gamma
    predictive: str
    test_samples: int
    converged: bool
    start_evidences: tuple[float, ...]  # log evidence of each start, nats; -inf if it failed; relu before tanh

    @property
    def hyperparameters(self) -> dict[str, float | Array]:
        """Values by name, standardised units; ``prior_variance`` (L,) has one value per layer."""
        return {"noise_variance": self.noise_variance, "prior_variance": self.prior_variance}


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Fit a network to standardised data X (n, d), y (n,).

    Returns
    -------
    state : the posterior
    trace : one value per update of ``objective`` (negative log joint density of targets and weights, nats, divided by
        n), ``log_evidence`` (nats), ``prior_deviation`` (standard deviation of the prior; ``prior_deviation_1`` and so
        on with one prior per layer), ``noise_deviation`` (standard deviation, standardised) and ``well_determined``
        (gamma)

    Raises
    ------
    FloatingPointError
        If a number is not finite or the fit has diverged (``mlp.refuse_divergence``).
    ValueError
        If a matrix would cover more than 20,000 weights.

    Warns
    -----
    ConvergenceWarning
        If the updates end at their maximum number before the evidence has stopped rising or a fixed point is reached
        (one more update would change a precision by more than 0.1 %, or the last search ended at its limit of steps),
        or if a precision reaches a limit.
    """
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    layers = mlp.layout(X.shape[1], config.hidden)
    _refuse_large(layers, config.hessian)
    starts = [(mlp.initial_weights(layers, rng), precisions) for precisions in _initial_precisions(layers, y, config)]
    problems = [ModeProblem(X, y, layers, ACTIVATIONS[name]) for name in _activations(config)]
    fits = [best_of(problem, starts, _settings(config)) for problem in problems]
    evidences = [value for _, by_start in fits for value in by_start]
    chosen = int(np.argmax(evidences)) // len(starts)
    problem, found = problems[chosen], fits[chosen][0]
    _warn_if_unfinished(found)
    last = found.approximation
    mlp.refuse_residuals(y - outputs(X, last.weights[None], layers, problem.kind)[0], y)
    alpha, beta = last.precisions
    state = State(
        layers, problem.kind, last.weights, last.posterior, 1.0 / alpha, 1.0 / beta, last.log_evidence,
        float(last.gamma.sum()), config.predictive, config.test_samples, not found.unfinished, tuple(evidences),
    )  # fmt: skip
    return state, found.trace


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:
    """Return Gaussians or mixtures over weight draws at X (n, d), standardised units, noise included."""
    if state.predictive == "linearized":
        mean, variance = linearised(state.posterior, X, state.weights, state.layers, state.kind)
        return Predictive.gaussian(mean, variance + state.noise_variance)
    draws = state.posterior.draw(state.test_samples, rng)
    networks = np.repeat(state.weights[None], state.test_samples, axis=0)
    networks[:, networks.shape[1] - draws.shape[1] :] += draws
    return Predictive.equal_mixture(outputs(X, networks, state.layers, state.kind), state.noise_variance)


def _settings(config: Config) -> UpdateSettings:
    return UpdateSettings(
        config.hessian, config.prior == "single", config.prior_variance is not None,
        config.noise_variance is not None, config.updates, config.steps,
        PATIENCE if config.starts > 0 else config.updates + 1,
    )  # fmt: skip


def _activations(config: Config) -> tuple[str, ...]:
    """Return the activations to compare. The linear model has none."""
    if config.activation != "evidence":
        return (config.activation,)
    return ("relu", "tanh") if config.hidden else ("relu",)


def _initial_precisions(layers: Array, y: Array, config: Config) -> Iterator[Precisions]:
    """Yield the precisions of each start. The linear model has one optimum only, which needs no other start."""
    several = config.starts > 0 and len(layers) > 1
    pairs = [(len(y) * strength, 1.0) for strength in STARTS] if several else [WEAK_START]
    for prior, noise in islice(cycle(pairs), config.starts if several else 1):
        alpha = prior if config.prior_variance is None else 1.0 / config.prior_variance
        beta = noise if config.noise_variance is None else 1.0 / config.noise_variance
        yield Precisions(np.full(len(layers), alpha), beta)


def _refuse_large(layers: Array, form: Form) -> None:
    """Raise ValueError if the matrix of the form would be too large."""
    covered = {"full": mlp.count(layers), "last": int(layers[-1, 1]) + 1}.get(form, 0)
    if covered > LARGEST:
        raise ValueError(
            f"hessian: {form} needs a matrix of {covered:,} weights, at most {LARGEST:,} are allowed; use kron or diag"
        )


def _warn_if_unfinished(found: EvidenceFit) -> None:
    if found.unfinished:
        from ep_bench.errors import ConvergenceWarning

        warnings.warn(found.unfinished, ConvergenceWarning, stacklevel=3)


def _seconds(config: Config, n: int, d: int) -> float:
    """Return the expected seconds of a fit on one core: steps by data points and weights, matrices of the updates."""
    weights = mlp.count(mlp.layout(d, config.hidden))
    step = 2e-5 + n * (0.07e-9 * weights + 0.35e-9 * sum(config.hidden)) + 7e-9 * weights
    covered = {"full": weights, "last": (d, *config.hidden)[-1] + 1}.get(config.hessian, 0)
    matrix = 1e-10 * n * covered**2 + 1e-10 * covered**3 + 1e-9 * n * weights
    fits = len(_activations(config)) * max(1, config.starts)
    return fits * min(config.updates, TYPICAL_UPDATES) * (config.steps * step + matrix)


METHOD = Method(
    name="laplace",
    version=3,
    title="Laplace approximation",
    paper="MacKay (1992)",
    style=("Laplace", "o"),
    bibtex="""
    @article{mackay1992, author = {MacKay, David J. C.},
      title = {{A Practical Bayesian Framework for Backpropagation Networks}}, journal = {Neural Computation},
      volume = {4}, year = {1992}, pages = {448--472}}""",
    density="Gaussian of the linearised network, or mixture over weights",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    warmup={"updates": 2, "steps": 20, "test_samples": 5, "starts": 1},
    space={"prior": {"choice": ["single", "layers"]}},
)
