"""The Laplace approximation with the evidence framework: MacKay, Neural Computation 4 (1992), 415 and 448.

A network of rectified linear units with Gaussian noise of precision beta and weights w ~ N(0, 1 / alpha), biases
included. The posterior is a Gaussian around the most probable weights, the least of

    M(w) = beta / 2 sum_n (y_n - f_n)^2 + alpha / 2 |w|^2,

whose precision is M's Hessian A by Levenberg-Marquardt, alpha + beta J'J, in one of four forms: full, its diagonal
(that of the experiments of Hernandez-Lobato and Adams 2015, section 5.4), Kronecker-factored by layers (Martens and
Grosse 2015; Ritter, Botev and Barber 2018), or of the last layer alone. The precisions are those of the highest
evidence: MacKay's updates by gamma, the number of well-determined weights, in turn with searches for the most probable
weights. Predictions are those of the network linearised in the weights, N(f, J A^-1 J' + 1 / beta), or mixtures over
draws of the weights.

The diagonal form uses its own gamma and evidence. It takes correlated weights for independent ones, so that gamma is
too large, even beyond the number of rows, and noise and prior precisions come out wrong: the weakness that section 5.4
names. With the last layer alone, the weights below it count as known in evidence, gamma and alpha, and their prior has
the same alpha; nothing then stands against overfitting by them (boston: a noise deviation of 0.03, full 0.27).

Modules: ``network`` residuals and Jacobian in blocks of rows, ``mode_search`` the most probable weights, ``curvature``
the forms of A, ``evidence`` the updates, with the table of symbols.

Deviation: rectified linear units, where both papers have tanh; the curvature of the kinks is not in J'J. A linearised
prediction can have narrow towers of variance at units' kinks, where its derivatives by the weights jump.
Deviation: MacKay takes J'J plus the rest of the Hessian; here, as in section 5.4, J'J alone.
Deviation: one start, no choice among several optima by their evidence.
"""

from __future__ import annotations

import warnings
from typing import Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

from ep_bench.methods.laplace.curvature import Form, WeightPosterior, linearised
from ep_bench.methods.laplace.evidence import EvidenceFit, Precisions, UpdateSettings, maximise
from ep_bench.methods.laplace.mode_search import ModeProblem
from ep_bench.models import mlp
from ep_bench.types import Array, Method, Predictive, Rows

START_PRIOR_PRECISION, START_NOISE_PRECISION = 1.0, 10.0
LARGEST = 20_000  # weights, at most, that one matrix may cover


