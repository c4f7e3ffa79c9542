"""Improved variational online Newton: Y. Shen, N. Daheim, B. Cong and others, ICML 2024.

Model and bound are those of ``vi``: a network of rectified units with Gaussian noise, weights w ~ N(0, v0), and a
factorised Gaussian q(w) (``models.variational_bound``). The optimiser differs: a natural-gradient step for mean and
variance of q, where ``vi`` takes steps of Adam for mean and log standard deviation. q has the variance

    s^2 = 1 / (N (h + delta)),   delta = 1 / (N v0)

for N data points, and h is a running estimate of the diagonal Hessian of the mean negative log-likelihood. With the
gradient g_k of that loss on a minibatch at a draw w_k = m + s e_k, algorithm 1 of the paper is

    g = mean_k g_k,   f = N (h + delta) mean_k (s e_k g_k)
    u <- b1 u + (1 - b1) g
    h <- b2 h + (1 - b2) f + (1 - b2)^2 (h - f)^2 / (2 (h + delta))
    m <- m - rate (h0 + delta) (u / (1 - b1^t) + delta m) / (h + delta)

The last term of h keeps h + delta positive. Step sizes decrease to 0 along a cosine, as in the paper. Predictions are
mixtures over weight samples.

Deviation: the paper has classifiers. Here the log noise variance takes natural-gradient steps of ``NOISE`` times the
step size.
Deviation: b2 is 0.99999 in the paper, whose fits have hundreds of thousands of steps. Here the average of h reaches
over a fifth of the steps, and over 10,000 at least: shorter averages are so noisy that fits diverge, those of energy
and boston over 1,000 steps, and of power and kin8nm over 10,000.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from ep_bench.models import meanfield, mlp, variational_bound
from ep_bench.models.variational_bound import BoundWorkspace, bound, draw
from ep_bench.numerics.copying import copy_rows
from ep_bench.numerics.jit import FUSE, jit
from ep_bench.numerics.minibatch import run_epochs
from ep_bench.numerics.normal_rng import stream
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Indices, Method, Rows

NOISE = 0.1  # step of the log noise variance, relative to that of the means
SHARE, SHORTEST = 0.2, 10_000  # steps that the average of the Hessian reaches over: part of all, and the fewest


class Config(BaseModel):
    """Options of the improved variational online Newton method."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field((50,), description="units per hidden layer; 50 as for other networks here")
    epochs: PositiveInt = Field(1000, description="passes over the training data; ours")
    batch_size: PositiveInt = Field(32, description="data points per step; ours")
    samples: PositiveInt = Field(1, description="weight samples per step; the paper: 1")
    test_samples: PositiveInt = Field(100, description="weight samples per prediction; ours")
    learning_rate: PositiveFloat = Field(
        0.01, description="first step size; ours: with 0.03 fits of thousands of points diverge"
    )
    initial_hessian: PositiveFloat = Field(10.0, description="h before the first step; ours, by validation points")
    momentum: float = Field(0.9, ge=0.0, lt=1.0, description="b1; the paper: 0.9")
    hessian_decay: float | None = Field(
        None, ge=0.0, lt=1.0,
        description="b2; None: average over a fifth of the steps, at least 10,000; the paper: 0.99999",
    )  # fmt: skip
    prior_variance: PositiveFloat = Field(1.0, description="variance of the weights under the prior; as vi")


class State(NamedTuple):
    """Posterior of the weights, standardised units."""

    layers: Array  # (L, 3) as in ``models.mlp``
    mean: Array  # (P,)
    std: Array  # (P,) standard deviations
    noise_variance: float
    test_samples: int

    @property
    def hyperparameters(self) -> dict[str, float]:
        """The noise variance, standardised units."""
        return {"noise_variance": self.noise_variance}


