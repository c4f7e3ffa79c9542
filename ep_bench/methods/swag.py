"""Stochastic weight averaging Gaussian: Maddox, Garipov, Izmailov, Vetrov and Wilson (NeurIPS 2019), algorithm 1.

A network of rectified linear units is trained as in ``bp``, with a step size that decreases linearly to
``swag_learning_rate`` and stays there for ``swag_epochs`` more epochs. With the weights w_t (P,) after the t-th of
these T epochs, and their running means m_t,

    m = m_T,    v = max(mean_t w_t^2 - m^2, 1e-30),    D (K, P) = the last K rows w_t - m_t,
    q(w) = N(m, diag(v) / 2 + D' D / (2 (K - 1))),
    w = m + sqrt(v / 2) z + D' e / sqrt(2 (K - 1)),    z ~ N(0, I_P), e ~ N(0, I_K).

The predictive distribution is the mixture of N(f(x; w), s) over draws of w. The noise variance s maximises the log
density of ``validation_fraction`` of the training data under a first fit, which does not use them. A second fit uses
all training data. The variance is 1 if there is only one data point.

Deviation: w_t are the weights before the last step of their epoch, which ``models.momentum`` takes with the next one.
Deviation: minibatches have one data point, as in ``bp``. Steps that would overshoot their target are shortened.
Deviation: the paper has two outputs, with the variance of the noise as a function of the input, for the data sets of
this benchmark. Here the noise is constant.
Deviation: ``swag_learning_rate`` is the one of 0.001, 0.002, 0.005 and 0.01 with the highest mean log density of
validation points, 20 % of the training points of splits 0 and 1 of boston, energy, wine and yacht. The other options of
the descent are those of ``bp``.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from ep_bench.models import mlp, momentum
from ep_bench.models.held_out_noise import most_likely_precision
from ep_bench.numerics.minibatch import Trace, hold_out
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Method, Rows

MINIMUM_VARIANCE = 1e-30  # of a weight; as in the authors' program


class Config(BaseModel):
    """Options of the weight averaging Gaussian."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field((50,), description="units per hidden layer; the paper: 50")
    epochs: PositiveInt = Field(40, description="passes over the training data before weights are collected; as bp")
    learning_rate: PositiveFloat = Field(2e-2, description="first step size; as bp")
    momentum: float = Field(0.9, ge=0.0, lt=1.0, description="momentum of the descent; the paper: 0.9")
    weight_decay: NonNegativeFloat = Field(
        0.1, description="precision of the prior, relative to that of the noise; as bp"
    )
    swag_epochs: int = Field(100, ge=2, description="passes after which weights are collected; ours")
    swag_learning_rate: PositiveFloat = Field(2e-3, description="step size while weights are collected; ours")
    rank: int = Field(20, ge=2, description="deviations K in the covariance; the paper: 20")
    samples: PositiveInt = Field(30, description="draws per prediction; the paper: 30")
    validation_fraction: float = Field(
        0.2, gt=0.0, lt=1.0, description="fraction of the training data for the noise variance; as bp: 0.2"
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.rank > self.swag_epochs:
            raise ValueError(f"rank must be at most swag_epochs, {self.swag_epochs}")
        return self


class WeightGaussian(NamedTuple):
    """The Gaussian q(w), by the symbols of the module."""

    mean: Array  # m (P,)
    variances: Array  # v (P,)
    deviations: Array  # D (K, P)

    def draw(self, samples: int, rng: np.random.Generator) -> Array:
        """Return weights (samples, P)."""
        K, P = self.deviations.shape
        low_rank = rng.standard_normal((samples, K)) @ self.deviations / math.sqrt(2.0 * (K - 1))
        return self.mean + np.sqrt(0.5 * self.variances) * rng.standard_normal((samples, P)) + low_rank


class State(NamedTuple):
    """Gaussian over the weights, and noise variance, in standardised units."""

    layers: Array  # (L, 3) as in ``models.mlp``
    q: WeightGaussian
    noise_variance: float
    samples: int

    @property
    def hyperparameters(self) -> dict[str, float]:
        """The variance of the noise."""
        return {"noise_variance": self.noise_variance}


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, Trace]:
    """Fit the Gaussian to standardised data X (n, d), y (n,).

    Returns the state, and the trace of the final fit as ``bp``, over all epochs. Raises FloatingPointError if an epoch
    ends with a number that is not finite, or if the network with the mean weights has diverged
    (``mlp.refuse_divergence``).
    """
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    layers, variance = mlp.layout(X.shape[1], config.hidden), 1.0
    if len(y) > 1:
        fitted, validation = hold_out(len(y), config.validation_fraction, rng)
        q, _ = weight_gaussian(X[fitted], y[fitted], layers, config, rng)
        outputs = mlp.evaluate(X[validation], q.draw(config.samples, rng), layers)
        variance = 1.0 / most_likely_precision((y[validation] - outputs) ** 2)
    q, trace = weight_gaussian(X, y, layers, config, rng)
    return State(layers, q, variance, config.samples), trace


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:
    """Return mixtures over draws of the weights at X (n, d), standardised units, noise included."""
    outputs = mlp.evaluate(X, state.q.draw(state.samples, rng), state.layers)
    return Predictive.equal_mixture(outputs, state.noise_variance)


