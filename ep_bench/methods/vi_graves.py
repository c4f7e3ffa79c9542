"""Variational inference by Graves' stochastic gradients: the VI of Hernandez-Lobato and Adams (ICML 2015, table 1).

Model: a network of rectified linear units with Gaussian noise and weights w ~ N(mu0, v0). A factorised Gaussian q(w)
with means m and standard deviations s minimises the negative variational bound (Graves, NIPS 2011). Each step uses one
data point and one draw w = m + s e. With g the gradient of -log p(y_n | w) with respect to w, the estimates of the
contribution of one data point to the gradient are

    m         g + (m - mu0) / (n v0)
    s^2       g^2 / 2 + (1 / v0 - 1 / s^2) / (2 n)

The second is Graves': the squared gradient replaces the curvature, to which it is equal on average if the noise model
holds. Mean and variance of the prior maximise the bound given q and are updated before each epoch, as in Graves' paper.
The noise variance sigma2 is learned with q. Hernandez-Lobato and Adams tune learning rate and momentum:
``tune: {trials: 30, fraction: 0.2}``. Predictions are mixtures over weight samples.

Deviation: neither paper states the units of the steps, the starting point or the treatment of the noise. Here the
gradient of m is multiplied by sigma2; otherwise steps would grow as the noise falls. The gradient of log s is n times
the contribution of one data point. No data point changes log s or log sigma2 by more than 1, momentum included. The
step on m is shortened if it would overshoot the target of the data point (``mlp.row_step_size``). Initial means are
N(0, 2 / n_in) (output: N(0, 1 / n_in)), initial standard deviations 0.1 / sqrt(n_in + 1), and sigma2 = 1. The step size
decreases linearly to 0.
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
from ep_bench.numerics.minibatch import run_epochs
from ep_bench.numerics.normal_rng import fill_normals, stream
from ep_bench.options import NEUTRAL
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Indices, Method, Rows

INITIAL_STD = 0.1


class Config(BaseModel):
    """Options of Graves' variational inference."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field(
        (50,), description="units per hidden layer; section 5.1: 50, and 100 for year and protein"
    )
    epochs: PositiveInt = Field(40, description="passes over the training data; section 5.1: 40")
    learning_rate: PositiveFloat = Field(
        1e-2, description="initial step size; tuned in the paper, which gives no default"
    )
    momentum: float = Field(
        0.5, ge=0.0, lt=1.0, description="momentum of the steps; tuned in the paper, which gives no default"
    )
    test_samples: PositiveInt = Field(100, description="weight samples per prediction; ours")
    noise_variance: PositiveFloat | None = Field(
        None,
        json_schema_extra={NEUTRAL: None},
        description="fixed noise variance, in squared units of the standardised target; by default learned",
    )
    prior_variance: PositiveFloat | None = Field(
        None,
        json_schema_extra={NEUTRAL: None},
        description="fixed variance of a prior of mean 0; by default mean and variance maximise the bound",
    )


class State(NamedTuple):
    """Posterior of the weights, standardised units."""

    layers: Array  # (L, 3) as in ``models.mlp``
    mean: Array  # (P,)
    std: Array  # (P,) standard deviations
    noise_variance: float
    test_samples: int


