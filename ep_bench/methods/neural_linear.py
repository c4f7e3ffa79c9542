"""Neural linear model: a trained network whose last hidden units are the inputs of a Bayesian linear regression.

A network of rectified linear units is trained as in ``bp``: gradient descent with momentum, one step per data point, on
half the squared error plus weight decay. Its last hidden units and a constant are the features phi (M,) of

    y = w' phi(x) + e,    w ~ N(0, s / g I),    e ~ N(0, s),

where s is the variance of the noise and g its ratio to that of the weights (Lazaro-Gredilla and Figueiras-Vidal 2010;
Ober and Rasmussen 2019). The posterior of w is exact. With the singular values r (M,) of the features Phi (n, M), their
right singular vectors V (M, M), and the projections c (M,) of y on the left ones,

    s(g) = (|y|^2 - |c|^2 + sum_i c_i^2 g / (r_i^2 + g)) / n,
    log p(y; g) = sum_i log(g / (r_i^2 + g)) / 2 - n (log 2 pi s(g) + 1) / 2,
    p(y_* | x, y) = N(phi' V (r c / (r^2 + g)), s + s sum_i (V' phi)_i^2 / (r_i^2 + g)).

g maximises this log evidence: the best of a grid, then Brent's method between its neighbours. The log evidence takes
the features for known, although they were trained on the same targets. It is no evidence of the network.

Deviation: Ober and Rasmussen compare several ways to train the features and optimise the settings of each by Bayesian
optimisation. Here the features are those of ``bp``, with its defaults; ``tune`` searches the settings.
Deviation: the noise variance is not below the machine epsilon, and it is 1 if there is only one data point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveFloat, PositiveInt
from scipy.linalg import qr, svd

from ep_bench.models import mlp, momentum
from ep_bench.models.last_layer import features
from ep_bench.numerics.minibatch import Trace
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Method, Rows

LOG_RATIOS = np.linspace(-25.0, 10.0, 71)  # log g / max r^2 that the grid compares
SMALLEST = float(np.finfo(np.float64).eps)  # noise variance; residuals of a constant target are 0


class Config(BaseModel):
    """Options of the neural linear model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field((50,), description="units per hidden layer; as bp: 50")
    epochs: PositiveInt = Field(40, description="passes over the training data; as bp: 40")
    learning_rate: PositiveFloat = Field(2e-2, description="first step size, which decreases to 0; as bp")
    momentum: float = Field(0.9, ge=0.0, lt=1.0, description="momentum of the descent; as bp")
    weight_decay: NonNegativeFloat = Field(
        0.1, description="precision of the weights while features are trained, relative to that of the noise; as bp"
    )


class LinearPosterior(NamedTuple):
    """Posterior of the weights of the last layer by the symbols of the module."""

    noise_variance: float
    ratio: float  # g
    mean: Array  # (M,)
    directions: Array  # V (M, M)
    squares: Array  # r^2 (M,)
    log_evidence: float


class State(NamedTuple):
    """Network, posterior of its last layer, and log evidence of the last layer in nats; standardised units."""

    layers: Array  # (L, 3) as in ``models.mlp``
    weights: Array  # (P,)
    last: LinearPosterior
    log_evidence: float

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Variances of the noise and of the prior of the last layer's weights."""
        return {
            "noise_variance": self.last.noise_variance,
            "prior_variance": self.last.noise_variance / self.last.ratio,
        }


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, Trace]:
    """Fit features and last layer to standardised data X (n, d), y (n,).

    Returns the state and the trace of the features' training, as ``bp``. Raises FloatingPointError if an epoch ends
    with a number that is not finite, or if the network has diverged (``mlp.refuse_divergence``).
    """
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    layers = mlp.layout(X.shape[1], config.hidden)
    net = momentum.start(layers, mlp.initial_weights(layers, rng))
    rates = momentum.step_sizes(config.learning_rate, config.epochs)
    trace = momentum.descend(net, X, y, rates, config.momentum, config.weight_decay / len(y), rng)
    weights = momentum.weights(net, config.momentum)
    mlp.refuse_divergence(weights, layers, X, y)
    last = regression(features(X, weights, layers), y)
    return State(layers, weights, last, last.log_evidence), trace


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG001
    """Return one Gaussian per data point of X (n, d), standardised units, noise included; ``rng`` is not used."""
    mean, variance = _latent(state, X)
    return Predictive.gaussian(mean, variance + state.last.noise_variance)


