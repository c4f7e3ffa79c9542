"""Point network by backpropagation: the BP of Hernandez-Lobato and Adams (ICML 2015, section 5.1 and table 1).

A network of rectified linear units is fitted by stochastic gradient descent with momentum, one step per data point, to
half the squared error plus weight decay:

    velocity = momentum velocity - rate (gradient of (y - f)^2 / 2 + decay / n w),    w = w + velocity

The gradient of the prior, divided by the n data points, is decay / n w, so ``weight_decay`` is the ratio of the
precisions of prior and noise. The paper tunes learning rate, momentum and weight decay: use
``tune: {trials: 30, fraction: 0.2}``.

The paper states no predictive density for this method. Ours is Gaussian around the output of the network. Its variance
is the mean squared residual of ``validation_fraction`` of the training data, which a first fit does not use. A second
fit uses all training data. The variance is 1 if there is only one data point.

Deviation: the initial weights are N(0, 2 / n_in) below rectified units and N(0, 1 / n_in) below the output, and the
initial biases are 0; the paper states none.
Deviation: the step size decreases linearly to 0 over the epochs. The paper states no schedule; with ``schedule:
constant``, the last data points have the largest influence.
Deviation: a step that would overshoot the target of its own data point is shortened (``mlp.row_step_size``). Without
this, outliers among the inputs of protein and communities make the weights infinite.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveFloat, PositiveInt

from ep_bench.models import mlp, momentum
from ep_bench.numerics.minibatch import hold_out
from ep_bench.options import NEUTRAL
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Method, Rows


class Config(BaseModel):
    """Options of the point network."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field(
        (50,), description="units per hidden layer; section 5.1: 50, and 100 for year and protein"
    )
    epochs: PositiveInt = Field(40, description="passes over the training data; section 5.1: 40")
    learning_rate: PositiveFloat = Field(2e-2, description="first step size; tuned in the paper, default ours")
    schedule: Literal["linear", "constant"] = Field(
        "linear",
        json_schema_extra={NEUTRAL: "linear"},
        description="step sizes that decrease to 0, or constant ones; not stated in the paper, ours: linear",
    )
    momentum: float = Field(0.9, ge=0.0, lt=1.0, description="tuned in the paper, default ours")
    weight_decay: NonNegativeFloat = Field(
        0.1, description="precision of the prior, relative to that of the noise; tuned in the paper, default ours"
    )
    validation_fraction: float = Field(
        0.2, gt=0.0, lt=1.0, description="fraction of the training data for the noise variance; section 5.1: 0.2"
    )


class State(NamedTuple):
    """Weights and noise variance in standardised units."""

    layers: Array  # (L, 3) as in ``models.mlp``
    weights: Array  # (P,)
    noise_variance: float


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Fit a network to standardised data X (n, d), y (n,).

    Returns the state, and one value per epoch of the final fit of ``objective``: half the squared residual of a data
    point before its step, averaged. Raises FloatingPointError if an epoch ends with a number that is not finite, or if
    the fit has diverged (``mlp.refuse_divergence``).
    """
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    layers = mlp.layout(X.shape[1], config.hidden)
    fitted, validation = hold_out(len(y), config.validation_fraction, rng)
    weights, _ = _descend(X[fitted], y[fitted], layers, config, rng)
    residuals = y[validation] - mlp.evaluate(X[validation], weights[None], layers)[0]
    # With one data point there are no validation data; the variance is that of a standardised target.
    variance = float(np.mean(residuals**2)) if len(y) > 1 else 1.0
    weights, trace = _descend(X, y, layers, config, rng)
    minimum = np.finfo(np.float64).eps  # residuals of a constant target are 0
    return State(layers, weights, max(variance, minimum)), trace


def fit_mean(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Fit as ``fit`` does, but without the first fit, whose residuals are the noise variance; the variance is 1.

    The random numbers of the first fit are drawn, so that the weights are the same.
    """
    layers = mlp.layout(train.X.shape[1], config.hidden)
    fitted, _ = hold_out(len(train.y), config.validation_fraction, rng)
    mlp.initial_weights(layers, rng)
    for _ in range(config.epochs):
        rng.permutation(len(fitted))
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    weights, trace = _descend(X, y, layers, config, rng)
    return State(layers, weights, 1.0), trace


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG001
    """Return one Gaussian per data point of X (n, d), standardised units, noise included; ``rng`` is not used."""
    mean = mlp.evaluate(X, state.weights[None], state.layers)[0]
    return Predictive.gaussian(mean, np.full_like(mean, state.noise_variance))


def _descend(
    X: Array, y: Array, layers: Array, config: Config, rng: np.random.Generator
) -> tuple[Array, dict[str, list[float]]]:
    """Return weights (P,) fitted to X (n, d), y (n,), and the trace."""
    net = momentum.start(layers, mlp.initial_weights(layers, rng))
    rates = momentum.step_sizes(config.learning_rate, config.epochs, decreasing=config.schedule == "linear")
    trace = momentum.descend(net, X, y, rates, config.momentum, config.weight_decay / len(y), rng)
    w = momentum.weights(net, config.momentum)
    mlp.refuse_divergence(w, layers, X, y)
    return w, trace


def _seconds(config: Config, n: int, d: int) -> float:
    """Return the expected seconds of both fits on one core."""
    weights = mlp.count(mlp.layout(d, config.hidden))
    return (2.0 - config.validation_fraction) * config.epochs * n * (0.3e-9 * weights + 0.15e-6)


def _published(config: Config) -> tuple[str, ...]:
    """Return the published columns of a configuration, if it has the paper's epochs and units."""
    return ("BP",) if config.epochs == Config().epochs and config.hidden in {(50,), (100,)} else ()


def _version_of(config: Config) -> int:  # noqa: ARG001
    """Return 1: the second version changes fits with given options by rounding errors only, but searches may differ."""
    return 1


METHOD = Method(
    name="bp",
    equality="stable",
    version=2,
    version_of=_version_of,
    title="Point network by backpropagation",
    paper="Hernandez-Lobato and Adams (2015)",
    style=("ensembles, point", "s"),
    density="Gaussian, variance from held-out residuals",
    tasks=("regression",),
    config=Config,
    fit=fit,
    fit_mean=fit_mean,
    predict=predict,
    seconds=_seconds,
    warmup={"epochs": 1},
    published=_published,
    space={
        "learning_rate": {"log": [1e-3, 5e-2]},
        "momentum": {"uniform": [0.0, 0.95]},
        "weight_decay": {"log": [1e-4, 10.0]},
    },
)
