"""Small data sets for the checks, generated from fixed seeds."""

from __future__ import annotations

import numpy as np

from ep_bench.conformance.method_under_test import CLASSES, ExampleRows, MethodUnderTest
from ep_bench.types import Array


def example(subject: MethodUnderTest, n: int = 40, *, seed: int = 1) -> ExampleRows:
    """Return data for the task of a method."""
    return (classes if subject.task == "classification" else ordinary)(n, seed=seed)


def ordinary(n: int = 40, *, seed: int = 1, d: int = 3) -> ExampleRows:
    """Return data of a linear function with little noise; the targets have mean about 5, standard deviation about 2."""
    rng = np.random.default_rng([seed, n, d])
    X = rng.normal(size=(n, d))
    return ExampleRows(X, 5.0 + X @ np.linspace(2.0, 0.5, d) + 0.5 * rng.normal(size=n))


def classes(n: int = 40, *, seed: int = 1) -> ExampleRows:
    """Return data whose class depends on the first input with noise; y holds class indices, all of which occur."""
    rng = np.random.default_rng([seed, n, 3])
    X = rng.normal(size=(n, 3))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=n), [-0.4, 0.4]).astype(np.float64)
    y[:CLASSES] = np.arange(CLASSES)[:n]
    return ExampleRows(X, y)


def standard_noise(rng: np.random.Generator, n: int) -> Array:
    """Return noise (n,) with mean exactly 0 and standard deviation exactly 1, which a small sample would not have."""
    noise = rng.normal(size=n)
    return np.asarray((noise - noise.mean()) / noise.std())
