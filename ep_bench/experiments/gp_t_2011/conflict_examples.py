"""Two examples with one input, in which two observations in a gap of the data contradict each other.

The paper (section 5) shows its examples only as pictures (figure 1). These examples agree with its text: no other data
are in 1 < x < 3. In example 1, the two observations are 1 apart; the posterior is unimodal at the hyperparameters of
highest density, and bimodal at a lengthscale of 0.9. In example 2, the function is much more nonlinear in -5 < x < 0
and the two observations are closer, so that the posterior is also bimodal at the hyperparameters of highest density.
The contradicting observations come first (y1, y2), then their neighbours on both sides (y3, y4).

Deviation: functions, noise and inputs are ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ep_bench.covariances import build, matrix
from ep_bench.experiments.gp_t_2011 import MIDPOINT
from ep_bench.types import Array

NOISE = 0.1  # scale of the noise, in the unit of y


class Example(NamedTuple):
    """Inputs and targets (n,), the contradicting pair first."""

    x: Array
    y: Array


class ExampleHyperparameters(NamedTuple):
    """Values of the hyperparameters."""

    lengthscale: float
    magnitude: float  # variance
    scale: float  # sigma
    nu: float


def example(number: int) -> Example:
    """Return example 1 or 2."""
    return _smooth() if number == 1 else _nonlinear()


def truth(number: int, x: Array) -> Array:
    """Return the noise-free function of an example."""
    if number == 1:
        return np.asarray(2.0 * np.sin(x) + 0.3 * np.sin(0.6 * x))
    return np.asarray(3.0 * np.sin(1.4 * x) * np.exp(-0.5 * ((x + 2.5) / 1.4) ** 2) + 0.3 * np.sin(0.6 * x))


def covariances(x: Array, hyper: ExampleHyperparameters) -> Array:
    """Return the squared exponential covariances (n, n) of inputs x (n,)."""
    return matrix(build("se", 1, ard=True), np.log([hyper.lengthscale, hyper.magnitude]), x[:, None])


def _smooth() -> Example:
    """Return example 1: Gaussian noise; the two observations are 1.2 below and above the function."""
    pair = np.array([1.5, 2.5])
    x = np.concatenate([np.linspace(-5.0, 0.0, 12), np.linspace(0.0, 1.0, 4)[1:], np.linspace(3.0, 5.0, 5)])
    noise = NOISE * np.random.RandomState(2).standard_normal(len(x))
    return _ordered(pair, truth(1, pair) + np.array([-1.2, 1.2]), x, truth(1, x) + noise)


def _nonlinear() -> Example:
    """Return example 2: Student-t noise with nu = 2; the two observations are 0.8 above and below the midpoint."""
    pair = np.array([1.75, 2.25])
    x = np.concatenate([np.linspace(-5.0, 0.0, 24), np.linspace(0.0, 1.0, 4)[1:], np.linspace(3.0, 5.0, 6)])
    noise = NOISE * np.random.RandomState(23).standard_t(2.0, len(x))
    return _ordered(pair, truth(2, np.array([MIDPOINT])) + np.array([0.8, -0.8]), x, truth(2, x) + noise)


def _ordered(pair: Array, targets: Array, x: Array, y: Array) -> Example:
    neighbours = [np.flatnonzero(x < pair[0])[-1], np.flatnonzero(x > pair[1])[0]]
    order = [*neighbours, *np.delete(np.arange(len(x)), neighbours)]
    return Example(np.concatenate([pair, x[order]]), np.concatenate([targets, y[order]]))
