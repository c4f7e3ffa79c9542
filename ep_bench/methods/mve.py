"""Mean-variance estimation: a network for mean and variance (Nix and Weigend 1994; Seitzer et al., ICLR 2022).

A network of rectified linear units has two outputs at an input x: a mean m(x) and a number a(x). The variance of the
observation is s(x) = log(1 + exp(a(x))) + s_min. Adam follows, for minibatches of B data points, the gradient of

    mean_b [s_b^beta] [log(2 pi s_b) + (y_b - m_b)^2 / s_b] / 2,

where the factor s_b^beta is not differentiated. With beta = 0 this is the likelihood, whose gradient by m_b
is small where s_b is large, so that data points with large residuals are hardly fitted. With beta = 1 that gradient is
the one of the squared error. The predictive distribution is N(m(x), s(x)).

As in the authors' program, the number of epochs is the one with the highest likelihood of validation points, and a
second fit uses all training points (``models.early_stopping``). ``ensemble`` trains several such networks by
likelihood; ``vi`` with ``noise: heteroscedastic`` has a second output for the logarithm of the variance.

Deviation: minibatches have 32 data points, where the program has 256.
Deviation: the program searches six step sizes from 0.0001 to 0.007. Here it is 0.007 unless ``tune`` searches it: with
0.003, the mean log density of validation points was lower (20 % of the training points of splits 0 and 1 of boston,
energy, wine and yacht, not used by the fit).
Deviation: s_min is 1e-6 as in ``ensemble``; the program has 1e-8, and 100 as an upper limit of the variance.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from ep_bench.models import mlp
from ep_bench.models.early_stopping import EarlyStoppingConfig, TrainingProblem
from ep_bench.models.early_stopping import train as train_network
from ep_bench.models.last_layer import features, hidden_gradient, hidden_outputs
from ep_bench.numerics.minibatch import Trace
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Method, Rows

UNIT = math.log(math.expm1(1.0))  # a(x) of the variance 1


class Config(EarlyStoppingConfig):
    """Options of the network."""

    hidden: tuple[PositiveInt, ...] = Field((50,), description="units per hidden layer; the paper: 50")
    learning_rate: PositiveFloat = Field(7e-3, description="step size of Adam; the program: searched; ours")
    beta: float = Field(0.5, ge=0.0, le=1.0, description="exponent of the weights; the paper: 0.5; 0 is the likelihood")
    minimum_variance: PositiveFloat = Field(
        1e-6, description="lower limit of the variance, squared units of the standardised target; as ensemble"
    )


class State(NamedTuple):
    """Weights in standardised units."""

    layers: Array  # (L, 3) as in ``models.mlp``
    weights: Array  # (P,)
    minimum_variance: float


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, Trace]:
    """Fit the network to standardised data X (n, d), y (n,).

    Returns the state, and one value per epoch of ``objective``: the negative log-likelihood per data point (nats),
    without the factor s^beta, averaged over the steps. Raises FloatingPointError if a step ends with a number that is
    not finite, or if the mean has diverged (``mlp.refuse_residuals``).
    """
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    layers = mlp.layout(X.shape[1], config.hidden, outputs=2)

    def start(rng: np.random.Generator) -> Array:
        w: Array = mlp.initial_weights(layers, rng)
        w[-1] = UNIT
        return w

    def loss(w: Array, X: Array, y: Array) -> float:
        return -float(predict(State(layers, w, config.minimum_variance), X, rng).logpdf(y).mean())

    def objective(w: Array, X: Array, y: Array, _: int, gradient: Array) -> float:
        return weighted_likelihood(w, X, y, layers, config.beta, config.minimum_variance, gradient)

    w, trace = train_network(TrainingProblem(start, objective, loss), X, y, config, rng)
    state = State(layers, w, config.minimum_variance)
    mlp.refuse_residuals(y - predict(state, X, rng).mean(), y)
    return state, trace


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG001
    """Return one Gaussian per data point of X (n, d), standardised units, noise included; ``rng`` is not used."""
    last = state.weights[state.layers[-1, 0] :].reshape(-1, 2)
    mean, a = (features(X, state.weights, state.layers) @ last).T
    return Predictive.gaussian(mean, np.logaddexp(0.0, a) + state.minimum_variance)


def weighted_likelihood(
    w: Array, X: Array, y: Array, layers: Array, beta: float, minimum: float, gradient: Array
) -> float:
    """Return the negative log-likelihood per data point of X (B, d), y (B,); write the weighted gradient (P,)."""
    first = int(layers[-1, 0])
    outputs, last = hidden_outputs(X, w, layers), w[first:].reshape(-1, 2)
    mean, a = (outputs[-1] @ last[:-1] + last[-1]).T
    above_minimum = np.logaddexp(0.0, a)
    s, residual = above_minimum + minimum, mean - y
    square = residual**2 / s
    slope = -np.expm1(-above_minimum)  # of s by a
    factor = s**beta / (s * len(y))
    above = np.column_stack([factor * residual, 0.5 * factor * (1.0 - square) * slope])
    by_last = gradient[first:].reshape(-1, 2)
    by_last[:-1], by_last[-1] = outputs[-1].T @ above, above.sum(axis=0)
    hidden_gradient(outputs, above @ last[:-1].T, w, layers, gradient)
    return 0.5 * float(np.mean(np.log(2.0 * np.pi * s) + square))


def _seconds(config: Config, n: int, d: int) -> float:
    """Return the expected seconds of a fit on one core; the number of epochs is unknown before the fit."""
    rows = min(config.batch_size, n)
    weights = mlp.count(mlp.layout(d, config.hidden, outputs=2))
    return (config.epochs or 300) * max(n // rows, 1) * (1e-4 + 0.6e-9 * weights * rows)


METHOD = Method(
    name="mve",
    equality="optimised",
    version=1,
    title="Mean-variance estimation",
    paper="Seitzer et al. (2022), after Nix and Weigend (1994)",
    density="Gaussian, noise by input",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    warmup={"epochs": 1},
    validated=lambda config: "" if config.epochs else "epochs",
    space={
        "learning_rate": {"log": [3e-4, 3e-2]},
        "beta": {"choice": [0.0, 0.5, 1.0]},
    },
)