class StepWorkspace(NamedTuple):
    """Arrays of a step."""

    noise: Any  # (P,) e
    std: Any  # (P,) s
    w: Any  # (P,)
    g: Any  # (P,) gradient of f with respect to w
    velocity: Any  # (2 P + 1,) of m, log s, log sigma2
    Z: Any  # (units,) hidden outputs
    D: Any  # (2, widest)
    f: Any  # (1,)


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Fit to standardised data X (n, d), y (n,).

    Returns the state and a trace with one value per epoch: ``objective`` (the negative bound, nats per data point) and
    ``noise_deviation`` (standard deviation, standardised). The expected log-likelihood of the bound is estimated from
    the draws of the epoch; the divergence is that at its end.

    Raises FloatingPointError if the objective or a parameter is not finite after an epoch, or if the fitted network
    has diverged (``mlp.refuse_divergence``).
    """
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    layers = mlp.layout(X.shape[1], config.hidden)
    size = mlp.count(layers)
    first_noise = math.log(config.noise_variance or 1.0)
    theta = np.concatenate([mlp.initial_weights(layers, rng), np.log(_initial_std(layers)), [first_noise]])
    words, work = stream(rng), _workspace(layers)

    def run_epoch(epoch: int, order: Indices) -> float:
        prior = _best_prior(theta[:size], theta[size:-1])
        if config.prior_variance is not None:
            prior[:] = 0.0, config.prior_variance
        rate = config.learning_rate * (1.0 - epoch / config.epochs)
        noise_rate = rate if config.noise_variance is None else 0.0
        misfit = _epoch(X, y, order, theta, layers, prior, (rate, noise_rate), config.momentum, words, work)
        distance = divergence(theta[:size] - prior[0], np.exp(theta[size:-1]), np.full(size, prior[1]))
        return float(misfit + distance / len(y))

    def monitor() -> dict[str, float]:
        return {"noise_deviation": math.exp(0.5 * theta[-1])}

    trace = run_epochs(range(config.epochs), run_epoch, theta, len(y), rng, monitor)
    mean, std = theta[:size].copy(), np.exp(theta[size:-1])
    mlp.refuse_divergence(mean, layers, X, y)
    return State(layers, mean, std, math.exp(theta[-1]), config.test_samples), trace


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:
    """Return mixtures over weight samples at inputs X (n, d), standardised units, noise included."""
    outputs = meanfield.sample_networks(state.mean, state.std, state.test_samples, state.layers, X, rng)
    return Predictive.equal_mixture(outputs, state.noise_variance)


@jit(relaxed=FUSE)
def _epoch(
    X: Any, y: Any, order: Any, theta: Any, layers: Any, prior: Any, rates: tuple[float, float], momentum: float,
    words: Any, work: StepWorkspace,
) -> float:  # fmt: skip
    """Take one step per data point of X (n, d), y (n,), in the order (n,); return the mean of -log p(y | w), nats.

    ``theta`` (2 P + 1,) is updated in place; ``layers`` (L, 3); ``prior`` (2,) mean and variance; ``rates`` of the
    weights and of the log noise variance.
    """
    size, total = work.w.size, 0.0
    for row in order:
        fill_normals(words, work.noise)
        fill_exponentials(theta[size : 2 * size], work.std)
        for i in range(size):
            work.w[i] = theta[i] + work.std[i] * work.noise[i]
        square = row_gradient(X[row : row + 1], work.w, layers, work.Z, work.f, work.g, work.D)
        residual, log_sigma2 = work.f[0] - y[row], theta[2 * size]
        total += 0.5 * (math.log(2.0 * math.pi) + log_sigma2 + residual * residual * math.exp(-log_sigma2))
        take_step(theta, prior, residual, square, order.size, rates, momentum, work)
    return total / order.size


@jit(relaxed=FUSE)
def take_step(
    theta: Any, prior: Any, residual: float, square: float, n: int, rates: tuple[float, float], momentum: float,
    work: StepWorkspace,
) -> None:  # fmt: skip
    """Update the parameters (2 P + 1,) with the ``residual`` f - y of one of n data points.

    ``work`` holds the gradient of f and the standard deviations; ``square`` is the squared length of the gradient.
    ``prior`` (2,) has mean and variance, ``rates`` the step sizes of the weights and of the log noise variance.
    """
    size, velocity = work.w.size, work.velocity
    rate, noise_rate = rates
    sigma2 = math.exp(theta[2 * size])
    step = row_step_size(rate, momentum, square) * residual
    misfit = residual * residual / sigma2
    limit = (1.0 - momentum) / rate
    weight, prior_precision, shrinkage = n * misfit / sigma2, 1.0 / prior[1], rate * sigma2 / (n * prior[1])
    for i in range(size):
        variance, slope = work.std[i] * work.std[i], work.g[i]
        velocity[i] = momentum * velocity[i] - step * slope - shrinkage * (theta[i] - prior[0])
        by_log_std = variance * (weight * slope * slope + prior_precision) - 1.0
        velocity[size + i] = momentum * velocity[size + i] - rate * min(by_log_std, limit)
    velocity[2 * size] = momentum * velocity[2 * size] - noise_rate * max(0.5 - 0.5 * misfit, -limit)
    for i in range(2 * size + 1):
        theta[i] += velocity[i]


def _best_prior(mean: Array, log_std: Array) -> Array:
    """Return mean and variance (2,) of the prior that maximises the bound, given means and log s of q, (P,)."""
    centre = float(mean.mean())
    return np.array([centre, float(np.mean((mean - centre) ** 2 + np.exp(2.0 * log_std)))])


def _initial_std(layers: Array) -> Array:
    """Return the standard deviations (P,) before the first step."""
    parts = [np.full((n_in + 1) * n_out, INITIAL_STD / np.sqrt(n_in + 1)) for _, n_in, n_out in layers.tolist()]
    return np.concatenate(parts)


def _workspace(layers: Array) -> StepWorkspace:
    size = mlp.count(layers)
    return StepWorkspace(
        np.empty(size), np.empty(size), np.empty(size), np.empty(size), np.zeros(2 * size + 1),
        np.empty(mlp.units(layers)), np.empty((2, mlp.widest(layers))), np.empty(1),
    )  # fmt: skip


def _seconds(config: Config, n: int, d: int) -> float:
    """Estimate the time of a fit on one core, proportional to the number of weights."""
    weights = mlp.count(mlp.layout(d, config.hidden))
    return config.epochs * n * (8e-9 * weights + 1.5e-6)


def _published(config: Config) -> tuple[str, ...]:
    """Return the published columns that match a configuration: by the epochs and units of the paper."""
    learned = config.noise_variance is None and config.prior_variance is None
    known = learned and config.epochs == Config().epochs and config.hidden in {(50,), (100,)}
    return ("VI", "VI(G)-1") if known else ()


METHOD = Method(
    name="vi_graves",
    equality="stable",
    version=1,
    title="Variational inference, Graves' stochastic gradients",
    paper="Hernandez-Lobato and Adams (2015), after Graves (2011)",
    style=("variational", "s"),
    bibtex="""
    @inproceedings{graves2011, author = {Graves, Alex},
      title = {{Practical Variational Inference for Neural Networks}},
      booktitle = {Advances in Neural Information Processing Systems 24}, year = {2011}, pages = {2348--2356}}""",
    density="mixture over weights",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    warmup={"epochs": 1, "test_samples": 5},
    published=_published,
    space={"learning_rate": {"log": [1e-3, 5e-2]}, "momentum": {"uniform": [0.0, 0.95]}},
)
