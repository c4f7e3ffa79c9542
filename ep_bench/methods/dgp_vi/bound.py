"""The doubly stochastic bound of Salimbeni and Deisenroth (2017), its gradient and natural-gradient steps.

    bound = sum_i E log N(y_i | f_i, s2) - sum_l KL_l,

with the expectation over the last layer in closed form, and by draws over the outputs of the hidden layers,

    h = mean + sqrt(variance + noise) e,   e ~ N(0, I),

which are independent given the inputs of their layer. A minibatch of B of the N data points with S draws estimates the
first sum, each term counted c = N / (B S) times. Without hidden layers nothing is drawn.

q of the last layer takes natural-gradient steps. With its features V (B S, M), precision T and t = T m,

    T <- (1 - rho) T + rho (I + c V' V / s2),   t <- (1 - rho) t + rho c V' y / s2,

a fraction rho of the way to the best q of the estimate, as in ``sgp``. Logarithms of hyperparameters stay within the
limits of ``covariances.hyperparameters``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ep_bench.covariances.sparse_bound import SparseGPProblem
from ep_bench.methods.dgp_vi.layers import (
    Forward,
    Layer,
    Structure,
    backward,
    diagonal,
    divergence,
    forward,
    input_gradient,
    layers,
    lower,
    problem_of,
)
from ep_bench.numerics import symmetric
from ep_bench.types import Array


class Model(NamedTuple):
    """What the parameters do not have: sizes, mean functions, number of data points."""

    structure: Structure
    W: list[Array]  # (D_in, D_out) per layer
    problems: list[SparseGPProblem]
    points: int  # N

    @classmethod
    def of(cls, structure: Structure, W: list[Array], points: int) -> Model:
        """Return the model with the covariance functions of its layers."""
        return cls(structure, W, [problem_of(d) for d in structure.dims[:-1]], points)

    @property
    def hidden(self) -> int:
        """Return the number of hidden units of all layers."""
        return sum(self.structure.dims[1:-1])


def propagate(model: Model, found: list[Layer], X: Array, noise: Array) -> list[Forward]:
    """Return the moments of each layer at inputs X (B, d), with draws from standard normals (S, B, hidden units)."""
    H, made = X, []
    for index, (problem, layer, W) in enumerate(zip(model.problems, found, model.W, strict=True)):
        made.append(forward(problem, layer, W, H))
        if layer is not found[-1]:
            draws = made[-1].mean + spread(made[-1], layer) * normals(model, noise, index, made[-1])
            H = draws.reshape(-1, W.shape[1])
    return made


def normals(model: Model, noise: Array, index: int, made: Forward) -> Array:
    """Return the part of the standard normals of one layer, (S, B, D_out) for the first and (1, S B, D_out) later."""
    at = sum(model.structure.dims[1 : index + 1])
    return noise[:, :, at : at + made.mean.shape[1]].reshape(-1, *made.mean.shape)


def spread(made: Forward, layer: Layer) -> Array:
    """Return standard deviations (P, D_out) of the outputs of a hidden layer, noise included."""
    return np.asarray(np.sqrt(made.variance + math.exp(layer.hyper[-1])))


def negative_bound(
    model: Model, found: list[Layer], X: Array, y: Array, noise: Array, gradient: list[Layer]
) -> tuple[float, Array]:
    """Return minus the estimate of the bound (nats) for a minibatch X (B, d), y (B,), and the last features (B S, M).

    Writes the gradient. ``noise`` (S, B, hidden units) is standard normal. Raises FloatingPointError if a covariance
    matrix has no factor.
    """
    made = propagate(model, found, X, noise)
    value, d_mean, d_variance = _likelihood(model, made[-1], found[-1], y, gradient[-1])
    for index in range(len(made) - 1, -1, -1):
        problem, layer, last = model.problems[index], found[index], made[index]
        value += divergence(layer, last)
        A = backward(problem, layer, last, d_mean, d_variance, gradient[index])
        if index > 0:
            below, noisy = found[index - 1], normals(model, noise, index - 1, made[index - 1])
            d_H = input_gradient(problem, layer, model.W[index], last, d_mean, A).reshape(noisy.shape)
            d_mean = d_H.sum(axis=0)
            d_variance = (d_H * noisy).sum(axis=0) / (2.0 * spread(made[index - 1], below))
            gradient[index - 1].hyper[-1] = math.exp(below.hyper[-1]) * float(d_variance.sum())
    return value, made[-1].V


def _likelihood(model: Model, last: Forward, layer: Layer, y: Array, by: Layer) -> tuple[float, Array, Array]:
    """Return minus the expected log-likelihood (nats) and its gradients by mean and variance (P, 1)."""
    s2, each = math.exp(layer.hyper[-1]), model.points / len(last.mean)
    residual = last.mean - np.tile(y, len(last.mean) // len(y))[:, None]
    e = (residual**2 + last.variance) / s2
    by.hyper[-1] = 0.5 * each * float((1.0 - e).sum())
    value = 0.5 * each * float((math.log(2.0 * math.pi * s2) + e).sum())
    return value, each / s2 * residual, np.full(last.mean.shape, 0.5 * each / s2)


class NaturalSteps:
    """The negative bound; each evaluation also takes a natural-gradient step of the last layer's q, in theta."""

    def __init__(self, model: Model, rate: float) -> None:
        self._model, self._rate = model, rate
        self._precision, self._shift = np.eye(model.structure.inducing), np.zeros(model.structure.inducing)

    def __call__(self, theta: Array, X: Array, y: Array, noise: Array, gradient: Array) -> float:
        """Return minus the bound (nats), as ``negative_bound``; the gradient (P,) is 0 for q of the last layer."""
        found, by = layers(self._model.structure, theta), layers(self._model.structure, gradient)
        for layer, problem in zip(found, self._model.problems, strict=True):
            np.clip(layer.hyper, problem.hyper.low, problem.hyper.high, out=layer.hyper)
        value, V = negative_bound(self._model, found, X, y, noise, by)
        by[-1].mean[:], by[-1].factor[:] = 0.0, 0.0
        each = self._model.points / len(V) / math.exp(found[-1].hyper[-1])
        self._precision += self._rate * (np.eye(V.shape[1]) + each * (V.T @ V) - self._precision)
        self._shift += self._rate * (each * (V.T @ np.tile(y, len(V) // len(y))) - self._shift)
        set_posterior(found[-1], self._precision, self._shift)
        return value


def set_posterior(layer: Layer, precision: Array, shift: Array) -> None:
    """Write the mean and the factor of q of a layer with one output, from T (M, M) and t (M,)."""
    inverse = symmetric.square(len(precision))
    inverse[:] = precision
    sound = symmetric.factorise(inverse)
    if sound:
        layer.mean[:, 0] = symmetric.solve(inverse, shift)
        symmetric.invert(inverse)
        sound = symmetric.factorise(inverse)
    if not sound:
        raise FloatingPointError("the precision of the last layer's inducing outputs is not finite")
    layer.factor[:] = lower(len(inverse)) * inverse[:, None, :]
    diagonal(layer.factor)[:] = np.log(diagonal(layer.factor))