def _latent(state: State, X: Array) -> tuple[Array, Array]:
    """Return means and variances (n,) of w' phi(x) at X (n, d)."""
    phi, last = features(X, state.weights, state.layers), state.last
    return phi @ last.mean, last.noise_variance * ((phi @ last.directions) ** 2 @ (1.0 / (last.squares + last.ratio)))


def regression(Phi: Array, y: Array) -> LinearPosterior:
    """Return the posterior of the weights on features Phi (n, M) for targets y (n,), with g of the highest evidence."""
    from scipy.optimize import minimize_scalar

    n, M = Phi.shape
    orthogonal, triangle = qr(Phi, mode="economic")
    left, singular, right = svd(triangle)
    r, c = np.zeros(M), np.zeros(M)
    r[: len(singular)], c[: len(singular)] = singular, left.T @ (orthogonal.T @ y)
    outside, largest = max(float(y @ y - c @ c), 0.0), max(float(r[0] ** 2), SMALLEST)

    def profile(log_ratio: float) -> tuple[float, float, float]:
        """Return g, s and the log evidence."""
        g = largest * float(np.exp(log_ratio))
        squares = outside + float(c**2 @ (g / (r**2 + g)))
        s = max(squares / n, SMALLEST) if n > 1 else 1.0
        return g, s, 0.5 * float(np.sum(np.log(g / (r**2 + g)))) - 0.5 * (n * np.log(2.0 * np.pi * s) + squares / s)

    best = int(np.argmax([profile(one)[2] for one in LOG_RATIOS]))
    bounds = LOG_RATIOS[max(best - 1, 0)], LOG_RATIOS[min(best + 1, len(LOG_RATIOS) - 1)]
    found = minimize_scalar(lambda one: -profile(one)[2], bounds=bounds, method="bounded", options={"xatol": 1e-9})
    g, s, log_evidence = profile(float(found.x))
    return LinearPosterior(s, g, right.T @ (r * c / (r**2 + g)), right.T, r**2, log_evidence)


def _seconds(config: Config, n: int, d: int) -> float:
    """Return the expected seconds of a fit on one core: the descent, and the decomposition of the features."""
    weights = mlp.count(mlp.layout(d, config.hidden))
    features = (config.hidden[-1] if config.hidden else d) + 1
    return config.epochs * n * (0.3e-9 * weights + 0.15e-6) + 2e-9 * n * features**2 + 5e-3


METHOD = Method(
    name="neural_linear",
    equality="stable",
    version=1,
    title="Neural linear model",
    paper="Ober and Rasmussen (2019), after Lazaro-Gredilla and Figueiras-Vidal (2010)",
    style=("ensembles, point", "^"),
    bibtex="""
    @inproceedings{ober2019, author = {Ober, Sebastian W. and Rasmussen, Carl Edward},
      title = {{Benchmarking the Neural Linear Model for Regression}},
      booktitle = {Symposium on Advances in Approximate Bayesian Inference}, year = {2019}}""",
    density="Gaussian, noise by evidence",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    latent=_latent,
    seconds=_seconds,
    warmup={"epochs": 1},
    space={
        "epochs": {"log_int": [10, 400]},
        "learning_rate": {"log": [1e-3, 5e-2]},
        "momentum": {"uniform": [0.0, 0.95]},
        "weight_decay": {"log": [1e-4, 10.0]},
    },
)
