"""Black-box alpha: J. M. Hernandez-Lobato, Y. Li, M. Rowland, D. Hernandez-Lobato, T. D. Bui, R. E. Turner, ICML 2016.

A network of rectified linear units with Gaussian noise and weights w ~ N(0, v0). The posterior is approximated by a
factorised Gaussian q(w), proportional to prior(w) f(w)^N: one factor f, tied over the N rows. Its parameters minimise
the energy of power expectation propagation with that factor, (3) of the supplement with one lambda for all cavities,

    log Z_prior - log Z_q - (1 / alpha) sum_n log E_q[(p(y_n | w) / f(w))^alpha],

whose expectations are estimated by K draws of the weights by reparameterisation, the same K for all rows of a
minibatch. Alpha -> 0 is the variational bound, alpha = 1 resembles expectation propagation; negative alpha
is allowed. The noise variance is learned with q unless it is given. Predictions are mixtures over weight samples.

Without hidden layers the model is linear in the inputs, without a constant, the energy is exact, and its minimum is the
stationary point (5); the covariance is then diagonal or full, and predictions are Gaussian. Nothing is drawn or
stepped there: samples, test_samples, epochs, batch_size and learning_rate have no meaning.

Modules: ``energy`` of a minibatch and its gradient, with the table of symbols, ``training`` the passes over the rows,
``linear`` the exact energy of the linear model.

Deviation: none from the authors' released program, whose choices stand where the supplement is silent: v = v0 sigmoid
(rho), rho starting at -10, means at 0.1 N(0, 1) whatever the fan-in, the log noise variance at 0; ``samples`` fresh
draws each step; Adam at 0.001 on minibatches of 32.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, PositiveFloat, PositiveInt, model_validator

from ep_bench.methods.bb_alpha.energy import workspace
from ep_bench.methods.bb_alpha.linear import LinearPosterior, fit_linear, predict_linear
from ep_bench.methods.bb_alpha.training import train_epoch
from ep_bench.models import meanfield, mlp
from ep_bench.numerics.adam import moments
from ep_bench.numerics.normal_rng import stream
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Method, Rows

START_RHO, START_SCALE = -10.0, 0.1  # v = v0 sigmoid(rho); means at START_SCALE N(0, 1)


class Config(BaseModel):
    """Options of black-box alpha."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field(
        (100,), description="units of each hidden layer, none for the linear model; released program: 100"
    )
    alpha: FiniteFloat = Field(0.5, description="power; 0 is the variational bound, 1 EP-like; released program: 0.5")
    samples: PositiveInt = Field(50, description="weight samples K a step; released program: 50")
    test_samples: PositiveInt = Field(50, description="weight samples of a prediction; released program: 50")
    epochs: PositiveInt = Field(500, description="passes over the training rows; released program: 500")
    batch_size: PositiveInt = Field(32, description="rows a step; released program: 32")
    learning_rate: PositiveFloat = Field(1e-3, description="of Adam; released program: 0.001")
    prior_variance: PositiveFloat = Field(1.0, description="v0 of the weights; supplement, sections B and C: 1")
    noise_variance: PositiveFloat | None = Field(
        None, description="variance, in squared units of the standardised target; learned unless given"
    )
    covariance: Literal["diagonal", "full"] = Field(
        "diagonal", description="of q; full only without hidden layers (supplement, section B)"
    )

    @model_validator(mode="after")
    def _possible(self) -> Config:
        if self.covariance == "full" and self.hidden:
            raise ValueError("covariance: full takes a model without hidden layers, hidden: []")
        return self


class State(NamedTuple):
    """Posterior of the weights, standardised units."""

    layers: Array  # (L, 3) as in ``models.mlp``
    mean: Array  # (P,)
    deviation: Array  # (P,) standard deviations
    noise_variance: float
    test_samples: int


