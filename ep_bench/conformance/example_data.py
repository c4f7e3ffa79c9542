"""The small data sets that the checks fit methods to; all from fixed seeds, moderate scales unless a check says so."""

from __future__ import annotations

import numpy as np

from ep_bench.conformance.method_under_test import CLASSES, ExampleRows
from ep_bench.types import Array


def ordinary(n: int = 40, *, seed: int = 1, d: int = 3) -> ExampleRows:
    """Return rows of a linear function with a little noise; targets of mean about 5, deviation about 2."""
    rng = np.random.default_rng([seed, n, d])
    X = rng.normal(size=(n, d))
    return ExampleRows(X, 5.0 + X @ np.linspace(2.0, 0.5, d) + 0.5 * rng.normal(size=n))


def classes(n: int = 40, *, seed: int = 1, d: int = 3) -> ExampleRows:
    """Return rows of CLASSES classes by one input with noise; targets are their indices, all of which occur."""
    rng = np.random.default_rng([seed, n, d])
    X = rng.normal(size=(n, d))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=n), [-0.4, 0.4]).astype(np.float64)
    y[:CLASSES] = np.arange(CLASSES)[:n]
    return ExampleRows(X, y)


def standard_noise(rng: np.random.Generator, n: int) -> Array:
    """Return noise (n,) whose mean is 0 and whose deviation is 1, exactly: so few rows would else miss both."""
    noise = rng.normal(size=n)
    return np.asarray((noise - noise.mean()) / noise.std())
