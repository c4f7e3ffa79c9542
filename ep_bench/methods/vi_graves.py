"""Variational inference by Graves' stochastic gradients: the VI of Hernandez-Lobato and Adams (ICML 2015, table 1).

A network of rectified linear units with Gaussian noise and weights w ~ N(mu0, v0); a factorised Gaussian q(w) with
means m and deviations s descends the negative variational bound (Graves, NIPS 2011), one row and one draw
w = m + s e at a time. With g the gradient of -log p(y_n | w) by w, the estimates of one row's share of the gradient are

    by m         g + (m - mu0) / (n v0)
    by s^2       g^2 / 2 + (1 / v0 - 1 / s^2) / (2 n)

The second is Graves': the squared gradient in place of the curvature, whose mean it is where the noise model holds. The
prior's mean and variance are those that maximise the bound given q, set anew before each pass, as in Graves' paper. The
noise variance sigma2 is learned with q. Learning rate and momentum of the descent are what Hernandez-Lobato and Adams
tune: ``tune: {trials: 30, fraction: 0.2}``. Predictions are mixtures over weight samples.

Deviation: neither paper gives the units of the steps, the starting point or the treatment of the noise. Here the
gradient by m is multiplied by sigma2, without which the steps would grow as the noise falls; that by log s is n times a
row's share; no row moves log s or log sigma2 by more than 1, momentum included; the step on m is shortened where it
would overshoot the row's own target (``mlp.row_step_size``). Initial means are N(0, 2 / n_in) (output N(0, 1 / n_in)),
deviations 0.1 / sqrt(n_in + 1), sigma2 = 1. The step size falls in a straight line to 0.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from ep_bench.models import meanfield, mlp
from ep_bench.models.meanfield import divergence
from ep_bench.models.mlp import row_gradient, row_step_size
from ep_bench.numerics.exponential import fill_exponentials
from ep_bench.numerics.jit import FUSE, jit
from ep_bench.numerics.normal_rng import fill_normals, stream
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Method, Rows

START_DEVIATION = 0.1


class Config(BaseModel):
    """Options of Graves' variational inference."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field(
        (50,), description="units of each hidden layer; section 5.1: 50, and 100 for year and protein"
    )
    epochs: PositiveInt = Field(40, description="passes over the training rows; section 5.1: 40")
    learning_rate: PositiveFloat = Field(1e-2, description="first step size; tuned in the paper, default ours")
    momentum: float = Field(0.5, ge=0.0, lt=1.0, description="tuned in the paper, default ours")
    test_samples: PositiveInt = Field(100, description="weight samples of a prediction; ours")


class State(NamedTuple):
    """Posterior of the weights, standardised units."""

    layers: Array  # (L, 3) as in ``models.mlp``
    mean: Array  # (P,)
    deviation: Array  # (P,) standard deviations
    noise_variance: float
    test_samples: int


class StepWorkspace(NamedTuple):
    """Scratch of a step."""

    noise: Any  # (P,) e
    deviation: Any  # (P,) s
    w: Any  # (P,)
    g: Any  # (P,) gradient of f by w
    velocity: Any  # (2 P + 1,) of m, log s, log sigma2
    Z: Any
    D: Any
    f: Any  # (1,)


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Fit to standardised rows X (n, d), y (n,).

    Returns the state, and one value an epoch of ``objective`` (the negative bound, nats, divided by n, its expected
    log-likelihood estimated from the draws of the pass, the divergence at its end) and ``noise_deviation``
    (standardised). Raises FloatingPointError where an epoch ends with a number that is not finite, or the last one with
    a network that is no fit (``mlp.refuse_divergence``).
    """
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    layers = mlp.layout(X.shape[1], config.hidden)
    size = mlp.count(layers)
    theta = np.concatenate([mlp.initial_weights(layers, rng), np.log(_start(layers)), [0.0]])
    words, work = stream(rng), _workspace(layers)
    trace: dict[str, list[float]] = {"objective": [], "noise_deviation": []}
    for epoch in range(config.epochs):
        prior = _best_prior(theta[:size], theta[size:-1])
        rate = config.learning_rate * (1.0 - epoch / config.epochs)
        misfit = _epoch(X, y, rng.permutation(len(y)), theta, layers, prior, rate, config.momentum, words, work)
        if not (np.isfinite(misfit) and np.isfinite(theta).all()):
            raise FloatingPointError(f"epoch {epoch + 1}: a parameter is not finite; a smaller learning_rate may help")
        distance = divergence(theta[:size] - prior[0], np.exp(theta[size:-1]), np.full(size, prior[1]))
        trace["objective"].append(misfit + distance / len(y))
        trace["noise_deviation"].append(math.exp(0.5 * theta[-1]))
    mean, deviation = theta[:size].copy(), np.exp(theta[size:-1])
    mlp.refuse_divergence(mean, layers, X, y)
    return State(layers, mean, deviation, math.exp(theta[-1]), config.test_samples), trace


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:
    """Return mixtures over weight samples for rows X (n, d), standardised units, noise included."""
    outputs = meanfield.sample_networks(state.mean, state.deviation, state.test_samples, state.layers, X, rng)
    return Predictive.equal_mixture(outputs, state.noise_variance)


@jit(relaxed=FUSE)
def _epoch(
    X: Any, y: Any, order: Any, theta: Any, layers: Any, prior: Any, rate: float, momentum: float, words: Any,
    work: StepWorkspace,
) -> float:  # fmt: skip
    """Take a step after every row; return the mean over the rows of the draws' -log p(y | w)."""
    size, total = work.w.size, 0.0
    for row in order:
        fill_normals(words, work.noise)
        fill_exponentials(theta[size : 2 * size], work.deviation)
        for i in range(size):
            work.w[i] = theta[i] + work.deviation[i] * work.noise[i]
        square = row_gradient(X[row : row + 1], work.w, layers, work.Z, work.f, work.g, work.D)
        residual, log_sigma2 = work.f[0] - y[row], theta[2 * size]
        total += 0.5 * (math.log(2.0 * math.pi) + log_sigma2 + residual * residual * math.exp(-log_sigma2))
        take_step(theta, prior, residual, square, order.size, rate, momentum, work)
    return total / order.size