def weight_gaussian(
    X: Array, y: Array, layers: Array, config: Config, rng: np.random.Generator
) -> tuple[WeightGaussian, Trace]:
    """Return the Gaussian of the weights for X (n, d), y (n,), and the trace."""
    net, collected = momentum.start(layers, mlp.initial_weights(layers, rng)), []

    def collect() -> dict[str, float]:
        collected.append(net.w[net.places])
        return {}

    first = momentum.step_sizes(config.learning_rate, config.epochs)
    rates = [max(rate, config.swag_learning_rate) for rate in first] + [config.swag_learning_rate] * config.swag_epochs
    trace = momentum.descend(net, X, y, rates, config.momentum, config.weight_decay / len(y), rng, collect)
    q = moments(np.array(collected[config.epochs :]), config.rank)
    mlp.refuse_divergence(q.mean, layers, X, y)
    return q, trace


def moments(W: Array, rank: int) -> WeightGaussian:
    """Return the Gaussian of collected weights W (T, P)."""
    means = np.cumsum(W, axis=0) / np.arange(1, len(W) + 1)[:, None]
    variances = np.maximum(np.mean(W**2, axis=0) - means[-1] ** 2, MINIMUM_VARIANCE)
    return WeightGaussian(means[-1], variances, (W - means)[-rank:])


def _seconds(config: Config, n: int, d: int) -> float:
    """Return the expected seconds of both fits on one core."""
    weights = mlp.count(mlp.layout(d, config.hidden))
    epochs = config.epochs + config.swag_epochs
    return (2.0 - config.validation_fraction) * epochs * n * (0.3e-9 * weights + 0.15e-6)


METHOD = Method(
    name="swag",
    equality="sampled",
    version=1,
    title="Stochastic weight averaging Gaussian",
    paper="Maddox et al. (2019)",
    style=("ensembles, point", "P"),
    bibtex="""
    @inproceedings{maddox2019,
      author = {Maddox, Wesley J. and Izmailov, Pavel and Garipov, Timur and Vetrov, Dmitry P. and Wilson, Andrew
        Gordon},
      title = {{A Simple Baseline for Bayesian Uncertainty in Deep Learning}},
      booktitle = {Advances in Neural Information Processing Systems 32}, year = {2019}}""",
    density="mixture over draws",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    warmup={"epochs": 1, "swag_epochs": 2, "rank": 2},
    validated=lambda _: "noise variance",
    space={
        "epochs": {"log_int": [10, 200]},
        "learning_rate": {"log": [1e-3, 5e-2]},
        "weight_decay": {"log": [1e-4, 10.0]},
        "swag_learning_rate": {"log": [1e-4, 2e-2]},
    },
)