class Config(BaseModel):
    """Options of the Laplace approximation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field(
        (50,), description="units of each hidden layer, none for the linear model; ours: that of PBP's tables"
    )
    hessian: Literal["diag", "full", "kron", "last"] = Field(
        "full", description="form of the Hessian; MacKay (1992): full"
    )
    predictive: Literal["linearized", "sampled"] = Field(
        "linearized", description="network linear in the weights, or mixture over draws; MacKay (1992): linearized"
    )
    prior: Literal["single", "layers"] = Field(
        "single", description="one prior variance for all weights, or one a layer; MacKay (1992) has both"
    )
    prior_variance: PositiveFloat | None = Field(
        None, description="of the weights; set by the evidence unless given (MacKay 1992)"
    )
    noise_variance: PositiveFloat | None = Field(
        None, description="in squared units of the standardised target; set by the evidence unless given (MacKay 1992)"
    )
    updates: PositiveInt = Field(50, description="of the precisions, at most; ours")
    steps: PositiveInt = Field(200, description="of each search for the most probable weights, at most; ours")
    test_samples: PositiveInt = Field(100, description="draws of a sampled prediction; ours")

    @model_validator(mode="after")
    def _possible(self) -> Config:
        if self.hessian == "last" and self.prior == "layers":
            raise ValueError("prior: layers takes a hessian that covers all layers: diag, full or kron")
        return self


class State(NamedTuple):
    """Posterior of the weights, standardised units."""

    layers: Array  # (L, 3) as in ``models.mlp``
    weights: Array  # (P,) the most probable ones
    posterior: WeightPosterior  # of the covered weights, the last of them, around these
    prior_variance: Array  # (L,)
    noise_variance: float
    log_evidence: float  # nats, of the standardised targets
    well_determined: float  # gamma
    predictive: str
    test_samples: int


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Fit to standardised rows X (n, d), y (n,).

    Returns the state, and one value an update of ``objective`` (the negative log joint density of targets and weights,
    nats, divided by n), ``log_evidence`` (nats), ``prior_deviation`` (``prior_deviation_1`` and so on where each
    layer has one), ``noise_deviation`` (standardised) and ``well_determined`` (gamma). Warns by scikit-learn's
    ConvergenceWarning where the updates end short of a fixed point (another would change a precision by over 0.1 %, or
    the last search ended at its limit of steps) or a precision runs away. Raises FloatingPointError where a number is
    not finite or the network no fit (``mlp.refuse_divergence``), ValueError where a matrix would cover over 20,000
    weights.
    """
    problem = ModeProblem(
        np.array(train.X, dtype=np.float64, order="C"),
        np.array(train.y, dtype=np.float64),
        mlp.layout(train.X.shape[1], config.hidden),
    )
    layers = problem.layers
    _refuse_large(layers, config.hessian)
    found = maximise(problem, mlp.initial_weights(layers, rng), _start(layers, config), _settings(config))
    _warn(found)
    last = found.approximation
    mlp.refuse_divergence(last.weights, layers, problem.X, problem.y)
    alpha, beta = last.precisions
    state = State(
        layers, last.weights, last.posterior, 1.0 / alpha, 1.0 / beta, last.log_evidence, float(last.gamma.sum()),
        config.predictive, config.test_samples,
    )  # fmt: skip
    return state, found.trace


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:
    """Return Gaussians or mixtures over weight draws for rows X (n, d), standardised units, noise included."""
    if state.predictive == "linearized":
        mean, variance = linearised(state.posterior, X, state.weights, state.layers)
        return Predictive.gaussian(mean, variance + state.noise_variance)
    draws = state.posterior.draw(state.test_samples, rng)
    networks = np.repeat(state.weights[None], state.test_samples, axis=0)
    networks[:, networks.shape[1] - draws.shape[1] :] += draws
    return Predictive.equal_mixture(mlp.evaluate(X, networks, state.layers), state.noise_variance)


def _settings(config: Config) -> UpdateSettings:
    return UpdateSettings(
        config.hessian, config.prior == "single", config.prior_variance is not None,
        config.noise_variance is not None, config.updates, config.steps,
    )  # fmt: skip


def _start(layers: Array, config: Config) -> Precisions:
    prior = START_PRIOR_PRECISION if config.prior_variance is None else 1.0 / config.prior_variance
    noise = START_NOISE_PRECISION if config.noise_variance is None else 1.0 / config.noise_variance
    return Precisions(np.full(len(layers), prior), noise)


def _refuse_large(layers: Array, form: Form) -> None:
    """Raise ValueError where the form's matrix would have too many rows."""
    covered = {"full": mlp.count(layers), "last": int(layers[-1, 1]) + 1}.get(form, 0)
    if covered > LARGEST:
        raise ValueError(
            f"hessian: {form} is a matrix of {covered:,} weights, at most {LARGEST:,}; kron or diag have none"
        )


def _warn(found: EvidenceFit) -> None:
    if found.unfinished:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(found.unfinished, ConvergenceWarning, stacklevel=3)


def _seconds(config: Config, n: int, d: int) -> float:
    """Time of a fit on one core: steps by rows and weights, and the matrices of the updates."""
    weights = mlp.count(mlp.layout(d, config.hidden))
    step = 3e-4 + n * (0.4e-9 * weights + 2e-9 * sum(config.hidden)) + 4e-8 * weights
    covered = {"full": weights, "last": (d, *config.hidden)[-1] + 1}.get(config.hessian, 0)
    matrix = 1e-10 * n * covered**2 + 1e-10 * covered**3 + 1e-9 * n * weights
    return config.updates * (config.steps * step + matrix)


METHOD = Method(
    name="laplace",
    version=1,
    title="Laplace approximation",
    paper="MacKay (1992)",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    warmup={"updates": 2, "steps": 20, "test_samples": 5},
    space={"prior": {"choice": ["single", "layers"]}},
)