class Newton(NamedTuple):
    """Running quantities and constants of the steps; ``delta`` is 1 / (N v0)."""

    hessian: Any  # (P,) h
    momentum: Any  # (P,) u
    steps: Any  # (1,) integer, steps taken
    initial: float  # h0
    delta: float
    b1: float
    b2: float


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Fit to standardised data X (n, d), y (n,).

    Returns the state and a trace with one value per epoch: ``objective`` (the negative bound, mean over minibatches,
    nats per data point) and ``noise_deviation`` (standard deviation, standardised).

    Raises FloatingPointError if the objective or a parameter is not finite after an epoch, or the fit has diverged
    (``mlp.refuse_divergence``).
    """
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    layers, batch = mlp.layout(X.shape[1], config.hidden), min(config.batch_size, len(y))
    size = mlp.count(layers)
    theta = np.concatenate([mlp.initial_weights(layers, rng), np.zeros(size + 1)])
    newton = Newton(
        np.full(size, config.initial_hessian), np.zeros(size), np.zeros(1, dtype=np.int64), config.initial_hessian,
        1.0 / (len(y) * config.prior_variance), config.momentum,
        decay(config, config.epochs * math.ceil(len(y) / batch)),
    )  # fmt: skip
    work = variational_bound.workspace(config.samples, batch, size, mlp.units(layers), mlp.widest(layers))
    gradient, words = np.empty_like(theta), stream(rng)

    def one_epoch(epoch: int, order: Indices) -> float:
        rate = 0.5 * config.learning_rate * (1.0 + math.cos(math.pi * epoch / config.epochs))
        value = run_epoch(X, y, order, batch, theta, newton, gradient, layers, work, words, config.prior_variance, rate)
        return float(value / len(y))

    def monitor() -> dict[str, float]:
        return {"noise_deviation": float(np.exp(0.5 * theta[-1]))}

    trace = run_epochs(range(config.epochs), one_epoch, theta, len(y), rng, monitor)
    mlp.refuse_divergence(theta[:size], layers, X, y)
    std = 1.0 / np.sqrt(len(y) * (newton.hessian + newton.delta))
    return State(layers, theta[:size].copy(), std, float(np.exp(theta[-1])), config.test_samples), trace


def decay(config: Config, steps: int) -> float:
    """Return b2 for a number of steps."""
    if config.hessian_decay is not None:
        return config.hessian_decay
    return 1.0 - 1.0 / max(SHORTEST, SHARE * steps)


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:
    """Return mixtures over weight samples at inputs X (n, d), standardised units, noise included."""
    outputs = meanfield.sample_networks(state.mean, state.std, state.test_samples, state.layers, X, rng)
    return Predictive.equal_mixture(outputs, state.noise_variance)


@jit()
def run_epoch(
    X: Any, y: Any, order: Any, batch: int, theta: Any, newton: Newton, gradient: Any, layers: Any,
    work: BoundWorkspace, words: Any, prior_variance: float, rate: float,
) -> float:  # fmt: skip
    """Take one step per minibatch of X (n, d), y (n,); return the mean of the negative bound over the steps, nats.

    Arguments as in ``models.variational_bound``; ``order`` (n,) indices.
    """
    n, d = X.shape
    total, count = 0.0, 0
    Xb, yb = np.empty((batch, d)), np.empty(batch)
    prior = np.full(newton.hessian.size, prior_variance)
    for start in range(0, n, batch):
        rows = min(batch, n - start)
        copy_rows(X, y, order[start : start + rows], Xb, yb)
        set_spread(theta, newton, n)
        draw(theta, words, work)
        total += bound(theta, Xb[:rows], yb[:rows], layers, n, prior, work, gradient)
        newton_step(theta, gradient, newton, n, rate)
        theta[-1] -= NOISE * rate * 2.0 / n * gradient[-1]
        count += 1
    return total / count


@jit(relaxed=FUSE)
def set_spread(theta: Any, newton: Newton, n: int) -> None:
    """Write the log standard deviations of q for n data points."""
    size = newton.hessian.size
    for i in range(size):
        theta[size + i] = -0.5 * math.log(n * (newton.hessian[i] + newton.delta))


@jit(relaxed=FUSE)
def newton_step(theta: Any, gradient: Any, newton: Newton, n: int, rate: float) -> None:
    """Update means, h and u by the gradient (2 P + 1,) of the negative bound.

    The gradient with respect to m is N (g + delta m). With respect to log s it is f / (h + delta) + delta / (h + delta)
    - 1, of which the last two terms are those of the divergence.
    """
    newton.steps[0] += 1
    size, delta, b1, b2 = newton.hessian.size, newton.delta, newton.b1, newton.b2
    debias = 1.0 / (1.0 - b1 ** newton.steps[0])
    for i in range(size):
        m, h = theta[i], newton.hessian[i]
        f = (gradient[size + i] + 1.0) * (h + delta) - delta
        u = b1 * newton.momentum[i] + (1.0 - b1) * (gradient[i] / n - delta * m)
        change = h - f
        h_new = h - (1.0 - b2) * change + 0.5 * (1.0 - b2) ** 2 * change * change / (h + delta)
        newton.momentum[i], newton.hessian[i] = u, h_new
        theta[i] = m - rate * (newton.initial + delta) * (u * debias + delta * m) / (h_new + delta)


def _seconds(config: Config, n: int, d: int) -> float:
    """Return the expected seconds of a fit on one core."""
    weights = mlp.count(mlp.layout(d, config.hidden))
    step = config.samples * (7e-9 * weights + config.batch_size * (0.22e-9 * weights + 1.5e-9 * sum(config.hidden)))
    return config.epochs * n / config.batch_size * (step + 2.5e-8 * weights + 5e-6)


METHOD = Method(
    name="ivon",
    equality="stable",
    version=2,
    title="Improved variational online Newton",
    paper="Shen et al. (2024)",
    style=("variational", "v"),
    bibtex="""
    @inproceedings{shen2024,
      author = {Shen, Yuesong and Daheim, Nico and Cong, Bai and Nickl, Peter and Marconi, Gian Maria and Bazan,
        Clement and Yokota, Rio and Gurevych, Iryna and Cremers, Daniel and Khan, Mohammad Emtiyaz and Möllenhoff,
        Thomas},
      title = {{Variational Learning is Effective for Large Deep Networks}},
      booktitle = {Proceedings of the 41st International Conference on Machine Learning}, year = {2024}}""",
    density="mixture over weights",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    warmup={"epochs": 1, "samples": 2, "test_samples": 5},
    space={
        "learning_rate": {"log": [0.003, 0.1]},
        "initial_hessian": {"log": [1.0, 100.0]},
        "prior_variance": {"log": [0.03, 3.0]},
    },
)