def fit(
    train: Rows, config: Config, rng: np.random.Generator
) -> tuple[State | LinearPosterior, dict[str, list[float]]]:
    """Fit to standardised rows X (n, d), y (n,).

    Returns the state, and one value an epoch of ``objective`` (the mean over minibatches of the energy estimate, nats,
    divided by n) and ``noise_deviation`` (standardised); of the linear model ``objective``, a value a step. Raises
    FloatingPointError where an epoch ends with a number that is not finite, the last one with a network that is no fit
    (``mlp.refuse_divergence``), or the linear model has no stationary point; ValueError for alpha >= n there.
    """
    if not config.hidden:
        return _fit_linear(train, config)
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    layers = mlp.layout(X.shape[1], config.hidden)
    size, rows = mlp.count(layers), min(config.batch_size, len(y))
    theta = np.full(2 * size + 1, START_RHO)
    theta[:size] = START_SCALE * rng.standard_normal(size)
    theta[-1] = np.log(config.noise_variance or 1.0)
    work = workspace(config.samples, rows, size, mlp.units(layers), mlp.widest(layers))
    steps, gradient, words = moments(len(theta)), np.empty_like(theta), stream(rng)
    trace: dict[str, list[float]] = {"objective": [], "noise_deviation": []}
    for epoch in range(config.epochs):
        objective = train_epoch(
            X, y, rng.permutation(len(y)), rows, theta, steps, gradient, layers, work, words, config.alpha,
            config.prior_variance, config.learning_rate, config.noise_variance is None,
        )  # fmt: skip
        _check(theta, objective, epoch + 1)
        trace["objective"].append(objective / len(y))
        trace["noise_deviation"].append(float(np.exp(0.5 * theta[-1])))
    deviation = np.sqrt(config.prior_variance / (1.0 + np.exp(-theta[size:-1])))
    mlp.refuse_divergence(theta[:size], layers, X, y)
    return State(layers, theta[:size].copy(), deviation, float(np.exp(theta[-1])), config.test_samples), trace


def predict(state: State | LinearPosterior, X: Array, rng: np.random.Generator) -> Predictive:
    """Return mixtures over weight samples for rows X (n, d), standardised units, noise included.

    The linear model's prediction is the Gaussian that such a mixture tends to.
    """
    if isinstance(state, LinearPosterior):
        return Predictive.gaussian(*predict_linear(state, X))
    outputs = meanfield.sample_networks(state.mean, state.deviation, state.test_samples, state.layers, X, rng)
    return Predictive.equal_mixture(outputs, state.noise_variance)


def _fit_linear(train: Rows, config: Config) -> tuple[LinearPosterior, dict[str, list[float]]]:
    posterior = fit_linear(
        train.X, train.y, alpha=config.alpha, prior_variance=config.prior_variance,
        noise_variance=config.noise_variance, covariance=config.covariance,
    )  # fmt: skip
    return posterior, {"objective": [value / len(train.y) for value in posterior.trace]}


def _check(theta: Array, objective: float, epoch: int) -> None:
    """Raise FloatingPointError where the energy or a parameter is not finite."""
    if not np.isfinite(theta).all():
        raise FloatingPointError(f"epoch {epoch}: a parameter is not finite")
    if not np.isfinite(objective):
        raise FloatingPointError(f"epoch {epoch}: the energy is not finite")


def _seconds(config: Config, n: int, d: int) -> float:
    """Time of a fit on one core: samples by weights (draws) and by rows (products)."""
    if not config.hidden:
        return 1e-6 * n * d * d
    weights = mlp.count(mlp.layout(d, config.hidden))
    step = config.samples * (7e-9 * weights + config.batch_size * (0.22e-9 * weights + 1.5e-9 * sum(config.hidden)))
    return config.epochs * n / config.batch_size * (step + 3e-5)


METHOD = Method(
    name="bb_alpha",
    version=1,
    title="Black-box alpha",
    paper="Hernandez-Lobato et al. (2016)",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    warmup={"epochs": 1, "samples": 4, "test_samples": 5},
    space={"alpha": {"choice": [1e-6, 0.25, 0.5, 0.75, 1.0]}, "learning_rate": {"log": [3e-4, 1e-2]}},
)