@jit(relaxed=FUSE)
def take_step(
    theta: Any, prior: Any, residual: float, square: float, n: int, rate: float, momentum: float, work: StepWorkspace
) -> None:
    """Move the parameters (2 P + 1,) by one row's ``residual`` f - y, the gradient of f and the deviations in ``work``.

    ``prior`` has mean and variance, ``square`` is the squared length of the gradient.
    """
    size, velocity = work.w.size, work.velocity
    sigma2 = math.exp(theta[2 * size])
    step = row_step_size(rate, momentum, square) * residual
    misfit = residual * residual / sigma2
    limit = (1.0 - momentum) / rate
    weight, prior_precision, shrinkage = n * misfit / sigma2, 1.0 / prior[1], rate * sigma2 / (n * prior[1])
    for i in range(size):
        variance, slope = work.deviation[i] * work.deviation[i], work.g[i]
        velocity[i] = momentum * velocity[i] - step * slope - shrinkage * (theta[i] - prior[0])
        by_spread = variance * (weight * slope * slope + prior_precision) - 1.0
        velocity[size + i] = momentum * velocity[size + i] - rate * min(by_spread, limit)
    velocity[2 * size] = momentum * velocity[2 * size] - rate * max(0.5 - 0.5 * misfit, -limit)
    for i in range(2 * size + 1):
        theta[i] += velocity[i]


def _best_prior(mean: Array, log_deviation: Array) -> Array:
    """Return the prior's mean and variance that maximise the bound."""
    centre = float(mean.mean())
    return np.array([centre, float(np.mean((mean - centre) ** 2 + np.exp(2.0 * log_deviation)))])


def _start(layers: Array) -> Array:
    """Return the deviations (P,) before the first step."""
    parts = [np.full((n_in + 1) * n_out, START_DEVIATION / np.sqrt(n_in + 1)) for _, n_in, n_out in layers.tolist()]
    return np.concatenate(parts)


def _workspace(layers: Array) -> StepWorkspace:
    size = mlp.count(layers)
    return StepWorkspace(
        np.empty(size), np.empty(size), np.empty(size), np.empty(size), np.zeros(2 * size + 1),
        np.empty(mlp.units(layers)), np.empty((2, mlp.widest(layers))), np.empty(1),
    )  # fmt: skip


def _seconds(config: Config, n: int, d: int) -> float:
    """Time of a fit on one core, by weights."""
    weights = mlp.count(mlp.layout(d, config.hidden))
    return config.epochs * n * (8e-9 * weights + 1.5e-6)


def _published(config: Config) -> tuple[str, ...]:
    """Return the columns that a configuration answers to: the paper's epochs and units."""
    known = config.epochs == Config().epochs and config.hidden in {(50,), (100,)}
    return ("VI", "VI(G)-1") if known else ()


METHOD = Method(
    name="vi_graves",
    version=1,
    title="Variational inference, Graves' stochastic gradients",
    paper="Hernandez-Lobato and Adams (2015), after Graves (2011)",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    warmup={"epochs": 1, "test_samples": 5},
    published=_published,
    space={"learning_rate": {"log": [1e-3, 5e-2]}, "momentum": {"uniform": [0.0, 0.95]}},
)
